import gzip
import json
import stat

import pytest
from one_case import each

LIST = b".MSG_COUNT 3 4 20260105\nPRIZE 3 0 20260105\nfree 2 1\nlunch 0 4\nhead:multipart 1 1\n"


def read(path):
    return json.loads(path.read_bytes())


@pytest.fixture
def new(tmp_path):
    return tmp_path / "new.json"


@pytest.fixture
def imported(nbspam, new):
    """Return a function that imports a file, or what comes from standard input."""
    return lambda file, *options, **stdin: nbspam(
        "model", "import", file, "-m", new, *options, **stdin
    )


@each("form", ["bogofilter", "csv"])
def test_there_and_back(nbspam, imported, model, new, tmp_path, form):
    text = tmp_path / f"counts.{form}"
    assert nbspam("model", "export", "-m", model, "--form", form, "-o", text) == (0, "", "")
    assert stat.S_IMODE(text.stat().st_mode) == 0o600
    assert imported(text, "--replace").code == 0
    ours, theirs = read(model), read(new)
    for name in ("tokens", "messages", "classes", "positive", "alpha", "prior", "scoring"):
        assert ours[name] == theirs[name]
    assert theirs["learned"] == {}
    assert theirs["calibrated_by"] == "default"
    assert nbspam("model", "check", "-m", new).code == 0


def test_through_a_pipe(nbspam, program, imported, model, new):
    text = nbspam("model", "export", "-m", model).out
    assert text.startswith(".MSG_COUNT 12 18\n")
    assert "prize 12 0\n" in text
    assert imported("-", stdin=text.encode()).code == 0
    assert read(new)["tokens"] == read(model)["tokens"]
    found = program("model", "export", "-m", model, shell="{} | head -1")  # it goes away
    assert found.out == ".MSG_COUNT 12 18\n"
    assert "Traceback" not in found.err


def test_three_classes(nbspam, imported, three_classes, make_model, new, assert_sentence):
    model = make_model(three_classes, name="three.json")
    assert_sentence(nbspam("model", "export", "-m", model), model, "--form csv", code=2)
    text = nbspam("model", "export", "-m", model, "--form", "csv").out
    assert text.startswith("token,ham,promo,spam\n(messages),8,8,8\n")
    assert imported("-", stdin=text.encode()).code == 0
    assert read(new)["tokens"] == read(model)["tokens"]


def test_what_a_list_cannot_hold_is_told(nbspam, imported, new):
    assert imported("-", stdin=b"token,ham,spam\n(messages),2,2\na b c,1,1\nfree,0,1\n").code == 0
    found = nbspam("model", "export", "-m", new)
    assert found.out == ".MSG_COUNT 2 2\nfree 1 0\n"
    assert "1 token of " in found.err
    assert "--form csv" in found.err
    assert found.err.count("\n") == 1


def test_the_output_that_is_there(nbspam, model, tmp_path, assert_sentence):
    text, nowhere = tmp_path / "words.txt", tmp_path / "none" / "words.txt"
    text.write_text(".MSG_COUNT 1 1\nmine 1 0\n")
    export = ("model", "export", "-m", model, "-o")
    assert_sentence(nbspam(*export, text), text, "--replace")
    assert "mine" in text.read_text()
    assert nbspam(*export, text, "--replace").code == 0
    assert text.read_text().startswith(".MSG_COUNT")
    assert "mine" not in text.read_text()
    assert_sentence(nbspam(*export, nowhere), nowhere)
    gone = tmp_path / "none.json"
    assert_sentence(nbspam("model", "export", "-m", gone), gone)


def test_what_was_imported_is_told(nbspam, imported, new, tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes(LIST + b"bad line\nfree*lunch 9 9\n")
    found = imported(path)
    assert found.code == 0
    assert f"{path}:6: " in found.err
    assert "1 token had a count above the number of messages" in found.err
    assert "7 messages (ham: 4, spam: 3), 4 tokens" in found.sentences
    assert "read 5 words; 1 of them" in found.sentences
    assert "calibration is the default" in found.sentences
    assert found.sentences.splitlines()[-1] == (
        "the ledger cannot name the messages that were counted: give train --update only newer"
        " messages, or, better, train a new model on all messages"
    )
    found = nbspam("classify", "-m", new, "--spam-cutoff", "0.5", stdin=b"prize")
    assert found.out.startswith("spam\t")
    found = imported("-", "--replace", stdin=b".MSG_COUNT 3 0\nfree 2 0\n")
    assert found.code == 0
    assert "only spam" in found.err


def test_importing_as_json_with_the_options_of_learning(imported, new):
    options = ["--alpha", "0.25", "--scoring", "sum", "--prior", "0.125"]
    found = imported("-", "--format", "json", *options, stdin=LIST)
    assert json.loads(found.out) == {
        "model": str(new),
        "messages": {"ham": 4, "spam": 3},
        "tokens": 3,
        "skipped": 0,
        "capped": 0,
        "words": 4,
        "foreign": 1,
    }
    fields = read(new)
    assert (fields["alpha"], fields["scoring"], fields["prior"]) == (0.25, "sum", 0.125)


def test_what_fails_writes_nothing(imported, new, tmp_path, assert_sentence):
    assert_sentence(imported("-", "--strict", stdin=LIST + b"bad line\n"), "-:6:", "--strict")
    for name in ("none.txt", "."):
        assert_sentence(imported(tmp_path / name), "cannot be read")
    for stdin in (b"", b"Dear Sir\n", b"\0\0\0", b"token,ham,spam\n"):
        assert_sentence(imported("-", stdin=stdin), "-")
    archive = tmp_path / "words.gz"
    archive.write_bytes(gzip.compress(LIST * 1000)[:-30])
    assert_sentence(imported(archive), archive)
    assert not new.exists()
    archive.write_bytes(gzip.compress(LIST))
    assert imported(archive).code == 0


def test_a_model_that_is_there_and_the_default_one(
    nbspam, imported, new, own_home, assert_sentence
):
    new.write_text("{}")
    assert_sentence(imported("-", stdin=LIST), new, "--replace")
    assert new.read_text() == "{}"
    assert nbspam("model", "import", "-", stdin=LIST).code == 0
    default = own_home / ".local/share/nbspam/model.json"
    assert read(default)["messages"] == [4, 3]
    assert nbspam("model", "info").code == 0
    assert_sentence(nbspam("model", "import", "-", stdin=LIST), default, "--replace")
    assert nbspam("model", "import", "-", "--replace", stdin=LIST).code == 0
