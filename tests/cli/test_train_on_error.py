"""`nbspam train --on-error`."""

import json

import pytest
from one_case import each


def content(model):
    fields = json.loads(model.read_bytes())
    learned = sum(map(sum, fields["learned"].values()))
    return dict(zip(fields["classes"], fields["messages"], strict=True)), learned


def on_error(nbspam, *arguments, stdin=b""):
    found = nbspam("train", "--on-error", "--format", "json", *arguments, stdin=stdin)
    assert (found.code, found.err) == (0, "")
    return json.loads(found.out)


@pytest.fixture
def large(tmp_path, table):
    """Return a table of 150 messages, most of them easy once a few are learned."""
    large = tmp_path / "large.tsv"
    lines = table.read_text().splitlines()
    large.write_text("".join(f"{line} {i}\n" for i in range(5) for line in lines))
    return large


def test_a_new_model_learns_some_and_says_how_many_it_left_out(nbspam, large, make_model, tmp_path):
    """As an update of nothing does; what it left out is judged again."""
    model, other = tmp_path / "model.json", tmp_path / "other.json"
    cut_offs = ("--spam-cutoff", "0.7", "--ham-cutoff", "0.2")
    found = on_error(nbspam, large, "-m", model, *cut_offs)
    assert found["learned"] + found["judged_right"] == 150
    assert 20 < found["learned"] < 125
    assert (found["moved"], found["unchanged"]) == (0, 0)
    messages, learned = content(model)
    assert sum(messages.values()) == learned == found["learned"]
    assert all(messages.values())
    assert nbspam("model", "check", "-m", model).code == 0
    assert model.stat().st_size < make_model(large, name="whole.json").stat().st_size
    fields = json.loads(model.read_bytes())
    assert (fields["spam_cutoff"], fields["ham_cutoff"]) == (0.7, 0.2)
    same = on_error(nbspam, "--update", large, "-m", other, *cut_offs)
    assert same | {"model": str(model)} == found
    assert model.read_bytes() == other.read_bytes()
    again = on_error(nbspam, "--update", large, "-m", model)
    assert again["unchanged"] == found["learned"]
    assert again["judged_right"] + again["learned"] == found["judged_right"]


def test_in_text_and_without_a_ledger(nbspam, table, tmp_path):
    model = tmp_path / "model.json"
    found = nbspam("train", "--on-error", table, "-m", model)
    assert "left out " in found.sentences
    assert " judged right, learned " in found.sentences
    found = on_error(nbspam, "--no-ledger", "--replace", table, "-m", model)
    assert found["learned"] + found["judged_right"] == 30
    messages, learned = content(model)
    assert (sum(messages.values()), learned) == (found["learned"], 0)


def test_a_right_verdict_leaves_the_model_as_it_is(nbspam, make_model, large):
    model = make_model(large)
    before = model.read_bytes()
    options = ("--update", "--sure-from", "0", "-m", model)
    found = on_error(nbspam, *options, "--spam", "-", stdin=b"win a free prize, claim it now")
    assert (found["learned"], found["judged_right"]) == (0, 1)
    assert model.read_bytes() == before
    found = on_error(nbspam, *options, "--ham", "-", stdin=b"win a free prize, claim it now")
    assert (found["learned"], found["judged_right"]) == (1, 0)


def test_how_sure_it_must_be(nbspam, make_model, large):
    model = make_model(large)
    text = b"win a free prize at the meeting"
    judged = nbspam("classify", "--format", "json", "-m", model, stdin=text)
    probability = json.loads(judged.out)["probability"]
    label = "--spam" if probability > 0.9 else "--ham"
    sure = probability if probability > 0.9 else 1 - probability
    assert sure > 0.5
    options = ("--update", label, "-", "-m", model, "--sure-from")
    assert on_error(nbspam, *options, sure - 1e-6, stdin=text)["judged_right"] == 1
    assert on_error(nbspam, *options, min(1, sure + 1e-6), stdin=text)["learned"] == 1


def test_what_is_in_the_other_class_is_moved_whatever_the_verdict(nbspam, make_model, large):
    model = make_model(large)
    message = b"lunch at noon today 0 0"
    found = on_error(nbspam, "--update", "-m", model, "--spam", "-", stdin=message)
    assert found["moved"] + found["learned"] == 1
    found = on_error(nbspam, "--update", "-m", model, "--ham", "-", stdin=message)
    assert (found["moved"], found["judged_right"]) == (1, 0)


def test_the_order_of_the_folders_does_not_matter(nbspam, large, tmp_path):
    """The classes come in turns: one folder after the other would be learned whole."""
    rows = [line.split("\t") for line in large.read_text().splitlines()]
    for label in ("spam", "ham"):
        (tmp_path / label).write_text("".join(f"{text}\n" for name, text in rows if name == label))
    spam, ham = ("--spam", tmp_path / "spam"), ("--ham", tmp_path / "ham")
    one = on_error(nbspam, "--lines", *spam, *ham, "-m", tmp_path / "one.json")
    other = on_error(nbspam, "--lines", *ham, *spam, "-m", tmp_path / "other.json")
    assert abs(one["learned"] - other["learned"]) <= 3
    assert one["learned"] < 125


def test_a_repeated_message_is_judged_each_time(nbspam, table, tmp_path):
    table.write_text(table.read_text() * 3)
    found = on_error(nbspam, table, "-m", tmp_path / "model.json")
    assert found["learned"] + found["judged_right"] == 90
    assert found["unchanged"] == 0
    assert nbspam("model", "check", "-m", tmp_path / "model.json").code == 0


@each("options", [(), ("--scoring", "sum"), ("--event-model", "multinomial")])
def test_three_classes_and_other_models(nbspam, three_classes, tmp_path, options):
    found = on_error(nbspam, three_classes, "-m", tmp_path / "model.json", "--replace", *options)
    assert found["learned"] + found["judged_right"] == 24
    assert nbspam("model", "check", "-m", tmp_path / "model.json").code == 0


def test_an_existing_model_is_not_overwritten_unasked(nbspam, model, table, assert_sentence):
    before = model.read_bytes()
    found = nbspam("train", "--on-error", table, "-m", model)
    assert_sentence(found, model, "--update", "--replace")
    assert model.read_bytes() == before
    assert on_error(nbspam, "--replace", table, "-m", model)["learned"] > 0
    assert model.read_bytes() != before


def test_one_class_is_no_new_model(nbspam, tmp_path, assert_sentence):
    (tmp_path / "one.tsv").write_text("spam\tfree prize\nspam\twin cash\n")
    found = nbspam("train", "--on-error", tmp_path / "one.tsv", "-m", tmp_path / "model.json")
    assert_sentence(found, "two classes")
    assert not (tmp_path / "model.json").exists()


@each(
    "options",
    [
        ("--sure-from", "0.9"),
        ("--on-error", "--sure-from", "nan"),
        ("--on-error", "--sure-from", "1.5"),
        ("--on-error", "--max-ham-blocked", "0.1%"),
    ],
)
def test_what_cannot_be_together(nbspam, table, tmp_path, assert_sentence, options):
    found = nbspam("train", table, "-m", tmp_path / "model.json", *options)
    assert_sentence(found, options[-2], code=2)
