"""A model's lock: one writer at a time.

The lock is on a file beside the model, since the model's own inode changes with every write.  It
stays, but where no model came of it; whoever gets a lock looks whether its file is still there,
since a third writer could lock a new one while the second still waits for the old one.

A writer asks again and again rather than waiting in the system, where only a signal could end the
wait, and Python delivers signals to one thread alone.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from nbspam.errors import LockedError, ModelError, Remedy
from nbspam.store.atomic_write import give_to_owner, unwritable
from nbspam.urls import is_url

# Seconds between two attempts.  A server that is taught without a pause leaves the lock free for
# 3 ms between two saves, so another writer gets it within a few of them.
_INTERVAL = 0.01
_SILENT = 1.0  # seconds of waiting before it is said
_COMMAND_LIMIT = 80  # characters of the holder's command line


def _warn(sentence: str) -> None:
    import logging  # 8 ms, for who waits a second

    logging.getLogger("nbspam").warning("nbspam: %s", sentence)


def _ignore(_: str) -> None:
    return


def _never() -> bool:
    return False


class LockWait(NamedTuple):
    """How long a writer waits for a lock, and who hears of it."""

    # Seconds.  The longest that nbspam itself holds a lock is a merge or a pruning: a minute for
    # five million tokens.
    limit: float = 300.0
    say: Callable[[str], None] = _warn  # called once, with a sentence; by default it is logged
    is_over: Callable[[], bool] = _never  # asked before each attempt: whether to give up now


DEFAULT_WAIT = LockWait()
QUIET_WAIT = LockWait(say=_ignore)


@contextmanager
def locked(path: Path, wait: LockWait = DEFAULT_WAIT) -> Iterator[Path]:
    """Hold a model's lock; yields the model's real path, behind any links.

    Waits for the lock's holder; readers need no lock.  Raises ModelError when it cannot be locked,
    LockedError when another holds it for too long.
    """
    if is_url(path):
        raise ModelError(
            f"{path}: a model at a URL cannot be locked while it is changed; work on a file, and"
            " copy it there"
        )
    try:
        path = Path(os.path.realpath(path))  # a link keeps pointing at the model
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG  # it will be created
    except OSError as error:  # links in a circle, a file in a folder's place
        raise unwritable(path, error) from error
    if stat.S_ISDIR(mode):
        raise ModelError(f"{path}: is a folder", Remedy.NAME_MODEL)
    if not stat.S_ISREG(mode):
        raise ModelError(f"{path}: is not a regular file", Remedy.NAME_MODEL)
    lock = path.with_name(f".{path.name}.lock")
    handle = _acquired(path, lock, wait)
    try:
        yield path
    finally:
        if not path.exists():  # nothing was written: nothing is left behind
            with suppress(OSError):
                lock.unlink()
        os.close(handle)


def _acquired(path: Path, lock: Path, wait: LockWait) -> int:
    """Return a handle of the lock file, locked."""
    began = time.monotonic()
    has_said = False
    while True:
        handle = _open_lock(path, lock)
        try:
            while not _is_acquired(handle):
                waited = time.monotonic() - began
                if waited >= wait.limit or wait.is_over():
                    raise _held(path, lock, handle, waited)
                if waited >= _SILENT and not has_said:
                    has_said = True
                    wait.say(f"{path}: waiting for its lock {lock}, held by {_holder(handle)}")
                time.sleep(_INTERVAL)
            if _is_at(handle, lock):
                return handle
        except OSError as error:
            os.close(handle)
            raise unwritable(path, error) from error
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its holder has removed it: another writer may have locked a new one


def _is_acquired(handle: int) -> bool:
    """Lock an open lock file unless another holds it; return whether it is ours."""
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
            os.fchmod(handle, 0o600)  # whatever the umask
            give_to_owner(handle, path)
        except FileExistsError:
            try:
                return os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
            except FileNotFoundError:
                continue  # it has just been removed
            except OSError as error:
                if error.errno == errno.EROFS:
                    raise unwritable(path, error) from error
                raise _unusable(path, lock, error) from error
        except OSError as error:
            raise unwritable(path, error) from error
        return handle


# Who is in the way


def _unusable(path: Path, lock: Path, error: OSError) -> ModelError:
    """Return the error for a lock file that cannot be opened."""
    problem = f"{path}: cannot be locked ({error.strerror}: {lock})"
    with suppress(OSError):
        owner = lock.lstat().st_uid
        if stranger := _stranger(path, owner):
            return ModelError(f"{problem}: its lock belongs to {stranger}; {_OWN_FOLDER}")
        if owner != os.geteuid() and error.errno == errno.EACCES:
            from nbspam.store.ownership import user_name

            return ModelError(f"{problem}; only {user_name(owner)} can change it: run it as them")
    return ModelError(f"{problem}; remove it, or fix its permissions, and run it again")


_OWN_FOLDER = "remove it, and keep the model in a folder that only you can write to"


def _held(path: Path, lock: Path, handle: int, seconds: float) -> LockedError:
    """Return the error for a lock that another holds."""
    problem = (
        f"{path}: after {seconds:.0f} s its lock {lock} is still held by {_holder(handle)}, and"
        " nothing was changed"
    )
    if stranger := _stranger(path, os.fstat(handle).st_uid):
        return LockedError(f"{problem}; the lock belongs to {stranger}: {_OWN_FOLDER}")
    return LockedError(f"{problem}; wait until that has ended, or end it, and run it again")


def _stranger(path: Path, owner: int) -> str:
    """Return who owns a lock if they have no business with the model; otherwise nothing."""
    place = path if path.exists() else path.parent
    if owner in (os.geteuid(), 0, place.stat().st_uid):
        return ""
    from nbspam.store.ownership import user_name

    return f"another user, {user_name(owner)}"


def _holder(handle: int) -> str:
    """Return which process holds a lock, as far as the system says."""
    status = os.fstat(handle)
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        # `1: FLOCK  ADVISORY  WRITE 4711 08:01:123456 0 EOF`
        lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        pid = next(int(f[4]) for f in lines if f[1] == "FLOCK" and f[5] == device and int(f[4]) > 0)
    except (OSError, StopIteration, ValueError, IndexError):
        return "another program"
    command = ""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        command = " ".join(os.fsdecode(word) for word in words).strip()[:_COMMAND_LIMIT]
    return f"process {pid} ({command})" if command else f"process {pid}"
