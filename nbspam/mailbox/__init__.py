"""What is done with the mail of an account: judged and moved, learned from, watched."""
