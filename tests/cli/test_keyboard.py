"""A message that is typed: what is waited for is said, and one Ctrl-D ends it."""

import os
import subprocess
import sys

import pytest
from one_case import each


@each(
    "command, said",
    [
        ("classify", "spam\t"),
        ("classify -p", "X-Nbspam: spam, "),
        ("explain", "-: spam, "),
        ("train --update --spam -", ""),
        ("forget --spam -", ""),
    ],
)
def test_one_ctrl_d_ends_a_message(model, command, said):
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "nbspam", *command.split(), "-m", model]
    process = subprocess.Popen(
        words, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    os.close(theirs)
    os.write(ours, b"win a free prize now\n\4")
    out, err = process.communicate(timeout=30)
    os.close(ours)
    assert (process.returncode, said in out) == (0, True)
    assert err == "nbspam: type or paste a message, then press Ctrl-D on a line of its own\n"
