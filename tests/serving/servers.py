"""Servers in a thread of the test's own process, and clients that speak to them byte by byte."""

import asyncio
import socket
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from nbspam.scoring.verdict import CutOffs
from nbspam.serving.limits import Limits
from nbspam.serving.server import Server
from nbspam.serving.sockets import unix_socket
from nbspam.serving.tell import LearnQueue, apply_requests
from nbspam.serving.user_files import UserFiles
from nbspam.serving.user_tell import UserQueues
from nbspam.serving.worker_program import WorkerSettings

SPAM = b"Subject: prize\n\nclaim the free cash prize today, win it now\n"
HAM = b"Subject: lunch\n\nsee you at lunch, at noon, after the meeting\n"
_CUT_OFFS = CutOffs()


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
    server: Server
    loop: asyncio.AbstractEventLoop
    listener: socket.socket
    thread: threading.Thread

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
        self.loop.call_soon_threadsafe(self.server.stop)

    def stop_within(self, seconds):
        started = time.monotonic()
        self.stop()
        self.thread.join(60)
        assert time.monotonic() - started < seconds

    @property
    def n_open(self):
        return self.server.connections.n_open

    def wait(self, condition, seconds=60.0):
        ends = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < ends, "it did not come about in time"
            time.sleep(0.005)


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
    cut_offs=_CUT_OFFS,
    users=None,
    most=100,
    base=None,
    **limits,
):
    """Serve a model in a thread; yields what there is to know of the server.

    users: where their models are, which can be taught; most: of them that stay open.
    base: that the model is read through.
    """
    said, started, kept = [], threading.Event(), []
    path = folder / "socket"

    async def main():
        bounds = Limits(**limits)
        queue = LearnQueue(apply, bounds, said.append) if apply else None
        settings = WorkerSettings(
            model, (None,) * 3, bounds, users=users, open_models=most, base=base
        )
        current = settings.models(said.append, lambda metadata: cut_offs)
        if users:
            apply_to = partial(apply_requests, base=model)
            queue = UserQueues(apply_to, UserFiles(users), bounds, said.append)
        server = Server(current, bounds, queue, said.append, log)
        with (
            unix_socket(path, 0o600) as listener,
            unix_socket(folder / "metrics", 0o600) as metrics,
        ):
            kept.extend([server, asyncio.get_running_loop(), listener])
            await server.run([listener], started.set, [metrics])
        current.close()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    try:
        assert started.wait(60)
        served = Served(path, said, *kept, thread)
        yield served
    finally:
        if kept:
            with suppress(RuntimeError):  # it has ended, and its loop is closed
                kept[1].call_soon_threadsafe(kept[0].stop)
        thread.join(60)
        assert not thread.is_alive()


def slow_down(monkeypatch, owner, name, seconds):
    """Let a function of a module or class take so much longer."""
    real = getattr(owner, name)

    def slow(*arguments):
        time.sleep(seconds)
        return real(*arguments)

    monkeypatch.setattr(owner, name, slow)
