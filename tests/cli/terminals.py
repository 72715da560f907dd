"""Running nbspam on a terminal of its own."""

import os
import subprocess
import sys

import pytest


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
