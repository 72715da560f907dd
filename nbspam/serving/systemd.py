"""What systemd and the server tell each other: the sockets it passes, and when the server is up."""

import os
import socket
from contextlib import suppress

from nbspam.errors import ServingError

_FIRST_PASSED = 3  # the first file descriptor that systemd passes (sd_listen_fds(3))


def passed_sockets() -> list[socket.socket]:
    """Return the sockets that systemd opened for this process; raises ServingError."""
    try:
        is_ours = int(os.environ.get("LISTEN_PID", "")) == os.getpid()
        count = int(os.environ.get("LISTEN_FDS", ""))
    except ValueError:
        return []
    if not is_ours:
        return []
    for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):
        os.environ.pop(name, None)  # child processes do not get the sockets
    listeners = []
    for number in range(_FIRST_PASSED, _FIRST_PASSED + count):
        os.set_inheritable(number, False)
        listener = socket.socket(fileno=number)
        if not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise ServingError(
                f"file descriptor {number} is not a listening stream socket; use ListenStream= and"
                " Accept=no in the socket unit"
            )
        listener.setblocking(False)
        listeners.append(listener)
    return listeners


def notify(state: str) -> None:
    """Tell systemd the server's state (sd_notify(3)), if it asked for it."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    address = address.replace("@", "\0", 1) if address.startswith("@") else address
    # If this fails, systemd times out and reports it.
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.sendto(state.encode(), address)
