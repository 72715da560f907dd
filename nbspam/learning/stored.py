"""What one pass over the sources keeps for the next: arrays in a file, and not in memory."""

import mmap
import os
import tempfile
import weakref
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

_ALIGNED = 8  # bytes


class Stored:
    """Named arrays in a file.

    In a folder of this machine it goes to another process by its name, and the folder's owner
    removes it.  Without a folder it is a worker's of a cluster: it goes elsewhere with its bytes,
    and its file goes when nothing refers to it any more.
    """

    def __init__(self, folder: str | None, **arrays: NDArray[Any]) -> None:
        """Write the arrays."""
        self._path = _new_path(folder)
        self._stays = folder is not None
        self._layout: dict[str, tuple[str, tuple[int, ...], int]] = {}  # type, shape, place
        end = 0
        with open(self._path, "xb", opener=_private) as file:
            for name, array in arrays.items():
                own = np.ascontiguousarray(array)
                self._layout[name] = own.dtype.str, own.shape, end
                file.write(own.data)
                end += own.nbytes + file.write(bytes(-own.nbytes % _ALIGNED))
        self._keep(end)

    def _keep(self, size: int) -> None:
        self._size = size
        if not self._stays:
            weakref.finalize(self, self._path.unlink, missing_ok=True)

    def __reduce__(self) -> tuple[object, ...]:
        """Go to another process: by name where it has the same files, else with the bytes."""
        content = None if self._stays else self._path.read_bytes()
        return _restored, (str(self._path), self._layout, self._size, content)

    def __sizeof__(self) -> int:
        """Return the bytes to move if it is needed elsewhere, by which Dask chooses the worker."""
        return self._size

    def __contains__(self, name: str) -> bool:
        return name in self._layout

    def get(self, name: str) -> NDArray[Any] | None:
        """Return an array; None if there is none of this name."""
        return self[name] if name in self._layout else None

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return an array, read-only, of the file's own pages, as long as it is used."""
        kind, shape, place = self._layout[name]
        if 0 in shape:
            return np.empty(shape, kind)
        with self._path.open("rb") as file:
            pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(pages, kind, int(np.prod(shape)), place).reshape(shape)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _restored(
    name: str, layout: dict[str, tuple[str, tuple[int, ...], int]], size: int, content: bytes | None
) -> Stored:
    stored = Stored.__new__(Stored)
    stored._layout, stored._stays = layout, content is None
    stored._path = Path(name) if content is None else _new_path(None)
    if content is not None:
        stored._path.write_bytes(content)
    stored._keep(size)
    return stored


def _new_path(folder: str | None) -> Path:
    """Return the name of a new file; None: in the folder of a cluster's worker."""
    if folder is None:
        from distributed import get_worker

        try:
            folder = get_worker().local_directory
        except ValueError:  # this is no worker
            folder = tempfile.gettempdir()
    return Path(folder) / f"nbspam-{uuid4().hex}"
