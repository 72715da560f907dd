"""The models in use: always open, reopened when a file is replaced; for all users, or for each.

A user's model is read through the common one (`scoring/base.py`), from its first message on; users
without a model get the common model's verdict.  A model that cannot be used is its user's trouble
alone: their requests fail, and spamc outputs their mail as it was.

Whoever can connect names the user, so a name is a file name from a stranger: only letters, digits
and `_.@+-`, no dot or dash first, at most 128 characters, and nothing below the folder may be a
link.  The folder is the server's own: where others can write, a file could become a link between
two looks at it.
"""

import os
import re
import stat
import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

from nbspam.errors import ModelError, NbspamError, Remedy, ServingError
from nbspam.filter import CutOffsOf, Filter
from nbspam.scoring.base import Base
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.verdict import CutOffs
from nbspam.serving.clients import Say
from nbspam.store.index import IndexLayout, TokenIndex
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import Metadata
from nbspam.store.model_file import open_model_file


class Keeping(NamedTuple):
    """What an open model keeps in memory."""

    # Tokens whose weights are cached between messages, 20 MB.  On 2,000 real mails, shuffled, 57 %
    # of a mail's tokens were in the cache; 47 % with half as many, 73 % with three times as many.
    words: int = 100_000
    layout: IndexLayout = IndexLayout()


_KEEPING = Keeping()

Stamp = tuple[object, ...]  # differs between versions of a file; empty: there is none
Handles = Mapping[Path, int]  # of open files
NO_HANDLES: Handles = {}


class OpenModel:
    """One version of the model file, and of its base; the file is closed when nobody has it."""

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
        self.path, self.base = path, base
        self._lookup = Lookup(path, handle)
        close = weakref.finalize(self, self._lookup.close)
        self.modified = os.fstat(self._lookup.fileno()).st_mtime  # seconds since 1970
        try:
            metadata = self._lookup.metadata
            if metadata.settings.positive is None:
                raise ModelError(
                    f"{path}: the model has no spam class, so it cannot answer spamc",
                    Remedy.NAME_SPAM_LABEL,
                )
            counts = TokenIndex(self._lookup, keeping.layout).counts
            self.as_base = Base(path, metadata, counts) if is_base else None
            below = base.as_base if base else None
            if below:
                below.check(path, metadata.settings)
            make = below.classifier if below else Classifier
            self.filter = Filter(make(metadata, counts, keeping.words), cut_offs(metadata))
        except BaseException:
            close()
            raise

    @property
    def handles(self) -> dict[Path, int]:
        """The descriptors of the open files: of the model, and of its base."""
        return {self.path: self._lookup.fileno(), **(self.base.handles if self.base else {})}


class Models(Protocol):
    """The models in use."""

    def use(self, user: str = "") -> OpenModel:
        """Return the newest version of a user's model; raises NbspamError.

        user: as the client names him.
        """


class CurrentModel:
    """The newest usable version of a model file."""

    def __init__(
        self,
        path: Path,
        cut_offs: CutOffsOf,
        say: Say,
        keeping: Keeping = _KEEPING,
        say_good: Say | None = None,
        base: "CurrentModel | None" = None,
        is_base: bool = False,
        handles: Handles = NO_HANDLES,
    ) -> None:
        """Open the model; raises NbspamError when it is missing or cannot be used.

        say: tells that a later version cannot be used.  say_good: that one can again; None for the
        same.  base: what it is read through, and what there is while it is missing.
        is_base: whether it is one.  handles: of the version to begin with, if it is open.
        """
        self._path, self._cut_offs, self._say, self._keeping = path, cut_offs, say, keeping
        self._say_good = say_good or say
        self._base, self._is_base = base, is_base
        self._is_unusable = False
        self._lock = threading.RLock()
        handle = handles.get(path)
        self._seen = self._stamp(handle)
        self._model = self._opened(handle)

    @property
    def n_unusable(self) -> int:
        """How many files are unusable, or missing: of the model, and of its base."""
        return self._is_unusable + (self._base.n_unusable if self._base else 0)

    def _opened(self, handle: int | None = None) -> OpenModel:
        base = self._base.use() if self._base else None
        if base is not None and handle is None and not self._path.exists():
            return base
        return OpenModel(self._path, self._cut_offs, self._keeping, handle, base, self._is_base)

    def _stamp(self, handle: int | None = None) -> Stamp:
        """Return what changes when a file is replaced or written to, or when the base is.

        The inode number is not reused while the old version is open.
        """
        own: Stamp = ()
        with suppress(OSError):
            status = self._path.stat() if handle is None else os.fstat(handle)
            # The last changes with the mode too: a file that could not be read is tried again.
            own = (
                status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
            )  # fmt: skip
        return own if self._base is None else (*own, self._base.use())

    def refresh(self) -> None:
        """Open the file if it has changed; keep the version in use if that fails."""
        with self._lock:
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
            self._model = newer

    def use(self, user: str = "") -> OpenModel:
        """Return the newest usable version."""
        self.refresh()
        return self._model


USER = "%u"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,127}")


class UserFiles:
    """The files of users' models: `FOLDER/%u.json`, or another pattern."""

    def __init__(self, pattern: Path) -> None:
        """pattern: a folder, or a path with `%u` in one of its last two parts.

        Raises ServingError: there is no such folder, or others can write there.
        """
        if USER not in str(pattern):
            pattern = pattern / f"{USER}.json"
        *above, folder, name = pattern.parts if len(pattern.parts) > 1 else (".", *pattern.parts)
        if (folder + name).count(USER) != 1 or str(pattern).count(USER) != 1:
            raise ServingError(
                f"{pattern}: %u, the user's name, must stand once in the last two parts of the"
                " path; name a folder, DIR/%u.json or DIR/%u/model.json"
            )
        if USER in folder:
            self._root, self._parts = Path(*above), [folder, name]
        else:
            self._root, self._parts = Path(*above, folder), [name]
        self._check_root()
        self._root = Path(os.path.realpath(self._root))

    def _check_root(self) -> None:
        try:
            status = self._root.stat()
        except OSError as error:
            raise ServingError(
                f"{self._root}: the users' models cannot be there ({error.strerror}); make the"
                " folder, for the server's user alone (mode 0700)"
            ) from error
        if not stat.S_ISDIR(status.st_mode):
            raise ServingError(f"{self._root}: is not a folder; name one for the users' models")
        if status.st_mode & 0o022 or os.geteuid() not in (0, status.st_uid):
            raise ServingError(
                f"{self._root}: others than the server's user can write there, and could put any"
                " file in a model's place; make the folder that user's own, mode 0700"
            )

    def path(self, user: str) -> Path | None:
        """Return where a user's model is or would be; None for a name that no file may have."""
        if not _NAME.fullmatch(user):
            return None
        return self._root.joinpath(*[part.replace(USER, user) for part in self._parts])

    def stamp(self, path: Path) -> Stamp:
        """Return what changes when a model is replaced or written to; empty when there is none.

        Raises ModelError for what is not a regular file in its place: a link, a folder.
        """
        try:
            if len(self._parts) > 1 and not stat.S_ISDIR(path.parent.lstat().st_mode):
                raise ModelError(f"{path.parent}: is not a folder; remove it")
            status = path.lstat()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise ModelError(
                f"{path}: the user's model cannot be read ({error.strerror}); check its permissions"
            ) from error
        if not stat.S_ISREG(status.st_mode):
            raise ModelError(f"{path}: is not a regular file; a user's model must be one")
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns

    def has_many(self, most: int) -> bool:
        """Return whether there are `most` users' models already, or folders for them."""
        before, _, after = self._parts[0].partition(USER)
        shape = re.compile(re.escape(before) + _NAME.pattern + re.escape(after))
        try:
            found = (path for path in self._root.iterdir() if shape.fullmatch(path.name))
            return sum(1 for _ in islice(found, most)) >= most
        except OSError:
            return False  # whoever writes there will say what is wrong

    def make_folder(self, path: Path) -> None:
        """Make the folder of a user's model if each has one of its own; raises ModelError."""
        if len(self._parts) > 1:
            try:
                path.parent.mkdir(mode=0o700, exist_ok=True)
            except OSError as error:
                raise ModelError(
                    f"{path.parent}: cannot be made ({error.strerror}); fix its permissions"
                ) from error


# Of each user's: weights of 1,000 tokens, some 200 KB, and an index of the file.
_USERS_KEEPING = Keeping(1_000, IndexLayout(entries=1 << 11, in_memory=0))


def open_user_model(path: Path, cut_offs: CutOffsOf, common: OpenModel) -> OpenModel:
    """Open a user's model, which is read through the common one; raises NbspamError."""
    handle = open_model_file(path, follows_links=False)
    return OpenModel(path, cut_offs, _USERS_KEEPING, handle, common)


class UserModels:
    """The newest versions of users' models beside the common one; for use by one thread."""

    def __init__(
        self, common: CurrentModel, files: UserFiles, cut_offs: CutOffsOf, most: int
    ) -> None:
        """common: opened as a base.  most: how many of them stay open."""
        self._common, self._files, self._cut_offs, self._most = common, files, cut_offs, most
        self._open: OrderedDict[Path, tuple[Stamp, OpenModel]] = OrderedDict()

    def use(self, user: str = "") -> OpenModel:
        """Return the newest version of a user's model, or the common one.

        Raises NbspamError: the user's model cannot be used.
        """
        common = self._common.use()
        path = self._files.path(user)
        if path is None:
            return common
        stamp = self._files.stamp(path)
        before, model = self._open.pop(path, ((), common))
        if stamp and not (before == stamp and model.base is common):
            model = open_user_model(path, self._cut_offs, common)
        elif not stamp:
            return common
        self._open[path] = stamp, model
        if len(self._open) > self._most:
            self._open.popitem(last=False)
        return model


class ServedModels(NamedTuple):
    """Which models the server serves."""

    path: Path
    cut_offs: tuple[float | None, ...] = (None,) * 3  # spam, ham, and what a lost ham costs
    base: Path | None = None  # that the model is read through, as those of users are through it
    users: Path | None = None  # where their models are
    n_workers: int = 1
    open_users: int = 100  # of their models stay open, of all workers together

    def cut_offs_of(self, metadata: Metadata) -> CutOffs:
        """Return the cut-offs for a model; raises OptionError."""
        own = CutOffs.of_model(metadata)
        return own if len(metadata.settings.classes) > 2 else own.changed(*self.cut_offs)

    def common(
        self,
        say: Say,
        keeping: Keeping,
        say_good: Say | None = None,
        cut_offs: CutOffsOf | None = None,
        handles: Handles = NO_HANDLES,
    ) -> CurrentModel:
        """Open the model that is not a user's; raises NbspamError.

        say_good: tells that the model can be used again; None for `say`.
        cut_offs: of a model, if that is not `cut_offs_of`.  handles: of files to begin with.
        """
        cut_offs, below = cut_offs or self.cut_offs_of, None
        if self.base is not None and self.users is None:
            below = CurrentModel(
                self.base, cut_offs, say, keeping, say_good, is_base=True, handles=handles
            )
        return CurrentModel(
            self.path, cut_offs, say, keeping, say_good, below, self.users is not None, handles
        )

    def of_worker(self, handles: Handles, is_for_large: bool) -> Models:
        """Open the models for a worker; raises NbspamError.

        Workers divide the memory that one may take.  handles: of the files to begin with.
        """
        n, whole = self.n_workers + 1, Keeping()  # and one for short messages
        # A worker's cache is of use for its own messages alone, so few workers have a whole one.
        words = min(whole.words, max(20_000, 4 * whole.words // n))
        keeping = Keeping(words, IndexLayout(in_memory=whole.layout.in_memory // n))
        if is_for_large:
            keeping = Keeping(10_000, IndexLayout(in_memory=0))
        common = self.common(_ignore, keeping, handles=handles)  # the server itself tells
        if self.users is None:
            return common
        files, most = UserFiles(self.users), max(1, self.open_users // n)
        return UserModels(common, files, self.cut_offs_of, most)


def _ignore(_: str) -> None:
    return
