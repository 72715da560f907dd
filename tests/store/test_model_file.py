import json
import math
import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from small_models import (
    ALPHAS,
    MESSAGES,
    PRIORS,
    SCORINGS,
    assert_one_sentence,
    damaged,
    labelled_tokens,
    laid_out,
    learn,
    refused,
    with_learned,
)

from nbspam.bayes.calibration import CALIBRATION_SPECS, Lesson
from nbspam.errors import ModelError
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.explanation import explain
from nbspam.store.lookup import Lookup, Model, checked_model, read_model
from nbspam.store.model_file import write_model
from nbspam.tokens.tokenized import TOKENIZER_VERSION

GOLDEN = Path(__file__).parents[1] / "golden" / "store" / "model-damages.txt"
SMALL = GOLDEN.with_name("small-model.txt")
READERS = read_model, Lookup  # of the whole, and in place
NO_TOKENS = [("ham", set()), ("spam", set())]


@pytest.fixture
def model(tmp_path):
    return learn().save(tmp_path / "model.json")


def refuses(read, path, *parts):
    with refused(path, *parts):
        read(path)


# Saving and loading


@given(
    labelled_tokens(tokens=st.text(min_size=1, max_size=12) | st.sampled_from(["by:-", "by:mx"])),
    ALPHAS,
    PRIORS,
    st.sampled_from(SCORINGS),
)
def test_what_is_read_is_what_was_written(tmp_path_factory, messages, alpha, prior, scoring):
    learned = learn(messages, alpha=alpha, prior=prior, scoring=scoring)
    found = read_model(learned.save(tmp_path_factory.getbasetemp() / "identity.json"))
    assert (learned.fit.metadata, learned.counts) == (found.metadata, found.counts)


def test_the_lines_of_a_small_model(model):
    bias = json.loads(model.read_bytes())["derived"]["bias"]
    spam = {
        scale.name: {
            "coefficients": list(scale.mean),
            "precision": np.diag(scale.precision).tolist(),
            "ranges": [[0.0, 0.0]] * (scale.size - 1),
            "noise": [0.0, 0.0],
            "run": 0,
        }
        for scale in CALIBRATION_SPECS
    }
    calibration = json.dumps({"spam": spam})
    expected = SMALL.read_text().replace("$CALIBRATION", calibration)
    assert model.read_text() == expected.replace("$BIAS", json.dumps(bias))


# What reading refuses


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return learn().save(tmp_path_factory.mktemp("whole") / "model.json").read_text()


LINES = [line for line in GOLDEN.read_text().splitlines() if line[0] != "#"]


@each("line", [*LINES, f"alpha = {10**400}"])
def test_a_damaged_model_is_refused_in_one_sentence(tmp_path, whole, line):
    path, found = tmp_path / "model.json", json.loads(whole)
    assert laid_out(found) == whole
    path.write_text(laid_out(damaged(found, line)))
    refuses(checked_model, path)


def test_a_model_of_older_rules_is_read_and_written_as_it_is(model):
    old = b'"rules": %d}' % (TOKENIZER_VERSION - 1)
    model.write_bytes(model.read_bytes().replace(b'"rules": %d}' % TOKENIZER_VERSION, old))
    raw, found = model.read_bytes(), read_model(model)
    assert raw.count(old) == 1
    with Lookup(model) as lookup:
        assert lookup.metadata == found.metadata
    write_model(model, found)
    assert model.read_bytes() == raw


@given(labelled_tokens(), st.randoms(use_true_random=False))
def test_the_order_of_learning_does_not_matter(tmp_path_factory, messages, random):
    folder = tmp_path_factory.getbasetemp()
    first = learn(messages).save(folder / "first.json")
    second = learn(random.sample(messages, len(messages))).save(folder / "second.json")
    assert first.read_bytes() == second.read_bytes()


def test_what_reading_refuses_is_told(model, tmp_path):
    whole = model.read_text()
    for old, new, *parts in (
        ('"version": 1', '"version": 2', "version 2", "newer", "update nbspam"),
        ('"alpha": 0.1', '"alpha": NaN'),
    ):
        model.write_text(whole.replace(old, new))
        for read in READERS:
            refuses(read, model, *parts)
    model.write_text(whole.replace('"alpha": 0.1', '"alpha": 0.2, "alpha": 0.1'))
    refuses(read_model, model, "is not as nbspam writes it")
    model.write_text(whole.replace('"free": [1, 1]', '"free": [1, 1],\n"free": [0, 1]'))
    refuses(read_model, model, "duplicate key 'free'")
    model.write_text(whole.partition('},"learned"')[0] + "}}\n")
    refuses(read_model, model, "damaged: it has no messages; restore it from a copy")
    for read in READERS:
        refuses(read, tmp_path / "none.json", "model not found; train it")
        refuses(read, tmp_path, "not a file")
    os.mkfifo(tmp_path / "pipe")
    refuses(learn().save, tmp_path / "pipe", "is not a regular file")


def test_a_pipe_in_a_models_place_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    signal.alarm(20)
    for read in READERS:
        refuses(read, tmp_path / "pipe", "is not a file")
    signal.alarm(0)


def test_no_more_metadata_is_read_than_a_model_has(model):
    """A crafted one would take seconds and hundreds of megabytes."""
    raw = model.read_bytes()
    for size, is_read in ((4 << 20, False), ((4 << 20) - 100 - len(raw), True)):
        model.write_bytes(raw.replace(b'"classes"', b'"x": "%s",\n"classes"' % (b"x" * size), 1))
        if is_read:
            Lookup(model).close()
        refuses(read_model, model, "is not as nbspam writes it" if is_read else "are too long")


@each(
    "change, said",
    [
        (lambda text: text.replace(b"\n", b"\r\n"), "CRLF"),
        (lambda text: b"\xef\xbb\xbf" + text, "its first line is not"),
        (lambda text: b"\n" + text, "its first line is not"),
        (lambda text: text.decode().encode("utf-16"), "its first line is not"),
        (lambda text: text + b"\n", "its end is not"),
        (lambda text: text[:-1], "its end is not"),
        (lambda text: text[:-1] + b" \n\n", "its end is not"),
        (lambda text: text[:-1] + b"\r\n", "its end is not"),
    ],
)
def test_the_marks_of_an_editor_are_told_as_what_they_are(model, change, said):
    whole = model.read_bytes()
    model.write_bytes(change(whole))
    for read in READERS:
        with pytest.raises(ModelError, match=said) as error:
            read(model)
        assert "truncated" not in str(error.value)
        assert "another program" in str(error.value)
    model.write_bytes(whole)


NOT_MODELS = [
    *(b"", b"\n\n", b"From: a@example.org\n\nhello\n", b"[1, 2]", b"1", b"null", b"{}"),
    *(bytes(range(256)) * 40, b"\0" * 100_000, b"[" * 100_000, b"9" * 100_000),
    *(b'{"format": "nbspam-model"}', b'{"format": "nbspam-model", "version": 1}'),
]


@each("content", NOT_MODELS)
def test_a_file_that_is_no_model_is_refused(tmp_path, content):
    (tmp_path / "model.json").write_bytes(content)
    for read in READERS:
        refuses(read, tmp_path / "model.json")


@pytest.mark.parametrize("messages", [MESSAGES, NO_TOKENS], ids=["tokens", "none"])
def test_a_model_cut_short_is_refused_wherever_it_is_cut(tmp_path, messages):
    path = learn(messages).save(tmp_path / "model.json")
    size = path.stat().st_size
    for length in reversed(range(size)):
        os.truncate(path, length)
        refuses(Lookup, path)
        if length % 3 == 0 and length < size - 2:  # JSON needs no line end
            refuses(read_model, path)


# Any file in a model's place is a model that scores, or refused in one sentence, both ways.


SECONDS = 5  # of CPU for one file; each takes a few milliseconds but those of megabytes
TOKENS = ["free", "prize", "meeting", "é", "\\", "never met"]
DIGESTS = ["0" * 32, "7" * 32, "f" * 32]
SEVERAL = [
    *MESSAGES,
    ("ham", {"é", "\\", "received:a", "by:mx"}),
    ("spam", {"received:a", "by:-", "subject:free"}),
]


@pytest.fixture(scope="module")
def texts(place):
    """Return whole model files: of both scorings, of two classes and three, with a ledger."""
    found = []
    for scoring in ("sum", "evidence"):
        for more in ([], [("promo", {"prize", "click"})]):
            learned = learn([*SEVERAL, *more], scoring=scoring)
            row = (1,) + (0,) * (len(learned.fit.metadata.settings.classes) - 1)
            ledger = [(digest, row) for digest in DIGESTS]
            calibrations = learned.fit.metadata.learned.calibrations
            xs = tuple(tuple(own.coefficients for own in both) for both in calibrations)
            lessons = tuple(Lesson(digest, 0, xs) for digest in DIGESTS)
            metadata = with_learned(learned.fit.metadata, recent=lessons, before=calibrations)
            write_model(place, Model(metadata, learned.counts, dict(ledger)))
            found.append(place.read_bytes())
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("bad") / "model.json"


def read_both_ways(path):
    """Hold a file to the promise; return whether it can be read whole, and in place."""
    start = time.process_time()
    whole = None
    try:
        whole = read_model(path)
    except ModelError as error:
        assert_one_sentence(error, path)
    in_place = True
    try:
        with Lookup(path) as lookup:
            known = lookup.counts(TOKENS)
            learned = lookup.ledger_rows(DIGESTS)
            classifier = Classifier(lookup.metadata, lookup.counts)
            score = classifier.score(TOKENS)
            assert math.isfinite(score.log_odds)
            assert 0 <= score.probability <= 1
            explain(classifier, TOKENS)
            for name in lookup.metadata.settings.classes:
                name.encode()
                assert len(name.splitlines()) == 1
            if whole:
                assert lookup.metadata == whole.metadata
                assert known.items() <= whole.counts.items()
                assert learned.items() <= whole.learned.items()
    except ModelError as error:
        assert_one_sentence(error, path)
        in_place = False
    assert time.process_time() - start < SECONDS
    return whole is not None, in_place


def test_the_models_that_are_spoiled_here_are_whole(texts, place):
    for text in texts:
        place.write_bytes(text)
        assert read_both_ways(place) == (True, True)


# Any value in the place of any other, and lines in the wrong places

HOSTILE = st.sampled_from(
    [
        *(b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1", b"0", b"-0.0", b"0.5", b"1e-320"),
        *(b"9007199254740992", b"9007199254740993", b"1" + b"0" * 400, b"1" + b"0" * 5_000),
        *(b"true", b"null", b"[]", b"{}", b"[[]]", b'""', b'" "', b'"\\ud800"', b'"\\u0000"', b'"'),
        *(b'"a\\nb"', b'"\\u001b[2J"', b'"\xff"', b'"' + b"x" * 20_000 + b'"', b"[" * 3_000),
        *(b"[" * 900 + b"]" * 900, b'{"a": 1, "a": 2}', b'"spam"', b'"ham"', b'"unsure"', b"01"),
    ]
)
VALUE = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d[\d.e+-]*|null|[][{},:]|\n')


def spoil(draw, text):
    kind = draw(st.sampled_from("value value value line lines cut bytes ends".split()))
    if kind == "value":
        found = draw(st.sampled_from([*VALUE.finditer(text), *re.finditer(rb"\Z", text)]))
        return text[: found.start()] + draw(HOSTILE | st.just(b"")) + text[found.end() :]
    if kind in ("line", "lines"):
        lines = text.splitlines(keepends=True) or [b""]
        i, j = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        if kind == "line":
            lines.insert(j, lines[i])
        else:
            lines[i], lines[j] = lines[j], lines[i]
        return b"".join(lines)
    if kind == "cut":
        at = draw(st.integers(0, len(text)))
        return text[:at] if draw(st.booleans()) else text[at:]
    if kind == "bytes":
        at = draw(st.integers(0, len(text)))
        gone = draw(st.integers(0, 8))
        return text[:at] + draw(st.binary(max_size=8)) + text[at + gone :]
    spoiled_ends = [
        text.replace(b"\n", b"\r\n"),
        text.replace(b"\n", b""),
        text.replace(b"\n", b" \n"),
        text.rstrip(b"\n"),
        text + b"\n",
        text + text,
        b"\xef\xbb\xbf" + text,
        text.decode("utf-8", "replace").encode("utf-16"),
    ]
    return draw(st.sampled_from(spoiled_ends))


@given(st.data())
def test_a_spoiled_model_scores_or_is_refused_in_one_sentence(texts, place, data):
    text = texts[data.draw(st.integers(0, len(texts) - 1))]
    for _ in range(data.draw(st.sampled_from([1, 1, 2, 3]))):
        text = spoil(data.draw, text)
    place.write_bytes(text)
    read_both_ways(place)


@given(st.binary() | st.text().map(str.encode), st.booleans())
def test_any_bytes_are_refused_in_one_sentence(place, content, begun):
    place.write_bytes((b'{"format": "nbspam-model", "version": 1,\n' if begun else b"") + content)
    assert read_both_ways(place) == (False, False)


# Files that are large, or deep, to take time and memory


def with_more(text, **more):
    """Return a model's text with a line put in before its tokens, or among them."""
    for mark, line in (("metadata", b'"tokens": {\n'), ("tokens", b'"free": ')):
        at = text.index(line)
        text = text[:at] + more.get(mark, b"") + text[at:]
    return text


LARGE = {
    "six MB": {"metadata": b'"x": [' + b"[]," * 2_000_000 + b"0],\n"},
    "a million keys": {"metadata": b"".join(b'"x%d": 0,\n' % i for i in range(500_000))},
    "a long line": {"metadata": b'"x": "' + b"y" * 3_000_000 + b'",\n'},
    "quotes": {"tokens": b'"' + b'": [' * 100_000 + b"\n"},
    "backslashes": {"tokens": b'"' + b"\\" * 500_000 + b"\n"},
    "numbers": {"tokens": b'"a": [' + b"1, " * 200_000 + b"\n"},
    "a long token": {"tokens": b'"a' + b"y" * 1_000_000 + b'": [1, 0],\n'},
    "no line ends": {"tokens": b'"a": [1, 0],' * 200_000},
    "many": {"tokens": b"".join(b'"a%06d": [1, 0],\n' % i for i in range(100_000))},
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", sorted(LARGE))
def test_a_large_model_takes_bounded_time(texts, place, name):
    place.write_bytes(with_more(texts[0], **LARGE[name]))
    read_both_ways(place)


@pytest.mark.long
def test_a_long_line_that_the_search_does_not_meet_is_no_hang(texts, place):
    """The lines around it are so many that bisection never lands on it."""
    lines = [b'"a%06d": [1, 0],\n' % i for i in range(100_000)]
    lines.insert(10, b'"' + b'": [' * 250_000 + b"\n")
    text = with_more(texts[0], tokens=b"".join(lines))
    place.write_bytes(re.sub(rb'"derived": {"tokens": \d+', b'"derived": {"tokens": 100000', text))
    start = time.process_time()
    with Lookup(place) as lookup, refused(place, "damaged"):
        lookup.counts(f"a{i:06}" for i in range(20_000))
    assert time.process_time() - start < SECONDS


# Single findings, each of which once did harm


def test_single_findings_each_of_which_once_did_harm_are_refused(texts, place):
    key, last = b'"alpha": 0.1', '"é"'.encode()
    names = b'"a\\nX-Forged: yes"', b'"\\u001b[2J"', b'"\\ud800"', b'" a"'
    for old, new, both in (
        *((b'"ham"', name, True) for name in names),  # a class name that would break its line
        (last, b'"\\ud800"', False),  # half of a character
        (key, key + b', "alpha": 0.2', False),  # a key that stands twice
    ):
        assert old in texts[0]
        place.write_bytes(texts[0].replace(old, new))
        assert read_both_ways(place)[: 1 + both] == (False, False)[: 1 + both], new
