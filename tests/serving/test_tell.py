"""Requests to learn are applied once, in order, and together."""

import asyncio
import fcntl
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial

import pytest
from servers import HAM, SPAM, request

import nbspam
from nbspam.errors import LockedError, ModelError
from nbspam.learning import update
from nbspam.serving.limits import Limits
from nbspam.serving.log import UNCHANGED
from nbspam.serving.spamd import RefusedError
from nbspam.serving.tell import LearnQueue, LearnRequest
from nbspam.serving.tell import apply_requests as apply_with_wait
from nbspam.store.model_file import read_model
from nbspam.store.writing import DEFAULT_WAIT, LockWait

NEW = b"Subject: new\nMessage-ID: <1@example.org>\n\nquite another thing\n"


def results(path, *requests):
    return apply_with_wait(path, list(requests), DEFAULT_WAIT)


def apply_requests(path, requests):
    return [
        done if isinstance(done, Exception) else done != UNCHANGED
        for done in results(path, *requests)
    ]


def submitted(apply, scene, **limits):
    """Run a scene with a function that submits messages to a queue, as spam or otherwise."""

    async def main():
        queue = LearnQueue(apply, Limits(**limits), print)
        await scene(lambda m, is_spam=True: queue.submit(LearnRequest(m, is_spam)), queue)
        await queue.close()

    asyncio.run(main())


def known(path):
    model = read_model(path)
    return dict(
        zip(model.metadata.settings.classes, model.metadata.learned.messages, strict=True)
    ), model.counts


def test_learn_move_forget(model):
    start = known(model)
    assert apply_requests(model, [LearnRequest(NEW, True)]) == [True]
    assert known(model)[0]["spam"] == start[0]["spam"] + 1
    marked = b"X-Nbspam: spam, probability=1.0\n" + NEW  # what mail software adds is no matter
    again = [LearnRequest(NEW, True), LearnRequest(marked, True)]
    assert apply_requests(model, again) == [False, False]
    assert apply_requests(model, [LearnRequest(NEW, False)]) == [True]
    assert known(model)[0] == start[0] | {"ham": start[0]["ham"] + 1}
    assert apply_requests(model, [LearnRequest(NEW, None)]) == [True]
    assert apply_requests(model, [LearnRequest(NEW, None)]) == [False]
    assert known(model) == start
    learn, move, forget = (LearnRequest(NEW, is_spam) for is_spam in (True, False, None))
    words = ["unchanged", "learned", "unchanged", "moved", "forgotten", "unchanged"]
    assert results(model, forget, learn, learn, move, forget, forget) == words
    assert results(model, move, LearnRequest(HAM, True)) == ["learned", "learned"]


def test_an_empty_message_is_not_learned(model):
    before = model.read_bytes()
    for empty in (b"", b"\r\n", b" \n\n"):
        requests = [LearnRequest(empty, is_spam) for is_spam in (True, False, None)]
        assert apply_requests(model, requests) == [False] * 3, empty
        assert model.read_bytes() == before
    requests = [LearnRequest(empty, True), LearnRequest(NEW, True), LearnRequest(empty, None)]
    assert apply_requests(model, requests) == [False, True, False]


def test_many_at_once_are_one_save(model, monkeypatch):
    saves = []
    real = update.write_atomically
    monkeypatch.setattr(update, "write_atomically", lambda *a: (saves.append(1), real(*a)))
    requests = [
        LearnRequest(b"Message-ID: <%d@example.org>\n\nhello" % i, i % 2 == 0) for i in range(20)
    ]
    before = known(model)[0]
    assert apply_requests(model, requests) == [True] * 20
    assert len(saves) == 1
    assert known(model)[0] == {name: n + 10 for name, n in before.items()}
    assert apply_requests(model, requests) == [False] * 20
    assert len(saves) == 1
    # Some to be forgotten and some to be learned: a save of each kind.
    mixed = [
        LearnRequest(one.message, None if i < 10 else not one.is_spam)
        for i, one in enumerate(requests)
    ]
    assert apply_requests(model, mixed) == [True] * 20
    assert len(saves) == 3


def test_requests_about_one_message_are_applied_in_order(model):
    start = known(model)
    told = (NEW, True), (HAM, False), (NEW, True), (NEW, False), (NEW, None), (HAM, None)
    done = apply_requests(model, [LearnRequest(*each) for each in told])
    assert done == [True, True, False, True, True, True]
    assert known(model) == start


def test_one_learned_several_times_is_forgotten_whole(model, tmp_path):
    table = tmp_path / "again.tsv"
    table.write_text("spam\tthe very same\n" * 3)
    start = known(model)
    command = [sys.executable, "-m", "nbspam", "train", "--update", "-q", "-m", model, table]
    subprocess.run(command, check=True)
    assert known(model)[0]["spam"] == start[0]["spam"] + 3
    assert apply_requests(model, [LearnRequest(b"the very same", None)]) == [True]
    assert known(model) == start


def test_a_missing_model_is_not_made_anew(model):
    model.unlink()
    with pytest.raises(ModelError, match="model not found"):
        apply_requests(model, [LearnRequest(NEW, True)])
    assert not model.exists()


def test_three_classes_need_one_called_ham(tmp_path):
    for other, good in (("ham", True), ("mine", False)):
        path, labels = tmp_path / f"{other}.json", ("spam", other, "promo")
        nbspam.train([(c, f"{c} word {i}") for i in range(5) for c in labels]).save(path)
        assert apply_requests(path, [LearnRequest(NEW, True)]) == [True]
        if good:
            assert apply_requests(path, [LearnRequest(NEW, False)]) == [True]
        else:
            with pytest.raises(ModelError, match="no class called ham; learn it under"):
                apply_requests(path, [LearnRequest(NEW, False)])


# The queue


def test_what_comes_during_a_save_shares_the_next():
    batches, go = [], threading.Event()

    def slow(requests, _):
        batches.append([one.message for one in requests])
        assert go.wait(60)
        return [True] * len(requests)

    async def scene(submit, _):
        tasks = [asyncio.create_task(submit(b"0"))]
        while not batches:
            await asyncio.sleep(0.001)
        tasks += [asyncio.create_task(submit(b"%d" % i)) for i in range(1, 6)]
        await asyncio.sleep(0.01)
        go.set()
        assert await asyncio.gather(*tasks) == [True] * 6

    submitted(slow, scene)
    assert batches == [[b"0"], [b"1", b"2", b"3", b"4", b"5"]]


def test_a_failure_is_told_to_each_and_ends_nothing():
    failures = [ModelError("model.json: cannot be written")] * 3  # both together, then each

    def fail(requests, _):
        if failures:
            raise failures.pop()
        return [False] * len(requests)

    async def scene(submit, _):
        results = await asyncio.gather(submit(SPAM), submit(HAM), return_exceptions=True)
        assert [str(result) for result in results] == ["model.json: cannot be written"] * 2
        assert await submit(SPAM) is False

    submitted(fail, scene)


def test_the_end_waits_for_what_is_being_learned():
    done = []

    def slow(requests, _):
        threading.Event().wait(0.03)
        done.extend(requests)
        return [True] * len(requests)

    async def scene(submit, queue):
        task = asyncio.create_task(submit(SPAM))
        await asyncio.sleep(0)
        await queue.close()
        assert await task

    submitted(slow, scene)
    assert len(done) == 1


def test_a_bad_request_fails_alone():
    """The requests of its batch are then applied one by one."""

    def picky(requests, _):
        if any(one.is_spam is False for one in requests):
            raise ModelError("model.json: has no ham; try spam")
        return [True] * len(requests)

    async def scene(submit, _):
        tasks = [submit(NEW, is_spam) for is_spam in (True, False, None)]
        first, second, third = await asyncio.gather(*tasks, return_exceptions=True)
        assert (first, third) == (True, True)
        assert isinstance(second, ModelError)

    submitted(picky, scene)


def test_one_save_is_for_so_many_bytes_and_a_large_message_is_alone():
    batches = []

    def apply(requests, _):
        batches.append([len(r.message) if isinstance(r.message, bytes) else -1 for r in requests])
        return [True] * len(requests)

    async def scene(submit, _):
        messages = [b"x" * 100_000] * 7 + [lambda _: None] * 2 + [b"x"] * 3
        await asyncio.gather(*map(submit, messages))

    submitted(apply, scene)
    assert batches == [[100_000] * 5, [100_000] * 2, [-1], [-1], [1] * 3]


def test_a_wait_is_limited_by_the_oldest_request():
    def locked(requests, wait: LockWait):
        while not wait.is_over():
            time.sleep(0.01)
        return [LockedError("model.json: its lock is held")] * len(requests)

    async def scene(submit, queue):
        started = time.monotonic()
        first = asyncio.create_task(submit(SPAM))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(submit(HAM))
        results = await asyncio.gather(first, second, return_exceptions=True)
        assert time.monotonic() - started < 20  # and not 30
        assert [type(result) for result in results] == [LockedError, LockedError]
        queue.hurry(0)
        with pytest.raises((RefusedError, LockedError)):
            await submit(SPAM)

    submitted(locked, scene, learning=0.1)


# A model that another program has locked

TEACH = ["Set: local", "Message-class: spam"]
OK = b"SPAMD/1.1 0 EX_OK\r\n"


@contextmanager
def held(model):
    with model.with_name(f".{model.name}.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


def word(number):
    """Return a word of its own for each number; digits would be one token."""
    return "word" + "".join(chr(ord("a") + int(digit)) for digit in str(number))


def mail(number):
    return f"Message-ID: <{number}@example.org>\n\n{word(number)}".encode()


def test_judging_never_waits_for_learning(serving, model):
    """A hundred clients teach a server with four places, while its model is locked."""
    limits = {"connections": 4, "shutdown": 0.1}
    with serving(model, partial(apply_with_wait, model), **limits) as served, held(model):
        clients = [served.connect() for _ in range(100)]
        for number, client in enumerate(clients):
            client.send(request("TELL", mail(number), *TEACH))
        started = time.monotonic()
        for _ in range(20):
            assert served.ask(request("CHECK", SPAM)).startswith(OK)
        assert time.monotonic() - started < 20  # the lock is waited for for 30
        for client in clients:
            client.socket.close()
        served.stop_within(20)


def test_who_cannot_be_learned_in_time_is_told_and_was_not_learned(serving, model):
    before = model.read_bytes()
    busy = b"SPAMD/1.0 75 Try again later: "
    with serving(model, partial(apply_with_wait, model), connections=3, learning=0.2) as served:
        with held(model):
            clients = [served.connect() for _ in range(10)]
            for number, client in enumerate(clients):
                client.send(request("TELL", mail(number), *TEACH))
            replies = [client.rest() for client in clients]
            for client in clients:
                client.socket.close()
            assert model.read_bytes() == before
        for reply in replies:
            assert reply.startswith(busy)
            assert reply.count(b"\n") == 1
        assert any(b"its lock" in reply and b"nothing was changed" in reply for reply in replies)
        assert any(b"too many messages wait" in reply for reply in replies)
        again = [served.ask(request("TELL", mail(number), *TEACH)) for number in range(10)]
        assert again == [OK + b"DidSet: local\r\n\r\n\r\n"] * 10
    assert served.said == []  # a wait of a moment


def test_a_stop_ends_the_wait_and_each_reply_is_true(serving, model):
    """What was answered as learned is on the disk, and what was not is not."""
    apply, go = partial(apply_with_wait, model), threading.Event()

    def slow(requests, wait):
        results = apply(requests, wait)
        go.set()
        return results

    with serving(model, slow, connections=8, shutdown=2) as served:
        clients = [served.connect() for _ in range(12)]
        for number, client in enumerate(clients[:3]):
            client.send(request("TELL", mail(number), *TEACH))
        assert go.wait(60)
        first = clients[0].rest()
        with held(model):
            for number, client in enumerate(clients[3:], 3):
                client.send(request("TELL", mail(number), *TEACH))
            served.wait(lambda: served.n_open >= 8)
            started = time.monotonic()
            served.stop()
            replies = [first, *(client.rest() for client in clients[1:])]
            served.thread.join(60)
            assert time.monotonic() - started < 20  # and not 30
        for client in clients:
            client.socket.close()
    learned = known(model)[1]
    for number, reply in enumerate(replies):
        assert (word(number) in learned) == (b"DidSet" in reply)
        assert b"DidSet" in reply or reply.startswith(b"SPAMD/1.0 75 ")
    assert b"DidSet" in first


def test_a_lock_that_is_lost_between_two_saves_is_told_to_the_second_alone(model, monkeypatch):
    assert apply_requests(model, [LearnRequest(NEW, True)]) == [True]

    def fail(*_, **__):
        raise LockedError("model.json: its lock is held")

    monkeypatch.setattr("nbspam.serving.tell.learn", fail)
    forgotten, learned = apply_requests(model, [LearnRequest(NEW, None), LearnRequest(HAM, False)])
    assert forgotten is True
    assert isinstance(learned, LockedError)
    assert apply_requests(model, [LearnRequest(NEW, None)]) == [False]
