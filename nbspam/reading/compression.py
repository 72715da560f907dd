"""Files, plain or compressed with gzip, bzip2 or xz, which their first bytes show."""

import io
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Buffer  # collections.abc has it from Python 3.12 on


class _Archive(io.RawIOBase):
    """A decompressing stream whose failures are all OSErrors, like those of a plain file."""

    def __init__(self, file: IO[bytes], inner: IO[bytes], damage: type[Exception]) -> None:
        self.packed = file  # closing the inner stream leaves it open
        self._inner = inner
        self._damage = damage

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "Buffer") -> int:
        view = memoryview(buffer)
        try:
            data = self._inner.read(len(view))
        except (EOFError, OSError, self._damage) as error:
            if isinstance(error, OSError) and error.strerror:
                raise  # the disk fails, not the archive
            raise OSError(0, f"damaged archive: {error}") from error
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._inner.close()
        self.packed.close()
        super().close()


def open_bytes(path: "Path") -> io.BufferedReader:
    """Open a file for reading, decompressed.  Opening and reading raise OSError only."""
    return decompressed(path.open("rb"))


def decompressed(stream: io.BufferedReader) -> io.BufferedReader:
    """Return a stream of another's content, decompressed if it is an archive."""
    if not isinstance(stream, io.BufferedReader):  # in memory
        return stream
    magic = stream.peek(6)[:6]
    inner: IO[bytes]
    damage: type[Exception]
    if magic.startswith(b"\x1f\x8b\x08"):
        import gzip
        import zlib

        inner, damage = gzip.GzipFile(fileobj=stream, mode="rb"), zlib.error  # type: ignore[assignment]
    elif magic.startswith(b"BZh"):
        import bz2

        inner, damage = bz2.BZ2File(stream), ValueError
    elif magic == b"\xfd7zXZ\x00":
        import lzma

        xz = lzma.LZMAFile(stream)  # noqa: SIM115 (closed by _Archive)
        inner, damage = xz, lzma.LZMAError
    else:
        return stream
    return io.BufferedReader(_Archive(stream, inner, damage), 1 << 16)


def packed_stream(stream: IO[bytes]) -> IO[bytes]:
    """Return the stream that a decompressed one is made of; any other itself."""
    raw = getattr(stream, "raw", None)
    return raw.packed if isinstance(raw, _Archive) else stream


def is_archive(magic: bytes) -> bool:
    """Return whether a file that begins so is decompressed; magic: its first 6 bytes."""
    return magic.startswith((b"\x1f\x8b\x08", b"BZh", b"\xfd7zXZ\x00"))


def bare_suffix(path: "Path") -> str:
    """Return the suffix that shows the format, in lower case: ".csv" of `mail.CSV.gz`."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".bz2", ".xz"):
        suffixes.pop()
    return suffixes[-1] if suffixes else ""
