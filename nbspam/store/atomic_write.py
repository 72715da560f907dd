"""Atomic writes: a new file replaces the old one in one step, while `lock` keeps others away."""

import os
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
    """Put what `write` writes in place of a model that is `locked`; mode 0600.

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
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
    except OSError as error:
        raise unwritable(path, error, what) from error


_BUFFER = 1 << 18


def unwritable(path: Path, error: OSError, what: str = "model") -> ModelError:
    """Return the error for a model that the system does not let us write."""
    there = f"; the {what} that was there is unchanged" if path.exists() else ""
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
