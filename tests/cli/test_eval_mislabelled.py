"""A label that is probably a typing mistake is left out of every test, and told."""

import json

import pytest
from many_cases import in_turn

ROWS = [
    *((label, f"{text} {i}") for i in range(40) for label, text in
      (("ham", "see you at noon"), ("spam", "win a free prize"))),
    ("hma", "bye for now"),
]  # fmt: skip
PROTOCOLS = {
    "saved model": ("-m", "{model}", "--including-learned"),
    "folds": ("--folds", "3"),
    "leave-one-out": ("--leave-one-out",),
    "train first": ("--train-first", "50%"),
    "online": ("--online", "--batch", "9"),
    "comparison": ("--compare", "bernoulli"),
}


def write(path, rows):
    path.write_text("".join(f"{label}\t{text}\n" for label, text in rows))
    return path


@pytest.fixture
def mistaken(tmp_path):
    return write(tmp_path / "a.tsv", ROWS)


@pytest.fixture
def run(nbspam, tmp_path, make_model):
    model = make_model(write(tmp_path / "right.tsv", ROWS[:-1]))

    def evaluated(protocol, *arguments):
        options = (option.format(model=model) for option in PROTOCOLS[protocol])
        return nbspam("eval", *options, *arguments)

    return evaluated


@in_turn("protocol", PROTOCOLS)
def test_every_test_goes_on_without_it(run, mistaken, tmp_path, protocol):
    found = run(protocol, "--format", "json", mistaken)
    assert found.code == 0, found.err
    assert found.err == (
        "nbspam: 1 message is left out, as its label is probably a mistake: 'hma'"
        f" ({mistaken}:81); correct it there\n"
    )
    figures = json.loads(found.out)
    assert figures.pop("mislabelled") == 1
    right = json.loads(run(protocol, "-q", "--format", "json", tmp_path / "right.tsv").out)
    assert right.pop("mislabelled") == 0
    for model in (*figures.get("models", ()), *right.get("models", ())):
        del model["seconds"]
    assert figures == right


@in_turn("protocol", PROTOCOLS)
def test_quiet_says_nothing_and_strict_stops(run, mistaken, assert_sentence, protocol):
    assert run(protocol, "-q", mistaken).err == ""
    found = run(protocol, "--strict", mistaken)
    assert_sentence(found, f"{mistaken}:81: is labelled 'hma'", "leave out --strict to skip it")


@in_turn("protocol", ["saved model", "folds"])
def test_several_and_a_header(run, tmp_path, protocol):
    path = write(tmp_path / "a.tsv", [("kind", "what it says"), *ROWS])
    found = run(protocol, path)
    assert (
        f"2 messages are left out, as their labels are probably mistakes: 'kind' ({path}:1),"
        in (found.err)
    )
    path = write(tmp_path / "a.tsv", [("kind", "what it says"), *ROWS[:-1]])
    found = run(protocol, path)
    assert f"'kind' ({path}:1); if that row names the columns, add --header-row yes;" in found.err


def test_spam_is_no_mistake_however_little_there_is(run, tmp_path):
    rows = [(label.replace("spam", "promo"), text) for label, text in ROWS[:-1]]
    path = write(tmp_path / "a.tsv", [*rows, ("spam", "buy it"), ("spam", "buy more")])
    found = run("folds", path, "--folds", "2")
    assert found.err == ""
    assert "spam: 2" in found.out
    path = write(tmp_path / "a.tsv", [*rows, ("junk", "buy it"), ("junk", "buy more")])
    found = run("folds", path, "--folds", "2", "--spam-label", "junk")
    assert found.err == ""
    assert "junk: 2" in found.out


def test_a_label_of_many_is_no_mistake(run, tmp_path, assert_sentence):
    path = write(tmp_path / "a.tsv", [*ROWS, *[("promo", "big sale")] * 6])
    found = run("saved model", path)
    assert_sentence(found, f"{path}:82: is labelled 'promo'", "classes are ham, spam")
    few = write(tmp_path / "few.tsv", [("ham", "see you"), ("hma", "bye")])
    assert_sentence(run("saved model", few), f"{few}:2: is labelled 'hma'")


# Labels of other names


TARGET = [({"ham": "0", "spam": "1"}.get(label, label), text) for label, text in ROWS]


@pytest.mark.parametrize("names", [("0", "1"), ("not spam", "spam"), ("good", "bad")])
def test_a_spam_label_tests_a_saved_model_on_other_labels(run, tmp_path, assert_sentence, names):
    rows = [(names[label == "spam"], text) for label, text in ROWS[:-1]]
    path = write(tmp_path / "a.tsv", [("target", "text"), *rows])
    found = run("saved model", path)
    assert_sentence(found, f"{path}:2: is labelled {names[0]!r}", "--spam-label")
    found = run("saved model", path, "--spam-label", names[1], "--format", "json")
    assert (found.code, found.err) == (0, "")
    right = run("saved model", tmp_path / "right.tsv", "--format", "json")
    assert found.out == right.out


def test_of_other_labels_too_a_mistake_is_left_out(run, tmp_path):
    path = write(tmp_path / "a.tsv", TARGET)
    found = run("saved model", path, "--spam-label", "1")
    assert found.code == 0
    assert "80 messages (ham: 40, spam: 40)" in found.out
    assert f"'hma' ({path}:81)" in found.err


def test_any_other_label_is_ham(run, tmp_path):
    path = write(tmp_path / "a.tsv", [*TARGET[:-1], *[("2", "big sale")] * 20])
    found = run("saved model", path, "--spam-label", "1")
    assert (found.code, found.err) == (0, "")
    assert "100 messages (ham: 60, spam: 40)" in found.out


def test_a_spam_label_that_nobody_has(run, tmp_path, assert_sentence):
    path = write(tmp_path / "a.tsv", TARGET)
    found = run("saved model", path, "--spam-label", "yes")
    assert_sentence(found, "no message is labelled 'yes'; name one of '0', '1'", code=2)


def test_a_spam_label_is_for_two_classes(nbspam, three_classes, make_model, assert_sentence):
    model = make_model(three_classes)
    found = nbspam("eval", "-m", model, three_classes, "--spam-label", "spam")
    assert_sentence(found, "ham, promo, spam", "leave the spam label out", code=2)
