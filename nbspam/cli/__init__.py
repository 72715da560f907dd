"""The command line.  Only this package knows click and the names of options."""
