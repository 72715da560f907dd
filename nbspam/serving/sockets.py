"""The listening sockets of the server: its own, on a path or TCP ports, or sockets of systemd."""

import contextlib
import ipaddress
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from nbspam.errors import OptionError, Remedy, ServingError

BACKLOG = 1024  # clients that may wait to be accepted; the system may allow fewer


@contextlib.contextmanager
def unix_socket(path: Path, mode: int) -> Iterator[socket.socket]:
    """Listen on a Unix socket, and remove its file at the end.

    A socket that no server listens on any more is replaced.  Raises ServingError: a server listens
    on the socket, the file is not a socket, or the socket cannot be created.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            _remove_stale_socket(path)
            mask = os.umask(0o777)  # so that no client can connect before the mode is set
            try:
                listener.bind(os.fspath(path))
            finally:
                os.umask(mask)
            path.chmod(mode)
            listener.listen(BACKLOG)
            listener.setblocking(False)
            ours = path.lstat()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ServingError(
                f"{path}: the socket cannot be created ({reason}); name a short path in a folder"
                " that you own"
            ) from error
        try:
            yield listener
        finally:
            listener.close()
            with contextlib.suppress(OSError):
                if os.path.samestat(path.lstat(), ours):  # another server may have replaced it
                    path.unlink()


def _remove_stale_socket(path: Path) -> None:
    """Remove a socket file that no server listens on; raises ServingError for any other file."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ServingError(f"{path}: exists and is not a socket; name another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        # A server whose queue is full then raises BlockingIOError, instead of making us wait.
        client.setblocking(False)
        try:
            client.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except BlockingIOError:
            pass
    raise ServingError(f"{path}: a server is listening there; stop it, or name another path")


def check_host_port(host_port: str, any_address: bool) -> None:
    """Raise OptionError for an invalid HOST:PORT, and for an address that is forbidden.

    any_address: whether other machines may be able to connect to the address.  No host name is
    looked up.
    """
    host, _ = _split_host_port(host_port)
    with contextlib.suppress(ValueError):  # a host name
        _check_loopback(host_port, host, any_address)


def _check_loopback(host_port: str, address: str | int, any_address: bool) -> None:
    if not (any_address or ipaddress.ip_address(address).is_loopback):
        raise OptionError(
            f"{host_port} can be reached from other machines, and the protocol has no passwords",
            Remedy.ANY_ADDRESS,
        )


@contextlib.contextmanager
def tcp_sockets(host_port: str, any_address: bool) -> Iterator[list[socket.socket]]:
    """Listen on HOST:PORT, on each address of the host.

    any_address: whether other machines may be able to connect to the address.
    Raises OptionError for an invalid or forbidden address, ServingError if it is not available.
    """
    host, port = _split_host_port(host_port)
    with contextlib.ExitStack() as opened:
        listeners = []
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            for family, _, _, _, address in dict.fromkeys(infos):
                _check_loopback(host_port, address[0], any_address)
                made = socket.create_server(address, family=family, backlog=BACKLOG)
                listeners.append(opened.enter_context(made))
                made.setblocking(False)
        except OSError as error:
            # only the reason, without the text that Python adds
            reason = (error.strerror or str(error)).partition(" (while")[0]
            raise ServingError(
                f"{host_port}: cannot listen there ({reason}); name another port, or stop the"
                " program that uses it"
            ) from error
        yield listeners


def _split_host_port(host_port: str) -> tuple[str, int]:
    host, colon, port = host_port.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise OptionError(f"{host_port!r} is not HOST:PORT; an example is 127.0.0.1:783")
    return host, int(port)


def format_address(listener: socket.socket) -> str:
    """Format a socket's address: a path, or HOST:PORT."""
    address = listener.getsockname()
    if listener.family == socket.AF_UNIX:
        return str(os.fsdecode(address))
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


# Sockets and messages of systemd

_passed = set[int]()  # the descriptors of systemd's sockets
_FIRST_PASSED = 3  # the first file descriptor that systemd passes (sd_listen_fds(3))


def passed_sockets() -> list[socket.socket]:
    """Return the sockets that systemd opened for this process; raises ServingError."""
    pid, count = os.environ.get("LISTEN_PID", ""), os.environ.get("LISTEN_FDS", "")
    for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):
        os.environ.pop(name, None)  # child processes do not get the sockets
    if pid != str(os.getpid()) or not count.isdecimal():
        return []
    listeners = []
    for number in range(_FIRST_PASSED, _FIRST_PASSED + int(count)):
        os.set_inheritable(number, False)
        listener = socket.socket(fileno=number)
        if not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise ServingError(
                f"file descriptor {number} is not a listening stream socket; use ListenStream= and"
                " Accept=no in the socket unit"
            )
        listener.setblocking(False)
        listeners.append(listener)
        _passed.add(number)
    return listeners


def refuse_more(listener: socket.socket) -> None:
    """Refuse further clients of our Unix socket; clients in its queue can still be accepted.

    A socket of systemd is left open: its clients wait for the next server.
    """
    if listener.family == socket.AF_UNIX and listener.fileno() not in _passed:
        listener.shutdown(socket.SHUT_RD)


def notify(state: str) -> None:
    """Report the server's state to systemd (sd_notify(3)), if systemd asked for it."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    address = address.replace("@", "\0", 1) if address.startswith("@") else address
    # If this fails, systemd times out and reports it.
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.sendto(state.encode(), address)
