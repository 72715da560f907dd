"""Names of files in a stream, as `find -print0` writes them and `bogofilter -b` reads them."""

import os
from collections.abc import Iterator

from nbspam.errors import Remedy, SourceError
from nbspam.reading.skips import Skips
from nbspam.reading.source_kind import STDIN, Source
from nbspam.reading.stream import opened_stream

_CHUNK = 1 << 16
_NAME_LIMIT = 1 << 16  # bytes; a system's own limit is 4,096


def listed_files(source: Source, separator: bytes, skips: Skips) -> Iterator[str]:
    """Yield the names of the files in a list; what is no file or pipe is skipped and named.

    separator: what ends each name.  Raises SourceError for a list with the other separator.
    """
    for number, raw in enumerate(_names(source, separator), 1):
        name = os.fsdecode(raw)
        if name == STDIN:
            name = f"./{name}"
        try:
            is_folder = Source(name).is_folder
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            skips(f"{source.name}:{number}", f"cannot read {name[:200]!r} ({reason})")
            continue
        if is_folder:
            skips(f"{source.name}:{number}", f"{name[:200]!r} is a folder, and not a file")
        else:
            yield name


def _names(source: Source, separator: bytes) -> Iterator[bytes]:
    rest, is_first = b"", True
    with opened_stream(source) as stream:
        while chunk := stream.read1(_CHUNK):
            *names, rest = (rest + chunk).split(separator)
            if names and is_first:
                _check_separator(source, separator, names[0], is_last=False)
                is_first = False
            yield from filter(None, names)
            if len(rest) > _NAME_LIMIT:  # it is no list; said once, as a name that is too long
                break
    if rest:
        if is_first:
            _check_separator(source, separator, rest, is_last=True)
        yield rest


def _check_separator(source: Source, separator: bytes, first: bytes, is_last: bool) -> None:
    """Raise SourceError if the names of a list end with another separator than the one given.

    first: the first name.  is_last: whether it is all of the list.  A name has no NUL; it may have
    a line end, but a list with no NUL at all is one of lines, unless there is such a file.
    """
    if separator == b"\n" and b"\0" in first:
        ends, form = "NUL", "files0"
    elif separator == b"\0" and is_last and b"\n" in first and not _exists(first):
        ends, form = "a line end", "files"
    else:
        return
    raise SourceError(
        f"{source.name}: each name of this list ends with {ends}", Remedy.READ_AS, format=form
    )


def _exists(name: bytes) -> bool:
    try:
        return os.path.exists(name)  # noqa: PTH110 (of bytes)
    except ValueError:
        return False
