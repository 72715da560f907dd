from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from nbspam.learning.corpus import Corpus
from nbspam.tokens.kinds import FIELDS, HEADER, HOST, TEXT
from nbspam.tokens.tokenized import TokenizedMessage

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
    found = list(corpus_of(messages).messages())
    assert all(len(set(m.tokens)) == len(m.tokens) for m in found)
    again = Counter((m.label, frozenset(m.tokens), m.digest) for m in found)
    assert again == Counter((label, frozenset(own), digest) for label, own, digest in messages)
    order = [(m.digest, m.label) for m in found]
    assert sorted(order) == order


def test_messages_without_digests_come_class_by_class():
    corpus = corpus_of([("spam", {"a"}, ""), ("ham", {"b"}, ""), ("ham", set(), "")])
    found = [(m.label, m.tokens, m.digest) for m in corpus.messages()]
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
