import hashlib

import numpy as np

from nbspam.learning.batch import in_sample, sample_end


def test_few_messages_are_all_fitted_to():
    assert sample_end(10_000_000) is None
    assert sample_end(10_000_001) is not None


def test_the_sample_is_about_the_limit_whatever_the_order():
    digests = [
        hashlib.blake2b(bytes([i % 256, i // 256]), digest_size=16).digest() for i in range(9999)
    ]
    chosen = in_sample(b"".join(digests), sample_end(9999, 1000))
    assert 900 < chosen.sum() < 1100
    backwards = in_sample(b"".join(reversed(digests)), sample_end(9999, 1000))
    assert (chosen == backwards[::-1]).all()
    assert in_sample(b"\x00" * 16 + b"\xff" * 16, sample_end(2, 1)).tolist() == [True, False]
    assert chosen.dtype == np.bool_
