"""`--base`: a shared model that the user's own is read through."""

import json
import re

import pytest
from one_case import each
from small_models import assert_one_sentence

from nbspam.tokens.tokenized import RULES

pytestmark = pytest.mark.usefixtures("few_resamples")
SPAM = b"Free entry: win a prize now, text WIN to 80000"
HAM = b"Can't talk, in a lecture. See you at dinner"
NO_VERDICT = "unsure\t0.5000\t-\ttoo few learned classes\n"


@pytest.fixture
def base(sms_model):
    """Return a model of the sample SMS; it is only read."""
    before = sms_model.read_bytes()
    yield sms_model
    assert sms_model.read_bytes() == before


@pytest.fixture
def me(tmp_path):
    return tmp_path / "me.json"


@pytest.fixture
def teach(nbspam, me):
    """Return a function that teaches messages to my model through a base."""

    def learn(base, *texts, label="ham"):
        for text in texts:
            options = ("-m", me, "--base", base, f"--{label}", "-")
            assert nbspam("train", "--update", *options, stdin=text) == (0, "", "")

    return learn


@pytest.fixture
def verdict(nbspam, me):
    """Return a function that classifies with my model; a base is one of the options."""

    def classify(*options, message=SPAM):
        found = nbspam("classify", "-m", me, *options, stdin=message)
        assert (found.code, found.err) == (0, "")
        return found.out

    return classify


@pytest.fixture
def log_odds(verdict):
    return lambda *options, message=SPAM: json.loads(
        verdict("--format", "json", *options, message=message)
    )["log_odds"]


def changed(base, tmp_path, old, new):
    path = tmp_path / "changed.json"
    assert old in base.read_bytes()
    path.write_bytes(base.read_bytes().replace(old, new, 1))
    return path


def tokens_of(model):
    return model.read_bytes().partition(b'"tokens": {')[2]


# Verdicts


def test_a_model_of_no_or_of_one_message_has_the_bases_verdict(
    nbspam, as_json, base, me, teach, verdict, log_odds
):
    for message in (SPAM, HAM):
        expected = as_json("classify", "-m", base, stdin=message)["log_odds"]
        assert log_odds("--base", base, message=message) == expected
    assert not me.exists()
    teach(base, HAM)
    assert b'"calibrated_by": "base"' in me.read_bytes()
    assert b'"messages": [1, 0]' in me.read_bytes()
    assert nbspam("classify", "-m", me, stdin=HAM).out == NO_VERDICT
    assert verdict("--base", base, message=HAM).startswith("ham")
    assert log_odds("--base", base, message=HAM) < expected


@each("where", ["environment", "config file"])
def test_where_the_base_may_be_named(
    nbspam, base, me, tmp_path, teach, verdict, monkeypatch, where
):
    me.unlink(missing_ok=True)
    teach(base, HAM)
    expected = verdict("--base", base)
    name, value = "NBSPAM_BASE", base
    if where == "config file":
        name, value = "NBSPAM_CONFIG", tmp_path / "config.toml"
        value.write_text(f'base = "{base}"\n')
    monkeypatch.setenv(name, str(value))
    assert verdict() == expected
    monkeypatch.setenv(name, "")
    assert nbspam("classify", "-m", me, stdin=SPAM).out == NO_VERDICT


def test_many_messages_and_one_have_the_same_verdicts(nbspam, base, me, teach, log_odds, sms):
    teach(base, HAM, b"meet me at the station at noon")
    many = nbspam("classify", "-m", me, "--base", base, "--format", "json", sms).out.splitlines()
    for line, row in list(zip(many, sms.read_text().splitlines(), strict=True))[:20]:
        one = log_odds("--base", base, message=row.partition("\t")[2].encode())
        assert one == pytest.approx(json.loads(line)["log_odds"], abs=1e-9)


def test_a_message_passes_marked_or_whole_without_its_base(nbspam, base, me, verdict, tmp_path):
    mail = b"Subject: hi\n\n" + SPAM + b"\n"
    expected = verdict("--base", base, message=mail).split("\t")
    found = nbspam("classify", "-p", "-m", me, "--base", base, stdin=mail)
    assert found.code == 0
    marked = re.search(r"^X-Nbspam: (\w+), probability=([\d.]+), ", found.out, re.MULTILINE)
    assert [marked[1], f"{float(marked[2]):.4f}"] == expected[:2]
    assert found.out.endswith(mail.decode().partition("\n\n")[2])
    found = nbspam("classify", "-p", "-m", me, "--base", tmp_path / "none.json", stdin=mail)
    assert (found.code, found.out) == (75, mail.decode())
    assert "model not found" in found.err


# Learning


def test_learning_and_forgetting_through_the_base(nbspam, base, me, teach, log_odds):
    teach(base, HAM)
    counts = tokens_of(me)
    before = [log_odds("--base", base, message=m) for m in (SPAM, HAM)]
    teach(base, SPAM, label="spam")
    assert log_odds("--base", base) > before[0] + 0.1
    assert nbspam("forget", "-m", me, "--base", base, stdin=SPAM) == (0, "", "")
    assert tokens_of(me) == counts
    after = [log_odds("--base", base, message=m) for m in (SPAM, HAM)]
    assert after == pytest.approx(before, rel=1e-3)


def test_forgotten_without_the_base_the_counts_are_as_before(nbspam, base, me, teach):
    teach(base, HAM, SPAM)
    calibration = [line for line in me.read_bytes().split(b"\n") if line.startswith(b'"calib')]
    assert nbspam("forget", "-m", me, stdin=SPAM).code == 0
    assert b'"messages": [1, 0]' in me.read_bytes()
    assert set(calibration) < set(me.read_bytes().split(b"\n"))


def test_training_without_update_learns_one_by_one(nbspam, base, me, sms, make_model):
    """What is counted is what any training counts, so only the calibration is another."""
    command = ("train", sms, "-m", me, "--base", base)
    found = nbspam(*command, "--max-ham-blocked", "1%")  # which needs all messages at once
    assert (found.code, found.out, me.exists()) == (2, "", False)
    assert "--max-ham-blocked and --base cannot be used together" in found.err
    found = nbspam(*command)
    assert (found.code, found.err) == (0, "")
    assert "learned 100 new messages" in " ".join(found.out.split())
    assert tokens_of(me) == tokens_of(make_model(sms))
    assert b'"calibrated_by": "base"' in me.read_bytes()
    assert nbspam("model", "check", "-m", me).code == 0
    assert "--replace" in nbspam(*command).err


def test_train_says_that_a_model_is_young_if_both_are(nbspam, make_model, me, tmp_path):
    rows = [f"ham\tlunch {i}\n" for i in range(100)] + [f"spam\tprize {i}\n" for i in range(92)]
    (tmp_path / "rows.tsv").write_text("".join(rows))
    base = make_model(tmp_path / "rows.tsv", name="base.json")
    message = tmp_path / "message.txt"
    message.write_bytes(HAM)
    found = nbspam("train", "--update", "-m", me, "--base", base, "--ham", message)
    assert "8 more spam" in " ".join(found.out.split())  # of 92 and none; ham are enough
    assert "more ham" not in found.out


def test_a_new_model_has_the_bases_settings(nbspam, me, teach, make_model, sms):
    options = "--alpha", "0.2", "--prior", "0.3", "--traits", "none", "--spam-cutoff", "0.97"
    base = make_model(sms, *options, name="base.json")
    teach(base, HAM)
    for line in ('"alpha": 0.2', '"prior": 0.3', '"traits": {"model": "none"'):
        assert line in me.read_text()
    assert '"spam_cutoff": 0.97' in me.read_text()
    me.unlink()
    options = ("-m", me, "--base", base, "--alpha", "0.1", "--ham", "-")
    assert nbspam("train", "--update", *options, stdin=HAM).code == 0
    assert b'"alpha": 0.1' in me.read_bytes()


def test_a_model_on_a_base_of_three_classes_has_its_classes(
    nbspam, me, verdict, three_classes, make_model
):
    base = make_model(three_classes)
    learn = ("train", "--update", "-m", me, "--base", base, "--label", "promo=-")
    assert nbspam(*learn, stdin=b"an offer").code == 0
    assert b'"classes": ["ham", "promo", "spam"]' in me.read_bytes()
    assert verdict("--base", base, message=b"new shoes").startswith("promo")


# Explanations and figures


def test_an_explanation_counts_the_messages_of_both(nbspam, as_json, base, me, teach):
    teach(base, HAM)
    explain = ("explain", "-m", me, "--base", base)
    text = " ".join(nbspam(*explain, stdin=SPAM).out.split())
    assert f"the counts include those of the base {base}" in text
    assert "of 1,694 of 944" in text
    found = as_json(*explain, stdin=SPAM)
    assert (found["base"], found["bias"], found["sum_log_odds"]) == (str(base), None, None)
    # Those of the base: me.json has learned no spam.
    assert {word["token"]: word["counts"] for word in found["words"]}["prize"]["spam"] == 33
    total = sum(found["constants"].values()) + sum(word["share"] for word in found["words"])
    assert total == pytest.approx(found["log_odds"], abs=1e-9)
    page = nbspam(*explain, "--format", "html", stdin=SPAM).out
    assert "the counts include those of the base" in page
    assert "base" not in as_json("explain", "-m", base, stdin=SPAM)


@each("way", ["-m ME", "--online --batch 50"])
def test_eval_measures_with_a_base(as_json, base, me, sms, teach, way):
    teach(base, HAM)
    found = as_json("eval", *way.replace("ME", str(me)).split(), "--base", base, sms)
    assert found["accuracy"] > 0.9
    assert found["protocol"].endswith(f", with the base {base}")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "way", ["--folds 3", "--leave-one-out", "--train-first 30%", "--compare bernoulli"]
)
def test_what_learns_at_once_has_no_base(nbspam, base, sms, way, monkeypatch):
    found = nbspam("eval", *way.split(), "--base", base, sms)
    assert (found.code, found.out) == (2, "")
    assert "--base needs --online or a saved model" in " ".join(found.err.split())
    monkeypatch.setenv("NBSPAM_BASE", str(base))
    found = nbspam("eval", *way.split(), "--format", "json", sms)
    assert (found.code, str(base) in found.out) == (0, False)


# Errors: one sentence, my model as it was


@each(
    "kind, says",
    [
        ("missing", "model not found"),
        ("other program", "is not an nbspam model"),
        ("rules", "update nbspam"),
        ("cut", "truncated"),
        ("scoring", "has the scoring sum, and a base must have evidence"),
    ],
)
@each("command", ["classify", "explain", "train --update --ham -", "eval --ham -", "serve"])
def test_a_base_that_cannot_be_used(nbspam, base, me, tmp_path, sms, command, kind, says):
    path = {
        "missing": lambda: tmp_path / "none.json",
        "other program": lambda: sms,
        "rules": lambda: changed(base, tmp_path, b'"rules": ', b'"rules": 1'),
        "cut": lambda: tmp_path / "cut.json",
        "scoring": lambda: changed(base, tmp_path, b'"scoring": "evidence"', b'"scoring": "sum"'),
    }[kind]()
    if kind == "cut":
        path.write_bytes(base.read_bytes()[:-10])
    more = ["--socket", tmp_path / "socket"] if command == "serve" else []
    found = nbspam(*command.split(), "-m", me, "--base", path, *more, stdin=HAM)
    assert (found.code, found.out, me.exists()) == (1, "", False)
    assert_one_sentence(found.err.rstrip("\n").removeprefix("nbspam: "), path, says)


@each(
    "options, says",
    [
        ("--event-model multinomial", "has the event model multinomial, and its base"),
        ("--traits none", "has the traits none, and its base"),
        ("--scoring sum", "has the scoring sum, and its base"),
        ("--label junk=- --spam-label junk", "has the classes"),
    ],
)
def test_a_model_unlike_its_base(nbspam, base, me, sms, options, says):
    me.unlink(missing_ok=True)
    learn = ["train", "--update", "-m", me, *options.split(), *([sms] * ("--label" not in options))]
    new = nbspam(*learn, "--base", base, stdin=SPAM)
    assert (new.code, new.out, me.exists()) == (1, "", False)
    assert nbspam(*learn, stdin=SPAM).code == 0
    before = me.read_bytes()
    for command in ("classify", "explain", "train --update --ham -", "forget"):
        found = nbspam(*command.split(), "-m", me, "--base", base, stdin=HAM)
        assert (found.code, found.out) == (1, ""), command
        assert_one_sentence(found.err.rstrip("\n").removeprefix("nbspam: "), me, says, str(base))
    assert me.read_bytes() == before


@each("command", ["classify", "train --update --ham -", "train --replace --ham -", "forget"])
def test_a_model_is_no_base_of_its_own(nbspam, base, tmp_path, command):
    link = tmp_path / "link.json"
    if not link.is_symlink():
        link.symlink_to(base)
    for model in (base, link):
        found = nbspam(*command.split(), "-m", model, "--base", base, stdin=HAM)
        assert (found.code, found.out) == (1, "")
        assert "is both the model and its base" in found.err


def test_eval_names_a_class_that_the_base_lacks(nbspam, base, three_classes):
    found = nbspam("eval", "--online", "--batch", "3", "--base", base, three_classes)
    assert (found.code, found.out) == (1, "")
    assert f"the base {base} has no class 'promo'" in " ".join(found.err.split())


def test_notes_of_older_rules_name_the_base_and_not_the_new_model(
    nbspam, base, me, tmp_path, sms, teach
):
    older = changed(base, tmp_path, b'"rules": %d' % RULES, b'"rules": %d' % (RULES - 1))
    teach(older, HAM)
    assert b'"rules": %d' % RULES in me.read_bytes()
    found = nbspam("classify", "-m", me, "--base", older, sms)
    assert f"{older}: was made with tokenizer rules" in found.err
    assert f"{me}: was" not in found.err


def test_with_user_models_the_common_model_is_the_base(nbspam, base, tmp_path):
    users = tmp_path / "users"
    users.mkdir(mode=0o700)
    options = ("--user-models", users, "--socket", tmp_path / "socket")
    found = nbspam("serve", "-m", base, *options, "--base", base)
    assert (found.code, found.out) == (2, "")
    said = " ".join(found.err.split())
    assert "with --user-models the model of --model is the base of every user's" in said
    assert "leave out --base" in said
