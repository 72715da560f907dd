"""An IMAP server in front of Dovecot that fails on some commands, as real servers do."""

import re
import socket
import threading
from contextlib import suppress

CLOSE = "close"


class FailingProxy:
    """Passes commands and answers on, but for the commands on which it fails."""

    def __init__(self, port, fails, host="localhost"):
        """fails: gets a command without its tag; returns None, CLOSE, or an answer (b"NO …")."""
        self.fails, self.asked = fails, []
        self._target = host, port
        self._socket = socket.create_server((host, 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                client = self._socket.accept()[0]
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        server = socket.create_connection(self._target)
        threading.Thread(target=self._answer, args=(server, client), daemon=True).start()
        with suppress(OSError), client, server, client.makefile("rb") as lines:
            for line in lines:
                tag, _, command = line.partition(b" ")
                self.asked.append(command.strip().decode("utf-8", "replace"))
                failure = self.fails(command.strip()) if command.strip() else None
                if failure == CLOSE:
                    break
                if failure:
                    client.sendall(tag + b" " + failure + b"\r\n")
                else:
                    server.sendall(line)
            for each in (client, server):
                each.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _answer(server, client):
        with suppress(OSError):
            while piece := server.recv(1 << 16):
                client.sendall(piece)
            client.shutdown(socket.SHUT_RDWR)


def names(command, uid):
    """Return whether a command names a message by its UID, alone or in a range."""
    found = re.match(rb"UID (?:FETCH|MOVE|COPY|STORE) (\S+)", command)
    for part in found[1].split(b",") if found else ():
        first, _, last = part.partition(b":")
        if int(first) <= uid <= int(last or first):
            return True
    return False
