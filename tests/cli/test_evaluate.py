import csv
import io
import json
import re
import sys

import pytest
from many_cases import in_turn

PROMISED = (
    "messages spam ham threshold accuracy mcc sc_pct bh_pct sm_pct hm_pct lam_pct"
    " one_minus_roca_pct sm_pct_at_hm_0_1 log_loss brier tp fp fn tn"
    " verdict_bh_pct verdict_sm_pct unsure_pct spam_cutoff ham_cutoff verdicts"
).split()
WITH_INTERVAL = (
    "accuracy mcc sc_pct bh_pct sm_pct hm_pct lam_pct one_minus_roca_pct sm_pct_at_hm_0_1"
    " log_loss brier verdict_bh_pct verdict_sm_pct unsure_pct"
).split()


def evaluated(nbspam, *arguments):
    found = nbspam("eval", "--format", "json", *arguments)
    assert (found.code, found.err) == (0, "")
    return json.loads(found.out)


def test_json_has_the_promised_fields(nbspam, table):
    found = evaluated(nbspam, "--folds", "3", table)
    assert set(PROMISED) <= found.keys()
    for name in WITH_INTERVAL:
        low, high = found[f"{name}_ci"]
        assert low <= high
    assert [found[n] for n in ("messages", "spam", "ham")] == [30, 12, 18]
    assert found["tp"] + found["fn"] == 12
    assert found["fp"] + found["tn"] == 18


def test_evaluate_is_eval(nbspam, table):
    short = nbspam("eval", "--folds", "3", table)
    long = nbspam("evaluate", "--folds", "3", table)
    assert short == long
    assert short.code == 0


def test_text_names_the_protocol_and_the_figures(nbspam, table):
    found = nbspam("eval", "--folds", "3", table)
    assert found.code == 0
    assert found.out.startswith("3 folds: 30 messages")
    for name in ("accuracy", "MCC", "lam%", "1-ROCA%", "95 % interval", "called spam"):
        assert name in found.out
    assert "\x1b" not in found.out


@in_turn("first, tested", [("20", 10), ("50%", 15), ("33.4%", 20)])
def test_train_first_tests_the_rest(nbspam, table, first, tested):
    found = evaluated(nbspam, "--train-first", first, table)
    assert tested == found["messages"]


def test_the_saved_model_is_tested_without_a_protocol(nbspam, table, model):
    before = model.read_bytes()
    found = evaluated(nbspam, "--including-learned", "-m", model, table)
    assert found["messages"] == 30
    assert found["protocol"] == "saved model"
    assert before == model.read_bytes()


def test_the_figures_of_a_saved_model_are_those_of_classify(nbspam, table, model):
    found = evaluated(nbspam, "--including-learned", "-m", model, table)
    lines = nbspam("classify", "-m", model, table).out.splitlines()
    labels = [row.split("\t")[0] for row in table.read_text().splitlines()]
    verdicts = [line.split("\t")[0] for line in lines]
    for label in ("ham", "spam"):
        for verdict, n in found["verdicts"][label].items():
            assert n == list(zip(labels, verdicts, strict=True)).count((label, verdict))
    probabilities = [float(line.split("\t")[1]) for line in lines]
    pairs = zip(labels, probabilities, strict=True)
    right = sum((label == "spam") == (p > 0.5) for label, p in pairs)
    assert found["accuracy"] == pytest.approx(right / 30)


def test_a_protocol_writes_no_model(nbspam, table, tmp_path, monkeypatch):
    path = tmp_path / "none.json"
    monkeypatch.setenv("NBSPAM_MODEL", str(path))
    evaluated(nbspam, "--folds", "2", table)
    assert not path.exists()


def test_predictions_have_an_object_for_each_message(nbspam, table, tmp_path):
    path = tmp_path / "predictions.jsonl"
    found = evaluated(nbspam, "--folds", "3", table, "--predictions", path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [f"{table}:{n}" for n in range(1, 31)] == [row["source"] for row in rows]
    assert all(
        row.keys() == {"source", "label", "verdict", "probability", "log_odds", "message"}
        for row in rows
    )
    right = sum((row["label"] == "spam") == (row["probability"] > 0.5) for row in rows)
    assert found["accuracy"] == pytest.approx(right / 30)
    for label, n in (("ham", 18), ("spam", 12)):
        counts = dict.fromkeys(("ham", "spam", "unsure"), 0)
        for row in rows:
            counts[row["verdict"]] += row["label"] == label
        assert found["verdicts"][label] == counts
        assert sum(counts.values()) == n


def test_predictions_of_a_saved_model_are_what_classify_prints(nbspam, table, model, tmp_path):
    path = tmp_path / "predictions.jsonl"
    evaluated(nbspam, "--including-learned", "-m", model, table, "--predictions", path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    labels = [row.pop("label") for row in rows]
    texts = [row.pop("message")["text"] for row in rows]
    assert texts == [line.split("\t")[1] for line in table.read_text().splitlines()]
    lines = nbspam("classify", "-m", model, "--format", "json", table).out.splitlines()
    assert list(map(json.loads, lines)) == rows
    assert labels[:4] == ["spam", "ham", "spam", "ham"]


@in_turn(
    "option, name", [("--predictions", "a.jsonl"), ("--plot", "a.png"), ("--report", "a.html")]
)
def test_a_file_in_a_missing_folder_is_an_error(
    nbspam, table, tmp_path, assert_sentence, option, name
):
    path = tmp_path / "none" / name
    assert_sentence(nbspam("eval", "--folds", "3", table, option, path), path.parent)


def test_three_classes(nbspam, three_classes, tmp_path):
    path = tmp_path / "predictions.jsonl"
    found = evaluated(nbspam, "--folds", "4", three_classes, "--predictions", path)
    assert found["classes"] == ["ham", "promo", "spam"]
    assert found["accuracy"] > 0.9
    assert found["spam"] == 8
    row = json.loads(path.read_text().splitlines()[0])
    assert row["probabilities"].keys() == {"ham", "promo", "spam"}
    assert nbspam("eval", "--folds", "4", three_classes).code == 0
    found = evaluated(nbspam, "--online", "--batch", "6", three_classes)
    assert (found["messages"], found["classes"]) == (18, ["ham", "promo", "spam"])


def test_three_classes_of_which_none_is_spam(nbspam, three_classes):
    three_classes.write_text(three_classes.read_text().replace("spam\t", "junk\t"))
    found = evaluated(nbspam, "--folds", "4", three_classes)
    assert found["accuracy"] > 0.9
    assert found["mcc"] is None
    assert nbspam("eval", "--folds", "4", three_classes).code == 0


def test_spam_label_names_the_class(nbspam, table):
    table.write_text(table.read_text().replace("spam\t", "junk\t"))
    found = evaluated(nbspam, "--folds", "3", table, "--spam-label", "junk")
    assert found["spam"] == 12


def test_cut_offs_change_the_verdicts_and_not_the_errors_at_a_half(nbspam, table):
    options = ("--spam-cutoff", "1", "--ham-cutoff", "0")
    plain = evaluated(nbspam, "--folds", "3", table)
    found = evaluated(nbspam, "--folds", "3", table, *options)
    assert found["unsure"] == 30
    figures = found["verdict_bh_pct"], found["verdict_sm_pct"], found["unsure_pct"]
    assert figures == (0, 100, 100)
    assert (found["spam_cutoff"], found["ham_cutoff"]) == (1, 0)
    of_verdicts = {key for key in found if key.startswith(("verdict", "unsure"))}
    of_verdicts |= {"spam_cutoff", "ham_cutoff"}
    for key in plain.keys() - of_verdicts:
        assert plain[key] == found[key]
    assert plain["threshold"] == 0.5
    assert plain["sc_pct"] > 0


def test_at_a_half_the_verdicts_are_what_errors_are_counted_of(nbspam, table):
    for protocol in (("--folds", "3"), ("--train-first", "50%"), ("--online", "--batch", "10")):
        found = evaluated(nbspam, *protocol, table, "--ham-cost", "1")
        assert found["verdict_bh_pct"] == found["bh_pct"]
        assert found["verdict_sm_pct"] == found["sm_pct"]
        assert found["unsure"] == found["unsure_pct"] == 0
        assert found["verdicts"] == found["confusion"]


def test_ham_cost_sets_both_cut_offs(nbspam, table):
    found = evaluated(nbspam, "--folds", "3", table, "--ham-cost", "9")
    assert found["spam_cutoff"] == found["ham_cutoff"] == pytest.approx(0.9)


def test_the_models_cut_offs_are_tried_unless_others_are_given(nbspam, table, make_model):
    path = make_model(table, "--spam-cutoff", "0.75", "--ham-cutoff", "0.25")
    own = evaluated(nbspam, "--including-learned", "-m", path, table)
    assert (own["spam_cutoff"], own["ham_cutoff"]) == (0.75, 0.25)
    found = evaluated(nbspam, "--including-learned", "-m", path, table, "--spam-cutoff", "0.99")
    assert (found["spam_cutoff"], found["ham_cutoff"]) == (0.99, 0.25)
    found = evaluated(nbspam, "--folds", "3", table)
    assert (found["spam_cutoff"], found["ham_cutoff"]) == (0.9, 0.5)


def test_the_text_says_what_the_verdicts_do(nbspam, table):
    found = nbspam("eval", "--folds", "3", table, "--ham-cutoff", "0.25").out
    row = r"%  +\d+\.\d+  +\d+\.\d+ – \d+\.\d+  "
    assert re.search(
        r"^verdicts: spam above 0\.9, ham up to 0\.25\n"
        rf"blocked{row}ham blocked, \d+ of 18 ham *\n"
        rf"missed{row}spam missed, \d+ of 12 spam *\n"
        rf"unsure{row}unsure, \d+ of 30 messages",
        found,
        re.M,
    )


def test_a_cut_off_is_checked_against_that_of_the_model(nbspam, table, make_model):
    path = make_model(table, "--spam-cutoff", "0.99")
    found = evaluated(nbspam, "--including-learned", "-m", path, table, "--ham-cutoff", "0.95")
    assert (found["spam_cutoff"], found["ham_cutoff"]) == (0.99, 0.95)


def test_a_limit_on_blocked_ham_chooses_the_cut_off_that_train_would(nbspam, table, make_model):
    lines = table.read_text().splitlines(keepends=True)
    first = table.with_name("first.tsv")
    first.write_text("".join(lines[:-6]))
    n = len(lines) - 6 - (not table.read_text().startswith(("ham\t", "spam\t")))
    limit = ("--max-ham-blocked", "0")
    found = evaluated(nbspam, "--train-first", str(n), table, *limit)
    trained = json.loads(make_model(first, *limit, name="first.json").read_text())
    assert found["spam_cutoff"] == trained["spam_cutoff"]
    assert found["ham_cutoff"] == trained["ham_cutoff"]
    assert "spam_cutoff" in trained


# What makes no sense, typed with words between blanks, and parts of the sentence between bars.
SENSELESS = {
    "--max-ham-blocked 1%": "--max-ham-blocked|--train-first",
    "--folds 3 --max-ham-blocked 1%": "--max-ham-blocked|--train-first",
    "--online --max-ham-blocked 1%": "--max-ham-blocked|--train-first",
    "--train-first 50% --max-ham-blocked x": "--max-ham-blocked|0.1%",
    "--train-first 50% --max-ham-blocked 1% --ham-cost 9": "--max-ham-blocked|leave out",
    "--folds 3 --spam-cutoff 2": "between 0 and 1, not 2",
    "--folds 3 --ham-cutoff 0.95": "above the spam cut-off",
    "--folds 3 --ham-cost -1": "the ham cost must be above 0",
    "-m model.json --spam-cutoff 2": "between 0 and 1, not 2",
    "-m model.json --ham-cutoff 0.95": "above the spam cut-off",
    "-m model.json --ham-cost -1": "the ham cost must be above 0",
    "-m model.json --alpha 1": "--alpha",
    "-m model.json --prior 0.5": "--prior",
    "-m model.json --scoring sum": "--scoring|--online",
    "--folds 2 --train-first 5": "--folds|--train-first",
    "--online --folds 2": "--online|--folds",
    "--online --train-first 5": "--online|--train-first",
    "--batch 5": "--batch|--online",
    "--folds 2 --batch 5": "--batch|--online",
    "--online --batch=0": "a batch of 0 is |at least 1",
    "--online --batch=-1": "a batch of -1 is |at least 1",
    "--online --batch=30": "a batch of 30 is |at least 1",
    "--online --batch=1000": "a batch of 1000 is |at least 1",
    "--folds 3 -m model.json": "--folds trains models of its own|model.json|leave out --model",
    "--online -m model.json": "--online trains models of its own|model.json|leave out --model",
    "--compare bernoulli -m model.json": "--compare trains models of its own|leave out --model",
    "--folds 3 --including-learned": "--including-learned|--folds",
    "--online --including-learned": "--including-learned|--online",
    "--compare bernoulli --including-learned": "--including-learned|--compare",
    "--folds 3 --predictions - --format json": "--predictions -|--format json|name a file",
    "--folds 3 --predictions - --format csv": "--predictions -|--format csv|name a file",
    "--folds 3 --predictions p.txt": "p.txt|name a file that ends in .csv",
    "--folds 3 --plot a.pdf": "a.pdf|a plot is a PNG|.png or .svg",
}


@in_turn("options, parts", SENSELESS.items())
def test_what_makes_no_sense_is_refused(
    nbspam, table, model, assert_sentence, monkeypatch, options, parts
):
    monkeypatch.chdir(model.parent)
    found = nbspam("eval", *options.split(), table)
    assert_sentence(found, *parts.split("|"), code=2)
    if any(name in options for name in ("--plot", "p.txt")):  # before anything is read
        assert_sentence(nbspam("eval", *options.split(), "none.tsv"), *parts.split("|"), code=2)


def test_three_classes_have_no_cut_offs(nbspam, three_classes, make_model, assert_sentence):
    model = make_model(three_classes)
    for how in (("--folds", "4"), ("--online", "--batch", "6"), ("-m", model)):
        found = nbspam("eval", *how, three_classes, "--spam-cutoff", "0.9")
        assert_sentence(found, "3 classes", "leave out the cut-offs", code=2)
    found = evaluated(nbspam, "--folds", "4", three_classes)
    assert (found["spam_cutoff"], found["ham_cutoff"]) == (None, None)
    assert found["verdicts"] == found["confusion"]


def test_the_worst_mistakes_are_shown_with_their_words(nbspam, table):
    lines = table.read_text().splitlines()
    lines[0] = lines[0].replace("spam\t", "ham\t")
    table.write_text("\n".join(lines) + "\n")
    found = evaluated(nbspam, "--folds", "3", table, "--errors", "2")
    worst = found["errors"][0]
    assert (worst["source"], worst["label"], worst["verdict"]) == (f"{table}:1", "ham", "spam")
    assert worst["words"]
    text = nbspam("eval", "--folds", "3", table, "--errors", "2").out
    assert f"{table}:1: ham called spam" in text


def test_a_label_that_the_model_does_not_know_is_an_error(
    nbspam, three_classes, model, assert_sentence
):
    found = nbspam("eval", "-m", model, three_classes)
    assert_sentence(found, f"{three_classes}:2", "'promo'", "--spam-label", "--label-column")


def test_spam_alone_has_the_figures_of_spam(nbspam, model, tmp_path):
    (tmp_path / "spam.txt").write_text("win a free prize now\nfree cash prize\n")
    found = evaluated(nbspam, "-m", model, "--lines", "--spam", tmp_path / "spam.txt")
    assert found["sc_pct"] == 100
    assert found["bh_pct"] is None
    assert found["mcc"] is None
    text = nbspam("eval", "-m", model, "--lines", "--spam", tmp_path / "spam.txt")
    assert text.code == 0


def test_class_names_that_look_like_markup_are_printed(nbspam, table):
    table.write_text(table.read_text().replace("ham\t", "[/b]\t"))
    found = nbspam("eval", "--folds", "3", table, "--errors", "2")
    assert found.code == 0
    assert "[/b]" in found.out


# Scoring


def test_scorings_are_evaluated(nbspam, table):
    one = evaluated(nbspam, "--folds", "3", table)
    assert one == evaluated(nbspam, "--folds", "3", table, "--scoring", "evidence")
    assert one != evaluated(nbspam, "--folds", "3", table, "--scoring", "sum")


# Online


def test_online_counts_all_but_the_first_message(nbspam, table):
    found = evaluated(nbspam, "--online", table)
    assert found["messages"] == 29
    assert found["protocol"].startswith("online")
    assert found == evaluated(nbspam, "--online", "--batch", "1", table)


def test_online_in_batches(nbspam, table, tmp_path):
    path = tmp_path / "predictions.jsonl"
    found = evaluated(nbspam, "--online", "--batch", "8", table, "--predictions", path)
    assert found["messages"] == 22
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["source"] for row in rows] == [f"{table}:{n}" for n in range(9, 31)]
    assert found["accuracy"] > 0.8


def test_online_writes_no_model(nbspam, table, tmp_path, monkeypatch):
    path = tmp_path / "none.json"
    monkeypatch.setenv("NBSPAM_MODEL", str(path))
    assert nbspam("eval", "--online", table).code == 0
    assert not path.exists()


# Calibration and pictures


def test_json_has_the_calibration(nbspam, table):
    found = evaluated(nbspam, "--folds", "3", table)
    assert sum(b["messages"] for b in found["calibration"]) == 30
    assert 0 <= found["calibration_error"] <= 1


def test_the_text_has_the_calibration_and_how_the_scores_lie(nbspam, table):
    found = nbspam("eval", "--folds", "3", table)
    assert "calibration error" in found.out
    assert "log-odds" in found.out


@pytest.mark.few(1)
@pytest.mark.parametrize("name, magic", [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_plot_draws_a_picture(nbspam, table, tmp_path, name, magic):
    found = nbspam("eval", "--folds", "3", table, "--plot", tmp_path / name)
    assert (found.code, found.err) == (0, "")
    assert (tmp_path / name).read_bytes().startswith(magic)
    assert found.out == nbspam("eval", "--folds", "3", table).out


def test_plot_without_matplotlib_says_how_to_get_it(
    nbspam, table, tmp_path, assert_sentence, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = nbspam("eval", "--folds", "3", table, "--plot", tmp_path / "a.png")
    assert_sentence(
        found, tmp_path / "a.png", f"{sys.executable} -m pip install matplotlib", code=2
    )


def test_plot_of_classes_without_spam_is_refused(nbspam, three_classes, tmp_path, assert_sentence):
    three_classes.write_text(three_classes.read_text().replace("spam\t", "junk\t"))
    found = nbspam("eval", "--folds", "2", three_classes, "--plot", tmp_path / "a.png")
    assert_sentence(found, tmp_path / "a.png", "a plot needs", "--spam-label", code=2)
    assert not (tmp_path / "a.png").exists()


# What the model has learned


@pytest.fixture
def later(table, tmp_path):
    """Return a table of 4 messages of the first table and 3 new ones."""
    path = tmp_path / "later.tsv"
    known = table.read_text().splitlines(keepends=True)[:4]
    new = "spam\tclaim a prize for free\nham\tthe notes of today\nham\tare you at lunch\n"
    path.write_text("".join(known) + new)
    return path


def test_what_was_learned_is_left_out_and_told(nbspam, model, later):
    found = evaluated(nbspam, "-m", model, later)
    assert found["messages"] == 3
    assert (found["learned"], found["learned_left_out"], found["not_in_ledger"]) == (4, 4, 0)
    text = nbspam("eval", "-m", model, later).sentences
    assert text.startswith("saved model: 3 messages (ham: 2, spam: 1)\n")
    assert (
        "\n4 of 7 messages were learned by this model and are left out; add --including-learned to"
        " test on them\n"
    ) in text


def test_what_was_learned_is_tested_on_if_that_is_asked_for(nbspam, model, later):
    found = evaluated(nbspam, "-m", model, later, "--including-learned")
    assert (found["messages"], found["learned"], found["learned_left_out"]) == (7, 4, 0)
    text = nbspam("eval", "-m", model, later, "--including-learned").sentences
    assert "4 of 7 messages were learned by this model, which flatters the figures" in text


def test_if_all_was_learned_there_is_nothing_to_test_on(nbspam, model, table, assert_sentence):
    found = nbspam("eval", "-m", model, table)
    assert_sentence(
        found, f"{model}: all 30 messages were learned", "--leave-one-out", "--including-learned"
    )


def test_new_messages_alone_need_no_note(nbspam, model, later):
    later.write_text("".join(later.read_text().splitlines(keepends=True)[4:]))
    assert evaluated(nbspam, "-m", model, later)["learned"] == 0
    assert "learned" not in nbspam("eval", "-m", model, later).out


def test_a_model_without_a_ledger_cannot_know(nbspam, make_model, table, later):
    model = make_model(table, "--no-ledger", name="forgetful.json")
    found = evaluated(nbspam, "-m", model, later)
    assert (found["messages"], found["learned"], found["not_in_ledger"]) == (7, None, 30)
    text = nbspam("eval", "-m", model, later).sentences
    assert f"{model} does not remember which messages it learned" in text


def test_a_ledger_of_some_messages_knows_those(nbspam, make_model, table, later, tmp_path):
    model = make_model(table, "--no-ledger", name="forgetful.json")
    more = tmp_path / "more.tsv"
    more.write_text(later.read_text().splitlines(keepends=True)[4])
    assert nbspam("train", "--update", "-m", model, more).code == 0
    found = evaluated(nbspam, "-m", model, later)
    assert (found["messages"], found["learned"], found["not_in_ledger"]) == (6, 1, 30)
    text = nbspam("eval", "-m", model, later).sentences
    assert "1 of 7 messages was learned by this model and is left out" in text
    assert "does not remember 30 messages that it learned; whether some are among these" in text


@in_turn("way", [("--folds", "3"), ("--online",), ("--compare", "bernoulli")])
def test_a_model_of_the_environment_is_no_hindrance_to_a_test_that_trains(
    nbspam, table, model, monkeypatch, way
):
    monkeypatch.setenv("NBSPAM_MODEL", str(model))
    assert nbspam("eval", *way, table).code == 0


# Predictions in other formats, CSV, seeds, duplicates


def test_predictions_go_to_standard_output_and_the_report_beside_it(nbspam, table, tmp_path):
    found = nbspam("eval", "--folds", "3", table, "--predictions", "-")
    rows = [json.loads(line) for line in found.out.splitlines()]
    assert [row["source"] for row in rows] == [f"{table}:{n}" for n in range(1, 31)]
    assert found.err == nbspam("eval", "--folds", "3", table).out
    quiet = nbspam("eval", "--folds", "3", table, "--predictions", "-", "-q")
    assert (quiet.out, quiet.err) == (found.out, "")
    assert not (tmp_path / "-").exists()


def test_predictions_are_written_as_their_file_ends(nbspam, table, tmp_path):
    path = tmp_path / "predictions.csv"
    assert nbspam("eval", "--folds", "3", table, "--predictions", path).code == 0
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    head = "source label verdict probability log_odds reason subject from text"
    assert list(rows[0]) == head.split()
    assert len(rows) == 30
    assert all(row["text"] for row in rows)


def test_csv_has_the_numbers_of_json(nbspam, table):
    as_json = evaluated(nbspam, "--folds", "3", table)
    found = nbspam("eval", "--folds", "3", table, "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(found.out))
    for key, value in as_json.items():
        if key.endswith("_ci"):
            low, high = value
            assert (row[f"{key}_low"], row[f"{key}_high"]) == (str(low), str(high))
        elif not isinstance(value, list | dict):
            assert row[key] == ("" if value is None else str(value))


def test_a_seed_shuffles_the_folds_and_is_told(nbspam, table):
    plain = evaluated(nbspam, "--folds", "3", table)
    assert (plain["seed"], plain["protocol"]) == (0, "3 folds")
    one, again, other = (
        evaluated(nbspam, "--folds", "3", "--seed", seed, table) for seed in ("5", "5", "6")
    )
    assert one == again
    assert (one["seed"], one["protocol"]) == (5, "3 folds, shuffled with seed 5")
    assert one["log_loss"] != other["log_loss"]
    assert one["log_loss"] != plain["log_loss"]


def test_a_seed_leaves_a_test_without_chance_as_it_is_but_for_the_intervals(nbspam, sample):
    rows = sample / "sms.tsv"
    one, other = (evaluated(nbspam, "--leave-one-out", rows, "--seed", n) for n in ("0", "9"))
    assert one["auc"] == other["auc"]
    assert one["auc_ci"] != other["auc_ci"]
    assert one["accuracy_ci"] == other["accuracy_ci"]


def test_messages_that_are_trained_on_and_tested_on_are_told(nbspam, table):
    assert evaluated(nbspam, "--train-first", "20", table)["duplicates"] == 0
    assert evaluated(nbspam, "--leave-one-out", table)["duplicates"] == 6
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join([*lines, lines[0], lines[1]]))
    assert evaluated(nbspam, "--train-first", "20", table)["duplicates"] == 2
    text = nbspam("eval", "--train-first", "20", table).out
    assert "\n2 of 12 messages tested are the same as one trained on, which flatters" in text
    assert evaluated(nbspam, "--leave-one-out", table)["duplicates"] == 10
