"""Any file in a model's place is a model that scores, or refused in one sentence, both ways."""

import math
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import MESSAGES, assert_one_sentence, learn, with_learned

from nbspam.errors import ModelError
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.explanation import explain
from nbspam.store.lookup import Lookup
from nbspam.store.model_file import read_model, write_model

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
            metadata = with_learned(learned.fit.metadata, recent=tuple(DIGESTS))
            write_model(place, metadata, learned.counts.items(), ledger)
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
            learned = lookup.learned(DIGESTS)
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
    with Lookup(place) as lookup, pytest.raises(ModelError) as error:
        lookup.counts(f"a{i:06}" for i in range(20_000))
    assert_one_sentence(error, place, "damaged")
    assert time.process_time() - start < SECONDS


# Single findings, each of which once did harm


def test_single_findings_each_of_which_once_did_harm_are_refused(texts, place):
    key, last = b'"alpha": 0.1', '"é"'.encode()
    names = b'"a\\nX-Forged: yes"', b'"\\u001b[2J"', b'"\\ud800"', b'" a"'
    for old, new, both in (
        *((b'"ham"', name, True) for name in names),  # a class name that would break its line
        (last, b'"\\ud800"', False),  # half of a character
        (key, key + b', "alpha": 0.2', True),  # a key that stands twice
    ):
        assert old in texts[0]
        place.write_bytes(texts[0].replace(old, new))
        assert read_both_ways(place)[: 1 + both] == (False, False)[: 1 + both], new
