"""The protocol on the wire: every reply byte by byte, and what no reply may ever be."""

import contextlib
import gc
import math
import re
import resource
import socket
import time
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from served_programs import HAM, SPAM
from servers import AS_SPAM, OK, PONG, golden, request, serving_in, together

from nbspam.bayes.event_model import logit
from nbspam.reading.marks import MARK
from nbspam.reading.message import parse
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.verdict import CutOffs, make_verdict
from nbspam.serving.log import LEARNED, UNCHANGED
from nbspam.serving.passthrough import VerdictHeader, add_fields, remove_own_fields, verdict_value
from nbspam.serving.spamd import LINE_LIMIT, RefusedError, Request, decompress
from nbspam.serving.teaching import TeachResult
from nbspam.store.lookup import Lookup
from nbspam.tokens.tokenized import tokenize


@pytest.fixture(scope="module")
def judged(model_file):
    with Lookup(model_file) as lookup:
        metadata = lookup.metadata
        classifier = Classifier(metadata, lookup.counts)

        def judge(message):
            found = tokenize(parse(message), outputs=metadata.settings.outputs)
            score = classifier.score(found.tokens, found.extras)
            return make_verdict(metadata, score, CutOffs())

        yield judge


@pytest.fixture(scope="module")
def spam_lines(judged):
    found = {}
    for message, spam in ((SPAM, "True"), (HAM, "False"), (b"", "False"), (ODD_WORDS, "False")):
        points = 5 + judged(message).log_odds - logit(0.9)
        assert (points > 5) == (spam == "True")
        found[message] = f"Spam: {spam} ; {points:.1f} / 5.0\r\n".encode()
    return found


# Replies

ODD_WORDS = "Subject: зима\n\nвсё о погоде и о море, о ветре с востока\n".encode()


@pytest.fixture(scope="module")
def parts(served, judged, spam_lines):
    """Return what stands in the braces of tests/golden/serving/replies.tsv."""
    found = {"ok": OK, "253 headers": b"".join(b"X-%d: x\r\n" % i for i in range(253))}
    found["report"] = served.ask(request("REPORT", SPAM)).partition(b"\r\n\r\n")[2]
    found["packed"] = zlib.compress(SPAM)
    for name, message in {"spam": SPAM, "ham": HAM, "empty": b"", "odd": ODD_WORDS}.items():
        verdict = judged(message)  # marked as by `classify --passthrough`
        value = verdict_value(verdict.verdict, verdict.probability, verdict.reason)
        whole = add_fields(remove_own_fields(message, MARK), VerdictHeader(MARK, value))
        found |= {name: message, f"{name} line": spam_lines[message], f"{name} marked": whole}
        found[f"{name} head"] = whole.removesuffix(message.partition(b"\n\n")[2])
    lengths = {f"{name} length": b"%d" % len(part) for name, part in found.items()}
    for name in ("spam", "ham", "empty", "odd", "packed"):
        found[f"{name} sent"] = request("", found[name]).partition(b"\r\n")[2]
    assert b", reason=too-few-known-words, version=" in found["odd marked"]
    return found | lengths


@each("what, asked, reply", golden("replies.tsv"))
def test_each_request_has_its_reply(served, parts, what, asked, reply):
    asked, reply = (
        re.sub(rb"\{([a-z0-9 ]+)\}", lambda name: parts[name[1].decode()], text)
        for text in (asked, reply)
    )
    assert served.ask(asked) == reply
    if b"\r\nContent-length: " in asked or asked.startswith(b"PING"):  # it need not close its side
        assert served.ask(asked, end=False) == reply


def test_report(served, parts):
    first, second, *words = parts["report"].decode().splitlines()
    assert first.startswith("nbspam ")
    assert ": spam, probability 0.9" in first
    assert second == "strongest words, in nats, spam against ham:"
    assert words[-1].endswith("  everything else")
    assert "prize" in parts["report"].decode()
    assert b"\r" not in parts["report"]
    points = float(first.split("score ")[1].split(",")[0])
    shares = math.fsum(float(line.split()[0]) for line in words)
    assert shares == pytest.approx(points - 5 + logit(0.9), abs=0.06)
    reply = served.ask(request("REPORT", ODD_WORDS))
    assert b": unsure (too few known words), probability 0." in reply


TELLS = [  # headers; as what it is learned; whether that changes the model; what is said
    (["Message-class: spam", "Set: local"], True, True, b"DidSet: local\r\n"),
    (["Message-class: ham", "Set: local"], False, True, b"DidSet: local\r\n"),
    (["Message-class: spam", "Set: local,remote"], True, True, b"DidSet: local\r\n"),
    (["message-class: HAM", "set: Local"], False, True, b"DidSet: local\r\n"),
    (["Remove: local"], None, True, b"DidRemove: local\r\n"),
    (["Message-class: spam", "Set: local"], True, False, b""),
    (["Remove: local"], None, False, b""),
    (["Message-class: spam", "Set: remote"], ..., False, b""),  # the database of others
]


def test_tell(serving, model):
    told, results = [], []

    def apply(_, asked, *__):
        told.extend(lesson.is_spam for lesson in asked)
        return results * len(asked)

    with serving(model, apply) as served:
        for headers, is_spam, changed, said in TELLS:
            results[:] = [TeachResult(LEARNED if changed else UNCHANGED)]
            assert served.ask(request("TELL", SPAM, *headers)) == OK + said + b"\r\n\r\n", headers
            assert told == ([] if is_spam is ... else [is_spam])
            told.clear()


# Errors: a status line, and nothing else

BOMB = zlib.compress(bytes(3 << 20))
BAD = "76 Bad header line: "
TOO_LARGE = "65 Message refused: the message is larger than 1000000 bytes"
DAMAGED = "65 Message refused: the zlib data is truncated or has trailing bytes"
ZLIB = "Compress: zlib"
PACKED = zlib.compress(SPAM)
ODD = [
    (b"x" * (LINE_LIMIT + 2) + b"\n", BAD + "(the first line is too long)"),
    (
        b"CHECK SPAMC/1.5\r\nUser: " + b"x" * LINE_LIMIT + b"\r\n\r\n",
        BAD + "(a header line is too long)",
    ),
    (b"CHECK SPAMC/1.5\r\nContent-length: " + b"9" * 5_000 + b"\r\n\r\n", TOO_LARGE),
    (b"PROCESS SPAMC/1.5\r\n\r\n" + bytes(1_000_001), TOO_LARGE),
    (request("PROCESS", SPAM, "Compress: gzip"), BAD + "(compression type not supported: gzip)"),
    (request("PROCESS", SPAM, ZLIB), "65 Message refused: invalid zlib data"),
    (request("PROCESS", PACKED[:-3], ZLIB), DAMAGED),
    (request("PROCESS", PACKED + b"x", ZLIB), DAMAGED),
    (
        request("PROCESS", BOMB, ZLIB),
        "65 Message refused: the decompressed message is larger than 1000000 bytes",
    ),
]


def test_an_error_is_a_status_line_and_nothing_else(serving, model):
    rows = [(asked, line.decode()) for _, asked, line in golden("refused.tsv")]
    with serving(
        model, lambda _, told, *__: [TeachResult(LEARNED)] * len(told), max_size=1_000_000
    ) as served:
        for asked, line in [*ODD, *rows]:
            assert served.ask(asked) == f"SPAMD/1.0 {line}\r\n".encode(), line
            assert served.ask(b"PING SPAMC/1.5\r\n\r\n") == PONG, line


def test_a_failure_of_ours_is_a_status_line_too(serving, model, monkeypatch):
    def fail(*_):
        raise RecursionError("too deep")

    monkeypatch.setattr("nbspam.serving.answer.add_fields", fail)
    with serving(model) as served:
        reply = served.ask(request("PROCESS", SPAM))
        assert reply == b"SPAMD/1.0 70 Internal error: RecursionError\r\n"
        assert served.ask(request("CHECK", SPAM)).startswith(OK)
    assert served.said == ["internal error, RecursionError: too deep; please report it"]


COMMANDS = b"CHECK PROCESS HEADERS TELL REPORT SYMBOLS PING".split()
VERSIONS = [b" SPAMC/1.5\r\n", b" SPAMC/1.2\n", b" SPAMC/1.0\r\n", b" SPAMC/1.3"]
FIELDS = [b"Content-length: 5", b"Compress: zlib", b"Message-class: spam", b"Set: local"]
FIELDS += [b"Remove: local", b"", b"User: \xff"]


@given(
    st.binary(max_size=300)
    | st.builds(
        lambda command, version, fields, rest: b"".join(
            [command, version, *(field + b"\r\n" for field in fields), rest]
        ),
        st.sampled_from(COMMANDS),
        st.sampled_from(VERSIONS),
        st.lists(st.sampled_from(FIELDS), max_size=6),
        st.binary(max_size=40),
    )
)
def test_no_bytes_crash_it_or_get_an_empty_message(fuzzed, asked):
    reply = fuzzed.ask(asked)
    assert fuzzed.said == []
    if not reply:
        return
    status, _, rest = reply.partition(b"\r\n")
    assert status.startswith(b"SPAMD/1.")
    if status.split()[1] != b"0":
        assert rest == b""
    elif asked.startswith((b"PROCESS", b"HEADERS")):
        assert b"X-Nbspam: " in rest


@pytest.fixture(scope="module")
def fuzzed(model_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzzed")
    with serving_in(
        folder, model_file, lambda _, told, *__: [TeachResult(LEARNED)] * len(told)
    ) as served:
        yield served


# Slow, silent, many


def test_who_does_not_say_what_he_wants_must_go(serving, model):
    with serving(model, timeout=0.05) as served:
        line = b"SPAMD/1.0 79 Timeout: (the request did not arrive in time)\r\n"
        for begun in (
            b"",
            b"CHECK SPAMC/1.5\r\n",
            b"CHECK SPAMC/1.5\r\nContent-length: 9\r\n\r\nx",
        ):
            assert served.ask(begun, end=False) == line
        with served.connect() as client:  # a drop now and then does not win time
            n = 0
            with contextlib.suppress(OSError):
                for byte in b"CHECK SPAMC/1.5\r\nUser: slow\r\n" * 100:
                    client.send(bytes([byte]))
                    n += 1
                    time.sleep(0.005)
            assert n < 1000
            assert client.rest() in (line, b"")


def test_who_does_not_take_his_reply_must_go(serving, model):
    with serving(model, timeout=0.5) as served, served.connect() as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.send(request("PROCESS", SPAM + b"x" * 4_000_000))
        client.end()
        served.wait(lambda: served.n_open == 1)
        served.wait(lambda: served.n_open == 0)


def test_a_rush_is_served_to_the_last(serving, model, spam_lines):
    replies = []
    with serving(model, connections=3) as served:
        together(40, lambda: replies.append(served.ask(request("CHECK", SPAM))))
    assert replies == [OK + spam_lines[SPAM] + b"\r\n"] * 40


def test_no_descriptor_left_is_waited_out(serving, model, monkeypatch):
    monkeypatch.setattr("nbspam.serving.server._RETRY_SECONDS", 0.1)
    real, failures = socket.socket.accept, [OSError(24, "Too many open files")] * 2

    def accept(listener):
        if failures:
            raise failures.pop()
        return real(listener)

    with serving(model) as served:
        monkeypatch.setattr(socket.socket, "accept", accept)
        assert served.ask(b"PING SPAMC/1.5\r\n\r\n") == b"SPAMD/1.5 0 PONG\r\n"
    assert len(served.said) == 2
    assert served.said[0].startswith("cannot accept connections (Too many open files)")


def median_of_checks(served, slow=()):
    """Return the median time of CHECKs, between which slow clients send a byte."""
    taken = []
    for number in range(40):
        for client in slow[number::40]:
            client.send(b"x")
        started = time.perf_counter()
        assert served.ask(request("CHECK", SPAM)).startswith(OK)
        taken.append(time.perf_counter() - started)
    return sorted(taken)[len(taken) // 2]


@pytest.mark.long
def test_a_thousand_slow_clients_hurt_nobody(serving, model):
    """Who has a place is answered at once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 3_000 if hard == resource.RLIM_INFINITY else min(hard, 3_000)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        with serving(model, connections=1_100) as served, contextlib.ExitStack() as opened:
            alone = median_of_checks(served)
            slow = [opened.enter_context(served.connect()) for _ in range(1_000)]
            for number, client in enumerate(slow):
                client.send(request("CHECK", SPAM)[: number % 40])
            served.wait(lambda: served.n_open == 1_000)
            assert median_of_checks(served, slow) < max(20 * alone, 0.1)
            for client in slow[::100]:
                client.end()
            assert served.ask(request("CHECK", SPAM)).startswith(OK)
        assert served.said == []
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_clients_that_leave_leave_nothing_behind(serving, model):
    with serving(model) as served:
        for cut in range(0, 200, 7):
            with served.connect() as client:
                client.send(request("PROCESS", SPAM)[:cut])
        served.wait(lambda: served.n_open == 0)
        assert served.ask(b"PING SPAMC/1.5\r\n\r\n") == b"SPAMD/1.5 0 PONG\r\n"
    assert served.said == []


# The end


def test_who_is_at_the_door_at_the_end_is_served(serving, model, spam_lines):
    with serving(model) as served, served.clients(4) as clients:
        served.wait(lambda: served.n_open == 4)
        check = request("CHECK", SPAM)
        clients[0].send(check[:40])
        served.stop()
        for client in clients:
            client.send(check[40:] if client is clients[0] else check)
            assert client.rest() == OK + spam_lines[SPAM] + b"\r\n"


def test_unsure_is_not_spam(serving, model, judged):
    p = judged(SPAM).probability
    with serving(model, cut_offs=((1 + p) / 2, 0.01, None)) as served:
        assert b"Spam: False ; " in served.ask(request("CHECK", SPAM))
        assert b"NBSPAM_UNSURE,BAYES_" in served.ask(request("SYMBOLS", SPAM))


# What fails, and what is packed


def test_a_message_that_fails_is_freed_at_once(serving, model):
    """Not only when Python looks for circles: of an error and the frames that it passed through."""
    large = b"CHECK SPAMC/1.5\r\nContent-length: 20000000\r\n\r\n" + bytes(10_000_000)
    with serving(model, tell=True) as served:
        for asked, code in (
            (large, b"76"),  # and hangs up
            (request("TELL", bytes(10_000_000), *AS_SPAM, "Compress: zlib"), b"65"),
            (request("CHECK", bytes(10_000_000), "Compress: zlib"), b"65"),
        ):
            gc.disable()
            tracemalloc.start()
            try:
                assert served.ask(asked).startswith(b"SPAMD/1.0 " + code)
                served.wait(lambda: served.n_open == 0)
                # Soon, as the thread that answered still returns from its last function.
                served.wait(lambda: tracemalloc.get_traced_memory()[0] < 1 << 20)
            finally:
                tracemalloc.stop()
                gc.enable()


def test_a_bomb_is_not_decompressed():
    bomb = zlib.compress(bytes(64 << 20))
    packed = Request("PROCESS", body=bomb, compressed=True)
    for function, arguments in ((decompress, (bomb, 1000)), (packed.beginning, (1000,))):
        tracemalloc.start()
        found, peak = function(*arguments), tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found is None or len(found) == 1000
        assert peak < 1 << 20
    with pytest.raises(RefusedError, match="larger than 1000 bytes"):
        packed.message(1000)


def test_it_ends_in_time_whatever_clients_do(serving, model):
    with serving(model, shutdown=0.5) as served, served.clients(30) as clients:
        for client in clients:
            client.send(b"CHECK SPAMC/1.5\r\n")
        served.wait(lambda: served.n_open == 30)
        served.stop_within(5)
        assert [client.rest() for client in clients] == [b""] * 30
    assert served.said == []
