"""Which names are URLs."""


def is_url(name: object) -> bool:
    """Return whether a file is named by a URL; a folder at a mail server is, too."""
    return "://" in str(name)
