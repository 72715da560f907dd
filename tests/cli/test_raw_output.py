"""Standard output that writes in part: raw, as Python makes it with PYTHONUNBUFFERED or -u."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from waiting import unread, wait_until

RAW, BUFFERED = {"PYTHONUNBUFFERED": "1"}, {"PYTHONUNBUFFERED": ""}
MAIL = b"Subject: lunch\n\n" + b"see you at noon in the meeting room\n" * 6_000  # 216 KB
LIMIT = 64 << 10  # bytes of a file


def limited():
    """Let no file grow beyond the limit; a write is then short, and the next one fails."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))


def run(arguments, stdout, env=RAW, **options):
    return subprocess.run(
        [sys.executable, "-m", "nbspam", *map(str, arguments)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        # Bytecode cut off by the limit would fail later runs.
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | env,
        timeout=60,
        check=False,
        **options,
    )


def run_limited(arguments, path, **options):
    """Run nbspam with its output in a file that becomes too large; return its exit code."""
    with path.open("wb") as out:
        done = run(arguments, out, preexec_fn=limited, **options)
    assert b"File too large" in done.stderr
    assert path.stat().st_size <= LIMIT
    return done.returncode


def each_output(few):
    """Run some cases of a test by default, all of them with raw and buffered output if `long`."""
    each = pytest.mark.parametrize("env", [BUFFERED, RAW], ids=["buffered", "raw"])
    return lambda test: pytest.mark.few(few)(each(test))


@each_output(1)
@pytest.mark.parametrize("options", [(), ("--bogus",)])
def test_a_message_cut_off_by_a_full_file_is_told(model, tmp_path, env, options):
    command = ["classify", "-p", "-m", model, *options]
    assert run_limited(command, tmp_path / "out", env=env, input=MAIL) == 75


@contextmanager
def passing(model, **options):
    """Pass a mail through with a raw output; give the process, and where to read what it writes."""
    read, write = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-m", "nbspam", "classify", "-p", "-m", str(model)],
        stdin=subprocess.PIPE,
        stdout=write,
        env=os.environ | RAW,
        **options,
    ) as process:
        os.close(write)
        process.stdin.write(MAIL)
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
    assert body == MAIL.partition(b"\n\n")[2]


def test_a_reader_that_leaves_is_told(model):
    with passing(model, stderr=subprocess.DEVNULL) as (process, read):
        assert os.read(read, 100)
        os.close(read)
        assert process.wait(60) == 75


@each_output(1)
@pytest.mark.parametrize("form", ["csv", "bogofilter"])
def test_an_export_cut_off_is_told(sms_model, tmp_path, env, form):
    command = ["model", "export", "--form", form, "-m", sms_model]
    assert run_limited(command, tmp_path / "out", env=env) == 1
    whole = run(command, subprocess.PIPE, env)
    assert whole.returncode == 0
    assert len(whole.stdout) > LIMIT


@each_output(1)
def test_verdicts_cut_off_are_told(model, tmp_path, env):
    table = tmp_path / "many.txt"
    table.write_text("free prize\n" * 1_000)
    command = ["classify", "-m", model, "--lines", "--format", "json", table]
    assert run_limited(command, tmp_path / "out", env=env) == 1


def test_raw_output_is_written_line_by_line(model):
    """Whoever asks for no buffering gets each verdict as it is made."""
    done = run(["classify", "-m", model, "--format", "json"], subprocess.PIPE, input=b"lunch")
    assert json.loads(done.stdout)["verdict"]
