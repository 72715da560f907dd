"""What the server counts, and the page of it: true, well-formed, and no way to harm the mail."""

import os
import re
import socket
import threading
import time
import zlib
from collections import Counter
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from exposition import metrics_of, value
from hypothesis import given
from hypothesis import strategies as st
from logs import fields
from served_programs import HAM, SPAM, Client
from servers import put, request, together

from nbspam.serving import metrics
from nbspam.serving.log import Entry
from nbspam.serving.metrics import DISCONNECTED, Metrics

NOW = {
    ("connections",): 3,
    ("parked_connections",): 1,
    ("room_used_bytes", "judging"): 1000,
    ("learning_queue_messages",): 2,
    ("model_modified_timestamp_seconds",): 1.75e9,
    ("dropped_log_lines_total",): 4,
    ("unusable_models",): 1,
}
CLASSES = "ham", "spam"
NEW = b"Subject: new\nMessage-ID: <1@example.org>\n\nquite another thing\n"
GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\nUser-Agent: Prometheus/2.42.0\r\n\r\n"


def asking(served):
    return Client(served.path.with_name("metrics"))


def ask(served, sent=GET, end=False):
    with asking(served) as client:
        client.send(sent)
        if end:
            client.end()
        return client.rest()


def scraped(served):
    head, _, page = ask(served).partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 200 OK"
    assert b"Content-Type: text/plain; version=0.0.4; charset=utf-8" in lines
    assert b"Content-Length: %d" % len(page) in lines
    return metrics_of(page.decode())


def test_an_empty_page_has_every_counter_at_zero():
    found = metrics_of(Metrics().page(NOW, CLASSES))
    assert value(found, "judged_messages_total", command="CHECK", verdict="unsure") == 0
    assert value(found, "errors_total", kind="busy") == 0
    assert value(found, "told_messages_total", result="moved") == 0
    assert found["nbspam_judging_seconds"].samples["_sum",] == 0
    for (name, *room), n in NOW.items():
        assert value(found, name, **dict(zip(["room"], room, strict=False))) == n
    assert abs(found["process_start_time_seconds"].samples["",] - time.time()) < 60
    assert 1e6 < found["process_resident_memory_bytes"].samples["",] < 1e10


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["CHECK", "PROCESS", "PING", "TELL", ""]),
            st.sampled_from(["", "spam", "ham", "unsure"]),
            st.sampled_from(["", "learned", "moved"]),
            st.integers(0, 1 << 30),
            st.floats(0, 100),
            st.sampled_from([0, 65, 74, 75, 76, 79, DISCONNECTED]),
        ),
        max_size=30,
    )
)
def test_counts_are_what_was_counted(events):
    metrics = Metrics()
    for command, verdict, result, size, seconds, code in events:
        entry = Entry("x", command, verdict=verdict, result=result, size=size, seconds=seconds)
        metrics.count(entry, code)
    found = metrics_of(metrics.page(NOW, CLASSES))
    judged = [event for event in events if event[1]]
    histogram = found["nbspam_judging_seconds"].samples
    assert histogram["_count",] == len(judged)
    assert histogram["_sum",] == pytest.approx(sum(event[4] for event in judged))
    for end in (0.001, 0.1, 60):
        assert histogram["_bucket", ("le", str(end))] == sum(e[4] <= end for e in judged)
    assert value(found, "received_bytes_total") == sum(event[3] for event in events)
    for (command, verdict), n in Counter(event[:2] for event in judged).items():
        assert value(found, "judged_messages_total", command=command, verdict=verdict) == n
    for name, at in (("requests", 0), ("told_messages", 2)):
        samples = found[f"nbspam_{name}_total"].samples
        counted = {key[1][1]: n for key, n in samples.items() if n}
        assert counted == Counter(event[at] for event in events if event[at])
    errors = sum(found["nbspam_errors_total"].samples.values())
    assert errors == sum(event[5] != 0 for event in events)


def test_the_names_of_classes_are_escaped():
    classes = "ham", 'sp"am\\', "two\nlines", "\u00fc\u4e2d", "half \ud800"
    found = metrics_of(Metrics().page(NOW, classes))
    labels = {key[2][1] for key in found["nbspam_judged_messages_total"].samples}
    assert {r"sp\"am\\", r"two\nlines", "\u00fc\u4e2d", "half ?"} < labels


class Kept:
    n_dropped = 0

    def __init__(self):
        self.entries = []

    def write(self, entry):
        fields(entry.line())
        self.entries.append(entry)
        return True


def test_a_session_is_counted_and_logged(serving, model):
    log = Kept()
    tell = partial(request, "TELL", NEW)
    with serving(model, tell=True, log=log) as served:
        for asked in (
            *[request("CHECK", SPAM)] * 3,
            request("PROCESS", HAM),
            request("SYMBOLS", NEW + b"x " * 100_000),  # a large one
            b"PING SPAMC/1.5\r\n\r\n",
            b"",
            tell("Message-class: spam", "Set: local"),
            tell("Message-class: spam", "Set: local"),
            tell("Message-class: ham", "Set: local"),
            tell("Remove: local"),
            b"JUNK\r\n",
            b"CHECK SPAMC/1.5\r\nContent-length: 10\r\n\r\nshort",
        ):
            n = len(log.entries) + (asked[:4] not in (b"PING", b""))
            served.ask(asked)
            served.wait(lambda n=n: len(log.entries) == n and served.n_open == 0)
        served.wait(lambda: len(log.entries) == 11)
        found = scraped(served)
    count = partial(value, found)
    judged = found["nbspam_judged_messages_total"].samples
    assert count("judged_messages_total", command="CHECK", verdict="spam") == 3
    assert count("judged_messages_total", command="PROCESS", verdict="ham") == 1
    assert sum(judged.values()) == 5
    assert found["nbspam_judging_seconds"].samples["_count",] == 5
    assert count("requests_total", command="CHECK") == 3
    assert count("requests_total", command="PING") == 1
    assert count("requests_total", command="TELL") == 4
    results = {key[1][1]: n for key, n in found["nbspam_told_messages_total"].samples.items()}
    assert results == {"learned": 1, "moved": 1, "forgotten": 1, "unchanged": 1}
    assert count("errors_total", kind="protocol") == 2
    assert sum(found["nbspam_errors_total"].samples.values()) == 2
    size = 3 * len(SPAM) + len(HAM) + 5 * len(NEW) + 200_000
    assert count("received_bytes_total") == size
    assert count("connections") == 0
    assert count("model_modified_timestamp_seconds") == pytest.approx(model.stat().st_mtime)

    entries = [entry._replace(seconds=None, probability=None) for entry in log.entries]
    check = Entry("classify", "CHECK", user="nobody", verdict="spam", size=len(SPAM))
    assert entries[:3] == [check] * 3
    mid = {"message_id": "<1@example.org>", "user": "nobody"}
    symbols = Entry("classify", "SYMBOLS", **mid, size=len(NEW) + 200_000)
    assert entries[4] == symbols._replace(verdict="unsure", reason="too few known words")
    learn = Entry("learn", "TELL", **mid, label="spam", size=len(NEW))
    assert entries[5:9] == [
        learn._replace(result="learned"),
        learn._replace(result="unchanged"),
        learn._replace(result="moved", label="ham"),
        Entry("forget", "TELL", **mid, result="forgotten", size=len(NEW)),
    ]
    assert entries[9].error == "76 Bad header line: JUNK"
    assert {entry.action for entry in entries[9:]} == {"serve"}
    assert all(entry.seconds is not None for entry in log.entries)
    assert all(0 <= entry.probability <= 1 for entry in log.entries[:5])


def test_a_compressed_message_has_its_message_id_too(serving, model):
    log = Kept()
    with serving(model, log=log) as served:
        for message in (NEW, NEW + os.urandom(300_000).hex().encode()):
            served.ask(request("CHECK", zlib.compress(message), "Compress: zlib"))
        served.wait(lambda: len(log.entries) == 2)
    assert [entry.message_id for entry in log.entries] == ["<1@example.org>"] * 2


def test_a_client_that_hangs_up_is_counted_and_logged(serving, model):
    log = Kept()
    with serving(model, log=log) as served:
        for part in (b"CHECK SPAMC/1.5\r\n", b"CHECK SPAMC/1.5\r\nContent-length: 100\r\n\r\nx"):
            with served.connect() as client:
                client.send(part)
                served.wait(lambda: served.n_open == 1)
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            served.wait(lambda: served.n_open == 0)
        found = scraped(served)
    assert sum(found["nbspam_errors_total"].samples.values()) == 2
    assert len(log.entries) == 2


def test_a_model_damaged_where_it_is_read_is_told_logged_and_counted(serving, model):
    log = Kept()
    raw = model.read_bytes()
    line = raw.index(b'"claim the": [')
    model.write_bytes(raw[:line] + raw[line:].replace(b"[", b"[x", 1))
    with serving(model, log=log) as served:
        reply = served.ask(request("PROCESS", b"Message-ID: <1@example.org>\n" + SPAM))
        assert reply.startswith(b"SPAMD/1.0 74 Model unusable: ")
        assert reply.count(b"\n") == 1
        served.wait(lambda: log.entries)
        assert value(scraped(served), "errors_total", kind="model") == 1
    (said,) = served.said
    assert said.startswith(f"{model}: the model is damaged")
    [entry] = log.entries
    assert (entry.action, entry.message_id) == ("classify", "<1@example.org>")
    assert entry.error.startswith(f"74 Model unusable: {model}: the model is damaged")


def test_a_model_that_is_missing_or_unusable_is_counted_until_it_is_back(serving, model):
    """Without a request for mail, too: whoever looks at the page sees how the file is now."""
    raw = model.read_bytes()
    newer = raw.replace(b'"version": 1', b'"version": 99', 1)
    with serving(model) as served:
        for n, spoiled in enumerate([None, b"", newer], 1):
            assert value(scraped(served), "unusable_models") == 0
            put(model, spoiled)
            for _ in range(2):
                assert b"Spam: True" in served.ask(request("CHECK", SPAM))
                assert value(scraped(served), "unusable_models") == 1
            put(model, raw)
            assert value(scraped(served), "unusable_models") == 0
            assert len(served.said) == 2 * n


HOSTILE = [
    *((b"", b"400"), (b"\r\n\r\n", b"400"), (b"CHECK SPAMC/1.5\r\n\r\n", b"400")),
    *((b"GET /metrics\r\n\r\n", b"400"), (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400")),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 500 + b"\n\n", b"400"),  # TLS
    *((b"GET / HTTP/1.1\r\n\r\n", b"404"), (b"GET /\xff\x00%00 HTTP/1.1\r\n\r\n", b"404")),
    (b"GET /metrics/../../etc/passwd HTTP/1.1\r\n\r\n", b"404"),
    (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"405"),
    (b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 100_000, b"431"),
    (b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n", b"431"),
    (b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 100_000, b"431"),
]


def test_what_is_not_asked_right_is_refused(served):
    for sent, status in HOSTILE:
        with asking(served) as client:
            try:
                client.send(sent)
                client.end()
            except OSError:  # it does not read so much
                assert status == b"431", sent[:40]
            reply = client.rest()
        if reply or status != b"431":
            assert reply.startswith(b"HTTP/1.1 " + status), sent[:40]
            head, _, body = reply.partition(b"\r\n\r\n")
            assert b"Content-Length: %d" % len(body) in head
            assert b"Connection: close" in head
    assert scraped(served)
    assert served.said == []


def test_other_ways_to_ask_for_it(served):
    head, _, body = ask(served, GET.replace(b"GET", b"HEAD")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert body == b""
    assert int(head.partition(b"Content-Length: ")[2].split()[0]) > 1000
    assert ask(served, b"GET /metrics?x=1 HTTP/1.0\n\n").startswith(b"HTTP/1.1 200")
    assert ask(served, GET[:-2], end=True).startswith(b"HTTP/1.1 200")  # no empty line
    with asking(served) as slowly:
        for i in range(len(GET)):
            slowly.send(GET[i : i + 1])
        assert slowly.rest().startswith(b"HTTP/1.1 200")


def test_slow_clients_keep_nobody_out(serving, model, monkeypatch):
    limits = metrics._LIMITS._replace(grace=0.05)
    monkeypatch.setattr(metrics, "_LIMITS", limits)
    with serving(model) as served, ExitStack() as clients:
        for _ in range(12):
            client = clients.enter_context(asking(served))
            client.send(b"GET /metrics HTTP/1.1\r\n")
        started = time.monotonic()
        assert b"Spam: True" in served.ask(request("CHECK", SPAM))
        assert scraped(served)  # after 12 slow ones, four at a time
        assert time.monotonic() - started < 20  # and not 60
        with asking(served) as unread:  # is ended with the server
            unread.send(b"GET")
            served.stop_within(8)  # and not 10


@pytest.mark.long
def test_a_flood_of_questions_slows_no_mail(serving, model):
    """80 answers a second at most, however many ask."""
    stop, answers, waits = threading.Event(), [], []

    def flood():
        while not stop.is_set():
            try:
                answers.append(ask(served)[:15])
            except OSError:
                time.sleep(0.01)

    with serving(model) as served:
        started = time.monotonic()
        flooding = threading.Thread(target=together, args=(8, flood))
        flooding.start()
        for _ in range(100):
            asked = time.monotonic()
            assert b"Spam: True" in served.ask(request("CHECK", SPAM))
            waits.append(time.monotonic() - asked)
        served.wait(lambda: len(answers) > 10, 60)
        seconds = time.monotonic() - started
        stop.set()
        flooding.join(60)
    assert max(waits) < 1
    assert set(answers) == {b"HTTP/1.1 200 OK"}
    assert len(answers) <= 4 * (seconds / 0.05 + 10)


def test_each_metric_is_in_the_docs():
    text = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")
    page = metrics_of(Metrics().page(NOW, CLASSES))
    assert [name for name in page if f"`{name}" not in text] == []
    named = re.findall(r"\bnbspam_[a-z_]+", text)
    assert {name.removesuffix("_bucket") for name in named} <= page.keys()
