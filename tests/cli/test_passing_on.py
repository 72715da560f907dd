"""A message passes with its verdict; whatever fails, it passes unchanged."""

import gc
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from pathlib import Path

import pytest
from one_case import each
from running import ROOT
from waiting import unread, wait_until

SPAM = b"From: a@example.org\nSubject: prize\n\nwin a free prize now\n"
HEADER = re.compile(
    rb"^X-Nbspam: (spam|ham|unsure), probability=([01]\.\d{6}),(?: reason=\S+,)? version=\S+\n",
    re.M,
)
TEMPFAIL = 75
PROGRAM = [sys.executable, "-m", "nbspam"]


def assert_unchanged(found, message, *parts, code=TEMPFAIL):
    returned, out, err = found
    err = err.lstrip("\n")  # click ends the line of ^C
    assert (returned, out) == (code, message)
    assert "Traceback" not in err
    assert err.startswith("nbspam: ")
    assert err.count("\n") == 1
    for part in parts:
        assert str(part) in err


# What goes well


def test_the_program_passes_a_message_as_this_process_does(passed, program, model):
    code, out, err = passed(SPAM, "classify", "-p", "-m", model)
    assert (code, err, HEADER.sub(b"", out)) == (0, "", SPAM)
    found = program("classify", "-p", "-m", model, input=SPAM)
    assert (found.code, found.out.encode(), found.err) == (0, out, "")
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert scripts == {"nbspam": "nbspam.__main__:main"}


# What goes wrong


BAD = [
    *("-m nowhere.json", "-m /", "-m {damaged}", "--bogus", "-x", "--passthrough=yes"),
    *("--evidence many", "--header", "--on-error panic", "--spam-cutoff 7", "--header Subject"),
    *("--header X¶Nbspam", "--subject-tag=a\nb", "--subject-tag=", "mail.eml", "--format json"),
    *("--lines", "--input-format tsv", "--input-format tsv --lines"),
]


@each("options", BAD)
def test_whatever_fails_the_message_passes_unchanged(passed, model, tmp_path, options):
    damaged = tmp_path / "damaged.json"
    damaged.write_bytes(model.read_bytes()[:300])
    options = [o.format(damaged=damaged).replace("¶", " ") for o in options.split(" ")]
    assert_unchanged(passed(SPAM, "classify", "-p", "-m", model, *options), SPAM)
    arguments = ("--on-error", "deliver", "--passthrough", "-m", model, *options)
    found = passed(SPAM, "classify", *arguments)
    assert_unchanged(found, SPAM, code=0)


@each("error", [TypeError, MemoryError, RecursionError, KeyboardInterrupt, ImportError, OSError])
def test_whatever_is_raised_the_message_passes_unchanged(passed, model, monkeypatch, error):
    def fails(*_):
        raise error("no\nluck")

    monkeypatch.setattr("nbspam.cli.classify.parse", fails)
    for more in ((), ("--exit-code",)):
        assert_unchanged(passed(SPAM, "classify", "-p", "-m", model, *more), SPAM)


def test_an_error_of_our_own_is_one_sentence(nbspam, model, monkeypatch, assert_sentence):
    monkeypatch.setattr("nbspam.scoring.verdict.Verdict.as_line", lambda *_: 1 / 0)
    found = nbspam("classify", "-m", model, stdin=SPAM)
    assert_sentence(found, "internal error (ZeroDivisionError: division by zero)", "report")
    monkeypatch.setenv("NBSPAM_DEBUG", "1")
    found = nbspam("classify", "-m", model, stdin=SPAM)
    assert (found.code, "Traceback" in found.err, found.out) == (1, True, "")


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["click", "nbspam.cli.classify", "nbspam.serving.passthrough"])
def test_the_message_passes_where_a_package_is_missing(model, name):
    code = (
        f"import runpy, sys; sys.modules[{name!r}] = None;"
        "runpy.run_module('nbspam', run_name='__main__')"
    )

    def run(*options):
        command = [sys.executable, "-c", code, "classify", "-m", str(model), *options]
        done = subprocess.run(command, input=SPAM, capture_output=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr.decode()

    assert_unchanged(run("-p"), SPAM, "missing", "reinstall nbspam")
    if name == "click":
        assert run("--exit-code")[:2] == (3, b"")
        assert run()[:2] == (1, b"")


def test_a_writer_that_is_slow_and_does_not_block(model):
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    command = [*PROGRAM, "classify", "-p", "-m", str(model)]
    process = subprocess.Popen(command, stdin=reading, stdout=subprocess.PIPE)
    os.close(reading)
    for piece in (SPAM[:30], SPAM[30:]):
        os.write(writing, piece)
        wait_until(lambda: not unread(writing))
    os.close(writing)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, HEADER.sub(b"", out)) == (0, SPAM)


def test_an_interrupt_while_the_message_comes_in(model):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen([*PROGRAM, "classify", "-p", "-m", str(model)], **pipes)
    process.stdin.write(SPAM[:30])
    process.stdin.flush()
    wait_until(lambda: not unread(process.stdin))  # it has loaded and waits for more
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(SPAM[30:], timeout=60)
    assert (process.returncode, out) == (75, b"")  # and the mail program keeps it
    assert err.decode() == "nbspam: interrupted\n"


def test_a_user_without_a_home_is_told_to_name_the_model(passed, monkeypatch):
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert_unchanged(passed(SPAM, "classify", "-p"), SPAM, "--model")


@each(
    "error, said",
    [
        *((TypeError, "internal error"), (MemoryError, "not enough memory")),
        *((KeyboardInterrupt, "interrupted"), (EOFError, "missing or damaged")),
    ],
)
def test_what_is_raised_is_3(nbspam, model, monkeypatch, error, said):
    def fails(*_):
        raise error

    monkeypatch.setattr("nbspam.scoring.verdict.Verdict.as_line", fails)
    found = nbspam("classify", "--exit-code", "-m", model, stdin=SPAM)
    assert (found.code, said in found.err) == (3, True)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="Linux alone lists open files")
@each("options", [("-p",), ()])
def test_a_model_that_is_refused_is_closed(nbspam, tmp_path, options):
    """One without a class that counts as spam, to which --exit-code has no answer."""
    model, frame = tmp_path / "three.json", tmp_path / "three.csv"
    frame.write_text("label,text\nwork,lunch\nhome,dinner\nlist,news\n")
    assert nbspam("train", "-m", model, frame).code == 0
    gc.collect()  # closes what earlier tests left to the collector
    before = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(3):
        said = nbspam("classify", *options, "--exit-code", "-m", model, stdin=SPAM)
        assert "--exit-code needs a spam class" in said.err
    assert len([*Path("/proc/self/fd").iterdir()]) == before


# What the command line promises, read without click


def test_ctrl_c_while_the_program_is_loaded_is_no_bug(program, tmp_path):
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    env = {"PYTHONPATH": str(tmp_path)}
    found = program("classify", env=env, input=b"")
    assert (found.code, found.err) == (130, "nbspam: interrupted\n")
    mail = b"Subject: a\n\nb\n"
    passed = program("classify", "-p", env=env, input=mail)
    assert (passed.code, passed.out.encode()) == (75, mail)


# Standard output that writes in part: raw, as Python makes it with PYTHONUNBUFFERED or -u; what a
# full file cuts off is in tests/golden/cli/sessions/streams.txt

LONG = b"Subject: lunch\n\n" + b"see you at noon in the meeting room\n" * 6_000  # 216 KB


@contextmanager
def passing(model, **options):
    """Pass a mail through with a raw output; give the process, and where to read what it writes."""
    read, write = os.pipe()
    with subprocess.Popen(
        [*PROGRAM, "classify", "-p", "-m", str(model)],
        stdin=subprocess.PIPE,
        stdout=write,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        **options,
    ) as process:
        os.close(write)
        process.stdin.write(LONG)
        process.stdin.close()
        yield process, read


def test_the_whole_message_comes_through_a_slow_pipe(model):
    with passing(model) as (process, read):
        wait_until(lambda: unread(read) >= 1 << 16)  # it is full
        for _ in range(5):  # a signal in the middle of a write makes it a short one
            process.send_signal(signal.SIGSTOP)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.02)
        found = b""
        while chunk := os.read(read, 5_000):
            found += chunk
        os.close(read)
        assert process.wait(60) == 0
    head, _, body = found.partition(b"\n\n")
    assert b"X-Nbspam: " in head
    assert body == LONG.partition(b"\n\n")[2]


def test_a_reader_that_leaves_is_told(model):
    with passing(model, stderr=subprocess.DEVNULL) as (process, read):
        assert os.read(read, 100)
        os.close(read)
        assert process.wait(60) == 75


# Hardly any memory
