import json
import math

import pytest
from many_cases import in_turn


def tokens_of(path):
    return json.loads(path.read_bytes())["tokens"]


def test_in_place(nbspam, model):
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


def test_messages_are_still_known_and_can_be_forgotten(nbspam, model, table):
    nbspam("model", "prune", "-m", model, "--max-tokens", "5")
    again = nbspam("train", "--update", "-m", model, table)
    assert "learned 0 new messages" in again.sentences
    assert nbspam("forget", "-m", model, table).code == 0
    fields = json.loads(model.read_bytes())
    assert (fields["messages"], fields["tokens"], fields["learned"]) == ([0, 0], {}, {})
    assert nbspam("model", "check", "-m", model).code == 0


def test_into_another_file(nbspam, model, tmp_path, assert_sentence):
    before, out = model.read_bytes(), tmp_path / "small.json"
    assert nbspam("model", "prune", "-m", model, "--max-tokens", "7", "-o", out).code == 0
    assert before == model.read_bytes()
    assert len(tokens_of(out)) == 7
    found = nbspam("model", "prune", "-m", model, "--max-tokens", "3", "-o", out)
    assert_sentence(found, out, "--replace")
    found = nbspam("model", "prune", "-m", model, "--max-tokens", "3", "-o", out, "--replace")
    assert found.code == 0
    assert len(tokens_of(out)) == 3


def test_as_json(nbspam, model):
    n, size = len(tokens_of(model)), model.stat().st_size
    found = nbspam("model", "prune", "-m", model, "--max-tokens", "9", "--format", "json")
    assert json.loads(found.out) == {
        "model": str(model),
        "tokens_before": n,
        "tokens": 9,
        "bytes_before": size,
        "bytes": model.stat().st_size,
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_when_so_little_is_left_that_verdicts_change_it_says_so(nbspam, model, form):
    n = len(tokens_of(model))
    enough, little = math.ceil(n / 20), math.ceil(n / 20) - 1
    for kept, errors in ((enough, ""), (little, "fewer than 1 in 20")):
        out = model.with_name(f"{kept}.json")
        how = ("--max-tokens", kept, "-o", out, "--format", form)
        found = nbspam("model", "prune", "-m", model, *how)
        assert found.code == 0
        assert len(tokens_of(out)) == kept
        assert found.err.count("\n") == bool(errors)
        assert errors in found.err
        assert ("verdicts change" in found.err) == bool(errors)


def test_nothing_to_prune_by(nbspam, model, assert_sentence):
    found = nbspam("model", "prune", "-m", model)
    assert_sentence(found, "--min-count", "--max-tokens", code=2)


@in_turn("option", ["--min-count", "--max-tokens"])
@in_turn("value", ["0", "-1", "few"])
def test_senseless_numbers(nbspam, model, option, value):
    before = model.read_bytes()
    assert nbspam("model", "prune", "-m", model, option, value).code == 2
    assert before == model.read_bytes()


def test_no_model(nbspam, tmp_path, assert_sentence):
    path = tmp_path / "none.json"
    assert_sentence(nbspam("model", "prune", "-m", path, "--min-count", "2"), path)
    assert not list(tmp_path.glob(".none.json*"))  # no lock is left behind


def test_a_damaged_model_stays_as_it_is(nbspam, model, assert_sentence):
    model.write_text(model.read_text().replace('"prize": [0, 12]', '"prize": [0, 13]'))
    before = model.read_bytes()
    assert_sentence(nbspam("model", "prune", "-m", model, "--min-count", "2"), model)
    assert before == model.read_bytes()
