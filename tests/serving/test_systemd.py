"""The sockets that systemd passes, and what it is told."""

import os
import socket
import subprocess
import sys

import pytest

from nbspam.serving.sockets import unix_socket
from nbspam.serving.systemd import notify, passed_sockets


@pytest.mark.parametrize(
    "said",
    [{}, {"LISTEN_PID": "1", "LISTEN_FDS": "1"}, {"LISTEN_PID": "x", "LISTEN_FDS": "1"}],
    ids=["nothing", "another process", "junk"],
)
def test_no_sockets_are_passed(monkeypatch, said):
    for name in ("LISTEN_PID", "LISTEN_FDS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert passed_sockets() == []


TAKE = """
import os
from nbspam.errors import NbspamError
from nbspam.serving.sockets import name_of
from nbspam.serving.systemd import passed_sockets
try:
    print(*map(name_of, passed_sockets()), "LISTEN_FDS" in os.environ)
except NbspamError as error:
    print(error)
"""


def run_with(descriptor):
    become = (
        "import os, sys; os.dup2(int(sys.argv[1]), 3);"
        "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1');"
        "os.execv(sys.executable, [sys.executable, '-c', sys.argv[2]])"
    )
    done = subprocess.run(
        [sys.executable, "-c", become, str(descriptor), TAKE],
        pass_fds=[descriptor],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_passed_sockets_are_taken(tmp_path):
    path = tmp_path / "socket"
    with unix_socket(path, 0o600) as listener:
        assert run_with(listener.fileno()) == f"{path} False\n"
    with socket.socket() as connected:
        assert "is not a listening stream socket" in run_with(connected.fileno())


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_is_told(tmp_path, monkeypatch, abstract):
    if abstract and sys.platform != "linux":
        pytest.skip("Linux has abstract addresses")
    address = f"@nbspam-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(address.replace("@", "\0"))
        systemd.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        notify("READY=1")
        assert systemd.recv(100) == b"READY=1"
    notify("STOPPING=1")  # nobody hears it, and nothing happens
    monkeypatch.delenv("NOTIFY_SOCKET")
    notify("READY=1")
