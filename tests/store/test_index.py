from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import big, labelled_tokens, learn, refused

from nbspam.store import index
from nbspam.store.index import CollisionError, IndexLayout, TokenIndex, TokenTable, hashes_of
from nbspam.store.lookup import LINE_LIMIT, Lookup, token_key
from nbspam.tokens.kinds import channel_of


@pytest.fixture(scope="module")
def large():
    return big(3_000)


@pytest.fixture(scope="module")
def large_file(large, tmp_path_factory):
    return large.save(tmp_path_factory.mktemp("large") / "model.json")


@pytest.fixture(params=[0, 1 << 26], ids=["in the file", "in memory"])
def place(request):
    return request.param


@contextmanager
def indexed(path, **layout):
    with Lookup(path) as lookup:
        yield TokenIndex(lookup, IndexLayout(**layout))


UNKNOWN = ["", " ", "\0", "zzzzzzzzzz", "~", "\U0010ffff", '"', "\\", "nothing", "x" * 5_000]


def test_it_finds_every_token_and_no_other(large, large_file, place):
    unknown = [token for token in UNKNOWN if token not in large.counts]
    for stride in (64, 1 << 10, 1 << 24):  # fine, as it is, one entry
        with indexed(large_file, stride=stride, entries=1 << 20, in_memory=place) as index:
            assert index.counts(large.counts) == large.counts, stride
            assert index.counts(unknown) == {}
            assert index.counts([]) == {}


def test_how_the_file_is_read_makes_no_difference(large, large_file, place):
    for chunk in (2 * LINE_LIMIT + 100, 1 << 20):
        with indexed(large_file, chunk=chunk, in_memory=place) as index:
            assert index.counts(large.counts) == large.counts
    with indexed(large_file, entries=10) as index:  # a model of any size has a bounded index
        assert 5 <= len(index._keys) <= 10
        assert index.counts(large.counts) == large.counts


@given(st.lists(st.text(max_size=12), max_size=30))
def test_it_is_the_same_as_the_search_in_place(large_file, tokens):
    with Lookup(large_file) as lookup:
        index = TokenIndex(lookup)
        assert index.counts(tokens) == lookup.counts(tokens)


@given(tokens=st.sets(st.text(max_size=8), max_size=12), probe=st.lists(st.text(max_size=8)))
def test_small_models_too(tmp_path_factory, tokens, probe):
    learned = learn([("ham", tokens), ("spam", {"free"})])
    path = learned.save(tmp_path_factory.mktemp("small") / "model.json")
    with indexed(path) as index:
        assert index.counts([*tokens, *probe, "free"]) == {
            token: row
            for token, row in learned.counts.items()
            if token in {*tokens, *probe, "free"}
        }


def test_two_lines_exchanged_and_a_line_that_is_too_long(large_file, tmp_path, place):
    raw = large_file.read_bytes()
    start = raw.index(b'"tokens": {\n') + len(b'"tokens": {\n')
    lines = raw[start:].split(b"\n")
    lines[100], lines[200] = lines[200], lines[100]
    path = tmp_path / "model.json"
    for tokens, stride, said in (
        (b"\n".join(lines), 1, "not in order"),
        *(
            (b'"' + b"\1" * n + b'": [1, 1],\n' + raw[start:], 1 << 10, "")
            for n in (LINE_LIMIT * 3, 1 << 21)
        ),
    ):
        path.write_bytes(raw[:start] + tokens)
        with Lookup(path) as lookup, refused(path, said):
            TokenIndex(lookup, IndexLayout(stride=stride, in_memory=place))


def test_a_line_that_is_no_token(large, large_file, tmp_path, place):
    token = sorted(large.counts)[1234]
    raw = large_file.read_bytes()
    line = raw.index(b"\n" + token_key(token).encode() + b": [") + 1
    at = raw.index(b": [", line)
    path = tmp_path / "model.json"
    path.write_bytes(raw[:at] + b": [-1" + raw[at + 3 :])
    with indexed(path, in_memory=place) as index, refused(path, "is not a token and its counts"):
        index.counts([token])


# token_table


def counts_in(table, tokens):
    rows = table.find(hashes_of(tokens)).tolist()
    n = len(table.counts)
    return {
        token: (row // n, table.counts[row % n])
        for token, row in zip(tokens, rows, strict=True)
        if row >= 0
    }


def expected(counts):
    return {token: (channel_of(token), row) for token, row in counts.items()}


ODD = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=6)
KINDS = st.sampled_from(
    ["received:a", "from:b", "by:c", "no kind:d", 'a"b', "a\\b", "tab\t", "日本"]
)


@given(labelled_tokens(tokens=ODD | KINDS), st.lists(ODD))
def test_the_table_finds_every_token_and_no_other(tmp_path_factory, messages, others):
    learned = learn(messages)
    path = learned.save(tmp_path_factory.getbasetemp() / "table.json")
    with Lookup(path) as lookup:
        table = TokenTable(lookup)
    assert len(table) == len(learned.counts)
    assert counts_in(table, list(learned.counts)) == expected(learned.counts)
    asked = [*others, *learned.counts]
    known = {token: row for token, row in learned.counts.items() if token in asked}
    assert counts_in(table, asked) == expected(known)
    assert not len(table.find(np.array([], np.int64)))


def test_a_model_longer_than_is_read_at_once(tmp_path, monkeypatch):
    large = big(2_000)
    with Lookup(large.save(tmp_path / "large.json")) as lookup:
        monkeypatch.setattr("nbspam.store.lookup._COPIED", 3_000)
        table = TokenTable(lookup)
    assert counts_in(table, list(large.counts)) == expected(large.counts)


def test_tokens_that_collide_are_noticed(tmp_path, monkeypatch):
    learned = learn([("ham", {"one", "two"}), ("spam", {"two", "three"})])
    path = learned.save(tmp_path / "model.json")
    monkeypatch.setattr(index, "hash", len, raising=False)
    with Lookup(path) as lookup, pytest.raises(CollisionError):
        TokenTable(lookup)


def test_strings_in_the_same_bytes_of_memory_are_told_apart(tmp_path):
    assert hash("に") == hash("k0")
    with Lookup(learn([("ham", {"k0"}), ("spam", {"x"})]).save(tmp_path / "model.json")) as lookup:
        assert counts_in(TokenTable(lookup), ["に", "k0"]).keys() == {"k0"}


DAMAGES = [
    ('"two": [', '"two" : ['),
    ('"two": [1', '"two": [x'),
    ('"two": [1', '"two": [99'),
    ('"two": [1, 1]', '"two": [1]'),
    ('"two"', '"t"wo"'),
]


def test_a_damaged_line_is_told(tmp_path):
    learned = learn([("ham", {"one", "two"}), ("spam", {"two", "three"})])
    path = learned.save(tmp_path / "model.json")
    text = path.read_text()
    for line, damage in DAMAGES:
        assert line in text
        path.write_text(text.replace(line, damage))
        with Lookup(path) as lookup, refused(path):
            TokenTable(lookup)
