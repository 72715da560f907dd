"""A log line of keys and values for each message, by which a message can be traced.

    action=classify message-id=<1@example.org> user=hal verdict=spam probability=0.998712 bytes=4312

`logging` writes the lines, to syslog or to standard error.  A line that would have to wait for its
reader is dropped, so a log that nobody reads delays no mail.

The only text of a mail in its line is the Message-ID.  The sender chooses the Message-ID, and the
client the user's name, so every value is reduced to printable ASCII without `"` and backslash, and
cut to a maximum length.  No value can end its line, its quotes or its field.
"""

import logging
import re
import select
import sys
from logging.handlers import SysLogHandler
from typing import NamedTuple

SYSLOG, STDERR = "syslog", "stderr"
LOGGER = "nbspam.serving"  # for sentences about the server
ENTRIES = f"{LOGGER}.entries"

# The results of learning or forgetting a message.
LEARNED, MOVED, FORGOTTEN, UNCHANGED = "learned", "moved", "forgotten", "unchanged"

SYSLOG_SOCKET = "/var/run/syslog" if sys.platform == "darwin" else "/dev/log"

# Maximum characters of a value.  So a line has at most 2 KB, and a pipe accepts lines below
# PIPE_BUF (4 KiB) whole or not at all.
_MAX_LENGTHS = {"message-id": 250, "note": 500, "error": 500}
_MAX_LENGTH = 64
_NOT_PLAIN = r"[^ !#-\[\]-~]"
_NEEDS_QUOTES = re.compile(r"[ =]").search
_KEYS = {"message_id": "message-id", "label": "class", "size": "bytes", "seconds": "milliseconds"}
_FORMATS = {"probability": "{:.6f}", "seconds": "{:.1f}"}


class LogEntry(NamedTuple):
    """The log entry of one message, or of a request; empty values are left out."""

    action: str = ""  # classify, learn, forget; serve if the line is not about a message
    command: str = ""  # command of the spamd protocol
    message_id: str = ""
    user: str = ""
    verdict: str = ""  # spam, ham, unsure or the name of another class
    probability: float | None = None  # of spam
    reason: str | None = None  # why the verdict is unsure, if the probability did not decide
    label: str = ""  # the class to learn
    result: str = ""  # learned, moved, forgotten or unchanged
    size: int | None = None  # bytes of the message
    seconds: float | None = None
    note: str = ""
    error: str = ""

    def line(self) -> str:
        """Format the entry as in logfmt: a value with a blank or `=` is in quotes."""
        pairs = []
        for name, value in zip(self._fields, self, strict=True):
            if value not in ("", None):
                key = _KEYS.get(name, name)
                value = 1000 * value if name == "seconds" else value
                text = sanitize(key, _FORMATS.get(name, "{}").format(value))
                pairs.append(f'{key}="{text}"' if _NEEDS_QUOTES(text) else f"{key}={text}")
        return " ".join(pairs)

    def log(self) -> None:
        """Log the entry, as a warning if it has an error."""
        level = logging.WARNING if self.error else logging.INFO
        logger = logging.getLogger(ENTRIES)
        if logger.isEnabledFor(level):
            logger.log(level, self.line())


def sanitize(key: str, value: str) -> str:
    """Replace each character that could break a line by `?`, and cut a long value."""
    max_length = _MAX_LENGTHS.get(key, _MAX_LENGTH)
    if len(value) > max_length:
        value = f"{value[: max_length - 3]}..."
    return re.sub(_NOT_PLAIN, "?", value.replace('"', "'"))


def is_entry(record: logging.LogRecord) -> bool:
    """Return whether a record is a `LogEntry`, and not a sentence about the server."""
    return record.name == ENTRIES


class _Lines(logging.Formatter):
    """Formats sentences about the server as entries, too."""

    def format(self, record: logging.LogRecord) -> str:
        line = record.getMessage()
        if not is_entry(record):
            is_error = record.levelno >= logging.WARNING
            entry = LogEntry("serve", error=line) if is_error else LogEntry("serve", note=line)
            line = entry.line()
        return (self._fmt or "%s") % {"process": record.process, "message": line}


class _Syslog(SysLogHandler):
    """Drops a line that the daemon does not accept at once."""

    append_nul = False

    def _connect_unixsocket(self, address: str) -> None:
        super()._connect_unixsocket(address)  # type: ignore[misc]
        self.socket.setblocking(False)  # type: ignore[attr-defined]


class _Stderr(logging.StreamHandler):  # type: ignore[type-arg]
    """Drops a line that nobody reads."""

    def emit(self, record: logging.LogRecord) -> None:
        if select.select([], [self.stream], [], 0)[1]:
            super().emit(record)


def has_syslog(handler: logging.Handler) -> bool:
    """Return whether a handler can write: False if it writes to a syslog that is not there."""
    if isinstance(handler, SysLogHandler):
        try:
            handler.socket.getpeername()  # type: ignore[attr-defined]
        except OSError:
            return False
    return True


def make_handler(destination: str, path: str = SYSLOG_SOCKET) -> logging.Handler:
    """Make the handler of a log, which drops a line that it cannot write."""
    logging.raiseExceptions = False  # an error of logging must not stop mail
    handler: logging.Handler = _Stderr()
    pattern = "nbspam: %(message)s"
    if destination == SYSLOG:
        handler = _Syslog(path, SysLogHandler.LOG_MAIL)
        pattern = "nbspam[%(process)d]: %(message)s"
    handler.setFormatter(_Lines(pattern, validate=False))
    return handler
