import json

import pytest
from one_case import each

MAIL = b"From: ann@example.org\nMessage-ID: <1@example.org>\nSubject: a prize\n\nclaim it free\n"


def sections(model):
    """Return all that forgetting takes back."""
    raw = model.read_bytes()
    return json.loads(raw)["messages"], raw[raw.index(b'"tokens": {') :]


@pytest.fixture
def forgotten(as_json, model):
    """Return a function that forgets, and returns how many messages it forgot."""

    def run(*arguments):
        return as_json("forget", *arguments, "-m", model, stdin=MAIL)["forgotten"]

    return run


@pytest.fixture
def learn(nbspam, model):
    """Return a function that teaches the mail to the model as spam."""

    def run(*options):
        command = ("train", "--update", *options, "--spam", "-", "-m", model)
        assert nbspam(*command, stdin=MAIL) == (0, "", "")

    return run


@each("options", ["", "-", "--spam -", "--label spam=-", "{mail}", "-q {mail}"])
def test_a_message_is_forgotten_from_standard_input_in_silence(
    nbspam, model, learn, tmp_path, options
):
    (tmp_path / "mail").write_bytes(MAIL)
    before = sections(model)
    learn()
    assert sections(model) != before
    command = ("forget", *options.format(mail=tmp_path / "mail").split(), "-m", model)
    found = nbspam(*command, stdin=MAIL)
    assert (found.code, found.err) == (0, "")
    if options[:1] == "{":
        assert found.sentences.startswith(f"{model}: forgot 1 ")
    else:
        assert found.out == "" or options[:7] == "--label"
    assert sections(model) == before
    assert nbspam("model", "check", "-m", model).code == 0


def test_what_was_never_learned_is_left_alone(as_json, model, learn):
    learn()
    expected = {"model": str(model), "forgotten": 1, "unchanged": 0, "skipped": 0}
    assert as_json("forget", "-m", model, stdin=MAIL) == expected
    before = model.stat()
    expected |= {"forgotten": 0, "unchanged": 1}
    assert as_json("forget", "-m", model, stdin=MAIL) == expected
    assert before.st_ino == model.stat().st_ino


def test_it_is_not_forgotten_in_another_class(model, learn, forgotten):
    learn()
    before = model.read_bytes()
    assert forgotten("--ham", "-") == 0
    assert before == model.read_bytes()


def test_a_table_goes_by_its_own_labels(as_json, table, model):
    text = table.read_text()
    assert text.startswith("spam\t")
    table.write_text(text.replace("spam\t", "ham\t", 1))
    found = as_json("forget", table, "-m", model)
    assert [found[key] for key in ("forgotten", "unchanged", "skipped")] == [29, 1, 0]
    assert sections(model)[0] == [0, 1]


def test_lines_of_a_class_are_forgotten(nbspam, table, model, tmp_path, forgotten):
    texts = [line.partition("\t")[2] for line in table.read_text().splitlines() if line[0] == "h"]
    (tmp_path / "ham.txt").write_text("\n".join(texts))
    assert forgotten("--lines", "--ham", tmp_path / "ham.txt") == 18
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


def test_what_the_ledger_has_not_is_forgotten_by_its_counts(model, learn, forgotten):
    before = sections(model)
    learn("--no-ledger")
    assert forgotten("--spam", "-") == 0
    assert forgotten("--no-ledger", "--spam", "-") == 1
    assert before == sections(model)
    assert forgotten("--no-ledger", "--spam", "-") == 0


def test_what_the_ledger_names_is_forgotten_there_too(nbspam, model, learn):
    """Else it would name messages that the counts no longer have."""
    before = sections(model)
    learn()
    forget = ("forget", "--no-ledger", "--spam", "-", "-m", model)
    taught = model.read_bytes()
    # Its words are in messages that the ledger names; all messages are named.
    twin = MAIL.replace(b"Message-ID: <1@example.org>\n", b"")
    assert nbspam(*forget, stdin=twin).code == 0
    assert model.read_bytes() == taught
    assert nbspam(*forget, stdin=MAIL) == (0, "", "")
    assert sections(model) == before
    assert nbspam("model", "check", "-m", model).code == 0
