import json
import re
import stat

import pytest
from one_case import each


@pytest.fixture
def trained(nbspam, tmp_path):
    """Return a function that trains a model and returns its fields and what was printed as JSON."""

    def train(*arguments):
        path = tmp_path / "model.json"
        found = nbspam("train", *arguments, "-m", path, "--replace", "--format", "json")
        assert (found.code, found.err) == (0, "")
        return json.loads(path.read_text()), json.loads(found.out)

    return train


def judged(nbspam, path, text):
    found = nbspam("classify", "-m", path, "--format", "json", stdin=text)
    return json.loads(found.out)


def test_train_says_what_it_learned_and_what_to_expect(nbspam, table, tmp_path):
    path = tmp_path / "model.json"
    found = nbspam("train", table, "-m", path, "-v")
    assert (found.code, found.err) == (0, "")
    learned, expect, young = found.sentences.splitlines()
    assert learned.startswith(f"{path}: learned 30 messages")
    assert "18" in learned
    assert "12" in learned
    share = r"\d+\.\d\d % \(\d+\.\d\d to \d+\.\d\d\)"
    assert re.fullmatch(
        "leave-one-out estimate for new messages like these: "
        + share.replace("%", "% correct at 0.5", 1)
        + f"; verdicts: ham blocked {share}, spam missed {share}, unsure {share}",
        expect,
    )
    assert young == "needs 82 more ham and 88 more spam; until then it will often answer 'unsure'"
    assert nbspam("train", table, "-m", path, "--replace").sentences.splitlines() == [
        f"{path}: learned 30 messages (ham: 18, spam: 12)",
        "of 100 new ham 0 would be marked as spam",
        "of 100 new spam 100 are caught",
        young,
    ]
    assert nbspam("classify", "-m", path, stdin=b"a free prize for us").out.startswith("spam\t")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600  # the owner's alone
    assert nbspam("train", "-q", table, "-m", path, "--replace") == (0, "", "")


def test_train_as_json(table, trained, tmp_path):
    _, found = trained(table)
    assert found["model"] == str(tmp_path / "model.json")
    assert found["messages"] == {"ham": 18, "spam": 12}
    assert found["skipped"] == 0
    assert found["tokens"] > 20
    estimate = found["leave_one_out"]
    low, high = estimate["accuracy_ci"]
    assert 0 <= low <= estimate["accuracy"] <= high <= 1
    keys = ("accuracy", "sc_pct", "bh_pct", "verdict_bh_pct", "verdict_sm_pct", "unsure_pct")
    assert list(estimate) == [name for key in keys for name in (key, f"{key}_ci")]


def test_the_estimate_of_three_classes_is_that_of_their_verdicts(nbspam, three_classes, tmp_path):
    train = ("train", three_classes, "-m", tmp_path / "model.json")
    assert "of 100 new messages 100 are classified correctly" in nbspam(*train).out
    expect = nbspam(*train, "-v", "--replace").sentences.splitlines()[1]
    assert "these: correct 100.00 % (" in expect
    assert "spam caught" in expect
    assert "0.5" not in expect


def test_the_sample_data_trains(trained, sample):
    _, found = trained(
        "--spam", sample / "mail" / "spam.mbox", "--ham", sample / "mail" / "ham.mbox"
    )
    assert found["messages"] == {"ham": 81, "spam": 40}


def test_two_messages_are_enough(nbspam, tmp_path):
    for label, text in (("spam", "free prize"), ("ham", "see you")):
        (tmp_path / label).write_text(text)
    sources = ("--spam", tmp_path / "spam", "--ham", tmp_path / "ham")
    found = nbspam("train", *sources, "-m", tmp_path / "model.json")
    assert (found.code, found.err) == (0, "")


def test_an_existing_model_needs_replace(nbspam, table, three_classes, model, assert_sentence):
    before = model.read_bytes()
    assert_sentence(nbspam("train", table, "-m", model), model, "--replace")
    assert before == model.read_bytes()
    assert nbspam("train", "--replace", three_classes, "-m", model).code == 0
    assert b"promo" in model.read_bytes()


def test_the_same_messages_give_the_same_model_and_in_any_order_the_same_counts(table, make_model):
    first, second = make_model(table, name="a.json"), make_model(table, name="b.json")
    assert first.read_bytes() == second.read_bytes()
    table.write_text("".join(table.read_text().splitlines(keepends=True)[::-1]))
    third = make_model(table, name="c.json")
    assert json.loads(first.read_text())["tokens"] == json.loads(third.read_text())["tokens"]


def test_the_models_place_is_the_environments_or_the_users_data_folder(
    nbspam, table, tmp_path, monkeypatch, own_home
):
    assert nbspam("train", table).code == 0
    (path,) = own_home.rglob("model.json")
    assert path.parent.name == "nbspam"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert nbspam("classify", stdin=b"free prize").code == 0
    monkeypatch.setenv("NBSPAM_MODEL", str(tmp_path / "named.json"))
    assert nbspam("train", table).code == 0
    assert (tmp_path / "named.json").exists()
    assert nbspam("classify", stdin=b"free prize").code == 0


# Classes and sources


def test_spam_label_names_the_class_and_is_needed_where_none_is_spam(
    nbspam, tmp_path, table, assert_sentence
):
    path = tmp_path / "model.json"
    table.write_text(table.read_text().replace("spam\t", "junk\t").replace("ham\t", "fine\t"))
    assert_sentence(nbspam("train", table, "-m", path), "--spam-label", "'junk'", "'fine'")
    assert nbspam("train", table, "-m", path, "--spam-label", "junk").code == 0
    verdict, probability, _ = nbspam("classify", "-m", path, stdin=b"win a free prize").out.split()
    assert verdict == "junk"
    assert float(probability) > 0.5


def test_label_gives_any_class(trained, tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(f"word{name} other\nword{name} more\n")
    _, found = trained("--lines", *(f"--label=class {name}={tmp_path / name}" for name in "abc"))
    assert found["messages"] == {"class a": 2, "class b": 2, "class c": 2}


def test_a_bad_row_is_skipped_counted_and_named_or_ends_it(
    nbspam, table, tmp_path, assert_sentence
):
    with table.open("a") as file:
        file.write("only one cell\n")
    path = tmp_path / "model.json"
    assert_sentence(nbspam("train", table, "-m", path, "--strict"), f"{table}:31")
    assert not path.exists()
    found = nbspam("train", table, "-m", path, "--format", "json")
    assert found.code == 0
    assert json.loads(found.out)["skipped"] == 1
    assert f"{table}:31" in found.err


@each("spam, ham", [(".", "- -"), (r"http://a\ud800b.example free", r"\udfff lunch")])
def test_texts_without_words_and_halves_of_surrogate_pairs_can_be_learned(
    nbspam, tmp_path, spam, ham
):
    table = tmp_path / "t.jsonl"
    rows = f'{{"label": "spam", "text": "{spam}"}}\n{{"label": "ham", "text": "{ham}"}}\n'
    table.write_text(rows * 3)
    found = nbspam("train", table, "-m", tmp_path / "model.json", "--replace")
    assert (found.code, found.err) == (0, "")


# Options of learning


@each(
    "options, fields",
    [
        (("--alpha", "0.7"), {"alpha": 0.7}),
        (("--prior", "0.2"), {"prior": 0.2}),
        ((), {"scoring": "evidence", "alpha": 0.05}),
        (("--scoring", "evidence"), {"scoring": "evidence", "alpha": 0.05}),
        (("--scoring", "sum"), {"scoring": "sum", "alpha": 0.1}),
    ],
)
def test_learning_options_are_kept_in_the_model(table, trained, options, fields):
    found, _ = trained(table, *options)
    assert {name: found[name] for name in fields} == fields


def test_a_smaller_prior_gives_a_smaller_probability_and_scorings_differ(nbspam, table, make_model):
    def log_odds(text, *options):
        return judged(nbspam, make_model(table, "--replace", *options), text)["log_odds"]

    low, even, high = (log_odds(b"free meeting", "--prior", p) for p in ("0.01", "0.5", "0.99"))
    assert low <= even <= high
    assert low < high
    found = [log_odds(b"free prize", "--scoring", scoring) for scoring in ("evidence", "sum")]
    assert found[0] != found[1]
    assert min(found) > 0


@each("options", [("1e6",), ("1e6", "--scoring", "sum"), ("1e-300",)])
def test_the_largest_and_a_tiny_alpha_give_probabilities(nbspam, table, make_model, options):
    path = make_model(table, "--replace", "--alpha", *options)
    probability = judged(nbspam, path, b"free prize")["probability"]
    assert 0 <= probability <= 1
    assert options == ("1e-300",) or 0 < probability < 1


def test_a_scoring_that_is_none_is_a_usage_error(nbspam, table, tmp_path):
    found = nbspam("train", table, "-m", tmp_path / "model.json", "--scoring", "magic")
    assert found.code == 2
    assert "magic" in found.err


# The cut-offs


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


def cut_offs(path):
    fields = json.loads(path.read_text())
    return fields["spam_cutoff"], fields["ham_cutoff"]


@each(
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
def test_the_cut_offs_are_kept_in_the_model(nbspam, model, table, make_model, options, expected):
    path = make_model(table, "--replace", *options, name="own.json")
    assert cut_offs(path) == pytest.approx(expected)
    fields = json.loads(path.read_text())
    assert fields | {"spam_cutoff": 0.9, "ham_cutoff": 0.5} == json.loads(model.read_text())
    found = json.loads(nbspam("model", "info", "-m", path, "--format", "json").out)
    assert (found["spam_cutoff"], found["ham_cutoff"]) == cut_offs(path)
    assert nbspam("model", "check", "-m", path).code == 0


def test_the_estimate_is_with_the_cut_offs_that_are_stored(mixed, trained):
    found = [
        trained(mixed, *more)[1]["leave_one_out"]
        for more in ((), ("--ham-cost", "1"), ("--spam-cutoff", "1", "--ham-cutoff", "0"))
    ]
    assert len({(one["accuracy"], one["sc_pct"], one["bh_pct"]) for one in found}) == 1
    _, half, never = found
    assert half["verdict_bh_pct"] == pytest.approx(half["bh_pct"]) == pytest.approx(5)
    assert half["verdict_sm_pct"] == pytest.approx(100 - half["sc_pct"])
    assert half["unsure_pct"] == 0
    figures = (never["verdict_bh_pct"], never["verdict_sm_pct"], never["unsure_pct"])
    assert figures == (0, 100, 100)


def test_the_estimate_is_that_of_the_cut_off_for_ham_blocked(mixed, trained):
    plain, tight, loose = (
        trained(mixed, *more)[1]["leave_one_out"]
        for more in ((), ("--max-ham-blocked", "2.5%"), ("--max-ham-blocked", "5%"))
    )
    assert plain["bh_pct"] == tight["bh_pct"] == pytest.approx(5)
    assert tight["verdict_bh_pct"] <= 2.5
    assert loose["verdict_bh_pct"] == pytest.approx(5)


SHARES = ["100%", "1", "-1", "-0.1%", "much", "%", "", "nan", "inf", "1e9%"]


@each(
    "options, parts",
    [
        (("--spam-cutoff", "1.5"), ("the spam cut-off must be between 0 and 1, not 1.5",)),
        (("--ham-cutoff", "nan"), ("the ham cut-off must be between 0 and 1",)),
        (("--ham-cutoff", "0.95"), ("0.95, is above the spam cut-off, 0.9",)),
        (("--ham-cost", "0"), ("the ham cost must be above 0",)),
        (("--ham-cost", "9", "--spam-cutoff", "0.9"), ("leave out",)),
        (
            ("--max-ham-blocked", "1%", "--ham-cost", "9"),
            ("--max-ham-blocked", "leave one of them out"),
        ),
        (
            ("--max-ham-blocked", "1%", "--spam-cutoff", "0.9"),
            ("--max-ham-blocked", "leave one of them out"),
        ),
        *(((f"--max-ham-blocked={share}",), ("--max-ham-blocked", "0.1%")) for share in SHARES),
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
    train = "train", three_classes, "-m", tmp_path / "model.json"
    found = nbspam(*train, "--spam-cutoff", "0.9")
    assert_sentence(found, "3 classes", "leave out the cut-offs", code=2)
    found = nbspam(*train, "--max-ham-blocked", "1%")
    assert_sentence(found, "--max-ham-blocked", "two classes")
    assert not (tmp_path / "model.json").exists()


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


@each("scoring", ["evidence", "sum"])
def test_max_ham_blocked_raises_the_cut_off_and_stores_it(mixed, make_model, scoring):
    """A share is a percentage or a number."""

    def made(share):
        how = ("--scoring", scoring, "--replace", "--max-ham-blocked")
        path = make_model(mixed, *how, share)
        return cut_offs(path)[0], path.read_bytes()

    loose, tight = made("10%"), made("0")
    assert 0.5 <= loose[0] <= tight[0]
    assert tight[0] > 0.5
    assert made("0.1") == loose
    assert made("0%") == tight


def test_train_says_where_the_cut_off_came_to_lie(nbspam, mixed, tmp_path):
    path = tmp_path / "model.json"
    found = nbspam("train", mixed, "-m", path, "--max-ham-blocked", "0.1%")
    assert (found.code, found.err) == (0, "")
    sentence = found.sentences.splitlines()[3]
    assert "at most 0.1 % of ham blocked" in sentence
    assert "the verdicts above are with it" in sentence
    assert f"{cut_offs(path)[0]:.6g}" in sentence
    assert "40 ham messages are too few to measure less than 2.5 %" in sentence
    found = nbspam("train", mixed, "-m", path, "--replace", "--max-ham-blocked", "10%")
    assert "too few" not in found.out


def test_the_models_cut_off_is_what_the_other_commands_use(nbspam, mixed, make_model):
    path = make_model(mixed, "--max-ham-blocked", "0")
    bound = cut_offs(path)[0]
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
    rows = nbspam("classify", "-m", path, "--format", "json", "--spam-cutoff", "0.5", mixed)
    for row in map(json.loads, rows.out.splitlines()):  # what is asked for goes before the model's
        assert row["verdict"] == ("spam" if row["probability"] > 0.5 else "ham")
