import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.learning.ledger import moves

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
def test_each_class_is_brought_up_to_what_was_found(rows):
    learned, found = rows
    assert all(n >= m for n, m in zip(after(learned, moves(*rows)), found, strict=True))


@given(ROWS)
def test_no_class_is_brought_above_what_was_found(rows):
    learned, found = rows
    reached = after(learned, moves(*rows))
    assert all(n <= max(m, k) for n, m, k in zip(reached, found, learned, strict=True))


@given(ROWS)
def test_there_are_no_more_steps_than_messages_missing(rows):
    learned, found = rows
    missing = sum(max(0, m - n) for n, m in zip(learned, found, strict=True))
    assert len(moves(*rows)) == missing


@given(ROWS)
def test_a_message_is_moved_rather_than_learned_again(rows):
    learned, found = rows
    missing = sum(max(0, m - n) for n, m in zip(learned, found, strict=True))
    surplus = sum(max(0, n - m) for n, m in zip(learned, found, strict=True))
    steps = moves(*rows)
    assert sum(source is not None for source, _ in steps) == min(missing, surplus)


@given(ROWS)
def test_what_was_brought_up_once_stays(rows):
    learned, found = rows
    assert moves(after(learned, moves(learned, found)), found) == []


@pytest.mark.parametrize(
    ("learned", "found", "expected"),
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
