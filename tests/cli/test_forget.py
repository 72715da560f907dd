import json

import pytest
from many_cases import in_turn

MAIL = b"From: ann@example.org\nMessage-ID: <1@example.org>\nSubject: a prize\n\nclaim it free\n"


def sections(model):
    """Return all that forgetting takes back."""
    raw = model.read_bytes()
    messages = json.loads(raw)["messages"]
    return messages, raw[raw.index(b'"tokens": {') :]


@pytest.fixture
def taught(nbspam, model):
    """Return a model that has learned the mail as spam, and what it was before."""
    before = sections(model)
    assert nbspam("train", "--update", "--spam", "-", "-m", model, stdin=MAIL) == (0, "", "")
    assert sections(model) != before
    return model, before


@pytest.mark.parametrize("options", [(), ("-",), ("--spam", "-"), ("--label", "spam=-")])
def test_a_message_from_standard_input_is_forgotten_in_silence(nbspam, taught, options):
    model, before = taught
    found = nbspam("forget", *options, "-m", model, stdin=MAIL)
    assert (found.code, found.err) == (0, "")
    assert found.out == "" or options[:1] == ("--label",)
    assert before == sections(model)
    assert nbspam("model", "check", "-m", model).code == 0


def test_as_text_it_says_what_it_did(nbspam, taught, tmp_path):
    model, before = taught
    (tmp_path / "mail").write_bytes(MAIL)
    found = nbspam("forget", tmp_path / "mail", "-m", model)
    assert (found.code, found.err) == (0, "")
    assert found.sentences.startswith(f"{model}: forgot 1 ")
    assert before == sections(model)


def test_quietly_it_says_nothing(nbspam, taught, tmp_path):
    (tmp_path / "mail").write_bytes(MAIL)
    assert nbspam("forget", "-q", tmp_path / "mail", "-m", taught[0]) == (0, "", "")


def test_as_json_it_says_all_it_did(nbspam, taught):
    model, _ = taught
    expected = {"model": str(model), "forgotten": 1, "unchanged": 0, "skipped": 0}
    for _ in range(2):
        found = nbspam("forget", "-m", model, "--format", "json", stdin=MAIL)
        assert expected == json.loads(found.out)
        expected |= {"forgotten": 0, "unchanged": 1}


def test_what_was_never_learned_is_left_alone(nbspam, model):
    before = model.stat()
    found = nbspam("forget", "-m", model, "--format", "json", stdin=MAIL)
    assert json.loads(found.out)["unchanged"] == 1
    assert before.st_ino == model.stat().st_ino


def test_it_is_not_forgotten_in_another_class(nbspam, taught):
    model, _ = taught
    before = model.read_bytes()
    found = nbspam("forget", "--ham", "-", "-m", model, "--format", "json", stdin=MAIL)
    assert json.loads(found.out)["forgotten"] == 0
    assert before == model.read_bytes()


def test_a_table_goes_by_its_own_labels(nbspam, table, model):
    text = table.read_text()
    assert text.startswith("spam\t")
    table.write_text(text.replace("spam\t", "ham\t", 1))
    found = nbspam("forget", table, "-m", model, "--format", "json")
    assert json.loads(found.out) | {"model": ""} == {
        "model": "",
        "forgotten": 29,
        "unchanged": 1,
        "skipped": 0,
    }
    assert sections(model)[0] == [0, 1]


def test_lines_of_a_class_are_forgotten(nbspam, table, model, tmp_path):
    texts = [line.partition("\t")[2] for line in table.read_text().splitlines() if line[0] == "h"]
    (tmp_path / "ham.txt").write_text("\n".join(texts))
    found = nbspam(
        *("forget", "--lines", "--ham", tmp_path / "ham.txt", "-m", model, "--format", "json")
    )
    assert json.loads(found.out)["forgotten"] == 18
    assert sections(model)[0] == [0, 12]
    assert nbspam("classify", "-m", model, stdin=b"free").out.startswith("unsure\t0.5000")


def test_everything_is_forgotten_and_learned_again(nbspam, table, model):
    before = sections(model)
    assert nbspam("forget", table, "-m", model).code == 0
    assert sections(model)[0] == [0, 0]
    assert json.loads(model.read_text())["tokens"] == {}
    found = nbspam("classify", "-m", model, stdin=b"free")
    assert "has learned nothing so far" in found.err
    assert nbspam("model", "check", "-m", model).code == 0
    assert nbspam("train", "--update", table, "-m", model).code == 0
    assert before == sections(model)


# Without the ledger


def test_what_the_ledger_has_not_is_forgotten_by_its_counts(nbspam, model):
    before = sections(model)
    learn = ("train", "--update", "--no-ledger", "--spam", "-", "-m", model)
    assert nbspam(*learn, stdin=MAIL) == (0, "", "")
    found = nbspam("forget", "--spam", "-", "-m", model, "--format", "json", stdin=MAIL)
    assert json.loads(found.out)["forgotten"] == 0
    assert nbspam("forget", "--no-ledger", "--spam", "-", "-m", model, stdin=MAIL) == (0, "", "")
    assert before == sections(model)
    again = nbspam(
        *("forget", "--no-ledger", "--spam", "-", "-m", model, "--format", "json"), stdin=MAIL
    )
    assert json.loads(again.out)["forgotten"] == 0


@in_turn("sources", [(), ("-",)])
def test_without_the_ledger_the_class_must_be_named(nbspam, taught, sources, assert_sentence):
    model, _ = taught
    before = model.read_bytes()
    found = nbspam("forget", "--no-ledger", *sources, "-m", model, stdin=MAIL)
    assert_sentence(found, "--no-ledger", "--spam or --ham", code=2)
    assert before == model.read_bytes()


# What it refuses


def test_without_a_model_there_is_nothing_to_forget(nbspam, tmp_path, assert_sentence):
    found = nbspam("forget", "-m", tmp_path / "model.json", stdin=MAIL)
    assert_sentence(found, tmp_path / "model.json", "no such model", "nbspam train")
    assert not list(tmp_path.iterdir())


def test_a_class_that_the_model_has_not_is_refused(nbspam, model, assert_sentence):
    found = nbspam("forget", "--label", "promo=-", "-m", model, stdin=MAIL)
    assert_sentence(found, model, "'promo'")


def test_a_missing_source_is_told(nbspam, model, tmp_path, assert_sentence):
    before = model.read_bytes()
    assert_sentence(nbspam("forget", tmp_path / "none", "-m", model), tmp_path / "none")
    assert before == model.read_bytes()


def test_what_the_ledger_names_is_forgotten_there_too(nbspam, model):
    """Else it would name messages that the counts no longer have."""
    before = model.read_bytes().partition(b'"tokens"')[2]
    assert nbspam("train", "--update", "--spam", "-", "-m", model, stdin=MAIL).code == 0
    assert nbspam("forget", "--no-ledger", "--spam", "-", "-m", model, stdin=MAIL).code == 0
    assert before == model.read_bytes().partition(b'"tokens"')[2]
    assert nbspam("model", "check", "-m", model).code == 0


def test_a_message_that_only_looks_learned_is_left_alone(nbspam, model):
    """Its words are in messages that the ledger names; all messages are named."""
    assert nbspam("train", "--update", "--spam", "-", "-m", model, stdin=MAIL).code == 0
    before = model.read_bytes()
    twin = MAIL.replace(b"Message-ID: <", b"Message-ID: <", 1) + b"\n"
    twin = b"\n".join(line for line in twin.split(b"\n") if not line.startswith(b"Message-ID"))
    assert nbspam("forget", "--no-ledger", "--spam", "-", "-m", model, stdin=twin).code == 0
    assert nbspam("model", "check", "-m", model).code == 0
    assert before == model.read_bytes()
