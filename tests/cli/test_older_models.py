"""A model of older tokenizer rules goes on working: in the mail path silently, else with a note."""

import json
import os
import subprocess
import sys

import pytest
from one_case import each

import nbspam.tokens.tokenized as tokenized_module
from nbspam.store.lookup import Lookup
from nbspam.tokens.kinds import NAMES
from nbspam.tokens.tokenized import RULES

SPAM = b"From: a@example.org\nSubject: prize\n\nwin a free prize now\n"
OLDER = RULES - 1
RULES_DIFFER = f"was made with tokenizer rules {OLDER}, and this program has {RULES}: "
SAYS = RULES_DIFFER + (
    "words that are now read differently are not recognised; for full accuracy train again with"
    " nbspam train --replace\n"
)
SAYS_OF_LEARNING = RULES_DIFFER + (
    "a message that is now read differently counts as new, though it was learned before, and"
    " cannot be forgotten; train again with nbspam train --replace\n"
)


def with_rules(model, rules, name="old.json"):
    """Return a copy of a model that was made with these rules."""
    old = model.with_name(name)
    raw = model.read_bytes()
    assert raw.count(b'"rules": %d}' % RULES) == 1
    old.write_bytes(raw.replace(b'"rules": %d}' % RULES, b'"rules": %d}' % rules))
    return old


def with_traits(model, *renamed):
    """Give some traits of a model another name, as of an older program."""
    raw = model.read_bytes()
    for name in renamed:
        assert raw.count(b'"%s": {"ham"' % name.encode()) == 1
        raw = raw.replace(b'"%s": {"ham"' % name.encode(), b'"old %s": {"ham"' % name.encode())
    model.write_bytes(raw)


def rules_of(path):
    with Lookup(path) as lookup:
        return lookup.metadata.settings.rules


@pytest.fixture
def old(model):
    return with_rules(model, OLDER)


@pytest.fixture
def other_tokens(monkeypatch):
    """Let each message have a token more than by the rules before."""
    read = tokenized_module.message_tokens
    more = {"as-by-newer-rules"}
    monkeypatch.setattr(tokenized_module, "message_tokens", lambda *found: read(*found) | more)


# The mail path: a verdict, and nothing else


def test_mail_passes_with_the_verdict_unless_the_rules_are_newer(nbspam, model):
    new = nbspam("classify", "-p", "-m", model, stdin=SPAM)
    assert new.out.count("\nX-Nbspam: spam, probability=") == 1
    assert (new.code, new.err) == (0, "")
    for rules in {1, OLDER}:
        assert nbspam("classify", "-p", "-m", with_rules(model, rules), stdin=SPAM) == new
    newer = with_rules(model, RULES + 1)
    found = nbspam("classify", "-p", "-m", newer, stdin=SPAM)
    assert (found.code, found.out.encode()) == (75, SPAM)
    assert found.err == (
        f"nbspam: {newer}: was made with tokenizer rules {RULES + 1}, newer than this program's"
        f" {RULES}; update nbspam\n"
    )


@each("command", ["classify", "classify --exit-code", "explain"])
def test_a_condition_of_a_recipe_is_silent(nbspam, model, old, command):
    found = nbspam(*command.split(), "-m", old, stdin=SPAM)
    assert found.err == ""
    assert found == nbspam(*command.split(), "-m", model, stdin=SPAM)


@pytest.mark.long
def test_a_reader_of_one_message_is_told(old):
    pty = pytest.importorskip("pty")
    for command in ("classify", "explain"):
        ours, theirs = pty.openpty()
        done = subprocess.run(
            [sys.executable, "-m", "nbspam", command, "-m", str(old)],
            input=SPAM,
            stdout=subprocess.PIPE,
            stderr=theirs,
        )
        os.close(theirs)
        said = os.read(ours, 1 << 16).decode().replace("\r\n", "\n")
        os.close(ours)
        assert (done.returncode, said.count(SAYS)) == (0, 1)


# Who asks a model something is told, once


def test_a_classification_of_many(nbspam, model, old, table):
    found = nbspam("classify", "-m", old, table)
    assert found.err == f"nbspam: {old}: {SAYS}"
    assert (found.code, found.out) == (0, nbspam("classify", "-m", model, table).out)


@each("options", [(), ("-q",)])
def test_an_evaluation(nbspam, old, table, options):
    found = nbspam("eval", "-m", old, "--including-learned", table, *options)
    assert found.code == 0
    assert found.err.count(f"nbspam: {old}: {SAYS}") == (not options)


def test_what_a_model_says_of_itself(nbspam, model, old):
    for path, rules, said in ((old, OLDER, f"nbspam: {old}: {SAYS}"), (model, RULES, "")):
        found = nbspam("model", "info", "-m", path)
        assert (found.code, found.err) == (0, said)
        assert f"\ntokenizer   rules {rules}\n" in found.out
    found = nbspam("model", "info", "-m", old, "--format", "json")
    assert found.err == ""
    fields = json.loads(found.out)
    assert (fields["rules"], fields["program_rules"]) == (OLDER, RULES)


def test_a_base_beneath_is_named(nbspam, old, table, tmp_path):
    me = tmp_path / "me.json"
    classify = ("classify", table, "--base", old, "-m")
    with_base = "train", "--update", "-m", me, "--base", old
    assert nbspam(*classify, me)[::2] == (0, f"nbspam: {old}: {SAYS}")
    assert nbspam(*with_base, "--ham", "-", stdin=b"lo").code == 0
    assert rules_of(me) == RULES
    assert nbspam(*classify, me)[::2] == (0, f"nbspam: {old}: {SAYS}")
    mine = with_rules(me, 1, "mine.json")
    named = [line.split(": ")[1] for line in nbspam(*classify, mine).err.splitlines()]
    assert named == [str(mine), str(old)]


# What changes a model keeps its rules


@each(
    "command",
    [
        *("model check", "model words free", "model set --spam-cutoff 0.95"),
        *("model prune --min-count 2", "explain --words"),
    ],
)
def test_other_commands_go_on(nbspam, old, command):
    found = nbspam(*command.split(), "-m", old)
    assert (found.code, found.err) == (0, "")
    assert rules_of(old) == OLDER
    assert nbspam("model", "check", "-m", old).code == 0


def test_learning_and_forgetting(nbspam, old, tmp_path):
    """What is read as before is known as before, counted once, and can be forgotten."""
    new = tmp_path / "new.tsv"
    new.write_text("spam\tplugh xyzzy\nham\tlunch at noon today 0\n")
    before = json.loads(old.read_bytes())
    found = nbspam("train", "--update", "-m", old, new)
    assert (found.code, found.err) == (0, f"nbspam: {old}: {SAYS_OF_LEARNING}")
    assert "learned 1 new message, moved 0 to another class, 1 already known" in found.sentences
    assert rules_of(old) == OLDER
    found = nbspam("forget", "-m", old, "--spam", new, "--lines")
    assert (found.code, found.err) == (0, f"nbspam: {old}: {SAYS_OF_LEARNING}")
    assert rules_of(old) == OLDER
    assert nbspam("forget", "-q", "-m", old, new).err == ""
    after = json.loads(old.read_bytes())
    assert before["tokens"].keys() >= after["tokens"].keys()


def test_one_message_is_learned_and_forgotten_silently(nbspam, old):
    for command in (("train", "--update"), ("forget",)):
        assert nbspam(*command, "-m", old, "--spam", "-", stdin=SPAM) == (0, "", "")


def test_a_message_that_is_read_differently_counts_as_new(nbspam, old, table, other_tokens):
    """And cannot be forgotten, by tokens that were never counted."""
    before = json.loads(old.read_bytes())
    found = nbspam("forget", "-j1", "-m", old, table)
    assert "forgot 0 messages, 30 had not been learned" in found.sentences
    assert json.loads(old.read_bytes()) == before
    found = nbspam("train", "--update", "-j1", "-m", old, table, "--format", "json")
    assert found.err == f"nbspam: {old}: {SAYS_OF_LEARNING}"
    assert json.loads(found.out)["learned"] == 30
    assert json.loads(old.read_bytes())["messages"] == [36, 24]
    assert nbspam("model", "check", "-m", old).code == 0


def test_a_new_model_in_its_place_is_of_this_program(nbspam, old, table):
    found = nbspam("train", "--replace", "-m", old, table)
    assert (found.code, found.err, rules_of(old)) == (0, "", RULES)


def test_merged_models_have_the_oldest_rules(nbspam, old, make_model, tmp_path):
    table = tmp_path / "other.tsv"
    table.write_text("spam\tplugh xyzzy\nham\tlunch alone\n")
    models = [old, make_model(table, name="other.json")]
    out = tmp_path / "merged.json"
    for order in (models, models[::-1]):
        found = nbspam("model", "merge", *order, "-o", out, "--replace")
        assert (found.code, found.err) == (0, f"nbspam: {out}: {SAYS_OF_LEARNING}")
        assert rules_of(out) == OLDER


# Counts can be exported, whatever the model


@each("form", ["csv", "bogofilter"])
def test_counts_are_exported(nbspam, model, form):
    expected = nbspam("model", "export", "--form", form, "-m", model)
    assert (expected.code, expected.err) == (0, "")
    assert nbspam("model", "export", "--form", form, "-m", with_rules(model, 1)) == expected
    foreign = with_rules(model, RULES + 1)
    raw = foreign.read_bytes().replace(b'"name": "nbspam"', b'"name": "other"')
    foreign.write_bytes(raw.replace(b'"coefficients"', b'"others"'))
    with_traits(foreign, "hops", "words")
    assert nbspam("model", "info", "-m", foreign).code == 1
    assert nbspam("model", "export", "--form", form, "-m", foreign) == expected


# Other traits


@pytest.mark.few(1)
@pytest.mark.parametrize("options", [(), ("--traits", "gaussian", "--scoring", "sum")])
def test_traits_that_are_not_known_are_left_out(
    nbspam, make_model, sample, tmp_path, monkeypatch, options
):
    """Classified alone, or with a table of the tokens."""
    table = tmp_path / "some.tsv"
    rows = (sample / "sms.tsv").read_text().splitlines(keepends=True)
    table.write_text("".join(rows[::5]))
    old = with_rules(make_model(table, *options), OLDER)

    def probabilities(*sources, **stdin):
        found = nbspam("classify", "-j1", "-m", old, "--format", "json", *sources, **stdin)
        assert found.code == 0
        return [json.loads(line)["probability"] for line in found.out.splitlines()]

    full = probabilities(table)
    with_traits(old, "words", "hops")
    once = probabilities(table)
    with monkeypatch.context() as patched:
        patched.setattr("nbspam.filter._SHARE_JUDGED", 1e-9)  # a table pays for any number
        many = probabilities(table)
    assert once != full
    assert many == pytest.approx(once, abs=1e-9)
    texts = [line.partition("\t")[2].encode() for line in table.read_text().splitlines()]
    for text, among_others in list(zip(texts, once, strict=True))[:3]:
        assert probabilities(stdin=text) == pytest.approx([among_others], abs=1e-9)
    assert nbspam("explain", "-m", old, stdin=SPAM).code == 0
    new = tmp_path / "new.tsv"
    new.write_text("spam\tplugh xyzzy\nham\tlunch alone\n")
    assert nbspam("train", "--update", "-m", old, new).code == 0
    histograms = json.loads(old.read_bytes())["traits"]["histograms"]
    assert tuple(histograms) == NAMES
    assert sum(histograms["words"]["ham"]["counts"]) == 1
    assert nbspam("model", "check", "-m", old).code == 0
    assert "forgot 2 messages" in nbspam("forget", "-m", old, new).sentences
    assert json.loads(old.read_bytes())["traits"]["histograms"]["words"]["ham"]["counts"] == []
    assert len(probabilities(table)) == len(once)
    out = tmp_path / "merged.json"
    found = nbspam("model", "merge", old, make_model(new, *options, "--replace"), "-o", out)
    assert found.code == 0
    assert nbspam("model", "check", "-m", out).code == 0
