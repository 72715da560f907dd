"""Every command that changes a model says that it waits, gives up, and changes nothing."""

import fcntl
import subprocess
import sys
import time

import pytest

from nbspam.store import lock
from nbspam.store.lock import LockWait, locked

TABLE = "".join(f"spam\tfree prize {i}\nham\tlunch at noon {i}\n" for i in range(5))


@pytest.fixture
def models(nbspam, tmp_path):
    for name in ("model.json", "other.json"):
        (tmp_path / "table.tsv").write_text(TABLE + f"ham\t{name}\n")
        nbspam("train", "-q", "-m", tmp_path / name, tmp_path / "table.tsv")
    return tmp_path


COMMANDS = {
    "train": ["train", "--replace", "-m", "model.json", "table.tsv"],
    "train --update": ["train", "--update", "-m", "model.json", "--spam", "table.tsv", "--lines"],
    "train --update, quietly": ["train", "--update", "-q", "-m", "model.json", "table.tsv"],
    "forget": ["forget", "-m", "model.json", "table.tsv"],
    "forget, quietly": ["forget", "-q", "-m", "model.json", "table.tsv"],
    "set": ["model", "set", "-m", "model.json", "--spam-cutoff", "0.8"],
    "prune": ["model", "prune", "-m", "model.json", "--min-count", "2"],
    "merge": ["model", "merge", "--replace", "--allow-overlap", "-o", "model.json", "other.json"],
    "import": ["model", "import", "--replace", "-m", "model.json", "counts.csv"],
}


def test_a_lock_that_stays_held(nbspam, models, monkeypatch, assert_sentence):
    model = models / "model.json"
    monkeypatch.chdir(models)
    nbspam("model", "export", "--form", "csv", "-m", "model.json", "-o", "counts.csv")
    before = model.read_bytes()
    short = LockWait(limit=0.1)
    monkeypatch.setattr(lock, "DEFAULT_WAIT", short)
    monkeypatch.setattr(lock, "QUIET_WAIT", short)
    monkeypatch.setattr(locked.__wrapped__, "__defaults__", (short,))
    for name, command in COMMANDS.items():
        model.write_bytes(before)
        with (models / ".model.json.lock").open("r+") as holder:
            fcntl.flock(holder, fcntl.LOCK_EX)
            found = nbspam(*command)
        assert_sentence(found, model, "its lock", "nothing was changed", code=75)
        assert model.read_bytes() == before, name
        assert nbspam(*command).code == 0, name


@pytest.mark.few(1)
@pytest.mark.parametrize("quiet", [False, True])
def test_a_wait_is_told_and_then_it_is_learned(models, quiet):
    model = models / "model.json"
    before = model.read_bytes()
    options = ["-q"] if quiet else []
    learn = ["train", "--update", *options, "-m", model, "--spam", models / "table.tsv", "--lines"]
    with (models / ".model.json.lock").open("r+") as holder:
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
    assert quiet or said.startswith(f"nbspam: {model}: waiting for its lock {models}/.model.json")
