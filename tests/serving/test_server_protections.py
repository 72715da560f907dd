"""What keeps one client from harming the others, or the machine: each test fails without it."""

import asyncio
import fcntl
import math
import os
import signal
import stat
import threading
import time
import tracemalloc
import zlib
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
from servers import HAM, SPAM, Client, request, slow_down

from nbspam.errors import LockedError, ModelError, ServingError
from nbspam.scoring.verdict import CutOffs
from nbspam.serving.connections import Connections
from nbspam.serving.limits import Limits
from nbspam.serving.responder import Responder
from nbspam.serving.sockets import BACKLOG, unix_socket
from nbspam.serving.spamd import RefusedError, Request, unzipped
from nbspam.serving.tell import LearnQueue, LearnRequest, apply_requests
from nbspam.serving.user_files import UserFiles
from nbspam.serving.user_models import open_user_model
from nbspam.serving.user_tell import UserQueues
from nbspam.store.writing import LockWait

OK = b"SPAMD/1.1 0 EX_OK\r\n"
TEACH = "Message-class: spam", "Set: local"
WORDS = b"".join(b"word%d " % i for i in range(9_000))
LIMITS = Limits(learning=0.2)


@pytest.fixture
def users(tmp_path):
    """Return the folder of users' models."""
    folder = tmp_path / "users"
    folder.mkdir(mode=0o700)
    return folder


@contextmanager
def held(model):
    """Hold a model's lock, as another program would."""
    with model.with_name(f".{model.name}.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def teach(served, user, message=SPAM):
    return served.ask(request("TELL", message, *TEACH, user=user))


# Metrics


@pytest.mark.long
def test_the_scraper_has_a_place_beside_300_idle_clients(serving, model):
    with serving(model) as served, ExitStack() as opened:
        place = served.path.with_name("metrics")
        for _ in range(300):
            opened.enter_context(Client(place))
        started = time.monotonic()
        with Client(place) as scraper:
            scraper.send(b"GET /metrics HTTP/1.1\r\n\r\n")
            assert scraper.rest().startswith(b"HTTP/1.1 200 OK\r\n")
        assert time.monotonic() - started < 8  # Prometheus waits for 10


# The end, whatever clients do


def ends_within(served, seconds):
    """Stop a server that is said to end in time."""
    started = time.monotonic()
    served.stop()
    served.thread.join(30)
    assert not served.thread.is_alive()
    assert time.monotonic() - started < seconds


@pytest.mark.few(1)
@pytest.mark.parametrize("size", [100, 40_000], ids=["in the loop", "in a thread"])
def test_it_ends_in_time_among_messages_that_take_long(serving, model, monkeypatch, size):
    """30 messages of 0.1 s."""
    slow_down(monkeypatch, Responder, "_answer", 0.1)
    whole = request("CHECK", WORDS[:size])
    with serving(model, shutdown=0.5) as served, ExitStack() as opened:
        clients = [opened.enter_context(served.connect()) for _ in range(30)]
        for client in clients:
            client.send(whole[:50])
        served.wait(lambda: served.n_open == len(clients))
        served.loop.call_soon_threadsafe(time.sleep, 0.2)
        served.stop()
        for client in clients:
            client.send(whole[50:])
        ends_within(served, 1.5)


def test_it_ends_in_time_though_a_large_message_to_learn_is_never_read(serving, model):
    apply = partial(apply_requests, model)
    with serving(model, apply, shutdown=0.5) as served, served.connect() as client:
        assert served.ask(request("CHECK", WORDS * 3)).startswith(OK)  # starts the process
        process = served.server._responder._large._process._popen
        os.kill(process.pid, signal.SIGSTOP)
        client.send(request("TELL", WORDS * 3, *TEACH))
        served.wait(lambda: served.server._responder._large._turn.locked())
        ends_within(served, 1.5)


def test_clients_who_come_without_end_are_not_all_accepted():
    class Listener:
        n = 0

        def accept(self):
            self.n += 1
            if self.n > 5 * BACKLOG:
                raise BlockingIOError
            return self, None

        def setblocking(self, _):
            """Be a connection too."""

    listener = Listener()
    connections = Connections(Limits(), None, print)
    connections._is_closing, connections.adopt = True, lambda *_: None
    connections._accept(listener)
    assert listener.n == BACKLOG


# Teaching gives up


def queue_of(apply, limits=LIMITS):
    return LearnQueue(apply, limits, lambda _: None)


async def outcome(queue, *requests):
    """Return what came of each request; the queue is not waited for."""
    tasks = [asyncio.ensure_future(queue.submit(LearnRequest(one, True), "a")) for one in requests]
    await asyncio.wait(tasks, timeout=5)
    assert all(task.done() for task in tasks)
    return [task.exception() or task.result() for task in tasks]


def waiting_for_a_lock(_requests, wait):
    """Apply as if another program had the lock; for 5 s at most."""
    ends = time.monotonic() + 5
    while time.monotonic() < ends:
        if wait.is_over():
            raise LockedError("model.json: held")
        time.sleep(0.01)
    return ["learned"]


def test_who_waits_for_those_before_him_is_told_in_time():
    free = threading.Event()

    async def tell():
        queue = queue_of(lambda requests, _: free.wait(20) and ["learned"] * len(requests))
        first = asyncio.ensure_future(queue.submit(LearnRequest(HAM, True)))
        await asyncio.sleep(0.05)
        [late] = await outcome(queue, SPAM)
        free.set()
        assert await first == "learned"
        await queue.close()
        return late

    late = asyncio.run(tell())
    assert isinstance(late, RefusedError)
    assert late.code == 75


def test_a_lock_is_waited_for_no_longer_than_a_message():
    [late] = asyncio.run(outcome(queue_of(waiting_for_a_lock), SPAM))
    assert isinstance(late, LockedError)


@pytest.mark.few(1)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("of_users", [False, True])
def test_at_the_end_no_lock_is_waited_for(users, when, of_users):
    async def tell():
        limits, queue = Limits(), queue_of(waiting_for_a_lock, Limits())
        if of_users:
            apply = lambda _, requests, wait: waiting_for_a_lock(requests, wait)  # noqa: E731
            queue = UserQueues(apply, UserFiles(users), limits, print)
        loop = asyncio.get_running_loop()
        if when == "before":
            queue.hurry(0.1)
        else:
            loop.call_later(0.1, queue.hurry, 0.1)
        [late] = await outcome(queue, SPAM)
        await queue.close()
        return late

    assert isinstance(asyncio.run(tell()), LockedError | RefusedError)


def test_who_is_late_is_not_learned_though_the_lock_is_free(model):
    """Several requests about one message need a save each."""
    asked = iter([True])
    wait = LockWait(math.inf, print, lambda: next(asked, True))
    requests = [LearnRequest(b"\n\nword", is_spam) for is_spam in (True, False, True)]
    done, *late = apply_requests(model, requests, wait)
    assert done == "learned"
    assert [one.code for one in late] == [75, 75]


# Decompression


def peak_of(function, *arguments):
    """Return what a function returns, and the most bytes that were allocated meanwhile."""
    tracemalloc.start()
    try:
        return function(*arguments), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_bomb_is_not_decompressed():
    bomb = zlib.compress(bytes(64 << 20))
    packed = Request("PROCESS", body=bomb, compressed=True)
    for function, arguments in (
        (unzipped, (bomb, 1000)),
        (packed.beginning, (1000,)),
    ):
        found, peak = peak_of(function, *arguments)
        assert found is None or len(found) == 1000
        assert peak < 1 << 20
    with pytest.raises(RefusedError, match="larger than 1000 bytes"):
        packed.message(1000)


def test_a_bomb_is_refused_and_the_next_message_judged(serving, model):
    bomb = zlib.compress(bytes(64 << 20))
    with serving(model, max_size=1 << 20) as served:
        reply, peak = peak_of(served.ask, request("PROCESS", bomb, "Compress: zlib"))
        assert reply.startswith(b"SPAMD/1.0 65 Message refused: the decompressed message is larger")
        assert peak < 16 << 20
        assert served.ask(request("CHECK", SPAM)).startswith(OK)


# Sockets


def test_nobody_connects_before_the_mode_is_set(tmp_path, monkeypatch):
    modes = []
    chmod = Path.chmod

    def noted(path, mode):
        modes.append(stat.S_IMODE(path.stat().st_mode))
        chmod(path, mode)

    monkeypatch.setattr(Path, "chmod", noted)
    before = os.umask(0)
    try:
        with unix_socket(tmp_path / "socket", 0o660):
            assert os.umask(0) == 0  # as it was
    finally:
        os.umask(before)
    assert modes == [0]


# Users' models


@pytest.mark.parametrize("pattern", ["%u.json", "%u/model.json", "of-%u"])
def test_no_more_models_are_made_than_allowed(serving, model, users, pattern):
    (users / ".notes").touch()  # no user has such a name
    with serving(model, users=users / pattern, max_users=2) as served:
        for user in ("a", "b", "a"):
            assert teach(served, user, SPAM + user.encode()).startswith(OK)
        names = sorted(users.rglob("*"))
        reply = teach(served, "c")
        assert reply.startswith(b"SPAMD/1.0 69 Service Unavailable: (there are models of 2 users")
        assert sorted(users.rglob("*")) == names
        assert teach(served, "b", HAM).startswith(OK)
        reply = served.ask(request("SYMBOLS", SPAM, user="c"))
        assert b"NBSPAM_SPAM" in reply  # by the common model
    assert served.said == []


NAMES = (
    "", ".", "..", "../x", "a/b", "/etc/passwd", ".hal", "-hal", "hal\0", "hal\n", "hal ", "häl",
    "a\\b", "%u", "a:b", "~root", "*", "a" * 129,
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_no_name_is_a_path(users, name):
    assert UserFiles(users).path(name) is None
    assert UserFiles(users / "%u/model.json").path(name) is None


def test_a_name_is_a_file_of_the_folder(users):
    for name in ("hal", "a" * 128, "hal@example.org", "a..b", "x+y_z-1"):
        assert UserFiles(users).path(name) == users / f"{name}.json"


def test_a_model_is_its_users_alone_whatever_the_umask(serving, model, users):
    before = os.umask(0)
    try:
        with serving(model, users=users / "%u/model.json") as served:
            assert teach(served, "hal").startswith(OK)
    finally:
        os.umask(before)
    for path in users.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


@pytest.mark.parametrize("mode", [0o720, 0o702])
def test_a_folder_that_others_can_write_to_is_refused(users, mode):
    users.chmod(mode)
    with pytest.raises(ServingError, match="others than the server's user"):
        UserFiles(users)


def test_a_folder_of_another_user_is_refused(users, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(ServingError, match="others than the server's user"):
        UserFiles(users)


def test_no_link_is_followed(users, model):
    flat, own = UserFiles(users), UserFiles(users / "%u/model.json")
    (users / "hal.json").symlink_to(model)
    (users / "hal").symlink_to(model.parent)
    for files in (flat, own):
        with pytest.raises(ModelError, match=r"regular file|not a folder"):
            files.stamp(files.path("hal"))
    with pytest.raises(ModelError):  # if it became one since
        open_user_model(flat.path("hal"), CutOffs.of_model, None)


def test_a_folder_is_made_in_no_links_place(users, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (users / "hal").symlink_to(elsewhere)
    files = UserFiles(users / "%u/model.json")
    with pytest.raises(ModelError):
        files.make_folder(files.path("hal"))
    assert not elsewhere.exists()
