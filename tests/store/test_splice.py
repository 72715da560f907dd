import io
import os
from contextlib import contextmanager
from itertools import product
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from one_case import each

from nbspam.errors import ModelError
from nbspam.learning.settings import TrainingSettings, empty_metadata
from nbspam.store import lookup as lookup_module
from nbspam.store.lookup import Lookup, splice
from nbspam.store.model_file import read_model, write_lines

MOST = 99
EMPTY = empty_metadata(("ham", "spam"), "spam", TrainingSettings())
METADATA = EMPTY._replace(learned=EMPTY.learned._replace(messages=(MOST, MOST)))
# Few and close together, so that a change often meets a line that is there; some of the keys stand
# at the very ends, or are written with escapes.
TOKENS = st.sampled_from(
    ["", " ", "!", '"', "\\", "\n", "\x7f", "a", "a!", 'a"', "é", "\U0010ffff"]
)
ROWS = st.tuples(st.integers(0, MOST), st.integers(0, MOST))
TRUE_ROWS = ROWS.filter(any)
DIGESTS = st.sampled_from(["0" * 32, "f" * 32, "8" * 32]) | st.integers(0, 2**128 - 1).map(
    "{:032x}".format
)
COUNTS = st.dictionaries(TOKENS | st.text(max_size=4), TRUE_ROWS, max_size=30)
LEDGERS = st.dictionaries(DIGESTS, TRUE_ROWS, max_size=30)


def whole(counts, learned, metadata=METADATA) -> bytes:
    file = io.BytesIO()
    rows, ledger = ([pair for pair in some.items() if any(pair[1])] for some in (counts, learned))
    write_lines(file, metadata, rows, sorted(ledger))
    return file.getvalue()


def spliced(path, counts, learned, metadata=METADATA) -> bytes:
    file = io.BytesIO()
    with Lookup(path) as old:
        splice(file, old, metadata, counts, learned)
    return file.getvalue()


@contextmanager
def blocks_of(size):
    """Make a small model as much work as a large one."""
    with mock.patch.multiple(
        lookup_module, _BLOCK=size, _PROBE=max(4, size // 4), _COPIED=max(1, size // 3)
    ):
        yield


@st.composite
def changes(draw, rows, keys):
    """Draw rows and what is to become of them: some are removed, some changed, some new."""
    old = draw(rows)
    known = st.sampled_from(sorted(old)) if old else keys
    new = draw(st.dictionaries(keys | known, ROWS, max_size=30))
    return old, new


@given(
    changes(COUNTS, TOKENS | st.text(max_size=4)),
    changes(LEDGERS, DIGESTS),
    st.sampled_from([8, 20, 64, 8192]),
)
@example(({}, {}), ({}, {}), 8)
@example(({"a": (1, 0)}, {"a": (0, 0)}), ({"0" * 32: (1, 0)}, {"0" * 32: (0, 0)}), 8)
def test_a_spliced_file_is_the_one_written_anew(tmp_path_factory, tokens, digests, block):
    (counts, new_counts), (learned, new_learned) = tokens, digests
    path = tmp_path_factory.getbasetemp() / "old.json"
    path.write_bytes(whole(counts, learned))
    with blocks_of(block):
        found = spliced(path, new_counts, new_learned)
    assert whole(counts | new_counts, learned | new_learned) == found


FEW = {"b": (1, 0), "d": (0, 2), "f": (3, 3)}
MARKED = {"2" * 32: (1, 0), "4" * 32: (0, 1), "6" * 32: (2, 0)}


GONE = dict.fromkeys("bdf", (0, 0))
CHANGES = [
    *({}, {"a": (1, 1)}, {"g": (1, 1)}, {"c": (1, 1)}, {"b": (0, 0)}, {"f": (0, 0)}),
    *({"d": (0, 0)}, {"b": (9, 9), "f": (9, 9)}, GONE, GONE | {"e": (1, 0)}),
    *({"f": (0, 0), "g": (1, 0)}, {"a": (1, 0), "b": (0, 0)}, {"z": (0, 0)}),
]
DIGEST_CHANGES = [{}, {"1" * 32: (1, 0), "9" * 32: (1, 0)}, dict.fromkeys(MARKED, (0, 0))]


@each(
    "counts, change, learned, digests, block",
    product([{}, FEW], CHANGES, [{}, MARKED], DIGEST_CHANGES, [8, 8192]),
)
def test_lines_at_the_ends_come_and_go(tmp_path, counts, change, learned, digests, block):
    path = tmp_path / "model.json"
    path.write_bytes(whole(counts, learned))
    with blocks_of(block):
        found = spliced(path, change, digests)
    assert whole(counts | change, learned | digests) == found


def test_the_metadata_is_the_new_one(tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(whole(FEW, MARKED))
    metadata = METADATA._replace(
        settings=METADATA.settings._replace(spam_cutoff=0.75),
        learned=METADATA.learned._replace(messages=(MOST + 1, MOST + 123456789)),
    )
    found = spliced(path, {}, {}, metadata)
    assert whole(FEW, MARKED, metadata) == found
    path.write_bytes(found)
    assert read_model(path).metadata.learned.messages == (MOST + 1, MOST + 123456789)


def test_what_does_not_change_is_not_read_line_by_line(tmp_path, monkeypatch):
    counts = {f"token{i:06}": (1, 2) for i in range(20_000)}
    path = tmp_path / "model.json"
    path.write_bytes(whole(counts, {}))
    looked_at = []
    row = Lookup.row
    monkeypatch.setattr(Lookup, "row", lambda self, line: looked_at.append(line) or row(self, line))
    change = {"token010000": (3, 4), "token010000!": (1, 0)}
    assert whole(counts | change, {}) == spliced(path, change, {})
    assert len(looked_at) < 100


@each(
    "damage, token",
    product(
        [b": [x, 2]", b": [1]", b": [1, 200]", b"", b": [1, 2]]"],
        ["token000499", "token000500", "token000501"],
    ),
)
def test_a_damaged_line_beside_a_changed_one_is_refused(tmp_path, damage, token):
    counts = {f"token{i:06}": (1, 2) for i in range(1_000)}
    path = tmp_path / "model.json"
    line = f'"{token}": [1, 2]'.encode()
    path.write_bytes(whole(counts, {}).replace(line, f'"{token}"'.encode() + damage))
    with pytest.raises(ModelError, match="damaged"):
        spliced(path, {"token000500": (3, 4), "token000500!": (1, 0)}, {})


def test_a_token_in_the_wrong_place_is_not_written_a_second_time(tmp_path):
    path = tmp_path / "model.json"
    lines = whole({f"token{i}": (1, 2) for i in range(8)}, {}).splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if line.startswith(b'"token0"'))
    lines[first], lines[first + 4] = lines[first + 4], lines[first]
    path.write_bytes(b"".join(lines))
    with pytest.raises(ModelError, match="not in order"):
        spliced(path, {"token0": (3, 4)}, {})


def test_a_border_that_is_none_is_refused(tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(whole(FEW, MARKED).replace(b'},"learned": {\n', b'}, "learned": {\n'))
    with pytest.raises(ModelError, match="ledger"):
        spliced(path, {"a": (1, 0)}, {})


def test_a_model_that_shrinks_while_it_is_copied_is_refused(tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(whole({f"token{i:06}": (1, 2) for i in range(5_000)}, {}))
    with Lookup(path) as old:
        os.truncate(path, path.stat().st_size // 2)
        with pytest.raises(ModelError, match="shorter"):
            splice(io.BytesIO(), old, METADATA, {"a": (1, 0)}, {})
