"""A folder of messages, one per file, or a Maildir."""

import os
from collections.abc import Iterator
from pathlib import Path

from nbspam.errors import SourceError
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.source_kind import Labels, ReadingOptions, ReadingRequest, Source, SourceKind

_DEPTH_LIMIT = 100  # folders inside one another


def _is_folder(source: Source, _: ReadingOptions) -> bool:
    return source.is_folder


def _read_folder(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    return folder_messages(source.path, request)


def folder_messages(path: Path, request: ReadingRequest) -> Iterator[RawMessage]:
    """Yield the files of a folder and its sub-folders, sorted by name, without dot files."""
    return _inside(path, request, visited=set(), depth=0)


def is_maildir(path: Path) -> bool:
    """Return whether a folder is a Maildir."""
    return (path / "cur").is_dir() and (path / "new").is_dir()


def is_given_itself(path: Path, request: ReadingRequest) -> bool:
    """Return whether what is in a folder is also given as a source of its own; says so then."""
    label = request.options.given.get(os.path.realpath(path))
    if label is None:
        return False
    request.options.tell(
        SourceError(
            f"{path}: is given as a source of its own and is read only as {label or 'that'}"
        )
    )
    return True


def _inside(
    path: Path, request: ReadingRequest, visited: set[Path], depth: int
) -> Iterator[RawMessage]:
    """Yield the messages of a folder.

    visited: the folders read so far, with links resolved: a link may lead back to one of them.
    """
    real = path.resolve()
    if real in visited:
        request.skips(str(path), "the link leads to a folder that was read already")
        return
    if depth > _DEPTH_LIMIT:
        request.skips(str(path), f"the folder is more than {_DEPTH_LIMIT} folders deep")
        return
    visited.add(real)
    # To resolve the path of each file would take as long as to list them.
    names = {given.rpartition(os.sep)[2] for given in request.options.given}
    for entry in _entries(path, request.options.seen):
        is_folder = entry.is_dir()
        if (entry.name in names or (is_folder and names)) and is_given_itself(entry, request):
            continue
        if is_folder:
            try:
                yield from _inside(entry, request, visited, depth + 1)
            except PermissionError as error:
                request.skips(str(entry), f"the folder cannot be read ({error.strerror})")
        elif entry.is_file():
            yield RawMessage(str(entry), request.label, entry)
        elif entry.is_symlink():
            request.skips(str(entry), "the link leads nowhere")


def _entries(path: Path, only_read: bool) -> list[Path]:
    """Return what is in a folder, sorted by name, without dot files.

    A Maildir consists of its cur and new: tmp holds mail that is still being written.
    only_read: leave out the mail of a Maildir that its owner has not read, or has deleted.
    """
    if not is_maildir(path):
        entries = sorted(path.iterdir())
    elif only_read:
        entries = [entry for entry in sorted((path / "cur").iterdir()) if _is_read(entry.name)]
    else:
        entries = [*sorted((path / "cur").iterdir()), *sorted((path / "new").iterdir())]
    return [entry for entry in entries if not entry.name.startswith(".")]


def _is_read(name: str) -> bool:
    """Return whether a Maildir file's name says that its owner has read and not deleted it."""
    flags = name.partition(":2,")[2]
    return "S" in flags and "T" not in flags


FOLDER = SourceKind(
    Labels.NEVER, _is_folder, _read_folder, "the folder has no sub-folder for each class"
)
