"""Large messages: the same answers as ever, and nobody waits for them."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import pytest
from served_programs import SPAM
from servers import AS_HAM, AS_SPAM, OK, put, request

from nbspam.reading.marks import MARK
from nbspam.serving import pool
from nbspam.serving.passthrough import cleaned
from nbspam.serving.spamd import LARGE
from nbspam.serving.teaching import LearnRequest, apply_requests
from nbspam.store.lookup import read_model
from nbspam.store.writing import DEFAULT_WAIT

MIB = 1 << 20
linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")


def padded(message, size=2 * LARGE):
    """Return a message whose tokens are a small one's: what follows the text is not looked at."""
    head, _, body = message.partition(b"\n\n")
    header = b"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n"
    text = b"--b\nContent-Type: text/plain\n\n" + body
    rest = b"--b\nContent-Type: application/x-none\n\n" + b"x" * 70 + b"\n"
    return head + b"\n" + header + b"\n" + text + rest + b"0123456\n" * (size // 8) + b"--b--\n"


def program_of(served):
    """Return the process for large messages, which is started last."""
    [_, _, large] = served.processes
    return large


def test_the_answer_is_that_of_a_small_message(serving, model, monkeypatch):
    """With and without a length, compressed, and read in this process."""
    large = padded(SPAM)
    packed = zlib.compress(large)
    commands = "CHECK", "SYMBOLS", "REPORT", "PROCESS", "HEADERS"
    with serving(model) as served:
        apart = {command: served.ask(request(command, large)) for command in commands}
        for command in commands:
            assert served.ask(request(command, packed, "Compress: zlib")) == apart[command]
            head = f"{command} SPAMC/1.5\r\n\r\n".encode()
            assert served.ask(head + large) == apart[command]
        assert served.said == []
    small = SPAM + b"x" * (LARGE - len(SPAM))
    with serving(model) as served:  # what unpacks to a small one needs no process
        found = served.ask(request("CHECK", small))
        assert found.startswith(OK)
        assert served.ask(request("CHECK", zlib.compress(small), "Compress: zlib")) == found
        assert len(served.processes) == 2
    monkeypatch.setattr("nbspam.serving.spamd.LARGE", 1 << 30)
    monkeypatch.setattr("nbspam.serving.server.LARGE", 1 << 30)
    with serving(model) as served:
        assert apart == {command: served.ask(request(command, large)) for command in commands}
        assert len(served.processes) == 2
    assert cleaned(apart["PROCESS"].partition(b"\r\n\r\n")[2], MARK) == large


def test_what_cannot_be_read_there_is_refused(serving, model, monkeypatch):
    line = b"SPAMD/1.0 65 Message refused: "
    bomb, cut = zlib.compress(bytes(MIB + 1)), zlib.compress(os.urandom(2 * LARGE))[:-3]
    with serving(model, max_size=MIB) as served:
        found = served.ask(request("CHECK", bomb, "Compress: zlib"))
        assert found == line + b"the decompressed message is larger than 1048576 bytes\r\n"
        found = served.ask(request("CHECK", cut, "Compress: zlib"))
        assert found == line + b"the zlib data is truncated or has trailing bytes\r\n"
        found = served.ask(request("HEADERS", b"no header " * (LARGE // 5)))
        assert found.startswith(line + b"HEADERS needs")
        assert served.said == []
    with monkeypatch.context() as patch:
        less = "; j.limit_memory = lambda n, real=j.limit_memory: real(n // 3)"
        less = f"\nimport nbspam.serving.pool as j{less}; run_worker("
        code = pool._CODE.replace("\nrun_worker(", less)
        patch.setattr(pool, "_CODE", code)
        with serving(model) as served:
            found = served.ask(request("CHECK", padded(SPAM, 31 * MIB)))
            assert found == b"SPAMD/1.0 75 Try again later: (it takes too much memory)\r\n"
            assert served.ask(request("CHECK", padded(SPAM))).startswith(OK)

    def fail(*_, **__):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    with serving(model) as served:
        assert served.ask(request("CHECK", SPAM)).startswith(OK)
        monkeypatch.setattr(pool.subprocess, "Popen", fail)
        assert served.ask(request("CHECK", padded(SPAM))).startswith(b"SPAMD/1.0 75 ")
        assert served.ask(request("CHECK", SPAM)).startswith(OK)
    assert "Resource temporarily unavailable" in served.said[0]


@linux
def test_it_gets_each_new_version_and_no_damaged_one(serving, model):
    large = request("CHECK", padded(b"Subject: other\n\nsome quite unheard-of words\n"))
    new = [LearnRequest(b"some quite unheard-of words", True)]
    with serving(model) as served:
        before = served.ask(large)
        assert apply_requests(model, new, DEFAULT_WAIT) == ["learned"]
        after = served.ask(large)
        scores = [float(re.search(rb"; (-?[\d.]+) /", reply)[1]) for reply in (before, after)]
        assert scores[0] < scores[1]
        put(model, model.read_bytes()[:500])
        assert served.ask(large) == after  # of the version that the server has open
        first = program_of(served)
        os.kill(first, signal.SIGKILL)  # while it has nothing to do: nothing is lost
        os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)  # until the server can see it
        assert served.ask(large) == after
        assert len(served.said) == 1


@linux
def test_when_it_dies_or_takes_too_long_the_message_is_refused_and_a_new_one_is_started(
    serving, model
):
    asked = request("CHECK", padded(SPAM))
    with serving(model, reading=3) as served:
        good = served.ask(asked)
        first = program_of(served)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(first, number)  # signals to the group are the server's
        assert served.ask(asked) == good
        assert program_of(served) == first
        os.kill(first, signal.SIGSTOP)
        assert served.ask(asked) == b"SPAMD/1.0 75 Try again later: (it took longer than 3 s)\r\n"
        assert served.ask(asked) == good
        assert served.said == ["gave up on a message (it took longer than 3 s)"]
        first, replies = program_of(served), []
        os.kill(first, signal.SIGSTOP)
        asking = [
            threading.Thread(target=lambda: replies.append(served.ask(asked))) for _ in range(3)
        ]
        for thread in asking:
            thread.start()
        served.wait(lambda: served.metric("parked_connections") == 3)
        assert served.ask(request("CHECK", SPAM)).startswith(OK)  # which waits for none of them
        time.sleep(0.1)
        os.kill(first, signal.SIGKILL)
        for thread in asking:
            thread.join()
        line = b"SPAMD/1.0 75 Try again later: (the process that reads it has ended)\r\n"
        assert sorted(replies) == sorted([line, good, good])  # the others were not lost with it
        assert program_of(served) != first
    assert served.said[1:] == ["gave up on a message (the process that reads it has ended)"]


def test_a_large_message_is_learned_once_moved_and_forgotten(serving, model):
    new = padded(b"Subject: new\nMessage-ID: <1@example.org>\n\nquite another thing\n")
    before = read_model(model)
    with serving(model, tell=True) as served:
        for headers, done in (
            (AS_SPAM, b"DidSet: local\r\n"),
            (AS_SPAM, b""),
            (AS_HAM, b"DidSet: local\r\n"),
            (["Remove: local"], b"DidRemove: local\r\n"),
            (["Remove: local"], b""),
        ):
            assert served.ask(request("TELL", new, *headers)) == OK + done + b"\r\n\r\n"
            packed = request("TELL", zlib.compress(new), "Compress: zlib", *headers)
            assert served.ask(packed) == OK + b"\r\n\r\n"
        # what was learned elsewhere is known to the server, so that nothing is learned twice
        assert apply_requests(model, [LearnRequest(new, True)], DEFAULT_WAIT) == ["learned"]
        assert served.ask(request("TELL", new, *AS_SPAM)) == OK + b"\r\n\r\n"
        assert apply_requests(model, [LearnRequest(new, None)], DEFAULT_WAIT) == ["forgotten"]
        assert served.said == []
    after = read_model(model)
    assert after.counts == before.counts
    assert after.learned == before.learned


HOSTILE = {
    "no empty line": b"X-A: b\n" * (30 * MIB // 7),
    "one line": b"Subject: a\n\n" + b"a" * (30 * MIB),
    "one line and no header": b"a" * (30 * MIB),
    "tags": b"Content-Type: text/html\n\n" + b"<b>" * (25 * MIB // 3),
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("shape", "command"),
    [*((shape, "PROCESS") for shape in HOSTILE), ("tags", "CHECK"), ("tags", "TELL")],
)
def test_small_messages_do_not_wait_for_two_hostile_clients(serving, model, command, shape):
    headers = AS_SPAM if command == "TELL" else ()
    asked = request(command, HOSTILE[shape], *headers)
    with serving(model, tell=True) as served:
        served.ask(request("CHECK", SPAM))
        ends = time.monotonic() + 1.5
        code = (
            "import socket, sys\n"
            "asked = sys.stdin.buffer.read()\n"
            "while True:\n"
            "    with socket.socket(socket.AF_UNIX) as client:\n"
            "        client.connect(sys.argv[1])\n"
            "        client.sendall(asked)\n"
            "        while client.recv(1 << 20): pass\n"
        )
        hostile = [
            subprocess.Popen(
                [sys.executable, "-c", code, served.path],
                stdin=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            for _ in range(2)
        ]
        try:
            for process in hostile:
                process.stdin.write(asked)
                process.stdin.close()
            waits = []
            while time.monotonic() < ends:
                begun = time.monotonic()
                assert served.ask(request("CHECK", SPAM)).startswith(OK)
                waits.append(time.monotonic() - begun)
                time.sleep(0.005)
        finally:
            for process in hostile:
                process.kill()
                process.wait()
        waits.sort()
        assert waits[int(0.99 * (len(waits) - 1))] < 1
        served.stop()
        served.stopping.join(60)
