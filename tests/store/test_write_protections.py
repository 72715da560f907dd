"""What a failed or hostile write must not do: each test fails without the protection."""

import os

import pytest

from nbspam.errors import ModelError
from nbspam.store import writing
from nbspam.store.writing import locked, write_atomically


def test_a_link_in_the_locks_place_is_not_followed(tmp_path, monkeypatch):
    """Else a stranger's link would have another file opened, and locked."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / ".model.json.lock").symlink_to(victim)
    monkeypatch.setattr(writing, "_is_at", lambda *_: True)  # which finds the link out later
    with pytest.raises(ModelError, match="cannot be locked"), locked(tmp_path / "model.json"):
        pass
    assert victim.read_bytes() == b"precious"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("place", ["write", "fsync", "rename"])
def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch, error, place):
    model = tmp_path / "model.json"
    model.write_bytes(b"old")

    def fail(*_):
        raise error

    if place == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    elif place == "rename":
        monkeypatch.setattr("pathlib.Path.replace", fail)
    write = fail if place == "write" else lambda file: file.write(b"new")
    with pytest.raises((ModelError, KeyboardInterrupt)):
        write_atomically(model, write)
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]
    assert model.read_bytes() == b"old"
