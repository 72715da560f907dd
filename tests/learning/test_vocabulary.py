import os
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.learning.corpus import Corpus
from nbspam.learning.vocabulary import Numberer, Renumberer, vocabulary
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.tokens.tokenized import Numbers, TokenizedMessage, Wanted
from nbspam.workers import Processes, Serial, gather

TOKENS = st.lists(st.sampled_from("abcdefgh"), unique=True).map(sorted)
MESSAGES = TOKENS.map(lambda tokens: TokenizedMessage("x", "ham", tokens, "00" * 16, 7, Numbers()))


@given(st.lists(st.lists(MESSAGES, max_size=4)), st.integers(1, 9))
def test_messages_come_back_as_they_went(batches, limit):
    numberer, numbers = Numberer(limit), vocabulary()
    renumberer = Renumberer(numbers)
    for batch in batches:
        found = list(renumberer.messages(numberer.numbered(batch)))
        names = list(numbers)
        for message, same in zip(batch, found, strict=True):
            assert [names[i] for i in same.columns] == message.tokens
            assert (same.source, same.label, same.digest, same.size, same.numbers) == (
                *("x", "ham", "00" * 16, 7, Numbers()),
            )


def test_a_token_is_sent_once_until_there_are_too_many():
    numberer = Numberer(limit=3)

    def sent(*tokens):
        return numberer.numbered([TokenizedMessage("x", None, list(tokens))]).new.split()

    assert sent("a", "b") == ["a", "b"]
    assert sent("a", "c") == ["c"]
    assert sent("d", "a") == ["d"]
    assert sent("d", "a") == ["d", "a"]  # a new vocabulary
    assert sent("d", "a") == []


def test_processes_have_vocabularies_of_their_own(monkeypatch):
    numberer, numbers = Numberer(), vocabulary()
    renumberer = Renumberer(numbers)
    first = numberer.numbered([TokenizedMessage("x", None, ["a", "b"])])
    pid = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: pid + 1)  # as after a fork
    other = numberer.numbered([TokenizedMessage("y", None, ["b", "c"])])
    found = [m.columns.tolist() for batch in (first, other) for m in renumberer.messages(batch)]
    assert found == [[0, 1], [1, 2]]
    assert isinstance(numbers, defaultdict)


@pytest.mark.parametrize("wanted", [Wanted(), Wanted(traits=True), Wanted(times=True)])
def test_the_number_of_processes_makes_no_difference_to_a_corpus(tmp_path, wanted):
    raws = [RawMessage(f"x:{i}", "ham", f"word{i % 7} word{i % 3} here {i}") for i in range(40)]
    raws.insert(9, RawMessage("gone", "ham", tmp_path / "gone"))
    corpora = []
    for where in (Serial(), Processes(2, alone=1), Processes(3, alone=0)):
        corpus, skips, shown = Corpus(wanted), Skips(), []
        gather(corpus, raws, skips, where, lambda m, to=shown: (to.append(x) or x for x in m), 3)
        assert skips.count == 1
        assert [m.source for m in shown] == [raw.source for raw in raws if raw.source != "gone"]
        corpora.append([corpus.message(i, corpus.vocabulary) for i in range(len(corpus))])
    assert corpora[0] == corpora[1] == corpora[2]
    assert all(message.digest for message in corpora[0])
