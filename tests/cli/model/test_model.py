import json

from one_case import each


def check(nbspam, model):
    return nbspam("model", "check", "-m", model)


def info(nbspam, model):
    """Return what `info` says as JSON and as text."""
    found = nbspam("model", "info", "-m", model)
    assert (found.code, found.err) == (0, "")
    return json.loads(nbspam("model", "info", "-m", model, "--format", "json").out), found.out


def test_info(nbspam, model, table, make_model):
    found, text = info(nbspam, model)
    fields = json.loads(model.read_text())
    assert found["messages"] == {"ham": 18, "spam": 12}
    assert found["tokens"] == len(fields["tokens"])
    assert found["bytes"] == model.stat().st_size
    assert found["remembered"] == len(fields["learned"]) > 0
    assert (found["positive"], found["prior"]) == ("spam", None)
    assert (found["alpha"], found["scoring"]) == (fields["alpha"], fields["scoring"])
    assert found["calibrated_by"] == "training"
    for part in (str(model), "18", "12", f"remembers {found['remembered']} messages"):
        assert part in text
    options = ("--no-ledger", "--scoring", "sum", "--prior", "0.25", "--alpha", "0.5")
    found, text = info(nbspam, make_model(table, *options, name="bare.json"))
    assert (found["remembered"], found["calibrated_by"]) == (0, None)
    assert (found["prior"], found["alpha"]) == (0.25, 0.5)
    assert "plain posterior" in text
    assert "0.25" in text


def test_info_of_three_classes_without_spam(nbspam, three_classes, make_model):
    three_classes.write_text(three_classes.read_text().replace("spam\t", "junk\t"))
    assert info(nbspam, make_model(three_classes))[0]["positive"] is None


def test_a_whole_model_passes(nbspam, model, sms_model, three_classes, make_model):
    for path in (model, sms_model, make_model(three_classes, "--prior", "0.5", name="three.json")):
        found = check(nbspam, path)
        assert (found.code, found.err) == (0, "")
        assert str(path) in found.out


@each(
    "old, new, said",
    [
        ('"prize": [0, 12]', '"prize": [0, 11]', "restore it"),
        ('"prize": [0, 12]', '"prize": [0, 13]', ""),  # above the messages
        ('"messages": [18, 12]', '"messages": [19, 12]', ""),
    ],
)
def test_a_changed_count_is_found(nbspam, model, assert_sentence, old, new, said):
    text = model.read_text()
    assert old in text
    model.write_text(text.replace(old, new))
    assert_sentence(check(nbspam, model), model, said)
    model.write_text(text)


def test_changed_figures_and_another_layout_are_found(nbspam, model, assert_sentence):
    text = model.read_text()
    fields = json.loads(text)
    bias, n = (fields["derived"][name] for name in ("bias", "tokens"))
    for changed, said in (
        (text.replace(json.dumps(bias), json.dumps([bias[0] + 0.001, bias[1]])), "bias"),
        (text.replace(f'"tokens": {n}', f'"tokens": {n + 1}'), "tokens"),
        (json.dumps(fields, indent=1), ""),  # by another program
        (text[:-10], "truncated"),
    ):
        assert changed != text
        model.write_text(changed)
        assert_sentence(check(nbspam, model), model, said)


@each("which", ["model", "sms_model"])
def test_changed_lines_are_found(nbspam, tmp_path, request, assert_sentence, which):
    """Swapped, deleted or repeated."""
    path = tmp_path / "changed.json"
    head, mark, rest = request.getfixturevalue(which).read_text().partition('"tokens": {\n')
    tokens, end_mark, end = rest.rpartition('\n},"learned"')
    lines = tokens.split(",\n")

    def swapped(i, j):
        changed = list(lines)
        changed[i], changed[j] = lines[j], lines[i]
        return changed, ""

    cases = [swapped(i, j) for i, j in ((0, 1), (0, -1), (10, 40))]
    if which == "model":
        cases += [(lines[:3] + lines[4:], ""), ([lines[0], *lines], "duplicate key")]
    for changed, said in cases:
        path.write_text(head + mark + ",\n".join(changed) + end_mark + end)
        assert_sentence(check(nbspam, path), path, said)
