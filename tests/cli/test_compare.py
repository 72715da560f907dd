"""`nbspam eval --compare`, and the models of the family that it compares."""

import contextlib
import re
from typing import ClassVar

import pytest
from one_case import each

from nbspam.workers import Passes

pytestmark = pytest.mark.usefixtures("few_resamples")


@pytest.fixture
def compared(as_json):
    """Return a function that compares models, and returns the figures."""
    return lambda *arguments: as_json("eval", "--compare", *arguments)


@pytest.mark.few(1)
@pytest.mark.parametrize("kinds, number", [("bernoulli,gaussian:sum", 3), ("all", 19)])
def test_text_and_json_name_the_same_models(nbspam, compared, table, kinds, number):
    found = compared(kinds, table)
    assert found["protocol"] == "leave-one-out"
    assert {m["messages"] for m in found["models"]} == {30}
    errors = [m["errors"] for m in found["models"]]
    assert errors == sorted(errors)
    assert found["advice"].startswith("Take ")
    assert (found["duplicates"], found["seed"]) == (6, 0)
    names = [m["name"] for m in found["models"]]
    assert len(names) == number
    text = nbspam("eval", "--compare", kinds, table).out
    assert text.startswith(f"{number} models on 30 messages (12 spam), leave-one-out")
    assert "\n6 of 30 messages tested also occurred in training" in text
    shown = re.findall(r"^([a-z+-]+:[a-z]+)", text, re.M)
    assert shown == names + names[1:]  # the second table is of all but the best


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "protocol, named, tested",
    [
        ("--folds 3", "3 folds", 30),
        ("--train-first 20", "trained on the first 20", 10),
        ("--online --batch 10", "online, 10 at a time", 20),
        ("--leave-one-out", "leave-one-out", 30),
    ],
)
def test_each_protocol_compares_what_it_finds_of_each_model_alone(
    compared, as_json, table, protocol, named, tested
):
    found = compared("bernoulli+gaussian,multinomial:sum", *protocol.split(), table)
    assert found["protocol"].startswith(named)
    for model in found["models"]:
        assert model["messages"] == tested
        options = [f"--{key.replace('_', '-')}={model[key]}" for key in ("event_model", "traits")]
        options.append(f"--scoring={model['scoring']}")
        alone = as_json("eval", *protocol.split(), *options, table)
        for key in ("tp", "fp", "fn", "tn", "log_loss", "one_minus_roca_pct", "calibration_error"):
            assert alone[key] == model[key]


def test_the_seed_is_of_the_intervals(compared, sms):
    options = ("bernoulli+kernel", sms, "--train-first", "50%")
    one, other = (compared(*options, "--seed", n) for n in ("0", "3"))
    assert (one["seed"], other["seed"], one["duplicates"]) == (0, 3, 0)
    for a, b in zip(one["models"], other["models"], strict=True):
        assert a["auc"] == b["auc"]
        assert a["auc_ci"] != b["auc_ci"]


def test_other_settings_hold_for_the_models_they_are_of_and_for_the_advice(nbspam, compared, table):
    def losses(names, *options):
        found = compared(names, *options, table)
        return found["advice"], {m["name"]: m["log_loss"] for m in found["models"]}

    advice, plain = losses("gaussian:sum,kernel:sum")
    command = re.search(r"nbspam (train [^:]*)", advice)[1].split()
    assert nbspam(*command, "-m", table.with_name("model.json"), table).code == 0
    options = ("--variance-smoothing", "0.5", "--variance-prior", "9")
    _, other = losses("gaussian:sum,kernel:sum", *options)
    assert plain["gaussian:sum"] != other["gaussian:sum"]
    assert plain["kernel:sum"] == other["kernel:sum"]
    _, plain = losses("bernoulli:sum,multinomial:sum")
    advice, smoothed = losses("bernoulli:sum,multinomial:sum", "--alpha", "200")
    assert "--alpha 200.0" in advice
    assert all(plain[name] != smoothed[name] for name in plain)


def test_a_plot_that_cannot_be_drawn_is_told_before_the_work_or_after_the_table(nbspam, tmp_path):
    rows = tmp_path / "few.tsv"
    rows.write_text("label\ttext\nspam\tbuy now\nham\thello you\nspam\tsale today\n")
    options = ("--compare", "bernoulli", "--train-first", "2", "-q")
    found = nbspam("eval", *options, "--plot", tmp_path / "roc.svg", rows)
    assert (found.code, "bernoulli:sum" in found.out) == (2, True)
    assert "a ROC curve needs spam and ham" in found.err
    found = nbspam("eval", *options, "--plot", tmp_path / "none" / "roc.svg", rows)
    assert (found.code, found.out) == (1, "")
    assert "the folder does not exist; create it" in found.err


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "kinds, number", [("complement,gaussian:sum,bernoulli+kernel", 4), ("all", 19)]
)
def test_three_classes(compared, three_classes, kinds, number):
    found = compared(kinds, three_classes)
    assert len(found["models"]) == number
    best, *others = found["models"]
    assert best["one_minus_roca_pct_less_best"] is None
    assert all(m["one_minus_roca_pct_less_best"] is not None for m in others)  # of spam


def test_it_is_told_which_model_is_at_work(nbspam, table, monkeypatch):
    class Said(Passes):
        begun: ClassVar = []

        def begin(self, what, parts, done=0):
            self.begun.append((what.partition(":")[0], parts, done))

    monkeypatch.setattr(
        "nbspam.cli.evaluating.shown_passes", lambda *_: contextlib.nullcontext(Said())
    )
    assert nbspam("eval", "--compare", "bernoulli,gaussian:sum", table).code == 0
    models = [(f"model {i + 1} of 3", 3, i) for i in range(3)]
    assert [each for each in Said.begun if each[0].startswith("model ")] == models


# Models of the family: --event-model, --traits, --scoring


@pytest.fixture
def model_of(make_model, table):
    """Return a function that trains a model of a kind."""
    return lambda kind: make_model(table, "-q", "--replace", *kind.split(), name="x.json")


def test_an_update_keeps_to_the_models_kind(nbspam, table, model_of):
    kind = "--event-model multinomial --traits gaussian --scoring sum"
    model = model_of(kind)
    again = nbspam("train", "--update", "-m", model, *kind.split(), table)
    assert again.code == 0, again.err
    assert "30 already known" in again.sentences
    for other in ("--event-model bernoulli", "--traits kernel"):
        found = nbspam("train", "--update", "-m", model, *other.split(), table)
        assert (found.code, other in found.err) == (2, True)


@each("scoring, number", [("evidence", 7), ("sum", 10)])
def test_explain_lists_traits_like_words_and_they_add_up(
    nbspam, as_json, model_of, scoring, number
):
    explain = ("explain", "-m", model_of(f"--traits kernel --scoring {scoring}"))
    text = b"call 0900 555 123 NOW"
    found = as_json(*explain, stdin=text)
    traits = [w for w in found["words"] if w["token"].startswith("trait:")]
    assert len(traits) == number
    assert any(w["share"] for w in traits)
    assert "trait:digit-run=4" in {w["token"] for w in traits}
    total = sum(found["constants"].values()) + sum(w["share"] for w in found["words"])
    assert total == pytest.approx(found["log_odds"], abs=1e-9)
    assert "trait:digit-run=4" in nbspam(*explain, "--top", "40", stdin=text).out


def test_the_words_of_a_model_without_words(nbspam, model_of):
    model = model_of("--event-model none")
    found = nbspam("explain", "--words", "-m", model)
    assert found.code == 2
    assert "counts no words, only traits" in found.err
    assert nbspam("classify", "-m", model, stdin=b"free prize").code == 0


def test_info_names_the_kind(nbspam, model_of):
    model = model_of("--event-model complement --traits gaussian --variance-prior 3")
    found = nbspam("model", "info", "-m", model).out
    assert "complement with alpha" in found
    assert "gaussian, of 30 messages; variance smoothing 1e-09, variance prior 3" in found


def test_counts_of_occurrences_go_out_as_csv_and_come_back(nbspam, model_of, tmp_path):
    counts, again = tmp_path / "x.csv", tmp_path / "y.json"
    kind = "--event-model multinomial --scoring sum"
    model = model_of(f"--no-ledger {kind}")
    assert nbspam("model", "export", "-m", model, "--form", "csv", "-o", counts).code == 0
    done = nbspam("model", "import", counts, "-m", again, *kind.split())
    assert (done.code, "count above" in done.err) == (0, False)
    assert again.read_bytes().replace(b'"default"', b'"training"') == model.read_bytes()
    refused = nbspam("model", "export", "-m", model)
    assert refused.code == 2
    assert "counts occurrences; export it with --form csv" in refused.err


@each("scoring", ["evidence", "sum"])
@each("smoothing", ["0", "5e-324", "1e-310", "1e-90"])
def test_a_tiny_variance_gives_finite_verdicts(nbspam, table, model_of, scoring, smoothing):
    table.write_text("label\ttext\n" + "spam\tAAAA 77\nham\tbbb\n" * 5)
    model = model_of(f"--traits gaussian --scoring {scoring} --variance-smoothing {smoothing}")
    for command in ("classify", "explain"):
        found = nbspam(command, "-m", model, "--format", "json", stdin=b"win a prize 12 Ab")
        assert found.code == 0, found.err
        assert not re.search("NaN|Infinity", found.out)
