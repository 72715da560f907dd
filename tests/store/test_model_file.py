import errno
import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import (
    ALPHAS,
    MESSAGES,
    PRIORS,
    SCORINGS,
    assert_one_sentence,
    big,
    labelled_tokens,
    learn,
    rewrite,
)

from nbspam.bayes.calibration import FULL, SCALES, TEXT
from nbspam.errors import ModelError
from nbspam.store.lookup import Lookup
from nbspam.store.model_file import read_model, write_model
from nbspam.tokens.tokenizer import RULES


@pytest.fixture
def model(tmp_path):
    return learn().save(tmp_path / "model.json")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def names_in(folder):
    """Return what lies in a folder, but for locks, which stay."""
    return sorted(p.name for p in folder.iterdir() if not p.name.endswith(".lock"))


# Saving and loading


@given(
    labelled_tokens(tokens=st.text(min_size=1, max_size=12) | st.sampled_from(["by:-", "by:mx"])),
    ALPHAS,
    PRIORS,
    st.sampled_from(SCORINGS),
)
def test_what_is_read_is_what_was_written(tmp_path_factory, messages, alpha, prior, scoring):
    learned = learn(messages, alpha=alpha, prior=prior, scoring=scoring)
    path = learned.save(tmp_path_factory.getbasetemp() / "identity.json")
    found = read_model(path)
    assert learned.fit.metadata == found.metadata
    assert learned.counts == found.counts


@given(labelled_tokens(), st.randoms(use_true_random=False))
def test_the_order_of_learning_does_not_matter(tmp_path_factory, messages, random):
    folder = tmp_path_factory.getbasetemp()
    shuffled = random.sample(messages, len(messages))
    first = learn(messages).save(folder / "first.json")
    second = learn(shuffled).save(folder / "second.json")
    assert first.read_bytes() == second.read_bytes()


def test_reading_and_writing_again_gives_the_same_bytes(tmp_path):
    path = big(3_000).save(tmp_path / "model.json")
    found = read_model(path)
    write_model(tmp_path / "again.json", found.metadata, found.counts.items())
    assert path.read_bytes() == (tmp_path / "again.json").read_bytes()


def test_any_json_reader_can_load_it(model):
    fields = json.loads(model.read_text(encoding="utf-8"))
    assert fields["format"] == "nbspam-model"
    assert fields["version"] == 1
    assert fields["classes"] == ["ham", "spam"]
    assert fields["messages"] == [3, 2]
    assert fields["tokens"]["free"] == [1, 1]
    assert fields["tokens"]["prize"] == [0, 2]


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
    assert lines[:10] == [
        '{"format": "nbspam-model", "version": 1,',
        '"tokenizer": {"name": "nbspam", "rules": 4},',
        '"event_model": "bernoulli",',
        '"traits": {"model": "none", "variance_smoothing": 1e-09, "variance_prior": 0.0,'
        ' "shared_variance": false, "histograms": {}},',
        '"classes": ["ham", "spam"],',
        '"messages": [3, 2],',
        '"alpha": 0.1,',
        '"prior": null,',
        '"positive": "spam",',
        '"scoring": "sum",',
    ]
    assert lines[10:15] == [
        f'"calibration": {json.dumps({"spam": spam})},',
        '"calibrated_by": "training",',
        '"recent": [],',
        '"spam_cutoff": 0.9,',
        '"ham_cutoff": 0.5,',
    ]
    assert lines[15] == (
        f'"derived": {{"tokens": 8, "bias": {json.dumps(bias)}, "count_histograms":'
        ' [{"0": 3, "1": 3, "2": 2}, {"0": 4, "1": 3, "2": 1}], "hosts": []},'
    )
    assert lines[16:] == [
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


def test_no_line_after_the_tokens_begins_with_a_quote_but_learned_ones(model):
    after = model.read_bytes().split(b'"tokens": {\n')[1].split(b"\n}")[1]
    assert not any(line.startswith(b'"') for line in after.split(b"\n"))


# Writing


def test_only_the_owner_may_read_it(model):
    assert mode(model) == 0o600


def test_who_may_read_it_may_read_it_after_it_is_replaced(model):
    model.chmod(0o644)
    learn().save(model)
    assert mode(model) == 0o644


def test_a_link_keeps_pointing_at_the_model(tmp_path):
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "model.json", tmp_path / "link.json"
    learn().save(real)
    link.symlink_to(real)
    learn(MESSAGES[1:]).save(link)
    assert link.is_symlink()
    assert read_model(real).metadata.learned.messages == (2, 2)
    assert names_in(real.parent) == ["model.json"]


def fail(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_failed_write_leaves_the_old_model_and_nothing_else(model, monkeypatch, step):
    before = model.read_bytes()
    with monkeypatch.context() as patch:
        if step == "write":
            real = os.fdopen

            def full_disk(handle, *arguments, **options):
                return Full(real(handle, *arguments, **options))

            patch.setattr(os, "fdopen", full_disk)
        elif step == "fsync":
            patch.setattr(os, "fsync", fail)
        else:
            patch.setattr(Path, "replace", fail)
            patch.setattr(os, "replace", fail)
            patch.setattr(os, "rename", fail)
        with pytest.raises(ModelError) as error:
            learn(MESSAGES[1:]).save(model)
    assert_one_sentence(error, model, "No space left on device")
    assert before == model.read_bytes()
    assert [model.name] == names_in(model.parent)


class Full:
    """A file on a disk that is full."""

    def __init__(self, file):
        self._file = file

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def __getattr__(self, name):
        return getattr(self._file, name)

    write = fail


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError, SystemExit])
def test_an_interrupted_write_leaves_the_old_model_and_nothing_else(
    model, monkeypatch, interruption
):
    before = model.read_bytes()

    def interrupt(*_):
        raise interruption

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupt)
        with pytest.raises(interruption):
            learn(MESSAGES[1:]).save(model)
    assert before == model.read_bytes()
    assert [model.name] == names_in(model.parent)


def test_a_folder_in_the_models_place_stays(tmp_path):
    (tmp_path / "model.json").mkdir()
    with pytest.raises(ModelError) as error:
        learn().save(tmp_path / "model.json")
    assert_one_sentence(error, tmp_path / "model.json", "folder")
    assert names_in(tmp_path) == ["model.json"]


def test_a_missing_folder_is_named(tmp_path):
    path = tmp_path / "none" / "model.json"
    with pytest.raises(ModelError) as error:
        learn().save(path)
    assert_one_sentence(error, path, "No such file or directory")


def test_a_left_over_temporary_file_is_no_hindrance(tmp_path):
    path = tmp_path / "model.json"
    (tmp_path / ".model.json.new").write_text("left by a killed process")
    learn().save(path)
    assert names_in(tmp_path) == ["model.json"]


# What reading refuses


def set_to(*keys_and_value):
    *keys, last, value = keys_and_value

    def change(fields):
        for key in keys:
            fields = fields[key]
        fields[last] = value

    return change


def without(*keys):
    *path, last = keys

    def change(fields):
        for key in path:
            fields = fields[key]
        del fields[last]

    return change


NAN, INFINITY = float("nan"), float("inf")

DAMAGES = (
    {
        "alpha NaN": set_to("alpha", NAN),
        "alpha infinite": set_to("alpha", INFINITY),
        "alpha 0": set_to("alpha", 0),
        "alpha negative": set_to("alpha", -1),
        "alpha text": set_to("alpha", "0.1"),
        "alpha true": set_to("alpha", True),
        "alpha null": set_to("alpha", None),
        "alpha beyond a float": set_to("alpha", 10**400),
        "prior 0": set_to("prior", 0),
        "prior 1": set_to("prior", 1),
        "prior NaN": set_to("prior", NAN),
        "prior text": set_to("prior", "half"),
        "bias NaN": set_to("derived", "bias", [NAN, 0]),
        "bias minus infinity": set_to("derived", "bias", [0, -INFINITY]),
        "bias text": set_to("derived", "bias", ["0", 0]),
        "bias of one class": set_to("derived", "bias", [0]),
        "bias null": set_to("derived", "bias", None),
        "classes none": set_to("classes", []),
        "classes text": set_to("classes", "hs"),
        "classes twice the same": set_to("classes", ["spam", "spam"]),
        "classes numbers": set_to("classes", [0, 1]),
        "class without a name": set_to("classes", ["", "spam"]),
        "classes more than messages": set_to("classes", ["ham", "spam", "promo"]),
        "messages negative": set_to("messages", [-3, 2]),
        "messages fractions": set_to("messages", [3.0, 2]),
        "messages true": set_to("messages", [3, True]),
        "messages too many": set_to("messages", [3, 2**60]),
        "messages fewer than the counts": set_to("messages", [3, 1]),
        "positive unknown": set_to("positive", "junk"),
        "positive a list": set_to("positive", ["spam"]),
        "positive none of two": set_to("positive", None),
        "scoring unknown": set_to("scoring", "magic"),
        "scoring a list": set_to("scoring", ["sum"]),
        "event model unknown": set_to("event_model", "magic"),
        "event model a list": set_to("event_model", ["bernoulli"]),
        "derived a list": set_to("derived", []),
        "token number negative": set_to("derived", "tokens", -1),
        "count histograms a list": set_to("derived", "count_histograms", [[], []]),
        "count histograms of one class": set_to("derived", "count_histograms", [{}]),
        "count histograms text": set_to("derived", "count_histograms", [{"one": 1}, {}]),
        "count histograms negative": set_to("derived", "count_histograms", [{"1": -1}, {}]),
        "count histograms above messages": set_to("derived", "count_histograms", [{"4": 1}, {}]),
        "spam cut-off NaN": set_to("spam_cutoff", NAN),
        "spam cut-off above 1": set_to("spam_cutoff", 1.5),
        "spam cut-off text": set_to("spam_cutoff", "0.5"),
        "ham cut-off NaN": set_to("ham_cutoff", NAN),
        "ham cut-off below 0": set_to("ham_cutoff", -0.1),
        "ham cut-off text": set_to("ham_cutoff", "0.5"),
        "ham cut-off null": set_to("ham_cutoff", None),
        "ham cut-off true": set_to("ham_cutoff", True),
        "ham cut-off above the spam cut-off": set_to("ham_cutoff", 0.95),
        "hosts null": set_to("derived", "hosts", None),
        "hosts a dict": set_to("derived", "hosts", {}),
        "hosts of one class": set_to("derived", "hosts", [[1, 1]]),
        "hosts of three classes": set_to("derived", "hosts", [[1, 1, 1, 1]]),
        "hosts no lists": set_to("derived", "hosts", [1, 1, 1]),
        "hosts negative": set_to("derived", "hosts", [[-1, 1, 1]]),
        "hosts fractions": set_to("derived", "hosts", [[1.0, 1, 1]]),
        "hosts true": set_to("derived", "hosts", [[True, 1, 1]]),
        "hosts without mails": set_to("derived", "hosts", [[0, 0, 1]]),
        "hosts that are none": set_to("derived", "hosts", [[1, 1, 0]]),
        "hosts twice": set_to("derived", "hosts", [[1, 1, 1], [1, 1, 2]]),
        "hosts above messages": set_to("derived", "hosts", [[4, 1, 1]]),
        "hosts too many": set_to("derived", "hosts", [[1, 1, 2**60]]),
        "calibration null": set_to("calibration", None),
        "calibration a list": set_to("calibration", []),
        "calibration of no class": set_to("calibration", {}),
        "calibrations null": set_to("calibration", "spam", None),
        "calibrations a list": set_to("calibration", "spam", [{}, {}]),
        "calibrated by nobody": set_to("calibrated_by", "magic"),
        "recent null": set_to("recent", None),
        "recent a digest": set_to("recent", "0" * 32),
        "recent numbers": set_to("recent", [0]),
        "recent too short": set_to("recent", ["0" * 31]),
        "recent in capitals": set_to("recent", ["0" * 31 + "A"]),
        "recent half of a character": set_to("recent", ["0" * 31 + "\ud800"]),
        "tokens a list": set_to("tokens", []),
        "tokens null": set_to("tokens", None),
        "count negative": set_to("tokens", "free", [-1, 1]),
        "count a fraction": set_to("tokens", "free", [1.0, 1]),
        "count text": set_to("tokens", "free", ["1", 1]),
        "count true": set_to("tokens", "free", [True, 1]),
        "count null": set_to("tokens", "free", [None, 1]),
        "count NaN": set_to("tokens", "free", [NAN, 1]),
        "count above messages": set_to("tokens", "free", [4, 1]),
        "count of one class": set_to("tokens", "free", [1]),
        "count of three classes": set_to("tokens", "free", [1, 1, 0]),
        "count no list": set_to("tokens", "free", 1),
        "count of no message": set_to("tokens", "free", [0, 0]),
        "version 0": set_to("version", 0),
        "version text": set_to("version", "1"),
        "version 1.5": set_to("version", 1.5),
        "version null": set_to("version", None),
        "newer": set_to("version", 2),
        "other format": set_to("format", "nbspam"),
        "token rules unknown": set_to("tokenizer", "rules", 99),
        "token rules missing": without("tokenizer", "rules"),
        "tokenizer unknown": set_to("tokenizer", "name", "other"),
        "tokenizer without a name": without("tokenizer", "name"),
        "tokenizer a list": set_to("tokenizer", []),
    }
    | {
        f"no {key}": without(key)
        for key in (
            "format version tokenizer event_model classes messages alpha prior positive scoring"
            " calibration calibrated_by spam_cutoff ham_cutoff derived tokens learned"
        ).split()
    }
    | {
        f"no derived {key}": without("derived", key)
        for key in "tokens bias count_histograms hosts".split()
    }
)


def calibration_damages(scale):
    """Return what may be wrong with one calibration."""
    n = scale.size
    diagonal = [[float(i == j) for j in range(n)] for i in range(n)]
    half = [[0.0, 0.0]] * (n - 2)

    def at(*keys_and_value):
        return set_to("calibration", "spam", scale.name, *keys_and_value)

    found = {
        "null": set_to("calibration", "spam", scale.name, None),
        "a list": set_to("calibration", "spam", scale.name, []),
        "gone": without("calibration", "spam", scale.name),
        "coefficients too few": at("coefficients", [0.0] * (n - 1)),
        "coefficients too many": at("coefficients", [0.0] * (n + 1)),
        "coefficients NaN": at("coefficients", [NAN] * n),
        "coefficients text": at("coefficients", ["0"] * n),
        "coefficients out of bounds": at("coefficients", [1e16] * n),
        "precision null": at("precision", None),
        "precision too small": at("precision", [row[:-1] for row in diagonal[:-1]]),
        "precision of short rows": at("precision", [row[:-1] for row in diagonal]),
        "precision infinite": at("precision", [[INFINITY] * n for _ in range(n)]),
        "precision zero": at("precision", [[0.0] * n for _ in range(n)]),
        "precision negative": at("precision", [[-v for v in row] for row in diagonal]),
        "precision not symmetric": at("precision", [[1.0, 0.5, *[0.0] * (n - 2)], *diagonal[1:]]),
        "ranges null": at("ranges", None),
        "ranges empty": at("ranges", []),
        "ranges too few": at("ranges", half),
        "ranges too many": at("ranges", [*half, [0.0, 0.0], [0.0, 0.0]]),
        "ranges the wrong way round": at("ranges", [*half, [1.0, 0.0]]),
        "ranges of three": at("ranges", [*half, [0.0, 0.0, 1.0]]),
        "ranges of numbers": at("ranges", [0.0] * (n - 1)),
        "ranges NaN": at("ranges", [*half, [NAN, NAN]]),
        "ranges infinite": at("ranges", [*half, [0.0, INFINITY]]),
        "ranges text": at("ranges", [*half, ["0", "1"]]),
        "ranges null ends": at("ranges", [*half, [None, None]]),
        "ranges out of bounds": at("ranges", [*half, [1e300, 1e308]]),
        "noise null": at("noise", None),
        "noise true": at("noise", True),
        "noise text": at("noise", "0"),
        "noise NaN": at("noise", NAN),
        "noise below 0": at("noise", -0.1),
        "noise 1": at("noise", 1),
        "run a fraction": at("run", 1.0),
        "run true": at("run", True),
        "run null": at("run", None),
        "run too long": at("run", 2**60),
    }
    keys = "coefficients precision ranges run".split()
    found |= {f"no {key}": without("calibration", "spam", scale.name, key) for key in keys}
    return {f"{scale.name} {what}": damage for what, damage in found.items()}


DAMAGES |= calibration_damages(TEXT) | calibration_damages(FULL)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_model_is_refused_in_one_sentence(model, damage):
    rewrite(model, damage)
    with pytest.raises(ModelError) as error:
        read_model(model)
    assert_one_sentence(error, model)


def test_a_model_of_older_rules_is_read_and_written_as_it_is(model):
    old = b'"rules": %d}' % (RULES - 1)
    model.write_bytes(model.read_bytes().replace(b'"rules": %d}' % RULES, old))
    raw, found = model.read_bytes(), read_model(model)
    assert raw.count(old) == 1
    with Lookup(model) as lookup:
        assert lookup.metadata == found.metadata
    write_model(model, found.metadata, found.counts.items(), found.learned.items())
    assert model.read_bytes() == raw


def test_a_key_that_stands_twice_is_refused(model):
    text = model.read_text()
    model.write_text(text.replace('"free": [1, 1]', '"free": [1, 1],\n"free": [0, 1]'))
    with pytest.raises(ModelError) as error:
        read_model(model)
    assert_one_sentence(error, model, "duplicate key 'free'")


def test_a_key_of_the_metadata_that_stands_twice_is_refused(model):
    text = model.read_text()
    model.write_text(text.replace('"alpha": 0.1', '"alpha": 0.1, "alpha": 0.2'))
    with pytest.raises(ModelError) as error:
        read_model(model)
    assert_one_sentence(error, model, "duplicate key 'alpha'")


NOT_MODELS = {
    "empty": b"",
    "blank": b"\n\n",
    "a mail": b"From: a@example.org\n\nhello\n",
    "a list": b"[1, 2]",
    "a number": b"1",
    "null": b"null",
    "an empty object": b"{}",
    "bytes": bytes(range(256)) * 40,
    "zeros": b"\0" * 100_000,
    "deep": b"[" * 100_000,
    "a long number": b"9" * 100_000,
    "a format alone": b'{"format": "nbspam-model"}',
    "a format and a version": b'{"format": "nbspam-model", "version": 1}',
}


@pytest.mark.parametrize("content", NOT_MODELS.values(), ids=NOT_MODELS.keys())
def test_a_file_that_is_no_model_is_refused(tmp_path, content):
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(ModelError) as error:
        read_model(path)
    assert_one_sentence(error, path)
    with pytest.raises(ModelError) as error:
        Lookup(path)
    assert_one_sentence(error, path)


def test_a_newer_model_asks_for_a_newer_program(model):
    rewrite(model, set_to("version", 2))
    with pytest.raises(ModelError) as error:
        read_model(model)
    assert_one_sentence(error, model, "version 2", "newer", "update nbspam")


def test_a_model_cut_short_is_refused_wherever_it_is_cut(model):
    whole = model.read_bytes()
    for length in range(0, len(whole) - 2, 3):
        model.write_bytes(whole[:length])
        with pytest.raises(ModelError) as error:
            read_model(model)
        assert_one_sentence(error, model)


def test_a_missing_model_says_how_to_make_one(tmp_path):
    with pytest.raises(ModelError) as error:
        read_model(tmp_path / "none.json")
    assert_one_sentence(error, tmp_path / "none.json", "there is no such model; train a model")


def test_a_folder_is_no_model(tmp_path):
    with pytest.raises(ModelError) as error:
        read_model(tmp_path)
    assert_one_sentence(error, tmp_path, "not a file")


def test_what_is_not_a_regular_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelError, match="is not a regular file"):
        learn().save(tmp_path / "pipe")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
