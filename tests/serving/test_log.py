"""Log lines: of one form, whatever a mail holds, and never waited for."""

import os
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logs import fields, log_daemon

from nbspam.serving.log import STDERR, SYSLOG, Entry, Log, own_user, safe

WHOLE = Entry(
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
    assert Entry("classify").line() == "action=classify"
    assert Entry("classify", size=0, seconds=0.0, probability=0.0).line() == (
        "action=classify probability=0.000000 bytes=0 milliseconds=0.0"
    )


HOSTILE = [
    *("<1@x>\r\n action=classify verdict=ham", "<1@x>\nNBSPAM_VERDICT=ham", "<1@x> verdict=ham"),
    "<1@x>\nNov 22 06:05:26 host nbspam[1]: action=classify verdict=ham",
    *('<1@x>" verdict="ham', '<1@x>\\" verdict="ham', "<SRS0=a=b@x>", "   ", "<a\0b@x>"),
    *("<" + "a" * 100_000 + "@x>", '"' * 100_000, "<\xe9\u2028\u202e\U0001f600@x>", "<\ud800@x>"),
    *("\x1b]0;owned\x07\x1b[2J", "\x85\x9b2J"),
]


def test_no_value_ends_its_field(daemon):
    log = Log(SYSLOG, daemon.path)
    for value, name in product(HOSTILE, ["message_id", "user", "verdict", "error"]):
        assert log.write(Entry("learn", result="learned")._replace(**{name: value}))
        [found] = daemon.entries()
        key = name.replace("_", "-")
        assert found.keys() == {"action", "result", key}
        assert found["action"] == "learn"
        assert len(found[key]) <= 500


@given(
    st.text(),
    st.text(),
    st.text(min_size=1),
    st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters='"\\')),
)
def test_any_text_is_a_value_and_a_usual_message_id_is_written_as_it_is(mid, user, error, usual):
    entry = Entry("classify", message_id=mid, user=user, error=error)
    assert fields(entry.line()).keys() <= {"action", "message-id", "user", "error"}
    assert len(entry.line()) < 2048
    assert safe("message-id", usual[:250]) == usual[:250]


def test_what_is_not_there_is_not_waited_for(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    log = Log(SYSLOG, str(tmp_path / "none"), patience=60)
    started = time.monotonic()
    assert not log.write(WHOLE)
    assert time.monotonic() - started < 30
    assert "none: 1 log line could not be written (No such file" in log.problem
    assert not Log(SYSLOG, str(tmp_path / "file")).write(WHOLE)
    assert not Log(SYSLOG, str(tmp_path / ("x" * 300))).write(WHOLE)  # too long for a socket


def test_a_daemon_that_does_not_read_is_not_waited_for(daemon):
    daemon.fill()
    log, patient = Log(SYSLOG, daemon.path), Log(SYSLOG, daemon.path, patience=0.05)
    assert [log.write(WHOLE) for _ in range(100)] == [False] * 100
    assert log.n_dropped == 100
    assert "100 log lines could not be written (" in log.problem
    started = time.monotonic()
    assert [patient.write(WHOLE) for _ in range(400)] == [False] * 400
    assert 0.05 <= time.monotonic() - started < 15  # and not 20, for each
    daemon.packets()
    assert log.write(WHOLE)
    assert log.n_dropped == 100


def test_a_daemon_that_was_restarted_gets_the_next_line(tmp_path):
    path = tmp_path / "log"
    with log_daemon(path) as daemon:
        log = Log(SYSLOG, daemon.path)
        assert log.write(WHOLE)
    assert not log.write(WHOLE)  # nobody listens
    path.unlink()
    assert not log.write(WHOLE)
    with log_daemon(path) as daemon:
        assert log.write(WHOLE)
        assert len(daemon.entries()) == 1


def test_standard_error_that_nobody_reads_or_that_is_closed_or_full_drops_lines(monkeypatch):
    entry = Entry("classify", message_id="x" * 300, error="y" * 600)
    ends = os.pipe()
    with os.fdopen(ends[0], "rb", 0) as reader, os.fdopen(ends[1], "w") as unread:
        monkeypatch.setattr(sys, "stderr", unread)
        log = Log(STDERR)
        written = sum(log.write(entry) for _ in range(1000))
        assert written + log.n_dropped == 1000
        assert 0 < written < 100  # a pipe of 64 KiB
        lines = reader.read(1 << 20).decode().splitlines()
    assert len(lines) == written
    assert all(line.startswith("nbspam: action=classify message-id=xxx") for line in lines)
    assert all(line.endswith("yyy...") for line in lines)
    monkeypatch.setattr(sys, "stderr", None)
    assert not Log(STDERR).write(WHOLE)
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        log = Log(STDERR)
        assert not log.write(WHOLE)
        assert "No space left" in log.problem


def test_the_user_is_whom_the_environment_names(monkeypatch):
    monkeypatch.setenv("LOGNAME", "hal")
    assert own_user() == "hal"
    monkeypatch.delenv("LOGNAME")
    monkeypatch.setenv("USER", "eve")
    assert own_user() == "eve"
    monkeypatch.delenv("USER")
    assert own_user() == str(os.geteuid())


def test_loading_it_loads_nothing_slow():
    code = "import sys, nbspam.serving.log; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    slow = {"socket", "logging", "select", "selectors", "asyncio", "datetime", "pathlib"}
    assert slow & set(done.stdout.split()) == set()
