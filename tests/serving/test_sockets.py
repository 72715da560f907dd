"""Where a server listens and where it refuses to, what systemd passes and is told, and signals."""

import os
import socket
import stat
import sys
from pathlib import Path

import pytest

from nbspam.errors import OptionError, ServingError
from nbspam.serving import sockets
from nbspam.serving.sockets import format_address, notify, passed_sockets, tcp_sockets, unix_socket


def test_a_socket_has_its_mode_and_is_removed_at_the_end(tmp_path):
    path = tmp_path / "socket"
    mask = os.umask(0o027)
    for mode in (0o600, 0o660, 0o666):
        with unix_socket(path, mode) as listener:
            assert stat.S_IMODE(path.stat().st_mode) == mode
            assert format_address(listener) == str(path)
        assert not path.exists()
    assert os.umask(mask) == 0o027


def refused(reason, place, error=ServingError):
    with pytest.raises(error, match=reason):
        if isinstance(place, str):
            tcp_sockets(place, any_address=False).__enter__()
        else:
            unix_socket(place, 0o600).__enter__()


def test_what_a_dead_server_left_is_replaced(tmp_path):
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        dead.listen()
    with unix_socket(path, 0o600), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_a_live_server_is_left_alone_though_its_queue_is_full(tmp_path):
    path = tmp_path / "socket"
    with unix_socket(path, 0o600):
        refused("a server is listening there", path)
        assert path.exists()
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(path))
        busy.listen(0)
        with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as two:
            for client in (one, two):
                client.setblocking(False)
                client.connect_ex(str(path))
            refused("listening", path)


def test_a_file_that_is_no_socket_is_left_alone_and_an_impossible_place_told(tmp_path):
    path = tmp_path / "mail"
    path.write_text("precious")
    refused("exists and is not a socket", path)
    assert path.read_text() == "precious"
    for name in ("no/folder/socket", "x" * 200, "a\0b"):
        refused("the socket cannot be created", tmp_path / name)


def test_another_servers_socket_is_not_removed(tmp_path):
    path = tmp_path / "socket"
    with unix_socket(path, 0o600):
        path.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
            kept = path.stat().st_ino
    assert path.stat().st_ino == kept


@pytest.mark.parametrize("place", ["127.0.0.1:0", "localhost:0", "[::1]:0"])
def test_this_machine_alone(place):
    try:
        with tcp_sockets(place, any_address=False) as listeners:
            for listener in listeners:
                host, _, port = format_address(listener).rpartition(":")
                assert host in ("127.0.0.1", "[::1]")
                assert int(port) > 0
                socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except ServingError:
        if place != "[::1]:0":
            raise
        pytest.skip("there is no IPv6 here")


def test_other_machines_only_if_asked_for():
    for place in ("0.0.0.0:0", "[::]:0"):
        refused("can be reached from other machines", place, OptionError)
    with tcp_sockets("0.0.0.0:0", any_address=True) as listeners:
        assert len(listeners) == 1


def test_what_is_no_address_or_a_bad_one():
    for place in ("", "783", ":783", "localhost:", "localhost:x", "h:99999", "h:-1"):
        refused("is not HOST:PORT", place, OptionError)
    refused("cannot listen there", "nowhere.invalid:783")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        refused("cannot listen there", f"127.0.0.1:{other.getsockname()[1]}")


# systemd


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # of what it refuses, and ends
def test_passed_sockets_are_taken(tmp_path, monkeypatch):
    names = "LISTEN_PID", "LISTEN_FDS"
    ours = str(os.getpid())
    with unix_socket(tmp_path / "socket", 0o600) as listener, socket.socket() as connected:
        for sock, *said in (
            *((listener, None, None), (listener, "1", "1"), (listener, "x", "1")),  # not for us
            *((listener, ours, "x"), (listener, ours, "1"), (connected, ours, "1")),
        ):
            for name, value in zip(names, said, strict=True):
                monkeypatch.setenv(name, value or "")
            passed = os.dup(sock.fileno())
            monkeypatch.setattr(sockets, "_FIRST_PASSED", passed)
            if sock is connected:
                with pytest.raises(ServingError, match="is not a listening stream socket"):
                    passed_sockets()
                continue
            found = passed_sockets()
            assert list(map(format_address, found)) == [str(tmp_path / "socket")] * (
                said == [ours, "1"]
            )
            assert "LISTEN_FDS" not in os.environ
            for each in found:
                assert not os.get_inheritable(each.fileno())
            os.close(passed if not found else found[0].detach())


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


def test_nobody_connects_before_the_mode_is_set(tmp_path, monkeypatch):
    modes = []
    chmod = Path.chmod

    def noted(path, mode):
        modes.append(stat.S_IMODE(path.stat().st_mode))
        chmod(path, mode)

    monkeypatch.setattr(Path, "chmod", noted)
    before = os.umask(0)
    try:
        with unix_socket(tmp_path / "socket", 0o660):
            assert os.umask(0) == 0  # as it was
    finally:
        os.umask(before)
    assert modes == [0]
