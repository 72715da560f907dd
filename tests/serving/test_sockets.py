"""Where a server listens, and where it refuses to."""

import os
import socket
import stat

import pytest

from nbspam.errors import OptionError, ServingError
from nbspam.serving.sockets import name_of, tcp_sockets, unix_socket


@pytest.mark.parametrize("mode", [0o600, 0o660, 0o666])
def test_a_socket_has_its_mode_and_is_removed_at_the_end(tmp_path, mode):
    path = tmp_path / "socket"
    with unix_socket(path, mode) as listener:
        assert stat.S_IMODE(path.stat().st_mode) == mode
        assert name_of(listener) == str(path)
    assert not path.exists()
    assert os.umask(0o022) == 0o022


def test_what_a_dead_server_left_is_replaced(tmp_path):
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        dead.listen()
    with unix_socket(path, 0o600), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_a_live_server_is_left_alone(tmp_path):
    path = tmp_path / "socket"
    with unix_socket(path, 0o600):
        with pytest.raises(ServingError, match="a server is listening there"), unix_socket(path, 0):
            pass
        assert path.exists()


def test_a_live_server_with_a_full_queue_is_live(tmp_path):
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(path))
        busy.listen(0)
        with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as two:
            for client in (one, two):
                client.setblocking(False)
                client.connect_ex(str(path))
            with pytest.raises(ServingError, match="listening"), unix_socket(path, 0o600):
                pass


def test_a_file_that_is_no_socket_is_left_alone(tmp_path):
    path = tmp_path / "mail"
    path.write_text("precious")
    with pytest.raises(ServingError, match="exists and is not a socket"), unix_socket(path, 0o600):
        pass
    assert path.read_text() == "precious"


@pytest.mark.parametrize("name", ["no/folder/socket", "x" * 200, "a\0b"])
def test_a_socket_that_cannot_be_made(tmp_path, name):
    with (
        pytest.raises(ServingError, match="the socket cannot be created"),
        unix_socket(tmp_path / name, 0o600),
    ):
        pass


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
                host, _, port = name_of(listener).rpartition(":")
                assert host in ("127.0.0.1", "[::1]")
                assert int(port) > 0
                socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except ServingError:
        if place != "[::1]:0":
            raise
        pytest.skip("there is no IPv6 here")


@pytest.mark.parametrize("place", ["0.0.0.0:0", "[::]:0"])
def test_other_machines_only_if_asked_for(place):
    with (
        pytest.raises(OptionError, match="open to other machines"),
        tcp_sockets(place, any_address=False),
    ):
        pass
    if place == "0.0.0.0:0":
        with tcp_sockets(place, any_address=True) as listeners:
            assert len(listeners) == 1


@pytest.mark.parametrize(
    "place", ["", "783", ":783", "localhost:", "localhost:x", "h:99999", "h:-1"]
)
def test_what_is_no_address(place):
    with (
        pytest.raises(OptionError, match="is not HOST:PORT"),
        tcp_sockets(place, any_address=False),
    ):
        pass


def test_a_port_that_is_taken():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        place = f"127.0.0.1:{other.getsockname()[1]}"
        with (
            pytest.raises(ServingError, match="cannot listen there"),
            tcp_sockets(place, any_address=False),
        ):
            pass


def test_a_host_that_does_not_exist():
    with (
        pytest.raises(ServingError, match="cannot listen there"),
        tcp_sockets("nowhere.invalid:783", any_address=False),
    ):
        pass
