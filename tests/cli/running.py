"""Running nbspam in this process or on a terminal, and tables to run it on."""

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from nbspam import __main__ as entry
from nbspam.cli.program import nbspam as group

ROOT = Path(__file__).parents[2]


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def sentences(self):
        """What was printed, each sentence in a line, as before it was folded."""
        return self.out.replace("\n  ", " ")


def commands(command=group, name=""):
    """Yield all commands by their words, such as `model prune`."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            yield from commands(command.get_command(context, below), f"{name} {below}".strip())
    else:
        yield name, command


def run_raw(arguments, stdin=b""):
    """Run nbspam; return its exit code, and what it wrote as bytes."""
    kept = sys.argv, sys.stdin, sys.stdout, sys.stderr
    with contextlib.ExitStack() as stack:
        # Files, because a message passes from file to file.
        streams = [stack.enter_context(tempfile.TemporaryFile("w+", newline="")) for _ in range(3)]
        streams[0].buffer.write(stdin)
        streams[0].seek(0)
        sys.argv = ["nbspam", *map(str, arguments)]
        sys.stdin, sys.stdout, sys.stderr = streams
        try:
            code = entry.run()
        finally:
            for stream in streams[1:]:
                stream.flush()
            sys.argv, sys.stdin, sys.stdout, sys.stderr = kept
            out, err = (os.pread(s.fileno(), 1 << 28, 0) for s in streams[1:])
    return int(code), out, err


def run(arguments, stdin=b""):
    code, out, err = run_raw(arguments, stdin)
    return Result(code, out.decode(), err.decode())


def on_a_terminal(*arguments, **environment):
    """Return what nbspam writes on a terminal."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "nbspam", *map(str, arguments)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={name: value for name, value in os.environ.items() if name != "COLUMNS"}
        | {"TERM": "xterm"}
        | environment,
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # Linux says so at the end
            break
        if not chunk:
            break
        written += chunk
    os.close(ours)
    assert process.wait(60) == 0
    return written.decode()


SPAM = "win a free prize now", "free prize for the winner", "claim the free cash prize today"
HAM = "lunch at noon today", "see you at the meeting", "the meeting notes are here"
PROMO = "sale on shoes this week", "shoes with ten percent off", "new shoes in the shop"


def write_table(path: Path, *rows):
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_messages(folder: Path):
    rows = []
    for i in range(12):
        rows += [("spam", f"{SPAM[i % 3]} {i}"), ("ham", f"{HAM[i % 3]} {i}")]
    rows += [("ham", f"{HAM[i % 3]} again") for i in range(6)]
    return write_table(folder / "messages.tsv", *rows)


def write_three(folder: Path):
    rows = []
    for i in range(8):
        rows += [("ham", HAM[i % 3]), ("promo", PROMO[i % 3]), ("spam", SPAM[i % 3])]
    return write_table(folder / "three.tsv", *rows)
