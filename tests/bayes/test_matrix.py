"""The arrays' weights and joints are held to scikit-learn's in learning/test_event_models.py."""

import numpy as np
from hypothesis import given
from random_messages import Messages, messages


@given(messages())
def test_counts_are_the_sums_of_each_class(found):
    expected = [found.dense[found.labels == k].sum(axis=0) for k in range(found.n_classes)]
    assert np.array(expected).tolist() == found.counts.tolist()
    empty = Messages(np.array([[1, 0], [1, 1]]), np.array([0, 2]), 3)
    assert empty.counts.tolist() == [[1, 0], [0, 0], [1, 1]]
