"""`nbspam serve` as a program of its own, and clients that speak to it byte by byte."""

import os
import re
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from waiting import wait_until

import nbspam

SPAM = b"Subject: prize\n\nclaim the free cash prize today, win it now\n"
HAM = b"Subject: lunch\n\nsee you at lunch, at noon, after the meeting\n"


def make_model(path):
    spam = "win a free prize now", "free prize for the winner", "claim the free cash prize today"
    ham = "lunch at noon today", "see you at the meeting", "the meeting notes are here, love"
    pairs = ("spam", spam), ("ham", ham)
    nbspam.train(
        [(label, f"{texts[i % 3]} {i}") for i in range(400) for label, texts in pairs]
    ).save(path)
    return path


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def end(self):
        self.socket.shutdown(socket.SHUT_WR)

    def rest(self):
        found = b""
        try:
            while chunk := self.socket.recv(1 << 16):
                found += chunk
        except ConnectionResetError:
            pass
        return found


class Served:
    """A server, its socket, and what it has said."""

    def __init__(self, path, said):
        self.path, self.said = path, said

    def connect(self):
        return Client(self.path)

    @contextmanager
    def clients(self, n):
        with ExitStack() as opened:
            yield [opened.enter_context(self.connect()) for _ in range(n)]

    def ask(self, request, end=True):
        with self.connect() as client:
            try:
                client.send(request)
                if end:
                    client.end()
            except OSError:  # refused before it was all sent
                pass
            return client.rest()

    def metric(self, name):
        with Client(self.path.with_name("metrics")) as client:
            client.send(b"GET /metrics HTTP/1.1\r\n\r\n")
            page = client.rest().decode()
        return float(re.search(rf"^nbspam_{re.escape(name)} (\S+)$", page, re.MULTILINE)[1])

    @property
    def n_open(self):
        return self.metric("connections")

    def wait(self, condition, seconds=60.0):
        wait_until(condition, seconds, lambda: self.said)


class Program(Served):
    """A server in a process of its own."""

    def __init__(self, process, path):
        super().__init__(path, [])
        self.process = process
        self.listener = threading.Thread(target=lambda: self.said.extend(process.stderr))
        self.listener.start()

    @property
    def workers(self):
        return workers_of(self.process.pid)

    def stop(self, *numbers):
        for number in numbers:
            self.process.send_signal(number)
        if not numbers:
            self.process.terminate()
        return self.process.wait(20)


@contextmanager
def program(folder, model, *options, kind=Program, answers=True):
    path = folder / "socket"
    process = subprocess.Popen(
        [sys.executable, "-m", "nbspam", "serve", "-m", model, "--socket", path, *options],
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONWARNINGS": "error"},
    )
    served = kind(process, path)
    try:
        if answers:
            served.wait(lambda: served.said)
            assert served.said[0].startswith(f"nbspam: serving {model} on {path}")
        yield served
    finally:
        with suppress(OSError):
            process.terminate()
        process.wait(60)
        served.listener.join()
        process.stderr.close()
    assert not any("Traceback" in line for line in served.said), served.said


def children(pid):
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def command(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def workers_of(pid):
    """Return the numbers of the processes that read messages for a server."""
    return children(pid)
