"""`--base`: a shared model that the user's own is read through."""

import json

import pytest
from small_models import assert_one_sentence

SPAM = b"Free entry: win a prize now, text WIN to 80000"
HAM = b"Can't talk, in a lecture. See you at dinner"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("base")


@pytest.fixture
def base(nbspam, sample, folder):
    path = folder / "base.json"
    if not path.exists():
        assert nbspam("train", "-q", sample / "sms.tsv", "-m", path).code == 0
        path.with_suffix(".copy").write_bytes(path.read_bytes())
    yield path
    assert path.read_bytes() == path.with_suffix(".copy").read_bytes()  # a base is only read


@pytest.fixture
def me(tmp_path):
    return tmp_path / "me.json"


def teach(nbspam, me, base, *texts, label="ham"):
    options = [] if base is None else ["--base", base]
    for text in texts:
        found = nbspam("train", "--update", "-m", me, *options, f"--{label}", "-", stdin=text)
        assert (found.code, found.out, found.err) == (0, "", "")


def verdict(nbspam, me, *options, message=SPAM):
    found = nbspam("classify", "-m", me, *options, stdin=message)
    assert (found.code, found.err) == (0, "")
    return found.out


def log_odds(nbspam, me, *options, message=SPAM):
    return json.loads(verdict(nbspam, me, "--format", "json", *options, message=message))[
        "log_odds"
    ]


def changed(base, tmp_path, old, new):
    path = tmp_path / "changed.json"
    assert old in base.read_bytes()
    path.write_bytes(base.read_bytes().replace(old, new, 1))
    return path


NO_VERDICT = "unsure\t0.5000\t-\ttoo few learned classes\n"

# Verdicts


def test_a_user_without_a_model_has_the_bases_verdict(nbspam, base, me):
    for message in (SPAM, HAM):
        expected = log_odds(nbspam, base, message=message)
        assert log_odds(nbspam, me, "--base", base, message=message) == expected
    assert not me.exists()


def test_a_model_of_one_message_has_verdicts(nbspam, base, me):
    before = log_odds(nbspam, me, "--base", base, message=HAM)
    teach(nbspam, me, base, HAM)
    assert b'"calibrated_by": "base"' in me.read_bytes()
    assert b'"messages": [1, 0]' in me.read_bytes()
    assert nbspam("classify", "-m", me, stdin=HAM).out == NO_VERDICT
    assert verdict(nbspam, me, "--base", base, message=HAM).startswith("ham")
    assert log_odds(nbspam, me, "--base", base, message=HAM) < before


@pytest.mark.parametrize("where", ["environment", "config file"])
def test_where_the_base_may_be_named(nbspam, base, me, tmp_path, monkeypatch, where):
    teach(nbspam, me, base, HAM)
    expected = verdict(nbspam, me, "--base", base)
    name, value = "NBSPAM_BASE", base
    if where == "config file":
        name, value = "NBSPAM_CONFIG", tmp_path / "config.toml"
        value.write_text(f'base = "{base}"\n')
    monkeypatch.setenv(name, str(value))
    assert verdict(nbspam, me) == expected
    monkeypatch.setenv(name, "")
    assert nbspam("classify", "-m", me, stdin=SPAM).out == NO_VERDICT


def test_many_messages_and_one_have_the_same_verdicts(nbspam, base, me, sample, tmp_path):
    teach(nbspam, me, base, HAM, b"meet me at the station at noon")
    rows = (sample / "sms.tsv").read_text().splitlines()[:20]
    table = tmp_path / "some.tsv"
    table.write_text("label\ttext\n" + "\n".join(rows) + "\n")
    many = nbspam("classify", "-m", me, "--base", base, "--format", "json", table).out
    for line, row in zip(many.splitlines(), rows, strict=True):
        text = row.partition("\t")[2].encode()
        one = log_odds(nbspam, me, "--base", base, message=text)
        assert one == pytest.approx(json.loads(line)["log_odds"], abs=1e-9)


def test_a_message_passes_marked(nbspam, base, me):
    mail = b"Subject: hi\n\n" + SPAM + b"\n"
    expected = verdict(nbspam, me, "--base", base, message=mail).split("\t")
    found = nbspam("classify", "-p", "-m", me, "--base", base, stdin=mail)
    assert found.code == 0
    assert f"X-Nbspam: {expected[0]}, probability={expected[1]}"[:-1] in found.out
    assert found.out.endswith(mail.decode().partition("\n\n")[2])


# Learning


def test_learning_and_forgetting_through_the_base(nbspam, base, me):
    teach(nbspam, me, base, HAM)
    counts = me.read_bytes().partition(b'"tokens": {')[2]
    before = [log_odds(nbspam, me, "--base", base, message=m) for m in (SPAM, HAM)]
    teach(nbspam, me, base, SPAM, label="spam")
    assert log_odds(nbspam, me, "--base", base) > before[0] + 0.1
    found = nbspam("forget", "-m", me, "--base", base, stdin=SPAM)
    assert (found.code, found.out, found.err) == (0, "", "")
    assert me.read_bytes().partition(b'"tokens": {')[2] == counts
    after = [log_odds(nbspam, me, "--base", base, message=m) for m in (SPAM, HAM)]
    assert after == pytest.approx(before, rel=1e-3)


def test_forgotten_without_the_base_the_counts_are_as_before(nbspam, base, me):
    teach(nbspam, me, base, HAM, SPAM)
    calibration = [line for line in me.read_bytes().split(b"\n") if line.startswith(b'"calib')]
    assert nbspam("forget", "-m", me, stdin=SPAM).code == 0
    assert b'"messages": [1, 0]' in me.read_bytes()
    assert set(calibration) < set(me.read_bytes().split(b"\n"))


def test_training_without_update_learns_one_by_one(nbspam, base, me, sample, tmp_path):
    """What is counted is what any training counts, so only the calibration is another."""
    other = tmp_path / "other.json"
    found = nbspam("train", sample / "sms.tsv", "-m", me, "--base", base)
    assert (found.code, found.err) == (0, "")
    assert "learned 304 new messages" in " ".join(found.out.split())
    assert nbspam("train", "-q", sample / "sms.tsv", "-m", other).code == 0
    whole = [path.read_bytes().partition(b'"tokens": {') for path in (me, other)]
    assert whole[0][2] == whole[1][2]
    assert b'"calibrated_by": "base"' in whole[0][0]
    assert nbspam("model", "check", "-m", me).code == 0
    again = nbspam("train", sample / "sms.tsv", "-m", me, "--base", base)
    assert "--replace" in again.err


def test_train_says_that_a_model_is_young_if_both_are(nbspam, base, me, tmp_path):
    message = tmp_path / "message.txt"
    message.write_bytes(HAM)
    found = nbspam("train", "--update", "-m", me, "--base", base, "--ham", message)
    assert "8 more spam" in " ".join(found.out.split())  # of 92 and none; ham are enough
    assert "more ham" not in found.out


def test_a_new_model_has_the_bases_settings(nbspam, me, tmp_path, sample):
    base = tmp_path / "base.json"
    options = "--alpha", "0.2", "--prior", "0.3", "--traits", "none", "--spam-cutoff", "0.97"
    assert nbspam("train", "-q", sample / "sms.tsv", "-m", base, *options).code == 0
    teach(nbspam, me, base, HAM)
    for line in (
        b'"alpha": 0.2',
        b'"prior": 0.3',
        b'"traits": {"model": "none"',
        b'"spam_cutoff": 0.97',
    ):
        assert line in me.read_bytes()
    other = tmp_path / "other.json"
    found = nbspam(
        "train", "--update", "-m", other, "--base", base, "--alpha", "0.1", "--ham", "-", stdin=HAM
    )
    assert found.code == 0, found.err
    assert b'"alpha": 0.1' in other.read_bytes()


def test_a_model_on_a_base_of_three_classes_has_its_classes(nbspam, me, tmp_path):
    table = tmp_path / "three.tsv"
    texts = {"ham": "see you at dinner", "spam": "win a prize", "promo": "our offer this week"}
    rows = [f"{name}\t{text} {i}" for i in range(6) for name, text in texts.items()]
    table.write_text("label\ttext\n" + "\n".join(rows) + "\n")
    base = tmp_path / "three.json"
    assert nbspam("train", "-q", table, "-m", base).code == 0
    found = nbspam(
        "train", "--update", "-m", me, "--base", base, "--label", "promo=-", stdin=b"an offer"
    )
    assert found.code == 0, found.err
    assert b'"classes": ["ham", "promo", "spam"]' in me.read_bytes()
    assert verdict(nbspam, me, "--base", base, message=b"our offer 9").startswith("promo")


@pytest.mark.parametrize("way", [["--update"], []])
def test_train_on_error_asks_both_models(nbspam, base, me, way):
    options = "-m", me, "--base", base, "--on-error", "--sure-from", "0"
    found = nbspam("train", *way, *options, "--ham", "-", stdin=HAM)
    assert (found.code, found.err) == (0, "")
    assert b'"messages": [0, 0]' in me.read_bytes()


def test_what_was_learned_on_error_can_be_taken_back(nbspam, base, me):
    options = "-m", me, "--base", base
    before = log_odds(nbspam, me, "--base", base)
    assert nbspam("train", "--update", "--on-error", *options, "--ham", "-", stdin=SPAM).code == 0
    assert log_odds(nbspam, me, "--base", base) < before - 0.1
    assert nbspam("forget", *options, stdin=SPAM).code == 0
    assert log_odds(nbspam, me, "--base", base) == pytest.approx(before, rel=1e-3)


@pytest.mark.parametrize("way", [["-p"], []])
def test_self_training_learns_what_teaching_through_the_base_does(
    nbspam, base, me, sample, tmp_path, monkeypatch, way
):
    """Of a model that has learned enough messages of its own."""
    taught = tmp_path / "taught.json"
    assert nbspam("train", "-q", sample / "sms.tsv", "-m", me, "--base", base).code == 0
    before, new = me.read_bytes(), HAM + b" or supper"
    taught.write_bytes(before)
    options = "classify", *way, "-m", me, "--learn", "--learn-from", "0.6", "--base", base
    assert nbspam(*options, stdin=new).code == 0
    assert me.read_bytes() == before
    monkeypatch.setattr("nbspam.learning.self_training.FEWEST", 50)
    found = nbspam(*options, stdin=new)
    assert (found.code, found.err) == (0, "")
    teach(nbspam, taught, base, new)
    assert b'"messages": [213, 92]' in me.read_bytes()
    assert me.read_bytes() == taught.read_bytes()


def test_self_training_counts_the_models_own_messages(nbspam, base, me):
    found = nbspam("classify", "-m", me, "--base", base, "--learn", stdin=HAM)
    assert (found.code, found.err, me.exists()) == (0, "", False)
    teach(nbspam, me, base, HAM)
    before = me.read_bytes()
    found = nbspam("classify", "-m", me, "--base", base, "--learn", stdin=HAM)
    assert (found.code, found.err, me.read_bytes()) == (0, "", before)
    said = " ".join(nbspam("model", "info", "-m", me).out.split())
    assert "has learned 1 ham and 0 spam, so classify --learn learns nothing" in said


# Explanations and figures


def test_an_explanation_counts_the_messages_of_both(nbspam, base, me):
    teach(nbspam, me, base, HAM)
    text = " ".join(nbspam("explain", "-m", me, "--base", base, stdin=SPAM).out.split())
    assert f"the counts include those of the base {base}" in text
    assert "of 213 of 92" in text
    options = "--base", base, "--format", "json"
    found = json.loads(nbspam("explain", "-m", me, *options, stdin=SPAM).out)
    assert (found["base"], found["bias"], found["sum_log_odds"]) == (str(base), None, None)
    # Those of the base: me.json has learned no spam.
    assert {word["token"]: word["counts"] for word in found["words"]}["prize"]["spam"] == 2
    total = sum(found["constants"].values()) + sum(word["share"] for word in found["words"])
    assert total == pytest.approx(found["log_odds"], abs=1e-9)
    page = nbspam("explain", "-m", me, "--base", base, "--format", "html", stdin=SPAM).out
    assert "the counts include those of the base" in page
    alone = json.loads(nbspam("explain", "-m", base, "--format", "json", stdin=SPAM).out)
    assert "base" not in alone


@pytest.mark.parametrize("way", [(), ("--online", "--batch", "50")])
def test_eval_measures_with_a_base(nbspam, base, me, sample, way):
    if not way:
        teach(nbspam, me, base, HAM)
        way = "-m", me
    found = nbspam("eval", *way, "--base", base, "--format", "json", sample / "sms.tsv")
    assert found.code == 0, found.err
    found = json.loads(found.out)
    assert found["accuracy"] > 0.9
    assert found["protocol"].endswith(f", with the base {base}")


@pytest.mark.parametrize(
    "way",
    [("--folds", "3"), ("--leave-one-out",), ("--train-first", "30%"), ("--compare", "bernoulli")],
)
def test_what_learns_at_once_has_no_base(nbspam, base, sample, way, monkeypatch):
    found = nbspam("eval", *way, "--base", base, sample / "sms.tsv")
    assert (found.code, found.out) == (2, "")
    assert "--base goes with --online or a saved model" in " ".join(found.err.split())
    monkeypatch.setenv("NBSPAM_BASE", str(base))
    found = nbspam("eval", *way, "--format", "json", sample / "sms.tsv")
    assert found.code == 0, found.err
    assert str(base) not in found.out


def test_eval_names_a_class_that_the_base_lacks(nbspam, base, tmp_path):
    table = tmp_path / "promo.tsv"
    table.write_text(
        "".join(f"ham\tsee you {i}\nspam\twin {i}\npromo\toffer {i}\n" for i in range(9))
    )
    found = nbspam("eval", "--online", "--batch", "3", "--base", base, table)
    assert (found.code, found.out) == (1, "")
    assert f"the base {base} has no class 'promo'" in " ".join(found.err.split())


# Errors: one sentence, the message whole


@pytest.mark.parametrize("command", ["classify", "explain", "train", "eval", "serve"])
@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("missing", "there is no such model"),
        ("other program", "is not an nbspam model"),
        ("rules", "update nbspam"),
        ("cut", "cut short"),
        ("scoring", "has the scoring sum, and a base must have evidence"),
    ],
)
def test_a_base_that_cannot_be_used(nbspam, base, me, tmp_path, sample, command, kind, says):
    path = {
        "missing": lambda: tmp_path / "none.json",
        "other program": lambda: sample / "sms.tsv",
        "rules": lambda: changed(base, tmp_path, b'"rules": ', b'"rules": 1'),
        "cut": lambda: tmp_path / "cut.json",
        "scoring": lambda: changed(base, tmp_path, b'"scoring": "evidence"', b'"scoring": "sum"'),
    }[kind]()
    if kind == "cut":
        path.write_bytes(base.read_bytes()[:-10])
    arguments = {
        "train": ["--update", "--ham", "-"],
        "eval": ["--ham", "-"],
        "serve": ["--socket", tmp_path / "socket"],
    }.get(command, [])
    found = nbspam(command, "-m", me, "--base", path, *arguments, stdin=HAM)
    assert (found.code, found.out, me.exists()) == (1, "", False)
    assert_one_sentence(found.err.rstrip("\n").removeprefix("nbspam: "), path, says)


def test_a_message_passes_whole_without_its_base(nbspam, me, tmp_path):
    mail = b"Subject: hi\n\nwin\n"
    found = nbspam("classify", "-p", "-m", me, "--base", tmp_path / "none.json", stdin=mail)
    assert (found.code, found.out) == (75, mail.decode())
    assert "there is no such model" in found.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--event-model", "multinomial"], "has the event model multinomial, and its base"),
        (["--traits", "none"], "has the traits none, and its base"),
        (["--scoring", "sum"], "has the scoring sum, and its base"),
        (["--label", "junk=-", "--spam-label", "junk"], "has the classes"),
    ],
)
def test_a_model_unlike_its_base(nbspam, base, me, sample, options, says):
    source = [] if "--label" in options else [sample / "sms.tsv"]
    new = nbspam("train", "--update", "-m", me, "--base", base, *source, *options, stdin=SPAM)
    assert (new.code, new.out, me.exists()) == (1, "", False)
    train = nbspam("train", "--update", "-m", me, *source, *options, stdin=SPAM)
    assert train.code == 0, train.err
    before = me.read_bytes()
    for command, more in (
        ("classify", []),
        ("explain", []),
        ("train", ["--update", "--ham", "-"]),
        ("forget", []),
    ):
        found = nbspam(command, "-m", me, "--base", base, *more, stdin=HAM)
        assert (found.code, found.out) == (1, ""), command
        assert_one_sentence(found.err.rstrip("\n").removeprefix("nbspam: "), me, says, str(base))
    assert me.read_bytes() == before


@pytest.mark.parametrize("is_link", [False, True])
def test_a_model_is_no_base_of_its_own(nbspam, base, tmp_path, is_link):
    model = tmp_path / "link.json" if is_link else base
    if is_link:
        model.symlink_to(base)
    for command, more in (
        ("classify", []),
        ("train", ["--update", "--ham", "-"]),
        ("train", ["--replace", "--ham", "-"]),
        ("forget", []),
    ):
        found = nbspam(command, "-m", model, "--base", base, *more, stdin=HAM)
        assert (found.code, found.out) == (1, "")
        assert "is both the model and its base" in found.err


def test_a_limit_on_blocked_ham_needs_all_messages_at_once(nbspam, base, me, sample, tmp_path):
    options = "train", sample / "sms.tsv", "-m", me, "--base", base
    found = nbspam(*options, "--max-ham-blocked", "1%")
    assert (found.code, found.out, me.exists()) == (2, "", False)
    assert "one by one" in found.err


def test_notes_of_older_rules_name_the_base_and_not_the_new_model(
    nbspam, base, me, tmp_path, sample
):
    from nbspam.tokens.tokenizer import RULES

    older = changed(base, tmp_path, b'"rules": %d' % RULES, b'"rules": %d' % (RULES - 1))
    teach(nbspam, me, older, HAM)
    assert b'"rules": %d' % RULES in me.read_bytes()
    found = nbspam("classify", "-m", me, "--base", older, sample / "sms.tsv")
    assert f"{older}: was made with tokenizer rules" in found.err
    assert f"{me}: was" not in found.err


def test_with_user_models_the_common_model_is_the_base(nbspam, base, tmp_path):
    users = tmp_path / "users"
    users.mkdir(mode=0o700)
    socket = tmp_path / "socket"
    options = "-m", base, "--user-models", users, "--socket", socket, "--base", base
    found = nbspam("serve", *options)
    assert (found.code, found.out) == (2, "")
    said = " ".join(found.err.split())
    assert "with --user-models the model of --model is the base of every user's" in said
    assert "leave --base out" in said


def test_with_user_models_a_base_of_the_environment_is_not_used(
    nbspam, base, me, tmp_path, monkeypatch
):
    monkeypatch.setattr("nbspam.cli.serve.serve", lambda *_: None)
    monkeypatch.setenv("NBSPAM_BASE", str(tmp_path / "none.json"))
    users = tmp_path / "users"
    users.mkdir(mode=0o700)
    options = "-m", base, "--user-models", users, "--socket", tmp_path / "socket"
    found = nbspam("serve", *options)
    assert found.code == 0, found.err
    said = f"{tmp_path / 'none.json'}: is not used; with --user-models {base} is the base"
    assert said in found.err
