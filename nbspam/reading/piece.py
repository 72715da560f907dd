"""A piece of a source: what one machine of several reads, without what comes before or after it.

A piece is data, so that it can go to another machine, and reading it twice gives the same twice.
What could not be read comes as data too, in its place.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol, TypeVar

from nbspam.errors import NbspamError, Remedy
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skipped, Skips
from nbspam.reading.source_kind import Source
from nbspam.reading.sources import source_error

A = TypeVar("A")


class SourcePiece(Protocol):
    """A part of the sources."""

    @property
    def source(self) -> str:
        """The name of what it is a part of, for progress and errors."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it is in."""

    @property
    def size(self) -> int:
        """Bytes to read, as far as they are known; for progress."""

    def read(self) -> Iterator[RawMessage | Skipped]:
        """Yield its messages, in order, and in their place what cannot be read.

        Raises SourceError; ElsewhereError where it is read on a machine that has not the same file.
        """


class ElsewhereError(NbspamError):
    """A machine does not have the file that the one has which cut it."""


class Collected(Skips):
    """Skips that are handed on in the place where they occurred."""

    def __init__(self) -> None:
        super().__init__()
        self._new: list[Skipped] = []

    def __call__(self, source: str, reason: str, _: Remedy | None = None) -> None:
        """Keep what was skipped."""
        self._new.append(Skipped(source, reason))

    def among(self, raws: Iterator[A]) -> Iterator[A | Skipped]:
        """Yield messages or pieces, and what is skipped while they are read."""
        for raw in raws:
            yield from self._taken()
            yield raw
        yield from self._taken()

    def _taken(self) -> list[Skipped]:
        taken, self._new = self._new, []
        return taken


def check_same(name: str, size: int) -> Source:
    """Return the source of that name; raises ElsewhereError unless it has as many bytes here."""
    source = Source(name)
    try:
        here = source.path.stat().st_size
    except OSError as error:
        raise ElsewhereError(f"{name}: is not there ({error.strerror})") from error
    if here != size:
        raise ElsewhereError(f"{name}: is another file ({here:,} bytes and not {size:,})")
    return source


class FileList(NamedTuple):
    """Files with one message each."""

    source: str  # the folder or index that names them
    size: int
    files: tuple[str, ...]
    labels: tuple[str | None, ...]

    def read(self) -> Iterator[RawMessage | Skipped]:
        """Yield its messages; each file is opened by whoever parses it.

        A file that is gone is skipped by them, as mail is moved while it is read; a machine that
        does not even have the folder is another matter.
        """
        first = Source(self.files[0]).path
        if not first.exists() and not first.parent.is_dir():
            raise ElsewhereError(f"{first.parent}: there is no such folder")
        for name, label in zip(self.files, self.labels, strict=True):
            yield RawMessage(name, label, Source(name).path)


def readable(
    source: Source, raws: Iterator[RawMessage | Skipped]
) -> Iterator[RawMessage | Skipped]:
    """Yield what is read of a source; raises SourceError where that fails."""
    try:
        yield from raws
    except (OSError, UnicodeError, LookupError) as error:
        if (known := source_error(source, error)) is None:
            raise
        raise known from error
