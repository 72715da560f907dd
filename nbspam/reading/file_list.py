"""Names of files in a stream, as `find -print0` writes them and `bogofilter -b` reads them."""

import os
from collections.abc import Iterator

from nbspam.reading.skips import Skips
from nbspam.reading.source_kind import STDIN, Source
from nbspam.reading.stream import opened_stream

_CHUNK = 1 << 16
_NAME_LIMIT = 1 << 16  # bytes; a system's own limit is 4,096


def listed_files(source: Source, separator: bytes, skips: Skips) -> Iterator[str]:
    """Yield the names of the files in a list; what is no file or pipe is skipped and named.

    separator: what ends each name.
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
    rest = b""
    with opened_stream(source) as stream:
        while chunk := stream.read1(_CHUNK):
            *names, rest = (rest + chunk).split(separator)
            yield from filter(None, names)
            if len(rest) > _NAME_LIMIT:  # it is no list; said once, as a name that is too long
                yield rest
                return
    if rest:
        yield rest
