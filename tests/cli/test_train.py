import json
import stat

import pytest


def test_train_says_what_it_learned_and_what_to_expect(nbspam, table, tmp_path):
    found = nbspam("train", table, "-m", tmp_path / "model.json")
    assert (found.code, found.err) == (0, "")
    learned, expect = found.out.splitlines()
    assert learned.startswith(f"{tmp_path / 'model.json'}: learned 30 messages")
    assert "18" in learned
    assert "12" in learned
    assert "spam caught" in expect
    assert "ham blocked" in expect


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
    assert {"sc_pct", "sc_pct_ci", "bh_pct", "bh_pct_ci"} <= estimate.keys()


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


@pytest.mark.parametrize("alpha", ["1000001", "1e10", "1e308", "inf", "nan", "0", "-1"])
def test_an_alpha_beyond_sense_is_refused(nbspam, table, tmp_path, assert_sentence, alpha):
    path = tmp_path / "model.json"
    found = nbspam("train", table, "-m", path, f"--alpha={alpha}")
    assert_sentence(found, "alpha must be above 0 and at most 1e+06", code=2)
    assert not path.exists()


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
    ham = ["claim the free cash prize a", "claim the free cash prize b"]
    ham += [f"lunch at noon, see you {'abcdefgh'[i % 8]}" for i in range(38)]
    spam = [f"claim the free cash prize {'abcdefgh'[i % 8]}" for i in range(20)]
    path = tmp_path / "mixed.tsv"
    rows = [f"ham\t{text}" for text in ham] + [f"spam\t{text}" for text in spam]
    path.write_text("\n".join(rows) + "\n")
    return path


def cut_off(path):
    return json.loads(path.read_text())["spam_cutoff"]


def test_the_cut_off_is_a_half_unless_asked_for(table, make_model):
    assert cut_off(make_model(table)) == 0.5


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
    sentence = found.out.splitlines()[-1]
    assert "at most 0.1 % of ham blocked" in sentence
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
    assert plain["bh_pct"] == pytest.approx(5)
    assert tight["bh_pct"] <= 2.5


@pytest.mark.parametrize(
    "share", ["100%", "1", "-1", "-0.1%", "much", "%", "", "nan", "inf", "1e9%"]
)
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
        assert row["verdict"] == ("spam" if row["probability"] > bound else "ham")
    explained = nbspam("explain", "-m", path, "--format", "json", f"{mixed}:1").out
    assert json.loads(explained)["verdict"] == found[0]["verdict"] == "ham"
    evaluated = json.loads(nbspam("eval", "-m", path, "--format", "json", mixed).out)
    assert evaluated["threshold"] == bound
    assert evaluated["fp"] == sum(row["verdict"] == "spam" for row in found[:40])


def test_a_cut_off_that_is_asked_for_goes_before_the_models(nbspam, mixed, make_model):
    path = make_model(mixed, "--max-ham-blocked", "0")
    rows = nbspam("classify", "-m", path, "--format", "json", "--spam-cutoff", "0.5", mixed)
    for row in map(json.loads, rows.out.splitlines()):
        assert row["verdict"] == ("spam" if row["probability"] > 0.5 else "ham")
