"""Streams that are read while they are written, as of `tail -f`: whether more is to come now."""

import io


def has_more(stream: io.BufferedReader, patience: float) -> bool:
    """Return whether a stream has bytes to read, or has ended, within so many seconds."""
    import select  # a mail is read without

    try:
        return bool(select.select([stream.fileno()], [], [], patience)[0])
    except (OSError, ValueError):  # in memory, or an archive: it never waits for long
        return True
