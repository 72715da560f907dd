"""Streams that are read while they are written, as of `tail -f`: whether more is to come now."""

import io


class Flow:
    """Whether the stream that is being read has nothing more to read just now."""

    def __init__(self) -> None:
        self._stream: io.BufferedReader | None = None

    def follow(self, stream: io.BufferedReader) -> None:
        """Watch a stream from now on."""
        self._stream = stream

    def pauses(self) -> bool:
        """Return whether to read on would wait for whoever writes the stream.

        It may say so while some lines are in memory already: they are then answered one by one.
        """
        return self._stream is not None and not has_more(self._stream, 0)


def has_more(stream: io.BufferedReader, patience: float) -> bool:
    """Return whether a stream has bytes to read, or has ended, within so many seconds."""
    import select  # a mail is read without

    try:
        return bool(select.select([stream.fileno()], [], [], patience)[0])
    except (OSError, ValueError):  # in memory, or an archive: it never waits for long
        return True
