"""What keeps one client from harming the others, or the machine: each test fails without it."""

import gc
import math
import os
import signal
import socket
import stat
import threading
import time
import tracemalloc
import zlib
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from one_case import each
from served_programs import HAM, SPAM
from servers import AS_SPAM, OK, request, serving_in, signal_all

from nbspam.errors import ModelError
from nbspam.serving.clients import Clients, Limits, MemoryBudget
from nbspam.serving.models import Opening, Setup, UserFiles
from nbspam.serving.pool import Worker, WorkerPool
from nbspam.serving.sockets import BACKLOG, unix_socket
from nbspam.serving.spamd import TEMPORARY, RefusedError, Request, unzipped
from nbspam.serving.teaching import LearnRequest, apply_requests
from nbspam.store.writing import LockWait

WORDS = b"".join(b"word%d " % i for i in range(9_000))


def teach(served, user, message=SPAM):
    return served.ask(request("TELL", message, *AS_SPAM, user=user))


# Metrics


# The end, whatever clients do


@each(
    "asked, n",
    [
        (b"CHECK SPAMC/1.5\r\n", 1),
        (request("CHECK", WORDS[:100]), 30),
        (request("CHECK", WORDS * 3), 3),
        (request("TELL", WORDS * 3, *AS_SPAM), 1),
    ],
)
def test_it_ends_in_time_though_clients_are_silent_or_their_messages_never_read(
    model, tmp_path, monkeypatch, asked, n
):
    monkeypatch.setattr("nbspam.serving.clients._TICKING", 0.01)  # as of many, who look rarely
    limits = {"shutdown": 0.5, "grace": 0.1}
    with serving_in(tmp_path, model, tell=True, **limits) as served, served.clients(n) as some:
        assert served.ask(request("CHECK", WORDS * 3)).startswith(OK)  # starts the process
        signal_all(served.processes, signal.SIGSTOP)
        for client in some:
            client.send(asked[:50])
        served.wait(lambda: served.n_open == n)
        for client in some:
            client.send(asked[50:])
        served.wait(lambda: served.metric("parked_connections") == (n if len(asked) > 9999 else 0))
        started = time.monotonic()
        served.stop_within(1.5)
        assert [client.rest() for client in some] == [b""] * n
        assert time.monotonic() - started < 5
    assert served.said == []


def test_no_process_is_used_or_left_that_starts_while_the_server_stops(model, monkeypatch):
    setup = Setup(model)
    current = setup.common(Opening(setup.cut_offs_of))
    pool, real = WorkerPool(setup, current), Worker.start

    def start(worker):
        pool.close()  # sees no process yet
        real(worker)

    monkeypatch.setattr(Worker, "start", start)
    with pytest.raises(RefusedError, match="the server stops"):
        pool.classify(Request("CHECK", body=bytearray(SPAM)))
    assert pool.pids == []


def test_clients_who_come_without_end_are_not_all_accepted():
    class Listener:
        family, n = socket.AF_INET, 0

        def accept(self):
            self.n += 1
            if self.n > 5 * BACKLOG:
                raise BlockingIOError
            return self, None

        def close(self):
            """End as a socket does."""

    listener, clients = Listener(), Clients(Limits(), None)
    clients._listeners = {0: listener}
    clients._wake = clients._woken = listener
    assert len(list(clients._accept_rest())) == listener.n == BACKLOG


# Room for large messages


def test_a_large_message_is_not_overtaken():
    room, order = MemoryBudget(100, Limits()), []

    def visit(n):
        room.reserve(n, n)
        order.append(n)
        room.release(n)

    room.reserve(60, 60)
    visitors = [threading.Thread(target=visit, args=(n,), daemon=True) for n in (80, 30, 75)]
    for number, visitor in enumerate(visitors, 1):
        visitor.start()
        while len(room.queue) + len(order) < number:
            time.sleep(0.001)
    assert order == []  # 30 would fit
    room.release(60)
    for visitor in visitors:
        visitor.join(10)
    assert order == [80, 30, 75]
    assert room.used == 0


def test_who_waits_for_too_long_is_refused_and_the_next_goes_on():
    limits = SimpleNamespace(connections=64, timeout=0.3)
    room = MemoryBudget(100, limits)
    room.reserve("first", 50)

    def come_later():
        limits.timeout = 60.0
        room.reserve("later", 40)

    second = threading.Timer(0.1, come_later)
    second.daemon = True
    second.start()
    with pytest.raises(RefusedError, match="no room") as refused:
        room.reserve("late", 60)
    assert refused.value.code == TEMPORARY
    second.join(5)
    assert room.used == 90


LARGE = b"CHECK SPAMC/1.5\r\nContent-length: %d\r\n\r\n"


def room_used(served):
    return served.metric('room_used_bytes{room="judging"}')


def test_large_messages_wait_for_room_and_the_slow_make_room(serving, model):
    """First come, first served; 64 at most, and not for ever."""
    most = 1_000_000
    limits = {"max_size": most, "grace": 0.3, "connections": 6}
    with serving(model, **limits) as served, served.clients(3) as slow:
        for client in slow:
            client.send(LARGE % most + b"x")
        served.wait(lambda: room_used(served) == 3 * most)
        time.sleep(0.4)
        assert room_used(served) == 3 * most  # nobody wants it
        started = time.monotonic()
        assert served.ask(request("CHECK", WORDS * 10)).startswith(OK)
        assert 0 < time.monotonic() - started < 5
        served.wait(lambda: room_used(served) < 3 * most)


def test_who_finds_no_room_in_time_or_too_many_others_is_told(serving, model):
    line = b"SPAMD/1.0 75 Try again later: (%s)\r\n"
    limits = {"max_size": len(WORDS) * 10, "connections": 5, "timeout": 3.0, "grace": 60}
    with serving(model, **limits) as served, ExitStack() as opened:
        served.ask(request("CHECK", WORDS * 10))
        os.kill(served.processes[2], signal.SIGSTOP)
        clients = []
        for n in range(1, 6):
            clients.append(opened.enter_context(served.connect()))
            # Those who have no room are not read.
            clients[-1].send(request("CHECK", WORDS * 10) if n <= 3 else LARGE % (len(WORDS) * 10))
            served.wait(lambda n=n: served.metric("parked_connections") == n)
        with served.connect() as late:
            late.send(LARGE % (len(WORDS) * 10))
            assert late.rest() == line % b"too many large messages at once"
        for client in clients[3:]:
            assert client.rest() == line % b"there is no room for a large message"
        os.kill(served.processes[2], signal.SIGCONT)
        for client in clients[:3]:
            assert client.rest().startswith(OK)
        served.wait(lambda: room_used(served) == 0)


def test_a_large_request_has_one_time_to_arrive(serving, model):
    with serving(model, timeout=1.5) as served, served.connect() as client:
        started = time.monotonic()
        client.send(LARGE[:20])
        time.sleep(1.2)
        client.send(LARGE[20:] % 1_000_000)
        assert client.rest().startswith(b"SPAMD/1.0 79 ")
        assert time.monotonic() - started < 2.5  # with a time for each part it is 2.7


def test_a_message_that_fails_is_freed_at_once(serving, model):
    """Not only when Python looks for circles: of an error and the frames that it passed through."""
    with serving(model, tell=True) as served:
        for asked, code in (
            (LARGE % 20_000_000 + bytes(10_000_000), b"76"),  # and hangs up
            (request("TELL", bytes(10_000_000), *AS_SPAM, "Compress: zlib"), b"65"),
            (request("CHECK", bytes(10_000_000), "Compress: zlib"), b"65"),
        ):
            gc.disable()
            tracemalloc.start()
            try:
                assert served.ask(asked).startswith(b"SPAMD/1.0 " + code)
                served.wait(lambda: served.n_open == 0)
                assert tracemalloc.get_traced_memory()[0] < 1 << 20
            finally:
                tracemalloc.stop()
                gc.enable()


# Teaching gives up


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
    packed = Request("PROCESS", body=bytearray(bomb), compressed=True)
    for function, arguments in (
        (unzipped, (bomb, 1000)),
        (packed.beginning, (1000,)),
    ):
        found, peak = peak_of(function, *arguments)
        assert found is None or len(found) == 1000
        assert peak < 1 << 20
    with pytest.raises(RefusedError, match="larger than 1000 bytes"):
        packed.message(1000)


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
        assert reply.startswith(b"SPAMD/1.0 69 Service Unavailable: (2 users have models")
        assert sorted(users.rglob("*")) == names
        assert teach(served, "b", HAM).startswith(OK)
        reply = served.ask(request("SYMBOLS", SPAM, user="c"))
        assert b"NBSPAM_SPAM" in reply  # by the common model
    assert served.said == []


def test_a_folder_is_made_in_no_links_place(users, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (users / "hal").symlink_to(elsewhere)
    files = UserFiles.of(users / "%u/model.json")
    with pytest.raises(ModelError):
        files.make_folder(files.path("hal"))
    assert not elsewhere.exists()
