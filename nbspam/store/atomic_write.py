"""Atomic writes: a new file replaces the old one in one step, while `lock` keeps others away."""

import errno
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from nbspam.errors import ModelError


def give_to_owner(handle: int, path: Path) -> None:
    """Give a file that root has just created to the owner of the model, or of its folder.

    Otherwise an update by root would take the model from its owner.
    """
    if os.geteuid() == 0:
        owner = (path if path.exists() else path.parent).stat()
        with suppress(OSError):  # root of a container, or a network disk
            os.fchown(handle, owner.st_uid, owner.st_gid)


def write_atomically(path: Path, write: Callable[[IO[bytes]], None], what: str = "model") -> None:
    """Put what `write` writes in place of a model that is `locked`.

    A new file has the mode 0600; of one that was there, owner, group, mode and access control list
    stay, as far as whoever writes may set them.
    Whatever happens on the way, the old file stays whole until the new one is on the disk.
    what: the file's kind, for errors.
    Raises ModelError when it cannot be written.
    """
    # All writers use this name: under the lock, such a file was left by a killed writer.
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.unlink(missing_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb", buffering=_BUFFER) as file:
                os.fchmod(handle, 0o600)
                give_to_owner(handle, path)
                write(file)
                file.flush()
                keep_access(handle, path)  # as it is now, though a large model took its time
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
    except OSError as error:
        raise unwritable(path, error, what) from error


_BUFFER = 1 << 18


def keep_access(handle: int, path: Path) -> None:
    """Let the same people read and write an open file as the one at `path`, if there is one.

    Only root can give a file to another owner, and others only to their own groups.  If the group
    or the list cannot be kept, the group may do what everybody may: its bits were another group's.
    """
    try:
        old = path.stat()
    except FileNotFoundError:
        return
    mode = stat.S_IMODE(old.st_mode) & 0o777
    if os.fstat(handle).st_gid != old.st_gid:
        with suppress(OSError):
            os.fchown(handle, -1, old.st_gid)
    if not (os.fstat(handle).st_gid == old.st_gid and _has_same_list(handle, path)):
        mode = mode & 0o707 | (mode & 0o007) << 3
    with suppress(OSError):  # a disk without modes
        os.fchmod(handle, mode)


_LIST = "system.posix_acl_access"  # whose group bits are the list's mask


def _has_same_list(handle: int, path: Path) -> bool:
    """Give an open file the access control list of the one at `path`; return whether it has it.

    A folder's default list must not do more for the new file than the old one allowed.
    """
    if sys.platform != "linux":
        return True
    try:
        os.setxattr(handle, _LIST, os.getxattr(path, _LIST))
    except OSError as error:
        if error.errno not in (errno.ENODATA, errno.ENOTSUP):
            return False
        with suppress(OSError):  # there is none
            os.removexattr(handle, _LIST)
    return True


def unwritable(path: Path, error: OSError, what: str = "model") -> ModelError:
    """Return the error for a model that the system does not let us write."""
    there = f"; the {what} that was there is unchanged" if os.path.exists(path) else ""  # noqa: PTH110 (a closed folder raises)
    return ModelError(
        f"{path}: cannot be written ({error.strerror}){there}; {_mended(path, error)}"
    )


def _mended(path: Path, error: OSError) -> str:
    """Return what makes a model writable, by the reason why it is not."""
    from nbspam.store.ownership import described_access  # for errors only

    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return "free some space on its disk, and run it again"
        case errno.EFBIG:
            return "raise the limit on the size of files (ulimit -f), and run it again"
        case errno.EROFS:
            return "its disk is mounted read-only: name a file on another"
        case errno.ENAMETOOLONG | errno.ELOOP | errno.ENOTDIR:
            return "name another file"
        case errno.ENOENT:
            return "make its folder, or name another file"
        case errno.EACCES | errno.EPERM:
            if access := described_access(path.parent):
                return f"its folder may not be written to: {access}; run it as a user who may"
            return "a folder on the way to it is closed; run it as a user who may enter it"
    return "fix that, and run it again"


def _sync_folder(folder: Path) -> None:
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return  # a folder that may be written but not read
    try:
        os.fsync(handle)
    except OSError:
        return  # not every file system can
    finally:
        os.close(handle)
