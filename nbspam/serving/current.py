"""The model in use: always open, and reopened when the file is replaced."""

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from nbspam.errors import ModelError, NbspamError, Remedy
from nbspam.filter import CutOffsOf, Filter
from nbspam.scoring.base import Base
from nbspam.scoring.classifier import Classifier
from nbspam.store.index import IndexLayout, TokenIndex
from nbspam.store.lookup import Lookup


class Keeping(NamedTuple):
    """What an open model keeps in memory."""

    # Tokens whose weights are cached between messages, 20 MB.  On 2,000 real mails, shuffled, 57 %
    # of a mail's tokens were in the cache; 47 % with half as many, 73 % with three times as many.
    words: int = 100_000
    layout: IndexLayout = IndexLayout()


_KEEPING = Keeping()

Say = Callable[[str], None]
_Stamp = tuple[int, ...]  # differs between versions of the file


_numbers = itertools.count(1)


class OpenModel:
    """One version of the model file, and of its base."""

    def __init__(
        self,
        path: Path,
        cut_offs: CutOffsOf,
        keeping: Keeping = _KEEPING,
        handle: int | None = None,
        base: "OpenModel | None" = None,
        is_base: bool = False,
    ) -> None:
        """Open it; raises NbspamError when it is not a model, or not one that can classify spam.

        handle: a descriptor of the file if it is open already, which will be closed.
        base: the model that it is read through, which it uses.  is_base: whether it is one.
        """
        self.number = next(_numbers)  # differs between versions
        self.path = path
        self._keeping = keeping
        self._lookup = Lookup(path, handle)
        self.base = base
        if base is not None:
            base.enter()
        self.modified = os.fstat(self._lookup.fileno()).st_mtime  # seconds since 1970
        self._users = 1  # the server itself, while this is the newest version
        try:
            metadata = self._lookup.metadata
            if metadata.settings.positive is None:
                raise ModelError(
                    f"{path}: the model has no spam class, so it cannot answer spamc",
                    Remedy.NAME_SPAM_LABEL,
                )
            self._counts = TokenIndex(self._lookup, keeping.layout).counts
            self.as_base = Base(path, metadata, self._counts) if is_base else None
            if base is not None and base.as_base is not None:
                base.as_base.check(path, metadata.settings)
            self.cut_offs = cut_offs(metadata)
            self.filter = self.fresh_filter()
        except BaseException:
            self.leave()
            raise

    def fresh_filter(self) -> Filter:
        """Return a filter that another thread can use: only the file is shared."""
        base = None if self.base is None else self.base.as_base
        of = Classifier if base is None else base.classifier
        classifier = of(self._lookup.metadata, self._counts, self._keeping.words)
        return Filter(classifier, self.cut_offs)

    @property
    def files(self) -> list[tuple[str, int]]:
        """The names and descriptors of the open files: of the model, and of its base."""
        own = str(self.path), self._lookup.fileno()
        return [own, *(self.base.files if self.base else [])]

    def enter(self) -> None:
        """Add a user: the file stays open until it calls `leave`."""
        self._users += 1

    def leave(self) -> None:
        """Close the file if this was the last user."""
        self._users -= 1
        if not self._users:
            self._lookup.close()
            if self.base is not None:
                self.base.leave()


class Models(Protocol):
    """The models in use."""

    @property
    def n_unusable(self) -> int:
        """How many files that the server needs to start are missing or cannot be used."""

    def use(self, user: str = "") -> AbstractContextManager[OpenModel]:
        """Give the newest version of a user's model, and keep it open; raises NbspamError.

        user: as the client names him.
        """

    def refresh(self) -> None:
        """Open what has changed."""

    def close(self) -> None:
        """Close what is no longer used."""


class CurrentModel:
    """The newest usable version of a model file; for use by one thread."""

    def __init__(
        self,
        path: Path,
        cut_offs: CutOffsOf,
        say: Say,
        keeping: Keeping = _KEEPING,
        say_good: Say | None = None,
        base: "CurrentModel | None" = None,
        is_base: bool = False,
    ) -> None:
        """Open the model; raises NbspamError when it is missing or cannot be used.

        say: tells that a later version cannot be used.  say_good: that one can again; None for the
        same.  base: what it is read through, and what there is while it is missing; it is closed
        with it.  is_base: whether it is one.
        """
        self._path, self._cut_offs, self._say, self._keeping = path, cut_offs, say, keeping
        self._say_good = say_good or say
        self._base, self._is_base = base, is_base
        self._is_unusable = False
        self._seen = self._stamp()
        self._model = self._opened()

    @property
    def n_unusable(self) -> int:
        """How many files are unusable, or missing: of the model, and of its base."""
        return self._is_unusable + (self._base.n_unusable if self._base else 0)

    def _opened(self) -> OpenModel:
        if self._base is None:
            return OpenModel(self._path, self._cut_offs, self._keeping, is_base=self._is_base)
        with self._base.use() as base:
            if self._path.exists():
                return OpenModel(self._path, self._cut_offs, self._keeping, base=base)
            base.enter()
            return base

    def _stamp(self) -> _Stamp:
        """Return what changes when a file is replaced or written to, or when the base is."""
        own = _stamp_of(self._path)
        if self._base is None:
            return own
        with self._base.use() as base:
            return (*own, base.number)

    def refresh(self) -> None:
        """Open the file if it has changed; keep the version in use if that fails."""
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp  # a version that cannot be used is reported once
        try:
            newer = self._opened()
        except NbspamError as error:
            self._is_unusable = True
            self._say(f"{error}; the server keeps using the previous model")
            return
        if self._is_unusable:
            self._is_unusable = False
            self._say_good(f"{self._path}: the model can be used again, and was opened")
        self._model.leave()
        self._model = newer

    @contextmanager
    def use(self, user: str = "") -> Iterator[OpenModel]:
        """Give the newest usable version, and keep it open while it is used."""
        self.refresh()
        model = self._model
        model.enter()
        try:
            yield model
        finally:
            model.leave()

    def close(self) -> None:
        """Close the file once it is no longer used."""
        self._model.leave()
        if self._base is not None:
            self._base.close()


def _stamp_of(path: Path) -> _Stamp:
    """Return what changes when a file is replaced or written to; empty when it is missing.

    The inode number is not reused while the old version is open.
    """
    try:
        status = path.stat()
    except OSError:
        return ()
    # The last changes with the mode too: a file that could not be read is tried again.
    return (
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    )  # fmt: skip
