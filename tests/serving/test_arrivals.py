"""Requests that come with their clients, and those that come in pieces, slowly or with junk."""

import asyncio
import resource
import socket
import time
from contextlib import ExitStack, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from servers import HAM, SPAM, request

from nbspam.serving.arrivals import Arrivals
from nbspam.serving.responder import SMALL
from nbspam.serving.spamd import LINE_LIMIT, RefusedError, Request, ordinary_head, read_head

OK = b"SPAMD/1.1 0 EX_OK\r\n"
CHECK = request("CHECK", SPAM)


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


# Which requests are read at once


def test_a_whole_request_is_read_at_once(pair):
    ours, theirs = pair
    for may_wait in (True, False):
        theirs.sendall(CHECK)
        found = Arrivals(SMALL).read(ours, may_wait)
        assert found == (Request("CHECK", (1, 5), SPAM, user="nobody"), b"")


OTHERS = [
    *(CHECK[:-1], CHECK[:30], CHECK + b"x", CHECK + CHECK, b"", b"\x00\xff" * 5_000),
    *(request("CHECK", b"x" * (SMALL + 1)), request("CHECK", SPAM, "Compress: zlib")),
    *(request("CHECK", SPAM, "no colon"), CHECK.replace(b"\r\n", b"\n"), request("PING")),
    CHECK.replace(b"User: nobody\r\n", b"User: nobody\n"),
    *(CHECK.replace(b"1.5", b"1.0"), CHECK.replace(b"Content-length", b"X-Length")),
    request("TELL", SPAM, "Message-class: spam", "Set: local"),
]


def test_any_other_is_left_to_the_stream_with_all_that_was_read():
    for sent in OTHERS:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            theirs.sendall(sent)
            theirs.shutdown(socket.SHUT_WR)
            found, begun = Arrivals(SMALL).read(ours, may_wait=True)
            assert found is None, sent[:80]
            ours.setblocking(True)
            while chunk := ours.recv(1 << 16):
                begun += chunk
        assert begun == sent


pieces = st.lists(
    st.sampled_from(
        [
            *(b"CHECK", b"PROCESS", b"TELL", b"PING", b" SPAMC/1.5", b" SPAMC/1.0", b" "),
            *(b"\r\n", b"\n", b"\r", b"Content-length: 12", b"content-LENGTH:0", b"Compress: zlib"),
            *(b"User: x", b"Content-length: -1", b"Content-length: " + b"9" * 30, b":", b"\xff"),
            b"x" * LINE_LIMIT,
        ]
    )
    | st.binary(max_size=3),
    max_size=12,
).map(b"".join)


@given(pieces)
def test_an_ordinary_head_is_what_the_stream_would_read(data):
    found = ordinary_head(data)
    if found is None:
        return

    async def streamed():
        reader = asyncio.StreamReader(limit=LINE_LIMIT)
        reader.feed_data(data)
        reader.feed_eof()
        head = await read_head(reader, 10**15, can_tell=True)
        return head, data[: len(data) - len(await reader.read())]

    try:
        head, before = asyncio.run(streamed())
    except RefusedError as error:
        assert found.end - found.start >= 10**15, error
        return
    assert head.request == found.request
    assert head.length == found.end - found.start
    assert before == data[: found.start]


# How long they are waited for


def test_a_silent_client_is_waited_for_for_a_moment_and_the_next_not(pair):
    ours, _ = pair
    clock = Clock()
    arrivals = Arrivals(SMALL, clock)
    waits = []

    class Poll:
        def register(self, *_):
            pass

        def poll(self, milliseconds):
            waits.append(milliseconds)
            clock.now += milliseconds / 1000

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nbspam.serving.arrivals.select.poll", Poll)
        for _ in range(1000):
            assert arrivals.read(ours, may_wait=True) == (None, b"")
            clock.now += 0.0001  # what a client costs
    total = clock.now - 100
    assert 1 <= len(waits) <= 1 + total / 0.01
    assert sum(waits) / 1000 <= 0.001 + total / 10


def test_drops_are_waited_for_no_longer_than_silence(pair):
    ours, theirs = pair
    sent = iter(CHECK)

    class Dripping:
        """A connection on which each read finds another byte."""

        def fileno(self):
            return ours.fileno()

        def recv(self, n):
            return ours.recv(n)

    n = 0
    clock = Clock()

    def drip():
        nonlocal n
        n += 1
        theirs.send(bytes([next(sent)]))
        clock.now += 0.0002
        return clock.now

    found, begun = Arrivals(SMALL, drip).read(Dripping(), may_wait=True)
    assert found is None
    assert CHECK.startswith(begun)
    assert n < 20


# On the wire


def test_half_a_request_in_the_first_read_and_bytes_among_whole_ones(served):
    whole = served.ask(CHECK)
    assert whole.startswith(OK + b"Spam: True")
    for cut in (1, 20, CHECK.index(b"\r\n\r\n") + 4, len(CHECK) - 1):
        with served.connect() as client:
            client.send(CHECK[:cut])
            time.sleep(0.02)
            client.send(CHECK[cut:])
            assert client.rest() == whole
    with served.connect() as slow:
        for byte in CHECK:
            slow.send(bytes([byte]))
            if byte == ord("e"):
                assert served.ask(CHECK) == whole
        assert slow.rest() == whole


def test_junk_behind_a_request_is_refused_as_ever(served):
    expected = b"SPAMD/1.0 76 Bad header line: (Content-Length mismatch: Expected %d bytes"
    for junk in (b"x", CHECK, b"\r\n" * 50_000):
        assert served.ask(CHECK + junk).startswith(expected % len(SPAM))
    assert served.ask(CHECK).startswith(OK)


def test_a_reply_that_the_system_does_not_take_whole_or_not_now(serving, model, monkeypatch):
    real, errors, most = socket.socket.send, [], [1 << 30]

    def send(self, data, *flags):
        if errors and bytes(data).startswith(OK):
            raise errors.pop()
        return real(self, bytes(data)[: most[0]], *flags)

    with serving(model) as served:
        asked = request("PROCESS", HAM + b"and so on\n" * 3_000)
        whole = served.ask(asked)
        assert len(whole) > 30_000
        monkeypatch.setattr(socket.socket, "send", send)
        for error in (BlockingIOError(), BrokenPipeError()):
            errors.append(error)
            assert bool(served.ask(CHECK)) == isinstance(error, BlockingIOError)
            assert served.ask(CHECK).startswith(OK)
        most[0] = 1000
        assert served.ask(asked) == whole
        served.wait(lambda: served.n_open == 0)
    assert served.said == []


@pytest.mark.long
def test_a_thousand_slow_clients_hurt_nobody(serving, model):
    """They take places as ever, and are evicted; who has a place is answered at once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 3_000 if hard == resource.RLIM_INFINITY else min(hard, 3_000)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        with serving(model, connections=1_100) as served, ExitStack() as opened:
            alone = _median_of_checks(served)
            slow = []
            for number in range(1_000):
                client = opened.enter_context(served.connect())
                client.send(CHECK[: number % 40])
                slow.append(client)
            served.wait(lambda: served.n_open == 1_000)
            beside = _median_of_checks(served, slow)
            assert beside < max(20 * alone, 0.1)
            for client in slow[::100]:
                with suppress(OSError):
                    client.socket.shutdown(socket.SHUT_WR)
            assert served.ask(CHECK).startswith(OK)
        assert served.said == []
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _median_of_checks(served, slow=()):
    """Return the median time of CHECKs, between which slow clients send a byte."""
    taken = []
    for number in range(40):
        for client in slow[number::40]:
            client.send(b"x")
        started = time.perf_counter()
        assert served.ask(CHECK).startswith(OK)
        taken.append(time.perf_counter() - started)
    return sorted(taken)[len(taken) // 2]
