"""Servers in the test's own process, and what is sent to them."""

import asyncio
import fcntl
import logging
import threading
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

from served_programs import Served

from nbspam.filter import open_filter
from nbspam.serving.answer import message_to_learn
from nbspam.serving.log import is_entry
from nbspam.serving.metrics import Metrics
from nbspam.serving.models import Limits, Models, ServerConfig, UserFiles
from nbspam.serving.server import Worker
from nbspam.serving.sockets import unix_socket
from nbspam.serving.teaching import Lesson, apply_lessons
from nbspam.store.writing import DEFAULT_WAIT

OK, PONG = b"SPAMD/1.1 0 EX_OK\r\n", b"SPAMD/1.5 0 PONG\r\n"
LEARNED = OK + b"DidSet: local\r\n\r\n\r\n"
AS_SPAM, AS_HAM = ("Message-class: spam", "Set: local"), ("Message-class: ham", "Set: local")


def golden(name):
    """Return the rows of a table in tests/golden/serving, as bytes."""
    text = (Path(__file__).parents[1] / "golden" / "serving" / name).read_text()
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    return [[c.encode().decode("unicode_escape").encode("latin-1") for c in row] for row in rows]


class Sentences(list):
    """The server's warnings and other sentences, as they are logged."""

    @contextmanager
    def logged(self):
        handler = logging.Handler()
        handler.emit = lambda record: is_entry(record) or self.append(record.getMessage())
        logger = logging.getLogger("nbspam")
        logger.setLevel(logging.INFO)
        logger.handlers, handlers = [handler], logger.handlers  # those of servers beside it
        try:
            yield self
        finally:
            logger.handlers = handlers


class InThread(Served):
    """A worker in a thread of this process."""

    def __init__(self, path, said, run):
        super().__init__(path, said)
        self.is_stopped, started = False, threading.Event()

        async def main():
            self.loop, self.end = asyncio.get_running_loop(), asyncio.Event()
            started.set()
            await run(self.end)

        self.stopping = threading.Thread(target=lambda: asyncio.run(main()))
        self.stopping.start()
        assert started.wait(20)

    def stop(self):
        self.is_stopped = True
        self.loop.call_soon_threadsafe(self.end.set)

    def stop_within(self, seconds):
        started = time.monotonic()
        self.stop()
        self.stopping.join(60)
        assert time.monotonic() - started < seconds


def put(path, raw):
    """Replace a file; None: remove it."""
    if raw is None:
        path.unlink()
        return
    beside = path.with_name("beside")
    beside.write_bytes(raw)
    beside.replace(path)


@contextmanager
def held(model):
    """Hold a model's lock, as another program would."""
    with model.with_name(f".{model.name}.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


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
    cut_offs=(None,) * 3,
    users=None,
    most=100,
    base=None,
    tell=False,
    senders=None,
    **limits,
):
    """Serve a model; yields what there is to know of the server.

    tell: whether clients may teach; apply: what is called then, in place of what applies them.
    users: where their models are, which can be taught; most: of them that stay open.
    base: that the model is read through.  senders: lists of them.
    """
    said, path = Sentences(), folder / "socket"
    files, can_tell = UserFiles.from_pattern(users) if users else None, bool(tell or users or apply)
    config = ServerConfig(
        model, cut_offs, base, files, 1, Limits(**limits), can_tell, False, senders, most
    )
    with (
        said.logged(),
        patch("nbspam.serving.teaching.apply_lessons", apply) if apply else nullcontext(),
        unix_socket(path, 0o600) as listener,
        unix_socket(folder / "metrics", 0o600) as metrics,
    ):
        models = Models(config)
        counted = Metrics(models.common.classes, 1)
        served = InThread(
            path, said, lambda end: Worker(config, models, counted).run([listener], [metrics], end)
        )
        try:
            yield served
        finally:
            if not served.is_stopped:
                served.stop()
            served.stopping.join(60)
            assert not served.stopping.is_alive()


def lessons(path, asked, base=None):
    """Return lessons of (message in bytes, whether it is spam) pairs, as the server reads them."""
    with open_filter(path, base=base) as spam_filter:
        outputs = spam_filter.version.outputs
    return [Lesson(is_spam, message_to_learn(message, outputs)) for message, is_spam in asked]


def told(path, *asked, base=None):
    """Learn or forget messages, as the server does; return what was done."""
    with open_filter(path, base=base) as spam_filter:
        found = apply_lessons(spam_filter, lessons(path, asked, base), DEFAULT_WAIT)
    return [getattr(each, "result", each) for each in found]
