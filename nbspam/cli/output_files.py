"""The files that a command writes beside its results: none that it reads, and no model."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from nbspam.errors import SourceError
from nbspam.reading.message import RawMessage
from nbspam.reading.source import STDIN, Skipped
from nbspam.store.model_file import is_model_like

if TYPE_CHECKING:
    from nbspam.reading.cutting import SourcePiece

A = TypeVar("A", bound="RawMessage | Skipped | SourcePiece")
_Identity = tuple[int, int]  # device and inode: a file's, whatever the path or link to it


class _Existing(NamedTuple):
    """A file that is there already, and that an option names to be written."""

    option: str
    path: Path


class OutputFiles:
    """The files to write, of which none may be lost.

    Where one exists it is compared with all that is read, by device and inode, so that neither a
    link nor another path leads around that.
    """

    def __init__(self, files: Mapping[str, Path | None]) -> None:
        """Take the files by the options that name them; raises SourceError for one named twice."""
        self._existing: dict[_Identity, _Existing] = {}
        named: dict[str, str] = {}
        for option, path in files.items():
            if path is None:
                continue
            identity = _identity(path)
            other = named.setdefault(os.path.realpath(path), option)
            if identity is not None:
                other = self._existing.setdefault(identity, _Existing(option, path)).option
            if other != option:
                raise SourceError(
                    f"{option} {path}: {other} writes to the same file; name another file"
                )

    def check(self, sources: Iterable[str], model: Path | None) -> None:
        """Raise SourceError if a file is a model or one of the sources, and would be lost.

        model: that is read, if one is.
        """
        if model is not None:
            self._check_identity(_identity(model), "the model")
        for source in sources:
            self._check_identity(_identity(0 if source == STDIN else source), "a source")
        for option, path in self._existing.values():
            if is_model_like(path):
                raise _lost(option, path, "a model")

    def guarded(self, raws: "Iterable[A]") -> "Iterator[A]":
        """Yield messages or pieces; raises SourceError at one that is in a file to write.

        So what a folder, an index or a list of files names is guarded too.
        """
        if not self._existing:
            yield from raws
            return
        last = ""
        for raw in raws:
            for name in _files_of(raw):
                if name != last:
                    self._check_identity(_identity(name), "a source")
                    last = name
            yield raw

    def _check_identity(self, identity: _Identity | None, what: str) -> None:
        if identity is not None and identity in self._existing:
            raise _lost(*self._existing[identity], what)


def _files_of(raw: "RawMessage | Skipped | SourcePiece") -> tuple[str, ...]:
    if isinstance(raw, Skipped):
        return ()
    if not isinstance(raw, RawMessage):
        return raw.files
    name = raw.source
    if isinstance(raw.content, str | bytes):  # `path:line` or `path:number`
        name = name.rpartition(":")[0] or name
    return (name,)


def _lost(option: str, path: Path, what: str) -> SourceError:
    return SourceError(f"{option} {path}: is {what}, and would be lost; name another file")


def _identity(path: "Path | str | int") -> _Identity | None:
    """Return which file a path or descriptor is; None if it is no regular file."""
    try:
        status = os.stat(path)  # noqa: PTH116 (a descriptor has no Path)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
