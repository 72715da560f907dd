"""Several workers: all serve, all are counted, one that dies is replaced, and all end together."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest
from servers import HAM, SPAM, Client, request, together

import nbspam
from nbspam.serving.metrics import Metrics
from nbspam.serving.worker_pool import CAN_SHARE
from nbspam.store.lookup import Lookup

pytestmark = pytest.mark.skipif(not CAN_SHARE, reason="needs Linux")
OK = b"SPAMD/1.1 0 EX_OK\r\n"
CHECK = request("CHECK", SPAM)
MANY = 20  # messages of each class in a user's model
AS_SPAM = "Message-class: spam", "Set: local"


class Program:
    def __init__(self, process, folder):
        self.process, self.folder, self.said = process, folder, []
        self.listener = threading.Thread(target=lambda: self.said.extend(process.stderr))
        self.listener.start()

    def connect(self):
        return Client(self.folder / "socket")

    def ask(self, asked):
        with self.connect() as client:
            with suppress(OSError):
                client.send(asked)
            return client.rest()

    @property
    def workers(self):
        return [pid for pid in children(self.process.pid) if b"worker_program" in command(pid)]

    def metric(self, name):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.folder / "metrics"))
            client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            page = b""
            while chunk := client.recv(1 << 16):
                page += chunk
        return float(re.search(rf"^{re.escape(name)} (\S+)$", page.decode(), re.MULTILINE)[1])

    def wait(self, condition, seconds=60.0):
        ends = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < ends, self.said
            time.sleep(0.01)


def children(pid):
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def command(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def is_ready(pid):
    """Return whether a worker has opened what it waits with."""
    with suppress(OSError):
        return any(
            "eventpoll" in str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()
        )
    return False


@contextmanager
def running(folder, model, *options, n=3):
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "nbspam", "serve", "-m", model, "--socket", folder / "socket"),
            *("--metrics", folder / "metrics", "--workers", str(n), *options),
        ],
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONWARNINGS": "error"},
    )
    program = Program(process, folder)
    try:
        program.wait(lambda: program.said)
        program.wait(lambda: len(program.workers) == n - 1)
        program.wait(lambda: all(is_ready(pid) for pid in program.workers))
        yield program
    finally:
        with suppress(OSError):
            process.terminate()
        process.wait(60)
        program.listener.join()
        process.stderr.close()
    assert not any("Traceback" in line for line in program.said), program.said


def stopped(program, pids):
    """Stop processes for the time being, so that others must do their work."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        program.wait(lambda pid=pid: ") T " in Path(f"/proc/{pid}/stat").read_text())


def go_on(pids):
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, signal.SIGCONT)


def asked_of(program, alone, every):
    """Return the reply of one process to a CHECK that is there when it is accepted."""
    stopped(program, every)
    try:
        with program.connect() as client:
            client.send(CHECK)
            go_on([alone])
            return client.rest()
    finally:
        go_on(every)


def checks(program, n):
    program.wait(lambda: program.metric('nbspam_requests_total{command="CHECK"}') == n)


def test_each_worker_serves_learns_once_and_ends_with_all(tmp_path, model):
    with Lookup(model) as lookup:
        before = lookup.metadata.learned.messages
    replies, numbers = [], count(1)
    with running(tmp_path, model, "--tell") as program:
        workers = program.workers
        every = [program.process.pid, *workers]
        for alone in every * 3:
            assert asked_of(program, alone, every).startswith(OK + b"Spam: True")
        checks(program, 9)
        program.wait(lambda: program.metric("nbspam_judging_seconds_count") == 9)
        judged = 'nbspam_judged_messages_total{command="CHECK",verdict="spam"}'
        program.wait(lambda: program.metric(judged) == 9)
        program.wait(lambda: program.metric("nbspam_received_bytes_total") == 9 * len(SPAM))

        def teach():
            for number in range(5):
                message = HAM + bytes([97 + number]) * 6 + b"\n"
                assert program.ask(request("TELL", message, *AS_SPAM)).startswith(OK)

        together(6, teach)  # whoever accepts them, each message is learned once
        assert program.metric('nbspam_told_messages_total{result="learned"}') == 5
        with Lookup(model) as lookup:
            assert lookup.metadata.learned.messages == (before[0], before[1] + 5)

        def client():
            while True:
                try:
                    connected = program.connect()
                except OSError:  # it has ended
                    return
                with connected:
                    with suppress(OSError):
                        connected.send(CHECK)
                    replies.append(connected.rest())
                if next(numbers) == 30:
                    program.process.send_signal(signal.SIGTERM)

        together(6, client)  # whoever was connected before SIGTERM gets his verdict
        assert program.process.wait(60) == 0
        program.wait(lambda: not any(command(pid) for pid in workers))
        assert not (tmp_path / "socket").exists()
    assert len(replies) >= 30
    assert all(reply.startswith(OK + b"Spam: True") for reply in replies)
    assert program.said[1:] == [f"nbspam: stopped serving {model}\n"]


LARGE = b"Subject: prize\n\n" + b"claim the free cash prize today\n" * 20_000
HANDED_ON = [
    *(CHECK, CHECK[:-1], b"PING SPAMC/1.5\r\n\r\n", request("CHECK", LARGE)),
    *(request("TELL", HAM + b"quite new\n", *AS_SPAM), request("PROCESS", LARGE)),
    *(CHECK + b"junk", b"\xff\n"),
]


@pytest.mark.long
def test_what_a_worker_cannot_do_the_first_one_does(tmp_path, model):
    with running(tmp_path, model, "--tell", "--connections", "4", n=2) as program:
        (worker,) = program.workers
        for asked in HANDED_ON:
            stopped(program, [program.process.pid])
            with program.connect() as client:
                at = 40 if asked == CHECK else 60
                client.send(asked[:at])
                time.sleep(0.02)  # the worker hands it on
                go_on([program.process.pid])
                client.send(asked[at:] + (CHECK[-1:] if asked == CHECK[:-1] else b""))
                is_junk = asked.endswith((b"junk", b"\xff\n"))
                assert client.rest().startswith(b"SPAMD/1.0 76 " if is_junk else b"SPAMD/1.")
        program.wait(lambda: program.metric('nbspam_requests_total{command="TELL"}') == 1)
        checks(program, 3)
        assert program.workers == [worker]

        with ExitStack() as opened:  # slow clients are bounded as ever
            slow = [opened.enter_context(program.connect()) for _ in range(30)]
            for client in slow:
                client.send(CHECK[:20])
            time.sleep(0.1)
            assert program.metric("nbspam_connections") <= 5
        program.wait(lambda: program.metric("nbspam_connections") == 0)

        for _ in range(3):
            assert asked_of(program, worker, [program.process.pid, worker]).startswith(OK)
        checks(program, 6)
        os.kill(worker, signal.SIGKILL)  # it is replaced, and its counts stay
        for _ in range(20):
            assert program.ask(CHECK).startswith(OK)
        program.wait(lambda: program.workers not in ([], [worker]))
        program.wait(lambda: len(program.said) == 2)
        assert "a worker has ended (signal 9); a new one follows" in program.said[1]
        checks(program, 26)

        workers = program.workers
        program.process.kill()
        program.wait(lambda: not any(command(pid) for pid in workers))  # none outlives the first


@pytest.mark.long
def test_who_is_heard_at_the_end_is_answered(tmp_path, model):
    with running(tmp_path, model, n=2) as program, program.connect() as client:
        client.send(CHECK[:40])
        time.sleep(0.05)
        program.process.send_signal(signal.SIGTERM)
        time.sleep(0.05)
        client.send(CHECK[40:])
        assert client.rest().startswith(OK)
        assert program.process.wait(10) == 0


def test_counts_of_processes_add_up():
    one, other, total = Metrics(), Metrics(), Metrics()
    other.add(one.snapshot(2))
    snapshot = json.loads(json.dumps(other.others()))
    total.add(snapshot)
    assert total.others()["dropped"] == 2
    assert total.others()["resident"] == 0


def words_of(user):
    return " ".join(f"zyxw{chr(97 + user)}quorn{end}" for end in "abcdefgh")


def mail(user, number):
    unique = "".join(chr(97 + int(digit)) * 3 for digit in str(number))
    return f"Subject: {words_of(user)}\n\nnews of this week {words_of(user)} {unique}\n".encode()


@pytest.mark.long
def test_many_users_of_several_workers_while_models_are_replaced_and_taught(tmp_path, model):
    """Each verdict is the right model's: it alone has the user's words."""
    n = 8
    users = tmp_path / "users"
    users.mkdir(mode=0o700)
    for user in range(n):
        spam = [("spam", mail(user, number)) for number in range(MANY)]
        ham = [("ham", b"Subject: news\n\nnews of this week %d\n" % k) for k in range(MANY)]
        nbspam.train(spam + ham).save(users / f"user{user}.json")
    options = "--tell", "--user-models", users
    wrong, taught, stop = [], [0] * n, threading.Event()
    with running(tmp_path, model, *options, n=2) as program:

        def judge(client):
            for number in range(30):
                user, other = (client + number) % n, (client + 5 * number + 1) % n
                for words in {user, other}:
                    asked = request("CHECK", mail(words, 1_000 + number), user=f"user{user}")
                    reply = program.ask(asked)
                    if not reply.startswith(OK + b"Spam: %r" % (words == user)):
                        wrong.append((user, words, reply))

        def replace():
            while not stop.wait(0.01):
                for user in range(n // 2):
                    shutil.copyfile(users / f"user{user}.json", tmp_path / "beside")
                    (tmp_path / "beside").rename(users / f"user{user}.json")

        def teach():
            while not stop.wait(0.01):
                user = n // 2 + sum(taught) % (n // 2)
                asked = mail(user, 9_000 + sum(taught))
                for _ in range(2):
                    reply = program.ask(request("TELL", asked, *AS_SPAM, user=f"user{user}"))
                    if not reply.startswith(OK):
                        wrong.append((user, "taught", reply))
                taught[user] += 1

        beside = [threading.Thread(target=target) for target in (replace, teach)]
        clients = [threading.Thread(target=judge, args=(client,)) for client in range(8)]
        for thread in beside + clients:
            thread.start()
        for thread in clients:
            thread.join()
        stop.set()
        for thread in beside:
            thread.join()
        assert wrong == []
        assert program.said[1:] == []
    for user in range(n):
        with Lookup(users / f"user{user}.json") as lookup:
            assert lookup.metadata.learned.messages == (MANY, MANY + taught[user])
    assert sum(taught) > 3
