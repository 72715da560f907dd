"""Running nbspam: in this process, which is fast, or as a program of its own."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from running import ROOT, Result, run, run_raw, write_messages, write_three


@pytest.fixture
def sample():
    """Return the folder with the sample data."""
    return ROOT / "sample_data"


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory, monkeypatch):
    """Keep the user's own model and settings out of the tests."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in (
        *("NBSPAM_MODEL", "NBSPAM_BASE", "NBSPAM_CONFIG", "XDG_DATA_HOME", "XDG_CONFIG_HOME"),
        *("NO_COLOR", "FORCE_COLOR"),
    ):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def nbspam():
    """Return a function that runs nbspam with arguments, and standard input as bytes."""

    return lambda *arguments, stdin=b"": run(arguments, stdin)


@pytest.fixture
def as_json(nbspam):
    """Return a function that runs a command that says nothing but its JSON, and reads that."""

    def read(*arguments, **options):
        found = nbspam(*arguments, "--format", "json", **options)
        assert (found.code, found.err) == (0, "")
        return json.loads(found.out)

    return read


@pytest.fixture
def passed():
    """Return a function that runs nbspam on a message: its code, bytes and talk."""

    def passing(message, *arguments):
        code, out, err = run_raw(arguments, message)
        return code, out, err.decode()

    return passing


@pytest.fixture
def program():
    """Return a function that runs nbspam as a program of its own."""

    def started(*arguments, shell=None, **options):
        command = [sys.executable, "-m", "nbspam", *map(str, arguments)]
        if shell is not None:  # {} stands for the command
            command = ["sh", "-c", shell.format('"$@"'), "sh", *command]
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        options["env"] = os.environ | {"PYTHONWARNINGS": "error"} | options.get("env", {})
        done = subprocess.run(command, capture_output=True, timeout=60, check=False, **options)
        out, err = (os.fsdecode(written) for written in (done.stdout, done.stderr))
        return Result(done.returncode, out, err)

    return started


@pytest.fixture
def table(tmp_path):
    """Return a table of 12 spam and 18 ham, in turns."""
    return write_messages(tmp_path)


@pytest.fixture
def three_classes(tmp_path):
    """Return a table of 8 ham, 8 promo and 8 spam."""
    return write_three(tmp_path)


@pytest.fixture
def make_model(tmp_path):
    """Return a function that trains a model on a table."""

    def make(table, *options, name="model.json"):
        path = tmp_path / name
        found = run(["train", table, "-m", path, *options])
        assert (found.code, found.err) == (0, "")
        return path

    return make


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory):
    """Return a folder with a model of the table of spam and ham; not to be changed."""
    folder = tmp_path_factory.mktemp("trained")
    found = run(["train", write_messages(folder), "-m", folder / "model.json"])
    assert (found.code, found.err) == (0, "")
    return folder


@pytest.fixture
def model(trained_once, table):
    """Return a model of the table of spam and ham: with its mode, and the lock beside it."""
    for name in ("model.json", ".model.json.lock"):
        shutil.copy(trained_once / name, table.with_name(name))
    return table.with_name("model.json")


@pytest.fixture(scope="session")
def sms_model(tmp_path_factory):
    """Return a model of the sample SMS; not to be changed."""
    path = tmp_path_factory.mktemp("sms") / "sms.json"
    assert run(["train", ROOT / "sample_data" / "fresh.tsv", "-m", path]).code == 0
    return path


@pytest.fixture
def assert_sentence():
    """Return a function that holds a failure to the promise: one sentence, naming what it is of."""

    def check(found, *parts, code=1):
        assert "Traceback" not in found.err
        assert found.out == ""
        assert code == found.code
        assert found.err.startswith("nbspam: ")
        assert found.err.count("\n") == 1
        assert found.err.endswith("\n")
        for part in parts:
            assert str(part) in found.err

    return check
