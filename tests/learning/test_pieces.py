"""Tables of counts merge as arrays, however they are cut, and no two tokens are one."""

import hashlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.learning.pieces import (
    BEGINNING,
    Reading,
    Table,
    distinct,
    merged,
    read_piece,
    token_keys,
)
from nbspam.reading.message import RawMessage
from nbspam.tokens.kinds import KINDS
from nbspam.tokens.tokenized import Wanted

SEED = b"0123456789abcdef"
TOKENS = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1)
COUNTS = st.lists(st.dictionaries(TOKENS, st.integers(0, 5), max_size=8), min_size=1, max_size=5)


def table_of(counts, halves=None):
    """Return a table of one label; halves: how many kinds of first halves there are."""
    text = "".join(f"{token}\n" for token in counts).encode()
    first, second, ends = token_keys(text, SEED)
    first = first if halves is None else second % np.uint64(halves)
    values = np.array([list(counts.values())], np.int64).reshape(1, -1)
    return merged([Table(first, second, values, np.frombuffer(text, np.uint8), ends)])


def counts_in(table):
    return dict(zip(table.tokens(), table.counts[0].tolist(), strict=True))


@given(COUNTS, st.integers(1, 5))
def test_tables_add_up_in_any_order_and_in_any_ranges(counts, n):
    tables = [table_of(each) for each in counts]
    whole = merged(tables)
    expected = Counter()
    for each in counts:
        expected.update(each)
    assert counts_in(whole) == {token: expected[token] for each in counts for token in each}
    again = merged(tables[::-1])
    assert counts_in(again) == counts_in(whole)
    assert (again.first == whole.first).all()
    assert (whole.first[1:] >= whole.first[:-1]).all()
    ranges = [merged([table.range(i, n) for table in tables]) for i in range(n)]
    joined = {token: k for part in ranges for token, k in counts_in(part).items()}
    assert joined == counts_in(whole)
    assert sum(len(part.first) for part in ranges) == len(whole.first)
    for table in tables:
        places = whole.places(table.first, table.second)
        assert [whole.tokens()[i] for i in places.tolist()] == table.tokens()


@given(st.dictionaries(st.sampled_from("éab:,") | TOKENS, st.just(1)))
def test_tokens_are_ordered_by_their_first_bytes(counts):
    table = table_of(counts)
    order, names = table.by_beginning()
    assert names == [table.tokens()[i] for i in order.tolist()]
    beginnings = [f"{name}\n".encode()[:BEGINNING] for name in names]
    assert beginnings == sorted(beginnings)
    assert all(len(f"{kind.name}:") <= BEGINNING for kind in KINDS)


@pytest.mark.parametrize("halves", [1, 2])
def test_tokens_that_share_half_a_key_are_not_one(halves):
    tables = [table_of({f"t{i}": i for i in some}, halves) for some in (range(9), range(5, 20))]
    whole = merged(tables)
    assert counts_in(whole) == {f"t{i}": i * (1 + (5 <= i < 9)) for i in range(20)}
    for table in tables:
        places = whole.places(table.first, table.second)
        assert [whole.tokens()[i] for i in places.tolist()] == table.tokens()


def test_equal_keys_are_neighbours_and_the_first_stays_the_first():
    first = np.array([5, 1, 5, 5, 1], np.uint64)
    second = np.array([2, 7, 1, 2, 7], np.uint64)
    order, is_new = distinct(first, second)
    assert (order.tolist(), is_new.tolist()) == ([1, 4, 2, 0, 3], [True, False, True, True, False])


def test_a_key_is_the_sum_of_random_multiples_of_the_bytes():
    random = hashlib.shake_128(SEED).digest(2 * 4096 * 8)
    factors = np.frombuffer(random, "<u8").reshape(2, 4096).tolist()
    for token in ("a", "claim now", "\u00e9t\u00e9", "x" * 5_000):
        first, second, ends = token_keys(f"{token}\n".encode(), SEED)
        data = f"{token}\n".encode()
        expected = [
            sum(row[i % 4096] * b for i, b in enumerate(data)) % (1 << 64) for row in factors
        ]
        assert [first.tolist(), second.tolist(), ends.tolist()] == [
            *([e] for e in expected),
            [len(data)],
        ]


def test_another_run_has_other_keys():
    one, other = (token_keys(b"free\n", seed)[0] for seed in (SEED, SEED[::-1]))
    assert one[0] != other[0]


def test_a_piece_keeps_its_messages_as_they_were_tokenized():
    from nbspam.learning.pieces import StoredPiece, file_of_run
    from nbspam.reading.source import Skips
    from nbspam.workers import Executor, tokenized

    hidden = b"<p>buy now</p><p style='font-size:5px'>meeting notes</p>"
    mail = b"Subject: hi hi\nContent-Type: text/html\n\n" + hidden
    raws = [
        RawMessage("a:1", "spam", "free free prize"),
        RawMessage("a\nb", "ham", mail),
        RawMessage("a:3", "ham", ""),
        RawMessage("a:4", "spam", "\u514d\u8d39 \u00e9t\u00e9"),
    ]
    for wanted in (Wanted(), Wanted(times=True, traits=True), Wanted(traits=True)):
        with file_of_run() as path:
            summary, messages, table, _ = read_piece(Reading(wanted, SEED, path), raws)
            kept = list(StoredPiece(messages, table).messages())
        expected = [m._replace(size=0) for m in tokenized(raws, Skips(), Executor(), True, wanted)]
        assert kept == expected
        assert any(m.numbers.possibly_hidden for m in expected)
        assert summary.messages == {"ham": 2, "spam": 2}
        assert summary.first == {"ham": ["a\nb", "a:3"], "spam": ["a:1", "a:4"]}
