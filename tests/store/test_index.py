import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import big, labelled_tokens, learn, refused

from nbspam.store import index
from nbspam.store.index import CollisionError, TokenTable, hash_tokens
from nbspam.store.lookup import Lookup
from nbspam.tokens.kinds import CHANNELS, channel_of


def counts_in(table, tokens):
    rows = table.find(hash_tokens(tokens)).tolist()
    return {
        token: (row % len(CHANNELS), table.counts[row // len(CHANNELS)])
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
        monkeypatch.setattr("nbspam.store.lookup.COPY_CHUNK", 3_000)
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
