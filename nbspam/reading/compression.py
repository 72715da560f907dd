"""Files by their first bytes: archives, which are decompressed, and what is not read at all."""

import io
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Buffer  # collections.abc has it from Python 3.12 on

_GZIP, _BZIP2, _XZ = b"\x1f\x8b\x08", b"BZh", b"\xfd7zXZ\x00"


class Taken(io.RawIOBase):
    """A stream of bytes that a function takes from another; it closes both at its end."""

    def __init__(self, take: Callable[[int], bytes], *inner: IO[bytes]) -> None:
        """take: returns so many bytes at most, and none at the end."""
        self._take, self.inner = take, inner

    def readable(self) -> bool:
        """Return whether it can be read, as it can."""
        return True

    def readinto(self, buffer: "Buffer") -> int:
        """Put bytes into a buffer; return how many."""
        view = memoryview(buffer)
        data = self._take(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close it, and what it is made of."""
        for stream in self.inner:
            stream.close()
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
    if magic.startswith(_GZIP):
        import gzip
        import zlib

        inner, damage = gzip.GzipFile(fileobj=stream, mode="rb"), zlib.error  # type: ignore[assignment]
    elif magic.startswith(_BZIP2):
        import bz2

        inner, damage = bz2.BZ2File(stream), ValueError
    elif magic.startswith(_XZ):
        import lzma

        xz = lzma.LZMAFile(stream)  # noqa: SIM115 (closed by Taken)
        inner, damage = xz, lzma.LZMAError
    else:
        return stream

    def take(n: int) -> bytes:
        """Return bytes; its failures are all OSErrors, like those of a plain file."""
        try:
            return inner.read(n)
        except (EOFError, OSError, damage) as error:
            if isinstance(error, OSError) and error.strerror:
                raise  # the disk fails, not the archive
            raise OSError(0, f"damaged archive: {error}") from error

    # Closing the inner stream leaves the packed one open.
    return io.BufferedReader(Taken(take, inner, stream), 1 << 16)


def packed_stream(stream: IO[bytes]) -> IO[bytes]:
    """Return the stream that a decompressed one is made of; any other itself."""
    raw = getattr(stream, "raw", None)
    return raw.inner[-1] if isinstance(raw, Taken) else stream


def is_archive(magic: bytes) -> bool:
    """Return whether a file that begins so is decompressed; magic: its first 6 bytes."""
    return magic.startswith((_GZIP, _BZIP2, _XZ))


def bare_suffix(path: "Path") -> str:
    """Return the suffix that shows the format, in lower case: ".csv" of `mail.CSV.gz`."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".bz2", ".xz"):
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


# Files that are certainly neither mail, text nor a table.  Only a file that is named as a source is
# refused for it.  A message on standard input is judged whatever it begins with, and so is each
# file in a folder of messages: who sends a mail must not choose that it is not judged.


class _Format(NamedTuple):
    """A format that is not read."""

    beginning: bytes
    what: str
    remedy: str
    offset: int = 0  # where the bytes are


WORKBOOKS = (".xlsx", ".xlsm")  # which are read
_WORKBOOK = "is an Excel workbook", "save it as CSV, and use that"
_DOCUMENT = "is a document of an office program", "save it as text or CSV, and use that"
_ZIP = "is a zip archive"
_ARCHIVE = "unpack it, and give the folder or the file in it"
_PICTURE = "is a picture", "give its text"
_FRAME = "save its table as CSV or Parquet, and use that"
_BERKELEY_DB = (
    "is a Berkeley DB",
    "write bogofilter's words with bogoutil -d, and read them with nbspam model import",
    12,
)
FORMATS = (
    _Format(b"PK\x03\x04", _ZIP, _ARCHIVE),
    _Format(b"PK\x05\x06", "is an empty zip archive", "give a file with messages"),
    _Format(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", *_DOCUMENT),
    _Format(b"!BDN", "is an Outlook mailbox", "convert it to mbox with readpst, and use that"),
    _Format(b"SQLite format 3\0", "is an SQLite database", "export the table as CSV, and use that"),
    *(_Format(b"\x80%c" % protocol, "is a Python pickle", _FRAME) for protocol in (2, 3, 4, 5)),
    _Format(b"ARROW1\0\0", "is an Arrow file", _FRAME),
    _Format(b"FEA1", "is a Feather file", _FRAME),
    _Format(b"\x89HDF\r\n\x1a\n", "is an HDF5 file", _FRAME),
    _Format(b"\x93NUMPY", "is a NumPy array", _FRAME),
    _Format(b"Rar!\x1a\x07", "is a RAR archive", _ARCHIVE),
    _Format(b"7z\xbc\xaf\x27\x1c", "is a 7z archive", _ARCHIVE),
    _Format(b"ustar", "is a tar archive", _ARCHIVE, 257),
    _Format(b"\x28\xb5\x2f\xfd", "is compressed with zstd", "decompress it, and use that"),
    _Format(b"%PDF-", "is a PDF", "save its text, and use that"),
    _Format(b"\x89PNG\r\n\x1a\n", *_PICTURE),
    _Format(b"\xff\xd8\xff", *_PICTURE),
    _Format(b"GIF87a", *_PICTURE),
    _Format(b"GIF89a", *_PICTURE),
    _Format(b"\x61\x15\x06\0", *_BERKELEY_DB),
    _Format(b"\x62\x31\x05\0", *_BERKELEY_DB),
    _Format(b"\0\x06\x15\x61", *_BERKELEY_DB),
    _Format(b"\0\x05\x31\x62", *_BERKELEY_DB),
)
# What a zip archive or an Office file is, by its suffix and by a name in it.
_BY_SUFFIX = {
    ".xls": _WORKBOOK,
    ".docx": _DOCUMENT,
    ".msg": ("is a message as Outlook saves it", "save it as .eml, and use that"),
}
_IN_ZIP = ((b"xl/", _WORKBOOK), (b"word/", _DOCUMENT), (b"opendocument", _DOCUMENT))


def foreign_format(sample: bytes, suffix: str) -> str | None:
    """Return what a file is that cannot be a source, and what to do; None if it may be one.

    sample: its first bytes.  suffix: as `bare_suffix` returns it.
    """
    for beginning, what, remedy, offset in FORMATS:
        if not sample.startswith(beginning, offset):
            continue
        if what == _ZIP and suffix in WORKBOOKS:
            return None
        if what in (_ZIP, _DOCUMENT[0]) and suffix in _BY_SUFFIX:
            what, remedy = _BY_SUFFIX[suffix]
        elif what == _ZIP:
            found = (known for name, known in _IN_ZIP if name in sample)
            what, remedy = next(found, (what, remedy))
        elif what == _DOCUMENT[0] and "Workbook".encode("utf-16-le") in sample:
            what, remedy = _WORKBOOK
        return f"{what}; {remedy}"
    return None
