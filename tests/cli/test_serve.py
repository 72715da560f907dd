"""`nbspam serve` and Debian's spamc: every way to call it, and what must never happen to mail."""

import itertools
import json
import math
import multiprocessing
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import pytest
from one_case import each
from served_programs import HAM, SPAM, Program, make_model, program
from waiting import unsent, wait_until

from nbspam.tokens.tokenized import TOKENIZER_VERSION

ROOT = Path(__file__).parents[2]
SPAMC = shutil.which("spamc")
spamc = pytest.mark.skipif(not SPAMC, reason="needs spamc (Debian package spamc)")
CHECK = b"CHECK SPAMC/1.5\r\nContent-length: %d\r\n\r\n"
MARK = re.compile(rb"^X-Nbspam: [^\r\n]*\r?\n", re.MULTILINE)


class Served(Program):
    """A running `nbspam serve`, and spamc to talk to it."""

    def spamc(self, *options, message=SPAM):
        done = subprocess.run(
            [SPAMC, "-U", self.path, *options], input=message, capture_output=True, timeout=60
        )
        return done.returncode, done.stdout


running = partial(program, kind=Served)


@pytest.fixture
def serve(tmp_path):
    """Return a context manager that serves a model on a socket of the test's own."""
    return partial(running, tmp_path)


@pytest.fixture(scope="module")
def mail_model(tmp_path_factory):
    """Return a model of invented messages; not to be changed."""
    return make_model(tmp_path_factory.mktemp("served") / "model.json")


@pytest.fixture(scope="module")
def common(mail_model, tmp_path_factory):
    """Return a server that several tests use, for none changes anything."""
    with running(tmp_path_factory.mktemp("common"), mail_model) as served:
        yield served
        assert served.said[1:] == []


@pytest.fixture
def own_model(mail_model, tmp_path):
    """Return a copy of the model, to be changed at will."""
    path = tmp_path / "model.json"
    shutil.copyfile(mail_model, path)
    return path


def points(reply):
    """Return the score in a reply to CHECK."""
    return float(reply.split(b"/")[0])


# Every way to call spamc


@spamc
def test_check_report_and_symbols(common):
    for message, is_spam in ((SPAM, True), (HAM, False)):
        code, out = common.spamc("-c", message=message)
        assert code == is_spam
        assert re.fullmatch(rb"-?\d+\.\d/5\.0\n", out)
        assert (points(out) >= 5) == is_spam
    for option in ("-R", "-r"):
        code, out = common.spamc(option)
        score, report = out.split(b"\n", 1)
        assert code == 0
        assert re.fullmatch(rb"\d+\.\d/5\.0", score)
        assert report.startswith(b"nbspam ")
        assert b"free" in report
    code, out = common.spamc("-R", message=HAM)
    assert (code, b"ham, probability 0." in out) == (0, True)
    assert common.spamc("-r", message=HAM) == (0, b"")
    assert common.spamc("-y") == (0, b"NBSPAM_SPAM,BAYES_99,BAYES_999")
    code, out = common.spamc("-y", message=HAM)
    assert (code, out[:17]) == (0, b"NBSPAM_HAM,BAYES_")


@spamc
def test_large_mail_needs_a_size(common):
    """The number is that of docs/serve.md."""
    large = SPAM + b"free money now\n" * 40_000
    [size] = re.findall(r"`spamc -s (\d+)`", (ROOT / "docs" / "serve.md").read_text("utf-8"))
    assert common.spamc(message=large) == (0, large)
    assert MARK.search(common.spamc("-s", size, message=large)[1])


@spamc
@each("options", [(), ("-x",), ("-E",), ("-x", "-E"), ("--headers",)])
def test_filter(common, options):
    for message, is_spam in ((SPAM, True), (HAM, False)):
        code, out = common.spamc(*options, message=message)
        assert code == (is_spam and "-E" in options)
        (mark,) = MARK.findall(out)
        assert mark.startswith(b"X-Nbspam: spam, " if is_spam else b"X-Nbspam: ham, ")
        assert MARK.sub(b"", out) == message
    forged = b"X-Nbspam: ham, probability=0.000001, version=9\n" + SPAM
    _, out = common.spamc(*options, message=forged)
    (mark,) = MARK.findall(out)
    assert mark.startswith(b"X-Nbspam: spam, ")
    assert MARK.sub(b"", out) == SPAM


@spamc
def test_teaching(serve, own_model, nbspam):
    """What is learned beside it counts at once."""
    new = b"Subject: other\nMessage-ID: <1@example.org>\n\nsome quite unheard-of words\n"
    done = (0, b"Message successfully un/learned\n")
    already = (0, b"Message was already un/learned\n")
    with serve(own_model, "--tell") as served:
        before = points(served.spamc("-c", message=new)[1])
        steps = [("spam", done), ("spam", already), ("ham", done), ("ham", already)]
        scores = []
        for what, said in [*steps, ("forget", done), ("forget", already)]:
            assert served.spamc("-L", what, message=new) == said
            scores.append(points(served.spamc("-c", message=new)[1]))
        assert scores[0] == scores[1] > before > scores[2]
        before = points(served.spamc("-c", message=new)[1])
        assert nbspam("train", "--update", "-m", own_model, "--spam", "-", stdin=new).code == 0
        assert points(served.spamc("-c", message=new)[1]) > before
        assert served.said[1:] == []


# No mail is lost or altered

ODD = {
    "empty": b"",
    "no header": b"just words\n",
    "no final line end": b"Subject: a\n\nfree prize",
    "CRLF": b"Subject: a\r\nTo: b\r\n\r\nfree prize\r\n",
    "a bare CR": b"Subject: a\n\nfree\rprize\n",
    "NUL": b"Subject: a\n\nfree\0prize\0\n",
    "8 bit": b"Subject: gr\xfc\xdfe\n\n\xff\xfe free prize\n",
    "only a header": b"Subject: free prize\n",
    "From line": b"From a@example.org Mon Jan  1 10:00:00 2024\nSubject: a\n\nfree prize\n",
    "large": b"Subject: a\n\n" + b"free prize for the winner\n" * 15_000,
}


@spamc
@each("name", ODD)
@each("options", [(), ("--headers",)])
def test_an_odd_message_comes_out_whole(common, mail_model, passed, name, options):
    message = ODD[name]
    code, out = common.spamc(*options, message=message)
    assert code == 0
    if not MARK.search(out):  # spamc could not have put it together again; of none it sends nothing
        assert out == message
        assert name in ("empty", "no header", "NUL", "only a header")
        assert options or name == "empty"
        return
    assert passed(message, "classify", "-p", "-m", mail_model)[:2] == (0, out)


@spamc
def test_what_is_refused_comes_out_as_it_was_and_recipes_for_spamassassin_find_its_headers(
    serve, own_model, nbspam
):
    assert nbspam("model", "set", "-m", own_model, "--spam-cutoff", "1").code == 0
    options = "--max-size", "500", "--x-spam", "--spam-cutoff", "0.9"  # which goes first
    with serve(own_model, *options) as served:
        large = SPAM + b"more\n" * 100
        for options in ((), ("--headers",), ("-E",)):
            assert served.spamc(*options, message=large) == (0, large)
        assert served.spamc("-c", message=large) == (0, b"0/0\n")
        assert served.spamc("-x", message=large)[0] != 0
        code, out = served.spamc("-c")
        score = points(out)
        assert code == 1
        forged = b"X-Spam-Flag: NO\nX-Spam-Status: No, score=-9.9\n\ttests=NONE\nX-Spam-Level:\n"
        lines = served.spamc(message=forged + SPAM)[1].splitlines(keepends=True)
        tests = b"NBSPAM_SPAM,BAYES_99,BAYES_999"
        assert lines[:4] == [
            b"Subject: prize\n",
            b"X-Spam-Flag: YES\n",
            b"X-Spam-Level: %s\n" % (b"*" * int(score)),
            b"X-Spam-Status: Yes, score=%.1f required=5.0 tests=%s autolearn=no\n" % (score, tests),
        ]
        assert MARK.fullmatch(lines[4])
        assert b"".join(lines[5:]) == SPAM.partition(b"\n")[2]
        for options in ((), ("--headers",)):
            _, out = served.spamc(*options, message=b"X-Spam-Flag: YES\n" + HAM)
            assert b"X-Spam-Flag" not in out
            assert b"\nX-Spam-Status: No, score=" in out
            assert re.sub(rb"X-Spam-Status: .*\n", b"", MARK.sub(b"", out)) == HAM


# Reload


@spamc
def test_a_model_is_exchanged_under_load_and_its_cut_offs_are_the_servers(serve, nbspam, own_model):
    """5 points are the spam cut-off, which can be set while it serves."""
    judged = nbspam("classify", "-m", own_model, "--format", "json", stdin=SPAM)
    log_odds = json.loads(judged.out)["log_odds"]
    assert log_odds > 5
    with serve(own_model) as served:
        _under_load(served, own_model, exchange=8, messages=60)
        assert served.spamc("-c") == (1, b"%.1f/5.0\n" % (5 + log_odds - math.log(9)))
        for spam_cutoff in (0.5, 0.99):
            settings = ("-m", own_model, "--spam-cutoff", spam_cutoff, "--ham-cutoff", "0.4")
            assert nbspam("model", "set", *settings).code == 0
            bound = math.log(spam_cutoff / (1 - spam_cutoff))
            assert served.spamc("-c") == (1, b"%.1f/5.0\n" % (5 + log_odds - bound))
        assert nbspam("model", "set", "-m", own_model, "--spam-cutoff", "1").code == 0
        assert served.spamc("-c") == (0, b"-100.0/5.0\n")
        assert served.spamc("-y")[1].startswith(b"NBSPAM_UNSURE,BAYES_99")
        assert served.said[1:] == []


def _is_filtered(served, message, code=0, *options):
    """Return whether a message comes out marked and whole."""
    returned, out = served.spamc("-x", *options, message=message)
    return returned == code and MARK.sub(b"", out) == message != out


def _under_load(served, model, exchange, messages):
    """Filter messages with 8 clients while the model is replaced."""
    raw, beside = model.read_bytes(), model.with_name("beside")
    with ThreadPoolExecutor(8) as pool:
        both = itertools.islice(itertools.cycle([(SPAM, 1), (HAM, 0)]), messages)
        results = [pool.submit(_is_filtered, served, *each, "-E") for each in both]
        for _ in range(exchange):
            beside.write_bytes(raw)
            beside.replace(model)
            time.sleep(0.02)
        assert all(result.result() for result in results)


# Memory

MIB = 1 << 20
measures_memory = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")


def _memory(pid, which="VmRSS"):
    """Return the memory of a process in MiB; 0 of one that has just ended."""
    with suppress(OSError):
        if found := re.search(rf"{which}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text()):
            return int(found[1]) >> 10
    return 0


def _ask(served, body, header=CHECK):
    return served.ask(header % len(body) + body)


def _hang_up(served):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(served.path))
        client.sendall(CHECK % (32 * MIB) + bytes(31 * MIB))


@measures_memory
@pytest.mark.few(1)
@pytest.mark.parametrize("bombs, clients", [(3, 3), (60, 40)])
def test_messages_of_hostile_clients_are_freed_at_once(serve, mail_model, bombs, clients):
    bomb = zlib.compress(bytes(40 * MIB), 9)
    header = b"CHECK SPAMC/1.5\r\nCompress: zlib\r\nContent-length: %d\r\n\r\n"
    with serve(mail_model) as served, ThreadPoolExecutor(clients) as pool:
        before = _memory(served.process.pid)
        for reply in pool.map(lambda _: _ask(served, bomb, header), range(bombs)):
            assert b"larger than" in reply
        served.wait(lambda: _memory(served.process.pid) < before + 20)  # else 28 to 66 stay
        assert list(pool.map(lambda _: _hang_up(served), range(clients))) == [None] * clients
        served.wait(lambda: _memory(served.process.pid) < before + 100)  # else 330 stay


# MiB that the server and its process for large messages take together, whatever clients do; the
# figure of docs/serve.md, without what a large model adds.
BOUND = 600


def _most(process):
    """Return the most memory in MiB that a process ever had, with the most that a child had."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    own, *others = (_memory(pid, "VmHWM") for pid in [process.pid, *children])
    assert own
    return own + max(others, default=0)


@cache
def _tricks():
    """Return what a hostile client can do: functions of a connection."""
    large = b"Subject: x\n\n" + b"free prize for the winner\n" * (31 * MIB // 26)
    chance = random.Random(1)
    words = b"Subject: x\n\n" + b" ".join(b"%x" % chance.getrandbits(40) for _ in range(40_000))
    packed = "Compress: zlib"
    teach = "Message-class: spam", "Set: local"

    def asking(command, body, *headers, missing=0):
        lines = [f"{command} SPAMC/1.5", f"Content-length: {len(body) + missing}", *headers, "", ""]
        head = "\r\n".join(lines).encode()

        def act(client):
            client.sendall(head)
            client.sendall(body)

        return act

    def trickle(client):
        client.sendall(b"CHECK SPAMC/1.5\r\n\r\n")
        for _ in range(100):
            client.sendall(bytes(random.randrange(200_000)))
            time.sleep(0.1)

    def headers(client):
        client.sendall(b"CHECK SPAMC/1.5\r\n")
        for i in range(254):
            client.sendall(b"X-%d: %s\r\n" % (i, b"x" * 8_000))

    return [
        asking("CHECK", zlib.compress(bytes(40 * MIB)), packed),
        asking("PROCESS", zlib.compress(large), packed),
        asking("CHECK", large),
        asking("PROCESS", large),
        asking("HEADERS", large + b"\0"),
        asking("HEADERS", large[: 480 << 10] + b"\0"),
        asking("HEADERS", large[:60_000] + b"\0"),
        asking("TELL", large, *teach),
        asking("TELL", words, *teach),
        asking("TELL", words[:100_000], *teach),
        asking("CHECK", large, missing=1),  # and hangs up
        trickle,
        headers,
    ]


def _hostile(path, number, ends):
    """Be a hostile client, again and again."""
    chance = random.Random(number)
    while time.monotonic() < ends:
        with socket.socket(socket.AF_UNIX) as client, suppress(OSError):
            client.settimeout(30)
            client.connect(path)
            act = chance.choice(_tricks())
            act(client)
            if chance.random() < 0.2:
                time.sleep(5 * chance.random())  # reads no reply
            elif chance.random() < 0.8:
                while client.recv(1 << 18):
                    pass


def _besieged(served, clients, seconds):
    """Return the most memory in MiB while hostile clients are there, and the waits of others."""
    _tricks()
    ends = time.monotonic() + seconds
    context = multiprocessing.get_context("fork")
    siege = [
        context.Process(target=_siege, args=(str(served.path), range(first, first + 10), ends))
        for first in range(0, clients, 10)
    ]
    for process in siege:
        process.start()
    most, waits = 0, []
    while time.monotonic() < ends:
        begun = time.monotonic()
        reply = _ask(served, SPAM)
        assert reply.startswith(b"SPAMD/1.1 0 EX_OK\r\nSpam: ")
        waits.append(time.monotonic() - begun)
        most = max(most, _most(served.process))
        time.sleep(0.01)
    for process in siege:
        process.join(90)
        assert process.exitcode == 0
    return most, sorted(waits)


def _siege(path, numbers, ends):
    for number in numbers:
        threading.Thread(target=_hostile, args=(path, number, ends), daemon=True).start()
    time.sleep(max(0, ends - time.monotonic()))
    os._exit(0)


@measures_memory
@pytest.mark.long  # by the clock, and on all cores
@pytest.mark.parametrize(("clients", "seconds"), [(40, 5), (200, 30)])
def test_memory_is_bounded_whatever_clients_do(serve, own_model, clients, seconds):
    with serve(own_model, "--tell") as served:
        most, waits = _besieged(served, clients, seconds)
        assert most < BOUND
        assert waits[int(0.99 * (len(waits) - 1))] < (1 if clients < 100 else 5)
        started = time.monotonic()
        assert served.stop() == 0
        assert time.monotonic() - started < 12


# Start and end


@pytest.mark.few(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_start_after_a_crash_and_a_clean_end(serve, mail_model, tmp_path, number):
    with socket.socket(socket.AF_UNIX) as crashed:
        crashed.bind(str(tmp_path / "socket"))
    with serve(mail_model, "-q", answers=False) as served:
        with socket.socket(socket.AF_UNIX) as client:
            served.wait(lambda: client.connect_ex(str(served.path)) == 0)
            client.sendall(CHECK % len(SPAM))
            wait_until(lambda: not unsent(client))
            served.process.send_signal(number)
            served.wait(lambda: not served.path.exists() or _refused(served.path))
            for again in (signal.SIGTERM, signal.SIGHUP):  # it ends no sooner, and not by them
                served.process.send_signal(again)
            client.sendall(SPAM)
            client.shutdown(socket.SHUT_WR)
            assert client.recv(4096).startswith(b"SPAMD/1.1 0 EX_OK\r\nSpam: True ; ")
        assert served.process.wait(20) == 0
        assert not served.path.exists()
        assert served.said == []


def test_a_damaged_model_is_not_taken_and_a_hangup_reopens_it(serve, own_model):
    raw, beside = own_model.read_bytes(), own_model.with_name("beside")
    with serve(own_model, "--workers", "1") as served:
        good = _ask(served, SPAM)
        for n in (2, 3):
            beside.write_bytes(raw[:500])
            beside.replace(own_model)
            served.process.send_signal(signal.SIGHUP)
            served.wait(lambda n=n: len(served.said) == n)
            assert served.said[-1].startswith(f"nbspam: {own_model}: ")
            assert served.said[-1].endswith("; the model that was open is still used\n")
            assert [_ask(served, SPAM) for _ in range(3)] == [good] * 3
            beside.write_bytes(raw)
            beside.replace(own_model)
            served.process.send_signal(signal.SIGHUP)
            assert _ask(served, SPAM) == good


def _refused(path):
    with socket.socket(socket.AF_UNIX) as knock:
        return knock.connect_ex(str(path)) != 0


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@spamc
@pytest.mark.few(1)
@pytest.mark.parametrize("options", [(), ("-q",), ("--log", "stderr")])
def test_a_model_of_older_rules_is_served_and_told_of_once(serve, own_model, options):
    raw = own_model.read_bytes()
    own_model.write_bytes(
        raw.replace(b'"rules": %d}' % TOKENIZER_VERSION, b'"rules": %d}' % (TOKENIZER_VERSION - 1))
    )
    with serve(own_model, "--tell", *options, answers=False) as served:
        served.wait(lambda: served.path.exists() and not _refused(served.path))
        assert served.spamc("-c")[0] == 1
        assert served.spamc("-L", "ham") == (74, b"")
        served.process.send_signal(signal.SIGHUP)
        assert served.spamc("-c", message=HAM)[0] == 0
    says = (
        f"{own_model}: was made with tokenizer rules {TOKENIZER_VERSION - 1}, and this program has"
        f" {TOKENIZER_VERSION}: "
    )
    told = [says in line for line in served.said]
    assert told == [True, *[False] * (len(told) - 1)] if options != ("-q",) else not any(told)


@spamc
@pytest.mark.few(1)
@pytest.mark.parametrize("place", ["PATH", "TCP"])
def test_tcp_metrics_and_log(serve, own_model, tmp_path, place):
    new = b"Subject: other\nMessage-ID: <2@example.org>\n\nsome quite unheard-of words\n"
    port, path = _free_port(), tmp_path / "metrics"
    address = path if place == "PATH" else f"127.0.0.1:{_free_port()}"
    options = ("--listen", f"127.0.0.1:{port}", "--metrics", address, "--tell", "--log", "stderr")
    with serve(own_model, *options, "--workers", "1", answers=False) as served:
        served.wait(lambda: served.said)
        command = [SPAMC, "-d", "127.0.0.1", "-p", str(port), "-c", "-u", "hal"]
        assert subprocess.run(command, input=SPAM, capture_output=True).returncode == 1
        for what in ("spam", "ham", "forget", "forget"):
            served.spamc("-L", what, "-u", "hal", message=new)
        assert served.spamc("-c")[0] == 1
        served.wait(lambda: len(served.said) == 7)  # a line may come after the answer
        served.ask(b"\x1b]0;owned\x07\x1b[2J SPAMC/1.5\r\n\r\n")
        served.wait(lambda: len(served.said) == 8)
        own_model.write_bytes(b"")
        served.process.send_signal(signal.SIGHUP)
        served.wait(lambda: len(served.said) == 9)
        with socket.socket(socket.AF_UNIX if place == "PATH" else socket.AF_INET) as client:
            client.connect(str(path) if place == "PATH" else ("127.0.0.1", int(address[10:])))
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            page = client.makefile("rb").read()
        assert page.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b'\nnbspam_requests_total{command="CHECK"} 2.0\n' in page
        assert place == "TCP" or path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()
    start, check, *told, _, hostile, bad, end = served.said
    assert 'error="76 Bad header line: ' in hostile
    assert hostile.removesuffix("\n").isprintable()  # it commands no terminal
    assert bad.startswith(f'nbspam: action=serve error="{own_model}: ')
    assert end == f'nbspam: action=serve note="stopped serving {own_model}"\n'
    places = f"{served.path}, 127.0.0.1:{port}, and its metrics on {address}"
    assert start == f'nbspam: action=serve note="serving {own_model} on {places}"\n'
    assert re.fullmatch(
        r"nbspam: action=classify command=CHECK user=hal verdict=spam probability=0\.9\d{5}"
        rf" bytes={len(SPAM)} milliseconds=\d+\.\d\n",
        check,
    )
    begin = "command=TELL message-id=<2@example.org> user=hal"
    assert [re.sub(r" milliseconds=[0-9.]+\n", "", line) for line in told] == [
        f"nbspam: action=learn {begin} class=spam result=learned bytes={len(new)}",
        f"nbspam: action=learn {begin} class=ham result=moved bytes={len(new)}",
        f"nbspam: action=forget {begin} result=forgotten bytes={len(new)}",
        f"nbspam: action=forget {begin} result=unchanged bytes={len(new)}",
    ]


@pytest.mark.long
def test_a_log_that_is_not_there_is_told_at_the_start(serve, mail_model, monkeypatch):
    if Path("/dev/log").exists():
        pytest.skip("there is a syslog")
    with serve(mail_model, "--quiet", "--log", "syslog", answers=False) as served:
        served.wait(lambda: served.said)
        assert served.said == [
            "nbspam: /dev/log: no syslog answers there; lines are dropped until one does\n"
        ]


@spamc
def test_a_model_of_one_side_is_told_of(serve, nbspam, tmp_path):
    path = tmp_path / "one.json"
    assert nbspam("train", "--update", "-m", path, "--ham", "-", stdin=HAM).code == 0
    with serve(path, "--tell", answers=False) as served:
        served.wait(lambda: len(served.said) == 2)
        assert "has learned only ham so far" in served.said[0]
        assert served.spamc("-c") == (0, b"2.8/5.0\n")  # a probability of 0.5
        assert served.spamc("-L", "spam")[1] == b"Message successfully un/learned\n"
        assert served.spamc("-y")[1] != b"NBSPAM_UNSURE,BAYES_50"


def test_systemd_hands_over_its_socket(mail_model, tmp_path):
    path = tmp_path / "socket"
    become = (
        "import os, sys; os.dup2(int(sys.argv[1]), 3);"
        "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1');"
        "os.execv(sys.executable, [sys.executable, '-m', 'nbspam', 'serve', *sys.argv[2:]])"
    )
    with (
        socket.socket(socket.AF_UNIX) as listener,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd,
        socket.socket(socket.AF_UNIX) as client,
    ):
        listener.bind(str(path))
        listener.listen()
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(20)
        client.connect(str(path))  # before anything runs
        process = subprocess.Popen(
            [sys.executable, "-c", become, str(listener.fileno()), "-m", mail_model, "-q"],
            pass_fds=[listener.fileno()],
            env=os.environ | {"NOTIFY_SOCKET": str(tmp_path / "notify")},
        )
        assert systemd.recv(100) == b"READY=1"
        client.sendall(b"PING SPAMC/1.5\r\n\r\n")
        assert client.recv(100) == b"SPAMD/1.5 0 PONG\r\n"
        client.close()  # else it would be waited for
        process.terminate()
        assert process.wait(20) == 0
        assert systemd.recv(100) == b"STOPPING=1"
    assert path.exists()  # it is systemd's


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_the_units_are_valid(tmp_path):
    units = [tmp_path / "nbspam.service", tmp_path / "nbspam.socket"]
    for path in units:
        text = (ROOT / "docs" / path.name).read_text()
        path.write_text(re.sub(r"(?<=ExecStart=)\S+", "/bin/true", text))
    command = ["systemd-analyze", "verify", *units]
    done = subprocess.run(command, capture_output=True, text=True)
    complaints = [line for line in done.stderr.splitlines() if "nbspam" in line]
    assert (done.returncode, complaints) == (0, [])


def test_the_service_calls_the_program_as_it_is(nbspam):
    text = (ROOT / "docs" / "nbspam.service").read_text()
    (command,) = re.findall(r"^ExecStart=\S+ (.*)$", text, re.MULTILINE)
    known = nbspam("serve", "--help").out
    assert command.split()[0] == "serve"
    assert all(option in known for option in re.findall(r"--[a-z-]+", command))


# Under load


def _load(served, count, mails):
    """Filter messages with 8 clients; return the number of those that did not come out right."""
    with ThreadPoolExecutor(8) as pool:
        filtered = pool.map(partial(_is_filtered, served), itertools.islice(mails, count))
        return sum(not ok for ok in filtered)


def _mails():
    for number in itertools.count():
        words = f"free prize {number}\nlunch meeting " * (1 + number % 50)
        yield f"Message-ID: <{number}@example.org>\n\n{words}\n".encode()


@spamc
@pytest.mark.long
def test_a_thousand_messages_and_a_hundred_models(serve, own_model):
    with serve(own_model) as served:
        _under_load(served, own_model, exchange=100, messages=1_000)


@spamc
@pytest.mark.long
@measures_memory
def test_two_minutes_without_growth(serve, own_model):
    with serve(own_model, "--tell") as served:
        mails = _mails()
        for message in itertools.islice(_mails(), 50):  # as long as the threads start
            served.spamc("-L", "ham", message=message)
        _load(served, 3_000, mails)
        start, ends = _memory(served.process.pid), time.monotonic() + 120
        while time.monotonic() < ends:
            assert _load(served, 1_000, mails) == 0
            served.spamc("-L", "spam", message=next(mails))
        # 100,000 remembered tokens come to 20 MB, and these mails hold a new word or two each.
        assert _memory(served.process.pid) < start + 25
