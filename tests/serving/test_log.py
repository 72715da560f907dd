"""Log lines: of one form, whatever a mail holds, and never waited for."""

import logging
import os
import sys
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logs import fields, log_daemon

from nbspam.serving.log import STDERR, SYSLOG, LogEntry, has_syslog, make_handler, sanitize

WHOLE = LogEntry(
    action="classify",
    command="CHECK",
    message_id="<1@example.org>",
    user="hal",
    verdict="spam",
    probability=0.9987123,
    reason="too few known words",
    label="ham",
    result="learned",
    size=4312,
    seconds=0.00234,
    note="it began",
    error="it failed",
)


@pytest.fixture
def daemon(tmp_path):
    with log_daemon(tmp_path / "log") as found:
        yield found


def test_a_line_has_each_value_that_there_is():
    assert WHOLE.line() == (
        "action=classify command=CHECK message-id=<1@example.org> user=hal verdict=spam"
        ' probability=0.998712 reason="too few known words" class=ham result=learned bytes=4312'
        ' milliseconds=2.3 note="it began" error="it failed"'
    )
    assert LogEntry("classify").line() == "action=classify"
    assert LogEntry("classify", size=0, seconds=0.0, probability=0.0).line() == (
        "action=classify probability=0.000000 bytes=0 milliseconds=0.0"
    )


HOSTILE = [
    *("<1@x>\r\n action=classify verdict=ham", "<1@x>\nNBSPAM_VERDICT=ham", "<1@x> verdict=ham"),
    "<1@x>\nNov 22 06:05:26 host nbspam[1]: action=classify verdict=ham",
    *('<1@x>" verdict="ham', '<1@x>\\" verdict="ham', "<SRS0=a=b@x>", "   ", "<a\0b@x>"),
    *("<" + "a" * 100_000 + "@x>", '"' * 100_000, "<\xe9\u2028\u202e\U0001f600@x>", "<\ud800@x>"),
    *("\x1b]0;owned\x07\x1b[2J", "\x85\x9b2J"),
]


@pytest.fixture
def logged():
    """Return how to log to a destination; its handler is removed afterwards."""
    logger, handlers = logging.getLogger("nbspam"), []

    def begin(*destination):
        handlers.append(make_handler(*destination))
        logger.setLevel(logging.INFO)
        logger.addHandler(handlers[-1])
        return handlers[-1]

    yield begin
    for handler in handlers:
        logger.removeHandler(handler)
        handler.close()


def test_no_value_ends_its_field(daemon, logged):
    logged(SYSLOG, daemon.path)
    for value, name in product(HOSTILE, ["message_id", "user", "verdict", "error"]):
        LogEntry("learn", result="learned")._replace(**{name: value}).log()
        [found] = daemon.entries()
        key = name.replace("_", "-")
        assert found.keys() == {"action", "result", key}
        assert found["action"] == "learn"
        assert len(found[key]) <= 500


def test_sentences_about_the_server_are_entries_too(daemon, logged):
    logged(SYSLOG, daemon.path)
    logging.getLogger("nbspam.serving").info("serving %s", "model.json")
    logging.getLogger("nbspam").warning('m.json: is "damaged"; train again')
    assert daemon.entries() == [
        {"action": "serve", "note": "serving model.json"},
        {"action": "serve", "error": "m.json: is 'damaged'; train again"},
    ]


@given(
    st.text(),
    st.text(),
    st.text(min_size=1),
    st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters='"\\')),
)
def test_any_text_is_a_value_and_a_usual_message_id_is_written_as_it_is(mid, user, error, usual):
    entry = LogEntry("classify", message_id=mid, user=user, error=error)
    assert fields(entry.line()).keys() <= {"action", "message-id", "user", "error"}
    assert len(entry.line()) < 2048
    assert sanitize("message-id", usual[:250]) == usual[:250]


def test_what_is_not_there_is_not_waited_for(tmp_path, logged):
    (tmp_path / "file").write_bytes(b"")
    for path in ("none", "file", "x" * 300):  # the last is too long for a socket
        handler = logged(SYSLOG, str(tmp_path / path))
        WHOLE.log()
        assert not has_syslog(handler)


def test_a_daemon_that_does_not_read_is_not_waited_for(daemon, logged):
    logged(SYSLOG, daemon.path)
    daemon.fill()
    for _ in range(100):
        WHOLE.log()
    daemon.packets()
    WHOLE.log()
    assert len(daemon.entries()) == 1


def test_a_daemon_that_was_restarted_gets_the_next_line(tmp_path, logged):
    path = tmp_path / "log"
    with log_daemon(path) as daemon:
        logged(SYSLOG, daemon.path)
        WHOLE.log()
    WHOLE.log()  # nobody listens
    path.unlink()
    WHOLE.log()
    with log_daemon(path) as daemon:
        WHOLE.log()
        assert len(daemon.entries()) == 1


def test_standard_error_that_nobody_reads_drops_lines(monkeypatch, logged):
    entry = LogEntry("classify", message_id="x" * 300, error="y" * 600)
    ends = os.pipe()
    with os.fdopen(ends[0], "rb", 0) as reader, os.fdopen(ends[1], "w") as unread:
        monkeypatch.setattr(sys, "stderr", unread)
        handler = logged(STDERR)
        for _ in range(1000):
            entry.log()
        lines = reader.read(1 << 20).decode().splitlines()
        logging.getLogger("nbspam").removeHandler(handler)
    assert 0 < len(lines) < 100  # a pipe of 64 KiB
    assert all(line.startswith("nbspam: action=classify message-id=xxx") for line in lines)
    assert all(line.endswith("yyy...") for line in lines)
