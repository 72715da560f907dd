"""`--log` of classify, train and forget: a line for each message; the mail does not notice it."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from one_case import each

import nbspam_main
from nbspam.serving import log

sys.path.append(str(Path(__file__).parents[1] / "serving"))
from logs import fields, log_daemon

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


@pytest.fixture
def entries(syslog):
    """Return a function that returns the lines so far, without times and probabilities."""

    def found():
        lines = syslog.entries()
        for line in lines:
            assert float(line.pop("milliseconds", 0)) < 60_000
            assert 0 <= float(line.pop("probability", 0)) <= 1
            assert line.pop("user") == "hal"
        return lines

    return found


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


@each("how", [[], ["-p"]])
def test_the_line_has_the_reason_where_the_probability_did_not_decide(nbspam, model, syslog, how):
    assert nbspam("classify", *how, *LOG, model, stdin="зима на море".encode()).code == 0
    [entry] = syslog.entries()
    assert (entry["verdict"], entry["reason"]) == ("unsure", "too few known words")


@each("passthrough", [["-p"], []])
def test_why_there_is_no_verdict_is_logged(nbspam, model, tmp_path, entries, passthrough):
    path = tmp_path / "none.json"
    found = nbspam("classify", *passthrough, *LOG, path, stdin=MAIL)
    assert found.code == (75 if passthrough else 1)
    assert found.out == (MAIL.decode() if passthrough else "")
    assert found.err.startswith(f"nbspam: {path}: model not found")
    [entry] = entries()
    assert entry.pop("error") == found.err.removeprefix("nbspam: ").rstrip("\n")
    assert entry == {"action": "classify", **(KNOWN if passthrough else {})}
    found = nbspam("classify", "-p", *LOG, model, "--spam-cutoff", "7", stdin=MAIL)
    assert (found.code, found.out) == (75, MAIL.decode())
    [entry] = entries()
    assert "7" in entry["error"]


def test_many_messages_have_a_line_each(nbspam, sample, model, tmp_path, entries):
    folder, table = tmp_path / "mails", tmp_path / "few.txt"
    folder.mkdir()
    for path in sorted((sample / "odd").glob("*.eml"))[:8]:  # the system keeps 10 lines
        shutil.copy(path, folder)
    found = nbspam("classify", *LOG, model, folder)
    lines = entries()
    rows = [line.split("\t") for line in found.out.splitlines()]
    assert [line["verdict"] for line in lines] == [row[0] for row in rows]
    assert [int(line["bytes"]) for line in lines] == [Path(row[2]).stat().st_size for row in rows]
    assert sum("message-id" in line for line in lines) > len(rows) / 2
    table.write_text("win a prize\nsee you at lunch\n")
    assert nbspam("classify", "--lines", *LOG, model, table).code == 0
    assert [line.keys() for line in entries()] == [{"action", "verdict"}] * 2


def test_what_is_learned_and_forgotten(nbspam, model, entries):
    commands = [["train", "--update", f"--{label}", "-"] for label in ("spam", "ham", "ham")]
    commands += [["forget"]] * 2 + [["train", "--update", "--no-ledger", "--spam", "-"]]
    for command in commands:
        assert nbspam(*command, *LOG, model, stdin=MAIL) == (0, "", "")
    learn, forget = ({"action": action, **KNOWN} for action in ("learn", "forget"))
    assert entries() == [
        {**learn, "class": "spam", "result": "learned"},
        {**learn, "class": "ham", "result": "moved"},
        {**learn, "class": "ham", "result": "unchanged"},
        {**forget, "result": "forgotten"},
        {**forget, "result": "unchanged"},
        {**learn, "class": "spam"},
    ]


def test_of_many_messages_those_are_logged_that_change_the_model(nbspam, model, tmp_path, entries):
    folder = tmp_path / "Maildir"
    for name in ("cur", "new", "tmp"):
        (folder / name).mkdir(parents=True)

    def learned():
        assert nbspam("train", "--update", "-q", "--spam", folder, *LOG, model).code == 0
        return {(line["message-id"], line["result"]) for line in entries()}

    for i in range(3):
        (folder / "cur" / f"{i}:2,S").write_bytes(MAIL.replace(b"1@", b"%d@" % i))
    assert learned() == {(f"<{i}@example.org>", "learned") for i in range(3)}
    (folder / "cur" / "4:2,S").write_bytes(MAIL.replace(b"1@", b"4@"))
    assert learned() == {("<4@example.org>", "learned")}
    assert learned() == set()


def test_a_new_model_has_one_line_and_one_that_cannot_learn_too(nbspam, table, tmp_path, entries):
    path = tmp_path / "new.json"
    assert nbspam("train", "-q", *LOG, path, table).code == 0
    assert entries() == [{"action": "train", "note": f"{path}: learned 30 messages"}]
    path.write_text("{}")
    found = nbspam("train", "--update", "--spam", "-", *LOG, path, stdin=MAIL)
    assert found.code == 1
    [entry] = entries()
    assert entry["action"] == "learn"
    assert str(path) in entry["error"]


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
def test_a_log_that_is_not_read_changes_nothing(nbspam, model, syslog, entries):
    syslog.fill()
    started = time.monotonic()
    found = nbspam("classify", "-p", *LOG, model, stdin=MAIL)
    assert_marked(found, "1 log line could not be written")
    train = ("train", "--update", "--spam", "-", *LOG, model)
    assert nbspam(*train, stdin=MAIL).code == 0
    assert time.monotonic() - started < 10
    syslog.packets()
    nbspam(*train, stdin=MAIL)
    assert [entry["result"] for entry in entries()] == ["unchanged"]


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


def test_to_standard_error(nbspam, model):
    found = nbspam("classify", "-p", "--log", "stderr", "-m", model, stdin=MAIL)
    line = found.err.removeprefix("nbspam: ").removesuffix("\n")
    assert fields(line)["message-id"] == "<1@example.org>"


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
