"""An index file, as the TREC spam corpora have one: each line is a label and a file's path.

TREC's lie in a folder beside that of the mails (`spam ../data/inmail.1`).  So an index may name
what is in the folder above its own, at any depth.  A file elsewhere must not become mail unasked:
whoever wrote the index may have been somebody else, who wants to know what is in it.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from nbspam.errors import Remedy, SourceError, one_line
from nbspam.labels import normal_label
from nbspam.reading.compression import open_bytes
from nbspam.reading.folder import is_within
from nbspam.reading.lines import read_lines
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.source_kind import Labels, ReadingOptions, ReadingRequest, Source, SourceKind
from nbspam.urls import is_url, real_name

_PATHS_TRIED = 20  # paths of which one must be a file
_LINE = re.compile(r"(\S+)\s+(\S.*)")


def _lines(source: Source) -> list[re.Match[str] | None]:
    return [_LINE.fullmatch(line.strip()) for line in source.lines]


def _is_named_index(source: Source, _: ReadingOptions) -> bool:
    """Return whether a file is called an index, and a line is a label and a path.

    Any other is a bad line.
    """
    return "index" in (source.path.name, source.suffix[1:]) and any(_lines(source))


def _is_index(source: Source, _: ReadingOptions) -> bool:
    """Return whether each line is a label and a path, and one of the first paths is a file."""
    lines = _lines(source)
    try:
        return all(lines) and any(
            (source.path.parent / line[2]).is_file()
            for line in lines[:_PATHS_TRIED]
            if line and (not is_url(source.path) or _is_beneath(line[2]))
        )
    except (OSError, ValueError):
        return False


def _read_index(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    skips = request.skips
    allowed = real_name(source.path.parent.resolve().parent)
    for number, text in read_lines(str(source.path), partial(open_bytes, source.path), None, skips):
        where = f"{source.path}:{number}"
        line = _LINE.fullmatch(text.strip())
        if not line:
            skips(where, "the line is not a label and a file's path")
            continue
        label = normal_label(line[1])
        if not label:
            skips(where, "the label has no printable character")
            continue
        path = source.path.parent / line[2]
        if is_url(path) and not _is_beneath(line[2]):
            raise SourceError(
                f"{where}: {one_line(line[2])[:200]} leads out of the folder of the index, and at a"
                " URL it names only what lies beneath it; copy all of it to a folder"
            )
        if not (is_url(path) or request.options.outside or is_within(path, allowed)):
            raise SourceError(
                f"{where}: {one_line(line[2])[:200]} is outside {allowed}, the folder above the"
                " index's own",
                Remedy.ALLOW_OUTSIDE,
            )
        if _exists(path):
            yield RawMessage(str(path), label, path)
        else:
            skips(where, f"there is no file {str(path)[:200]}")


def _is_beneath(name: str) -> bool:
    """Return whether a name, added to a folder's URL, leads to what is in the folder."""
    return ".." not in unquote(name).replace("\\", "/").split("/")


def _exists(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # the name is too long for a file
        return False


NAMED_INDEX = SourceKind(Labels.ALLOWED, _is_named_index, _read_index)
# Only where labels are needed: a message must not name files that are read in its place.
NAMELESS_INDEX = SourceKind(Labels.ON_REQUEST, _is_index, _read_index)
