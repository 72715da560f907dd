"""The models of a server: a common model, and a model for each user.

The common model is the base of each user's model (`scoring/base.py`), from the first message that
the user teaches; users without a model get the common model's verdict.  If a user's model cannot be
used, only this user's requests fail, and spamc outputs the mail unchanged.

The name of a user's file comes from the client, so it is restricted: letters, digits and `_.@+-`,
no dot or dash first, at most 128 characters.  Nothing below the users' folder may be a link.  A
file could be replaced by a link after the check, if others could write there: so only the server
may write to the users' folder, nobody else may write to folders above without the sticky bit, and a
file in a folder that may belong to the user is opened with O_NOFOLLOW.
"""

import logging
import os
import re
import stat
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from nbspam.errors import ModelError, NbspamError, Remedy, ServingError
from nbspam.filter import Filter
from nbspam.names import LIST_FILE
from nbspam.reading.senders import SenderLists
from nbspam.scoring.verdict import CutOffs
from nbspam.scoring.version import FilterVersion, ModelOptions
from nbspam.serving.log import LOGGER
from nbspam.serving.spamd import PROTOCOL, UNAVAILABLE, RefusedError
from nbspam.store.metadata import Metadata

_logger = logging.getLogger(LOGGER)

# Tokens whose weights a worker keeps between messages; they take 20 MB.  On 2,000 real mails,
# shuffled, 57 % of a mail's tokens were in this cache; 47 % with half the size, 73 % with three
# times the size.
_CACHED_TOKENS = 100_000
_USERS_TOKENS = 1_000  # the same for a user's model; they take about 200 KB
_IN_MEMORY = 64 << 20  # bytes (2.5 million tokens); a smaller common model is kept in memory
_OPEN_USERS = 100  # users' models that a worker keeps open

Stamp = tuple[object, ...]  # changes whenever the file changes; empty if there is no file


class Limits(NamedTuple):
    """Sizes, numbers and times that bound what clients may use."""

    # Bytes of a message, as sent and decompressed; `reading` reads half as many.
    max_size: int = 32 << 20
    timeout: float = 60.0  # seconds for a client to send its request, and again to read the reply
    connections: int = 500  # clients served at a time; more wait in the system's queue
    large: int = 2  # messages above `spamd.LARGE` that a worker holds at a time
    shutdown: float = 10.0  # seconds for clients to finish when the server stops
    learning: float = 30.0  # seconds that a message waits to be learned, or for the model's lock
    max_users: int = 1_000  # users with models, after which teaching creates no further model


USER_MARK = "%u"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,127}")


class UserFiles(NamedTuple):
    """The files of users' models: `FOLDER/%u.json`, or another pattern."""

    root: Path
    name_pattern: str  # a user's file below the folder, with `%u` for the user's name

    @staticmethod
    def from_pattern(pattern: Path) -> "UserFiles":
        """Return the files of a folder, or of a path with `%u` in one of its last two parts.

        Raises ServingError: no such folder, or others can write there.
        """
        if USER_MARK not in str(pattern):
            pattern = pattern / f"{USER_MARK}.json"
        root, name_pattern = pattern.parent, pattern.name
        if USER_MARK in root.name:
            root, name_pattern = root.parent, f"{root.name}/{name_pattern}"
        if name_pattern.count(USER_MARK) != 1 or str(pattern).count(USER_MARK) != 1:
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
        return UserFiles(root, name_pattern)

    def path(self, user: str) -> Path | None:
        """Return the path of a user's model, which may not exist; None for an invalid name."""
        return (
            self.root / self.name_pattern.replace(USER_MARK, user)
            if _NAME.fullmatch(user)
            else None
        )

    def stamp(self, path: Path) -> Stamp:
        """Return a value that changes when a model is replaced or written; empty without a model.

        Raises ModelError if the path is not a regular file, but a link or a folder.
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
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def reached_limit(self, max_users: int) -> bool:
        """Return whether there are `max_users` users' models already, or folders for them."""
        before, _, after = self.name_pattern.partition("/")[0].partition(USER_MARK)
        shape = re.compile(re.escape(before) + _NAME.pattern + re.escape(after))
        try:
            models = (path for path in self.root.iterdir() if shape.fullmatch(path.name))
            return sum(1 for _ in islice(models, max_users)) >= max_users
        except OSError:
            return False  # then writing a model fails, and its error has the reason

    def make_folder(self, path: Path) -> None:
        """Make the folder of a user's model if each model has its own folder; raises ModelError."""
        if path.parent != self.root:
            try:
                path.parent.mkdir(mode=0o700, exist_ok=True)
            except OSError as error:
                raise ModelError(
                    f"{path.parent}: cannot be created ({error.strerror}); fix its permissions"
                ) from error


class ServerConfig(NamedTuple):
    """The models that a server uses, and its other settings."""

    path: Path
    cut_offs: tuple[Any, ...] = ()  # arguments of `CutOffs.overridden`
    base: Path | None = None  # its counts are added to the common model's
    users: UserFiles | None = None  # the files of users' models
    n_workers: int = 1
    limits: Limits = Limits()
    can_tell: bool = False  # whether clients may teach
    x_spam: bool = False  # whether messages also get SpamAssassin's headers
    senders: SenderLists | None = None  # lists of allowed and blocked senders
    open_users: int = _OPEN_USERS

    def cut_offs_of(self, metadata: Metadata) -> CutOffs:
        """Return the cut-offs for a model; raises OptionError, or ModelError without spam."""
        if metadata.settings.positive is None:
            raise ModelError(
                f"{self.path}: the model has no spam class, so it cannot answer spamc",
                Remedy.NAME_SPAM_LABEL,
            )
        cut_offs = CutOffs.from_model(metadata)
        return (
            cut_offs.overridden(*self.cut_offs) if len(metadata.settings.classes) == 2 else cut_offs
        )


class Models:
    """The filters of a server."""

    def __init__(self, config: ServerConfig) -> None:
        """Open the common model; raises NbspamError when it is missing or cannot be used."""
        self._config, self.senders = config, config.senders
        options = ModelOptions(config.cut_offs_of, config.senders, _CACHED_TOKENS, _IN_MEMORY)
        base = None if config.base is None else Filter(config.base)
        self.common, self._base = Filter(config.path, options, base), base
        if config.users:
            self.common.version.as_base()  # raises if the model cannot be a base
        self._users: dict[Path, Filter] = {}  # in the order of their last use
        # users' lists of senders, also in the order of their last use
        self._lists: dict[Path, tuple[list[Stamp], SenderLists]] = {}
        self._has_unusable_lists = False

    @property
    def n_unusable(self) -> int:
        """Number of unusable or missing files: the model, its base, lists of senders."""
        problems = self.common.problem, self._base and self._base.problem, self._has_unusable_lists
        return sum(map(bool, problems))

    @property
    def modified(self) -> float:
        """The time at which the model in use was written, in seconds since 1970."""
        lookup = self.common.version.lookup
        return os.fstat(lookup.fileno()).st_mtime if lookup else 0.0

    def reread(self) -> None:
        """Open the common model and the lists of senders anew if they have changed; log errors."""
        _ = self.common.version
        try:
            if self.senders is not None and self.senders.reread():
                self._has_unusable_lists = False
                _logger.info("a list of senders has changed; the lists were read again")
        except NbspamError as error:
            self._has_unusable_lists = True
            _logger.warning(f"{error}; the previous lists of senders are still used")

    def filter_for_user(self, user: str, make: bool = False) -> Filter:
        """Return the filter of a user's model, or the common filter if the user has no model.

        make: return the filter of a model that does not exist yet, too.
        Raises NbspamError if the user's model cannot be used.
        """
        files = self._config.users
        path = files.path(user) if files else None
        if files is None or path is None or not (files.stamp(path) or make):
            return self.common
        spam_filter = self._users.pop(path, None)
        if spam_filter is None:
            options = ModelOptions(
                self._config.cut_offs_of, self.senders, _USERS_TOKENS, follow_links=False
            )
            spam_filter = Filter(path, options, self.common)
        self._users[path] = spam_filter
        if len(self._users) > self._config.open_users:
            del self._users[next(iter(self._users))]
        _ = spam_filter.version
        if spam_filter.problem:
            raise ModelError(spam_filter.problem)
        return spam_filter

    def filter_to_teach(self, user: str, make: bool) -> Filter:
        """Return the filter of the model that a user teaches; its file may not exist yet.

        make: whether a missing file will be made.
        Raises RefusedError for an invalid name, and for a new user beyond the limit.
        """
        files, max_users = self._config.users, self._config.limits.max_users
        if files is None:
            return self.common
        path = files.path(user)
        if path is None:
            raise RefusedError(PROTOCOL, "(the User header has no name that a model may have)")
        if make and not files.stamp(path):
            if files.reached_limit(max_users):  # any client can make up names
                raise RefusedError(
                    UNAVAILABLE,
                    f"({max_users:,} users have models, and the server creates no more: raise its"
                    " limit, or remove some)",
                )
            files.make_folder(path)
        return self.filter_for_user(user, make=True)

    def version_for(self, user: str) -> FilterVersion:
        """Return the filter that classifies a user's message, with the user's own lists of senders.

        The lists are files next to NAME.json, NAME.allow and NAME.block.  Raises NbspamError if the
        model or a list cannot be used.
        """
        self.reread()
        version, files = self.filter_for_user(user).version, self._config.users
        path = files.path(user) if files else None
        if files is None or path is None or path.suffix != ".json" or self.senders is None:
            return version
        allow, block = path.with_suffix(".allow"), path.with_suffix(".block")
        stamps = [files.stamp(allow), files.stamp(block)]
        before, lists = self._lists.pop(path, ([], self.senders))
        if not any(stamps):
            return version
        if before != stamps:
            lists = SenderLists(
                [f"{LIST_FILE}{allow}"] if stamps[0] else (),
                [f"{LIST_FILE}{block}"] if stamps[1] else (),
                self.senders.auth_hosts,
                self.senders.trust_from,
                common=self.senders,
                follow_links=False,
            )
        self._lists[path] = stamps, lists
        if len(self._lists) > self._config.open_users:
            del self._lists[next(iter(self._lists))]
        return FilterVersion(version.classifier, version.cut_offs, lists)
