"""A lock that another holds: waited for, told of, and given up."""

import errno
import fcntl
import os
import pwd
import re
import threading
import time
from contextlib import contextmanager

import pytest
from small_models import assert_one_sentence

from nbspam.errors import LockedError, ModelError
from nbspam.store import writing as lock_module
from nbspam.store.writing import DEFAULT_WAIT, QUIET_WAIT, LockWait, locked


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(b"old")
    return path


def lock_of(model):
    return model.with_name(f".{model.name}.lock")


@contextmanager
def held(model):
    with locked(model):
        yield os.getpid()


def test_a_long_wait_is_told_once_and_given_up_and_the_holder_named(model, monkeypatch):
    monkeypatch.setattr(lock_module, "_SILENT", 0.1)
    said = []
    with (
        held(model) as pid,
        pytest.raises(LockedError) as error,
        locked(model, LockWait(limit=0.3, say=said.append)),
    ):
        pytest.fail("it is not ours")
    (sentence,) = said
    assert sentence.startswith(f"{model}: waiting for its lock {lock_of(model)}, held by process ")
    assert re.search(rf"\b{pid} \(.*python", sentence)
    assert_one_sentence(error, model, str(lock_of(model)), f"process {pid}", "nothing was changed")
    assert error.value.exit_code == 75
    with locked(model, LockWait(0)):  # the first attempt is always made
        pass


def test_a_short_wait_is_not_told(model):
    said, done = [], []

    def wait():
        with locked(model, LockWait(say=said.append)):
            done.append(True)

    with locked(model):
        other = threading.Thread(target=wait)
        other.start()
        time.sleep(0.05)
    other.join(10)
    assert (said, done) == ([], [True])


def test_it_is_given_up_when_the_waiter_is_told_to(model):
    over = threading.Event()
    threading.Timer(0.05, over.set).start()
    with held(model), pytest.raises(LockedError), locked(model, LockWait(is_over=over.is_set)):
        pytest.fail("it is not ours")


def test_without_the_systems_list_the_holder_is_another_program(model, monkeypatch):
    monkeypatch.setattr(lock_module.Path, "read_text", lambda _: "1: POSIX\n2: -> FLOCK x\n")
    with held(model), pytest.raises(LockedError, match="held by another program"):
        locked(model, LockWait(0)).__enter__()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_a_strangers_lock_is_told(model):
    os.chown(model, 1234, 1234)
    lock = lock_of(model)
    lock.touch()
    for owner, name in ((4321, "number 4321"), (65534, "nobody")):
        os.chown(lock, owner, owner)
        with lock.open("r+") as stranger:
            fcntl.flock(stranger, fcntl.LOCK_EX)
            with pytest.raises(LockedError) as error:
                locked(model, LockWait(0)).__enter__()
        said = f"belongs to another user, {name}"
        assert_one_sentence(error, model, said, "only you can write to")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_a_strangers_lock_that_cannot_be_opened_is_told(model, monkeypatch):
    lock = lock_of(model)
    lock.touch(0o600)
    os.chown(lock, 4321, 4321)
    real = os.open

    def refuse(path, flags, *mode):  # root may open everything
        if path == lock and not flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *mode)

    monkeypatch.setattr(lock_module.os, "open", refuse)
    with pytest.raises(ModelError) as error:
        locked(model).__enter__()
    monkeypatch.undo()
    assert_one_sentence(error, model, "Permission denied", "another user, number 4321")


def test_by_default_a_wait_is_logged(model, caplog, monkeypatch):
    monkeypatch.setattr(lock_module, "_SILENT", 0.05)
    with held(model):
        waiter = threading.Thread(target=lambda: locked(model).__enter__())
        waiter.start()
        ends = time.monotonic() + 30
        while "waiting" not in caplog.text and time.monotonic() < ends:
            time.sleep(0.01)
    waiter.join(30)
    assert "waiting for its lock" in caplog.text
    assert DEFAULT_WAIT.limit == QUIET_WAIT.limit == 300
    caplog.clear()
    QUIET_WAIT.say("x")
    assert caplog.text == ""


def test_a_lock_of_the_models_owner_is_told_to_whoever_else_wants_it(model, monkeypatch):
    """As a reader of a shared model gets it who tries to teach it."""
    opened = os.open

    def refuse(path, flags, *mode):
        if not flags & os.O_EXCL:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(path, flags, *mode)

    lock_of(model).touch()
    owner = pwd.getpwuid(os.geteuid()).pw_name
    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    with pytest.raises(ModelError) as error, locked(model):
        pytest.fail("it is not ours")
    said = f"only {owner} can change it: run it as them"
    assert_one_sentence(error, model, str(lock_of(model)), "Permission denied", said)
