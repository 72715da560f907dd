"""One writer at a time, and a new file in place of the old one in one step.

The lock is on a file beside the model, since the model's own inode changes with every write.  It
stays there: to remove it would let a third writer in beside one that still waits for it.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from nbspam.errors import ModelError


@contextmanager
def locked(path: Path) -> Iterator[Path]:
    """Hold a model's lock; yields where the model really is, behind any links.

    Waits for whoever holds it; readers need none.  Raises ModelError when it cannot be locked.
    """
    path = Path(os.path.realpath(path))  # a link keeps pointing at the model
    if path.is_dir():
        raise ModelError(f"{path}: is a folder; give --model a file's name")
    if path.exists() and not path.is_file():
        raise ModelError(f"{path}: is no ordinary file; give --model another name")
    try:
        handle = os.open(
            path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600
        )
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            raise _unwritable(path, error) from error
        yield path
    finally:
        os.close(handle)


def replace(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Put what `write` writes in place of a model that is `locked`; mode 0600.

    Whatever happens on the way, the old file stays whole until the new one is on the disk.
    Raises ModelError when it cannot be written.
    """
    # One name for all: under the lock, what is there is what a killed writer has left.
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.unlink(missing_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb", buffering=_BUFFER) as file:
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
        f"{path}: cannot be written ({error.strerror}){there}; free the space or mend the"
        " permissions and run it again"
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
