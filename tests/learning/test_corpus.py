import pickle
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nbspam.learning.corpus import Corpus
from nbspam.tokens.kinds import FIELDS, HEADER, HOST, TEXT, TRAITS
from nbspam.tokens.tokenized import TokenExtras, TokenizedMessage, TokenizerOutputs

CLASSES = ("ham", "promo", "spam")
DIGESTS = st.binary(min_size=16, max_size=16).map(bytes.hex)
FEW = [f"{i:032x}" for i in (0, 1, 1 << 63, 1 << 64, (1 << 128) - 1)]
MESSAGES = st.lists(
    st.tuples(
        st.sampled_from(CLASSES), st.sets(st.text(max_size=3)), st.sampled_from(FEW) | DIGESTS
    ),
    max_size=30,
)


def corpus_of(messages):
    corpus = Corpus()
    for label, tokens, digest in messages:
        corpus.add(TokenizedMessage("", label, list(tokens), digest))
    return corpus


@given(MESSAGES)
def test_the_messages_are_those_that_were_added_in_the_order_of_digests_and_labels(messages):
    found = list(corpus_of(messages).in_digest_order())
    assert all(len(set(m.tokens)) == len(m.tokens) for m in found)
    again = Counter((m.label, frozenset(m.tokens), m.digest) for m in found)
    assert again == Counter((label, frozenset(own), digest) for label, own, digest in messages)
    order = [(m.digest, m.label) for m in found]
    assert sorted(order) == order


def test_messages_without_digests_come_class_by_class():
    corpus = corpus_of([("spam", {"a"}, ""), ("ham", {"b"}, ""), ("ham", set(), "")])
    found = [(m.label, m.tokens, m.digest) for m in corpus.in_digest_order()]
    assert found == [("ham", ["b"], ""), ("ham", [], ""), ("spam", ["a"], "")]


def test_each_column_has_the_channel_of_its_token():
    corpus = corpus_of([("ham", {"a", "from:b", "by:c"}, ""), ("spam", {"received:d", "a:b"}, "")])
    channels = dict(zip(corpus.vocabulary, corpus.channels().tolist(), strict=True))
    expected = {"a": TEXT, "a:b": TEXT, "from:b": FIELDS, "received:d": HEADER, "by:c": HOST}
    assert channels == expected
    assert Corpus().channels().shape == (0,)


def test_messages_are_held_as_numbers():
    corpus = corpus_of([("ham", {f"token{i}" for i in range(100)}, FEW[0])] * 1_000)
    assert len(corpus.vocabulary) == 100
    first, (_, *rest) = (next(corpus.messages()), corpus.messages())
    assert first.label == "ham"
    assert len(rest) == 999
    # The strings are the same objects.
    assert all(a is b for a, b in zip(rest[0].tokens, rest[1].tokens, strict=True))


NUMBERED = TokenizerOutputs(times=True, traits=True)


def numbered(i):
    extras = TokenExtras({"b": 2 + i}, tuple(range(i, i + len(TRAITS))), frozenset({f"t{i}"}))
    tokens = ["a", f"t{i}", "b", "\udc80"]
    return TokenizedMessage(f"x:{i}\n", "ham", tokens, FEW[i], extras=extras)


def test_corpora_of_other_processes_are_merged_with_all_that_they_have():
    """Nothing depends on how messages were divided among them, or on which process made them."""
    whole = Corpus.from_messages(map(numbered, range(5)), NUMBERED)
    merged = Corpus(NUMBERED)
    for rows in ([0, 1], [], [2, 3, 4]):
        merged.extend(
            pickle.loads(pickle.dumps(Corpus.from_messages(map(numbered, rows), NUMBERED)))
        )
    assert list(merged.messages()) == list(whole.messages()) == [numbered(i) for i in range(5)]
    assert merged.vocabulary == whole.vocabulary
    np.testing.assert_array_equal(merged.presence().toarray(), whole.presence().toarray())
    np.testing.assert_array_equal(merged.traits(), whole.traits())
    merged.add(numbered(0))
    assert merged.message(5) == numbered(0)
    light = Corpus(NUMBERED)
    light.extend(whole, with_tokens=False)
    assert (light.shape, light.labels, list(light.sources)) == (
        (5, 0),
        whole.labels,
        [*whole.sources],
    )
    assert light.digests == whole.digests
