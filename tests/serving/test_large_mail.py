"""Large messages: the same answers as ever, and nobody waits for them."""

import os
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest
from served_programs import SPAM
from servers import AS_HAM, AS_SPAM, OK, request, told

from nbspam.reading.marks import MARK
from nbspam.serving.passthrough import remove_own_fields
from nbspam.serving.spamd import LARGE
from nbspam.store.lookup import read_model

MIB = 1 << 20
linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")


def padded(message, size=2 * LARGE):
    """Return a message whose tokens are a small one's: what follows the text is not looked at."""
    head, _, body = message.partition(b"\n\n")
    header = b"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n"
    text = b"--b\nContent-Type: text/plain\n\n" + body
    rest = b"--b\nContent-Type: application/x-none\n\n" + b"x" * 70 + b"\n"
    return head + b"\n" + header + b"\n" + text + rest + b"0123456\n" * (size // 8) + b"--b--\n"


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
    monkeypatch.setattr("nbspam.serving.spamd.LARGE", 1 << 30)
    monkeypatch.setattr("nbspam.serving.server.LARGE", 1 << 30)
    with serving(model) as served:
        assert apart == {command: served.ask(request(command, large)) for command in commands}
    assert remove_own_fields(apart["PROCESS"].partition(b"\r\n\r\n")[2], MARK) == large


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

    def fail(*_):
        raise MemoryError

    with serving(model) as served, monkeypatch.context() as patched:
        patched.setattr("nbspam.serving.server.answer.answer", fail)
        found = served.ask(request("CHECK", padded(SPAM)))
        assert found == b"SPAMD/1.0 75 Try again later: (it takes too much memory)\r\n"


@pytest.mark.long
def test_few_are_held_at_a_time_and_who_waits_too_long_is_told(serving, model):
    """A client that waits for a place has it until its reply, and a refused one leaves it."""
    asked = request("CHECK", padded(SPAM))
    head, rest = asked[:200], asked[200:]
    with serving(model, large=2, timeout=4) as served, served.clients(5) as clients:
        for client in clients[:2]:
            client.send(head)
        for client in clients[2:4]:
            client.send(asked)
        time.sleep(0.5)
        assert served.ask(request("CHECK", SPAM)).startswith(OK)  # which waits for none of them
        clients[0].send(rest)
        assert clients[0].rest().startswith(OK)
        assert [client.rest()[:15] for client in clients[2:4]] == [OK[:15]] * 2
        clients[4].send(asked)
        assert clients[4].rest().startswith(OK)
        assert clients[1].rest().startswith(b"SPAMD/1.0 79 ")
    line = b"SPAMD/1.0 75 Try again later: (too many large messages at once)\r\n"
    with serving(model, large=1, timeout=1) as served, served.clients(1) as [slow]:
        slow.send(head)
        time.sleep(0.7)
        assert served.ask(asked) == line or slow.rest()


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
        assert told(model, (new, True)) == ["learned"]
        assert served.ask(request("TELL", new, *AS_SPAM)) == OK + b"\r\n\r\n"
        assert told(model, (new, None)) == ["forgotten"]
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
