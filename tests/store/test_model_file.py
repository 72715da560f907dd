import errno
import json
import os
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
    big,
    labelled_tokens,
    learn,
)

from nbspam.bayes.calibration import FULL, SCALES, TEXT
from nbspam.errors import ModelError
from nbspam.store.lookup import Lookup
from nbspam.store.model_file import read_model, write_model
from nbspam.tokens.tokenizer import RULES

GOLDEN = Path(__file__).parents[1] / "golden" / "store" / "model-damages.txt"
READERS = read_model, Lookup  # of the whole, and in place
NO_TOKENS = [("ham", set()), ("spam", set())]


@pytest.fixture
def model(tmp_path):
    return learn().save(tmp_path / "model.json")


def refused(read, path, *parts):
    with pytest.raises(ModelError) as error:
        read(path)
    assert_one_sentence(error, path, *parts)


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


@given(labelled_tokens(), st.randoms(use_true_random=False))
def test_the_order_of_learning_does_not_matter(tmp_path_factory, messages, random):
    folder = tmp_path_factory.getbasetemp()
    first = learn(messages).save(folder / "first.json")
    second = learn(random.sample(messages, len(messages))).save(folder / "second.json")
    assert first.read_bytes() == second.read_bytes()


def test_reading_and_writing_again_gives_the_same_bytes(tmp_path):
    path = big(3_000).save(tmp_path / "model.json")
    found = read_model(path)
    write_model(tmp_path / "again.json", found.metadata, found.counts.items())
    assert path.read_bytes() == (tmp_path / "again.json").read_bytes()


def test_the_lines_of_a_small_model(model):
    lines = model.read_text(encoding="utf-8").splitlines()
    bias = json.loads(model.read_bytes())["derived"]["bias"]
    spam = {
        scale.name: {
            "coefficients": list(scale.mean),
            "precision": np.diag(scale.precision).tolist(),
            "ranges": [[0.0, 0.0]] * (scale.size - 1),
            "noise": 0.0,
            "run": 0,
        }
        for scale in SCALES
    }
    assert lines == [
        '{"format": "nbspam-model", "version": 1,',
        '"tokenizer": {"name": "nbspam", "rules": 6},',
        '"event_model": "bernoulli",',
        '"traits": {"model": "none", "variance_smoothing": 1e-09, "variance_prior": 0.0,'
        ' "shared_variance": false, "histograms": {}},',
        '"classes": ["ham", "spam"],',
        '"messages": [3, 2],',
        '"alpha": 0.1,',
        '"prior": null,',
        '"positive": "spam",',
        '"scoring": "sum",',
        f'"calibration": {json.dumps({"spam": spam})},',
        '"calibrated_by": "training",',
        '"recent": [],',
        '"spam_cutoff": 0.9,',
        '"ham_cutoff": 0.5,',
        f'"derived": {{"tokens": 8, "bias": {json.dumps(bias)}, "count_histograms":'
        ' [{"0": 3, "1": 3, "2": 2}, {"0": 4, "1": 3, "2": 1}], "hosts": []},',
        '"tokens": {',
        '"click": [0, 1],',
        '"free": [1, 1],',
        '"lunch": [1, 0],',
        '"meeting": [2, 0],',
        '"notes": [1, 0],',
        '"prize": [0, 2],',
        '"tomorrow": [2, 0],',
        '"winner": [0, 1]',
        '},"learned": {',
        "}}",
    ]


def test_each_token_stands_on_a_line_of_its_own_in_the_order_of_bytes(tmp_path):
    path = big(500).save(tmp_path / "model.json")
    lines = path.read_bytes().split(b'"tokens": {\n')[1].split(b"\n}")[0].split(b"\n")
    assert len(lines) == 500
    keys = [line.rpartition(b": [")[0] for line in lines]
    assert sorted(keys) == keys


# Writing


def fail(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Full:
    def __init__(self, handle, *arguments, open_it=os.fdopen, **options):
        self._file = open_it(handle, *arguments, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def __getattr__(self, name):
        return getattr(self._file, name)

    write = fail


STEPS = {  # what fails, and how
    "write": [(os, "fdopen", Full)],
    "fsync": [(os, "fsync", fail)],
    "replace": [(Path, "replace", fail), (os, "replace", fail), (os, "rename", fail)],
}


@each("step", [*STEPS, KeyboardInterrupt, MemoryError, SystemExit])
def test_a_failed_or_interrupted_write_leaves_the_old_model_and_nothing_else(model, step):
    def interrupt(*_):
        raise step

    before = model.read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        for place, name, failure in STEPS.get(step, [(os, "fsync", interrupt)]):
            patch.setattr(place, name, failure)
        with pytest.raises(ModelError if step in STEPS else step) as error:
            learn(MESSAGES[1:]).save(model)
    if step in STEPS:
        assert_one_sentence(error, model, "No space left on device")
    assert before == model.read_bytes()
    names = [path.name for path in model.parent.iterdir() if path.suffix != ".lock"]
    assert names == [model.name]


# What reading refuses


def calibration_damages(scale):
    """Return what may be wrong with one calibration, as the golden file writes it."""
    n = scale.size
    ones, half = np.eye(n).tolist(), [[0.0, 0.0]] * (n - 2)
    nan, infinity = float("nan"), float("inf")
    short = [row[:-1] for row in ones]
    skew = [[1.0, 0.5, *[0.0] * (n - 2)], *ones[1:]]
    wrong = {
        "coefficients": [[0.0] * (n - 1), [0.0] * (n + 1), [nan] * n, ["0"] * n, [1e16] * n],
        "precision": [
            *(None, short[:-1], short, skew, [[infinity] * n] * n, [[0.0] * n] * n),
            [[-value for value in row] for row in ones],
        ],
        "ranges": [
            *(None, [], half, [*half, [0.0, 0.0], [0.0, 0.0]], [0.0] * (n - 1)),
            *([*half, end] for end in ([1.0, 0.0], [0.0, 0.0, 1.0], [nan, nan], [0.0, infinity])),
            *([*half, end] for end in (["0", "1"], [None, None], [1e300, 1e308])),
        ],
        "noise": [None, True, "0", nan, -0.1, 1],
        "run": [1.0, True, None, 2**60],
    }
    place = f"calibration spam {scale.name}"
    yield from (f"{place} = null", f"{place} = []", f"- {place}")
    yield from (f"- {place} {key}" for key in "coefficients precision ranges run".split())
    for key, values in wrong.items():
        yield from (f"{place} {key} = {json.dumps(value)}" for value in values)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return learn().save(tmp_path_factory.mktemp("whole") / "model.json").read_text()


LINES = [line for line in GOLDEN.read_text().splitlines() if line[0] != "#"]


@each(
    "line",
    [*LINES, f"alpha = {10**400}", *calibration_damages(TEXT), *calibration_damages(FULL)],
)
def test_a_damaged_model_is_refused_in_one_sentence(tmp_path, whole, line):
    path, found = tmp_path / "model.json", json.loads(whole)
    path.write_text(json.dumps(found))
    assert read_model(path).metadata.learned.messages == (3, 2)
    *keys, last = line.removeprefix("- ").partition(" = ")[0].split()
    place = found
    for key in keys:
        place = place[key]
    if line.startswith("- "):
        del place[last]
    else:
        place[last] = json.loads(line.partition(" = ")[2])
    path.write_text(json.dumps(found))
    refused(read_model, path)


def test_a_model_of_older_rules_is_read_and_written_as_it_is(model):
    old = b'"rules": %d}' % (RULES - 1)
    model.write_bytes(model.read_bytes().replace(b'"rules": %d}' % RULES, old))
    raw, found = model.read_bytes(), read_model(model)
    assert raw.count(old) == 1
    with Lookup(model) as lookup:
        assert lookup.metadata == found.metadata
    write_model(model, found.metadata, found.counts.items(), found.learned.items())
    assert model.read_bytes() == raw


def test_what_reading_refuses_is_told(model, tmp_path):
    whole = model.read_text()
    for old, new, *parts in (
        ('"version": 1', '"version": 2', "version 2", "newer", "update nbspam"),
        ('"alpha": 0.1', '"alpha": 0.1, "alpha": 0.2', "duplicate key 'alpha'"),
        ('"alpha": 0.1', '"alpha": NaN'),
    ):
        model.write_text(whole.replace(old, new))
        for read in READERS:
            refused(read, model, *parts)
    model.write_text(whole.replace('"free": [1, 1]', '"free": [1, 1],\n"free": [0, 1]'))
    refused(read_model, model, "duplicate key 'free'")
    for read in READERS:
        refused(read, tmp_path / "none.json", "there is no such model; train a model")
        refused(read, tmp_path, "not a file")
    os.mkfifo(tmp_path / "pipe")
    refused(learn().save, tmp_path / "pipe", "is not a regular file")


NOT_MODELS = [
    *(b"", b"\n\n", b"From: a@example.org\n\nhello\n", b"[1, 2]", b"1", b"null", b"{}"),
    *(bytes(range(256)) * 40, b"\0" * 100_000, b"[" * 100_000, b"9" * 100_000),
    *(b'{"format": "nbspam-model"}', b'{"format": "nbspam-model", "version": 1}'),
]


@each("content", NOT_MODELS)
def test_a_file_that_is_no_model_is_refused(tmp_path, content):
    (tmp_path / "model.json").write_bytes(content)
    for read in READERS:
        refused(read, tmp_path / "model.json")


@pytest.mark.parametrize("messages", [MESSAGES, NO_TOKENS], ids=["tokens", "none"])
def test_a_model_cut_short_is_refused_wherever_it_is_cut(tmp_path, messages):
    path = learn(messages).save(tmp_path / "model.json")
    size = path.stat().st_size
    for length in reversed(range(size)):
        os.truncate(path, length)
        refused(Lookup, path)
        if length % 3 == 0 and length < size - 2:  # JSON needs no line end
            refused(read_model, path)
