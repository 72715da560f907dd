import json

from many_cases import in_turn


def check(nbspam, model):
    return nbspam("model", "check", "-m", model)


def test_info_says_what_was_learned(nbspam, model):
    found = nbspam("model", "info", "-m", model)
    assert (found.code, found.err) == (0, "")
    assert str(model) in found.out
    assert "18" in found.out
    assert "12" in found.out


def test_info_as_json(nbspam, model):
    found = json.loads(nbspam("model", "info", "-m", model, "--format", "json").out)
    fields = json.loads(model.read_text())
    assert found["messages"] == {"ham": 18, "spam": 12}
    assert len(fields["tokens"]) == found["tokens"]
    assert model.stat().st_size == found["bytes"]
    assert found["positive"] == "spam"
    assert found["prior"] is None
    assert fields["alpha"] == found["alpha"]
    assert fields["scoring"] == found["scoring"]


def test_info_of_ledger_and_calibration(nbspam, model, table, make_model):
    found = json.loads(nbspam("model", "info", "-m", model, "--format", "json").out)
    assert len(json.loads(model.read_text())["learned"]) == found["remembered"] > 0
    assert found["calibrated_by"] == "training"
    assert f"remembers {found['remembered']} messages" in nbspam("model", "info", "-m", model).out
    bare = make_model(table, "--no-ledger", "--scoring", "sum", name="bare.json")
    found = json.loads(nbspam("model", "info", "-m", bare, "--format", "json").out)
    assert (found["remembered"], found["calibrated_by"]) == (0, None)
    assert "plain posterior" in nbspam("model", "info", "-m", bare).out


def test_info_of_options(nbspam, table, make_model):
    path = make_model(table, "--prior", "0.25", "--alpha", "0.5")
    found = json.loads(nbspam("model", "info", "-m", path, "--format", "json").out)
    assert (found["prior"], found["alpha"]) == (0.25, 0.5)
    assert "0.25" in nbspam("model", "info", "-m", path).out


def test_info_of_three_classes_without_spam(nbspam, three_classes, make_model):
    three_classes.write_text(three_classes.read_text().replace("spam\t", "junk\t"))
    path = make_model(three_classes)
    assert nbspam("model", "info", "-m", path).code == 0
    found = json.loads(nbspam("model", "info", "-m", path, "--format", "json").out)
    assert found["positive"] is None


def test_a_whole_model_passes(nbspam, model, sms_model):
    for path in (model, sms_model):
        found = check(nbspam, path)
        assert (found.code, found.err) == (0, "")
        assert str(path) in found.out


def test_a_whole_model_of_three_classes_passes(nbspam, three_classes, make_model):
    assert check(nbspam, make_model(three_classes, "--prior", "0.5")).code == 0


def lines_of(path):
    """Return the lines of the head, of the tokens without commas, and of the end."""
    head, mark, rest = path.read_text().partition('"tokens": {\n')
    tokens, end_mark, end = rest.rpartition('\n},"learned"')
    return head + mark, tokens.split(",\n"), end_mark + end


def put(path, head, tokens, end):
    path.write_text(head + ",\n".join(tokens) + end)


def test_a_changed_count_is_found(nbspam, model, assert_sentence):
    text = model.read_text()
    assert '"prize": [0, 12]' in text
    model.write_text(text.replace('"prize": [0, 12]', '"prize": [0, 11]'))
    assert_sentence(check(nbspam, model), model, "restore it")


def test_a_count_above_the_messages_is_found(nbspam, model, assert_sentence):
    model.write_text(model.read_text().replace('"prize": [0, 12]', '"prize": [0, 13]'))
    assert_sentence(check(nbspam, model), model)


def test_a_changed_bias_is_found(nbspam, model, assert_sentence):
    fields = json.loads(model.read_text())
    bias = fields["derived"]["bias"]
    changed = json.dumps([bias[0] + 0.001, bias[1]])
    model.write_text(model.read_text().replace(json.dumps(bias), changed))
    assert_sentence(check(nbspam, model), model, "bias")


def test_a_changed_number_of_messages_is_found(nbspam, model, assert_sentence):
    text = model.read_text()
    model.write_text(text.replace('"messages": [18, 12]', '"messages": [19, 12]'))
    assert_sentence(check(nbspam, model), model)


def test_a_changed_number_of_tokens_is_found(nbspam, model, assert_sentence):
    n = json.loads(model.read_text())["derived"]["tokens"]
    model.write_text(model.read_text().replace(f'"tokens": {n}', f'"tokens": {n + 1}'))
    assert_sentence(check(nbspam, model), model, "tokens")


def test_a_deleted_token_is_found(nbspam, model, assert_sentence):
    head, tokens, end = lines_of(model)
    put(model, head, tokens[:3] + tokens[4:], end)
    assert_sentence(check(nbspam, model), model)


@in_turn("which", ["model", "sms_model"])
@in_turn("at", [(0, 1), (0, -1), (10, 40)])
def test_swapped_lines_are_found(nbspam, tmp_path, request, assert_sentence, which, at):
    path = tmp_path / "swapped.json"
    head, tokens, end = lines_of(request.getfixturevalue(which))
    i, j = at
    tokens[i], tokens[j] = tokens[j], tokens[i]
    put(path, head, tokens, end)
    assert_sentence(check(nbspam, path), path)


def test_a_model_laid_out_by_another_program_is_found(nbspam, model, assert_sentence):
    model.write_text(json.dumps(json.loads(model.read_text()), indent=1))
    assert_sentence(check(nbspam, model), model)


def test_a_token_that_stands_twice_is_found(nbspam, model, assert_sentence):
    head, tokens, end = lines_of(model)
    put(model, head, [tokens[0], *tokens], end)
    assert_sentence(check(nbspam, model), model, "twice")


def test_a_model_cut_short_is_found(nbspam, model, assert_sentence):
    model.write_bytes(model.read_bytes()[:-10])
    assert_sentence(check(nbspam, model), model, "cut short")
