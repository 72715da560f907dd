"""Compressed files, which are decompressed, and formats that are refused.

The compressions of mail stores (Dovecot: gzip, bzip2, xz, lz4, zstd) are recognised by a file's
first bytes, whatever its name.
"""

import io
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any

from nbspam.errors import needs_extra
from nbspam.patterns import lazy_pattern

if TYPE_CHECKING:
    from pathlib import Path

# The first bytes of an archive, and modules that unpack it; the first installed module is used.
_DOVECOT_LZ4 = b"Dovecot-LZ4\r\x2a\x9b\xc5"
_PACKED = {
    b"\x1f\x8b\x08": ("gzip",),
    b"BZh": ("bz2",),
    b"\xfd7zXZ\x00": ("lzma",),
    b"\x28\xb5\x2f\xfd": ("compression.zstd", "zstandard"),
    b"\x04\x22\x4d\x18": ("lz4.frame",),
    _DOVECOT_LZ4: ("lz4.block",),
}
MAGIC_BYTES = len(_DOVECOT_LZ4)  # bytes that `unpack_module` needs
# An archive that unpacks to more than both limits does not contain text written by a person.
_UNPACKED_LIMIT, _RATIO_LIMIT = 64 << 20, 100  # bytes; times the packed size
_BLOCK_LIMIT = 1 << 20  # bytes; Dovecot's have 64 KiB
_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".lz4")


class DerivedStream(io.RawIOBase):
    """A stream whose bytes a function derives from other streams; closing it closes them."""

    def __init__(self, read: Callable[[int], bytes], *inner: IO[bytes]) -> None:
        """read: returns at most n bytes, and b"" at the end; inner: closed with this stream."""
        self._read, self.inner = read, inner

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; return the number of bytes."""
        view = memoryview(buffer)
        data = self._read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close this stream and the inner ones."""
        for stream in self.inner:
            stream.close()
        super().close()


def open_bytes(path: "Path") -> io.BufferedReader:
    """Open a file for reading, decompressed.  Opening and reading raise OSError only."""
    stream = path.open("rb")
    try:
        return decompress(stream)
    except OSError:
        stream.close()
        raise


def decompress(stream: io.BufferedReader) -> io.BufferedReader:
    """Wrap an archive's stream in a stream of its content; return any other stream unchanged."""
    if not isinstance(stream, io.BufferedReader):  # in memory
        return stream
    module = unpack_module(stream.peek(MAGIC_BYTES))
    if module is None:
        return stream
    inner = stream if module.__name__ == "lz4.block" else module.open(stream)
    unpack = _dovecot_blocks(module, stream) if inner is stream else inner.read

    total, packed = 0, os.fstat(stream.fileno()).st_size if _is_file(stream) else 0

    def read(n: int) -> bytes:
        """Read as from a plain file: every failure is an OSError."""
        nonlocal total
        if packed and total > max(_UNPACKED_LIMIT, _RATIO_LIMIT * packed):
            raise OSError(0, f"it unpacks to more than {_RATIO_LIMIT} times its size")
        try:
            data = unpack(n)
            total += len(data)
            return data
        except Exception as error:  # EOFError, zlib.error, and others
            if isinstance(error, MemoryError) or getattr(error, "strerror", None):
                raise  # the machine or the disk failed, and the archive may be whole
            raise OSError(0, f"damaged archive: {error}") from error

    # Closing the inner stream would leave the packed stream open.
    return io.BufferedReader(DerivedStream(read, inner, stream), 1 << 16)


def _is_file(stream: io.BufferedReader) -> bool:
    """Return whether a stream is a regular file, whose size is known."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # in memory
        return False


def packed_stream(stream: IO[bytes]) -> IO[bytes]:
    """Return the stream that a decompressed one is derived from; any other stream unchanged."""
    raw = getattr(stream, "raw", None)
    return raw.inner[-1] if isinstance(raw, DerivedStream) else stream


def unpack_module(magic: bytes) -> Any:
    """Import the module that unpacks a file with these first bytes; None if no module can.

    magic: MAGIC_BYTES bytes.
    """
    for name in next((names for first, names in _PACKED.items() if magic.startswith(first)), ()):
        with suppress(ImportError):  # Python has no zstd before 3.14, and no lz4
            return import_module(name)
    return None


def unpack(data: bytes, max_bytes: int) -> bytes:
    """Decompress an archive to at most max_bytes bytes; return other bytes unchanged."""
    if unpack_module(data[:MAGIC_BYTES]) is not None:
        with suppress(OSError):  # damaged: `why_not_a_message` reports it
            return decompress(io.BufferedReader(io.BytesIO(data))).read(max_bytes)
    return data


def _dovecot_blocks(block: Any, stream: IO[bytes]) -> Callable[[int], bytes]:
    """Make a function that reads Dovecot's LZ4 blocks, each with its length before it."""
    block_size, rest = int.from_bytes(stream.read(MAGIC_BYTES + 4)[MAGIC_BYTES:], "big"), b""
    if block_size > _BLOCK_LIMIT:
        raise OSError(0, f"damaged archive: blocks of {block_size:,} bytes")

    def read(n: int) -> bytes:
        nonlocal rest
        if not rest and (length := stream.read(4)):
            packed = stream.read(min(int.from_bytes(length, "big"), _BLOCK_LIMIT))
            rest = block.decompress(packed, uncompressed_size=block_size)
        data, rest = rest[:n], rest[n:]
        return data

    return read


def bare_suffix(path: "Path") -> str:
    """Return the suffix that shows the format, in lower case: ".csv" of `mail.CSV.gz`."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _SUFFIXES:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


# Formats that are neither mail, text nor a table.  The first bytes of a source that the user names
# are enough to refuse it.  A message on standard input or in a folder is refused only if it is also
# binary: otherwise a sender could avoid classification by a text's first bytes.

WORKBOOKS = (".xlsx", ".xlsm")  # these are read
TABLE_SUFFIXES = (".tsv", ".tab", ".csv", ".json", ".jsonl", ".ndjson", ".parquet", *WORKBOOKS)
_PAGE = lazy_pattern(
    rb"(?:\xef\xbb\xbf)?(?:\s|<\?xml[^>]*>|<!--.{,1000}?-->)*+<(?:!doctype )?html", re.I | re.S
)
_TELEGRAM = lazy_pattern(
    rb"\s*<!DOCTYPE html>\s*<html>\s*<head>\s*<meta[^>]*>\s*<title>Exported Data<"
)
_ARCHIVE = "unpack it, and give the folder or the file in it"
_FRAME = "save its table as CSV or Parquet, and use that"
_ZIP = f"is a zip archive; {_ARCHIVE}"
_WORKBOOK = "is an Excel workbook; save it as CSV, and use that"
_DOCUMENT = "is an office document; save it as text or CSV, and use that"
_DOVEADM = "read it over IMAP, or export it with doveadm fetch"
_PICTURES = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a"
# The offset of a format's magic bytes, these bytes, and the problem with its remedy.
FORMATS = (
    (0, b"PK\x03\x04", _ZIP),
    (0, b"PK\x05\x06", "is an empty zip archive; give a file with messages"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _DOCUMENT),
    (0, b"!BDN", "is an Outlook mailbox; convert it to mbox with readpst, and use that"),
    (0, b"\xcf\xad\x12\xfe", "is an Outlook Express folder; convert it to mbox with undbx"),
    (0, b"\x78\x9f\x3e\x22", "is an Outlook attachment (TNEF); unpack it with tnef, and use that"),
    (0, b"\x01\x01\x01\x01\n", "is an MMDF mailbox; save it as mbox with mutt, and use that"),
    (0, b"*mbx*\r\n", "is a mailbox in UW-IMAP's mbx format; save it as mbox with mailutil copy"),
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
    (
        0,
        b"version https://git-lfs.github.com/",
        "is a Git LFS pointer without its file; fetch the file with git lfs pull",
    ),
    (0, b"%PDF-", "is a PDF; save its text, and use that"),
    *((0, first, "is a picture; give its text") for first in _PICTURES),
)
# The problem with a zip archive or an Office file: by its suffix, and by the name of a file in it.
_BY_SUFFIX = {
    ".xls": _WORKBOOK,
    ".docx": _DOCUMENT,
    ".msg": "is an Outlook message; save it as .eml, or convert it with msgconvert, and use that",
    ".olm": "is an archive of Outlook for Mac; convert it to mbox, and use that",
}
_IN_ZIP = ((b"xl/", _WORKBOOK), (b"word/", _DOCUMENT), (b"opendocument", _DOCUMENT))


# Token counts that other filters export: bogoutil -d, sa-learn --backup and --dump, and SpamBayes'
# sb_dbexpimp -e.  A short dump contains only counts.
_COUNT = rb"\S+ \d+ \d+ \d{8}\r?\n"
_COUNTS = lazy_pattern(
    rb"(?:%b){3}|(?:%b){2}\Z|v\t\d+\tdb_version|[01]\.\d{3}(?: +\d+){3} +\S[^\n]*\n"
    rb"|\"?\d+\"?,\"?\d+\"?\r?\n(?:[^\n]*,\"?\d+\"?,\"?\d+\"?\r?\n){2}" % (_COUNT, _COUNT)
)


def foreign_format(sample: bytes, suffix: str) -> str | None:
    """Describe why a file cannot be a source, with the remedy; None if it may be a source.

    sample: the file's first bytes.  suffix: as `bare_suffix` returns it.
    """
    modules = next((names for first, names in _PACKED.items() if sample.startswith(first)), None)
    if modules and unpack_module(sample[:MAGIC_BYTES]) is not None:
        return "is a damaged archive, or an archive in an archive; unpack it, and use that"
    if modules:
        package = modules[-1].partition(".")[0]
        return needs_extra("is compressed, and reading it", package, "compressed")
    if _COUNTS.match(sample):
        return "is the word counts of another filter, not mail; see docs/switching.md for the way"
    problem = next((text for at, first, text in FORMATS if sample.startswith(first, at)), None)
    if suffix in TABLE_SUFFIXES and _PAGE.match(sample):
        return "is a page of HTML, not the table on it; download the file itself"
    if suffix == ".xls" and sample.lstrip().startswith(b"<"):
        return "is a table in HTML or XML, in spite of its name; open it, and save it as CSV"
    if _TELEGRAM.match(sample):
        return "is a page that Telegram exported; export the chat as JSON, and use that"
    if problem == _ZIP and suffix in WORKBOOKS:
        return None
    if problem in (_ZIP, _DOCUMENT) and suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if problem == _ZIP:
        return next((text for name, text in _IN_ZIP if name in sample), problem)
    is_workbook = problem == _DOCUMENT and "Workbook".encode("utf-16-le") in sample
    return _WORKBOOK if is_workbook else problem


# Files that mail programs store next to messages.  Dot files are never read anyway.
_DBOX = lazy_pattern(rb"2 M[0-9a-f]+ C[0-9a-f]+\n\x01\x02")
_MAIL_STORE_FILES = lazy_pattern(
    r"dovecot.*|maildir(?:size|folder)|subscriptions|courier(?:imap|pop3).*|cyrus\..*|cmds|context"
    r"|.*\.(?:msf|cmeta|ev-summary|ibex\..*|toc|snm|emlxpart|plist|lock)|msgfilterrules\.dat"
    r"|foldertree\.json|table_of_contents|desktop\.ini|.*:zone\.identifier",
    re.IGNORECASE,
)
# Characters that occur in a text only by mistake; 10 % of random bytes are such characters.
_CONTROLS = lazy_pattern("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_LOOKED_AT = 4096  # characters
_CONTROLS_OF_TEXT = 3
_SHARE, _SHARE_OF_KNOWN = 1 / 20, 1 / 50


def why_not_a_message(data: bytes, text: str, name: str) -> str:
    """Describe why bytes without a header are not a message, with the remedy; "" for a text.

    text: the decoded bytes.  name: the file's name, "" for a stream.
    """
    name = name.rpartition("/")[2]
    if _DBOX.match(data):
        return f"is mail in Dovecot's dbox; {_DOVEADM}"
    if name and is_mail_store_file(name):
        return "is a mail program's own file, not a message; leave it out"
    text = text[:_LOOKED_AT]
    if (controls := len(_CONTROLS.findall(text))) > _CONTROLS_OF_TEXT:
        known = foreign_format(data, name[name.rfind(".") :].lower())
        if controls > len(text) * (_SHARE_OF_KNOWN if known else _SHARE):
            return known or "is not text; convert it to text or .eml, or leave it out"
    return ""


def is_mail_store_file(name: str) -> bool:
    """Return whether a file's name is that of a mail program's own data."""
    return _MAIL_STORE_FILES.fullmatch(name) is not None
