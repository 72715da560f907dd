from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.learning.update import moves

ROWS = st.integers(1, 4).flatmap(
    lambda width: st.tuples(*[st.lists(st.integers(0, 4), min_size=width, max_size=width)] * 2)
)


def after(learned, steps):
    row = list(learned)
    for source, target in steps:
        if source is not None:
            row[source] -= 1
            assert row[source] >= 0
        row[target] += 1
    return row


@given(ROWS)
def test_each_class_is_brought_up_to_what_was_found_and_not_above_it(rows):
    learned, found = rows
    steps = moves(*rows)
    reached = after(learned, steps)
    for n, m, k in zip(reached, found, learned, strict=True):
        assert m <= n <= max(m, k)
    assert moves(reached, found) == []  # what was brought up once stays
    # A message is moved rather than learned again.
    missing = sum(max(0, m - n) for n, m in zip(learned, found, strict=True))
    surplus = sum(max(0, n - m) for n, m in zip(learned, found, strict=True))
    assert len(steps) == missing
    assert sum(source is not None for source, _ in steps) == min(missing, surplus)


@each(
    "learned, found, expected",
    [
        ([0, 0], [1, 0], [(None, 0)]),
        ([0, 0], [1, 1], [(None, 0), (None, 1)]),
        ([1, 0], [1, 0], []),
        ([1, 0], [0, 0], []),
        ([0, 1], [1, 0], [(1, 0)]),
        ([0, 1], [1, 1], [(None, 0)]),
        ([0, 1], [3, 0], [(1, 0), (None, 0), (None, 0)]),
        ([2, 0], [1, 1], [(0, 1)]),
        ([1, 1, 0], [0, 0, 1], [(0, 2)]),
    ],
)
def test_moves_of_a_few_rows(learned, found, expected):
    assert moves(learned, found) == expected
