"""The recipes of docs/mail-recipes.md, read out of it, and a home for them to be run in."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_data" / "mail"
DOCUMENT = ROOT / "docs" / "mail-recipes.md"
OURS = re.compile(rb"^X-Nbspam: (spam|ham|unsure), .*\n", re.M)


def recipes():
    """Return the recipes by name: the fenced blocks whose opening line gives a name after the kind."""
    text = DOCUMENT.read_text(encoding="utf-8")
    found = re.findall(r"^```\S+ (\S+)\n(.*?)^```$", text, re.M | re.S)
    assert len(dict(found)) == len(found), "two recipes of one name"
    return dict(found)


@pytest.fixture
def recipe():
    """Return a function that gives the text of a recipe by its name."""

    return recipes().__getitem__


def need(*programs):
    """Skip the test where one of the programs that it drives is not installed."""
    for program in programs:
        if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
            pytest.skip(f"{program} is not installed")


def install(home, path="bin/nbspam"):
    """Put the program of this source tree where a user would have it installed."""
    program = home / ".local" / path
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={ROOT} PYTHONWARNINGS=error exec {sys.executable} -m nbspam "$@"\n'
    )
    program.chmod(0o755)
    return program


class Ended(NamedTuple):
    code: int
    out: bytes
    err: str


class Home:
    """A user's home: nbspam in ~/.local/bin, a Maildir, and perhaps a model."""

    def __init__(self, path):
        self.path = path
        self.maildir = path / "Maildir"
        self.model = path / ".local" / "share" / "nbspam" / "model.json"
        # what a mail server or cron gives the programs that it starts, and no more
        self.environment = {
            "HOME": str(path),
            "PATH": "/usr/bin:/bin",
            "SHELL": "/bin/sh",
            "LOGNAME": "hal",
            "USER": "hal",
        }
        self.program = install(path)
        for folder in (self.maildir, self.maildir / ".Junk"):
            for part in ("cur", "new", "tmp"):
                (folder / part).mkdir(parents=True)

    def run(self, *command, stdin=b"", **options):
        """Run a program as the user."""
        done = subprocess.run(
            [str(part) for part in command],
            input=stdin,
            capture_output=True,
            timeout=60,
            check=False,
            env=self.environment,
            cwd=self.path,
            **options,
        )
        return Ended(done.returncode, done.stdout, done.stderr.decode())

    def nbspam(self, *arguments, **options):
        return self.run(self.program, *arguments, **options)

    def write(self, name, text, mode=0o600):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    def files(self, folder="."):
        """Return the files of the messages in a folder of the Maildir, oldest first."""
        parts = [self.maildir / folder / part for part in ("cur", "new")]
        found = [path for part in parts if part.is_dir() for path in part.iterdir()]
        return sorted(found, key=lambda path: path.stat().st_mtime_ns)

    def mails(self, folder="."):
        return [path.read_bytes() for path in self.files(folder)]

    def everything(self):
        """Return all messages that are in a Maildir, wherever."""
        return [path for path in self.maildir.rglob("*") if path.parent.name in ("cur", "new")]


@pytest.fixture
def home(tmp_path):
    """Return a home without a model."""
    return Home(tmp_path / "home")


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """Return a model of the sample mail; not to be changed."""
    folder = tmp_path_factory.mktemp("recipes")
    trained = folder / "model.json"
    program = install(folder)
    sources = ("--ham", SAMPLE / "ham", "--spam", SAMPLE / "spam.mbox")
    subprocess.run([program, "train", "-m", trained, *sources], check=True, capture_output=True)
    return trained


@pytest.fixture
def trained(home, model):
    """Return a home with a model of the sample mail."""
    home.model.parent.mkdir(parents=True)
    shutil.copy(model, home.model)
    return home


def verdict(delivered):
    """Return the verdict in a message's one header of ours."""
    (found,) = OURS.findall(delivered)
    return found.decode()


def bare(delivered):
    """Return a message without its one header of ours, which must be the last one."""
    header, blank, body = delivered.partition(b"\n\n")
    lines = (header + b"\n").splitlines(keepends=True)
    assert OURS.fullmatch(lines[-1]), header
    return b"".join(lines[:-1]) + blank[1:] + body
