"""The sockets that a server listens on: its own, or those that systemd opened for it."""

import contextlib
import ipaddress
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from nbspam.errors import OptionError, ServingError

BACKLOG = 1024  # clients that may wait to be let in; the system may allow fewer
_FIRST_PASSED = 3  # file descriptor, by systemd's rule (sd_listen_fds(3))


def passed_by_systemd() -> list[socket.socket]:
    """Return the sockets that systemd opened for this process; none where it did not."""
    try:
        ours = int(os.environ.get("LISTEN_PID", "")) == os.getpid()
        count = int(os.environ.get("LISTEN_FDS", ""))
    except ValueError:
        return []
    if not ours:
        return []
    for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):
        os.environ.pop(name, None)  # they are not for our children
    listeners = []
    for number in range(_FIRST_PASSED, _FIRST_PASSED + count):
        os.set_inheritable(number, False)
        listener = socket.socket(fileno=number)
        if not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise ServingError(
                f"file descriptor {number} is no listening stream socket; write ListenStream= in"
                " the socket unit, and Accept=no"
            )
        listener.setblocking(False)
        listeners.append(listener)
    return listeners


@contextlib.contextmanager
def unix_socket(path: Path, mode: int) -> Iterator[socket.socket]:
    """Listen on a Unix socket, and remove its file at the end.

    What a server left behind that is no more is replaced.  Raises ServingError: a live server has
    it, it is another kind of file, or it cannot be made.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _make_way(path)
        mask = os.umask(0o777)  # nobody connects before the mode is set
        try:
            listener.bind(os.fspath(path))
        finally:
            os.umask(mask)
        path.chmod(mode)
        listener.listen(BACKLOG)
        listener.setblocking(False)
        ours = path.lstat()
    except ServingError:
        listener.close()
        raise
    except (OSError, ValueError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise ServingError(
            f"{path}: the socket cannot be made ({reason}); name a short path in a folder of yours"
        ) from error
    try:
        yield listener
    finally:
        listener.close()
        with contextlib.suppress(OSError):
            if os.path.samestat(path.lstat(), ours):  # another server may have the path by now
                path.unlink()


def _make_way(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise ServingError(f"{path}: is there already and is no socket; name another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock:
        knock.setblocking(False)  # a full queue is an answer too
        try:
            knock.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except BlockingIOError:
            pass
    raise ServingError(f"{path}: a server is listening there; stop it, or name another path")


@contextlib.contextmanager
def tcp_sockets(place: str, any_address: bool) -> Iterator[list[socket.socket]]:
    """Listen on HOST:PORT, on each address of the host.

    Raises OptionError when it is not of that form, or when anyone but this machine could connect
    and any_address is false; ServingError when it is taken or not to be had.
    """
    host, colon, port = place.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise OptionError(f"--listen {place!r} is not HOST:PORT; try --listen 127.0.0.1:783")
    with contextlib.ExitStack() as opened:
        listeners = []
        try:
            found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
            for family, kind, protocol, _, address in dict.fromkeys(found):
                if not (any_address or ipaddress.ip_address(address[0]).is_loopback):
                    raise OptionError(
                        f"--listen {place} is open to other machines, and the protocol has no"
                        " passwords; use 127.0.0.1, or add --allow-any-address"
                    )
                listener = opened.enter_context(socket.socket(family, kind, protocol))
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                listener.bind(address)
                listener.listen(BACKLOG)
                listener.setblocking(False)
                listeners.append(listener)
        except OSError as error:
            raise ServingError(
                f"--listen {place}: cannot listen there ({error.strerror or error}); name another"
                " port, or stop who has it"
            ) from error
        yield listeners


def name_of(listener: socket.socket) -> str:
    """Return a socket's address as one would give it to spamc."""
    address = listener.getsockname()
    if listener.family == socket.AF_UNIX:
        return str(os.fsdecode(address))
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
