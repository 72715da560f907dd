"""A label that is probably a typing mistake is left out of every test, and told."""

import json

import pytest
from one_case import each

pytestmark = pytest.mark.usefixtures("few_resamples")
TEXTS = ("ham", "see you at noon"), ("spam", "win a free prize")
ROWS = [(label, f"{text} {i}") for i in range(40) for label, text in TEXTS] + [("hma", "bye")]
PROTOCOLS = [
    *("-m MODEL --including-learned", "--folds 3", "--compare bernoulli", "--leave-one-out"),
    *("--train-first 50%", "--online --batch 9"),
]
SAVED_MODEL, FOLDS, *_ = PROTOCOLS


@pytest.fixture
def rows(tmp_path):
    """Return a function that writes rows into a table."""

    def write(*rows, name="a.tsv"):
        path = tmp_path / name
        path.write_text("".join(f"{label}\t{text}\n" for label, text in rows))
        return path

    return write


@pytest.fixture
def right(rows):
    """Return a table without a mistake."""
    return rows(*ROWS[:-1], name="right.tsv")


@pytest.fixture
def run(nbspam, make_model, right):
    model = make_model(right)

    def evaluated(protocol, *arguments):
        return nbspam("eval", *protocol.replace("MODEL", str(model)).split(), *arguments)

    return evaluated


@pytest.mark.few(3)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_test_goes_on_without_it_unless_it_is_strict(
    run, rows, right, assert_sentence, protocol
):
    mistaken = rows(*ROWS)
    found = run(protocol, "--format", "json", mistaken)
    assert found.code == 0, found.err
    assert found.err == (
        f"nbspam: 1 message left out, probably mislabelled: 'hma' ({mistaken}:81); correct the"
        " label\n"
    )
    assert run(protocol, "-q", mistaken).err == ""
    figures = json.loads(found.out)
    assert figures.pop("mislabelled") == 1
    expected = run(protocol, "-q", "--format", "json", right)
    assert expected.err == ""
    expected = json.loads(expected.out)
    assert expected.pop("mislabelled") == 0
    for model in (*figures.get("models", ()), *expected.get("models", ())):
        del model["seconds"]
    assert figures == expected
    found = run(protocol, "--strict", mistaken)
    assert_sentence(found, f"{mistaken}:81: is labelled 'hma'", "leave out --strict to skip it")


@each("protocol", [SAVED_MODEL, FOLDS])
def test_several_and_a_header_are_named_and_quietly_none(run, rows, protocol):
    path = rows(("kind", "what it says"), *ROWS)
    several = "2 messages left out, probably mislabelled: 'kind'"
    assert f"{several} ({path}:1)," in run(protocol, path).err
    assert run(protocol, "-q", path).err == ""
    rows(("kind", "what it says"), *ROWS[:-1])
    remedy = f"({path}:1); correct the label; add --header-row yes if that row names the columns"
    assert remedy in run(protocol, path).err


@each("name, options", [("spam", ()), ("junk", ("--spam-label", "junk"))])
def test_spam_is_no_mistake_however_little_there_is(run, rows, name, options):
    others = [(label.replace("spam", "promo"), text) for label, text in ROWS[:-1]]
    found = run("--folds 2", rows(*others, (name, "buy it"), (name, "buy more")), *options)
    assert (found.err, f"{name}: 2" in found.out) == ("", True)


def test_a_label_of_many_is_no_mistake(run, rows, assert_sentence):
    path = rows(*ROWS, *[("promo", "big sale")] * 6)
    found = run(SAVED_MODEL, path)
    assert_sentence(found, f"{path}:82: is labelled 'promo'", "classes are ham, spam")
    few = rows(("ham", "see you"), ("hma", "bye"), name="few.tsv")
    assert_sentence(run(SAVED_MODEL, few), f"{few}:2: is labelled 'hma'")


# Labels of other names


@each("names", [("0", "1"), ("not spam", "spam"), ("good", "bad")])
def test_a_spam_label_tests_a_saved_model_on_other_labels(run, rows, right, assert_sentence, names):
    renamed = [(names[label == "spam"], text) for label, text in ROWS[:-1]]
    path = rows(("target", "text"), *renamed)
    found = run(SAVED_MODEL, path)
    assert_sentence(found, f"{path}:2: is labelled {names[0]!r}", "--spam-label")
    found = run(SAVED_MODEL, path, "--spam-label", names[1], "--format", "json")
    assert (found.code, found.err) == (0, "")
    assert found.out == run(SAVED_MODEL, right, "--format", "json").out


def test_of_other_labels_too_a_mistake_is_left_out_and_others_are_ham(run, rows, assert_sentence):
    target = [({"ham": "0", "spam": "1"}.get(label, label), text) for label, text in ROWS]
    path = rows(*target)
    found = run(SAVED_MODEL, path, "--spam-label", "1")
    assert (found.code, f"'hma' ({path}:81)" in found.err) == (0, True)
    assert "80 messages (ham: 40, spam: 40)" in found.out
    found = run(SAVED_MODEL, path, "--spam-label", "yes")
    assert_sentence(found, "no message is labelled 'yes'; name one of '0', '1'", code=2)
    rows(*target[:-1], *[("2", "big sale")] * 20)
    found = run(SAVED_MODEL, path, "--spam-label", "1")
    assert (found.code, found.err) == (0, "")
    assert "100 messages (ham: 60, spam: 40)" in found.out
