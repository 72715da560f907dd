"""A syslog of the tests' own: a datagram socket, and what came to it."""

import re
import shlex
import socket
from contextlib import contextmanager

PACKET = re.compile(rb"<(\d+)>nbspam\[\d+\]: ([ -~]+)", re.DOTALL)


class Daemon:
    def __init__(self, path):
        self.path = str(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)

    def packets(self):
        self.socket.setblocking(False)
        found = []
        while True:
            try:
                found.append(self.socket.recv(1 << 20))
            except BlockingIOError:
                return found

    def entries(self):
        """Return the keys and values of each line of syslog, and its severity, which is checked."""
        return [entry_of(packet) for packet in self.packets()]

    def fill(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            while True:
                try:
                    sender.sendto(b"x" * 1000, self.path)
                except BlockingIOError:
                    return


def entry_of(packet):
    match = PACKET.fullmatch(packet)
    assert match, packet
    entry = fields(match[2].decode())
    facility, severity = divmod(int(match[1]), 8)
    assert facility == 2, "the facility of mail"
    assert severity == (4 if "error" in entry else 6)
    return entry


def fields(line):
    """Return the keys and values of a line, split as logfmt is; no key comes twice."""
    pairs = re.findall(r'([a-z-]+)=(?:"([^"\\]*)"|([^" =\\]*))(?: |\Z)', line)
    written = " ".join(
        f'{key}="{quoted}"' if quoted else f"{key}={bare}" for key, quoted, bare in pairs
    )
    assert written == line
    assert shlex.split(line.replace("'", "")) == [
        f"{key}={(quoted or bare)}".replace("'", "") for key, quoted, bare in pairs
    ]
    found = {key: quoted or bare for key, quoted, bare in pairs}
    assert len(found) == len(pairs)
    return found


@contextmanager
def log_daemon(path):
    daemon = Daemon(path)
    try:
        yield daemon
    finally:
        daemon.socket.close()
