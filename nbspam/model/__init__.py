"""What was learned: the model, its file, and looking up one message's words in it."""
