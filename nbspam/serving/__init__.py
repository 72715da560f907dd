"""In the mail path: a message passed on with its verdict, and never lost."""
