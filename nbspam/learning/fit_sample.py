"""Which messages the calibrations are fitted to: all of them, or of very many a sample.

A calibration has a dozen coefficients, and ten million messages say no less of them than a hundred
million do.  The sample is by digest, which is as good as random and the same wherever and in which
order the messages are read: those whose digest, as a number from 0 to 2^128, is below the limit's
share of that.  So a message is drawn with all its copies, or not at all.
"""

import numpy as np

from nbspam.bayes.matrix import Booleans

FIT_LIMIT = 10_000_000  # messages, about
_DIGEST = 16  # bytes


def sample_end(n: int, limit: int = FIT_LIMIT) -> int | None:
    """Return the first 64 bits of a digest below which a message is in the sample; None: all are.

    n: how many messages there are.
    """
    return None if n <= limit else (limit << 64) // n


def in_sample(digests: bytes, end: int) -> Booleans:
    """Return which messages are in the sample, (n,); digests: of all, one after the other."""
    first = np.frombuffer(digests, dtype=">u8").reshape(-1, _DIGEST // 8)[:, 0]
    return np.asarray(first < np.uint64(end))
