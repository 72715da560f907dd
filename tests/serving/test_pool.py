"""Several workers: all serve, all are counted, one that dies is replaced, and all end together."""

import select
import shutil
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from itertools import count

import pytest
from served_programs import HAM, SPAM, command, program
from servers import AS_SPAM, OK, put, request, signal_all, status, together

import nbspam
from nbspam.store.lookup import Lookup

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
CHECK = request("CHECK", SPAM)
MANY = 20  # messages of each class in a user's model


@contextmanager
def running(folder, model, *options, n=2):
    places = "--metrics", folder / "metrics", "--workers", str(n)
    with program(folder, model, *places, *options) as served:
        assert len(served.workers) == n + 1  # one is for short messages
        yield served


def test_each_worker_judges_learns_once_and_ends_with_all(tmp_path, model):
    with Lookup(model) as lookup:
        before = lookup.metadata.learned.messages
    replies, numbers = [], count(1)
    with running(tmp_path, model, "--tell") as served:
        workers = served.workers
        for alone in workers:  # each does its work while the others do nothing
            others = [pid for pid in workers if pid != alone]
            signal_all(others, signal.SIGSTOP)
            with served.clients(9) as clients:
                for client in clients:
                    client.send(CHECK)
                served.wait(
                    lambda c=clients: select.select([one.socket for one in c], [], [], 0)[0]
                )
                signal_all(others, signal.SIGCONT)
                for client in clients:
                    assert client.rest().startswith(OK + b"Spam: True")
        judged = 'judged_messages_total{command="CHECK",verdict="spam"}'
        served.wait(lambda: served.metric(judged) == 27)

        def teach():
            for number in range(5):
                message = HAM + bytes([97 + number]) * 6 + b"\n"
                assert served.ask(request("TELL", message, *AS_SPAM)).startswith(OK)

        together(6, teach)  # each message is learned once
        assert served.metric('told_messages_total{result="learned"}') == 5
        with Lookup(model) as lookup:
            assert lookup.metadata.learned.messages == (before[0], before[1] + 5)

        def client():
            while True:
                try:
                    connected = served.connect()
                except OSError:  # it has ended
                    return
                with connected:
                    with suppress(OSError):
                        connected.send(CHECK)
                    replies.append(connected.rest())
                if next(numbers) == 30:
                    served.process.send_signal(signal.SIGTERM)

        together(6, client)  # whoever was connected before SIGTERM gets his verdict
        assert served.process.wait(60) == 0
        served.wait(lambda: not any(command(pid) for pid in workers))
        assert not (tmp_path / "socket").exists()
    assert len(replies) >= 30
    assert [reply for reply in replies if not reply.startswith(OK + b"Spam: True")] == []
    assert served.said[1:] == [f"nbspam: stopped serving {model}\n"]


def test_a_worker_that_dies_is_replaced_and_none_outlives_the_server(tmp_path, model):
    line = b"SPAMD/1.0 75 Try again later: (the process that reads it has ended)\r\n"
    with running(tmp_path, model) as served:
        first = served.workers
        signal_all(first, signal.SIGKILL)  # idle ones cost nobody anything
        served.wait(lambda: all(status(pid) == "Z" for pid in first))
        for _ in range(9):
            assert served.ask(CHECK).startswith(OK)
        put(model, b"no model")  # its successor has the version that the server has open
        signal_all(served.workers, signal.SIGSTOP)
        with served.connect() as client:
            client.send(CHECK)
            served.wait(lambda: served.metric("connections") == 1)
            time.sleep(0.1)
            workers = served.workers
            signal_all(workers, signal.SIGKILL)
            assert client.rest() == line  # and spamc outputs the message
        for _ in range(9):
            assert served.ask(CHECK).startswith(OK)
        assert served.metric('requests_total{command="CHECK"}') == 19
        assert not set(served.workers) & set(workers)
        assert "keeps using the previous model" in served.said[1]
        assert "gave up on a message (the process that reads it has ended)" in served.said[2]
        assert len(served.said) == 3
        workers = served.workers
        served.process.kill()
        served.wait(lambda: not any(command(pid) for pid in workers))


def test_short_messages_do_not_wait_for_long_ones_nor_these_for_ever(tmp_path, model):
    long = request("CHECK", HAM + b"".join(b"and so on w%d\n" % i for i in range(7_000)))
    with running(tmp_path, model) as served, served.clients(20) as clients:
        signal_all(served.workers, signal.SIGSTOP)
        for client in clients:
            client.send(long)
        served.wait(lambda: served.metric("connections") == 20)
        with served.connect() as short:
            short.send(CHECK)
            served.wait(lambda: served.metric("connections") == 21)
            time.sleep(0.1)  # until it is read
            signal_all(served.workers, signal.SIGCONT)
            assert short.rest().startswith(OK)
        done, _, _ = select.select([client.socket for client in clients], [], [], 0)
        assert len(done) < 15
        for client in clients:
            assert client.rest().startswith(OK)


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
    with running(tmp_path, model, *options, n=2) as served:

        def judge(client):
            for number in range(30):
                user, other = (client + number) % n, (client + 5 * number + 1) % n
                for words in {user, other}:
                    asked = request("CHECK", mail(words, 1_000 + number), user=f"user{user}")
                    reply = served.ask(asked)
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
                    reply = served.ask(request("TELL", asked, *AS_SPAM, user=f"user{user}"))
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
        assert served.said[1:] == []
    for user in range(n):
        with Lookup(users / f"user{user}.json") as lookup:
            assert lookup.metadata.learned.messages == (MANY, MANY + taught[user])
    assert sum(taught) > 3
