import csv
import json
import re

import pytest
from harmless_pages import assert_harmless
from one_case import each

from nbspam import __version__

pytestmark = pytest.mark.usefixtures("few_resamples")
FOLDS = ("eval", "--folds", "3")
OF_INTERVALS = (
    "accuracy mcc sc_pct bh_pct sm_pct hm_pct lam_pct one_minus_roca_pct sm_pct_at_hm_0_1"
    " log_loss brier verdict_bh_pct verdict_sm_pct unsure_pct"
).split()
PROMISED = {
    *OF_INTERVALS,
    *"messages spam ham threshold tp fp fn tn spam_cutoff ham_cutoff verdicts".split(),
}


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def rename(table, old, new):
    table.write_text(table.read_text().replace(f"{old}\t", f"{new}\t"))


def test_the_figures_are_printed_as_json_and_text_in_short_and_in_full(nbspam, as_json, table):
    figures = as_json(*FOLDS, table)
    assert figures.keys() >= PROMISED
    for name in OF_INTERVALS:
        low, high = figures[f"{name}_ci"]
        assert low <= high
    assert [figures[n] for n in ("messages", "spam", "ham", "threshold")] == [30, 12, 18, 0.5]
    assert (figures["tp"] + figures["fn"], figures["fp"] + figures["tn"]) == (12, 18)
    assert figures["sc_pct"] > 0
    assert sum(b["messages"] for b in figures["calibration"]) == 30
    assert 0 <= figures["calibration_error"] <= 1
    text = nbspam(*FOLDS, table)
    assert text == nbspam("evaluate", "--folds", "3", table)
    assert text.out.startswith("3 folds: 30 messages")
    assert text.out.count("\n") <= 25
    for name in ("blocked%", "missed%", "unsure%", "errors", "precision", "recall", "1-ROCA%"):
        assert f"\n{name} " in text.out
    assert "log-odds" not in text.out
    assert text.out.splitlines()[-1].startswith("--full prints")
    text = nbspam(*FOLDS, table, "--full")
    for part in (
        *("accuracy", "MCC", "lam%", "1-ROCA%", "95 % interval", "called spam"),
        *("calibration error", "log-odds"),
    ):
        assert part in text.out
    assert "\x1b" not in text.out
    text = nbspam(*FOLDS, table, "--full", "--ham-cutoff", "0.25").out
    row = r"%  +\d+\.\d+  +\d+\.\d+ – \d+\.\d+  "
    assert re.search(
        r"^verdicts: spam above 0\.9, ham up to 0\.25\n"
        rf"blocked{row}ham blocked, \d+ of 18 ham *\n"
        rf"missed{row}spam missed, \d+ of 12 spam *\n"
        rf"unsure{row}unsure, \d+ of 30 messages",
        text,
        re.M,
    )


@each("first, tested", [("20", 10), ("50%", 15), ("33.4%", 20)])
def test_train_first_tests_the_rest(as_json, table, first, tested):
    assert as_json("eval", "--train-first", first, table)["messages"] == tested


def test_a_saved_model_is_tested_by_what_classify_says(nbspam, as_json, table, model, tmp_path):
    before, path = model.read_bytes(), tmp_path / "predictions.jsonl"
    options = ("--including-learned", "-m", model, table)
    found = as_json("eval", *options, "--predictions", path)
    assert (found["messages"], found["protocol"]) == (30, "saved model")
    assert model.read_bytes() == before
    predicted = rows_of(path)
    labels = [row.pop("label") for row in predicted]
    texts = [row.pop("message")["text"] for row in predicted]
    assert list(zip(labels, texts, strict=True)) == [
        tuple(line.split("\t")) for line in table.read_text().splitlines()
    ]
    classified = nbspam("classify", "-m", model, "--format", "json", table).out.splitlines()
    assert list(map(json.loads, classified)) == predicted
    for label in ("ham", "spam"):
        verdicts = [p["verdict"] for p, of in zip(predicted, labels, strict=True) if of == label]
        assert all(n == verdicts.count(name) for name, n in found["verdicts"][label].items())
    pairs = zip(labels, predicted, strict=True)
    right = sum((label == "spam") == (p["probability"] > 0.5) for label, p in pairs)
    assert found["accuracy"] == pytest.approx(right / 30)


@each("way", ["--folds 2", "--online --batch 9", "--compare bernoulli"])
@each("there", [True, False])
def test_a_test_that_trains_neither_writes_nor_minds_the_model_of_the_environment(
    as_json, table, model, monkeypatch, way, there
):
    path = model if there else model.with_name("none.json")
    monkeypatch.setenv("NBSPAM_MODEL", str(path))
    as_json("eval", *way.split(), table)
    assert path.exists() == there


def test_predictions_are_written_as_their_file_ends(nbspam, as_json, table, tmp_path):
    path = tmp_path / "predictions.jsonl"
    found = as_json(*FOLDS, table, "--predictions", path)
    rows = rows_of(path)
    assert [f"{table}:{n}" for n in range(1, 31)] == [row["source"] for row in rows]
    keys = {"source", "label", "verdict", "probability", "log_odds", "message"}
    assert all(row.keys() == keys for row in rows)
    right = sum((row["label"] == "spam") == (row["probability"] > 0.5) for row in rows)
    assert found["accuracy"] == pytest.approx(right / 30)
    for label, n in (("ham", 18), ("spam", 12)):
        verdicts = [row["verdict"] for row in rows if row["label"] == label]
        assert found["verdicts"][label] == {v: verdicts.count(v) for v in ("ham", "spam", "unsure")}
        assert len(verdicts) == n
    path = tmp_path / "predictions.csv"
    assert nbspam(*FOLDS, table, "--predictions", path).code == 0
    with path.open(encoding="utf-8", newline="") as file:
        table_rows = list(csv.DictReader(file))
    head = "source label verdict probability log_odds reason subject from text"
    assert list(table_rows[0]) == head.split()
    assert len(table_rows) == 30
    assert all(row["text"] for row in table_rows)
    found = nbspam(*FOLDS, table, "--predictions", "-")
    assert list(map(json.loads, found.out.splitlines())) == rows
    assert found.err == nbspam(*FOLDS, table).out  # the report is beside it
    quiet = nbspam(*FOLDS, table, "--predictions", "-", "-q")
    assert (quiet.out, quiet.err) == (found.out, "")
    assert not (tmp_path / "-").exists()


def test_three_classes(nbspam, as_json, three_classes, tmp_path):
    path = tmp_path / "predictions.jsonl"
    found = as_json("eval", "--folds", "4", three_classes, "--predictions", path)
    assert (found["classes"], found["spam"]) == (["ham", "promo", "spam"], 8)
    assert found["accuracy"] > 0.9
    assert (found["spam_cutoff"], found["ham_cutoff"]) == (None, None)
    assert found["verdicts"] == found["confusion"]
    assert rows_of(path)[0]["probabilities"].keys() == {"ham", "promo", "spam"}
    assert nbspam("eval", "--folds", "4", three_classes).code == 0
    found = as_json("eval", "--online", "--batch", "6", three_classes)
    assert (found["messages"], found["classes"]) == (18, ["ham", "promo", "spam"])


def test_three_classes_of_which_none_is_spam(nbspam, as_json, three_classes, assert_sentence):
    rename(three_classes, "spam", "junk")
    found = as_json("eval", "--folds", "4", three_classes)
    assert found["accuracy"] > 0.9
    assert found["mcc"] is None
    assert nbspam("eval", "--folds", "4", three_classes).code == 0
    plot = three_classes.with_name("a.svg")
    found = nbspam("eval", "--folds", "2", three_classes, "--plot", plot)
    assert_sentence(found, plot, "a plot needs", "--spam-label", code=2)
    assert not plot.exists()


def test_spam_alone_has_the_figures_of_spam(nbspam, as_json, model, tmp_path):
    (tmp_path / "spam.txt").write_text("win a free prize now\nfree cash prize\n")
    options = ("-m", model, "--lines", "--spam", tmp_path / "spam.txt")
    found = as_json("eval", *options)
    assert [found[key] for key in ("sc_pct", "bh_pct", "mcc")] == [100, None, None]
    assert nbspam("eval", *options).code == 0


def test_classes_of_other_names(nbspam, as_json, table):
    rename(table, "spam", "junk")
    assert as_json(*FOLDS, table, "--spam-label", "junk")["spam"] == 12
    rename(table, "junk", "spam")
    rename(table, "ham", "[/b]")  # which looks like markup
    found = nbspam(*FOLDS, table, "--errors", "2")
    assert (found.code, "[/b]" in found.out) == (0, True)


def test_cut_offs_change_the_verdicts_and_not_the_errors_at_a_half(as_json, table):
    plain = as_json(*FOLDS, table)
    assert (plain["spam_cutoff"], plain["ham_cutoff"]) == (0.9, 0.5)
    found = as_json(*FOLDS, table, "--spam-cutoff", "1", "--ham-cutoff", "0")
    assert found["unsure"] == 30
    figures = found["verdict_bh_pct"], found["verdict_sm_pct"], found["unsure_pct"]
    assert figures == (0, 100, 100)
    assert (found["spam_cutoff"], found["ham_cutoff"]) == (1, 0)
    for key in plain.keys() - {"spam_cutoff", "ham_cutoff"}:
        assert key.startswith(("verdict", "unsure")) or plain[key] == found[key]
    found = as_json(*FOLDS, table, "--ham-cost", "9")
    assert found["spam_cutoff"] == found["ham_cutoff"] == pytest.approx(0.9)


@each("way", [("--folds", "3"), ("--train-first", "50%"), ("--online", "--batch", "10")])
def test_at_a_half_the_verdicts_are_what_errors_are_counted_of(as_json, table, way):
    found = as_json("eval", *way, table, "--ham-cost", "1")
    assert found["verdict_bh_pct"] == found["bh_pct"]
    assert found["verdict_sm_pct"] == found["sm_pct"]
    assert found["unsure"] == found["unsure_pct"] == 0
    assert found["verdicts"] == found["confusion"]


def test_the_models_cut_offs_are_tried_unless_others_are_given(as_json, table, make_model):
    path = make_model(table, "--spam-cutoff", "0.99", "--ham-cutoff", "0.25")
    for options, cut_offs in (
        ((), (0.99, 0.25)),
        (("--spam-cutoff", "0.75"), (0.75, 0.25)),
        (("--ham-cutoff", "0.95"), (0.99, 0.95)),  # which is above the default of spam's
    ):
        found = as_json("eval", "--including-learned", "-m", path, table, *options)
        assert (found["spam_cutoff"], found["ham_cutoff"]) == cut_offs


def test_a_limit_on_blocked_ham_chooses_the_cut_off_that_train_would(as_json, table, make_model):
    first = table.with_name("first.tsv")
    first.write_text("".join(table.read_text().splitlines(keepends=True)[:24]))
    limit = ("--max-ham-blocked", "0")
    found = as_json("eval", "--train-first", "24", table, *limit)
    trained = json.loads(make_model(first, *limit, name="first.json").read_text())
    for key in ("spam_cutoff", "ham_cutoff"):
        assert found[key] == trained[key]


def test_the_worst_mistakes_are_shown_with_their_words(nbspam, as_json, table):
    table.write_text(table.read_text().replace("spam\t", "ham\t", 1))
    worst = as_json(*FOLDS, table, "--errors", "2")["errors"][0]
    assert (worst["source"], worst["label"], worst["verdict"]) == (f"{table}:1", "ham", "spam")
    assert worst["words"]
    assert f"{table}:1: ham called spam" in nbspam(*FOLDS, table, "--errors", "2").out


def test_scorings_are_evaluated(as_json, table):
    one = as_json(*FOLDS, table)
    assert one == as_json(*FOLDS, table, "--scoring", "evidence")
    assert one != as_json(*FOLDS, table, "--scoring", "sum")


def test_online_counts_all_but_the_first_batch(as_json, table, tmp_path):
    found = as_json("eval", "--online", table)
    assert (found["messages"], found["protocol"][:6]) == (29, "online")
    assert found == as_json("eval", "--online", "--batch", "1", table)
    path = tmp_path / "predictions.jsonl"
    found = as_json("eval", "--online", "--batch", "8", table, "--predictions", path)
    assert found["messages"] == 22
    assert [row["source"] for row in rows_of(path)] == [f"{table}:{n}" for n in range(9, 31)]
    assert found["accuracy"] > 0.8


@each("way", [("--folds", "3"), ("--compare", "bernoulli")])
def test_plot_draws_a_picture(nbspam, table, tmp_path, way):
    found = nbspam("eval", *way, table, "--plot", tmp_path / "a.svg")
    assert (found.code, found.err) == (0, "")
    assert (tmp_path / "a.svg").read_text().startswith("<svg ")
    found = nbspam("eval", *way, table, "--full", "--plot", tmp_path / "a.png")
    assert found.code == 2


# What the model has learned


@pytest.fixture
def later(table, tmp_path):
    """Return a table of 4 messages of the first table and 3 new ones."""
    path = tmp_path / "later.tsv"
    known = table.read_text().splitlines(keepends=True)[:4]
    new = "spam\tclaim a prize for free\nham\tthe notes of today\nham\tare you at lunch\n"
    path.write_text("".join(known) + new)
    return path


def learned(figures):
    return [figures[key] for key in ("messages", "learned", "learned_left_out", "not_in_ledger")]


@each("protocol", ["--folds 5", "--leave-one-out", "--online", "--train-first 50%"])
def test_the_short_report_is_one_screen(nbspam, sample, protocol):
    found = nbspam("eval", *protocol.split(), sample / "sms.tsv")
    assert (found.code, len(found.out.splitlines()) <= 25) == (0, True)


def test_what_was_learned_is_left_out_unless_asked_for_and_told(nbspam, as_json, model, later):
    assert learned(as_json("eval", "-m", model, later)) == [3, 4, 4, 0]
    text = nbspam("eval", "-m", model, later).sentences
    assert text.startswith("saved model: 3 messages (ham: 2, spam: 1)\n")
    assert (
        "\nthe model has learned 4 of 7 messages, left out here; --including-learned tests on all\n"
    ) in text
    assert learned(as_json("eval", "-m", model, later, "--including-learned")) == [7, 4, 0, 0]
    text = nbspam("eval", "-m", model, later, "--including-learned").sentences
    assert "the model has learned 4 of 7 messages, so the figures are too good; leave out" in text
    later.write_text("".join(later.read_text().splitlines(keepends=True)[4:]))  # new ones alone
    assert as_json("eval", "-m", model, later)["learned"] == 0
    assert "learned" not in nbspam("eval", "-m", model, later).out


def test_a_model_knows_of_what_its_ledger_has(nbspam, as_json, make_model, table, later, tmp_path):
    model = make_model(table, "--no-ledger", name="forgetful.json")
    assert learned(as_json("eval", "-m", model, later)) == [7, None, 0, 30]
    text = nbspam("eval", "-m", model, later).sentences
    assert f"{model} does not know which messages it has learned" in text
    more = tmp_path / "more.tsv"
    more.write_text(later.read_text().splitlines(keepends=True)[4])
    assert nbspam("train", "--update", "-m", model, more).code == 0
    assert learned(as_json("eval", "-m", model, later)) == [6, 1, 1, 30]
    text = nbspam("eval", "-m", model, later).sentences
    assert "the model has learned 1 of 7 messages, left out here" in text
    assert "does not know which 30 messages it has learned, perhaps some of these" in text


# Seeds, duplicates


def test_a_seed_shuffles_the_folds_and_is_told(as_json, table):
    plain = as_json(*FOLDS, table)
    assert (plain["seed"], plain["protocol"]) == (0, "3 folds")
    one, again, other = (as_json(*FOLDS, "--seed", seed, table) for seed in ("5", "5", "6"))
    assert one == again
    assert (one["seed"], one["protocol"]) == (5, "3 folds, shuffled with seed 5")
    assert one["log_loss"] != other["log_loss"]
    assert one["log_loss"] != plain["log_loss"]


def test_a_seed_leaves_a_test_without_chance_as_it_is_but_for_the_intervals(as_json, sms):
    one, other = (as_json("eval", "--leave-one-out", sms, "--seed", n) for n in ("0", "9"))
    assert one["auc"] == other["auc"]
    assert one["auc_ci"] != other["auc_ci"]
    assert one["accuracy_ci"] == other["accuracy_ci"]


def test_messages_that_are_trained_on_and_tested_on_are_told(nbspam, as_json, table):
    first, each = ("eval", "--train-first", "20", table), ("eval", "--leave-one-out", table)
    assert [as_json(*way)["duplicates"] for way in (first, each)] == [0, 6]
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join([*lines, lines[0], lines[1]]))
    assert [as_json(*way)["duplicates"] for way in (first, each)] == [2, 10]
    text = nbspam(*first).out
    assert "\n2 of 12 messages tested also occurred in training, so the figures are" in text


# The report as a page


@pytest.fixture
def reported(nbspam, tmp_path):
    """Return a function that evaluates, and returns the page of the report."""

    def run(*arguments):
        path = tmp_path / "report.html"
        found = nbspam("eval", *arguments, "--report", path)
        assert (found.code, found.err) == (0, "")
        return assert_harmless(path.read_text(encoding="ascii"))

    return run


def test_the_page_has_figures_curves_mistakes_and_how_it_was_made(table, reported):
    with table.open("a", encoding="utf-8") as file:
        file.write("ham\twin a <b>free</b> prize now\n")
    parsed = reported("--folds", "3", table)
    for part in (
        *("3 folds: 31 messages (ham: 19, spam: 12)", "accuracy", "95 % interval", __version__),
        *("area under the curve", "win a <b>free</b> prize", "nbspam eval --folds 3"),
    ):
        assert part in parsed.text
    assert parsed.found.count("figure") == 4
    assert "Strongest words" not in parsed.text


def test_the_page_of_a_saved_model_has_its_strongest_words(reported, table, model):
    parsed = reported("-m", model, table, "--including-learned")
    assert "Strongest words of the model" in parsed.text
    assert "of 18" in parsed.text


def test_the_page_of_three_classes_says_what_its_figures_are_of(reported, three_classes):
    parsed = reported("--folds", "3", three_classes)
    assert "every other figure is of the spam class 'spam' against the rest" in parsed.text
    assert "; by the most probable class: " in parsed.text
    assert "P(spam) = 0.5" not in parsed.text
    rename(three_classes, "spam", "other")
    parsed = reported("--folds", "3", three_classes)
    assert "called promo" in parsed.text
    assert "svg" not in parsed.found
    assert "by the most probable class" in parsed.text
