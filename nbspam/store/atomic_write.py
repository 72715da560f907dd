"""Atomic writes: one writer at a time, and a new file replaces the old one in one step.

The lock is on a file beside the model, since the model's own inode changes with every write.  It
stays, but where no model came of it; whoever gets a lock looks whether its file is still there,
since a third writer could lock a new one while the second still waits for the old one.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from nbspam.errors import ModelError, Remedy


@contextmanager
def locked(path: Path) -> Iterator[Path]:
    """Hold a model's lock; yields the model's real path, behind any links.

    Waits for the lock's holder; readers need no lock.  Raises ModelError when it cannot be locked.
    """
    try:
        path = Path(os.path.realpath(path))  # a link keeps pointing at the model
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG  # it will be created
    except OSError as error:  # links in a circle, a file in a folder's place
        raise _unwritable(path, error) from error
    if stat.S_ISDIR(mode):
        raise ModelError(f"{path}: is a folder", Remedy.NAME_MODEL)
    if not stat.S_ISREG(mode):
        raise ModelError(f"{path}: is not a regular file", Remedy.NAME_MODEL)
    lock = path.with_name(f".{path.name}.lock")
    handle = _acquired(path, lock)
    try:
        yield path
    finally:
        if not path.exists():  # nothing was written: nothing is left behind
            with suppress(OSError):
                lock.unlink()
        os.close(handle)


def _acquired(path: Path, lock: Path) -> int:
    """Return a handle of the lock file, locked."""
    while True:
        handle = _open_lock(path, lock)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_at(handle, lock):
                return handle
        except OSError as error:
            os.close(handle)
            raise _unwritable(path, error) from error
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its holder has removed it: another writer may have locked a new one


def _is_at(handle: int, lock: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), lock.lstat())
    except FileNotFoundError:
        return False


def _open_lock(path: Path, lock: Path) -> int:
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            os.fchmod(handle, 0o600)  # whatever the umask
            _give_to_owner(handle, path)
        except FileExistsError:
            try:
                return os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
            except FileNotFoundError:
                continue  # it has just been removed
            except OSError as error:
                if error.errno == errno.EROFS:
                    raise _unwritable(path, error) from error
                raise ModelError(
                    f"{path}: cannot be locked ({error.strerror}: {lock}); remove it, or fix its"
                    " permissions, and run it again"
                ) from error
        except OSError as error:
            raise _unwritable(path, error) from error
        return handle


def _give_to_owner(handle: int, path: Path) -> None:
    """Give a file that root has just created to the owner of the model, or of its folder.

    Otherwise an update by root would take the model from its owner.
    """
    if os.geteuid() == 0:
        owner = (path if path.exists() else path.parent).stat()
        with suppress(OSError):  # root of a container, or a network disk
            os.fchown(handle, owner.st_uid, owner.st_gid)


def write_atomically(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Put what `write` writes in place of a model that is `locked`; mode 0600.

    Whatever happens on the way, the old file stays whole until the new one is on the disk.
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
                _give_to_owner(handle, path)
                write(file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error


_BUFFER = 1 << 18


def _unwritable(path: Path, error: OSError) -> ModelError:
    there = "; the model that was there is unchanged" if path.exists() else ""
    return ModelError(
        f"{path}: cannot be written ({error.strerror}){there}; free the space or fix the"
        " permissions, and run it again"
    )


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
