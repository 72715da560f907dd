"""The models in use: always open, reopened when a file is replaced; for all users, or for each.

A user's model has the common one as its base (`scoring/base.py`), from its first message on; users
without a model get the common model's verdict.  A user's model that cannot be used fails the
requests of that user alone, and spamc outputs their mail as it was.

A client names the user, so a name is a file name from outside: only letters, digits and `_.@+-`, no
dot or dash first, at most 128 characters, and nothing below the folder may be a link.  Between two
looks at it a file may become a link only where others can write: so only the server may write to
the folder, which is resolved once, and nobody to the folders above it without the sticky bit.  In a
user's own folder, which may be the user's, the file is opened with O_NOFOLLOW.
"""

import logging
import os
import re
import stat
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from nbspam.errors import ModelError, NbspamError, Remedy, ServingError
from nbspam.filter import CutOffsOf, TokenFilter
from nbspam.names import LIST_FILE
from nbspam.reading.senders import SenderLists
from nbspam.scoring.base import Base
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.verdict import CutOffs
from nbspam.serving.clients import Limits
from nbspam.store.lookup import Lookup, open_model_file
from nbspam.store.metadata import Metadata

_logger = logging.getLogger(__name__)

Stamp = tuple[object, ...]  # differs between versions of a file; empty: there is none
Handles = Mapping[Path, int]  # of open files
NO_HANDLES: Handles = {}


class Opening(NamedTuple):
    """How models are opened, and what they keep in memory."""

    cut_offs: CutOffsOf
    # Tokens whose weights are cached between messages, 20 MB.  On 2,000 real mails, shuffled, 57 %
    # of a mail's tokens were in the cache; 47 % with half as many, 73 % with three times as many.
    words: int = 100_000
    in_memory: int = 64 << 20  # bytes of a model, about 2.5 million tokens, that are kept in memory
    handles: Handles = NO_HANDLES  # of the versions to begin with, if they are open
    is_base: bool = False  # whether others are read through it
    senders: SenderLists | None = None  # allowed and blocked ones


class OpenModel:
    """One version of the model file, and of its base; the file is closed when no one uses it."""

    def __init__(
        self, path: Path, opening: Opening, base: "OpenModel | None", handle: int | None
    ) -> None:
        """Open it; raises NbspamError when it is not a model, or not one that can classify spam.

        base: the model that it is read through, which it uses.
        handle: a descriptor of the file if it is open already, which will be closed.
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
            counts = self._lookup.counts
            self._lookup.prepare(opening.in_memory)
            self.as_base = Base(path, metadata, counts) if opening.is_base else None
            below = base.as_base if base else None
            if below:
                below.check(path, metadata.settings)
            make = below.classifier if below else Classifier
            classifier = make(metadata, counts, opening.words)
            cut_offs = opening.cut_offs(metadata)
            self.filter = TokenFilter(classifier, cut_offs, senders=opening.senders)
        except BaseException:
            close()
            raise

    @property
    def handles(self) -> dict[Path, int]:
        """The descriptors of the open files: of the model, and of its base."""
        return {self.path: self._lookup.fileno(), **(self.base.handles if self.base else {})}


class CurrentModel:
    """The newest usable version of a model file."""

    def __init__(self, path: Path, opening: Opening, base: "CurrentModel | None" = None) -> None:
        """Open the model; raises NbspamError when it is missing or cannot be used.

        base: what it is read through, and what there is while it is missing.
        """
        self._path, self._opening, self._base = path, opening, base
        self._is_unusable = self._has_unusable_lists = False
        self._lock = threading.RLock()
        handle = opening.handles.get(path)
        self._seen = self._stamp(handle)
        self._model = self._opened(handle)

    @property
    def n_unusable(self) -> int:
        """How many files are unusable, or missing: of the model, of its base, and of senders."""
        below = self._base.n_unusable if self._base else 0
        return self._is_unusable + self._has_unusable_lists + below

    def _opened(self, handle: int | None = None) -> OpenModel:
        base = self._base.use() if self._base else None
        try:
            if base is not None and handle is None and not self._path.exists():
                return base
            return OpenModel(self._path, self._opening, base, handle)
        except (OSError, MemoryError) as error:
            raise ModelError(
                f"{self._path}: the model cannot be opened ({str(error) or 'no memory is left'});"
                " make room, and touch the file for another try"
            ) from error

    def _stamp(self, handle: int | None) -> Stamp:
        """Return what changes when a file is replaced or written to, or when the base is.

        The inode number is not reused while the old version is open.
        """
        stamp: Stamp = ()
        with suppress(OSError):
            stamp = _stamp_of(self._path.stat() if handle is None else os.fstat(handle))
        return stamp if self._base is None else (*stamp, self._base.use())

    def use(self, user: str = "") -> OpenModel:
        """Return the newest version; the one before where that cannot be used."""
        with self._lock:
            self._reread_lists()
            stamp = self._stamp(None)
            if stamp != self._seen:
                self._seen = stamp  # a version that cannot be used is reported once
                try:
                    self._model = self._opened()
                except NbspamError as error:
                    self._is_unusable = True
                    _logger.warning(f"{error}; the server keeps using the previous model")
                else:
                    if self._is_unusable:
                        self._is_unusable = False
                        _logger.info(f"{self._path}: the model can be used again and was opened")
            return self._model

    def _reread_lists(self) -> None:
        """Read the lists of senders again if a file of them has changed."""
        try:
            if self._opening.senders is None or not self._opening.senders.reread():
                return
        except NbspamError as error:
            self._has_unusable_lists = True
            _logger.warning(f"{error}; the server keeps using the previous lists of senders")
        else:
            self._has_unusable_lists = False
            _logger.info("a list of senders has changed; the lists were read again")

    def filter_for(self, user: str = "") -> TokenFilter:
        """Return the filter of the newest version."""
        return self.use(user).filter


def _stamp_of(status: os.stat_result) -> Stamp:
    # The last changes with the mode too: a file that could not be read is tried again.
    s = status
    return s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns


USER = "%u"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,127}")


class UserFiles(NamedTuple):
    """The files of users' models: `FOLDER/%u.json`, or another pattern."""

    root: Path
    below: str  # that folder, with `%u` in place of the user's name

    @staticmethod
    def of(pattern: Path) -> "UserFiles":
        """Return those of a folder, or of a path with `%u` in one of its last two parts.

        Raises ServingError: no such folder, or others can write there.
        """
        if USER not in str(pattern):
            pattern = pattern / f"{USER}.json"
        root, below = pattern.parent, pattern.name
        if USER in root.name:
            root, below = root.parent, f"{root.name}/{below}"
        if below.count(USER) != 1 or str(pattern).count(USER) != 1:
            raise ServingError(
                f"{pattern}: %u, the user's name, must occur once in the last two parts of the"
                " path; name a folder, DIR/%u.json or DIR/%u/model.json"
            )
        try:
            status = root.stat()
        except OSError as error:
            raise ServingError(
                f"{root}: the users' models cannot be kept there ({error.strerror}); make the"
                " folder, for the server's user alone (mode 0700)"
            ) from error
        if not stat.S_ISDIR(status.st_mode):
            raise ServingError(f"{root}: is not a folder; name one for the users' models")
        if status.st_mode & 0o022 or os.geteuid() not in (0, status.st_uid):
            raise ServingError(
                f"{root}: other users than the server's can write there, and could replace any"
                " model; let only the server's user own and write it (mode 0700)"
            )
        root = Path(os.path.realpath(root))
        for above in root.parents:
            mode = above.stat().st_mode
            if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
                raise ServingError(
                    f"{root}: everybody can write to {above} above it, and could replace it; run"
                    f" chmod o-w {above}"
                )
        return UserFiles(root, below)

    def path(self, user: str) -> Path | None:
        """Return where a user's model is or would be; None for a name that no file may have."""
        return self.root / self.below.replace(USER, user) if _NAME.fullmatch(user) else None

    def stamp(self, path: Path) -> Stamp:
        """Return what changes when a model is replaced or written to; empty when there is none.

        Raises ModelError for what is not a regular file in its place: a link, a folder.
        """
        try:
            if path.parent != self.root and not stat.S_ISDIR(path.parent.lstat().st_mode):
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
        return _stamp_of(status)

    def has_many(self, most: int) -> bool:
        """Return whether there are `most` users' models already, or folders for them."""
        before, _, after = self.below.partition("/")[0].partition(USER)
        shape = re.compile(re.escape(before) + _NAME.pattern + re.escape(after))
        try:
            models = (path for path in self.root.iterdir() if shape.fullmatch(path.name))
            return sum(1 for _ in islice(models, most)) >= most
        except OSError:
            return False  # a write there fails with the reason

    def make_folder(self, path: Path) -> None:
        """Make the folder of a user's model if each has one of its own; raises ModelError."""
        if path.parent != self.root:
            try:
                path.parent.mkdir(mode=0o700, exist_ok=True)
            except OSError as error:
                raise ModelError(
                    f"{path.parent}: cannot be created ({error.strerror}); fix its permissions"
                ) from error


def open_user_model(
    path: Path, cut_offs: CutOffsOf, common: OpenModel, senders: SenderLists | None = None
) -> OpenModel:
    """Open a user's model, which is read through the common one; raises NbspamError."""
    # Of each user's: some 200 KB.
    opening = Opening(cut_offs, words=1_000, in_memory=0, senders=senders)
    handle = open_model_file(path, follows_links=False)
    return OpenModel(path, opening, common, handle=handle)


class UserModels:
    """The newest versions of users' models beside the common one; for use by one thread."""

    def __init__(
        self,
        common: CurrentModel,
        files: UserFiles,
        cut_offs: CutOffsOf,
        most: int,
        senders: SenderLists | None = None,
    ) -> None:
        """common: opened as a base.  most: how many of them stay open.

        senders: the lists for all users; None: there are no lists, not even of users.
        """
        self._common, self._files, self._cut_offs, self._most = common, files, cut_offs, most
        self._open: dict[Path, tuple[Stamp, OpenModel]] = {}  # the last used at the end
        self._senders = senders
        self._lists: dict[Path, tuple[list[Stamp], SenderLists]] = {}  # of users, as `_open`

    def use(self, user: str = "") -> OpenModel:
        """Return the newest version of a user's model, or the common one.

        Raises NbspamError: the user's model cannot be used.
        """
        common, path = self._common.use(), self._files.path(user)
        stamp = self._files.stamp(path) if path else ()
        if not (path and stamp):
            return common
        before, model = self._open.pop(path, ((), common))
        if before != stamp or model.base is not common:
            model = open_user_model(path, self._cut_offs, common, self._senders)
        self._open[path] = stamp, model
        if len(self._open) > self._most:
            del self._open[next(iter(self._open))]
        return model

    def filter_for(self, user: str = "") -> TokenFilter:
        """Return the filter of a user's model, with the user's own lists of senders before others.

        They are beside NAME.json: NAME.allow and NAME.block.  Raises NbspamError, also for these.
        """
        spam_filter, path = self.use(user).filter, self._files.path(user)
        if path is None or path.suffix != ".json" or self._senders is None:
            return spam_filter
        allow, block = path.with_suffix(".allow"), path.with_suffix(".block")
        stamps = [self._files.stamp(allow), self._files.stamp(block)]
        before, lists = self._lists.pop(path, ([], self._senders))
        if not any(stamps):
            return spam_filter
        if before != stamps:
            lists = SenderLists(
                [f"{LIST_FILE}{allow}"] if stamps[0] else (),
                [f"{LIST_FILE}{block}"] if stamps[1] else (),
                self._senders.auth_hosts,
                self._senders.trust_from,
                common=self._senders,
                follows_links=False,
            )
        self._lists[path] = stamps, lists
        if len(self._lists) > self._most:
            del self._lists[next(iter(self._lists))]
        return TokenFilter(spam_filter.classifier, spam_filter.cut_offs, senders=lists)


class Setup(NamedTuple):
    """Which models the server and its processes serve, and how."""

    path: Path
    cut_offs: tuple[float | None, ...] = (None,) * 3  # spam, ham, and what a lost ham costs
    base: Path | None = None  # that the model is read through, as those of users are through it
    users: UserFiles | None = None  # where their models are
    n_workers: int = 1
    limits: Limits = Limits()
    can_tell: bool = False  # whether clients may teach
    x_spam: bool = False  # whether messages get SpamAssassin's headers too
    senders: SenderLists | None = None  # allowed and blocked ones
    open_users: int = 100  # of their models stay open, of all workers together

    def cut_offs_of(self, metadata: Metadata) -> CutOffs:
        """Return the cut-offs for a model; raises OptionError."""
        cut_offs = CutOffs.of_model(metadata)
        return cut_offs.changed(*self.cut_offs) if len(metadata.settings.classes) == 2 else cut_offs

    def common(self, opening: Opening) -> CurrentModel:
        """Open the model that is not a user's; raises NbspamError."""
        opening = opening._replace(senders=self.senders)
        if self.users is not None:
            return CurrentModel(self.path, opening._replace(is_base=True))
        below = CurrentModel(self.base, opening._replace(is_base=True)) if self.base else None
        return CurrentModel(self.path, opening, below)

    def of_worker(self, handles: Handles, is_for_large: bool) -> CurrentModel | UserModels:
        """Open the models for a worker; raises NbspamError.

        Workers divide the memory that one may take.  handles: of the files to begin with.
        """
        n = self.n_workers + 1  # one is for short messages
        opening = Opening(self.cut_offs_of)
        # A worker's cache is of use for its own messages alone, so few workers have a whole one.
        words = min(opening.words, max(20_000, 4 * opening.words // n))
        in_memory = opening.in_memory // n
        if is_for_large:
            words, in_memory = 10_000, 0
        common = self.common(opening._replace(words=words, in_memory=in_memory, handles=handles))
        if self.users is None:
            return common
        most = max(1, self.open_users // n)
        return UserModels(common, self.users, self.cut_offs_of, most, self.senders)
