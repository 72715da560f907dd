"""Which names are URLs."""

import os


def is_url(name: object) -> bool:
    """Return whether a file is named by a URL; a folder at a mail server is, too."""
    return "://" in str(name)


def real_name(name: object) -> str:
    """Return a file's name with its links followed; a URL as it is."""
    return str(name) if is_url(name) else os.path.realpath(str(name))
