"""Writing a model: one writer at a time, and the new file replaces the old one in one step.

The lock is on a file beside the model, since the model's own inode changes with every write.  The
file stays, unless no model was written, and holds a stamp of the last write.  A writer that gets
the lock checks that its file still exists, since another writer could lock a new file while it
waits for the old one.

A writer polls rather than waiting in the system, where only a signal could end the wait, and Python
delivers signals to one thread alone.
"""

import _signal  # type: ignore[import-not-found]  # `signal` without what it loads
import errno
import fcntl
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, NamedTuple

from nbspam.errors import LockedError, ModelError, Remedy


def user_name(number: int) -> str:
    """Return a user's name, or `number 1234` for one whom the system does not know."""
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"number {number}"


def described_access(path: "str | os.PathLike[str]") -> str:
    """Return a clause on a file's owner and mode; empty if they are unknown."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return ""
    mode = stat.S_IMODE(status.st_mode)
    return f"it belongs to {user_name(status.st_uid)} and has mode {mode:04o}"


def unreadable(path: "str | os.PathLike[str]") -> ModelError:
    """Return the error for a model that the user of this process may not open."""
    reader = user_name(os.geteuid())
    why = "a folder above it is closed; let its owner open that"
    if access := described_access(path):
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


_unfinished = set[tuple[int, Path]]()  # files to remove if a signal ends a process


def _end(number: int, _: object) -> None:
    """End the process by a signal, as by default, but first remove its unfinished files."""
    for process, file in tuple(_unfinished):
        if process == os.getpid():  # and not the one that it was forked from
            with suppress(OSError):
                file.unlink()
    _signal.signal(number, _signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # the first process of a container survives that


@contextmanager
def _removed_if_killed(file: Path) -> Iterator[None]:
    """Remove a file if a signal that would end this process at once comes meanwhile.

    In a thread other than the main one this does nothing by itself.  Ctrl-C and a lost reader
    usually raise an exception instead.
    """
    unfinished, before = (os.getpid(), file), dict[int, object]()
    _unfinished.add(unfinished)
    with suppress(ValueError):  # not the main thread
        for number in (_signal.SIGTERM, _signal.SIGHUP, _signal.SIGINT, _signal.SIGPIPE):
            if _signal.getsignal(number) in (_signal.SIG_DFL, _end):
                before[number] = _signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            _signal.signal(number, handler)
        _unfinished.discard(unfinished)


@contextmanager
def replaced(path: Path, what: str, mark: str = "") -> Iterator[IO[bytes]]:
    """Open a new file that replaces the old one, if there is one, in one step at the end.

    A new file has mode 0600.  A replaced one keeps owner, group, mode and access control list, as
    far as this process may set them, and stays whole until the new one is on the disk.
    what: the file's kind, for errors.
    mark: tells the temporary files of several writers apart; under a lock there is one writer, and
        a file of this name was left by one that was killed.
    Raises ModelError when it cannot be written.
    """
    temporary = path.with_name(f".{path.name}{mark}.new")
    try:
        with _removed_if_killed(temporary):
            temporary.unlink(missing_ok=True)
            try:
                handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(handle, "wb", buffering=_BUFFER) as file:
                    os.fchmod(handle, 0o600)
                    give_to_owner(handle, path)
                    yield file
                    file.flush()
                    keep_access(handle, path)  # again, since writing a large model takes time
                    os.fsync(file.fileno())
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        _sync_folder(path.parent)
    except OSError as error:
        raise unwritable(path, error, what) from error


def write_atomically(path: Path, write: Callable[[IO[bytes]], object], what: str = "model") -> None:
    """Replace a model that is `locked` by the output of `write`; raises ModelError.

    The rest is as of `replaced`.
    """
    with replaced(path, what) as file:
        write(file)
    with suppress(OSError):  # a full disk: it will be checked
        handle = os.open(_lock_of(path), os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
        with os.fdopen(handle, "wb") as lock:
            lock.write(_stamp(path))


def is_as_written(path: Path) -> bool:
    """Return whether a file is unchanged since `write_atomically` wrote it."""
    try:
        return _lock_of(path).read_bytes() == _stamp(path)
    except OSError:
        return False


def _stamp(path: Path) -> bytes:
    s = path.stat()
    return b"%d %d %d %d" % (s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)


def _lock_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


_BUFFER = 1 << 18


def keep_access(handle: int, path: Path) -> None:
    """Give an open file the group, mode and access list of the one at `path`, if there is one.

    Only root can give a file to another owner, and others only to their own groups.  If group or
    list cannot be kept, the group gets the rights of all others: its bits were another group's.
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
    """Copy the access control list of the file at `path` to an open file; return whether it has it.

    A folder's default list must not allow more than the old file did.
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
    kept = f"; the {what} that was there is unchanged" if os.path.exists(path) else ""  # noqa: PTH110 (a closed folder raises)
    return ModelError(f"{path}: cannot be written ({error.strerror}){kept}; {_mended(path, error)}")


_NO_ROOM = errno.ENOSPC, errno.EDQUOT, errno.EFBIG


@contextmanager
def temporary_files() -> Iterator[None]:
    """Raise ModelError for a temporary file without room, or without any folder for it."""
    try:
        yield
    except OSError as error:
        is_nowhere = error.errno == errno.ENOENT and not error.filename  # as `tempfile` says it
        if error.errno not in _NO_ROOM and not is_nowhere:
            raise  # it may come from the messages that a program passes in
        import tempfile  # with random 5 ms, which one message does without

        where = "TMPDIR" if is_nowhere else tempfile.gettempdir()
        raise ModelError(
            f"{where}: a temporary file cannot be written ({error.strerror}); free some space, or"
            " set TMPDIR to a folder that has some"
        ) from error


_MENDED = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space on its disk, and run it again"),
    **dict.fromkeys((errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR), "name another file"),
    errno.EFBIG: "raise the limit on the size of files (ulimit -f), and run it again",
    errno.EROFS: "its disk is mounted read-only: name a file on another",
    errno.ENOENT: "make its folder, or name another file",
}


def _mended(path: Path, error: OSError) -> str:
    """Return what makes a model writable, by the reason why it is not."""
    if error.errno not in (errno.EACCES, errno.EPERM):
        return _MENDED.get(error.errno or 0, "fix that, and run it again")
    if access := described_access(path.parent):
        return f"its folder is not writable: {access}; run it as a user who can write there"
    return "a folder above it is closed; run it as a user who can enter it"


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # it may be written but not read, or its file system cannot
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# Seconds between two attempts.  A server that is taught without a pause leaves the lock free for
# 3 ms between two saves, so another writer gets it within a few of them.
_INTERVAL = 0.01
SILENT = 1.0  # seconds of waiting before it is said
_COMMAND_LIMIT = 80  # characters of the holder's command line


def _warn(sentence: str) -> None:
    import logging  # 8 ms, after a second of waiting

    logging.getLogger("nbspam").warning("nbspam: %s", sentence)


class LockWait(NamedTuple):
    """How long a writer waits for a lock, and how it reports that."""

    # Seconds.  The longest that nbspam itself holds a lock is a pruning: a minute for
    # five million tokens.
    limit: float = 300.0
    say: Callable[[str], None] = _warn  # gets one sentence; by default logs it
    is_over: Callable[[], bool] = bool  # whether to give up, called before each attempt


DEFAULT_WAIT = LockWait()
QUIET_WAIT = LockWait(say=lambda _: None)


@contextmanager
def locked(path: Path, wait: LockWait = DEFAULT_WAIT) -> Iterator[Path]:
    """Hold a model's lock; yields the model's real path, behind any links.

    Waits for the lock's holder; readers need no lock.  Raises ModelError when it cannot be locked,
    LockedError when another holds it for too long.
    """
    try:
        path = Path(os.path.realpath(path))  # a link keeps pointing at the model
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG  # it will be created
    except OSError as error:  # links in a circle, a file in a folder's place
        raise unwritable(path, error) from error
    except ValueError as error:  # such as a NUL in it
        raise ModelError(f"{path}: no file can have this name", Remedy.NAME_MODEL) from error
    if stat.S_ISDIR(mode):
        raise ModelError(f"{path}: is a folder", Remedy.NAME_MODEL)
    if not stat.S_ISREG(mode):
        raise ModelError(f"{path}: is not a regular file", Remedy.NAME_MODEL)
    lock = _lock_of(path)
    handle = _acquired(path, lock, wait)
    try:
        with nullcontext() if path.exists() else _removed_if_killed(lock):
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
        with ExitStack() as handles:
            handle = _open_lock(path, lock)
            handles.callback(os.close, handle)
            try:
                while not _is_ours(handle):
                    waited = time.monotonic() - began
                    if waited >= wait.limit or wait.is_over():
                        raise _held(path, lock, handle, waited)
                    if waited >= SILENT and not has_said:
                        has_said = True
                        wait.say(f"{path}: waiting for its lock {lock}, held by {_holder(handle)}")
                    time.sleep(_INTERVAL)
                # Else its holder has removed it: another writer may have locked a new one.
                if _is_at(handle, lock):
                    handles.pop_all()
                    return handle
            except OSError as error:
                raise unwritable(path, error) from error


def _is_ours(handle: int) -> bool:
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


# The holder of a lock


def _unusable(path: Path, lock: Path, error: OSError) -> ModelError:
    """Return the error for a lock file that cannot be opened."""
    problem = f"{path}: cannot be locked ({error.strerror}: {lock})"
    with suppress(OSError):
        owner = lock.lstat().st_uid
        if stranger := _stranger(path, owner):
            return ModelError(f"{problem}: its lock belongs to {stranger}; {_OWN_FOLDER}")
        if owner != os.geteuid() and error.errno == errno.EACCES:
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
    return LockedError(f"{problem}; wait until that ends, or end it, and run it again")


def _stranger(path: Path, owner: int) -> str:
    """Return the owner of a lock, if it is a user unrelated to the model; else an empty string."""
    place = path if path.exists() else path.parent
    if owner in (os.geteuid(), 0, place.stat().st_uid):
        return ""
    return f"another user, {user_name(owner)}"


def _holder(handle: int) -> str:
    """Return the process that holds a lock, as far as the system tells."""
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
