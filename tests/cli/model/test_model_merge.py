import json

import pytest
from many_cases import in_turn

SPAM = "win a free prize now", "free prize for the winner", "claim the free cash prize today"
HAM = "lunch at noon today", "see you at the meeting", "the meeting notes are here"


def write_table(path, *rows):
    path.write_text("".join(f"{label}\t{text}\n" for label, text in rows))
    return path


def write_half(tmp_path, half):
    """Return a table of every second message of twenty, none of them like another."""
    rows = [
        (("ham", "spam")[i // 2 % 2], f"{(HAM, SPAM)[i // 2 % 2][i % 3]} number-{'x' * i}")
        for i in range(20)
    ]
    return write_table(tmp_path / f"half{half}.tsv", *rows[half::2])


@pytest.fixture
def halves(tmp_path, make_model):
    return [make_model(write_half(tmp_path, half), name=f"{half}.json") for half in (0, 1)]


def test_two_halves_make_the_whole(nbspam, tmp_path, halves, make_model):
    out = tmp_path / "out.json"
    found = nbspam("model", "merge", *halves, "-o", out)
    assert (found.code, found.err) == (0, "")
    assert found.sentences.startswith(f"{out}: merged 2 models of 20 messages (ham: 10, spam: 10)")
    rows = [path.read_text() for path in (tmp_path / "half0.tsv", tmp_path / "half1.tsv")]
    (tmp_path / "all.tsv").write_text("".join(rows))
    whole = json.loads(make_model(tmp_path / "all.tsv", name="all.json").read_bytes())
    merged = json.loads(out.read_bytes())
    for name in ("tokens", "learned", "messages", "classes", "alpha"):
        assert whole[name] == merged[name]
    for name in ("tokens", "count_histograms"):
        assert whole["derived"][name] == merged["derived"][name]
    assert pytest.approx(whole["derived"]["bias"], rel=1e-9) == merged["derived"]["bias"]
    assert nbspam("model", "check", "-m", out).code == 0
    assert "merged" in nbspam("model", "info", "-m", out).out
    assert merged["calibrated_by"] == "merging"


def test_the_merged_model_decides_and_learns_on(nbspam, tmp_path, halves):
    out = tmp_path / "out.json"
    nbspam("model", "merge", *halves, "-o", out)
    assert nbspam("classify", "-m", out, stdin=b"free prize today").out.startswith("spam\t")
    assert nbspam("classify", "-m", out, stdin=b"notes of the meeting").out.startswith("ham\t")
    again = nbspam("train", "--update", "-m", out, tmp_path / "half0.tsv")
    assert "learned 0 new messages" in again.sentences
    assert "10 already known" in again.out


def test_merging_as_json(nbspam, tmp_path, halves):
    out = tmp_path / "out.json"
    found = json.loads(nbspam("model", "merge", *halves, "-o", out, "--format", "json").out)
    assert found["messages"] == {"ham": 10, "spam": 10}
    assert found["merged"] == list(map(str, halves))
    assert (found["shared"], found["calibrated_by"]) == (0, "merging")
    assert (found["spam_cutoff"], found["ham_cutoff"]) == (0.9, 0.5)
    assert found["tokens"] == len(json.loads(out.read_bytes())["tokens"])


def test_the_highest_cut_offs_are_the_merged_models(nbspam, tmp_path, halves):
    of_each = ("--spam-cutoff", "0.99"), ("--spam-cutoff", "0.8", "--ham-cutoff", "0.6")
    for model, cut_offs in zip(halves, of_each, strict=True):
        assert nbspam("model", "set", "-m", model, *cut_offs).code == 0
    out = tmp_path / "out.json"
    found = json.loads(nbspam("model", "merge", *halves, "-o", out, "--format", "json").out)
    assert (found["spam_cutoff"], found["ham_cutoff"]) == (0.99, 0.6)


def test_spam_alone_and_ham_alone(nbspam, tmp_path):
    for label, texts in (("spam", SPAM), ("ham", HAM)):
        table = write_table(tmp_path / f"{label}.tsv", *[(label, text) for text in texts])
        model = tmp_path / f"{label}.json"
        assert nbspam("train", "--update", "-m", model, table).code == 0
    out = tmp_path / "out.json"
    found = nbspam("model", "merge", tmp_path / "spam.json", tmp_path / "ham.json", "-o", out)
    assert found.code == 0
    assert "calibration is the default" in found.err
    assert nbspam("classify", "-m", out, stdin=b"free prize today").out.startswith("spam\t")
    assert "not fitted" in nbspam("model", "info", "-m", out).out


def test_shared_messages(nbspam, tmp_path, table, make_model, halves, assert_sentence):
    other = make_model(table, name="other.json")
    same = tmp_path / "same.json"
    same.write_bytes(other.read_bytes())
    out = tmp_path / "out.json"
    n = len(json.loads(other.read_bytes())["learned"])
    found = nbspam("model", "merge", other, same, halves[0], "-o", out)
    assert_sentence(found, other, same, f"share {n} messages", "--allow-overlap")
    assert not out.exists()
    found = nbspam("model", "merge", other, same, "-o", out, "--allow-overlap")
    assert found.code == 0
    assert f"{n} messages are in several of the models and count twice" in found.err
    assert json.loads(out.read_bytes())["messages"] == [36, 24]
    assert nbspam("model", "check", "-m", out).code == 0


def test_a_model_without_ledger_is_told(nbspam, tmp_path, table, make_model, halves):
    bare = make_model(table, "--no-ledger", name="bare.json")
    found = nbspam("model", "merge", halves[0], bare, "-o", tmp_path / "out.json")
    assert found.code == 0
    assert str(bare) in found.err
    assert str(halves[0]) not in found.err


def test_an_output_that_is_there(nbspam, halves, assert_sentence):
    before = halves[0].read_bytes()
    assert_sentence(nbspam("model", "merge", *halves, "-o", halves[0]), halves[0], "--replace")
    assert before == halves[0].read_bytes()
    assert nbspam("model", "merge", *halves, "-o", halves[0], "--replace").code == 0
    assert json.loads(halves[0].read_bytes())["messages"] == [10, 10]


def test_models_trained_otherwise(nbspam, tmp_path, table, make_model, halves, assert_sentence):
    other = make_model(table, "--alpha", "0.5", name="other.json")
    found = nbspam("model", "merge", halves[0], other, "-o", tmp_path / "out.json")
    assert_sentence(found, other, halves[0], "alpha", "0.5", "0.05")


@in_turn("name", ["none.json", "."])
def test_no_model(nbspam, tmp_path, halves, assert_sentence, name):
    bad = tmp_path / name
    found = nbspam("model", "merge", halves[0], bad, "-o", tmp_path / "out.json")
    assert_sentence(found, bad)
    assert not list(tmp_path.glob("*out.json*"))  # nor a lock of it


def test_an_output_in_no_folder(nbspam, tmp_path, halves, assert_sentence):
    out = tmp_path / "none" / "out.json"
    assert_sentence(nbspam("model", "merge", *halves, "-o", out), out)


def test_usage(nbspam, halves):
    for arguments in ([*halves], ["-o", "out.json"]):
        found = nbspam("model", "merge", *arguments)
        assert found.code == 2
        assert "Traceback" not in found.err
