import gzip
import json
import stat

import pytest
from many_cases import in_turn

LIST = b".MSG_COUNT 3 4 20260105\nPRIZE 3 0 20260105\nfree 2 1\nlunch 0 4\nhead:multipart 1 1\n"


def read(path):
    return json.loads(path.read_bytes())


@pytest.mark.parametrize("form", ["bogofilter", "csv"])
def test_there_and_back(nbspam, model, tmp_path, form):
    text, back = tmp_path / "counts.txt", tmp_path / "back.json"
    found = nbspam("model", "export", "-m", model, "--form", form, "-o", text)
    assert found == (0, "", "")
    assert stat.S_IMODE(text.stat().st_mode) == 0o600
    assert nbspam("model", "import", text, "-m", back).code == 0
    ours, theirs = read(model), read(back)
    for name in ("tokens", "messages", "classes", "positive", "alpha", "prior", "scoring"):
        assert ours[name] == theirs[name]
    assert theirs["learned"] == {}
    assert theirs["calibrated_by"] == "default"
    assert nbspam("model", "check", "-m", back).code == 0


def test_through_a_pipe(nbspam, model, tmp_path):
    text = nbspam("model", "export", "-m", model).out
    assert text.startswith(".MSG_COUNT 12 18\n")
    assert "prize 12 0\n" in text
    back = tmp_path / "back.json"
    assert nbspam("model", "import", "-", "-m", back, stdin=text.encode()).code == 0
    assert read(back)["tokens"] == read(model)["tokens"]


def test_three_classes(nbspam, three_classes, make_model, tmp_path, assert_sentence):
    model = make_model(three_classes, name="three.json")
    assert_sentence(nbspam("model", "export", "-m", model), model, "--form csv", code=2)
    text = nbspam("model", "export", "-m", model, "--form", "csv").out
    assert text.startswith("token,ham,promo,spam\n(messages),8,8,8\n")
    back = tmp_path / "back.json"
    assert nbspam("model", "import", "-", "-m", back, stdin=text.encode()).code == 0
    assert read(back)["tokens"] == read(model)["tokens"]


def test_what_a_list_cannot_hold_is_told(nbspam, model, tmp_path):
    counts = b"token,ham,spam\n(messages),2,2\na b c,1,1\nfree,0,1\n"
    nbspam("model", "import", "-", "-m", model, "--replace", stdin=counts)
    found = nbspam("model", "export", "-m", model)
    assert found.out == ".MSG_COUNT 2 2\nfree 1 0\n"
    assert "1 token of " in found.err
    assert "--form csv" in found.err
    assert found.err.count("\n") == 1


def test_the_output_that_is_there(nbspam, model, tmp_path, assert_sentence):
    text = tmp_path / "words.txt"
    text.write_text(".MSG_COUNT 1 1\nmine 1 0\n")
    assert_sentence(nbspam("model", "export", "-m", model, "-o", text), text, "--replace")
    assert "mine" in text.read_text()
    assert nbspam("model", "export", "-m", model, "-o", text, "--replace").code == 0
    assert text.read_text().startswith(".MSG_COUNT")
    assert "mine" not in text.read_text()


def test_what_was_imported_is_told(nbspam, tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes(LIST + b"bad line\nfree*lunch 9 9\n")
    model = tmp_path / "model.json"
    found = nbspam("model", "import", path, "-m", model)
    assert found.code == 0
    assert f"{path}:6: " in found.err
    assert "1 token had a count above the number of messages" in found.err
    assert "7 messages (ham: 4, spam: 3), 4 tokens" in found.sentences
    assert "read 5 words; 1 of them" in found.sentences
    assert "calibration is the default" in found.sentences
    assert found.sentences.splitlines()[-1] == (
        "the ledger cannot name the messages that were counted, so train --update would count them"
        " twice: give it only newer mail, or train a new model on all the mail, which is better"
    )
    found = nbspam("classify", "-m", model, "--spam-cutoff", "0.5", stdin=b"prize")
    assert found.out.startswith("spam\t")


def test_importing_as_json(nbspam, tmp_path):
    model = tmp_path / "model.json"
    found = nbspam("model", "import", "-", "-m", model, "--format", "json", stdin=LIST)
    assert json.loads(found.out) == {
        "model": str(model),
        "messages": {"ham": 4, "spam": 3},
        "tokens": 3,
        "skipped": 0,
        "capped": 0,
        "words": 4,
        "foreign": 1,
    }


def test_strict_stops_and_writes_nothing(nbspam, tmp_path, assert_sentence):
    model = tmp_path / "model.json"
    found = nbspam("model", "import", "-", "-m", model, "--strict", stdin=LIST + b"bad line\n")
    assert_sentence(found, "-:6:", "--strict")
    assert not model.exists()


def test_a_model_that_is_there(nbspam, model, assert_sentence):
    before = model.read_bytes()
    found = nbspam("model", "import", "-", "-m", model, stdin=LIST)
    assert_sentence(found, model, "--replace")
    assert before == model.read_bytes()
    assert nbspam("model", "import", "-", "-m", model, "--replace", stdin=LIST).code == 0
    assert read(model)["messages"] == [4, 3]


def test_an_archive(nbspam, tmp_path):
    path = tmp_path / "words.gz"
    path.write_bytes(gzip.compress(LIST))
    assert nbspam("model", "import", path, "-m", tmp_path / "model.json").code == 0
    path.write_bytes(gzip.compress(LIST * 1000)[:-30])
    found = nbspam("model", "import", path, "-m", tmp_path / "other.json")
    assert found.code == 1
    assert str(path) in found.err
    assert not (tmp_path / "other.json").exists()


def test_the_default_model(nbspam, own_home):
    assert nbspam("model", "import", "-", stdin=LIST).code == 0
    assert (own_home / ".local/share/nbspam/model.json").exists()
    assert nbspam("model", "info").code == 0


def test_the_options_of_learning(nbspam, tmp_path):
    model = tmp_path / "model.json"
    options = ["--alpha", "0.25", "--scoring", "sum", "--prior", "0.125"]
    assert nbspam("model", "import", "-", "-m", model, *options, stdin=LIST).code == 0
    fields = read(model)
    assert (fields["alpha"], fields["scoring"], fields["prior"]) == (0.25, "sum", 0.125)


def test_one_class_is_told(nbspam, tmp_path):
    model = tmp_path / "model.json"
    found = nbspam("model", "import", "-", "-m", model, stdin=b".MSG_COUNT 3 0\nfree 2 0\n")
    assert found.code == 0
    assert "only spam" in found.err


@in_turn("name", ["none.txt", "."])
def test_no_such_file(nbspam, tmp_path, assert_sentence, name):
    path = tmp_path / name
    model = tmp_path / "model.json"
    assert_sentence(nbspam("model", "import", path, "-m", model), "cannot be read")
    assert not model.exists()


@in_turn("stdin", [b"", b"Dear Sir\n", b"\0\0\0", b"token,ham,spam\n"])
def test_a_file_that_is_no_list(nbspam, tmp_path, assert_sentence, stdin):
    model = tmp_path / "model.json"
    assert_sentence(nbspam("model", "import", "-", "-m", model, stdin=stdin), "-")
    assert not model.exists()


def test_exporting_no_model(nbspam, tmp_path, assert_sentence):
    path = tmp_path / "none.json"
    assert_sentence(nbspam("model", "export", "-m", path), path)


def test_an_output_in_no_folder(nbspam, model, tmp_path, assert_sentence):
    path = tmp_path / "none" / "words.txt"
    assert_sentence(nbspam("model", "export", "-m", model, "-o", path), path)


def test_a_reader_that_goes_away(program, model):
    found = program("model", "export", "-m", model, shell="{} | head -1")
    assert found.out == ".MSG_COUNT 12 18\n"
    assert "Traceback" not in found.err
