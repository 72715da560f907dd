import contextlib
import itertools
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from small_models import learn, many_messages

import nbspam
from nbspam.errors import ModelError
from nbspam.reading.message import RawMessage
from nbspam.reading.source import Skips
from nbspam.scoring import version
from nbspam.scoring.version import classify_messages
from nbspam.store import index
from nbspam.tokens.tokenized import TokenizedMessage
from nbspam.workers import Executor, Processes

_ONE = 1e-9  # seconds: one item is done in this process
SERIAL, FORKED = Executor(), Processes(2, serial_seconds=_ONE, start_method="fork")
SPAWNED = Processes(2, serial_seconds=_ONE, start_method="spawn")
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
    monkeypatch.setattr(version, "BREAK_EVEN", -1e9 if table_pays else 1e9)


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
        found = list(classify_messages(raws, skips, where, spam_filter.version))
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
            list(
                classify_messages(
                    raws, Skips(), FORKED, spam_filter.version, drop_evidence=drop_evidence
                )
            )
            for drop_evidence in (False, True)
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
    monkeypatch.setattr(version, "BREAK_EVEN", 120)
    return made


def test_a_table_is_made_when_it_pays(learned, path, tables):
    n = int(120 + 0.03 * len(learned.counts))
    words = TokenizedMessage("-", None, ["one", "two"])
    with nbspam.open(path) as spam_filter:
        for judged, made in ((n // 2 - 1, 0), (2, 1), (n, 1)):
            spam_filter.version.classify_batch([words] * judged)
            assert len(tables) == made
        spam_filter.learn([("ham", "a new message")])
        spam_filter.version.classify_batch(
            [words]
        )  # there is a new model, and nothing is known to come
        assert len(tables) == 1


@pytest.mark.parametrize(("bytes_known", "made"), [(0, 0), (500, 0), (1_000_000, 1)])
def test_a_table_is_made_at_once_for_a_source_known_to_be_large(path, tables, bytes_known, made):
    raws = [RawMessage(f"x:{i}", None, "some words") for i in range(10)]  # too few for a table
    with nbspam.open(path) as spam_filter:
        found = classify_messages(raws, Skips(), FORKED, spam_filter.version, size=bytes_known)
        next(found)
        assert tables == [os.getpid()] * made
        assert len(list(found)) == 9
    assert len(tables) == made


def test_a_process_that_is_not_forked_opens_the_same_model_or_none(learned, tmp_path):
    path = learned.save(tmp_path / "model.json")
    with nbspam.open(path) as spam_filter:
        pickled, whole = pickle.dumps(spam_filter.version), pickle.dumps(spam_filter)
        words = TokenizedMessage("-", None, ["some", "words"])
        assert pickle.loads(pickled).classify(words) == spam_filter.version.classify(words)
        path.write_bytes(path.read_bytes())  # the same bytes: a copy, as on another machine
        pickle.loads(pickled)
        with nbspam.open(path) as other:
            other.learn([("spam", "some more words")])
            with pytest.raises(ModelError, match=r"model.json: .* changed .*; run it again$"):
                pickle.loads(pickled)
            with pickle.loads(whole) as again:  # a filter is of the file as it is now
                assert again.classify("some words") == other.classify("some words")


def test_a_closed_filter_says_so(path):
    with nbspam.open(path) as spam_filter:
        pass
    with pytest.raises(ModelError, match=r"the model was closed; open it again$"):
        spam_filter.classify("some words")


@pytest.fixture(scope="module")
def base():
    return learn(many_messages(500, 0), scoring="evidence")


@pytest.mark.few(2)
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
            message.verdict
            for message in classify_messages(raws, Skips(), where, spam_filter.version)
        ]
        expected = [spam_filter.classify(text) for text in texts]
    assert own.exists() == has_own
    assert [verdict.log_odds for verdict in found] == [verdict.log_odds for verdict in expected]


def test_a_process_that_is_not_forked_opens_the_same_base_or_none(base, tmp_path):
    path, own = base.save(tmp_path / "base.json"), tmp_path / "own.json"
    with nbspam.open(own, base=path) as spam_filter:
        spam_filter.learn([("spam", "some new words")])
        pickled = pickle.dumps(spam_filter.version)
        with pickle.loads(pickle.dumps(spam_filter)) as again:
            assert again.classify("some words") == spam_filter.classify("some words")
        personal = pickle.loads(pickled).personal_metadata
        assert personal == spam_filter.version.personal_metadata != spam_filter.metadata
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
        assert spam_filter.version.personal_metadata.learned.messages == (0, 1)
        assert spam_filter.forget(["some new words"]).forgotten == 1
        assert spam_filter.classify("some new words").log_odds == pytest.approx(before, abs=1e-3)
    assert path.read_bytes() == whole


# Shared: by threads, and by processes through the file

WORDS = [f"lesson{i} taught{i}" for i in range(40)]
SEES = """
import sys, nbspam
with nbspam.open(sys.argv[1]) as spam_filter:
    print("open", flush=True)
    for line in sys.stdin:
        print(sum(spam_filter.metadata.learned.messages), flush=True)
"""
TEACHES = """
import sys, nbspam
with nbspam.open(sys.argv[1]) as spam_filter:
    for i in range(int(sys.argv[3])):
        assert spam_filter.learn([("spam", f"{sys.argv[2]} {i} lesson")]).learned == 1
        spam_filter.classify("some words")
"""


def n_handles():
    return sum(1 for _ in Path("/dev/fd").iterdir())


def share(spam_filter, lessons, n_threads=8):
    """Classify in threads, each from its own place on, while one thread learns and forgets."""
    done, failures, n_classified = threading.Event(), [], []

    def classify(i):
        texts, n = itertools.cycle(WORDS[i:] + WORDS[:i]), 0
        try:
            while not done.is_set() or not n:
                verdict = spam_filter.classify(next(texts))
                assert 0 < verdict.probability < 1
                assert spam_filter.explain(next(texts)).words is not None
                n += 1
        except Exception as error:  # noqa: BLE001 (raised below)
            failures.append(error)
        n_classified.append(n)

    threads = [threading.Thread(target=classify, args=(i,)) for i in range(n_threads)]
    for thread in threads:
        thread.start()
    try:
        for text in lessons:
            assert spam_filter.learn([("spam", text)]).learned == 1
        assert spam_filter.forget(lessons[:1]).forgotten == 1
    finally:
        done.set()
        for thread in threads:
            thread.join(60)
    assert failures == []
    assert min(n_classified) > 0


@pytest.mark.few(1)
@pytest.mark.parametrize("n", [12, pytest.param(400, marks=pytest.mark.long)])
@pytest.mark.parametrize("is_saved", [True, False], ids=["file", "memory"])
def test_threads_share_a_filter_while_one_of_them_learns(learned, tmp_path, is_saved, n):
    path = learned.save(tmp_path / "model.json")
    lessons = [f"{WORDS[i % len(WORDS)]} number {word(i)}" for i in range(n)]
    with contextlib.ExitStack() as stack:
        if is_saved:
            spam_filter = stack.enter_context(nbspam.open(path))
        else:
            spam_filter = nbspam.train([("spam", "win a prize"), ("ham", "lunch at noon")] * 9)
        spam_filter.classify("some words")
        handles, before = n_handles(), sum(spam_filter.metadata.learned.messages)
        share(spam_filter, lessons)
        assert sum(spam_filter.metadata.learned.messages) == before + n - 1
        assert n_handles() <= handles + 1


def word(i):
    """Return a word of its own for a number: digits are all alike to the tokenizer."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(i)) + "x"


@pytest.mark.parametrize("n", [4, pytest.param(60, marks=pytest.mark.long)])
def test_processes_learn_together_and_each_sees_what_the_others_saved(learned, tmp_path, n):
    path = learned.save(tmp_path / "model.json")
    command = [sys.executable, "-c", SEES, path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with nbspam.open(path) as spam_filter, subprocess.Popen(command, **pipes) as seeing:
        before = sum(spam_filter.metadata.learned.messages)
        assert seeing.stdout.readline() == "open\n"
        code = TEACHES.replace("{i}", "{'y' * i}x")
        teachers = [
            subprocess.Popen([sys.executable, "-c", code, path, name, str(n)])
            for name in ("one", "two", "three")
        ]
        assert [teacher.wait(600) for teacher in teachers] == [0, 0, 0]
        assert sum(spam_filter.metadata.learned.messages) == before + 3 * n
        seeing.stdin.write("look\n")
        seeing.stdin.flush()
        assert seeing.stdout.readline() == f"{before + 3 * n}\n"
        seeing.stdin.close()


def test_a_call_ends_with_the_version_that_it_began_with(learned, tmp_path):
    path = learned.save(tmp_path / "model.json")
    raws = [RawMessage(f"x:{i}", None, "some words") for i in range(450)]  # several batches
    with nbspam.open(path) as spam_filter:
        found = classify_messages(raws, Skips(), SERIAL, spam_filter.version)
        first = next(found)
        with nbspam.open(path) as other:
            other.learn([("spam", f"some words {i}") for i in "abcd"])
        spam_filter.close()
        assert {m.verdict.log_odds for m in found} == {first.verdict.log_odds}
        spam_filter.reopen()  # which opens a closed filter again
        assert spam_filter.classify("some words").log_odds > first.verdict.log_odds


def test_a_changed_file_that_cannot_be_used_is_reported_once_and_the_old_model_kept(
    learned, tmp_path, caplog
):
    path, new = learned.save(tmp_path / "model.json"), tmp_path / "new"
    whole = path.read_bytes()
    with nbspam.open(path) as spam_filter:
        before = spam_filter.classify("some words")
        for content, said in ((b"{", "is not an nbspam model"), (None, "model not found")):
            new.write_bytes(whole)
            new.replace(path)
            assert spam_filter.classify("some words") == before
            assert spam_filter.problem == ""
            caplog.clear()
            if content is None:
                path.unlink()
            else:
                new.write_bytes(content)
                new.replace(path)
            for _ in range(2):
                assert spam_filter.classify("some words") == before
            assert said in spam_filter.problem
            (record,) = caplog.records
            assert record.getMessage().endswith("; the model that was open is still used")
            with pytest.raises(ModelError, match=said):
                spam_filter.reopen()


def test_a_base_that_has_changed_is_noticed(base, tmp_path):
    path, own = base.save(tmp_path / "base.json"), tmp_path / "own.json"
    with nbspam.open(own, base=path) as spam_filter, nbspam.open(path) as below:
        assert spam_filter.classify("some words") == below.classify("some words")
        below.learn([("spam", f"some words {i}") for i in "abcde"])
        assert spam_filter.classify("some words") == below.classify("some words")


def test_what_is_saved_is_a_copy_and_the_own_file_needs_no_saving(learned, tmp_path):
    path, copy = learned.save(tmp_path / "model.json"), tmp_path / "copy.json"
    with nbspam.open(path) as spam_filter, nbspam.open(path) as other:
        other.learn([("spam", "some words")])
        spam_filter.save(path)  # which takes nothing from it
        spam_filter.save(copy)
        assert path.read_bytes() == copy.read_bytes()
        path.unlink()
        spam_filter.save(path)  # it has it open
        assert path.read_bytes() == copy.read_bytes()
