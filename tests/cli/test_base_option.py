"""`--base`: a shared model beneath the user's own."""

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
    return path


@pytest.fixture
def me(tmp_path):
    return tmp_path / "me.json"


def teach(nbspam, me, base, *texts, label="ham"):
    options = [] if base is None else ["--base", base]
    for text in texts:
        found = nbspam("train", "--update", "-m", me, *options, f"--{label}", "-", stdin=text)
        assert found.code == 0, found.err


def verdict(nbspam, me, *options, message=SPAM):
    found = nbspam("classify", "-m", me, *options, stdin=message)
    assert found.code == 0, found.err
    return found.out


def lines_without_state(path):
    lines = path.read_bytes().split(b"\n")
    return [line for line in lines if not line.startswith(b'"with_base"')]


# Verdicts


def test_a_user_without_a_model_has_the_bases_verdict(nbspam, base, me):
    expected = nbspam("classify", "-m", base, stdin=SPAM)
    found = nbspam("classify", "-m", me, "--base", base, stdin=SPAM)
    assert found == expected
    assert not me.exists()


def test_a_model_of_one_message_has_verdicts(nbspam, base, me):
    teach(nbspam, me, base, HAM)
    assert verdict(nbspam, me) == "unsure\t0.5000\t-\ttoo few learned classes\n"
    found = nbspam("classify", "-m", me, "--base", base, stdin=HAM)
    assert (found.out.split()[0], found.err) == ("ham", "")


def test_the_environment_names_the_base(nbspam, base, me, monkeypatch):
    teach(nbspam, me, base, HAM)
    expected = verdict(nbspam, me, "--base", base)
    monkeypatch.setenv("NBSPAM_BASE", str(base))
    assert verdict(nbspam, me) == expected
    monkeypatch.setenv("NBSPAM_BASE", "")
    assert verdict(nbspam, me) == "unsure\t0.5000\t-\ttoo few learned classes\n"


def test_the_config_file_names_the_base(nbspam, base, me, tmp_path, monkeypatch):
    teach(nbspam, me, base, HAM)
    config = tmp_path / "config.toml"
    config.write_text(f'base = "{base}"\n')
    monkeypatch.setenv("NBSPAM_CONFIG", str(config))
    found = verdict(nbspam, me)
    monkeypatch.setenv("NBSPAM_CONFIG", "")
    assert found == verdict(nbspam, me, "--base", base)


def test_many_messages_and_one_have_the_same_verdicts(nbspam, base, me, sample, tmp_path):
    teach(nbspam, me, base, HAM, b"meet me at the station at noon")
    rows = (sample / "sms.tsv").read_text().splitlines()[:20]
    table = tmp_path / "some.tsv"
    table.write_text("label\ttext\n" + "\n".join(rows) + "\n")
    many = nbspam("classify", "-m", me, "--base", base, "--format", "json", table).out
    for line, row in zip(many.splitlines(), rows, strict=True):
        text = row.partition("\t")[2].encode()
        one = nbspam("classify", "-m", me, "--base", base, "--format", "json", stdin=text).out
        assert json.loads(one)["log_odds"] == pytest.approx(json.loads(line)["log_odds"], abs=1e-9)


def test_a_message_passes_marked(nbspam, base, me):
    mail = b"Subject: hi\n\n" + SPAM + b"\n"
    expected = verdict(nbspam, me, "--base", base, message=mail).split("\t")
    found = nbspam("classify", "-p", "-m", me, "--base", base, stdin=mail)
    assert found.code == 0
    assert f"X-Nbspam: {expected[0]}, probability={expected[1]}"[:-1] in found.out
    assert found.out.endswith(mail.decode().partition("\n\n")[2])


# Learning


def test_without_the_base_the_model_is_as_if_it_had_never_been(nbspam, base, me, tmp_path):
    other = tmp_path / "other.json"
    for path, beneath in ((me, base), (other, None)):
        teach(nbspam, path, beneath, HAM, b"see you soon")
        teach(nbspam, path, beneath, SPAM, b"you have won a prize", label="spam")
    assert lines_without_state(me) == lines_without_state(other)
    assert verdict(nbspam, me) == verdict(nbspam, other)
    assert nbspam("model", "check", "-m", me).code == 0


def test_training_on_many_messages_at_once_does_the_same(nbspam, base, me, sample, tmp_path):
    other = tmp_path / "other.json"
    found = nbspam("train", sample / "sms.tsv", "-m", me, "--base", base)
    assert (found.code, found.err) == (0, "")
    assert nbspam("train", "-q", sample / "sms.tsv", "-m", other).code == 0
    assert lines_without_state(me) == lines_without_state(other)
    assert me.read_bytes() != other.read_bytes()


def test_learning_and_forgetting_leaves_the_counts(nbspam, base, me):
    teach(nbspam, me, base, HAM)
    before = me.read_bytes().partition(b'"tokens": {')[2]
    teach(nbspam, me, base, SPAM, label="spam")
    assert nbspam("forget", "-m", me, "--spam", "-", stdin=SPAM).code == 0
    assert me.read_bytes().partition(b'"tokens": {')[2] == before


def test_a_new_model_has_the_bases_cut_offs(nbspam, base, me, tmp_path):
    strict = tmp_path / "strict.json"
    strict.write_bytes(base.read_bytes())
    assert nbspam("model", "set", "-m", strict, "--spam-cutoff", "0.97").code == 0
    teach(nbspam, me, strict, HAM)
    assert b'"spam_cutoff": 0.97' in me.read_bytes()


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


def test_train_on_error_asks_both_models(nbspam, base, me):
    options = "-m", me, "--base", base, "--on-error", "--sure-from", "0"
    found = nbspam("train", "--update", *options, "--ham", "-", stdin=HAM)
    assert (found.code, found.err) == (0, "")
    assert not me.exists() or b'"messages": [0, 0]' in me.read_bytes()


def test_self_training_counts_the_models_own_messages(nbspam, base, me):
    teach(nbspam, me, base, HAM)
    before = me.read_bytes()
    found = nbspam("classify", "-m", me, "--base", base, "--learn", stdin=HAM)
    assert (found.code, me.read_bytes()) == (0, before)
    assert found.err == ""
    said = " ".join(nbspam("model", "info", "-m", me).out.split())
    assert "has learned 1 ham and 0 spam, so classify --learn learns nothing" in said


def test_self_training_makes_no_model(nbspam, base, me):
    found = nbspam("classify", "-m", me, "--base", base, "--learn", stdin=HAM)
    assert (found.code, me.exists()) == (0, False)


def test_a_merged_model_has_learned_with_no_base(nbspam, base, me, tmp_path):
    teach(nbspam, me, base, HAM)
    merged = tmp_path / "merged.json"
    assert nbspam("model", "merge", "-o", merged, me, base).code == 0
    assert b"with_base" not in merged.read_bytes()


# Explanations and figures


def test_an_explanation_says_what_is_from_the_base(nbspam, base, me):
    teach(nbspam, me, base, HAM)
    text = nbspam("explain", "-m", me, "--base", base, stdin=SPAM).out
    assert "base ham" in text
    assert f"the base {base} counts as" in text
    sentence = "messages of each class beside the model's own 1 ham and 0 spam"
    assert sentence in " ".join(text.split())
    found = json.loads(
        nbspam("explain", "-m", me, "--base", base, "--format", "json", stdin=SPAM).out
    )
    assert found["base"]["own_messages"] == {"ham": 1, "spam": 0}
    assert found["base"]["messages"]["spam"] > 50
    assert {"counts", "base_counts"} <= found["words"][0].keys()
    total = sum(found["constants"].values()) + sum(word["share"] for word in found["words"])
    assert total == pytest.approx(found["log_odds"], abs=1e-9)


def test_a_page_has_the_columns_of_the_base(nbspam, base, me):
    teach(nbspam, me, base, HAM)
    page = nbspam("explain", "-m", me, "--base", base, "--format", "html", stdin=SPAM).out
    assert "base ham" in page


def test_an_explanation_without_a_base_has_none(nbspam, base):
    found = json.loads(nbspam("explain", "-m", base, "--format", "json", stdin=SPAM).out)
    assert "base" not in found
    assert "base_counts" not in found["words"][0]


@pytest.mark.parametrize(
    "way", [(), ("--online", "--batch", "50"), ("--train-first", "30%"), ("--folds", "3")]
)
def test_eval_measures_with_a_base(nbspam, base, me, sample, way):
    if not way:
        teach(nbspam, me, base, HAM)
        way = "-m", me
    found = nbspam("eval", *way, "--base", base, "--format", "json", sample / "sms.tsv")
    assert found.code == 0, found.err
    assert json.loads(found.out)["accuracy"] > 0.9


def test_a_comparison_has_no_base(nbspam, base, sample):
    found = nbspam("eval", "--compare", "all", "--base", base, sample / "sms.tsv")
    assert (found.code, found.out) == (2, "")
    assert "leave out --base" in found.err


# Errors: one sentence, the message whole


def spoiled(base, tmp_path, old, new):
    path = tmp_path / "spoiled.json"
    path.write_bytes(base.read_bytes().replace(old, new, 1))
    return path


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
        "rules": lambda: spoiled(base, tmp_path, b'"rules": ', b'"rules": 1'),
        "cut": lambda: tmp_path / "cut.json",
        "scoring": lambda: spoiled(base, tmp_path, b'"scoring": "evidence"', b'"scoring": "sum"'),
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
    train = nbspam("train", "--update", "-m", me, *source, *options, stdin=SPAM)
    assert train.code == 0, train.err
    before = me.read_bytes()
    for command, more in (("classify", []), ("explain", []), ("train", ["--update", "--ham", "-"])):
        found = nbspam(command, "-m", me, "--base", base, *more, stdin=HAM)
        assert (found.code, found.out) == (1, "")
        assert_one_sentence(found.err.rstrip("\n").removeprefix("nbspam: "), me, says, str(base))
    assert me.read_bytes() == before


def test_a_model_is_no_base_of_its_own(nbspam, base):
    before = base.read_bytes()
    for command, more in (
        ("classify", []),
        ("train", ["--update", "--ham", "-"]),
        ("train", ["--replace", "--ham", "-"]),
    ):
        found = nbspam(command, "-m", base, "--base", base, *more, stdin=HAM)
        assert (found.code, found.out) == (1, "")
        assert "is both the model and its base" in found.err
    assert base.read_bytes() == before


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b'"with_base": {"losses": [', b'"with_base": {"losses": [-1, ', "no losses"),
        (b'"with_base": {"losses"', b'"with_base": {"loss"', "nothing learned with a base"),
        (b'"with_base": {', b'"with_base": 1, "x": {', "nothing learned with a base"),
    ],
)
def test_a_damaged_state_is_told(nbspam, base, me, old, new, says):
    teach(nbspam, me, base, HAM)
    assert old in me.read_bytes()
    me.write_bytes(me.read_bytes().replace(old, new, 1))
    found = nbspam("classify", "-m", me, stdin=HAM)
    assert (found.code, found.out) == (1, "")
    assert_one_sentence(found.err.rstrip("\n").removeprefix("nbspam: "), me, says)
