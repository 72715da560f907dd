from collections import Counter, defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from nbspam.learning.corpus import Corpus

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
        corpus.add(label, tokens, digest)
    return corpus


@settings(deadline=None)
@given(MESSAGES)
def test_the_ledger_counts_each_digest_per_class_in_the_order_of_the_digests(messages):
    expected = defaultdict(lambda: [0] * len(CLASSES))
    for label, _, digest in messages:
        expected[digest][CLASSES.index(label)] += 1
    found = list(corpus_of(messages).learned(CLASSES))
    assert [(digest, tuple(expected[digest])) for digest in sorted(expected)] == found


def test_without_digests_there_is_no_ledger():
    assert list(corpus_of([("ham", {"a"}, ""), ("spam", {"b"}, "")]).learned(CLASSES)) == []


@settings(deadline=None)
@given(MESSAGES)
def test_rows_are_the_messages_that_were_added(messages):
    def key(label, tokens, digest):
        return label, frozenset(tokens), digest

    found = list(corpus_of(messages).rows())
    assert Counter(key(*m) for m in messages) == Counter(key(*m) for m in found)
    assert all(len(set(tokens)) == len(tokens) for _, tokens, _ in found)


@settings(deadline=None)
@given(MESSAGES)
def test_rows_come_in_the_order_of_digests_and_labels(messages):
    found = [(digest, label) for label, _, digest in corpus_of(messages).rows()]
    assert sorted(found) == found


def test_rows_without_digests_come_class_by_class():
    messages = [("spam", {"a"}, ""), ("ham", {"b"}, ""), ("ham", set(), "")]
    assert list(corpus_of(messages).rows()) == [
        ("ham", ["b"], ""),
        ("ham", [], ""),
        ("spam", ["a"], ""),
    ]


def test_rows_hold_their_tokens_as_numbers():
    corpus = corpus_of([("ham", {f"token{i}" for i in range(100)}, FEW[0])] * 1_000)
    assert len(corpus.vocabulary) == 100
    (first, *_), (_, *rest) = (next(corpus.rows()), corpus.rows())
    assert first == "ham"
    assert len(rest) == 999
    assert all(a is b for a, b in zip(rest[0][1], rest[1][1], strict=True))  # the same strings
