"""The workers together: one that dies, many clients, and lessons from several of them."""

import os
import platform
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from served_programs import SPAM, program
from servers import AS_SPAM, LEARNED, OK, held, request, together

from nbspam.store.lookup import read_model

CHECK = request("CHECK", SPAM)


def new_mail(i):
    word = "".join(chr(ord("a") + int(digit)) for digit in str(i))
    return b"Message-ID: <%d@example.org>\n\nquite another %sx\n" % (i, word.encode())


def test_a_worker_that_dies_is_replaced_and_none_outlives_the_server(tmp_path, model):
    with program(tmp_path, model, "--workers", "2") as served:
        first = served.workers
        assert len(first) == 2
        assert served.ask(CHECK).startswith(OK)
        os.kill(first[0], signal.SIGKILL)
        served.wait(lambda: len({*served.workers} - {*first}) == 1)
        assert served.said[1:] == ["nbspam: a worker has ended and is replaced\n"]
        assert [served.ask(CHECK)[: len(OK)] for _ in range(10)] == [OK] * 10
        last = served.workers
        os.kill(served.process.pid, signal.SIGKILL)
        served.wait(lambda: not any(map(is_running, last)))


LOADED = """
import ctypes, re, sys, threading
from pathlib import Path
from nbspam.serving.models import Models, ServerConfig
from nbspam.serving.prefork import Server

setup = ServerConfig(Path(sys.argv[1]))
Server(setup, Models(setup), [])._load()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]

def is_in_heap(block):
    ranges = re.findall(r"(\\w+)-(\\w+) .*\\[heap\\]", Path("/proc/self/maps").read_text())
    return any(int(low, 16) <= block < int(high, 16) for low, high in ranges)

libc.free(libc.malloc(1 << 20))  # by default a second such block would come from a heap
print(is_in_heap(libc.malloc(1 << 20)))
thread = threading.Thread(target=lambda: print(is_in_heap(libc.malloc(1000))))
thread.start()
thread.join()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has mallopt")
def test_large_blocks_go_back_to_the_system_and_threads_share_a_heap(model):
    command = [sys.executable, "-c", LOADED, model]
    assert subprocess.check_output(command, text=True).split() == ["False", "True"]


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_worker_killed_under_load_costs_its_clients_alone(tmp_path, model):
    """They get a closed connection, and no part of a reply."""
    replies, stop = [], threading.Event()
    with program(tmp_path, model, "--workers", "2") as served:

        def ask():
            while not stop.is_set():
                replies.append(served.ask(CHECK))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for _ in range(2):
            time.sleep(0.5)
            before = served.workers
            os.kill(before[0], signal.SIGKILL)
            served.wait(lambda before=before: len({*served.workers} - {*before}) == 1)
        stop.set()
        for thread in threads:
            thread.join()
    good = [reply for reply in replies if reply]
    assert len({*good}) == 1
    assert good[0].startswith(OK)
    assert len(replies) - len(good) <= 16  # of those that a killed worker had


def test_a_lesson_while_fifty_classify(tmp_path, model):
    replies, taught = [], []
    with program(tmp_path, model, "--workers", "2", "--tell") as served:
        before = sum(read_model(model).metadata.learned.messages)
        asking = threading.Thread(
            target=together, args=(50, lambda: replies.extend(served.ask(CHECK) for _ in range(4)))
        )
        asking.start()
        taught += [served.ask(request("TELL", new_mail(i), *AS_SPAM)) for i in range(5)]
        asking.join()
        assert taught == [LEARNED] * 5
        assert len(replies) == 200
        assert all(reply.startswith(OK) for reply in replies)
        # Each worker knows what the other has learned.
        assert [served.ask(request("TELL", new_mail(0), *AS_SPAM)) for _ in range(6)] == [
            OK + b"\r\n\r\n"
        ] * 6
    assert sum(read_model(model).metadata.learned.messages) == before + 5


def test_lessons_in_several_workers_are_all_learned_once(tmp_path, model):
    replies = []
    todo = iter([i for i in range(20) for _ in range(2)])
    lock = threading.Lock()

    def teach():
        while True:
            with lock:
                i = next(todo, None)
            if i is None:
                return
            replies.append(served.ask(request("TELL", new_mail(i), *AS_SPAM)))

    with program(tmp_path, model, "--workers", "3", "--tell") as served:
        before = sum(read_model(model).metadata.learned.messages)
        together(8, teach)
    assert sum(read_model(model).metadata.learned.messages) == before + 20
    assert {reply.replace(LEARNED, OK + b"\r\n\r\n") for reply in replies} == {OK + b"\r\n\r\n"}
    assert replies.count(LEARNED) >= 20


def test_a_stop_answers_who_is_there_and_signals_to_all_end_it_once(tmp_path, model):
    with program(tmp_path, model, "--workers", "2") as served, served.clients(6) as clients:
        for client in clients:
            client.send(CHECK[:30])
        time.sleep(0.3)
        # As Ctrl-C does, but for the moment between two signals.  If this test waits for the
        # processor then, a worker without a client ends before the parent knows of a stop.
        for pid in [served.process.pid, *served.workers]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
        for client in clients:
            client.send(CHECK[30:])
        assert all(client.rest().startswith(OK) for client in clients)
        assert served.process.wait(20) == 0
    assert served.said[1:] == [f"nbspam: stopped serving {model}\n"]


@pytest.mark.long  # ten seconds; test_spamd.py has it of a worker with less time
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_in_time_though_clients_are_silent_and_a_model_is_locked(tmp_path, model, number):
    with (
        held(model),
        program(tmp_path, model, "--workers", "2", "--tell") as served,
        served.clients(3) as clients,
    ):
        clients[0].send(CHECK[:30])
        clients[1].send(request("TELL", new_mail(1), *AS_SPAM))
        time.sleep(0.3)
        started = time.monotonic()
        assert served.stop(number) == 0
        assert time.monotonic() - started < 15
        assert clients[1].rest().startswith(b"SPAMD/1.0 75 ")
    assert not served.path.exists()
