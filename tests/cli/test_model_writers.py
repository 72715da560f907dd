"""Every command that changes a model keeps its mode, waits for its lock, and says that it waits."""

import fcntl
import stat
import subprocess
import sys
import time

import pytest

from nbspam.serving.teaching import LearnRequest, apply_requests
from nbspam.store import writing
from nbspam.store.writing import QUIET_WAIT, LockWait, locked

COMMANDS = [
    "train --replace messages.tsv",
    "train --update --spam more",
    "train --update -q more.tsv",
    "forget messages.tsv",
    "forget -q messages.tsv",
    "model set --spam-cutoff 0.8",
    "model prune --min-count 2",
    "model merge --replace -o model.json model.json other.json",
    "model import --replace counts.csv",
]


@pytest.fixture
def model(nbspam, make_model, table, tmp_path, monkeypatch):
    """Return a model that everybody may read, beside what the commands need."""
    model = make_model(table)
    (tmp_path / "other.tsv").write_text("spam\tprize\nham\tlunch\n")
    make_model(tmp_path / "other.tsv", name="other.json")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NBSPAM_MODEL", "model.json")
    nbspam("model", "export", "--form", "csv", "-o", "counts.csv")
    (tmp_path / "more").write_text("claim a free prize now\n")
    (tmp_path / "more.tsv").write_text("ham\tclaim a free prize now\n")
    model.chmod(0o644)
    return model


def test_every_command_keeps_the_mode(nbspam, model):
    whole = model.read_bytes()
    for command in COMMANDS:
        model.write_bytes(whole)
        before = model.stat()
        found = nbspam(*command.split())
        assert found.code == 0, (command, found.err)
        after = model.stat()
        assert after.st_ino != before.st_ino, f"{command} has written nothing"
        assert stat.S_IMODE(after.st_mode) == 0o644, command


def test_learning_by_the_server_keeps_the_mode_and_a_new_name_has_its_own(nbspam, model):
    pruned = model.with_name("pruned.json")
    assert nbspam("model", "prune", "--min-count", "2", "-o", pruned).code == 0
    assert stat.S_IMODE(pruned.stat().st_mode) == 0o600
    before = model.stat()
    requests = [LearnRequest(b"Subject: prize\n\nwin\n", is_spam=True)]
    assert apply_requests(model, requests, QUIET_WAIT) == ["learned"]
    after = model.stat()
    assert after.st_ino != before.st_ino
    assert stat.S_IMODE(after.st_mode) == 0o644


@pytest.mark.long
def test_a_lock_that_stays_held(nbspam, model, monkeypatch, assert_sentence):
    before = model.read_bytes()
    short = LockWait(limit=0.05)
    monkeypatch.setattr(writing, "DEFAULT_WAIT", short)
    monkeypatch.setattr(writing, "QUIET_WAIT", short)
    monkeypatch.setattr(locked.__wrapped__, "__defaults__", (short,))
    for command in COMMANDS:
        if command.startswith("classify"):  # test_classify_learn.py
            continue
        with model.with_name(".model.json.lock").open("r+") as holder:
            fcntl.flock(holder, fcntl.LOCK_EX)
            found = nbspam(*command.split())
        assert_sentence(found, "model.json", "its lock", "nothing was changed", code=75)
        assert model.read_bytes() == before, command


@pytest.mark.few(1)
@pytest.mark.parametrize("quiet", [False, True])
def test_a_wait_is_told_and_then_it_is_learned(model, quiet):
    before = model.read_bytes()
    learn = ["train", "--update", *(["-q"] if quiet else []), "--spam", "more"]
    with model.with_name(".model.json.lock").open("r+") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with subprocess.Popen(
            [sys.executable, "-m", "nbspam", *learn],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            said = time.sleep(3) if quiet else process.stderr.readline()
            fcntl.flock(holder, fcntl.LOCK_UN)
            assert process.stderr.read() == ""
    assert process.returncode == 0
    assert model.read_bytes() != before
    waiting = f"nbspam: {model}: waiting for its lock {model.parent}/.model.json"
    assert quiet or said.startswith(waiting)
