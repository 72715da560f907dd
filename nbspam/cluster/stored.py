"""What a worker keeps for a later pass: arrays in a file of its own, and not in its memory.

Whoever gets it on another machine gets the file's bytes with it, and a file of its own.  The file
goes when nothing refers to it any more, and with the worker's folder when that is cleaned up.
"""

import tempfile
import weakref
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
Arrays = Iterable[tuple[str, NDArray[Any]]]


class Stored:
    """Named arrays in a file, and a few words about them."""

    def __init__(self, arrays: Arrays, about: object = None) -> None:
        """Write the arrays, one at a time; about: goes where this goes, so it is small."""
        path = _new_path()
        with zipfile.ZipFile(path, "w") as archive:
            for name, array in arrays:
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
        self._keep(path, about)

    def _keep(self, path: Path, about: object) -> None:
        self._path, self.about = path, about
        self._size = path.stat().st_size
        self._made: Any = None
        weakref.finalize(self, path.unlink, missing_ok=True)

    def __reduce__(self) -> tuple[object, ...]:
        """Go to another machine with the file's bytes."""
        return restored, (self._path.read_bytes(), self.about)

    def __sizeof__(self) -> int:
        """Return the bytes to move if it is needed elsewhere, by which Dask chooses the worker."""
        return self._size

    @property
    def names(self) -> frozenset[str]:
        """The names of the arrays."""
        with np.load(self._path, allow_pickle=False) as archive:
            return frozenset(archive.files)

    def load(self, name: str) -> NDArray[Any]:
        """Return an array."""
        with np.load(self._path, allow_pickle=False) as archive:
            found: NDArray[Any] = archive[name]
            return found

    def made(self, make: Callable[["Stored"], T]) -> T:
        """Return what `make` makes of the arrays, kept in memory for the next time."""
        if self._made is None:
            self._made = make(self)
        found: T = self._made
        return found


def restored(content: bytes, about: object) -> Stored:
    """Return a copy of what was stored on another machine."""
    path = _new_path()
    path.write_bytes(content)
    stored = Stored.__new__(Stored)
    stored._keep(path, about)
    return stored


def _new_path() -> Path:
    """Return the name of a new file in the worker's folder."""
    from distributed import get_worker

    try:
        folder = get_worker().local_directory
    except ValueError:  # this is no worker
        folder = tempfile.gettempdir()
    return Path(folder) / f"nbspam-{uuid4().hex}"
