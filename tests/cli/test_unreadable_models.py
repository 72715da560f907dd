"""A model that may not be read is no wrong usage: one sentence, with its owner and its mode."""

import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import pytest

from nbspam.cli.program import nbspam as group
from nbspam.errors import ModelError
from nbspam.store.lookup import Lookup
from nbspam.store.writing import described_access, locked

ROOT = Path(__file__).parents[2]
NOBODY = 65534
MAIL = b"Subject: prize\n\nfree prize\n"
# It runs twice: first as whoever runs the tests, which loads what it needs, since Python itself may
# be in a folder that nobody else can enter; then as somebody who may not read what is closed.
TWICE = """
import os, pathlib, pwd, sys
import nbspam.cli.notes, nbspam.store.writing
from nbspam_main import run

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
        stdin.write(MAIL)
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
        *("model check", "model export", "model words free"),
    ],
)
def test_it_is_one_sentence_and_a_message_passes_unchanged(shared, command, named):
    options = ("-m", shared) if named else ()
    done = run_closed(shared, *command.split(), *options, NBSPAM_MODEL="" if named else str(shared))
    assert done.stderr.decode() == sentence_on(shared)
    code = 75 if "-p" in command else 3 if "--exit-code" in command else 1
    assert (done.returncode, done.stdout) == (code, MAIL if code == 75 else b"")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "folder, command",
    [
        (True, "classify -m MODEL"),
        (True, "train --update --spam - -m MODEL"),
        (False, "model merge MODEL OTHER -o /dev/null"),
    ],
)
def test_a_closed_folder_is_told_and_merging_names_the_model(shared, model, folder, command):
    closed = shared.parent if folder else shared
    paths = {"MODEL": shared, "OTHER": model}
    done = run_closed(closed, *(paths.get(word, word) for word in command.split()))
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
    assert described_access(path) == f"it belongs to {name} and has mode 0640"
    assert described_access(tmp_path / "none") == ""
    if os.geteuid() == 0:
        os.chown(path, 4321, -1)
        assert described_access(path).startswith("it belongs to number 4321 ")


def parameters(command, context):
    """Yield the parameters of a command and of those below it."""
    yield from command.params
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from parameters(command.get_command(context, name), context)


def test_click_does_not_look_whether_a_file_may_be_read():
    paths = [p for p in parameters(group, click.Context(group)) if isinstance(p.type, click.Path)]
    assert len(paths) > 10
    assert [p.name for p in paths if p.type.readable] == []
