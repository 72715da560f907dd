"""Waiting for what other programs do, however busy the machine is."""

import array
import fcntl
import shutil
import subprocess
import tempfile
import termios
import time
from contextlib import contextmanager
from pathlib import Path

import pytest


def wait_until(condition, seconds=60.0, said=lambda: ""):
    """Wait until a function returns something true, and return it; said: why it does not."""
    ends = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < ends, said()
        time.sleep(0.01)
    return found


def cron_takes(table):
    """Return whether cron takes a file of lines; skips the test where that cannot be asked."""
    if not shutil.which("crontab"):
        pytest.skip("crontab is not installed")
    for option in ("-T", "-n"):  # Debian 12 has -n, others -T
        done = subprocess.run(["crontab", option, table], capture_output=True, check=False)
        if b"invalid option" not in done.stderr:
            return done.returncode == 0
    return pytest.skip("this crontab cannot check a file")


@contextmanager
def running(kind):
    """Yield a server of a kind that is made with a folder of its own, which every user may enter.

    It has a process when it was started, and a log.
    """
    top = Path(tempfile.mkdtemp(prefix="nbspam-server-"))
    top.chmod(0o755)
    try:
        server = kind(top)
        server.start()
        try:
            wait_until(
                lambda: server.answers() or server.process.poll() is not None, 60, server.log
            )
            assert server.process.poll() is None, (server.process.communicate(), server.log())
            yield server
        finally:
            if server.process.poll() is None:
                server.stop()
            server.process.communicate(timeout=30)
    finally:
        shutil.rmtree(top, ignore_errors=True)


def _number(fd, request):
    found = array.array("i", [0])
    fcntl.ioctl(fd, request, found)
    return found[0]


def unread(pipe):
    """Return how many bytes are in a pipe."""
    return _number(pipe, termios.FIONREAD)


def unsent(sock):
    """Return whether the other end has not read all that was sent."""
    return _number(sock, termios.TIOCOUTQ)
