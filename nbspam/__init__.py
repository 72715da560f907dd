"""nbspam: a spam filter for the shell."""

__version__ = "0.1.0"
