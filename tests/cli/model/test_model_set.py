"""`nbspam model set`: the cut-offs of a model, and every command that uses it."""

import json

import pytest
from one_case import each

MIDDLING = b"free notes for the winner of the meeting"  # its probability is 0.5 to 0.9


def settings(nbspam, model, *options):
    found = nbspam("model", "set", "-m", model, *options)
    assert (found.code, found.err) == (0, "")
    return found.out


def cut_offs(model):
    fields = json.loads(model.read_text())
    return fields["spam_cutoff"], fields["ham_cutoff"]


def judged(nbspam, model, *options):
    options = ("--format", "json", *options)
    return json.loads(nbspam("classify", "-m", model, *options, stdin=MIDDLING).out)


def test_it_says_what_holds_now(nbspam, model):
    for options, said in (
        (("--spam-cutoff", "0.99"), "spam above 0.99, ham up to 0.5"),
        (("--ham-cutoff", "0.25"), "spam above 0.99, ham up to 0.25"),
        (("--ham-cost", "9"), "spam above 0.9, ham up to 0.9"),
    ):
        assert settings(nbspam, model, *options) == f"{model}: {said}\n"
    out = settings(nbspam, model, "--spam-cutoff", "0.99", "--format", "json")
    assert json.loads(out) == {"model": str(model), "spam_cutoff": 0.99, "ham_cutoff": 0.9}


@each(
    "options, expected",
    [
        (("--spam-cutoff", "0.99"), (0.99, 0.4)),
        (("--ham-cutoff", "0.1"), (0.8, 0.1)),
        (("--spam-cutoff", "0.7", "--ham-cutoff", "0.6"), (0.7, 0.6)),
        (("--spam-cutoff", "0.3"), (0.3, 0.3)),  # the ham cut-off is never above it
        (("--spam-cutoff", "1", "--ham-cutoff", "0"), (1, 0)),
        (("--ham-cost", "19"), (0.95, 0.95)),
    ],
)
def test_what_is_not_given_stays(nbspam, model, options, expected):
    settings(nbspam, model, "--spam-cutoff", "0.8", "--ham-cutoff", "0.4")
    settings(nbspam, model, *options)
    assert cut_offs(model) == pytest.approx(expected)


def test_nothing_else_changes(nbspam, model, table, make_model, tmp_path):
    """Then or when it learns, forgets or is pruned."""
    fields = json.loads(model.read_text())
    settings(nbspam, model, "--spam-cutoff", "0.75", "--ham-cutoff", "0.25")
    assert json.loads(model.read_text()) == fields | {"spam_cutoff": 0.75, "ham_cutoff": 0.25}
    assert nbspam("model", "check", "-m", model).code == 0
    assert model.stat().st_mode & 0o777 == 0o600
    trained = make_model(table, "--spam-cutoff", "0.75", "--ham-cutoff", "0.25", name="b.json")
    assert trained.read_bytes() == model.read_bytes()
    mail = tmp_path / "mail"
    mail.write_bytes(b"Subject: prize\n\na prize of another kind\n")
    learn, forget = ("train", "--update", "--spam", mail), ("forget", mail)
    for command in (learn, forget, ("model", "prune", "--min-count", "2")):
        assert nbspam(*command, "-m", model).code == 0
        assert cut_offs(model) == (0.75, 0.25)


def test_every_command_uses_them_and_options_go_first(nbspam, model, table):
    before = judged(nbspam, model)
    assert before["verdict"] == "unsure"
    p = before["probability"]
    tested = ("eval", "--including-learned", "--format", "json")
    for cut_off, verdict in ((p - 0.01, "spam"), (p + 0.01, "ham")):
        settings(nbspam, model, "--spam-cutoff", cut_off, "--ham-cutoff", cut_off)
        after = judged(nbspam, model)
        assert after == before | {"verdict": verdict}
        passed = nbspam("classify", "-p", "-m", model, stdin=MIDDLING).out
        assert f"X-Nbspam: {verdict}, probability=" in passed
        found = nbspam("explain", "-m", model, "--format", "json", stdin=MIDDLING)
        assert json.loads(found.out)["verdict"] == verdict
        found = json.loads(nbspam(*tested, "-m", model, table).out)
        assert found["spam_cutoff"] == found["ham_cutoff"] == cut_off
        info = json.loads(nbspam("model", "info", "-m", model, "--format", "json").out)
        assert (info["spam_cutoff"], info["ham_cutoff"]) == (cut_off, cut_off)
        options = ("--spam-cutoff", "0.9", "--ham-cutoff", "0.5")
        assert judged(nbspam, model, *options) == before
        assert cut_offs(model) == (cut_off, cut_off)


@each(
    "options, parts",
    [
        ((), ("nothing to set", "--spam-cutoff", "--ham-cutoff", "--ham-cost")),
        (("--spam-cutoff", "1.5"), ("the spam cut-off must be between 0 and 1, not 1.5",)),
        (("--spam-cutoff", "nan"), ("the spam cut-off must be between 0 and 1",)),
        (("--ham-cutoff", "-0.1"), ("the ham cut-off must be between 0 and 1, not -0.1",)),
        (("--ham-cutoff", "0.95"), ("0.95, is above the spam cut-off, 0.9", "lower")),
        (("--spam-cutoff", "0.2", "--ham-cutoff", "0.3"), ("above the spam cut-off",)),
        (("--ham-cost", "0"), ("the ham cost must be above 0, not 0",)),
        (("--ham-cost", "inf"), ("the ham cost must be above 0",)),
        (("--ham-cost", "9", "--ham-cutoff", "0.5"), ("leave out",)),
    ],
)
def test_what_makes_no_sense_is_one_sentence_and_changes_nothing(
    nbspam, model, assert_sentence, options, parts
):
    before = model.stat()
    for form in ((), ("--format", "json")):
        assert_sentence(nbspam("model", "set", "-m", model, *options, *form), *parts, code=2)
    after = model.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_models_that_cannot_be_set_are_left_as_they_are(
    nbspam, three_classes, make_model, tmp_path, assert_sentence
):
    model = make_model(three_classes)
    whole = model.read_bytes()
    spam_cutoff = ("model", "set", "--spam-cutoff", "0.9", "-m")
    said = "3 classes", "leave out the cut-offs"
    assert_sentence(nbspam(*spam_cutoff, model), *said, code=2)
    assert model.read_bytes() == whole
    for damaged in (b"", b"{}", b"no model", whole[: len(whole) // 2]):
        model.write_bytes(damaged)
        assert_sentence(nbspam("model", "set", "-m", model, "--ham-cost", "9"), model)
        assert model.read_bytes() == damaged
    none = tmp_path / "none" / "none.json"
    none.parent.mkdir()
    assert_sentence(nbspam(*spam_cutoff, none), none, "model not found")
    assert not list(none.parent.iterdir())


def test_a_model_of_one_class_can_be_set(nbspam, tmp_path):
    model = tmp_path / "one.json"
    learn = ("train", "--update", "--ham", "-", "-m", model)
    assert nbspam(*learn, stdin=b"lunch at noon").code == 0
    settings(nbspam, model, "--spam-cutoff", "0.99")
    assert cut_offs(model) == (0.99, 0.5)
