import os
import pickle

import pytest
from small_models import learn, many_messages

import nbspam.filter
from nbspam.errors import ModelError
from nbspam.filter import classified
from nbspam.reading.message import RawMessage
from nbspam.reading.source import Skips
from nbspam.store import index
from nbspam.tokens.tokenized import TokenizedMessage
from nbspam.workers import Executor, Processes

_ONE = 1e-9  # seconds: one item is done in this process
SERIAL, FORKED = Executor(), Processes(2, alone=_ONE, start_method="fork")
SPAWNED = Processes(2, alone=_ONE, start_method="spawn")
in_any_way = pytest.mark.parametrize(
    ("where", "table_pays"),
    [
        *((FORKED, True), (SERIAL, False)),
        *(pytest.param(SPAWNED, pays, marks=pytest.mark.long) for pays in (True, False)),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in ((FORKED, False), (SERIAL, True))
        ),
    ],
)


@pytest.fixture(scope="module")
def learned():
    return learn(many_messages(2_000), scoring="evidence")


@pytest.fixture(scope="module")
def path(learned, tmp_path_factory):
    return learned.save(tmp_path_factory.mktemp("filter") / "model.json")


@pytest.fixture
def table(table_pays, monkeypatch):
    """Make a table of the tokens at once, or never."""
    monkeypatch.setattr(nbspam.filter, "BREAK_EVEN", -1e9 if table_pays else 1e9)


def messages_of(learned, n=300):
    tokens = sorted(learned.counts)
    return [f"{tokens[7 * i % len(tokens)]} {tokens[i % len(tokens)]} new{i}" for i in range(n)]


@pytest.mark.usefixtures("table")
@in_any_way
def test_many_messages_have_the_verdict_that_each_has_alone(learned, path, where, tmp_path):
    raws = [RawMessage(f"x:{i}", "ham", text) for i, text in enumerate(messages_of(learned))]
    raws.insert(5, RawMessage("gone", None, tmp_path / "gone"))
    skips = Skips()
    with nbspam.open(path) as spam_filter:
        found = list(classified(raws, skips, where, spam_filter._inner))
    del raws[5]
    assert skips.count == 1
    assert [(m.source, m.size) for m in found] == [(raw.source, len(raw.content)) for raw in raws]
    with nbspam.open(path) as alone:
        for message, raw in zip(found, raws, strict=True):
            expected = alone.classify(raw.content)._replace(source=raw.source, label="ham")
            assert message.verdict == expected


def test_what_is_sent_for_a_line_is_without_evidence(path):
    raws = [RawMessage("x:1", None, "some words")]
    with nbspam.open(path) as spam_filter:
        (whole,), (bare,) = (
            list(classified(raws, Skips(), FORKED, spam_filter._inner, is_bare=is_bare))
            for is_bare in (False, True)
        )
    assert whole.verdict.score.evidences
    assert bare.verdict == whole.verdict._replace(score=whole.verdict.score._replace(evidences=()))


@pytest.fixture
def tables(monkeypatch):
    """Return a list that has an entry for each table of tokens that this process makes."""
    made = []

    class Table(index.TokenTable):
        def __init__(self, lookup):
            made.append(os.getpid())
            super().__init__(lookup)

    monkeypatch.setattr(index, "TokenTable", Table)
    monkeypatch.setattr(nbspam.filter, "BREAK_EVEN", 120)
    return made


def test_a_table_is_made_when_it_pays(learned, path, tables):
    n = int(120 + 0.03 * len(learned.counts))
    words = TokenizedMessage("-", None, ["one", "two"])
    with nbspam.open(path) as spam_filter:
        for judged, made in ((n // 2 - 1, 0), (2, 1), (n, 1)):
            spam_filter._inner.classify_batch([words] * judged)
            assert len(tables) == made
        spam_filter.learn([("ham", "a new message")])
        spam_filter._inner.classify_batch(
            [words]
        )  # there is a new model, and nothing is known to come
        assert len(tables) == 1


@pytest.mark.parametrize(("bytes_known", "made"), [(0, 0), (500, 0), (1_000_000, 1)])
def test_a_table_is_made_at_once_for_a_source_known_to_be_large(path, tables, bytes_known, made):
    raws = [RawMessage(f"x:{i}", None, "some words") for i in range(10)]  # too few for a table
    with nbspam.open(path) as spam_filter:
        found = classified(raws, Skips(), FORKED, spam_filter._inner, size=bytes_known)
        next(found)
        assert tables == [os.getpid()] * made
        assert len(list(found)) == 9
    assert len(tables) == made


def test_a_process_that_is_not_forked_opens_the_same_model_or_none(learned, tmp_path):
    path = learned.save(tmp_path / "model.json")
    with nbspam.open(path) as spam_filter:
        pickled = pickle.dumps(spam_filter)
        with pickle.loads(pickled) as again:
            assert again.classify("some words") == spam_filter.classify("some words")
        path.write_bytes(path.read_bytes())  # the same bytes: a copy, as on another machine
        pickle.loads(pickled).close()
        with nbspam.open(path) as other:
            other.learn([("spam", "some more words")])
        with pytest.raises(ModelError, match=r"model.json: .* changed .*; run it again$"):
            pickle.loads(pickled)


def test_a_closed_filter_says_so(path):
    with nbspam.open(path) as spam_filter:
        pass
    with pytest.raises(ModelError, match=r"the model was closed; open it again$"):
        spam_filter.classify("some words")


@pytest.fixture(scope="module")
def base():
    return learn(many_messages(500, 0), scoring="evidence")


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("has_own", [True, False], ids=["own model", "base alone"])
@in_any_way
def test_with_a_base_many_messages_have_the_verdict_that_each_has_alone(
    base, where, has_own, tmp_path
):
    texts, own = messages_of(base), tmp_path / "own.json"
    path = base.save(tmp_path / "base.json")
    with nbspam.open(own, base=path) as spam_filter:
        if has_own:
            spam_filter.learn(zip(["spam", "ham"] * 5, texts, strict=False))
        raws = [RawMessage(f"x:{i}", "ham", text) for i, text in enumerate(texts)]
        found = [
            message.verdict for message in classified(raws, Skips(), where, spam_filter._inner)
        ]
        expected = [spam_filter.classify(text) for text in texts]
    assert own.exists() == has_own
    assert [verdict.log_odds for verdict in found] == [verdict.log_odds for verdict in expected]


def test_a_process_that_is_not_forked_opens_the_same_base_or_none(base, tmp_path):
    path, own = base.save(tmp_path / "base.json"), tmp_path / "own.json"
    with nbspam.open(own, base=path) as spam_filter:
        spam_filter.learn([("spam", "some new words")])
        pickled = pickle.dumps(spam_filter)
        with pickle.loads(pickled) as again:
            assert again.classify("some words") == spam_filter.classify("some words")
            assert (
                again._inner.personal_metadata
                == spam_filter._inner.personal_metadata
                != spam_filter.metadata
            )
        with nbspam.open(path) as other:
            other.learn([("spam", "some more words")])
        with pytest.raises(ModelError, match=r"own.json: .* changed .*; run it again$"):
            pickle.loads(pickled)


def test_what_is_learned_through_a_base_is_forgotten_through_it(base, tmp_path):
    path, own = base.save(tmp_path / "base.json"), tmp_path / "own.json"
    whole = path.read_bytes()
    with nbspam.open(own, base=path) as spam_filter:
        before = spam_filter.classify("some new words").log_odds
        assert spam_filter.learn([("spam", "some new words")]).learned == 1
        assert spam_filter.classify("some new words").log_odds > before + 0.01
        assert spam_filter._inner.personal_metadata.learned.messages == (0, 1)
        assert spam_filter.forget(["some new words"]).forgotten == 1
        assert spam_filter.classify("some new words").log_odds == pytest.approx(before, abs=1e-3)
    assert path.read_bytes() == whole
