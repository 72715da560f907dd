"""Requests to learn are applied once, in order, and together."""

import asyncio
import bz2
import gzip
import lzma
import math
import re
import subprocess
import sys
import threading
import time
from random import Random
from unittest.mock import patch

import pytest
from served_programs import HAM, SPAM
from servers import AS_SPAM, LEARNED, OK, held, lessons, request, told
from waiting import wait_until

import nbspam
from nbspam.errors import LockedError, ModelError, NbspamError
from nbspam.serving.models import Limits
from nbspam.serving.spamd import RefusedError
from nbspam.serving.teaching import Lesson, Teacher, TeachResult, apply_lessons
from nbspam.store import model_file
from nbspam.store.lookup import read_model
from nbspam.store.writing import DEFAULT_WAIT, LockWait

NEW = b"Subject: new\nMessage-ID: <1@example.org>\n\nquite another thing\n"


def submitted(apply, messages, before=lambda _: None, **limits):
    """Submit messages to a teacher, one soon after the other; return what came of each.

    apply: called with the messages, and how long to wait.  before: called with the teacher.
    """

    def applied(_, asked, wait):
        found = apply([lesson.message for lesson in asked], wait)
        return [TeachResult(one) if isinstance(one, str) else one for one in found]

    async def main():
        teacher = Teacher(Limits(**limits))
        before(teacher)

        async def submit(message):
            try:
                return (await teacher.submit("model.json", Lesson(True, message))).result
            except (NbspamError, RefusedError) as error:
                return error

        tasks = []
        for message in messages:
            tasks.append(asyncio.create_task(submit(message)))
            await asyncio.sleep(0.01)  # so that they come in order
        found = await asyncio.gather(*tasks)
        await teacher.finish()
        return found

    with patch("nbspam.serving.teaching.apply_lessons", applied):
        return asyncio.run(main())


def known(path):
    model = read_model(path)
    return dict(
        zip(model.metadata.settings.classes, model.metadata.learned.messages, strict=True)
    ), model.counts


def test_learn_move_forget(model):
    """In one call and in several: what is asked of one message is done in order."""
    start = known(model)
    marked = b"X-Nbspam: spam, probability=1.0\n" + NEW  # what mail software adds is no matter
    steps = [
        *((NEW, None, "unchanged", 0, 0), (NEW, True, "learned", 1, 0)),
        *((NEW, True, "unchanged", 1, 0), (marked, True, "unchanged", 1, 0)),
        *((HAM, False, "learned", 1, 1), (NEW, False, "moved", 0, 2)),
        *((NEW, None, "forgotten", 0, 1), (NEW, None, "unchanged", 0, 1)),
        *((HAM, True, "moved", 1, 0), (HAM, None, "forgotten", 0, 0)),
    ]
    words = [step[2] for step in steps]
    assert told(model, *(step[:2] for step in steps)) == words
    assert known(model) == start
    for message, is_spam, word, spam, ham in steps:
        assert told(model, (message, is_spam)) == [word]
        assert known(model)[0] == {"spam": start[0]["spam"] + spam, "ham": start[0]["ham"] + ham}
    assert known(model) == start


def test_what_looks_like_the_other_class_is_learned_and_noted(model):
    asked = lessons(model, [(SPAM, False), (NEW, None), (HAM, False)])
    with nbspam.open(model) as spam_filter:
        found = apply_lessons(spam_filter, asked, DEFAULT_WAIT)
    assert [done.result for done in found] == ["learned", "unchanged", "learned"]
    assert [done.note for done in found] == ["looks like spam", "", ""]


def test_an_empty_message_is_not_learned(serving, model):
    before = model.read_bytes()
    with serving(model, tell=True) as served:
        for empty in (b"", b"\r\n", b" \n\n"):
            for header in ("Message-class: spam\r\nSet: local", "Remove: local"):
                assert served.ask(request("TELL", empty, header)) == OK + b"\r\n\r\n", empty
                assert model.read_bytes() == before


def test_compressed_mail_is_read_and_what_is_no_message_is_unsure_and_not_learned(serving, model):
    """Large or not; what waits for the same save is learned."""
    noise = b"CRYPTED\x03\x07" + Random(1).randbytes(300_000)
    before = known(model)[0]
    with serving(model, tell=True) as served:
        plain = served.ask(request("CHECK", SPAM))
        for packed in (gzip.compress(SPAM), bz2.compress(SPAM), lzma.compress(SPAM)):
            assert served.ask(request("CHECK", packed)) == plain
        for binary in (noise, noise[:3_000]):
            assert b"NBSPAM_UNSURE" in served.ask(request("SYMBOLS", binary))
            refused = served.ask(request("TELL", binary, *AS_SPAM))
            assert refused.startswith(b"SPAMD/1.0 65 Message refused: the message is encrypted by")
        assert served.ask(request("TELL", gzip.compress(NEW), *AS_SPAM)) == LEARNED
        assert served.ask(request("TELL", NEW, *AS_SPAM)) == OK + b"\r\n\r\n"
    assert known(model)[0] == {**before, "spam": before["spam"] + 1}


def test_many_at_once_are_one_save(model, monkeypatch):
    saves = []
    real = model_file.writing.write_atomically
    monkeypatch.setattr(
        model_file.writing, "write_atomically", lambda *a: (saves.append(1), real(*a))
    )
    asked = [(b"Message-ID: <%d@example.org>\n\nhello" % i, i % 2 == 0) for i in range(20)]
    before = known(model)[0]
    assert told(model, *asked) == ["learned"] * 20
    assert len(saves) == 1
    assert known(model)[0] == {name: n + 10 for name, n in before.items()}
    assert told(model, *asked) == ["unchanged"] * 20
    assert len(saves) == 1
    # Some to be forgotten and some to be learned: a save of each kind.
    mixed = [(message, None if i < 10 else not spam) for i, (message, spam) in enumerate(asked)]
    assert told(model, *mixed) == ["forgotten"] * 10 + ["moved"] * 10
    assert len(saves) == 3


def test_one_learned_several_times_is_forgotten_whole(model, tmp_path):
    table = tmp_path / "again.tsv"
    table.write_text("spam\tthe very same\n" * 3)
    start = known(model)
    command = [sys.executable, "-m", "nbspam", "train", "--update", "-q", "-m", model, table]
    subprocess.run(command, check=True)
    assert known(model)[0]["spam"] == start[0]["spam"] + 3
    assert told(model, (b"the very same", None)) == ["forgotten"]
    assert known(model) == start


def test_a_missing_model_is_not_made_anew(model):
    model.unlink()
    with pytest.raises(ModelError, match="model not found"):
        told(model, (NEW, True))
    assert not model.exists()


def test_three_classes_need_one_called_ham(tmp_path):
    for other, good in (("ham", True), ("mine", False)):
        path, labels = tmp_path / f"{other}.json", ("spam", other, "promo")
        nbspam.train([(c, f"{c} word {i}") for i in range(5) for c in labels]).save(path)
        assert told(path, (NEW, True)) == ["learned"]
        if good:
            assert told(path, (NEW, False)) == ["moved"]
        else:
            with pytest.raises(ModelError, match="no class called ham; learn it under"):
                told(path, (NEW, False))


# The queue


def test_what_comes_during_a_save_shares_the_next():
    batches, teachers = [], []

    def slow(messages, _):
        batches.append(len(messages))
        if len(batches) == 1:
            wait_until(lambda: teachers[0].n_waiting == 12)
        return ["learned"] * len(messages)

    assert submitted(slow, range(13), teachers.append) == ["learned"] * 13
    assert batches == [1, 12]


def test_a_failure_is_told_to_each_and_a_bad_request_fails_alone():
    """The requests of its batch are then applied one by one."""

    def picky(messages, _):
        time.sleep(0.1)
        if "bad" in messages:
            raise ModelError("model.json: has no ham; try spam")
        return ["learned"] * len(messages)

    results = submitted(picky, ["good", "good", "bad", "good", "bad"])
    assert [str(result)[:10] for result in results] == [
        *("learned", "learned", "model.json", "learned", "model.json")
    ]


def test_a_wait_is_limited_by_the_oldest_request_and_by_the_end():
    def locked(messages, wait):
        while not wait.should_stop():
            time.sleep(0.01)
        return [LockedError("model.json: its lock is held")] * len(messages)

    def soon(teacher):
        teacher.deadline = time.monotonic() + 0.1

    for before, limits in ((lambda _: None, {"learning": 0.1}), (soon, {})):
        started = time.monotonic()
        results = submitted(locked, [1, 2], before, **limits)
        assert time.monotonic() - started < 20  # and not 30
        assert {type(result) for result in results} <= {LockedError, RefusedError}
        assert LockedError in map(type, results)


def test_who_waits_for_those_before_him_is_told_in_time():
    """And is not learned after that."""
    free, applied = threading.Event(), []
    threading.Timer(0.5, free.set).start()

    def apply(messages, _):
        applied.extend(messages)
        return ["learned"] * len(messages) if free.wait(20) else []

    first, late = submitted(apply, ["first", "late"], learning=0.2)
    assert first == "learned"
    assert isinstance(late, RefusedError)
    assert late.code == 75
    assert applied == ["first"]


def test_who_is_late_is_not_learned_though_the_lock_is_free(model):
    """Several requests about one message need a save each."""
    asked = iter([True])
    wait = LockWait(math.inf, print, lambda: next(asked, True))
    requests = lessons(model, [(b"\n\nword", is_spam) for is_spam in (True, False, True)])
    with nbspam.open(model) as spam_filter:
        done, *late = apply_lessons(spam_filter, requests, wait)
    assert done.result == "learned"
    assert [one.code for one in late] == [75, 75]


# A model that another program has locked


def word(number):
    """Return a word of its own for each number; digits would be one token."""
    return "word" + "".join(chr(ord("a") + int(digit)) for digit in str(number))


def mail(number):
    return f"Message-ID: <{number}@example.org>\n\n{word(number)}".encode()


def test_judging_never_waits_for_learning(serving, model):
    """A hundred clients teach a server while its model is locked."""
    limits = {"connections": 150, "shutdown": 0.1}
    with serving(model, tell=True, **limits) as served, held(model), served.clients(100) as clients:
        for number, client in enumerate(clients):
            client.send(request("TELL", mail(number), *AS_SPAM))
        started = time.monotonic()
        for _ in range(20):
            assert served.ask(request("CHECK", SPAM)).startswith(OK)
        assert time.monotonic() - started < 20  # the lock is waited for for 30
        served.wait(lambda: served.said)
        for client in clients:
            client.socket.close()
        served.stop_within(20)
    (said,) = served.said
    assert re.match(rf"{model}: waiting for its lock \S+, held by another program", said)


def test_who_cannot_be_learned_in_time_is_told_and_was_not_learned(serving, model):
    before = model.read_bytes()
    busy = b"SPAMD/1.0 75 Try again later: "
    with serving(model, tell=True, connections=8, learning=0.2) as served:
        with held(model), served.clients(10) as clients:
            for number, client in enumerate(clients):
                client.send(request("TELL", mail(number), *AS_SPAM))
            replies = [client.rest() for client in clients]
            assert model.read_bytes() == before
        for reply in replies:
            assert reply.startswith(busy)
            assert reply.count(b"\n") == 1
        assert any(b"its lock" in reply and b"nothing was changed" in reply for reply in replies)
        again = [served.ask(request("TELL", mail(number), *AS_SPAM)) for number in range(10)]
        assert again == [LEARNED] * 10
    assert served.said == []  # a wait of a moment


def test_a_stop_ends_the_wait_and_each_reply_is_true(serving, model):
    """What was answered as learned is on the disk, and what was not is not."""
    go = threading.Event()

    def slow(*asked):
        results = apply_lessons(*asked)
        go.set()
        return results

    with (
        serving(model, slow, connections=20, shutdown=2) as served,
        served.clients(12) as clients,
    ):
        for number, client in enumerate(clients[:3]):
            client.send(request("TELL", mail(number), *AS_SPAM))
        assert go.wait(60)
        first = clients[0].rest()
        with held(model):
            for number, client in enumerate(clients[3:], 3):
                client.send(request("TELL", mail(number), *AS_SPAM))
            served.wait(lambda: served.metric("learning_queue_messages") >= 6)  # 2 may be learned
            started = time.monotonic()
            served.stop()
            replies = [first, *(client.rest() for client in clients[1:])]
            served.stopping.join(60)
            assert time.monotonic() - started < 20  # and not 30
    learned = known(model)[1]
    for number, reply in enumerate(replies):
        assert (word(number) in learned) == (b"DidSet" in reply)
        assert b"DidSet" in reply or reply.startswith(b"SPAMD/1.0 75 ")
    assert b"DidSet" in first


def test_a_lock_that_is_lost_between_two_saves_is_told_to_the_second_alone(model, monkeypatch):
    assert told(model, (NEW, True)) == ["learned"]

    def fail(*_, **__):
        raise LockedError("model.json: its lock is held")

    monkeypatch.setattr("nbspam.filter.Filter.learn", fail)
    forgotten, learned = told(model, (NEW, None), (HAM, False))
    assert forgotten == "forgotten"
    assert isinstance(learned, LockedError)
    assert told(model, (NEW, None)) == ["unchanged"]
