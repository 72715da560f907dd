import csv
import io
import json
import re

import pytest
from many_cases import in_turn


def compared(nbspam, *arguments):
    found = nbspam("eval", "--format", "json", "--compare", *arguments)
    assert (found.code, found.err) == (0, "")
    return json.loads(found.out)


def test_all_kinds_by_leave_one_out(nbspam, table):
    found = compared(nbspam, "all", table)
    assert found["protocol"] == "leave-one-out"
    assert len(found["models"]) == 25
    assert {m["messages"] for m in found["models"]} == {30}
    errors = [m["errors"] for m in found["models"]]
    assert errors == sorted(errors)
    assert found["advice"].startswith("Take ")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "protocol, named, tested",
    [
        (("--folds", "3"), "3 folds", 30),
        (("--train-first", "20"), "trained on the first 20", 10),
        (("--online", "--batch", "10"), "online, 10 at a time", 20),
        (("--leave-one-out",), "leave-one-out", 30),
    ],
)
def test_each_protocol_compares_what_it_finds_of_each_model_alone(
    nbspam, table, protocol, named, tested
):
    found = compared(nbspam, "bernoulli+gaussian,multinomial:sum", *protocol, table)
    assert found["protocol"].startswith(named)
    for model in found["models"]:
        assert model["messages"] == tested
        options = [f"--{key.replace('_', '-')}={model[key]}" for key in ("event_model", "traits")]
        options.append(f"--scoring={model['scoring']}")
        alone = nbspam("eval", "--format", "json", *protocol, *options, table)
        assert alone.code == 0, alone.err
        for key in ("tp", "fp", "fn", "tn", "log_loss", "one_minus_roca_pct", "calibration_error"):
            assert json.loads(alone.out)[key] == model[key]


def test_text_csv_and_json_name_the_same_models(nbspam, table):
    names = [m["name"] for m in compared(nbspam, "bernoulli,gaussian:sum", table)["models"]]
    rows = nbspam("eval", "--compare", "bernoulli,gaussian:sum", "--format", "csv", table)
    assert [row["name"] for row in csv.DictReader(io.StringIO(rows.out))] == names
    text = nbspam("eval", "--compare", "bernoulli,gaussian:sum", table)
    assert text.out.startswith("3 models on 30 messages (12 spam), leave-one-out")
    shown = re.findall(r"^([a-z+-]+:[a-z]+)", text.out, re.M)
    assert shown == names + names[1:]  # the second table is of all but the best


def test_messages_tested_that_were_trained_on_are_told(nbspam, table):
    found = compared(nbspam, "bernoulli", table)
    assert (found["duplicates"], found["seed"]) == (6, 0)
    text = nbspam("eval", "--compare", "bernoulli", table).out
    assert "\n6 of 30 messages tested are the same as one trained on" in text
    text = nbspam("eval", "--compare", "bernoulli", "--train-first", "20", table).out
    assert "are the same" not in text


def test_the_seed_is_of_the_intervals(nbspam, sample):
    options = ("bernoulli+kernel", sample / "sms.tsv", "--train-first", "50%")
    one, other = (compared(nbspam, *options, "--seed", n) for n in ("0", "3"))
    assert (one["seed"], other["seed"]) == (0, 3)
    for a, b in zip(one["models"], other["models"], strict=True):
        assert a["auc"] == b["auc"]
        assert a["auc_ci"] != b["auc_ci"]


def test_the_advice_is_a_command_that_trains(nbspam, table, tmp_path):
    found = compared(nbspam, "gaussian:sum,kernel:sum", table)
    command = re.search(r"nbspam (train [^:]*)", found["advice"])
    assert command, found["advice"]
    done = nbspam(*command[1].split(), "-m", tmp_path / "model.json", table)
    assert done.code == 0


def test_the_users_other_settings_hold_for_all(nbspam, table):
    plain = compared(nbspam, "bernoulli:sum,multinomial:sum", table)
    smoothed = compared(nbspam, "bernoulli:sum,multinomial:sum", "--alpha", "200", table)
    losses = [{m["name"]: m["log_loss"] for m in f["models"]} for f in (plain, smoothed)]
    assert all(losses[0][name] != losses[1][name] for name in losses[0])


def test_variances_are_of_the_gaussian_models(nbspam, table):
    names = "gaussian:sum,kernel:sum"
    plain, other = (
        {m["name"]: m["log_loss"] for m in compared(nbspam, names, *options, table)["models"]}
        for options in ((), ("--variance-smoothing", "0.5", "--variance-prior", "9"))
    )
    assert plain["gaussian:sum"] != other["gaussian:sum"]
    assert plain["kernel:sum"] == other["kernel:sum"]


def test_the_advised_command_keeps_what_was_given(nbspam, table):
    found = compared(nbspam, "gaussian:sum,kernel:sum", "--alpha", "2", table)
    assert "--alpha 2.0" in found["advice"]


@pytest.mark.long
def test_plot(nbspam, table, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "roc.png"
    assert nbspam("eval", "--compare", "bernoulli", "--plot", path, table).code == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_plot_that_cannot_be_drawn_is_told_before_the_work_or_after_the_table(nbspam, tmp_path):
    rows = tmp_path / "few.tsv"
    rows.write_text("label\ttext\nspam\tbuy now\nham\thello you\nspam\tsale today\n")
    options = ("--compare", "bernoulli", "--train-first", "2", "-q")
    found = nbspam("eval", *options, "--plot", tmp_path / "roc.svg", rows)
    assert found.code == 2
    assert "a ROC curve needs spam and ham" in found.err
    assert "bernoulli:sum" in found.out
    found = nbspam("eval", *options, "--plot", tmp_path / "none" / "roc.svg", rows)
    assert (found.code, found.out) == (1, "")
    assert "there is no such folder; create it first" in found.err


@in_turn(
    "options, said",
    [
        (("--compare", "magic"), "'magic' is no kind of naive Bayes"),
        (("--compare", "bernoulli:sum"), "name two or more"),
        (("--compare", "all", "--scoring", "sum"), "--scoring asks for one; leave it out"),
        (("--compare", "all", "--event-model", "none"), "--event-model asks for one"),
        (("--compare", "all", "--traits", "none"), "--traits asks for one"),
        (("--compare", "all", "--errors", "3"), "--errors is of one model; leave it out"),
        (("--compare", "all", "--predictions", "x"), "--predictions is of one model"),
        (("--compare", "all", "--folds", "3", "--online"), "give one of them"),
        (("--compare", "all", "--plot", "x.txt"), "ends in .png or .svg"),
        (("--compare", "all", "--alpha", "0"), "alpha must be above 0"),
        (("--compare", "all", "--train-first", "3", "--max-ham-blocked", "1%"), "leave it out"),
        (("--compare", "all", "--spam-cutoff", "0.8"), "leave the cut-offs out"),
        (("--compare", "bernoulli", "--variance-prior", "3"), "variances are of Gaussian traits"),
        (("--compare", "all", "--variance-prior", "-3"), "variance prior must be"),
        (("--leave-one-out", "--folds", "3"), "four ways to test; give one of them"),
    ],
)
def test_options_that_cannot_be_together_are_told(nbspam, table, options, said):
    found = nbspam("eval", *options, table)
    assert found.code == 2
    assert found.out == ""
    assert said in found.err
    assert found.err.count("\n") == 1


def test_no_message_to_compare_on(nbspam, tmp_path):
    empty = tmp_path / "empty.tsv"
    empty.write_text("label\ttext\n")
    found = nbspam("eval", "--compare", "all", empty)
    assert found.code == 1
    assert found.err.count("\n") == 1


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "kinds, number",
    [("complement,gaussian:sum,bernoulli+kernel", 4), ("all", 25)],
)
def test_three_classes(nbspam, three_classes, kinds, number):
    found = compared(nbspam, kinds, three_classes)
    assert len(found["models"]) == number
    best, *others = found["models"]
    assert best["one_minus_roca_pct_less_best"] is None
    assert all(m["one_minus_roca_pct_less_best"] is not None for m in others)  # of spam


def test_a_terminal_is_shown_which_model_is_at_work(nbspam, table, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    from nbspam.cli.progress import steps

    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    with steps(quiet=False, messages=30) as shown:
        assert list(shown(["one", "two"], lambda name: f"model {name}")) == ["one", "two"]
    drawn = stream.getvalue()
    assert "model 1 of 2, 0 of 60 messages: model one" in drawn
    assert "model 2 of 2, 30 of 60 messages: model two" in drawn


def test_nothing_is_shown_where_nobody_looks(monkeypatch):
    from nbspam.cli.progress import steps

    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    with steps(quiet=False, messages=30) as shown:
        assert list(shown(["one"], str)) == ["one"]
    assert stream.getvalue() == ""


# Training with the options of the family.


@in_turn(
    "options, said",
    [
        (("--event-model", "none", "--traits", "none"), "nothing to learn from"),
        (("--event-model", "none", "--scoring", "sum"), "nothing to learn from"),
        (
            ("--event-model", "complement", "--scoring", "sum", "--prior", "0.5"),
            "has no prior under the sum",
        ),
        (("--variance-smoothing", "0.1"), "variances are of Gaussian traits"),
        (("--shared-variance",), "variances are of Gaussian traits"),
        (("--traits", "gaussian", "--variance-smoothing", "-1"), "variance smoothing must be"),
        (("--traits", "gaussian", "--variance-prior", "-1"), "variance prior must be"),
        (("--traits", "gaussian", "--variance-prior", "nan"), "variance prior must be"),
    ],
)
def test_senseless_models_are_refused(nbspam, table, tmp_path, options, said):
    found = nbspam("train", "-m", tmp_path / "x.json", *options, table)
    assert found.code == 2
    assert said in found.err
    assert found.err.count("\n") == 1
    assert not (tmp_path / "x.json").exists()


def test_an_update_keeps_to_the_models_kind(nbspam, table, tmp_path):
    model = tmp_path / "x.json"
    kind = ("--event-model", "multinomial", "--traits", "gaussian", "--scoring", "sum")
    assert nbspam("train", "-m", model, *kind, table).code == 0
    again = nbspam("train", "--update", "-m", model, *kind, table)
    assert again.code == 0, again.err
    assert "30 already known" in again.sentences
    for name, other in (("--event-model", "bernoulli"), ("--traits", "kernel")):
        found = nbspam("train", "--update", "-m", model, name, other, table)
        assert found.code == 2
        assert f"{name} {other}" in found.err


def test_explain_lists_traits_like_words_and_they_add_up(nbspam, table, tmp_path):
    for scoring in ("evidence", "sum"):
        model = tmp_path / f"{scoring}.json"
        options = ("--traits", "kernel", "--scoring", scoring)
        assert nbspam("train", "-q", "-m", model, *options, table).code == 0
        found = nbspam("explain", "-m", model, "--format", "json", stdin=b"call 0900 555 123 NOW")
        fields = json.loads(found.out)
        traits = [w for w in fields["words"] if w["token"].startswith("trait:")]
        assert len(traits) == (7 if scoring == "evidence" else 12)
        assert "trait:digit-run=4" in {w["token"] for w in traits}
        total = sum(fields["constants"].values()) + sum(w["share"] for w in fields["words"])
        assert total == pytest.approx(fields["log_odds"], abs=1e-9)
        assert any(w["share"] for w in traits)
        text = nbspam("explain", "-m", model, "--top", "40", stdin=b"call 0900 555 123 NOW")
        assert "trait:digit-run=4" in text.out


def test_the_words_of_a_model_without_words(nbspam, table, tmp_path):
    model = tmp_path / "x.json"
    assert nbspam("train", "-q", "-m", model, "--event-model", "none", table).code == 0
    found = nbspam("explain", "--words", "-m", model)
    assert found.code == 2
    assert "counts no words, only traits" in found.err
    assert nbspam("classify", "-m", model, stdin=b"free prize").code == 0


def test_info_names_the_kind(nbspam, table, tmp_path):
    model = tmp_path / "x.json"
    kind = ("--event-model", "complement", "--traits", "gaussian", "--variance-prior", "3")
    assert nbspam("train", "-q", "-m", model, *kind, table).code == 0
    found = nbspam("model", "info", "-m", model).out
    assert "complement with alpha" in found
    assert "gaussian, of 30 messages; variance smoothing 1e-09, variance prior 3" in found


def test_counts_of_occurrences_go_out_as_csv_and_come_back(nbspam, table, tmp_path):
    model, counts, again = tmp_path / "x.json", tmp_path / "x.csv", tmp_path / "y.json"
    kind = ("--event-model", "multinomial", "--scoring", "sum")
    assert nbspam("train", "-q", "-m", model, "--no-ledger", *kind, table).code == 0
    assert nbspam("model", "export", "-m", model, "--form", "csv", "-o", counts).code == 0
    done = nbspam("model", "import", counts, "-m", again, *kind)
    assert done.code == 0, done.err
    assert "count above" not in done.err
    assert again.read_bytes().replace(b'"default"', b'"training"') == model.read_bytes()
    refused = nbspam("model", "export", "-m", model)
    assert refused.code == 2
    assert "counts occurrences; export it with --form csv" in refused.err


@in_turn("scoring", ["evidence", "sum"])
@in_turn("smoothing", ["0", "5e-324", "1e-310", "1e-90"])
def test_a_tiny_variance_gives_finite_verdicts(nbspam, tmp_path, scoring, smoothing):
    rows = tmp_path / "same.tsv"
    rows.write_text("label\ttext\n" + "spam\tAAAA 77\nham\tbbb\n" * 5)
    model = tmp_path / "x.json"
    options = ("--traits", "gaussian", "--scoring", scoring, "--variance-smoothing", smoothing)
    assert nbspam("train", "-q", "--replace", "-m", model, *options, rows).code == 0
    for command in ("classify", "explain"):
        found = nbspam(command, "-m", model, "--format", "json", stdin=b"win a prize 12 Ab")
        assert found.code == 0, found.err
        assert not re.search("NaN|Infinity", found.out)
