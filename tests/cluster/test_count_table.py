import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("distributed", reason="Dask is not installed")

from nbspam.cluster.count_table import CountTable, between, key_ranges, loaded, merged
from nbspam.cluster.feature_file import FeatureFile

COUNTS = st.dictionaries(
    st.text('ab"\\\xe9', min_size=1, max_size=3), st.tuples(st.integers(0, 9), st.integers(0, 9))
)


def table(counts, labels=("ham", "spam")):
    keys = sorted(counts)
    rows = np.array([counts[key] for key in keys], dtype=np.int64).reshape(-1, 2)
    return CountTable(keys, labels, rows.T)


def as_counter(found):
    pairs = Counter()
    for label, row in zip(found.labels, found.counts.tolist(), strict=True):
        pairs.update({(label, key): n for key, n in zip(found.keys, row, strict=True)})
    return pairs


@given(st.lists(COUNTS, min_size=1, max_size=4), st.integers(1, 5))
def test_ranges_merge_to_the_whole(parts, n):
    tables = [
        table(part, ("ham", "spam") if i % 2 else ("ham", "odd")) for i, part in enumerate(parts)
    ]
    whole = merged(tables)
    assert as_counter(whole) == sum(map(as_counter, tables), Counter())
    assert whole.keys == sorted(whole.keys)
    ranges = key_ranges(whole.keys, n)
    cut = [merged([loaded(between(each.stored(), *place)) for each in tables]) for place in ranges]
    assert [key for part in cut for key in part.keys] == whole.keys
    assert sum(map(as_counter, cut), Counter()) == as_counter(whole)


def test_what_is_stored_goes_elsewhere_with_its_file_and_the_file_goes_with_it():
    before = table({"a": (1, 2), "b\xe9": (0, 3)})
    stored = before.stored()
    path = stored._path
    copy = pickle.loads(pickle.dumps(stored))
    assert copy._path != path
    del stored
    assert not path.exists()
    found = loaded(copy)
    assert (found.keys, found.labels) == (before.keys, before.labels)
    assert (found.counts == before.counts).all()


def test_features_come_back_from_the_disk():
    rows, file = np.arange(60.0).reshape(-1, 3), FeatureFile(3)
    for part in (rows[:7], rows[7:7], rows[7:]):
        file.append(part)
    assert len(file) == 20
    assert (file[slice(5, 12)] == rows[5:12]).all()
    assert (file[slice(15, 99)] == rows[15:]).all()
