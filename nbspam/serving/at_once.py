"""Clients that are answered as soon as they are accepted, without a task or a timer of their own.

The first worker hands the others to the event loop; the other workers hand them to the first.
"""

import socket
from typing import Protocol

from nbspam.serving.arrivals import Arrivals
from nbspam.serving.limits import Limits
from nbspam.serving.log import Entry, Log
from nbspam.serving.metrics import DISCONNECTED, Metrics
from nbspam.serving.responder import SMALL, Responder, Response

UNSENT = "the client disconnected before the reply"


class HandOn(Protocol):
    """Takes over a connection."""

    def __call__(self, connection: socket.socket, begun: bytes, response: Response | None) -> None:
        """Go on with a client.

        begun: what was read of the request.  response: if it is answered, and a part of the reply,
        `response.reply`, is not sent.
        """


class AtOnceReception:
    """Answers the clients whose request is there, and hands on the others."""

    def __init__(
        self,
        responder: Responder,
        limits: Limits,
        metrics: Metrics,
        log: Log | None,
        hand_on: HandOn,
    ) -> None:
        """log: gets a line for each message."""
        self._responder, self._metrics, self._log = responder, metrics, log
        self._arrivals = Arrivals(min(SMALL, limits.max_size))
        self._hand_on = hand_on

    def serve(self, connection: socket.socket, may_wait: bool) -> bool:
        """Answer a client, or hand him on; return whether he was answered.  It does not raise.

        connection: not blocking.  may_wait: for the request, up to a millisecond.
        """
        request, begun = self._arrivals.read(connection, may_wait)
        if request is None:
            self._hand_on(connection, begun, None)
            return False
        response = self._responder.respond_at_once(request, self._log is not None)
        try:
            sent = connection.send(response.reply)
        except BlockingIOError:
            sent = 0
        except OSError:
            connection.close()
            self.note(response.entry._replace(error=UNSENT), DISCONNECTED)
            return True
        if sent < len(response.reply):
            self._hand_on(connection, b"", response._replace(reply=response.reply[sent:]))
            return True
        connection.close()
        self.note(response.entry, response.code)
        return True

    def note(self, entry: Entry, code: int) -> None:
        """Count a request that was answered, or was not, and write it to the log."""
        self._metrics.count(entry, code)
        if self._log and entry.action:
            self._log.write(entry)
