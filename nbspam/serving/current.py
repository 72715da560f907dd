"""The model in use: always open, and reopened when the file is replaced."""

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nbspam.errors import ModelError, NbspamError, Remedy
from nbspam.filter import CutOffsOf, Filter
from nbspam.scoring.classifier import Classifier
from nbspam.store.index import IndexLayout, TokenIndex
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import Metadata

if TYPE_CHECKING:
    from nbspam.scoring.base import Base


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
    """One version of the model file, and of the base beneath it."""

    def __init__(
        self,
        path: Path | None,
        cut_offs: CutOffsOf,
        keeping: Keeping = _KEEPING,
        handle: int | None = None,
        base: "Base | None" = None,
    ) -> None:
        """Open it; raises NbspamError when it is not a model, or not one that can classify spam.

        handle: a descriptor of the file if it is open already, which will be closed.
        path: None for the base alone.
        base: the model beneath it, which it shares; then there need not be a file at `path`.
        """
        self.number = next(_numbers)  # differs between versions
        self.path = path
        self._keeping = keeping
        self._lookup = None
        if path is not None and (base is None or handle is not None or path.exists()):
            self._lookup = Lookup(path, handle)
        self.base = None if base is None else base.share()
        self.modified = os.fstat(self.handles[0]).st_mtime  # seconds since 1970
        self._users = 1  # the server itself, while this is the newest version
        try:
            if self.base is not None and self._lookup is not None and path is not None:
                self.base.check(path, self._lookup.metadata.settings)
            metadata = self._metadata
            if metadata.settings.positive is None:
                raise ModelError(
                    f"{path}: the model has no spam class, so it cannot answer spamc",
                    Remedy.NAME_SPAM_LABEL,
                )
            lookup = self._lookup
            self._counts = TokenIndex(lookup, keeping.layout).counts if lookup else None
            self.cut_offs = cut_offs(metadata)
            self.filter = self.fresh_filter()
        except BaseException:
            self.leave()
            raise

    def fresh_filter(self) -> Filter:
        """Return a filter that another thread can use: only the file is shared."""
        metadata, counts, words = self._metadata, self._counts, self._keeping.words
        if self.base is not None:
            classifier = self.base.classifier(metadata, counts, words)
        else:
            assert counts is not None
            classifier = Classifier(metadata, counts, words)
        return Filter(classifier, self.cut_offs)

    @property
    def _metadata(self) -> Metadata:
        """The metadata of the model; of the base, if there is only that."""
        if self._lookup is not None:
            return self._lookup.metadata
        assert self.base is not None
        return self.base.metadata

    @property
    def handles(self) -> list[int]:
        """The descriptors of the open files: of the model, if there is one, and of its base."""
        files = (self._lookup, None if self.base is None else self.base.file)
        return [file.fileno() for file in files if file is not None]

    @property
    def files(self) -> dict[str, str]:
        """The names of these files."""
        named = {"path": self._lookup and str(self.path), "base": self.base and str(self.base.path)}
        return {key: name for key, name in named.items() if name}

    def enter(self) -> None:
        """Add a user: the file stays open until it calls `leave`."""
        self._users += 1

    def leave(self) -> None:
        """Close the file if this was the last user."""
        self._users -= 1
        if not self._users:
            for part in (self._lookup, self.base):
                if part is not None:
                    part.close()


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
        path: Path | None,
        cut_offs: CutOffsOf,
        say: Say,
        keeping: Keeping = _KEEPING,
        say_good: Say | None = None,
        base: Path | None = None,
    ) -> None:
        """Open the model; raises NbspamError when it is missing or cannot be used.

        say: tells that a later version cannot be used.  say_good: that one can again; None for the
        same.  base: the file of the model beneath it, with which it may be missing; path: None for
        the base alone.
        """
        self._path, self._cut_offs, self._say, self._keeping = path, cut_offs, say, keeping
        self._say_good = say_good or say
        self._base = base
        self._of_base: tuple[_Stamp, Base] | None = None  # the one in use
        self.n_unusable = 0  # 1 while the file is missing or cannot be used
        self._seen = self._stamp()
        self._model = self._opened()

    def _opened(self) -> OpenModel:
        if self._base is None:
            return OpenModel(self._path, self._cut_offs, self._keeping)
        stamp = _stamp_of(self._base)
        if self._of_base and self._of_base[0] == stamp:  # an index of it is made once
            base = self._of_base[1]
            return OpenModel(self._path, self._cut_offs, self._keeping, base=base)
        from nbspam.scoring.base import Base

        with Base.open(self._base, layout=self._keeping.layout) as base:  # which the model shares
            opened = OpenModel(self._path, self._cut_offs, self._keeping, base=base)
        self._of_base = stamp, base
        return opened

    @property
    def base(self) -> "Base | None":
        """The base beneath the newest usable version, open as long as that is; None without one."""
        self.refresh()
        return self._model.base

    def _stamp(self) -> _Stamp:
        """Return what changes when a file is replaced or written to; empty when it is missing.

        The inode number is not reused while the old version is open.
        """
        return tuple(itertools.chain(*map(_stamp_of, (self._path, self._base))))

    def refresh(self) -> None:
        """Open the file if it has changed; keep the version in use if that fails."""
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp  # a version that cannot be used is reported once
        try:
            newer = self._opened()
        except NbspamError as error:
            self.n_unusable = 1
            self._say(f"{error}; the server keeps using the previous model")
            return
        if self.n_unusable:
            self.n_unusable = 0
            self._say_good(
                f"{self._path or self._base}: the model can be used again, and was opened"
            )
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


def _stamp_of(path: Path | None) -> _Stamp:
    try:
        status = path.stat() if path is not None else None
    except OSError:
        status = None
    if status is None:
        return (0,)  # so that no file's stamp takes the place of another's
    # The last changes with the mode too: a file that could not be read is tried again.
    return (
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    )  # fmt: skip
