"""A folder of messages, one per file, or a Maildir.

A link that leads out of the folder is not followed unasked: whoever may put a link there may be
somebody else, who wants to know what is in a file of the one who trains.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from nbspam.errors import Remedy, SourceError
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.source_kind import Labels, ReadingOptions, ReadingRequest, Source, SourceKind
from nbspam.urls import real_name

_DEPTH_LIMIT = 100  # folders inside one another


def _is_folder(source: Source, _: ReadingOptions) -> bool:
    return source.is_folder


def _read_folder(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    return folder_messages(source.path, request)


def folder_messages(
    path: Path, request: ReadingRequest, given: Path | None = None
) -> Iterator[RawMessage]:
    """Yield the files of a folder and its sub-folders, sorted by name, without dot files.

    given: the folder that the user gave, which it is a part of; itself, if None.
    """
    root = real_name(given or path)
    return _inside(path, request, root, visited=set(), depth=0)


def is_within(path: object, folder: str) -> bool:
    """Return whether a path, its links followed, is in a folder, or the folder itself.

    folder: a real path.
    """
    try:
        real = os.path.realpath(str(path))
    except ValueError:  # it has a NUL, so there is no such file
        return True
    return os.path.join(real, "").startswith(os.path.join(folder, ""))  # noqa: PTH118


def is_left_out(entry: Path, root: str, request: ReadingRequest) -> bool:
    """Return whether an entry of a folder is a link that is not followed; says so then.

    root: the real path of the folder that was given.
    """
    if not entry.is_symlink():
        return False
    if not entry.exists():
        request.skips(str(entry), "the link leads nowhere")
    elif is_within(root, os.path.realpath(entry)):
        request.skips(str(entry), "the link leads to a folder that it is in")
    elif not (request.options.outside or is_within(entry, root)):
        request.skips(str(entry), f"the link leads out of {root}", Remedy.ALLOW_OUTSIDE)
    else:
        return False
    return True


def is_maildir(path: Path) -> bool:
    """Return whether a folder is a Maildir."""
    return (path / "cur").is_dir() and (path / "new").is_dir()


def is_given_itself(path: Path, request: ReadingRequest) -> bool:
    """Return whether what is in a folder is also given as a source of its own; says so then."""
    label = request.options.given.get(real_name(path))
    if label is None:
        return False
    request.options.tell(
        SourceError(
            f"{path}: is given as a source of its own and is read only as {label or 'that'}"
        )
    )
    return True


def _inside(
    path: Path, request: ReadingRequest, root: str, visited: set[Path], depth: int
) -> Iterator[RawMessage]:
    """Yield the messages of a folder.

    root: as `is_left_out` takes it.
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
    for entry in _entries(path, root, request):
        is_folder = entry.is_dir()
        if (entry.name in names or (is_folder and names)) and is_given_itself(entry, request):
            continue
        if is_left_out(entry, root, request):
            continue
        if is_folder:
            try:
                yield from _inside(entry, request, root, visited, depth + 1)
            except PermissionError as error:
                request.skips(str(entry), f"the folder cannot be read ({error.strerror})")
        elif entry.is_file():
            yield RawMessage(str(entry), request.label, entry)


def _entries(path: Path, root: str, request: ReadingRequest) -> list[Path]:
    """Return what is in a folder, sorted by name, without dot files.

    A Maildir consists of its cur and new: tmp holds mail that is still being written.  On request,
    the mail of a Maildir is left out that its owner has not read, or has deleted.
    """
    if not is_maildir(path):
        entries = sorted(path.iterdir())
    else:
        only_read = request.options.seen
        parts = [path / name for name in (("cur",) if only_read else ("cur", "new"))]
        parts = [part for part in parts if not is_left_out(part, root, request)]
        entries = [entry for part in parts for entry in sorted(part.iterdir())]
        entries = [entry for entry in entries if not only_read or _is_read(entry.name)]
    return [entry for entry in entries if not entry.name.startswith(".")]


def _is_read(name: str) -> bool:
    """Return whether a Maildir file's name says that its owner has read and not deleted it."""
    flags = name.partition(":2,")[2]
    return "S" in flags and "T" not in flags


FOLDER = SourceKind(
    Labels.NEVER, _is_folder, _read_folder, "the folder has no sub-folder for each class"
)
