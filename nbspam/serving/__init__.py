"""nbspam in a mail system: each message is passed on with its verdict, and never lost."""
