import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam import workers
from nbspam.errors import NbspamError, SourceError
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.tokens.tokenizer import message_tokens
from nbspam.workers import token_sets


@pytest.fixture
def eager(monkeypatch):
    """Hand messages to other processes from the third on, two at a time."""
    monkeypatch.setattr(workers, "_ALONE", 2)
    monkeypatch.setattr(workers, "_BATCH", 2)


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


def taken(raws, jobs):
    skips = Skips()
    return list(token_sets(raws, skips, jobs, digests=True)), skips.named


@pytest.mark.parametrize("jobs", [2, 3])
def test_the_number_of_processes_changes_nothing(tmp_path, eager, jobs):
    raws = some(tmp_path)
    alone, skipped = taken(raws, 1)
    assert (alone, skipped) == taken(raws, jobs)
    assert [m.raw for m in alone] == [r for r in raws if not r.source.startswith("gone")]
    assert [line.partition(":")[0] for line in skipped] == ["gone"] * 4


def test_tokens_are_those_of_the_message_in_order():
    raw = RawMessage("x", None, b"Subject: hello\n\nwin a prize\n")
    (found,) = token_sets([raw], Skips())
    assert found.tokens == sorted(message_tokens(raw.message()))
    assert found.digest == ""


def test_few_messages_start_no_process(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a process was started")

    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor", refuse)
    few = [RawMessage("x", None, "a text")] * workers._ALONE
    assert len(list(token_sets(few, Skips(), jobs=2))) == len(few)
    with pytest.raises(AssertionError, match="started"):
        list(token_sets([*few, few[0]], Skips(), jobs=2))


def test_messages_are_read_no_further_than_needed(eager):
    read = []

    def source():
        for i in range(1000):
            read.append(i)
            yield RawMessage(f"x:{i}", None, "a text")

    found = token_sets(source(), Skips(), jobs=2)
    for _ in range(10):
        next(found)
    found.close()
    assert len(read) < 100


def test_strict_stops_in_the_same_place(tmp_path, eager):
    raws = some(tmp_path)
    for jobs in (1, 2):
        with pytest.raises(SourceError, match="gone:0"):
            list(token_sets(raws, Skips(strict=True), jobs))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 40])
@pytest.mark.parametrize("jobs", [1, 2])
def test_what_was_read_before_a_failure_comes_first(eager, n, jobs):
    def source():
        for i in range(n):
            yield RawMessage(f"x:{i}", None, f"text {i}")
        raise SourceError("broken")

    found = []
    with pytest.raises(SourceError, match="broken"):
        for message in token_sets(source(), Skips(), jobs):
            found.append(message.raw.source)  # noqa: PERF401 (the failure comes after)
    assert found == [f"x:{i}" for i in range(n)]


class Killer(str):
    """A text that kills the process that looks at it, if it is not this one."""

    parent = os.getpid()

    def __getitem__(self, key):
        if os.getpid() != self.parent:
            os._exit(9)
        return super().__getitem__(key)


def test_a_killed_process_is_told_of(eager):
    raws = [RawMessage("x", None, Killer("a text"))] * 9
    with pytest.raises(NbspamError, match="-j 1") as error:
        list(token_sets(raws, Skips(), jobs=2))
    assert "\n" not in str(error.value)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_processes_end_with_their_parent():
    """Killed, it cannot tell them to."""
    script = (
        "import os, signal, sys, time\n"
        "from nbspam import workers\n"
        "from nbspam.reading.raw_message import RawMessage\n"
        "from nbspam.reading.skips import Skips\n"
        "workers._ALONE, workers._BATCH = 1, 1\n"
        "raws = (RawMessage('x', None, 'a text') for _ in range(100_000))\n"
        "found = workers.token_sets(raws, Skips(), jobs=2)\n"
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
    until = time.monotonic() + 10
    while any(map(is_running, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(is_running, pids))


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
    batches = list(workers._batches(iter(raws)))
    assert [raw for batch in batches for raw in batch] == raws
    for batch in batches:
        assert sum(len(raw.content) for raw in batch[:-1]) <= workers._BATCH_BYTES
