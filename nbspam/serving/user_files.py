"""Where the models of users are.

Whoever can connect names the user, so a name is a file name from a stranger: only letters, digits
and `_.@+-`, no dot or dash first, at most 128 characters, and nothing below the folder may be a
link.  The folder is the server's own: where others can write, a file could become a link between
two looks at it.
"""

import os
import re
import stat
from itertools import islice
from pathlib import Path

from nbspam.errors import ModelError, ServingError

USER = "%u"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,127}")

Stamp = tuple[int, ...]  # differs between versions of a file; empty: there is none


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
