"""What the server counts, and the page of it: true, well-formed, and no way to harm the mail."""

import os
import re
import socket
import threading
import time
import zlib
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from logs import fields
from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client.parser import text_string_to_metric_families
from served_programs import HAM, SPAM, Client
from servers import put, request, together

import nbspam
from nbspam.serving import metrics
from nbspam.serving.log import Entry

UNITS = ("_seconds", "_bytes", "_info", "_connections", "_messages", "_models", "_lines")
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
    """Return the values by name and labels; each family has a text and one unit."""
    head, _, page = ask(served).partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 200 OK"
    assert f"Content-Type: {CONTENT_TYPE_LATEST}".encode() in lines
    assert b"Content-Length: %d" % len(page) in lines
    families = list(text_string_to_metric_families(page.decode()))
    for family in families:
        assert family.documentation.endswith((".", ")."))
        assert family.type == "counter" or family.name.endswith(UNITS)
    samples = [sample for family in families for sample in family.samples]
    values = {(s.name, *sorted(s.labels.items())): s.value for s in samples}
    assert len(values) == len(samples)
    return values


def value(values, name, **labels):
    return values[f"nbspam_{name}", *sorted(labels.items())]


def by_label(values, name):
    return {key[1][1]: n for key, n in values.items() if key[0] == f"nbspam_{name}"}


def test_an_empty_page_has_every_counter_at_zero(served):
    values = scraped(served)
    for name in ("requests", "judged_messages", "told_messages", "errors"):
        assert len(by_label(values, f"{name}_total")) >= 3
    assert value(values, "errors_total", kind="busy") == 0
    assert value(values, "judging_seconds_bucket", le="0.001") >= 0
    assert abs(values["process_start_time_seconds",] - time.time()) < 600
    assert 1e6 < values["process_resident_memory_bytes",] < 1e10
    assert 0 < values["process_cpu_seconds_total",] < 1e4


def test_the_names_of_classes_are_escaped(serving, tmp_path):
    name, model = 'sp"am\\ \u00fc\u4e2d', tmp_path / "model.json"
    pairs = [(name, "win a prize"), ("ham", "lunch at noon")] * 20
    nbspam.train(pairs, spam_label=name).save(model)
    with serving(model) as served:
        served.ask(request("CHECK", b"win a prize"))
        values = scraped(served)
    assert value(values, "judged_messages_total", command="CHECK", verdict=name) == 1
    assert value(values, "judging_seconds_count") == 1


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
    judged = {key: n for key, n in found.items() if key[0] == "nbspam_judged_messages_total"}
    assert count("judged_messages_total", command="CHECK", verdict="spam") == 3
    assert count("judged_messages_total", command="PROCESS", verdict="ham") == 1
    assert sum(judged.values()) == 5
    assert count("judging_seconds_count") == 5
    assert count("requests_total", command="CHECK") == 3
    assert count("requests_total", command="PING") == 1
    assert count("requests_total", command="TELL") == 4
    assert by_label(found, "told_messages_total") == {
        "learned": 1,
        "moved": 1,
        "forgotten": 1,
        "unchanged": 1,
    }
    assert count("errors_total", kind="protocol") == 2
    assert sum(by_label(found, "errors_total").values()) == 2
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
    assert sum(by_label(found, "errors_total").values()) == 2
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
    *(b"", b"\r\n\r\n", b"CHECK SPAMC/1.5\r\n\r\n"),
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 500 + b"\n\n",  # TLS
    *(b"GET / HTTP/1.1\r\n\r\n", b"GET /\xff\x00%00 HTTP/1.1\r\n\r\n"),
    b"GET /metrics/../../etc/passwd HTTP/1.1\r\n\r\n",
    b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
    b"GET /" + b"x" * 1_000_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 100_000,
]


def test_what_is_not_asked_right_is_refused(served):
    for sent in HOSTILE:
        with asking(served) as client:
            try:
                client.send(sent)
                client.end()
            except OSError:  # it does not read so much
                assert len(sent) > 500_000
            reply = client.rest()
        if reply or len(sent) < 500_000:
            assert reply.startswith(b"HTTP/1.1 404 "), sent[:40]
            head, _, body = reply.partition(b"\r\n\r\n")
            assert b"Content-Length: %d" % len(body) in head
            assert b"Connection: close" in head
    assert scraped(served)
    assert served.said == []


def test_other_ways_to_ask_for_it(served):
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


def test_each_metric_is_in_the_docs(served):
    text = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")
    names = {re.sub("_(bucket|count|sum)$", "", name) for name, *_ in scraped(served)}
    assert [name for name in names if f"`{name}" not in text] == []
    documented = re.findall(r"\bnbspam_[a-z_]+", text)
    assert {re.sub("_(bucket|count|sum)$", "", name) for name in documented} <= names
