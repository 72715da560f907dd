import json
import math

from one_case import each


def tokens_of(path):
    return json.loads(path.read_bytes())["tokens"]


def test_in_place(nbspam, model, table):
    """What was learned is still known, and can be forgotten."""
    before, size = tokens_of(model), model.stat().st_size
    found = nbspam("model", "prune", "-m", model, "--min-count", "2")
    assert (found.code, found.err) == (0, "")
    kept = {token: row for token, row in before.items() if sum(row) >= 2}
    assert 0 < len(kept) < len(before)
    assert kept == tokens_of(model)
    after = model.stat().st_size
    said = f"kept {len(kept):,} of {len(before):,} tokens, {after:,} of {size:,} bytes"
    assert said in " ".join(found.out.split())
    assert nbspam("model", "check", "-m", model).code == 0
    found = nbspam("model", "prune", "-m", model, "--max-tokens", "5", "--format", "json")
    assert json.loads(found.out) == {
        "model": str(model),
        "tokens_before": len(kept),
        "tokens": 5,
        "bytes_before": after,
        "bytes": model.stat().st_size,
    }
    again = nbspam("train", "--update", "-m", model, table)
    assert "learned 0 new messages" in again.sentences
    assert nbspam("forget", "-m", model, table).code == 0
    fields = json.loads(model.read_bytes())
    assert (fields["messages"], fields["tokens"], fields["learned"]) == ([0, 0], {}, {})
    assert nbspam("model", "check", "-m", model).code == 0


def test_into_another_file(nbspam, model, tmp_path, assert_sentence):
    before, out = model.read_bytes(), tmp_path / "small.json"
    prune = ("model", "prune", "-m", model, "-o", out, "--max-tokens")
    assert nbspam(*prune, "7").code == 0
    assert before == model.read_bytes()
    assert len(tokens_of(out)) == 7
    assert_sentence(nbspam(*prune, "3"), out, "--replace")
    assert nbspam(*prune, "3", "--replace").code == 0
    assert len(tokens_of(out)) == 3


@each("form", ["text", "json"])
def test_when_so_little_is_left_that_verdicts_change_it_says_so(nbspam, model, form):
    n = len(tokens_of(model))
    enough, little = math.ceil(n / 20), math.ceil(n / 20) - 1
    for kept, errors in ((enough, ""), (little, "fewer than 1 in 20")):
        out = model.with_name(f"{kept}.{form}")
        how = ("--max-tokens", kept, "-o", out, "--format", form)
        found = nbspam("model", "prune", "-m", model, *how)
        assert found.code == 0
        assert len(tokens_of(out)) == kept
        assert found.err.count("\n") == bool(errors)
        assert errors in found.err
        assert ("verdicts change" in found.err) == bool(errors)


def test_what_fails_changes_nothing(nbspam, model, tmp_path, assert_sentence):
    before, path = model.read_bytes(), tmp_path / "none.json"
    prune = ("model", "prune", "-m")
    assert_sentence(nbspam(*prune, model), "--min-count", "--max-tokens", code=2)
    for option in ("--min-count", "--max-tokens"):
        for value in ("0", "-1", "few"):
            assert nbspam(*prune, model, option, value).code == 2
    assert before == model.read_bytes()
    assert_sentence(nbspam(*prune, path, "--min-count", "2"), path)
    assert not list(tmp_path.glob(".none.json*"))  # no lock is left behind
    damaged = before.replace(b'"prize": [0, 12]', b'"prize": [0, 13]')
    model.write_bytes(damaged)
    assert_sentence(nbspam(*prune, model, "--min-count", "2"), model)
    assert model.read_bytes() == damaged
