"""`--log` of classify, train and forget: a line for each message; the mail does not notice it."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import nbspam_main
from nbspam.serving import log

sys.path.append(str(Path(__file__).parents[1] / "serving"))
from logs import log_daemon

MAIL = b"Subject: secret\nFrom: a@example.com\nMessage-ID: <1@example.org>\n\nfree prize now\n"
MARKED = re.compile(rb"X-Nbspam: .*\n")
KNOWN = {"message-id": "<1@example.org>", "bytes": str(len(MAIL))}
LOG = ("--log", "syslog", "-m")


@pytest.fixture
def syslog(tmp_path, monkeypatch):
    """Return a syslog that the commands of this process write to."""
    monkeypatch.setenv("LOGNAME", "hal")
    with log_daemon(tmp_path / "syslog") as found:
        monkeypatch.setattr(log, "SYSLOG_SOCKET", found.path)
        yield found


def test_a_message_that_passes(nbspam, model, syslog):
    """Of the mail nothing is logged but its Message-ID and size."""
    found = nbspam("classify", "-p", *LOG, model, stdin=MAIL)
    assert (found.code, found.err) == (0, "")
    verdict = re.search(r"^X-Nbspam: (\w+),", found.out, re.MULTILINE)[1]
    [entry] = syslog.entries()
    assert f"probability={entry.pop('probability')}, " in found.out
    assert 0 < float(entry.pop("milliseconds")) < 60_000
    assert entry == {"action": "classify", **KNOWN, "verdict": verdict, "user": "hal"}
    for command in (["classify", "-p"], ["train", "--update", "--spam", "-"], ["forget"]):
        nbspam(*command, *LOG, model, stdin=MAIL)
    packets = b"".join(syslog.packets())
    assert packets.count(b"<1@example.org>") == 3
    assert not any(part in packets for part in (b"secret", b"example.com", b"free", b"prize"))


def test_a_log_that_is_not_there_changes_nothing(nbspam, model, tmp_path, monkeypatch):
    monkeypatch.setattr(log, "SYSLOG_SOCKET", str(tmp_path / "none"))
    without = nbspam("classify", "-p", "-m", model, stdin=MAIL)
    found = nbspam("classify", "-p", *LOG, model, stdin=MAIL)
    assert (found.code, found.out) == (without.code, without.out)
    assert found.err == (
        f"nbspam: {tmp_path}/none: 1 log line could not be written (No such file or directory);"
        " start that service, or log elsewhere\n"
    )
    found = nbspam("classify", "-p", *LOG, tmp_path / "gone", stdin=MAIL)
    assert (found.code, found.out) == (75, MAIL.decode())
    assert found.err.count("\n") == 1  # of the model alone


def assert_marked(found, said):
    assert found.code == 0
    assert MARKED.sub(b"", found.out.encode()) == MAIL
    assert said in found.err


@pytest.mark.long  # it waits for the log: 0.5 s each time
def test_a_log_that_is_not_read_changes_nothing(nbspam, model, syslog):
    syslog.fill()
    started = time.monotonic()
    found = nbspam("classify", "-p", *LOG, model, stdin=MAIL)
    assert_marked(found, "1 log line could not be written")
    train = ("train", "--update", "--spam", "-", *LOG, model)
    assert nbspam(*train, stdin=MAIL).code == 0
    assert time.monotonic() - started < 10
    syslog.packets()
    nbspam(*train, stdin=MAIL)
    assert [entry["result"] for entry in syslog.entries()] == ["unchanged"]


def test_an_error_in_the_log_itself_changes_nothing(nbspam, model, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log, "_text", fail)
    found = nbspam("classify", "-p", "--log", "stderr", "-m", model, stdin=MAIL)
    assert_marked(found, "No space left on device")


def test_standard_error_that_nobody_reads_delays_no_mail(model):
    """It is full before the message comes: without a bound nbspam would wait for ever."""
    read, write = os.pipe()
    with os.fdopen(read, "rb"), os.fdopen(write, "wb") as stderr:
        os.set_blocking(write, False)
        with pytest.raises(BlockingIOError):
            while True:
                os.write(write, b"x" * 4096)
        os.set_blocking(write, True)
        command = [sys.executable, "-m", "nbspam", "classify", "-p", "--log", "stderr", "-m", model]
        streams = {"stdout": subprocess.PIPE, "stderr": stderr}
        done = subprocess.run(command, input=MAIL, **streams, timeout=60)
    assert (done.returncode, MARKED.sub(b"", done.stdout)) == (0, MAIL)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["syslog", "journal"])
def test_a_line_costs_no_slow_module(model, kind):
    command = [sys.executable, "-X", "importtime", "-m", "nbspam", "classify", "-p", "-m", model]

    def loaded(*more):
        found = subprocess.run([*command, *more], input=MAIL, capture_output=True, check=True)
        lines = found.stderr.decode().splitlines()
        return {line.rpartition("|")[2].strip() for line in lines if "import time:" in line}

    assert loaded("--log", kind) - loaded() - {"select"} == {
        "_socket",
        "nbspam.cli.tracing",
        "nbspam.serving.log",
    }


def test_the_value_of_the_option_is_not_read_as_another():
    assert "--log" in nbspam_main.VALUED
    policy = nbspam_main.FailurePolicy(["classify", "--log", "-p"])
    assert not policy.passthrough
