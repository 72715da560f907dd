"""What the server counts, and the page of it: true, well-formed, and no way to harm the mail."""

import errno
import logging
import os
import re
import socket
import time
import zlib
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest
from logs import fields
from prometheus_client.parser import text_string_to_metric_families
from served_programs import HAM, SPAM, Client
from servers import put, request

import nbspam
from nbspam.serving import server
from nbspam.serving.log import LogEntry, is_entry
from nbspam.serving.metrics import Metrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
UNITS = ("_seconds", "_bytes", "_info", "_connections", "_messages", "_models", "_lines")
NEW = b"Subject: new\nMessage-ID: <1@example.org>\n\nquite another thing\n"
CHECKED = LogEntry("classify", "CHECK", verdict="ham", seconds=0.1)
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
    assert f"Content-Type: {CONTENT_TYPE}".encode() in lines
    assert b"Content-Length: %d" % len(page) in lines
    families = list(text_string_to_metric_families(page.decode()))
    for family in families:
        assert family.type in ("counter", "unknown") or family.name.endswith(UNITS)
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


def test_the_names_of_classes_are_escaped(serving, tmp_path):
    name, model = 'sp"am\\ \u00fc\u4e2d', tmp_path / "model.json"
    pairs = [(name, "win a prize"), ("ham", "lunch at noon")] * 20
    nbspam.train(pairs, spam_label=name).save(model)
    with serving(model) as served:
        served.ask(request("CHECK", b"win a prize"))
        values = scraped(served)
    assert value(values, "judged_messages_total", command="CHECK", verdict=name) == 1
    assert value(values, "judging_seconds_count") == 1


@pytest.fixture
def entries(caplog):
    """Return the keys and values of the entries that are logged."""
    caplog.set_level(logging.INFO, "nbspam")
    return lambda: [fields(record.getMessage()) for record in caplog.records if is_entry(record)]


def test_a_session_is_counted_and_logged(serving, model, entries):
    tell = partial(request, "TELL", NEW)
    with serving(model, tell=True) as served:
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
            n = len(entries()) + (asked[:4] not in (b"PING", b""))
            served.ask(asked)
            served.wait(lambda n=n: len(entries()) == n and served.n_open == 0)
        served.wait(lambda: len(entries()) == 11)
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

    logged = entries()
    assert all(0 <= float(entry.pop("probability")) <= 1 for entry in logged[:5])
    assert all(float(entry.pop("milliseconds")) >= 0 for entry in logged)
    check = {"action": "classify", "command": "CHECK", "user": "nobody", "verdict": "spam"}
    assert logged[:3] == [check | {"bytes": str(len(SPAM))}] * 3
    mid = {"message-id": "<1@example.org>", "user": "nobody"}
    symbols = {"action": "classify", "command": "SYMBOLS", "verdict": "unsure"} | mid
    size = {"reason": "too few known words", "bytes": str(len(NEW) + 200_000)}
    assert logged[4] == symbols | size
    tell = {"command": "TELL", **mid, "bytes": str(len(NEW))}
    assert logged[5:9] == [
        tell | {"action": "learn", "class": "spam", "result": "learned"},
        tell | {"action": "learn", "class": "spam", "result": "unchanged"},
        tell | {"action": "learn", "class": "ham", "result": "moved"},
        tell | {"action": "forget", "result": "forgotten"},
    ]
    assert logged[9]["error"] == "76 Bad header line: JUNK"
    assert {entry["action"] for entry in logged[9:]} == {"serve"}


def test_a_compressed_message_has_its_message_id_too(serving, model, entries):
    with serving(model) as served:
        for message in (NEW, NEW + os.urandom(300_000).hex().encode()):
            served.ask(request("CHECK", zlib.compress(message), "Compress: zlib"))
        served.wait(lambda: len(entries()) == 2)
    assert [entry["message-id"] for entry in entries()] == ["<1@example.org>"] * 2


def test_a_client_that_hangs_up_is_counted_and_logged(serving, model, entries):
    with serving(model) as served:
        for part in (b"CHECK SPAMC/1.5\r\n", b"CHECK SPAMC/1.5\r\nContent-length: 100\r\n\r\nx"):
            with served.connect() as client:
                client.send(part)
                served.wait(lambda: served.n_open == 1)
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            served.wait(lambda: served.n_open == 0)
        found = scraped(served)
    assert sum(by_label(found, "errors_total").values()) == 2
    assert len(entries()) == 2


def test_a_client_that_closes_once_it_has_the_reply_is_no_error(
    serving, model, entries, monkeypatch
):
    def fail(*_):
        raise OSError(errno.ENOTCONN, "Socket is not connected")

    with serving(model) as served:
        monkeypatch.setattr(socket.socket, "shutdown", fail)
        assert served.ask(request("CHECK", SPAM)).startswith(b"SPAMD/1.1 0 EX_OK")
        served.wait(entries)
        monkeypatch.undo()
        assert sum(by_label(scraped(served), "errors_total").values()) == 0
    assert "error" not in entries()[0]


def test_a_client_that_aborts_before_it_is_accepted_costs_the_others_nothing(serving, model):
    accept, aborted = socket.socket.accept, []

    def abort_first(listener):
        if not aborted:
            aborted.append(accept(listener)[0].close())
            raise ConnectionAbortedError(errno.ECONNABORTED, "Software caused connection abort")
        return accept(listener)

    with serving(model) as served, patch("socket.socket.accept", abort_first):
        assert served.ask(request("PING")) == b""
        assert served.ask(request("PING")) == b"SPAMD/1.5 0 PONG\r\n"
    assert served.said == []


def test_a_model_damaged_where_it_is_read_is_told_logged_and_counted(serving, model, entries):
    raw = model.read_bytes()
    line = raw.index(b'"claim the": [')
    model.write_bytes(raw[:line] + raw[line:].replace(b"[", b"[x", 1))
    with serving(model) as served:
        reply = served.ask(request("PROCESS", b"Message-ID: <1@example.org>\n" + SPAM))
        assert reply.startswith(b"SPAMD/1.0 74 Model unusable: ")
        assert reply.count(b"\n") == 1
        served.wait(entries)
        assert value(scraped(served), "errors_total", kind="model") == 1
    (said,) = served.said
    assert said.startswith(f"{model}: the model is damaged")
    [entry] = entries()
    assert (entry["action"], entry["message-id"]) == ("classify", "<1@example.org>")
    assert entry["error"].startswith(f"74 Model unusable: {model}: the model is damaged")


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
            assert len(served.said) == n


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
    monkeypatch.setattr(server, "_HTTP_TIMEOUT", 0.5)
    with serving(model) as served, ExitStack() as clients:
        opened = [clients.enter_context(asking(served)) for _ in range(12)]
        for client in opened:
            client.send(b"GET /metrics HTTP/1.1\r\n")
        started = time.monotonic()
        assert b"Spam: True" in served.ask(request("CHECK", SPAM))
        assert scraped(served)
        assert time.monotonic() - started < 20
        assert [client.rest() for client in opened] == [b""] * 12


def test_workers_count_together_and_one_goes_on_for_another(model):
    counted = Metrics(["ham", "spam"], 3)
    for worker, entry in ((0, CHECKED), (2, CHECKED), (2, CHECKED._replace(verdict="other class"))):
        counted.begin(worker)
        counted.add("connections", 5)
        counted.count(entry, 0)
    page = counted.page(1.5, 0).decode()
    assert 'nbspam_judged_messages_total{command="CHECK",verdict="ham"} 2.0\n' in page
    assert 'nbspam_judged_messages_total{command="CHECK",verdict="other"} 1.0\n' in page
    assert "nbspam_connections 10.0\n" in page


def test_each_metric_is_in_the_docs(served):
    text = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")
    names = {re.sub("_(bucket|count|sum)$", "", name) for name, *_ in scraped(served)}
    assert [name for name in names if f"`{name}" not in text] == []
    documented = re.findall(r"\bnbspam_[a-z_]+", text)
    assert {re.sub("_(bucket|count|sum)$", "", name) for name in documented} <= names
