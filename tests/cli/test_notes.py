"""What is said on standard error of a model that has learned little: once, and to people."""

import os
import pty
import subprocess
import sys

import pytest


@pytest.fixture
def terminal():
    """Return a terminal to write to, and a function that ends it and returns what was written."""
    ours, theirs = pty.openpty()

    def written():
        os.close(theirs)
        found = b""
        try:
            while chunk := os.read(ours, 1 << 16):
                found += chunk
        except OSError:  # how Linux ends a terminal
            pass
        return found.decode()

    yield theirs, written
    os.close(ours)


def classify(stderr, *arguments):
    """Run `classify` with standard error on a terminal."""
    command = [sys.executable, "-m", "nbspam", "classify", *map(str, arguments)]
    subprocess.run(command, input=b"lunch", stdout=subprocess.DEVNULL, stderr=stderr, check=False)


def test_a_young_model_is_told_of_once_and_on_a_terminal(nbspam, model, table, terminal):
    stderr, written = terminal
    classify(stderr, "-m", model, table)
    (line,) = [line for line in written().splitlines() if "young" in line]
    assert line.startswith(f"nbspam: {model}: needs ")
    assert line.endswith("82 more ham and 88 more spam; until then it will often answer 'unsure'")
    assert nbspam("classify", "-m", model, stdin=b"lunch").err == ""  # in a pipe


def test_a_model_that_is_not_young_is_not(make_model, tmp_path, terminal):
    rows = [f"ham\tlunch at noon {i}\nspam\ta free prize {i}\n" for i in range(100)]
    (tmp_path / "many.tsv").write_text("".join(rows))
    stderr, written = terminal
    classify(stderr, "-m", make_model(tmp_path / "many.tsv"))
    assert written() == ""
