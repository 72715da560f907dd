"""Models that are of an older program, that may not be read, or that are none."""

import json
import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import pytest
from running import ROOT, commands

from nbspam.errors import ModelError
from nbspam.store.lookup import Lookup
from nbspam.store.writing import describe_access, locked
from nbspam.tokens.tokenized import TOKENIZER_VERSION

SPAM = b"From: a@example.org\nSubject: prize\n\nwin a free prize now\n"


def test_a_model_of_one_class_is_an_error_or_unsure(nbspam, model, assert_sentence):
    fields = json.loads(model.read_text())
    lines = model.read_text().split('"tokens": {\n')[0].splitlines()
    derived = {"tokens": 1, "bias": [-1.0], "count_histograms": [{"1": 1}]}
    changed = {"classes": ["spam"], "messages": [3], "derived": derived}
    head = [lines[0]]
    for key, value in fields.items():
        if key not in ("format", "version", "tokens", "learned"):
            head.append(f'"{key}": {json.dumps(changed.get(key, value))},')
    model.write_text("\n".join(head) + '\n"tokens": {\n"free": [1]\n},"learned": {\n}}\n')
    found = nbspam("classify", "-m", model, stdin=b"free")
    if found.code:
        assert_sentence(found, model)
    else:
        assert found.out.startswith("unsure\t0.5000\t")


# Older tokenizer rules

SAYS = (
    f"was made with tokenizer rules {TOKENIZER_VERSION - 1}, and this program has"
    f" {TOKENIZER_VERSION}: "
)
RULES_OF = b'"rules": %d}'


@pytest.fixture
def older():
    """Return a function that gives a model the rules before, and some traits other names."""

    def change(model, *renamed):
        raw = model.read_bytes().replace(
            RULES_OF % TOKENIZER_VERSION, RULES_OF % (TOKENIZER_VERSION - 1)
        )
        assert raw.count(RULES_OF % (TOKENIZER_VERSION - 1)) == 1
        for name in renamed:
            head = b'"%s": {"ham"' % name.encode()
            assert raw.count(head) == 1
            raw = raw.replace(head, b'"old ' + head[1:])
        model.write_bytes(raw)
        return model

    return change


def test_a_model_that_is_replaced_by_an_older_one_meanwhile_learns_nothing(
    nbspam, model, older, table, monkeypatch
):
    """After the first look at it, and before it is locked."""
    monkeypatch.setattr("nbspam.learning.update.open_for_learning", Lookup)
    before = older(model).read_bytes()
    for command in (["train", "--update", "--no-ledger"], ["forget"]):
        assert nbspam(*command, "-m", model, table).err.startswith(f"nbspam: {model}: {SAYS[:-2]}")
    assert model.read_bytes() == before


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("--traits", "gaussian", "--scoring", "sum")])
def test_traits_that_are_not_known_are_left_out(
    nbspam, make_model, older, sample, tmp_path, monkeypatch, options
):
    """Classified alone, or with a table of the tokens."""
    table = tmp_path / "some.tsv"
    rows = (sample / "sms.tsv").read_text().splitlines(keepends=True)
    table.write_text("".join(rows[::5]))
    old = older(make_model(table, *options, name="old.json"))

    def probabilities(*sources, **stdin):
        found = nbspam("classify", "-j1", "-m", old, "--format", "json", *sources, **stdin)
        assert found.code == 0
        return [json.loads(line)["probability"] for line in found.out.splitlines()]

    full = probabilities(table)
    older(old, "words", "hops")
    once = probabilities(table)
    with monkeypatch.context() as patched:
        patched.setattr("nbspam.scoring.version.BREAK_EVEN", -1e9)  # a table pays for any number
        many = probabilities(table)
    assert once != full
    assert many == pytest.approx(once, abs=1e-9)
    texts = [line.partition("\t")[2].encode() for line in table.read_text().splitlines()]
    for text, among_others in list(zip(texts, once, strict=True))[:3]:
        assert probabilities(stdin=text) == pytest.approx([among_others], abs=1e-9)
    assert nbspam("explain", "-m", old, stdin=SPAM).code == 0


# A model that may not be read: one sentence, with its owner and its mode

NOBODY = 65534

TWICE = """
import os, pathlib, pwd, sys
import nbspam.cli.notes, nbspam.store.writing
from nbspam.__main__ import run

def flushed_run():
    code = run()
    sys.stdout.flush(), sys.stderr.flush()
    return code

closed = sys.argv.pop(1)
kept, null = (os.dup(1), os.dup(2)), os.open(os.devnull, os.O_RDWR)
os.dup2(null, 1), os.dup2(null, 2)
flushed_run()
os.dup2(kept[0], 1), os.dup2(kept[1], 2)
os.lseek(0, 0, os.SEEK_SET)
os.chmod(closed, 0)
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
os._exit(flushed_run())
"""


def run_closed(closed, *arguments, **environment):
    """Run nbspam as a user who may not open the file or folder `closed`."""
    with tempfile.TemporaryFile() as stdin:
        stdin.write(SPAM)
        stdin.seek(0)
        return subprocess.run(
            [sys.executable, "-c", TWICE, closed, *map(str, arguments)],
            stdin=stdin,
            capture_output=True,
            timeout=60,
            check=False,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        )


@pytest.fixture
def shared(model):
    """Return a model in a folder that everybody can enter, unlike pytest's."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        inner = Path(folder, "inner")
        inner.mkdir()
        path = inner / "model.json"
        path.write_bytes(model.read_bytes())
        yield path
        inner.chmod(0o755)


def name_of(number):
    return pwd.getpwuid(number).pw_name


def sentence_on(path):
    reader = name_of(NOBODY if os.geteuid() == 0 else os.geteuid())
    return (
        f"nbspam: {path}: the model cannot be read by {reader} (Permission denied): it belongs to"
        f" {name_of(os.geteuid())} and has mode 0000; let its owner change the mode with chmod,"
        " or name another\n"
    )


@pytest.mark.few(3)
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    "command",
    [
        *("classify -p", "classify --exit-code", "classify", "explain", "model info"),
        "model check",
    ],
)
def test_it_is_one_sentence_and_a_message_passes_unchanged(shared, command, named):
    options = ("-m", shared) if named else ()
    done = run_closed(shared, *command.split(), *options, NBSPAM_MODEL="" if named else str(shared))
    assert done.stderr.decode() == sentence_on(shared)
    code = 75 if "-p" in command else 3 if "--exit-code" in command else 1
    assert (done.returncode, done.stdout) == (code, SPAM if code == 75 else b"")


@pytest.mark.few(1)
@pytest.mark.parametrize("command", ["classify", "train --update --spam -"])
def test_a_closed_folder_is_told(shared, command):
    done = run_closed(shared.parent, *command.split(), "-m", shared)
    assert (done.returncode, done.stdout) == (1, b"")
    said = done.stderr.decode()
    assert said.startswith(f"nbspam: {shared}: ")
    assert "Permission denied" in said
    assert said.count("\n") == 1


def test_a_library_gets_an_error_of_ours(tmp_path, monkeypatch):
    """Not the system's own, though a closed folder does not even say whether the file is there."""

    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", path)

    path = tmp_path / "model.json"
    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "stat", refuse)
    with pytest.raises(ModelError, match=r"a folder above it is closed; "):
        Lookup(path)
    with pytest.raises(ModelError, match=r"model.json: cannot be "), locked(path):
        pass


def test_whose_a_file_is(tmp_path):
    path = tmp_path / "x"
    path.touch()
    path.chmod(0o640)
    name = name_of(os.geteuid())
    assert describe_access(path) == f"it belongs to {name} and has mode 0640"
    assert describe_access(tmp_path / "none") == ""
    if os.geteuid() == 0:
        os.chown(path, 4321, -1)
        assert describe_access(path).startswith("it belongs to number 4321 ")


def test_click_does_not_look_whether_a_file_may_be_read():
    every = (param for _, command in commands() for param in command.params)
    paths = [param for param in every if isinstance(param.type, click.Path)]
    assert len(paths) > 10
    assert [p.name for p in paths if p.type.readable] == []


def test_the_models_of_a_site_in_a_table(nbspam, tmp_path):
    """A personal model that is read through a base is not said to be young."""
    (tmp_path / "ham").write_bytes(SPAM.replace(b"prize", b"notes"))
    (tmp_path / "spam").write_bytes(SPAM)
    base, own = tmp_path / "base.json", tmp_path / "own.json"
    sources = "--ham", tmp_path / "ham", "--spam", tmp_path / "spam"
    assert nbspam("train", "-q", "-m", base, *sources).code == 0
    add = "train", "--update", "-q", "-m", own, "--base", base, "--spam", tmp_path / "spam"
    assert nbspam(*add).code == 0
    heads, first, second = nbspam("model", "info", base, own).out.splitlines()
    assert heads.split() == ["model", "bytes", "tokens", "rules", "learned"]
    assert first.startswith(f"{base} ")
    assert second.endswith("ham: 0, spam: 1")
    for model, is_young in ((base, True), (own, False)):
        assert ("until then it will often answer" in nbspam("model", "info", model).out) == is_young
    lines = nbspam("model", "info", base, own, "--format", "json").out.splitlines()
    assert [json.loads(line)["model"] for line in lines] == [str(base), str(own)]
