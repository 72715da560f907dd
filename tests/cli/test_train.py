import json
import re
import stat

import pytest
from many_cases import in_turn


def test_train_says_what_it_learned_and_what_to_expect(nbspam, table, tmp_path):
    found = nbspam("train", table, "-m", tmp_path / "model.json")
    assert (found.code, found.err) == (0, "")
    learned, expect, young = found.sentences.splitlines()
    assert learned.startswith(f"{tmp_path / 'model.json'}: learned 30 messages")
    assert "18" in learned
    assert "12" in learned
    share = r"\d+\.\d\d % \(\d+\.\d\d to \d+\.\d\d\)"
    assert re.fullmatch(
        "leave-one-out estimate for new messages like these: "
        + share.replace("%", "% correct at 0.5", 1)
        + f"; verdicts: ham blocked {share}, spam missed {share}, unsure {share}",
        expect,
    )
    assert "82 more ham and 88 more spam" in young


def test_train_writes_a_model_that_classifies(nbspam, model):
    found = nbspam("classify", "-m", model, stdin=b"a free prize for the winner")
    assert found.out.startswith("spam\t")


def test_train_as_json(nbspam, table, tmp_path):
    path = tmp_path / "model.json"
    found = json.loads(nbspam("train", table, "-m", path, "--format", "json").out)
    assert str(path) == found["model"]
    assert found["messages"] == {"ham": 18, "spam": 12}
    assert found["skipped"] == 0
    assert found["tokens"] > 20
    estimate = found["leave_one_out"]
    low, high = estimate["accuracy_ci"]
    assert 0 <= low <= estimate["accuracy"] <= high <= 1
    keys = ("accuracy", "sc_pct", "bh_pct", "verdict_bh_pct", "verdict_sm_pct", "unsure_pct")
    assert list(estimate) == [name for key in keys for name in (key, f"{key}_ci")]


def test_the_estimate_of_three_classes_is_that_of_their_verdicts(nbspam, three_classes, tmp_path):
    expect = nbspam("train", three_classes, "-m", tmp_path / "model.json").sentences.splitlines()[1]
    assert "these: correct 100.00 % (" in expect
    assert "spam caught" in expect
    assert "0.5" not in expect


def test_train_quietly_says_nothing(nbspam, table, tmp_path):
    found = nbspam("train", "-q", table, "-m", tmp_path / "model.json")
    assert found == (0, "", "")


def test_the_sample_data_trains(nbspam, sample, tmp_path):
    mail = sample / "mail"
    found = nbspam(
        *("train", "--spam", mail / "spam.mbox", "--ham", mail / "ham"),
        *("-m", tmp_path / "mail.json", "--format", "json"),
    )
    assert json.loads(found.out)["messages"] == {"ham": 28, "spam": 20}


def test_two_messages_are_enough(nbspam, tmp_path):
    (tmp_path / "spam.txt").write_text("free prize")
    (tmp_path / "ham.txt").write_text("see you")
    sources = ("--spam", tmp_path / "spam.txt", "--ham", tmp_path / "ham.txt")
    found = nbspam("train", *sources, "-m", tmp_path / "model.json")
    assert (found.code, found.err) == (0, "")


def test_an_existing_model_needs_replace(nbspam, table, model, assert_sentence):
    before = model.read_bytes()
    assert_sentence(nbspam("train", table, "-m", model), model, "--replace")
    assert before == model.read_bytes()


def test_replace_replaces(nbspam, three_classes, model):
    found = nbspam("train", "--replace", three_classes, "-m", model)
    assert found.code == 0
    assert b"promo" in model.read_bytes()


def test_training_twice_gives_the_same_model(table, make_model):
    first, second = make_model(table, name="a.json"), make_model(table, name="b.json")
    assert first.read_bytes() == second.read_bytes()


def test_counts_do_not_depend_on_the_order_of_messages(nbspam, table, make_model):
    first = make_model(table)
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join(lines[::-1]))
    second = make_model(table, name="b.json")
    tokens = [json.loads(path.read_text())["tokens"] for path in (first, second)]
    assert tokens[0] == tokens[1]


def test_the_model_is_the_owners_alone(model):
    assert stat.S_IMODE(model.stat().st_mode) == 0o600


def test_the_models_place_is_the_environments(nbspam, table, tmp_path, monkeypatch):
    monkeypatch.setenv("NBSPAM_MODEL", str(tmp_path / "named.json"))
    assert nbspam("train", table).code == 0
    assert (tmp_path / "named.json").exists()
    assert nbspam("classify", stdin=b"free prize").code == 0


def test_the_models_place_without_a_name_is_the_users_data_folder(nbspam, table, own_home):
    assert nbspam("train", table).code == 0
    (path,) = own_home.rglob("model.json")
    assert path.parent.name == "nbspam"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert nbspam("classify", stdin=b"free prize").code == 0


def test_spam_label_names_the_class(nbspam, tmp_path, table):
    text = table.read_text().replace("spam\t", "junk\t").replace("ham\t", "fine\t")
    table.write_text(text)
    path = tmp_path / "model.json"
    assert nbspam("train", table, "-m", path, "--spam-label", "junk").code == 0
    found = nbspam("classify", "-m", path, stdin=b"win a free prize now")
    verdict, probability, _ = found.out.split("\t")
    assert verdict == "junk"
    assert float(probability) > 0.5


def test_two_classes_of_which_none_is_spam_need_the_label(nbspam, tmp_path, table, assert_sentence):
    table.write_text(table.read_text().replace("spam\t", "junk\t"))
    found = nbspam("train", table, "-m", tmp_path / "model.json")
    assert_sentence(found, "--spam-label", "'junk'", "'ham'")


def test_label_gives_any_class(nbspam, tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(f"word{name} other\nword{name} more\n")
    found = nbspam(
        *("train", "--lines", "-m", tmp_path / "model.json", "--format", "json"),
        *(f"--label=class {name}={tmp_path / name}" for name in "abc"),
    )
    assert json.loads(found.out)["messages"] == {"class a": 2, "class b": 2, "class c": 2}


@pytest.mark.parametrize(
    ("option", "field", "value"), [("--alpha", "alpha", 0.7), ("--prior", "prior", 0.2)]
)
def test_learning_options_are_kept_in_the_model(nbspam, table, make_model, option, field, value):
    path = make_model(table, option, str(value))
    assert json.loads(path.read_text())[field] == value


def test_a_smaller_prior_gives_a_smaller_probability(nbspam, table, make_model):
    found = []
    for prior in ("0.01", "0.5", "0.99"):
        path = make_model(table, "--prior", prior, "--replace")
        printed = nbspam("classify", "-m", path, "--format", "json", stdin=b"free meeting").out
        found.append(json.loads(printed)["probability"])
    assert sorted(found) == found
    assert found[0] < found[2]


def test_a_bad_row_is_skipped_counted_and_named(nbspam, table, tmp_path):
    with table.open("a") as file:
        file.write("only one cell\n")
    found = nbspam("train", table, "-m", tmp_path / "model.json", "--format", "json")
    assert found.code == 0
    assert json.loads(found.out)["skipped"] == 1
    assert f"{table}:31" in found.err


def test_strict_stops_at_a_bad_row(nbspam, table, tmp_path, assert_sentence):
    with table.open("a") as file:
        file.write("only one cell\n")
    found = nbspam("train", table, "-m", tmp_path / "model.json", "--strict")
    assert_sentence(found, f"{table}:31")
    assert not (tmp_path / "model.json").exists()


@pytest.mark.parametrize("scoring", ["evidence", "sum"])
def test_the_largest_alpha_still_gives_probabilities(nbspam, table, make_model, scoring):
    path = make_model(table, "--alpha", "1e6", "--scoring", scoring)
    found = nbspam("classify", "-m", path, "--format", "json", stdin=b"free prize")
    assert 0 < json.loads(found.out)["probability"] < 1


def test_a_tiny_alpha_still_gives_probabilities(nbspam, table, make_model):
    path = make_model(table, "--alpha", "1e-300")
    found = nbspam("classify", "-m", path, "--format", "json", stdin=b"free prize")
    assert 0 <= json.loads(found.out)["probability"] <= 1


def test_messages_without_words_can_be_learned(nbspam, tmp_path):
    (tmp_path / "t.jsonl").write_text(
        '{"label": "spam", "text": ""}\n{"label": "ham", "text": " "}\n' * 3
    )
    found = nbspam("train", tmp_path / "t.jsonl", "-m", tmp_path / "model.json")
    assert "Traceback" not in found.err


def test_half_of_a_surrogate_pair_is_no_hindrance(nbspam, tmp_path):
    rows = '{"label": "spam", "text": "http://a\\ud800b.example free"}\n'
    rows += '{"label": "ham", "text": "\\udfff lunch"}\n'
    (tmp_path / "t.jsonl").write_text(rows * 3)
    found = nbspam("train", tmp_path / "t.jsonl", "-m", tmp_path / "model.json")
    assert (found.code, found.err) == (0, "")


# Scoring


@pytest.mark.parametrize(("scoring", "alpha"), [("evidence", 0.05), ("sum", 0.1)])
def test_scoring_is_kept_in_the_model_with_its_own_alpha(nbspam, table, make_model, scoring, alpha):
    path = make_model(table, "--scoring", scoring)
    fields = json.loads(path.read_text())
    assert (fields["scoring"], fields["alpha"]) == (scoring, alpha)


def test_evidence_is_the_default_scoring(nbspam, table, make_model):
    assert (
        make_model(table).read_bytes()
        == make_model(table, "--scoring", "evidence", name="b.json").read_bytes()
    )


def test_scorings_differ(nbspam, table, make_model):
    found = []
    for scoring in ("evidence", "sum"):
        path = make_model(table, "--scoring", scoring, "--replace")
        printed = nbspam("classify", "-m", path, "--format", "json", stdin=b"free prize").out
        found.append(json.loads(printed)["log_odds"])
    assert found[0] != found[1]
    assert min(found) > 0


def test_a_scoring_that_is_none_is_a_usage_error(nbspam, table, tmp_path):
    found = nbspam("train", table, "-m", tmp_path / "model.json", "--scoring", "magic")
    assert found.code == 2
    assert "magic" in found.err


# The cut-off


@pytest.fixture
def mixed(tmp_path):
    """Return a table of 40 ham and 20 spam, of which two ham look like spam."""
    ham = ["claim the free cash prize x", "claim the free cash prize y"]
    ham += [f"lunch at noon, see you {'abcdefgh'[i % 8]}" for i in range(38)]
    spam = [f"claim the free cash prize {'abcdefgh'[i % 8]}" for i in range(20)]
    path = tmp_path / "mixed.tsv"
    rows = [f"ham\t{text}" for text in ham] + [f"spam\t{text}" for text in spam]
    path.write_text("\n".join(rows) + "\n")
    return path


def cut_off(path):
    return json.loads(path.read_text())["spam_cutoff"]


def cut_offs(path):
    fields = json.loads(path.read_text())
    return fields["spam_cutoff"], fields["ham_cutoff"]


@in_turn(
    "options, expected",
    [
        ((), (0.9, 0.5)),
        (("--spam-cutoff", "0.99"), (0.99, 0.5)),
        (("--ham-cutoff", "0.1"), (0.9, 0.1)),
        (("--spam-cutoff", "0.3"), (0.3, 0.3)),
        (("--spam-cutoff", "0.8", "--ham-cutoff", "0.7"), (0.8, 0.7)),
        (("--ham-cost", "19"), (0.95, 0.95)),
    ],
)
def test_the_cut_offs_are_kept_in_the_model(nbspam, table, make_model, options, expected):
    plain = json.loads(make_model(table, "--replace", name="plain.json").read_text())
    path = make_model(table, "--replace", *options)
    assert cut_offs(path) == pytest.approx(expected)
    fields = json.loads(path.read_text())
    assert fields | {"spam_cutoff": 0.9, "ham_cutoff": 0.5} == plain
    found = json.loads(nbspam("model", "info", "-m", path, "--format", "json").out)
    assert (found["spam_cutoff"], found["ham_cutoff"]) == cut_offs(path)
    assert nbspam("model", "check", "-m", path).code == 0


def test_a_new_model_that_update_begins_takes_cut_offs_too(nbspam, table, tmp_path):
    path = tmp_path / "new.json"
    found = nbspam("train", "--update", table, "-m", path, "--spam-cutoff", "0.75")
    assert found.code == 0
    assert cut_offs(path) == (0.75, 0.5)


def test_the_estimate_is_with_the_cut_offs_that_are_stored(nbspam, mixed, tmp_path):
    options = ("--format", "json", "-m", tmp_path / "model.json", "--replace")
    found = [
        json.loads(nbspam("train", mixed, *options, *more).out)["leave_one_out"]
        for more in ((), ("--ham-cost", "1"), ("--spam-cutoff", "1", "--ham-cutoff", "0"))
    ]
    assert len({(one["accuracy"], one["sc_pct"], one["bh_pct"]) for one in found}) == 1
    _, half, never = found
    assert half["verdict_bh_pct"] == pytest.approx(half["bh_pct"]) == pytest.approx(5)
    assert half["verdict_sm_pct"] == pytest.approx(100 - half["sc_pct"])
    assert half["unsure_pct"] == 0
    figures = (never["verdict_bh_pct"], never["verdict_sm_pct"], never["unsure_pct"])
    assert figures == (0, 100, 100)


@in_turn(
    "options, parts",
    [
        (("--spam-cutoff", "1.5"), ("the spam cut-off must be between 0 and 1, not 1.5",)),
        (("--ham-cutoff", "nan"), ("the ham cut-off must be between 0 and 1",)),
        (("--ham-cutoff", "0.95"), ("0.95, is above the spam cut-off, 0.9",)),
        (("--ham-cost", "0"), ("the ham cost must be above 0",)),
        (("--ham-cost", "9", "--spam-cutoff", "0.9"), ("leave out",)),
        (("--max-ham-blocked", "1%", "--ham-cost", "9"), ("--max-ham-blocked", "leave out")),
        (("--max-ham-blocked", "1%", "--spam-cutoff", "0.9"), ("--max-ham-blocked", "leave out")),
    ],
)
def test_cut_offs_that_make_no_sense_write_no_model(
    nbspam, table, tmp_path, assert_sentence, options, parts
):
    path = tmp_path / "model.json"
    found = nbspam("train", table, "-m", path, *options)
    assert_sentence(found, *parts, code=2)
    assert not path.exists()


def test_cut_offs_of_three_classes_are_refused(nbspam, three_classes, tmp_path, assert_sentence):
    path = tmp_path / "model.json"
    found = nbspam("train", three_classes, "-m", path, "--spam-cutoff", "0.9")
    assert_sentence(found, "3 classes", "leave out the cut-offs", code=2)
    assert not path.exists()


def test_an_update_leaves_the_models_cut_offs_and_says_what_sets_them(
    nbspam, table, make_model, tmp_path, assert_sentence
):
    path = make_model(table, "--spam-cutoff", "0.8", "--ham-cutoff", "0.2")
    more = tmp_path / "more.tsv"
    more.write_text("spam\ta prize of another kind\n")
    before = path.read_bytes()
    found = nbspam("train", "--update", more, "-m", path, "--spam-cutoff", "0.9")
    assert_sentence(found, path, "nbspam model set", code=2)
    assert path.read_bytes() == before
    assert nbspam("train", "--update", more, "-m", path).code == 0
    assert path.read_bytes() != before
    assert cut_offs(path) == (0.8, 0.2)


@pytest.mark.parametrize("scoring", ["evidence", "sum"])
def test_max_ham_blocked_raises_the_cut_off_and_stores_it(nbspam, mixed, make_model, scoring):
    loose = cut_off(make_model(mixed, "--scoring", scoring, "--max-ham-blocked", "10%"))
    tight = cut_off(make_model(mixed, "--scoring", scoring, "--max-ham-blocked", "0", "--replace"))
    assert 0.5 <= loose <= tight
    assert tight > 0.5


@pytest.mark.parametrize(("percent", "share"), [("0.1%", "0.001"), ("5%", "0.05"), ("0%", "0")])
def test_a_share_is_a_percentage_or_a_number(mixed, make_model, percent, share):
    one = make_model(mixed, "--max-ham-blocked", percent)
    other = make_model(mixed, "--max-ham-blocked", share, name="b.json")
    assert one.read_bytes() == other.read_bytes()


def test_train_says_where_the_cut_off_came_to_lie(nbspam, mixed, tmp_path):
    path = tmp_path / "model.json"
    found = nbspam("train", mixed, "-m", path, "--max-ham-blocked", "0.1%")
    assert (found.code, found.err) == (0, "")
    sentence = found.sentences.splitlines()[2]
    assert "at most 0.1 % of ham blocked" in sentence
    assert "the verdicts above are with it" in sentence
    assert f"{cut_off(path):.6g}" in sentence
    assert "40 ham messages are too few to measure less than 2.5 %" in sentence


def test_enough_ham_has_no_such_warning(nbspam, mixed, tmp_path):
    found = nbspam("train", mixed, "-m", tmp_path / "model.json", "--max-ham-blocked", "10%")
    assert "too few" not in found.out


def test_the_estimate_is_that_of_the_cut_off(nbspam, mixed, tmp_path):
    options = ("--format", "json", "-m", tmp_path / "model.json", "--replace")
    plain = json.loads(nbspam("train", mixed, *options).out)["leave_one_out"]
    tight = nbspam("train", mixed, *options, "--max-ham-blocked", "2.5%").out
    tight = json.loads(tight)["leave_one_out"]
    assert plain["bh_pct"] == tight["bh_pct"] == pytest.approx(5)
    assert tight["verdict_bh_pct"] <= 2.5
    loose = nbspam("train", mixed, *options, "--max-ham-blocked", "5%").out
    assert json.loads(loose)["leave_one_out"]["verdict_bh_pct"] == pytest.approx(5)


@in_turn("share", ["100%", "1", "-1", "-0.1%", "much", "%", "", "nan", "inf", "1e9%"])
def test_a_share_that_is_none_is_refused(nbspam, mixed, tmp_path, assert_sentence, share):
    path = tmp_path / "model.json"
    found = nbspam("train", mixed, "-m", path, f"--max-ham-blocked={share}")
    assert_sentence(found, "--max-ham-blocked", "0.1%", code=2)
    assert not path.exists()


def test_three_classes_have_no_cut_off(nbspam, three_classes, tmp_path, assert_sentence):
    path = tmp_path / "model.json"
    found = nbspam("train", three_classes, "-m", path, "--max-ham-blocked", "1%")
    assert_sentence(found, "--max-ham-blocked", "two classes")
    assert not path.exists()


def test_the_models_cut_off_is_what_the_other_commands_use(nbspam, mixed, make_model):
    path = make_model(mixed, "--max-ham-blocked", "0")
    bound = cut_off(path)
    rows = nbspam("classify", "-m", path, "--format", "json", mixed).out.splitlines()
    found = [json.loads(row) for row in rows]
    assert any(0.5 < row["probability"] <= bound for row in found)
    for row in found:
        p = row["probability"]
        assert row["verdict"] == ("spam" if p > bound else "ham" if p <= 0.5 else "unsure")
    explained = nbspam("explain", "-m", path, "--format", "json", f"{mixed}:1").out
    assert json.loads(explained)["verdict"] == found[0]["verdict"] == "unsure"
    evaluation = ("eval", "--including-learned", "-m")
    evaluated = json.loads(nbspam(*evaluation, path, "--format", "json", mixed).out)
    assert (evaluated["spam_cutoff"], evaluated["ham_cutoff"]) == (bound, 0.5)
    assert evaluated["fp"] == sum(row["probability"] > 0.5 for row in found[:40])
    for label, rows in (("ham", found[:40]), ("spam", found[40:])):
        for verdict, n in evaluated["verdicts"][label].items():
            assert n == sum(row["verdict"] == verdict for row in rows)


def test_a_cut_off_that_is_asked_for_goes_before_the_models(nbspam, mixed, make_model):
    path = make_model(mixed, "--max-ham-blocked", "0")
    rows = nbspam("classify", "-m", path, "--format", "json", "--spam-cutoff", "0.5", mixed)
    for row in map(json.loads, rows.out.splitlines()):
        assert row["verdict"] == ("spam" if row["probability"] > 0.5 else "ham")
