"""Writing a model: one writer at a time, and the new file replaces the old file in one step.

The lock is on a file next to the model, because the model's own inode changes with every write.
The lock's file contains a stamp of the last write.  The file is removed only if no model was
written.  A writer that gets the lock checks that the lock's file is still there, because the last
holder may have removed the file and another writer may have locked a new one.

A writer polls instead of waiting in a system call, which only a signal could interrupt, and Python
delivers signals only to the main thread.
"""

import errno
import fcntl
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from nbspam.errors import LockedError, ModelError, Remedy


def user_name(number: int) -> str:
    """Return a user's name, or `number 1234` for an unknown user."""
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"number {number}"


def describe_access(path: "str | os.PathLike[str]") -> str:
    """Describe a file's owner and mode in a clause, which is empty if they are unknown."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return ""
    mode = stat.S_IMODE(status.st_mode)
    return f"it belongs to {user_name(status.st_uid)} and has mode {mode:04o}"


def unreadable_error(path: "str | os.PathLike[str]") -> ModelError:
    """Return the error for a model that the user of this process may not open."""
    reader = user_name(os.geteuid())
    why = "a folder above it is closed; let its owner open that"
    if access := describe_access(path):
        why = f"{access}; let its owner change the mode"
    return ModelError(
        f"{path}: the model cannot be read by {reader} (Permission denied): {why} with chmod, or"
        " name another"
    )


def give_to_owner(handle: int, path: Path) -> None:
    """Give a file that root has just created to the owner of the model, or of its folder.

    Otherwise an update by root would take the model from its owner.
    """
    if os.geteuid() == 0:
        owner = (path if path.exists() else path.parent).stat()
        with suppress(OSError):  # root of a container, or a network disk
            os.fchown(handle, owner.st_uid, owner.st_gid)


@contextmanager
def atomic_replacement(path: Path, kind: str, mark: str = "") -> Iterator[IO[bytes]]:
    """Open a new file that replaces the file at `path`, if there is one, in one step at the end.

    A new file has mode 0600.  A replaced file keeps owner, group, mode and access control list, as
    far as this process may set them, and stays intact until the new file is on the disk.
    kind: the file's kind, for errors.
    mark: the writer's process number, which becomes part of the temporary file's name if writers of
    this kind hold no lock.
    Removes the temporary file of a killed writer: under a lock, the file without a number; without
    a lock, files with the number of a process that has ended.
    Raises ModelError if it cannot be written.
    """
    temporary = path.with_name(f".{path.name}{mark and '.'}{mark}.new")
    try:
        if mark:
            _remove_left_behind(path)
        temporary.unlink(missing_ok=True)
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb", buffering=_BUFFER_BYTES) as file:
                os.fchmod(handle, 0o600)
                give_to_owner(handle, path)
                yield file
                file.flush()
                copy_permissions(handle, path)  # again, since writing a large model takes time
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
    except OSError as error:
        raise unwritable_error(path, error, kind) from error


def _remove_left_behind(path: Path) -> None:
    prefix, suffix = f".{path.name}.", ".new"
    for left in path.parent.iterdir():
        mark = left.name.removeprefix(prefix).removesuffix(suffix)
        if left.name == f"{prefix}{mark}{suffix}" and mark.isdecimal():
            try:
                os.kill(int(mark), 0)
            except (ProcessLookupError, OverflowError):
                left.unlink(missing_ok=True)
            except PermissionError:  # another user's process, which runs
                continue


def write_atomically(path: Path, write: Callable[[IO[bytes]], object], kind: str = "model") -> None:
    """Replace a `locked` model by the output of `write`, with `atomic_replacement`."""
    with atomic_replacement(path, kind) as file:
        write(file)
    # on a full disk the stamp is missing, and the next update checks the whole model
    with suppress(OSError):
        handle = os.open(_lock_path(path), os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
        with os.fdopen(handle, "wb") as lock:
            lock.write(_stamp(path))


def is_as_written(path: Path) -> bool:
    """Return whether a file is unchanged since `write_atomically` wrote it."""
    try:
        return _lock_path(path).read_bytes() == _stamp(path)
    except OSError:
        return False


def _stamp(path: Path) -> bytes:
    s = path.stat()
    return b"%d %d %d %d" % (s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)


def _lock_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


_BUFFER_BYTES = 1 << 18


def copy_permissions(handle: int, path: Path) -> None:
    """Give an open file the group, mode and access list of the file at `path`, if it exists.

    Only root can change the owner, and users can give a file only to their own groups.  If the
    group or the list cannot be kept, the file's new group gets the rights of everybody, because the
    group's old rights were meant for the old group.
    """
    try:
        old = path.stat()
    except FileNotFoundError:
        return
    mode = stat.S_IMODE(old.st_mode) & 0o777
    if os.fstat(handle).st_gid != old.st_gid:
        with suppress(OSError):
            os.fchown(handle, -1, old.st_gid)
    if not (os.fstat(handle).st_gid == old.st_gid and _copy_acl(handle, path)):
        mode = mode & 0o707 | (mode & 0o007) << 3
    with suppress(OSError):  # a disk without modes
        os.fchmod(handle, mode)


_ACL_ATTRIBUTE = "system.posix_acl_access"


def _copy_acl(handle: int, path: Path) -> bool:
    """Copy the access control list of the file at `path` to an open file; False if that fails.

    Without it, the folder's default list may allow more than the old file did.
    """
    if sys.platform != "linux":
        return True
    try:
        os.setxattr(handle, _ACL_ATTRIBUTE, os.getxattr(path, _ACL_ATTRIBUTE))
    except OSError as error:
        if error.errno not in (errno.ENODATA, errno.ENOTSUP):
            return False
        with suppress(OSError):  # there is no list
            os.removexattr(handle, _ACL_ATTRIBUTE)
    return True


def unwritable_error(path: Path, error: OSError, kind: str = "model") -> ModelError:
    """Return the error for a file that cannot be written."""
    kept = f"; the {kind} that was there is unchanged" if os.path.exists(path) else ""  # noqa: PTH110 (a closed folder raises)
    return ModelError(
        f"{path}: cannot be written ({error.strerror}){kept}; {_write_remedy(path, error)}"
    )


_DISK_FULL = errno.ENOSPC, errno.EDQUOT, errno.EFBIG


@contextmanager
def temporary_files() -> Iterator[None]:
    """Raise ModelError for a temporary file if the disk is full or there is no folder for it."""
    try:
        yield
    except OSError as error:
        is_nowhere = error.errno == errno.ENOENT and not error.filename  # how `tempfile` reports it
        if error.errno not in _DISK_FULL and not is_nowhere:
            raise  # the error may come from the messages that a program passes in
        import tempfile  # takes 5 ms, and one message does not need it

        folder = "TMPDIR" if is_nowhere else tempfile.gettempdir()
        raise ModelError(
            f"{folder}: a temporary file cannot be written ({error.strerror}); free some space, or"
            " set TMPDIR to a folder that has some"
        ) from error


_WRITE_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space on its disk, and run it again"),
    **dict.fromkeys((errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR), "name another file"),
    errno.EFBIG: "raise the limit on the size of files (ulimit -f), and run it again",
    errno.EROFS: "its disk is mounted read-only: name a file on another",
    errno.ENOENT: "make its folder, or name another file",
}


def _write_remedy(path: Path, error: OSError) -> str:
    """Return the remedy for a file that cannot be written."""
    if error.errno not in (errno.EACCES, errno.EPERM):
        return _WRITE_REMEDIES.get(error.errno or 0, "fix that, and run it again")
    if access := describe_access(path.parent):
        return f"its folder is not writable: {access}; run it as a user who can write there"
    return "a folder above it is closed; run it as a user who can enter it"


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # the folder may be unreadable, or its file system may not support this
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# Between two saves, a server that is taught without a pause leaves the lock free for 3 ms, so
# another writer gets it within a few saves.
_INTERVAL = 0.01  # seconds between two attempts
WARN_AFTER = 1.0  # seconds of waiting


def _warn(sentence: str) -> None:
    import logging  # 8 ms, after a second of waiting

    logging.getLogger("nbspam").warning(sentence)


class LockWait(NamedTuple):
    """How long a writer waits for a lock, and how the writer reports the wait."""

    # Seconds.  Pruning holds the lock longest: a minute for five million tokens.
    limit: float = 300.0
    on_note: Callable[[str], None] = _warn  # called with one sentence; the default logs it
    should_stop: Callable[[], bool] = bool  # called before each attempt; True gives up


DEFAULT_WAIT = LockWait()
QUIET_WAIT = LockWait(on_note=lambda _: None)


@contextmanager
def locked(path: Path, wait: LockWait = DEFAULT_WAIT) -> Iterator[Path]:
    """Hold a model's lock; yields the model's real path, behind any links.

    Waits for the lock's holder; readers need no lock.  Raises ModelError if it cannot be locked,
    LockedError if another program holds it for too long.
    """
    try:
        path = Path(os.path.realpath(path))  # a link keeps pointing at the model
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG  # the model will be created
    except OSError as error:  # links in a circle, a file in a folder's place
        raise unwritable_error(path, error) from error
    except ValueError as error:  # such as a NUL in the name
        raise ModelError(f"{path}: no file can have this name", Remedy.NAME_MODEL) from error
    if stat.S_ISDIR(mode):
        raise ModelError(f"{path}: is a folder", Remedy.NAME_MODEL)
    if not stat.S_ISREG(mode):
        raise ModelError(f"{path}: is not a regular file", Remedy.NAME_MODEL)
    lock = _lock_path(path)
    handle = _acquire(path, lock, wait)
    try:
        yield path
    finally:
        if not path.exists():  # if nothing was written, nothing is left behind
            with suppress(OSError):
                lock.unlink()
        os.close(handle)


def _acquire(path: Path, lock: Path, wait: LockWait) -> int:
    """Lock the lock's file, and return its handle."""
    began = time.monotonic()
    has_warned = False
    while True:
        with ExitStack() as handles:
            handle = _open_lock(path, lock)
            handles.callback(os.close, handle)
            try:
                while not _try_lock(handle):
                    waited = time.monotonic() - began
                    if waited >= wait.limit or wait.should_stop():
                        raise _lock_timeout_error(path, lock, waited)
                    if waited >= WARN_AFTER and not has_warned:
                        has_warned = True
                        wait.on_note(
                            f"{path}: waiting for its lock {lock}, held by another program"
                        )
                    time.sleep(_INTERVAL)
                # If the last holder has removed the lock's file, another writer may have locked a
                # new one.
                if _is_at(handle, lock):
                    handles.pop_all()
                    return handle
            except OSError as error:
                raise unwritable_error(path, error) from error


def _try_lock(handle: int) -> bool:
    """Lock an open lock file; return False if another program holds it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(handle: int, lock: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), lock.lstat())
    except FileNotFoundError:
        return False


def _open_lock(path: Path, lock: Path) -> int:
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            os.fchmod(handle, 0o600)  # the umask may have removed rights
            give_to_owner(handle, path)
        except FileExistsError:
            try:
                return os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
            except FileNotFoundError:
                continue  # another writer has just removed the lock's file
            except OSError as error:
                if error.errno == errno.EROFS:
                    raise unwritable_error(path, error) from error
                raise _unusable_lock_error(path, lock, error) from error
        except OSError as error:
            raise unwritable_error(path, error) from error
        return handle


def _unusable_lock_error(path: Path, lock: Path, error: OSError) -> ModelError:
    """Return the error for a lock file that cannot be opened."""
    return ModelError(
        f"{path}: cannot be locked ({error.strerror}: {lock}): {describe_access(lock)}; remove it,"
        " or run it as its owner"
    )


def _lock_timeout_error(path: Path, lock: Path, seconds: float) -> LockedError:
    """Return the error for a lock that another program holds for too long."""
    return LockedError(
        f"{path}: after {seconds:.0f} s another program still holds its lock {lock}"
        f" ({describe_access(lock)}), and nothing was changed; wait until it ends, or end it"
        f" (fuser {lock} names it), and run it again"
    )
