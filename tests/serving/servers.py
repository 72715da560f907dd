"""Servers in the test's own process, and clients that speak to them byte by byte."""

import fcntl
import os
import re
import socket
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from nbspam.serving.clients import Limits
from nbspam.serving.models import Opening, ServedModels, UserFiles
from nbspam.serving.server import Server
from nbspam.serving.sockets import unix_socket
from nbspam.serving.teaching import Teacher, apply_requests

SPAM = b"Subject: prize\n\nclaim the free cash prize today, win it now\n"
HAM = b"Subject: lunch\n\nsee you at lunch, at noon, after the meeting\n"


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


class Served(NamedTuple):
    path: Path
    said: list[str]
    stopping: threading.Thread
    others: list[int]  # processes of other servers

    def connect(self):
        return Client(self.path)

    def ask(self, request, end=True):
        with self.connect() as client:
            try:
                client.send(request)
                if end:
                    client.end()
            except OSError:  # refused before it was all sent
                pass
            return client.rest()

    def stop(self):
        self.stopping.start()

    def stop_within(self, seconds):
        started = time.monotonic()
        self.stop()
        self.stopping.join(60)
        assert time.monotonic() - started < seconds

    def metric(self, name):
        with Client(self.path.with_name("metrics")) as client:
            client.send(b"GET /metrics HTTP/1.1\r\n\r\n")
            page = client.rest().decode()
        return float(re.search(rf"^nbspam_{re.escape(name)} (\S+)$", page, re.MULTILINE)[1])

    @property
    def n_open(self):
        return self.metric("connections")

    @property
    def processes(self):
        """Return the numbers of the processes that read messages."""
        return [
            pid
            for pid in children(os.getpid())
            if pid not in self.others and b"be_judge" in command(pid)
        ]

    def wait(self, condition, seconds=60.0):
        ends = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < ends, self.said
            time.sleep(0.005)


@contextmanager
def held(model):
    """Hold a model's lock, as another program would."""
    with model.with_name(f".{model.name}.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


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


def status(pid):
    """Return what a process does: T when it is stopped, Z when it has ended."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def together(n, work):
    threads = [threading.Thread(target=work) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def request(command, message=None, *headers, version="1.5", user="nobody"):
    lines = [f"{command} SPAMC/{version}", f"User: {user}", *headers]
    if message is None:
        return "".join(f"{line}\r\n" for line in [*lines, ""]).encode()
    lines.append(f"Content-length: {len(message)}")
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode() + message


@contextmanager
def serving_in(
    folder,
    model,
    apply=None,
    log=None,
    cut_offs=(None,) * 3,
    users=None,
    most=100,
    base=None,
    tell=False,
    workers=1,
    **limits,
):
    """Serve a model; yields what there is to know of the server.

    apply: what is called to learn; or tell: that it is what the program calls.
    users: where their models are, which can be taught; most: of them that stay open.
    base: that the model is read through.
    """
    said, path, bounds = [], folder / "socket", Limits(**limits)
    models = ServedModels(model, cut_offs, base, users, workers, most)
    current = models.common(Opening(models.cut_offs_of, said.append))
    teacher = None
    if apply or tell or users:
        apply = apply or partial(apply_requests, base=model if users else base)
        teacher = Teacher(apply, bounds, said.append, UserFiles(users) if users else None)
    server = Server(models, current, bounds, teacher, said.append, log)
    with (
        unix_socket(path, 0o600) as listener,
        unix_socket(folder / "metrics", 0o600) as metrics,
    ):
        stopping, others = threading.Thread(target=server.close), children(os.getpid())
        server.start([listener], [metrics])
        try:
            yield Served(path, said, stopping, others)
        finally:
            if not stopping.ident:
                stopping.start()
            stopping.join(60)
            assert not stopping.is_alive()
