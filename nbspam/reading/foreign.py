"""Files that are certainly neither mail, text nor a table, by their first bytes.

Only a file that is named as a source is refused for them.  A message on standard input is judged
whatever it begins with, and so is each file in a folder of messages: who sends a mail must not
choose that it is not judged.
"""

from typing import NamedTuple

from nbspam.errors import SourceError
from nbspam.reading.source_kind import Source


class _Format(NamedTuple):
    """A format that is not read."""

    beginning: bytes
    what: str
    remedy: str
    offset: int = 0  # where the bytes are


_WORKBOOK = "is an Excel workbook", "save it as CSV, and give that"
_DOCUMENT = "is a document of an office program", "save it as text or CSV, and give that"
_ARCHIVE = "unpack it, and give the folder or the file in it"
_PICTURE = "is a picture", "give its text"
_FRAME = "save its table as CSV or Parquet, and give that"
_FORMATS = (
    _Format(b"PK\x03\x04", "is a zip archive", _ARCHIVE),
    _Format(b"PK\x05\x06", "is an empty zip archive", "give a file with messages"),
    _Format(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", *_DOCUMENT),
    _Format(b"!BDN", "is an Outlook mailbox", "convert it to mbox with readpst, and give that"),
    _Format(
        b"SQLite format 3\0", "is an SQLite database", "export the table as CSV, and give that"
    ),
    *(
        _Format(b"\x80" + bytes([protocol]), "is a Python pickle", _FRAME)
        for protocol in (2, 3, 4, 5)
    ),
    _Format(b"ARROW1\0\0", "is an Arrow file", _FRAME),
    _Format(b"FEA1", "is a Feather file", _FRAME),
    _Format(b"\x89HDF\r\n\x1a\n", "is an HDF5 file", _FRAME),
    _Format(b"\x93NUMPY", "is a NumPy array", _FRAME),
    _Format(b"Rar!\x1a\x07", "is a RAR archive", _ARCHIVE),
    _Format(b"7z\xbc\xaf\x27\x1c", "is a 7z archive", _ARCHIVE),
    _Format(b"ustar", "is a tar archive", _ARCHIVE, 257),
    _Format(b"\x28\xb5\x2f\xfd", "is compressed with zstd", "decompress it, and give that"),
    _Format(b"%PDF-", "is a PDF", "save its text, and give that"),
    _Format(b"\x89PNG\r\n\x1a\n", *_PICTURE),
    _Format(b"\xff\xd8\xff", *_PICTURE),
    _Format(b"GIF87a", *_PICTURE),
    _Format(b"GIF89a", *_PICTURE),
    *(
        _Format(
            magic,
            "is a Berkeley DB",
            "write bogofilter's words with bogoutil -d, and read them with nbspam model import",
            12,
        )
        for magic in (b"\x61\x15\x06\0", b"\x62\x31\x05\0", b"\0\x06\x15\x61", b"\0\x05\x31\x62")
    ),
)
# What a zip archive or an Office file is, by a name in it and by its suffix.
_IN_ZIP = ((b"xl/", *_WORKBOOK), (b"word/", *_DOCUMENT), (b"opendocument", *_DOCUMENT))
_BY_SUFFIX = {
    ".xlsx": _WORKBOOK,
    ".xlsm": _WORKBOOK,
    ".xls": _WORKBOOK,
    ".docx": _DOCUMENT,
    ".msg": ("is a message as Outlook saves it", "save it as .eml, and give that"),
}


def refusal(source: Source) -> SourceError | None:
    """Return why a file cannot be a source; None if it may be one."""
    sample = source.sample
    for beginning, what, remedy, offset in _FORMATS:
        if sample.startswith(beginning, offset):
            if what in ("is a zip archive", _DOCUMENT[0]):
                what, remedy = _packed(source, what, remedy)
            return SourceError(f"{source.path}: {what}; {remedy}")
    return None


def _packed(source: Source, what: str, remedy: str) -> tuple[str, str]:
    """Return what an archive or an Office file is, and what to do."""
    if source.suffix in _BY_SUFFIX:
        return _BY_SUFFIX[source.suffix]
    if what != _DOCUMENT[0]:
        for name, named, its_remedy in _IN_ZIP:
            if name in source.sample:
                return named, its_remedy
    elif "Workbook".encode("utf-16-le") in source.sample:
        return _WORKBOOK
    return what, remedy
