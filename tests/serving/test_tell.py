"""Requests to learn are applied once, in order, and together."""

import asyncio
import subprocess
import sys
import threading

import pytest
from servers import HAM, SPAM

from nbspam.errors import ModelError
from nbspam.learning import update
from nbspam.serving.limits import Limits
from nbspam.serving.tell import LearnQueue, LearnRequest
from nbspam.serving.tell import apply_requests as apply_with_wait
from nbspam.store.lock import DEFAULT_WAIT
from nbspam.store.model_file import read_model

NEW = b"Subject: new\nMessage-ID: <1@example.org>\n\nquite another thing\n"


def apply_requests(path, requests):
    return apply_with_wait(path, requests, DEFAULT_WAIT)


def queue_of(apply, **limits):
    return LearnQueue(apply, Limits(**limits), print)


def known(path):
    model = read_model(path)
    return dict(
        zip(model.metadata.settings.classes, model.metadata.learned.messages, strict=True)
    ), model.counts


def test_learn_move_forget(model):
    start = known(model)
    assert apply_requests(model, [LearnRequest(NEW, True)]) == [True]
    assert known(model)[0]["spam"] == start[0]["spam"] + 1
    assert apply_requests(model, [LearnRequest(NEW, True)]) == [False]
    assert apply_requests(model, [LearnRequest(NEW, False)]) == [True]
    assert known(model)[0] == start[0] | {"ham": start[0]["ham"] + 1}
    assert apply_requests(model, [LearnRequest(NEW, None)]) == [True]
    assert apply_requests(model, [LearnRequest(NEW, None)]) == [False]
    assert known(model) == start


def test_what_mail_software_adds_makes_no_other_message(model):
    assert apply_requests(model, [LearnRequest(NEW, True)]) == [True]
    assert apply_requests(
        model, [LearnRequest(b"X-Nbspam: spam, probability=1.0\n" + NEW, True)]
    ) == [False]


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
    requests = [
        LearnRequest(NEW, True),
        LearnRequest(HAM, False),
        LearnRequest(NEW, True),
        LearnRequest(NEW, False),
        LearnRequest(NEW, None),
    ]
    requests += [LearnRequest(HAM, None)]
    assert apply_requests(model, requests) == [True, True, False, True, True, True]
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
    with pytest.raises(ModelError, match="there is no such model"):
        apply_requests(model, [LearnRequest(NEW, True)])
    assert not model.exists()


def test_three_classes_need_one_called_ham(tmp_path):
    for other, good in (("ham", True), ("mine", False)):
        table = tmp_path / f"{other}.tsv"
        labels = ("spam", other, "promo")
        table.write_text("".join(f"{c}\t{c} word {i}\n" for i in range(5) for c in labels))
        path = tmp_path / f"{other}.json"
        command = [sys.executable, "-m", "nbspam", "train", "-q", "-m", path, table]
        subprocess.run(command, check=True)
        assert apply_requests(path, [LearnRequest(NEW, True)]) == [True]
        if good:
            assert apply_requests(path, [LearnRequest(NEW, False)]) == [True]
        else:
            with pytest.raises(ModelError, match="no class called ham; learn it under"):
                apply_requests(path, [LearnRequest(NEW, False)])


def test_what_comes_during_a_save_shares_the_next():
    batches, go = [], threading.Event()

    def slow(requests, _):
        batches.append([one.message for one in requests])
        assert go.wait(10)
        return [True] * len(requests)

    async def main():
        queue = queue_of(slow)
        tasks = [asyncio.create_task(queue.submit(LearnRequest(b"%d" % i, True))) for i in range(1)]
        while not batches:
            await asyncio.sleep(0.001)
        tasks += [
            asyncio.create_task(queue.submit(LearnRequest(b"%d" % i, True))) for i in range(1, 6)
        ]
        await asyncio.sleep(0.01)
        go.set()
        assert await asyncio.gather(*tasks) == [True] * 6
        await queue.close()

    asyncio.run(main())
    assert batches == [[b"0"], [b"1", b"2", b"3", b"4", b"5"]]


def test_a_failure_is_told_to_each_and_ends_nothing():
    failures = [ModelError("model.json: cannot be written")] * 3  # both together, then each

    def fail(requests, _):
        if failures:
            raise failures.pop()
        return [False] * len(requests)

    async def main():
        queue = queue_of(fail)
        results = await asyncio.gather(
            queue.submit(LearnRequest(SPAM, True)),
            queue.submit(LearnRequest(HAM, True)),
            return_exceptions=True,
        )
        assert [str(result) for result in results] == ["model.json: cannot be written"] * 2
        assert await queue.submit(LearnRequest(SPAM, True)) is False
        await queue.close()

    asyncio.run(main())


def test_the_end_waits_for_what_is_being_learned():
    done = []

    def slow(requests, _):
        threading.Event().wait(0.1)
        done.extend(requests)
        return [True] * len(requests)

    async def main():
        queue = queue_of(slow)
        task = asyncio.create_task(queue.submit(LearnRequest(SPAM, True)))
        await asyncio.sleep(0)
        await queue.close()
        assert await task

    asyncio.run(main())
    assert len(done) == 1


def test_a_bad_request_fails_alone():
    """The requests of its batch are then applied one by one."""

    def picky(requests, _):
        if any(one.is_spam is False for one in requests):
            raise ModelError("model.json: has no ham; try spam")
        return [True] * len(requests)

    async def tell() -> list[object]:
        queue = queue_of(picky)
        requests = [LearnRequest(NEW, True), LearnRequest(NEW, False), LearnRequest(NEW, None)]
        found = await asyncio.gather(*map(queue.submit, requests), return_exceptions=True)
        await queue.close()
        return found

    first, second, third = asyncio.run(tell())
    assert (first, third) == (True, True)
    assert isinstance(second, ModelError)
