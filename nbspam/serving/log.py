"""Log lines that can be traced: one for each message, of keys and values, and nothing of the mail.

    action=classify message-id=<1@example.org> user=hal verdict=spam probability=0.998712 bytes=4312

A line goes to syslog, which systemd's journal keeps too, or to standard error in one piece, and
never waits for it: a line that would have to is dropped.  So a log that is not read, or not
there, delays no mail.

The only text of a mail is its Message-ID.  The sender chooses that, and the client the user's name:
of all values only printable ASCII is kept, without `"` and the backslash, up to a length.  So a
value cannot end its line, its quotes or its field.

Source: RFC 3164, as syslog(3) writes it.
"""

# Not `socket`, which takes 6 ms to load, nor `logging`, 8 ms.  Its SysLogHandler waits while the
# daemon does not read, and so does syslog(3).
import _socket
import os
import re
import sys
import time
from typing import NamedTuple

from nbspam.errors import counted

SYSLOG, STDERR = "syslog", "stderr"

# What was done to a message that was to be learned or forgotten.
LEARNED, MOVED, FORGOTTEN, UNCHANGED = "learned", "moved", "forgotten", "unchanged"

SYSLOG_SOCKET = "/var/run/syslog" if sys.platform == "darwin" else "/dev/log"

_IDENTIFIER = "nbspam"
_MAIL = 2  # the facility: syslogd sorts it with the lines of the mail server
_WARNING, _INFO = 4, 6

# Characters of a value.  A line has at most 2 KB: a pipe takes what is below PIPE_BUF (4 KiB) whole
# if it takes anything.
_MOST = {"message-id": 250, "note": 500, "error": 500}
_MOST_OF_OTHERS = 64
_NAP = 0.002  # seconds, if lines may wait
_NOT_PLAIN = r"[^ !#-\[\]-~]"
_NEEDS_QUOTES = re.compile(r"[ =]").search


_KEYS = {"message_id": "message-id", "label": "class", "size": "bytes", "seconds": "milliseconds"}
_FORMATS = {"probability": "{:.6f}", "seconds": "{:.1f}"}


class Entry(NamedTuple):
    """What is logged of one message, or of a request; what is empty or None is left out."""

    action: str = ""  # classify, learn, forget; serve: what is about no message
    command: str = ""  # of the spamd protocol
    message_id: str = ""
    user: str = ""
    verdict: str = ""  # spam, ham, unsure or the name of another class
    probability: float | None = None  # of spam
    reason: str | None = None  # why it is unsure, where not the probability decided
    label: str = ""  # the class to learn
    result: str = ""  # learned, moved, forgotten or unchanged
    size: int | None = None  # bytes of the message
    seconds: float | None = None
    note: str = ""
    error: str = ""

    def line(self) -> str:
        """Return the line: a value with a blank or `=` is in quotes, as in logfmt."""
        pairs = []
        for name, value in zip(self._fields, self, strict=True):
            if value not in ("", None):
                key = _KEYS.get(name, name)
                value = 1000 * value if name == "seconds" else value
                text = safe(key, _FORMATS.get(name, "{}").format(value))
                pairs.append(f'{key}="{text}"' if _NEEDS_QUOTES(text) else f"{key}={text}")
        return " ".join(pairs)


def safe(key: str, value: str) -> str:
    """Return a value of which nothing can break the line: each odd character becomes `?`."""
    most = _MOST.get(key, _MOST_OF_OTHERS)
    if len(value) > most:
        value = f"{value[: most - 3]}..."
    return re.sub(_NOT_PLAIN, "?", value.replace('"', "'"))


class Log:
    """Writes entries to one place; a line that cannot be written at once is dropped."""

    def __init__(self, destination: str, path: str = "", patience: float = 0.0) -> None:
        """Write to SYSLOG or STDERR.

        path: of the socket, if it is not where the system has it.
        patience: how many seconds all lines together may wait for a socket that is full.
        """
        self.destination = destination
        self.path = path or (SYSLOG_SOCKET if destination == SYSLOG else "standard error")
        self.patience = patience
        self.n_dropped = 0
        self._reason = ""  # why the last one was dropped

    def write(self, entry: Entry) -> bool:
        """Write a line; return whether it was written.  It does not raise."""
        try:
            if self.destination == STDERR:
                write_to_stderr(f"{_IDENTIFIER}: {entry.line()}\n".encode())
            else:
                self._send_datagram(entry)
        except (OSError, ValueError, MemoryError) as error:
            self._reason = getattr(error, "strerror", None) or str(error) or "not enough memory"
            self.n_dropped += 1
            return False
        return True

    @property
    def problem(self) -> str:
        """What was not written and why; empty if all was."""
        if not self.n_dropped:
            return ""
        lines = counted(self.n_dropped, "log line")
        return f"{self.path}: {lines} could not be written ({self._reason})"

    def _send_datagram(self, entry: Entry) -> None:
        now = time.strftime("%b %e %H:%M:%S")
        priority = 8 * _MAIL + (_WARNING if entry.error else _INFO)
        line = f"<{priority}>{now} {_IDENTIFIER}[{os.getpid()}]: {entry.line()}"
        # A socket for each line: a daemon that was restarted gets the next one.
        sender = _socket.socket(_socket.AF_UNIX, _socket.SOCK_DGRAM)
        try:
            sender.setblocking(False)
            while True:
                try:
                    sender.sendto(line.encode(), self.path)
                    return
                except BlockingIOError:
                    if self.patience <= 0:
                        raise
                    self.patience -= _NAP
                    time.sleep(_NAP)
        finally:
            sender.close()


def write_to_stderr(text: bytes) -> None:
    """Write a line of at most 4 KB to standard error; raises OSError if it would have to wait."""
    import select  # most logs go elsewhere

    if sys.stderr is None:
        raise OSError(0, "it is closed")
    handle = sys.stderr.fileno()
    poll = select.poll()
    poll.register(handle, select.POLLOUT)
    if not any(event & select.POLLOUT for _, event in poll.poll(0)):
        raise BlockingIOError(0, "nobody reads it")
    os.write(handle, text)


def own_user() -> str:
    """Return the name of the account that runs this, as the program that started it gives it.

    Where it gives none, the account's number: looking the name up may ask a directory server.
    """
    return os.environ.get("LOGNAME") or os.environ.get("USER") or str(os.geteuid())
