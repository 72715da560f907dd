import gc
import itertools
import operator
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam import workers
from nbspam.errors import NbspamError, SourceError
from nbspam.reading.message import RawMessage
from nbspam.reading.source import Skips
from nbspam.tokens.tokenized import digest_of, message_tokens
from nbspam.workers import Executor, Processes, make_executor, rare_collections, tokenize_messages

_ONE = 1e-9  # seconds: one item is done in this process


def eager(jobs):
    """Return an executor that hands work to other processes from the second item on."""
    return Executor() if jobs == 1 else Processes(jobs, serial_seconds=_ONE)


def some(tmp_path, n=23):
    """Return messages of each kind: rows, mails, files, and a file that is not there."""
    raws = []
    for i in range(n):
        path = tmp_path / f"{i}.eml"
        path.write_bytes(b"Subject: number %d\n\nin a file\n" % i)
        raws.append(RawMessage(f"row:{i}", "ham", f"row {i} caf\xe9"))
        raws.append(RawMessage(f"mail:{i}", "spam", b"Subject: win %d\n\n\xff\x00prize\n" % i))
        raws.append(RawMessage(str(path), None, path))
        if i % 7 == 0:
            raws.append(RawMessage(f"gone:{i}", None, tmp_path / f"gone{i}"))
    raws.append(RawMessage("empty", None, ""))
    return raws


def all_tokenized(raws, jobs):
    skips = Skips()
    return list(tokenize_messages(raws, skips, eager(jobs), digests=True, batch=2)), skips.named


def test_the_number_of_processes_changes_nothing(tmp_path):
    raws = some(tmp_path)
    alone, skipped = all_tokenized(raws, 1)
    for jobs in (2, 3):
        assert (alone, skipped) == all_tokenized(raws, jobs)
    read = [raw for raw in raws if not raw.source.startswith("gone")]
    assert [(m.source, m.label) for m in alone] == [(raw.source, raw.label) for raw in read]
    for message, raw in zip(alone, read, strict=True):
        parsed = raw.message()
        assert message.tokens == list(message_tokens(parsed))
        texts = [part.text for part in parsed.parts]
        assert message.digest == digest_of(message.tokens, parsed.headers, texts=texts)
    assert [line.partition(":")[0] for line in skipped] == ["gone"] * 4


def test_tokens_are_those_of_the_message_in_order():
    raw = RawMessage("x", None, b"Subject: hello\n\nwin a prize\n")
    (found,) = tokenize_messages([raw], Skips(), Executor())
    assert found.tokens == list(message_tokens(raw.message()))
    assert found.digest == ""


def test_the_size_is_that_of_a_message_in_memory(tmp_path):
    path = tmp_path / "a.eml"
    path.write_bytes(b"Subject: hello\n\nwin\n")
    for content, size in ((b"Subject: x\n\ny\n", 14), ("caf\xe9", 4), (path, 0), ("", 0)):
        (found,) = tokenize_messages([RawMessage("x", None, content)], Skips(), Executor())
        assert found.size == size


def test_little_work_starts_no_process(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a process was started")

    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor", refuse)
    raws = [RawMessage("x", None, "a text")] * 200
    found = list(tokenize_messages(raws, Skips(), Processes(2, serial_seconds=1e9), batch=1))
    assert len(found) == len(raws)
    with pytest.raises(AssertionError, match="started"):
        list(tokenize_messages(raws, Skips(), Processes(2, serial_seconds=_ONE), batch=1))


@pytest.mark.parametrize(("size", "is_local"), [(1 << 19, True), (1 << 21, False)])
def test_large_sources_start_processes_at_once(size, is_local):
    where = Processes(2, serial_seconds=1e9)
    where.announce_size(size)
    assert (set(where.map(_process, None, range(2))) == {os.getpid()}) == is_local


def _process(_, item):
    return os.getpid()


def test_collections_are_rare_for_a_while():
    before = gc.get_threshold()
    with suppress(ValueError), rare_collections():
        assert gc.get_threshold() > before
        raise ValueError
    assert gc.get_threshold() == before


@pytest.mark.parametrize("jobs", [1, 2])
def test_messages_are_read_no_further_than_needed(jobs):
    read = []
    source = (read.append(i) or RawMessage(f"x:{i}", None, "a text") for i in range(1000))
    found = tokenize_messages(source, Skips(), eager(jobs), batch=2)
    for _ in range(10):
        next(found)
    found.close()
    assert len(read) < 100


def until(expected, values):
    """Return the values before a failure; expected: what the failure says."""
    found = []
    with pytest.raises((NbspamError, OSError, ValueError), match=expected):
        for value in values:
            found.append(value)  # noqa: PERF402 (the failure comes after)
    return found


def test_strict_stops_in_the_same_place(tmp_path):
    raws = some(tmp_path)
    for jobs in (1, 2):
        found = until("gone:0", tokenize_messages(raws, Skips(strict=True), eager(jobs), batch=2))
        assert [message.source for message in found] == [raw.source for raw in raws[:3]]


def failing_after(items, error):
    yield from items
    raise error


@pytest.mark.parametrize("jobs", [1, 2])
@each("n", [1, 2, 3, 4, 7, 40])
def test_what_was_read_before_a_failure_comes_first(n, jobs):
    raws = [RawMessage(f"x:{i}", None, f"text {i}") for i in range(n)]
    source = failing_after(raws, SourceError("broken"))
    found = until("broken", tokenize_messages(source, Skips(), eager(jobs), batch=2))
    assert [message.source for message in found] == [raw.source for raw in raws]


class Killer(str):
    """A text that kills the process that looks at it, if it is not this one."""

    parent = os.getpid()

    def __getitem__(self, key):
        if os.getpid() != self.parent:
            os._exit(9)
        return super().__getitem__(key)


def test_a_killed_process_is_reported():
    raws = [RawMessage("x", None, Killer("a text"))] * 9
    with pytest.raises(
        NbspamError, match=r"killed.*; run it again with one process \(--jobs 1\)$"
    ) as error:
        list(tokenize_messages(raws, Skips(), eager(2), batch=2))
    assert "\n" not in str(error.value)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_processes_end_with_their_parent():
    """Killed, it cannot tell them to."""
    script = (
        "import os, signal, sys, time\n"
        "from nbspam import workers\n"
        "from nbspam.reading.message import RawMessage\n"
        "from nbspam.reading.source import Skips\n"
        "raws = (RawMessage('x', None, 'a text') for _ in range(100_000))\n"
        "where = workers.Processes(2, serial_seconds=1e-9)\n"
        "found = workers.tokenize_messages(raws, Skips(), where, batch=1)\n"
        "next(found), next(found)\n"
        "import multiprocessing\n"
        "print(*(child.pid for child in multiprocessing.active_children()), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=30
    )
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2
    ends = time.monotonic() + 60
    while any(map(is_running, pids)):
        assert time.monotonic() < ends
        time.sleep(0.05)


def is_running(pid):
    """Return whether a process runs: nobody may be there to take leave of a dead one."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


@given(st.lists(st.binary(max_size=40) | st.integers(0, 3 << 20), max_size=12))
def test_batches_keep_all_and_their_bounds(contents):
    raws = [
        RawMessage(str(i), None, bytes(c) if isinstance(c, int) else c)
        for i, c in enumerate(contents)
    ]
    batches = list(workers.batch_messages(iter(raws)))
    assert [raw for batch in batches for raw in batch] == raws
    for batch in batches:
        assert sum(len(raw.content) for raw in batch[:-1]) <= workers.BATCH_BYTES


def test_a_batch_is_of_many_short_texts_and_of_fewer_mails():
    text, mail, file = "x" * 100, b"x" * 8_000, Path("x")
    for content, most, least in ((text, 200, 200), (mail, 60, 40), (file, 60, 40)):
        raws = [RawMessage(str(i), None, content) for i in range(300)]
        assert least <= len(next(workers.batch_messages(iter(raws)))) <= most


# Executors


def unless(unlucky, number):
    if number == unlucky:
        raise ValueError("seven")
    return number


SPAWNED = Processes(2, serial_seconds=0, start_method="spawn")
each_executor = pytest.mark.parametrize(
    "where",
    [
        pytest.param(Executor(), id="serial"),
        pytest.param(Processes(2, serial_seconds=0), id="two"),
        pytest.param(Processes(1, serial_seconds=0), id="one", marks=pytest.mark.long),
        pytest.param(Processes(3, serial_seconds=_ONE), id="three", marks=pytest.mark.long),
        pytest.param(SPAWNED, id="spawned", marks=pytest.mark.long),
    ],
)


@each_executor
@each("n", [0, 1, 4, 5, 6, 100])
def test_values_come_in_the_order_of_the_items(where, n):
    assert list(where.map(operator.mul, 3, range(n))) == [3 * i for i in range(n)]


def test_processes_may_be_spawned():
    assert list(SPAWNED.map(operator.mul, 3, range(50))) == [3 * i for i in range(50)]


@pytest.mark.long
@each_executor
def test_what_precedes_a_failure_comes_first(where):
    assert until("seven", where.map(unless, 7, range(100))) == list(range(7))
    for n in (0, 1, 5, 6, 50):
        items = failing_after(range(n), OSError("unplugged"))
        assert until("unplugged", where.map(operator.mul, 3, items)) == [3 * i for i in range(n)]


@each_executor
def test_items_are_taken_no_further_than_needed(where):
    read = []
    values = where.map(operator.mul, 3, (read.append(i) or i for i in range(1_000)))
    assert [next(values) for _ in range(6)] == [0, 3, 6, 9, 12, 15]
    assert len(read) < 100
    if isinstance(where, Processes):
        values.close()


class Counter:
    """Counts what it was asked for."""

    def __init__(self):
        self.asked = 0

    def __reduce__(self):
        raise AssertionError("it was copied")


def counted_in(counter, _):
    counter.asked += 1
    return counter.asked


def test_what_is_shared_goes_to_each_process_once_as_it_is_then():
    counter = Counter()
    where = Processes(1, serial_seconds=_ONE, start_method="fork")
    assert list(where.map(counted_in, counter, range(6))) == [1, 2, 3, 4, 5, 6]
    assert counter.asked == 1


def test_one_job_needs_no_process():
    assert (type(make_executor(1)), type(make_executor(2))) == (Executor, Processes)


@each_executor
def test_a_message_that_cannot_be_read_is_skipped_where_it_stands(where, tmp_path):
    raws = [RawMessage("a", None, "x"), RawMessage("gone", None, tmp_path / "gone")]
    raws += [RawMessage("b", None, "y")]
    skips = Skips()
    messages = tokenize_messages(raws * 4, skips, where, batch=1)
    found = [(message.source, skips.count) for message in messages]
    assert [source for source, _ in found] == ["a", "b"] * 4
    assert [count for _, count in found] == [0, 1, 1, 2, 2, 3, 3, 4]
    assert all(line.startswith("gone: ") and "No such file" in line for line in skips.named)


def test_while_the_messages_pause_none_is_waited_for():
    """A batch, and what processes are ahead, is done with what came before the pause."""
    read = []

    def messages():
        for i in range(30):
            read.append(i)
            yield RawMessage(str(i), None, "hello there")

    for where in (workers.make_executor(1), workers.make_executor(2, input_blocks=lambda: True)):
        read.clear()
        batches = workers.batch_messages(messages(), input_blocks=lambda: True)
        for i, sources in enumerate(where.map(sources_of, None, batches)):
            assert (sources, read[-1]) == ([str(i)], i)


def sources_of(_, batch):
    return [raw.source for raw in batch]


def test_a_pause_only_now_and_then_loses_nothing():
    answers = itertools.cycle([False, False, True])
    raws = [RawMessage(str(i), None, "hello there") for i in range(500)]
    where = workers.make_executor(2, input_blocks=lambda: next(answers))
    batches = workers.batch_messages(iter(raws), input_blocks=lambda: next(answers))
    done = itertools.chain.from_iterable(where.map(sources_of, None, batches))
    assert list(done) == [raw.source for raw in raws]
