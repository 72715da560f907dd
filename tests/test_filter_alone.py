"""A mail filter needs click alone: it serves, and draws nothing, without any other package.

The commands are in tests/golden/cli/sessions/alone.txt.
"""

import os
import pty
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest

import nbspam

ROOT = Path(__file__).parents[1]
MAIL = b"Subject: prize\n\nwin a free cash prize today\n"


@pytest.fixture
def alone(tmp_path):
    """Return how to start a Python that finds nbspam and click, and nothing else, with a model."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for path in (ROOT / "nbspam", Path(click.__file__).parent):
        (packages / path.name).symlink_to(path)
    nbspam.train(ROOT / "sample_data" / "fresh.tsv").save(tmp_path / "model.json")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NBSPAM_")}
    env = kept | {"PYTHONPATH": str(packages), "HOME": str(tmp_path), "NBSPAM_MODEL": "model.json"}
    command = [sys.executable, "-S", "-m", "nbspam"]
    return lambda *words, **streams: subprocess.Popen(
        [*command, *words], env=env, cwd=tmp_path, **streams
    )


def test_it_serves(alone, tmp_path):
    size = f"Content-length: {len(MAIL)}\r\n\r\n".encode()
    with alone("serve", "--tell", "--socket", "socket", stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr.readline() == b"nbspam: serving model.json on socket\n"
            for head in (
                b"CHECK SPAMC/1.5",
                b"TELL SPAMC/1.5\r\nMessage-class: spam\r\nSet: local",
            ):
                with socket.socket(socket.AF_UNIX) as client:
                    client.settimeout(60)
                    client.connect(str(tmp_path / "socket"))
                    client.sendall(head + b"\r\n" + size + MAIL)
                    assert client.recv(1000).startswith(b"SPAMD/1.1 0 EX_OK\r\n")
        finally:
            process.terminate()


@pytest.mark.long  # tests/cli/test_program.py has it without a process
def test_progress_is_not_shown_without_rich(alone, tmp_path):
    """On a terminal many messages draw a bar, if they can."""
    (tmp_path / "many.tsv").write_text("ham\tlunch at noon, see you there\n" * 9000)
    main, other = pty.openpty()
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": other}
    with alone("classify", "many.tsv", **streams) as process:
        assert process.wait(60) == 0
    os.write(other, b"end")  # so that there is something to read
    shown = os.read(main, 1 << 16)
    os.close(other)
    os.close(main)
    assert b"Traceback" not in shown
    assert b"messages" not in shown.replace(b"messages of each class", b"")
