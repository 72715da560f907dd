"""Whoever may read a shared model may read it after every command that writes it."""

import stat

import pytest

from nbspam.serving.tell import LearnRequest, apply_requests
from nbspam.store.lock import QUIET_WAIT

M = ("-m", "model.json")
COMMANDS = {
    "train --update": ["train", "--update", *M, "--spam", "more"],
    "train --update --on-error": ["train", "--update", "--on-error", *M, "more.tsv"],
    "train --replace": ["train", "--replace", *M, "messages.tsv"],
    "classify --learn": ["classify", "--learn", "--learn-from", "0.5", *M, "more"],
    "forget": ["forget", *M, "messages.tsv"],
    "set": ["model", "set", *M, "--spam-cutoff", "0.8"],
    "prune": ["model", "prune", *M, "--min-count", "2"],
    "merge": ["model", "merge", "--replace", "-o", "model.json", "model.json", "other.json"],
    "import": ["model", "import", "--replace", *M, "counts.csv"],
}


@pytest.fixture
def shared(nbspam, make_model, table, tmp_path, monkeypatch):
    """Return a model that everybody may read."""
    model = make_model(table)
    (tmp_path / "other.tsv").write_text("spam\tprize\nham\tlunch\n")
    make_model(tmp_path / "other.tsv", name="other.json")
    monkeypatch.chdir(tmp_path)
    nbspam("model", "export", "--form", "csv", *M, "-o", "counts.csv")
    (tmp_path / "more").write_text("claim a free prize now\n")
    (tmp_path / "more.tsv").write_text("ham\tclaim a free prize now\n")
    model.chmod(0o644)
    return model


def test_every_command_keeps_the_mode(nbspam, shared, monkeypatch):
    monkeypatch.setattr("nbspam.learning.self_training.FEWEST", 1)
    whole = shared.read_bytes()
    for name, command in COMMANDS.items():
        shared.write_bytes(whole)
        before = shared.stat()
        found = nbspam(*command)
        assert found.code == 0, (name, found.err)
        after = shared.stat()
        assert after.st_ino != before.st_ino, f"{name} has written nothing"
        assert stat.S_IMODE(after.st_mode) == 0o644, name


def test_learning_by_the_server_keeps_the_mode(shared):
    before = shared.stat()
    requests = [LearnRequest(b"Subject: prize\n\nwin\n", is_spam=True)]
    assert apply_requests(shared, requests, QUIET_WAIT) == ["learned"]
    after = shared.stat()
    assert after.st_ino != before.st_ino
    assert stat.S_IMODE(after.st_mode) == 0o644


def test_a_model_under_a_new_name_is_its_makers_alone(nbspam, shared):
    pruned = shared.with_name("pruned.json")
    assert nbspam("model", "prune", "-m", shared, "--min-count", "2", "-o", pruned).code == 0
    assert stat.S_IMODE(pruned.stat().st_mode) == 0o600
