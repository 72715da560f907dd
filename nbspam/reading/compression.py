"""Compressed files, which are decompressed, and formats that are refused.

The compressions of mail stores (Dovecot: gzip, bzip2, xz, lz4, zstd) are recognised by a file's
first bytes, whatever its name.
"""

import io
import re
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any

from nbspam.errors import needs_extra
from nbspam.patterns import lazy_pattern

if TYPE_CHECKING:
    from pathlib import Path

# The first bytes of an archive, and the modules that unpack it; the first one installed does.
_DOVECOT_LZ4 = b"Dovecot-LZ4\r\x2a\x9b\xc5"
_PACKED = {
    b"\x1f\x8b\x08": ("gzip",),
    b"BZh": ("bz2",),
    b"\xfd7zXZ\x00": ("lzma",),
    b"\x28\xb5\x2f\xfd": ("compression.zstd", "zstandard"),
    b"\x04\x22\x4d\x18": ("lz4.frame",),
    _DOVECOT_LZ4: ("lz4.block",),
}
MAGIC_BYTES = len(_DOVECOT_LZ4)  # that `unpacking` needs
_BLOCK_LIMIT = 1 << 20  # bytes; Dovecot's have 64 KiB
_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".lz4")


class DerivedStream(io.RawIOBase):
    """A stream whose bytes a function derives from other streams; closing it closes them."""

    def __init__(self, read: Callable[[int], bytes], *inner: IO[bytes]) -> None:
        """read: returns at most so many bytes, and none at the end."""
        self._read, self.inner = read, inner

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Put bytes into a buffer; return how many."""
        view = memoryview(buffer)
        data = self._read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close it and the streams that it is derived from."""
        for stream in self.inner:
            stream.close()
        super().close()


def open_bytes(path: "Path") -> io.BufferedReader:
    """Open a file for reading, decompressed.  Opening and reading raise OSError only."""
    stream = path.open("rb")
    try:
        return decompressed(stream)
    except OSError:
        stream.close()
        raise


def decompressed(stream: io.BufferedReader) -> io.BufferedReader:
    """Return a stream of another's content, decompressed if it is an archive."""
    if not isinstance(stream, io.BufferedReader):  # in memory
        return stream
    module = unpacking(stream.peek(MAGIC_BYTES))
    if module is None:
        return stream
    inner = stream if module.__name__ == "lz4.block" else module.open(stream)
    unpack = _dovecot_blocks(module, stream) if inner is stream else inner.read

    def read(n: int) -> bytes:
        """Return bytes; every failure is an OSError, as with a plain file."""
        try:
            return unpack(n)
        except Exception as error:  # EOFError, zlib.error, and others
            if isinstance(error, MemoryError) or getattr(error, "strerror", None):
                raise  # the machine or the disk fails, not the archive
            raise OSError(0, f"damaged archive: {error}") from error

    # Closing the inner stream leaves the packed one open.
    return io.BufferedReader(DerivedStream(read, inner, stream), 1 << 16)


def packed_stream(stream: IO[bytes]) -> IO[bytes]:
    """Return the stream that a decompressed one is derived from; any other stream unchanged."""
    raw = getattr(stream, "raw", None)
    return raw.inner[-1] if isinstance(raw, DerivedStream) else stream


def unpacking(magic: bytes) -> Any:
    """Return the module that unpacks a file with these first bytes; None if there is none.

    magic: MAGIC_BYTES bytes.
    """
    for name in next((names for first, names in _PACKED.items() if magic.startswith(first)), ()):
        with suppress(ImportError):  # Python has no zstd before 3.14, and no lz4
            return import_module(name)
    return None


def unpacked(data: bytes, most: int) -> bytes:
    """Return bytes, decompressed if they are a readable archive; at most `most` then."""
    if unpacking(data[:MAGIC_BYTES]) is not None:
        with suppress(OSError):  # damaged: `no_message` reports it
            return decompressed(io.BufferedReader(io.BytesIO(data))).read(most)
    return data


def _dovecot_blocks(block: Any, stream: IO[bytes]) -> Callable[[int], bytes]:
    """Return a reader of Dovecot's LZ4 blocks, each of which follows its length."""
    most, rest = int.from_bytes(stream.read(MAGIC_BYTES + 4)[MAGIC_BYTES:], "big"), b""
    if most > _BLOCK_LIMIT:
        raise OSError(0, f"damaged archive: blocks of {most:,} bytes")

    def read(n: int) -> bytes:
        nonlocal rest
        if not rest and (length := stream.read(4)):
            packed = stream.read(min(int.from_bytes(length, "big"), _BLOCK_LIMIT))
            rest = block.decompress(packed, uncompressed_size=most)
        data, rest = rest[:n], rest[n:]
        return data

    return read


def bare_suffix(path: "Path") -> str:
    """Return the suffix that shows the format, in lower case: ".csv" of `mail.CSV.gz`."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _SUFFIXES:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


# Formats that are neither mail, text nor a table.  A named source is refused for its first bytes
# alone.  A message, on standard input or in a folder, is refused only if it is binary, too: the
# sender of a text must not choose that it is not classified.

WORKBOOKS = (".xlsx", ".xlsm")  # which are read
_ARCHIVE = "unpack it, and give the folder or the file in it"
_FRAME = "save its table as CSV or Parquet, and use that"
_ZIP = f"is a zip archive; {_ARCHIVE}"
_WORKBOOK = "is an Excel workbook; save it as CSV, and use that"
_DOCUMENT = "is an office document; save it as text or CSV, and use that"
_DOVEADM = "read it over IMAP, or export it with doveadm fetch"
_PICTURES = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a"
# The place of the bytes that show a format, the bytes, and the problem with its remedy.
FORMATS = (
    (0, b"PK\x03\x04", _ZIP),
    (0, b"PK\x05\x06", "is an empty zip archive; give a file with messages"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _DOCUMENT),
    (0, b"!BDN", "is an Outlook mailbox; convert it to mbox with readpst, and use that"),
    (0, b"\xcf\xad\x12\xfe", "is an Outlook Express folder; convert it to mbox with undbx"),
    (0, b"\x78\x9f\x3e\x22", "is an Outlook attachment (TNEF); unpack it with tnef, and use that"),
    (0, b"\x01\x01\x01\x01\n", "is an MMDF mailbox; save it as mbox with mutt, and use that"),
    (0, b"BABYL OPTIONS:", "is an Rmail file; convert it to mbox with unrmail, and use that"),
    (0, b"CRYPTED\x03\x07", f"is encrypted by Dovecot (mail_crypt); {_DOVEADM}"),
    (0, b"Salted__", "is encrypted; decrypt it, and use that"),
    (0, b"SQLite format 3\0", "is an SQLite database; export the table as CSV, and use that"),
    *((0, b"\x80%c" % protocol, f"is a Python pickle; {_FRAME}") for protocol in (2, 3, 4, 5)),
    (0, b"ARROW1\0\0", f"is an Arrow file; {_FRAME}"),
    (0, b"FEA1", f"is a Feather file; {_FRAME}"),
    (0, b"\x89HDF\r\n\x1a\n", f"is an HDF5 file; {_FRAME}"),
    (0, b"\x93NUMPY", f"is a NumPy array; {_FRAME}"),
    (0, b"Rar!\x1a\x07", f"is a RAR archive; {_ARCHIVE}"),
    (0, b"7z\xbc\xaf\x27\x1c", f"is a 7z archive; {_ARCHIVE}"),
    (257, b"ustar", f"is a tar archive; {_ARCHIVE}"),
    (0, b"\x1f\x9d", "is compressed with compress; decompress it, and use that"),
    (0, b"LZIP", "is compressed with lzip; decompress it, and use that"),
    (0, b"%PDF-", "is a PDF; save its text, and use that"),
    *((0, first, "is a picture; give its text") for first in _PICTURES),
)
# The problem of a zip archive or an Office file, by its suffix and by a name in it.
_BY_SUFFIX = {
    ".xls": _WORKBOOK,
    ".docx": _DOCUMENT,
    ".msg": "is an Outlook message; save it as .eml, or convert it with msgconvert, and use that",
    ".olm": "is an archive of Outlook for Mac; convert it to mbox, and use that",
}
_IN_ZIP = ((b"xl/", _WORKBOOK), (b"word/", _DOCUMENT), (b"opendocument", _DOCUMENT))


def foreign_format(sample: bytes, suffix: str) -> str | None:
    """Return why a file cannot be a source, and what to do; None if it may be one.

    sample: its first bytes.  suffix: as `bare_suffix` returns it.
    """
    modules = next((names for first, names in _PACKED.items() if sample.startswith(first)), None)
    if modules and unpacking(sample[:MAGIC_BYTES]) is not None:
        return "is a damaged archive, or one in another; unpack it, and use that"
    if modules:
        package = modules[-1].partition(".")[0]
        return needs_extra("is compressed, and reading it", package, "compressed")
    problem = next((text for at, first, text in FORMATS if sample.startswith(first, at)), None)
    if problem == _ZIP and suffix in WORKBOOKS:
        return None
    if problem in (_ZIP, _DOCUMENT) and suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if problem == _ZIP:
        return next((text for name, text in _IN_ZIP if name in sample), problem)
    is_workbook = problem == _DOCUMENT and "Workbook".encode("utf-16-le") in sample
    return _WORKBOOK if is_workbook else problem


# Files that mail programs keep beside messages; those that begin with a dot are never read.
_DBOX = lazy_pattern(rb"2 M[0-9a-f]+ C[0-9a-f]+\n\x01\x02")
_OF_STORES = lazy_pattern(
    r"dovecot.*|maildir(?:size|folder)|subscriptions|courier(?:imap|pop3).*|cyrus\..*|cmds|context"
    r"|.*\.(?:msf|cmeta|ev-summary|ibex\..*|toc|snm|emlxpart|plist|lock)|msgfilterrules\.dat"
    r"|foldertree\.json|table_of_contents|desktop\.ini|.*:zone\.identifier",
    re.IGNORECASE,
)
# Characters that a text has only by mistake; one in ten of random bytes.
_CONTROLS = lazy_pattern("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_LOOKED_AT = 4096  # characters
_CONTROLS_OF_TEXT = 3
_SHARE, _SHARE_OF_KNOWN = 1 / 20, 1 / 50


def no_message(data: bytes, text: str, name: str) -> str:
    """Return why bytes without a header are no message, and what to do; "" for a text.

    text: the bytes decoded.  name: of their file, "" if they have none.
    """
    name = name.rpartition("/")[2]
    if _DBOX.match(data):
        return f"is mail in Dovecot's dbox; {_DOVEADM}"
    if name and is_of_store(name):
        return "is a mail program's own file, not a message; leave it out"
    text = text[:_LOOKED_AT]
    if (controls := len(_CONTROLS.findall(text))) > _CONTROLS_OF_TEXT:
        known = foreign_format(data, name[name.rfind(".") :].lower())
        if controls > len(text) * (_SHARE_OF_KNOWN if known else _SHARE):
            return known or "is not text; convert it to text or .eml, or leave it out"
    return ""


def is_of_store(name: str) -> bool:
    """Return whether a file is a mail program's own, by its name."""
    return _OF_STORES.fullmatch(name) is not None
