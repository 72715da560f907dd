"""Files by their first bytes: archives, which are decompressed, and what is not read at all."""

import io
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

# The first bytes of an archive, and the module that unpacks it.
_PACKED = {b"\x1f\x8b\x08": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "lzma"}


class Taken(io.RawIOBase):
    """A stream of bytes that a function takes from another; it closes both at its end."""

    def __init__(self, take: Callable[[int], bytes], *inner: IO[bytes]) -> None:
        """take: returns so many bytes at most, and none at the end."""
        self._take, self.inner = take, inner

    def readable(self) -> bool:
        """Return whether it can be read, as it can."""
        return True

    def readinto(self, buffer: Any) -> int:
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
    module = unpacking(stream.peek(6))
    if module is None:
        return stream
    from importlib import import_module

    inner: IO[bytes] = import_module(module).open(stream)

    def take(n: int) -> bytes:
        """Return bytes; its failures are all OSErrors, like those of a plain file."""
        try:
            return inner.read(n)
        except Exception as error:  # EOFError, zlib.error, and what the others have
            if isinstance(error, MemoryError) or getattr(error, "strerror", None):
                raise  # the machine or the disk fails, not the archive
            raise OSError(0, f"damaged archive: {error}") from error

    # Closing the inner stream leaves the packed one open.
    return io.BufferedReader(Taken(take, inner, stream), 1 << 16)


def packed_stream(stream: IO[bytes]) -> IO[bytes]:
    """Return the stream that a decompressed one is made of; any other itself."""
    raw = getattr(stream, "raw", None)
    return raw.inner[-1] if isinstance(raw, Taken) else stream


def unpacking(magic: bytes) -> str | None:
    """Return the module that unpacks a file which begins so; None of any other; magic: 6 bytes."""
    return next((module for first, module in _PACKED.items() if magic.startswith(first)), None)


def bare_suffix(path: "Path") -> str:
    """Return the suffix that shows the format, in lower case: ".csv" of `mail.CSV.gz`."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".bz2", ".xz"):
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


# Files that are certainly neither mail, text nor a table.  Only a file that is named as a source is
# refused for it.  A message on standard input is judged whatever it begins with, and so is each
# file in a folder of messages: who sends a mail must not choose that it is not judged.


WORKBOOKS = (".xlsx", ".xlsm")  # which are read
_ARCHIVE = "unpack it, and give the folder or the file in it"
_FRAME = "save its table as CSV or Parquet, and use that"
_ZIP = f"is a zip archive; {_ARCHIVE}"
_WORKBOOK = "is an Excel workbook; save it as CSV, and use that"
_DOCUMENT = "is an office document; save it as text or CSV, and use that"
_BERKELEY_DB = (
    "is a Berkeley DB; write bogofilter's words with bogoutil -d, and read them with nbspam model"
    " import"
)
_BERKELEY_MAGIC = b"\x61\x15\x06\0", b"\x62\x31\x05\0"  # in either order
_PICTURES = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a"
# Where they have which bytes, and what is said.
FORMATS = (
    (0, b"PK\x03\x04", _ZIP),
    (0, b"PK\x05\x06", "is an empty zip archive; give a file with messages"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _DOCUMENT),
    (0, b"!BDN", "is an Outlook mailbox; convert it to mbox with readpst, and use that"),
    (0, b"SQLite format 3\0", "is an SQLite database; export the table as CSV, and use that"),
    *((0, b"\x80%c" % protocol, f"is a Python pickle; {_FRAME}") for protocol in (2, 3, 4, 5)),
    (0, b"ARROW1\0\0", f"is an Arrow file; {_FRAME}"),
    (0, b"FEA1", f"is a Feather file; {_FRAME}"),
    (0, b"\x89HDF\r\n\x1a\n", f"is an HDF5 file; {_FRAME}"),
    (0, b"\x93NUMPY", f"is a NumPy array; {_FRAME}"),
    (0, b"Rar!\x1a\x07", f"is a RAR archive; {_ARCHIVE}"),
    (0, b"7z\xbc\xaf\x27\x1c", f"is a 7z archive; {_ARCHIVE}"),
    (257, b"ustar", f"is a tar archive; {_ARCHIVE}"),
    (0, b"\x28\xb5\x2f\xfd", "is compressed with zstd; decompress it, and use that"),
    (0, b"%PDF-", "is a PDF; save its text, and use that"),
    *((0, first, "is a picture; give its text") for first in _PICTURES),
    *((12, magic, _BERKELEY_DB) for one in _BERKELEY_MAGIC for magic in (one, one[::-1])),
)
# What a zip archive or an Office file is, by its suffix and by a name in it.
_BY_SUFFIX = {
    ".xls": _WORKBOOK,
    ".docx": _DOCUMENT,
    ".msg": "is an Outlook message; save it as .eml, and use that",
}
_IN_ZIP = ((b"xl/", _WORKBOOK), (b"word/", _DOCUMENT), (b"opendocument", _DOCUMENT))


def foreign_format(sample: bytes, suffix: str) -> str | None:
    """Return what a file is that cannot be a source, and what to do; None if it may be one.

    sample: its first bytes.  suffix: as `bare_suffix` returns it.
    """
    said = next((s for offset, first, s in FORMATS if sample.startswith(first, offset)), None)
    if said == _ZIP and suffix in WORKBOOKS:
        return None
    if said in (_ZIP, _DOCUMENT) and suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if said == _ZIP:
        return next((known for name, known in _IN_ZIP if name in sample), said)
    is_workbook = said == _DOCUMENT and "Workbook".encode("utf-16-le") in sample
    return _WORKBOOK if is_workbook else said
