"""The features of many messages in a temporary file: a row each, as a calibration is fitted to."""

import os
import weakref
from tempfile import TemporaryFile

import numpy as np

from nbspam.bayes.matrix import Floats

_FLOAT = 8  # bytes


class FeatureFile:
    """Rows of so many features; see `evidence_matrix.Inputs`."""

    def __init__(self, width: int) -> None:
        """Begin without a row."""
        self._width, self._rows = width, 0
        self._file = TemporaryFile()  # noqa: SIM115 (as long as this)
        weakref.finalize(self, self._file.close)

    def append(self, rows: Floats) -> None:
        """Add rows, (n, width)."""
        self._file.write(np.ascontiguousarray(rows).tobytes())
        self._rows += len(rows)

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, place: slice) -> Floats:
        """Return some rows; the place is as `range` has it, with a step of 1."""
        first, last, _ = place.indices(self._rows)
        self._file.flush()
        width = self._width * _FLOAT
        content = os.pread(self._file.fileno(), (last - first) * width, first * width)
        return np.frombuffer(content).reshape(-1, self._width)
