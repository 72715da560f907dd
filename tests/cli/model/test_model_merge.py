import json

import pytest

SPAM = "win a free prize now", "free prize for the winner", "claim the free cash prize today"
HAM = "lunch at noon today", "see you at the meeting", "the meeting notes are here"


def write_table(path, *rows):
    path.write_text("".join(f"{label}\t{text}\n" for label, text in rows))
    return path


@pytest.fixture
def halves(tmp_path, make_model):
    """Return models of every second message of twenty, none of them like another."""
    rows = [
        (("ham", "spam")[i // 2 % 2], f"{(HAM, SPAM)[i // 2 % 2][i % 3]} number-{'x' * i}")
        for i in range(20)
    ]
    tables = [write_table(tmp_path / f"half{half}.tsv", *rows[half::2]) for half in (0, 1)]
    return [make_model(table, name=f"{i}.json") for i, table in enumerate(tables)]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.json"


@pytest.fixture
def merge(nbspam, out):
    """Return a function that merges models into `out`."""
    return lambda *models: nbspam("model", "merge", *models, "-o", out)


def test_two_halves_make_the_whole(nbspam, merge, tmp_path, halves, make_model, out):
    """It decides, and learns on."""
    found = merge(*halves)
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
    assert nbspam("classify", "-m", out, stdin=b"free prize today").out.startswith("spam\t")
    assert nbspam("classify", "-m", out, stdin=b"notes of the meeting").out.startswith("ham\t")
    again = nbspam("train", "--update", "-m", out, tmp_path / "half0.tsv")
    assert "learned 0 new messages" in again.sentences
    assert "10 already known" in again.out


def test_merging_as_json(nbspam, merge, halves, out):
    """The highest cut-offs are the merged model's."""
    found = json.loads(merge(*halves, "--format", "json").out)
    assert found["messages"] == {"ham": 10, "spam": 10}
    assert found["merged"] == list(map(str, halves))
    assert (found["shared"], found["calibrated_by"]) == (0, "merging")
    assert (found["spam_cutoff"], found["ham_cutoff"]) == (0.9, 0.5)
    assert found["tokens"] == len(json.loads(out.read_bytes())["tokens"])
    of_each = ("--spam-cutoff", "0.99"), ("--spam-cutoff", "0.8", "--ham-cutoff", "0.6")
    for model, cut_offs in zip(halves, of_each, strict=True):
        assert nbspam("model", "set", "-m", model, *cut_offs).code == 0
    found = json.loads(merge(*halves, "--format", "json", "--replace").out)
    assert (found["spam_cutoff"], found["ham_cutoff"]) == (0.99, 0.6)


def test_spam_alone_and_ham_alone(nbspam, merge, tmp_path, out):
    models = []
    for label, texts in (("spam", SPAM), ("ham", HAM)):
        table = write_table(tmp_path / f"{label}.tsv", *[(label, text) for text in texts])
        models.append(tmp_path / f"{label}.json")
        assert nbspam("train", "--update", "-m", models[-1], table).code == 0
    found = merge(*models)
    assert found.code == 0
    assert "calibration is the default" in found.err
    assert nbspam("classify", "-m", out, stdin=b"free prize today").out.startswith("spam\t")
    assert "not fitted" in nbspam("model", "info", "-m", out).out


def test_shared_messages(nbspam, merge, model, halves, out, assert_sentence):
    same = model.with_name("same.json")
    same.write_bytes(model.read_bytes())
    n = len(json.loads(model.read_bytes())["learned"])
    found = merge(model, same, halves[0])
    assert_sentence(found, model, same, f"share {n} messages", "--allow-overlap")
    assert not out.exists()
    found = merge(model, same, "--allow-overlap")
    assert found.code == 0
    assert f"{n} messages are in several of the models and count twice" in found.err
    assert json.loads(out.read_bytes())["messages"] == [36, 24]
    assert nbspam("model", "check", "-m", out).code == 0


def test_a_model_without_ledger_is_told(merge, table, make_model, halves):
    bare = make_model(table, "--no-ledger", name="bare.json")
    found = merge(halves[0], bare)
    assert found.code == 0
    assert str(bare) in found.err
    assert str(halves[0]) not in found.err


def test_an_output_that_is_there(nbspam, halves, assert_sentence):
    before = halves[0].read_bytes()
    merge = ("model", "merge", *halves, "-o", halves[0])
    assert_sentence(nbspam(*merge), halves[0], "--replace")
    assert before == halves[0].read_bytes()
    assert nbspam(*merge, "--replace").code == 0
    assert json.loads(halves[0].read_bytes())["messages"] == [10, 10]


def test_what_fails(nbspam, merge, tmp_path, table, make_model, halves, assert_sentence):
    one, other = halves[0], make_model(table, "--alpha", "0.5", name="other.json")
    assert_sentence(merge(one, other), other, one, "alpha", "0.5", "0.05")
    for bad in (tmp_path / "none.json", tmp_path):
        assert_sentence(merge(one, bad), bad)
    assert not list(tmp_path.glob("*out.json*"))  # nor a lock of it
    nowhere = tmp_path / "none" / "out.json"
    assert_sentence(nbspam("model", "merge", *halves, "-o", nowhere), nowhere)
    for arguments in ([*halves], ["-o", "out.json"]):
        found = nbspam("model", "merge", *arguments)
        assert found.code == 2
        assert "Traceback" not in found.err
