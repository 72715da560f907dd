"""The executor: sources in, tokenized messages out; on several cores where there are many messages.

An executor applies a function to items, in order.  The values are data (tokenized messages, records
of skipped ones), so an executor knows nothing of the function and its caller nothing of the place.
"""

import gc
import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from nbspam.errors import NbspamError, OptionError, Remedy
from nbspam.reading.message import RawMessage
from nbspam.reading.source import ReadingNote, Skips
from nbspam.tokens.tokenized import TOKENS_ALONE, TokenizedMessage, Tokenizing, tokenize_batch

if TYPE_CHECKING:  # classifying does without
    from nbspam.reading.cutting import SourcePiece
    from nbspam.tokens.tokenized import Batch, Wanted

A = TypeVar("A")
B = TypeVar("B")
S = TypeVar("S")
# Messages handed over at a time, and no more than so many bytes: about 50 mails, or 200 short texts
# (3,900 SMS are classified in .9 of the CPU that batches of 50 take).
_BATCH, BATCH_BYTES = 200, 400 << 10
# The same, of a piece that is stored, if its messages are read here.
PIECE = 20_000, 1 << 20
_SHORT = 4
_FILE = 8_192  # bytes of a message in a file, which is not read to know
_WAITING = 12  # batches per process, done or to be done: memory does not grow with the corpus
# Seconds of work after which processes are started, which takes 0.07 s: after so much work there is
# likely to be more.
_ALONE = 0.1
# Bytes of sources that take longer than that, so that no core waits for the first piece.
_LARGE = 1 << 20


def never_pauses() -> bool:
    """Return whether reading the next message would block: in a file it never does."""
    return False


_COLLECTIONS = 50_000, 20, 100  # of `gc.set_threshold`; Python's are 700, 10, 10


class Passes:
    """Receives the progress of work in passes; this one shows nothing."""

    def begin(self, what: str, parts: int | None, done: int = 0) -> None:
        """Begin a pass of `parts` parts (None: of the sources' size), or its next part."""

    def done(self, messages: int = 0, size: int = 0) -> None:
        """Count a finished part with its messages and bytes."""


class Executor:
    """Runs work in this process, one item after the other; subclasses run it elsewhere."""

    # Whether the workers have this machine's files.
    is_here = True
    _jobs = 1

    @property
    def workers(self) -> int:
        """The number of workers."""
        return self._jobs

    def expect(self, size: int) -> None:
        """Prepare for sources of so many bytes."""

    def map(
        self, function: Callable[[S, A], B], shared: S, items: Iterable[A], n: int = 1
    ) -> Iterator[B]:
        """Yield function(shared, item) of each item, in order; what precedes a failure comes first.

        function, items and values can go to another process.
        shared: goes to each process once, when the process starts; a forked one has no copy.
        n: above 1, the function returns a tuple of n values.  All but the first may stay where they
        were made; later items may contain the references that are yielded in their place.
        Raises NbspamError when a process dies.
        """
        return (function(shared, item) for item in items)


class Processes(Executor):
    """Runs work in several processes of this machine; the first items in this one."""

    def __init__(
        self,
        jobs: int,
        alone: float = _ALONE,
        pauses: Callable[[], bool] = never_pauses,
        start_method: str | None = None,
    ) -> None:
        """Use `jobs` processes for what is left after `alone` seconds.

        pauses: whether the next item would have to be waited for.
        start_method: of `multiprocessing`; None is Python's choice.
        """
        self._jobs, self._alone, self._pauses = jobs, alone, pauses
        self._forks = False  # after that, all later work goes to processes
        self._start_method = start_method

    def expect(self, size: int) -> None:
        """Start processes at once for large sources."""
        self._forks |= size >= _LARGE

    def map(
        self, function: Callable[[S, A], B], shared: S, items: Iterable[A], n: int = 1
    ) -> Iterator[B]:
        """Yield function(shared, item) of each item, in order; raises NbspamError if one dies."""
        items = iter(items)
        worked = 0.0  # seconds, without the time that the consumer of the values takes
        for item in items:
            if worked >= self._alone or self._forks:
                self._forks = True
                yield from self._in_processes(function, shared, itertools.chain([item], items))
                return
            begun = time.monotonic()
            done = function(shared, item)
            worked += time.monotonic() - begun
            yield done

    def _in_processes(
        self, function: Callable[[S, A], B], shared: S, items: Iterator[A]
    ) -> Iterator[B]:
        from concurrent.futures import Future, ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import get_context

        context = get_context(self._start_method)
        pool = ProcessPoolExecutor(self.workers, context, _begin_worker, (function, shared))
        submitted: Iterator[Future[B]] = (pool.submit(_work, item) for item in items)
        try:
            for future in ahead(submitted, _WAITING * self.workers, self._pauses):
                yield future.result()
        except BrokenProcessPool:
            raise NbspamError(
                "a process that reads messages was killed, perhaps for lack of memory",
                Remedy.ONE_PROCESS,
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def ahead(
    items: Iterator[A], length: int, pauses: Callable[[], bool] = never_pauses
) -> Iterator[A]:
    """Yield items and read up to `length` of them ahead; a failure comes in its place.

    While the items pause, all that were read are yielded first.
    """
    waiting: deque[A] = deque()
    failure: Exception | None = None
    while True:
        try:
            while failure is None and len(waiting) < length and not (waiting and pauses()):
                waiting.append(next(items))
        except StopIteration:
            break
        except Exception as error:  # noqa: BLE001 (raised after what precedes it)
            failure = error
        if not waiting:
            break
        yield waiting.popleft()
    yield from waiting
    if failure is not None:
        raise failure


_task: dict[str, Callable[[Any], Any]] = {}  # of this process, if it is a worker


def _begin_worker(function: Callable[[Any, Any], Any], shared: Any) -> None:
    """Leave Ctrl-C to the parent, and end when it ends, killed or not."""
    import signal
    from multiprocessing import parent_process
    from threading import Thread

    _task["work"] = partial(function, shared)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _work(item: Any) -> Any:
    return _task["work"](item)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect cyclic garbage rarely.

    A corpus is a million objects without garbage: collections took a quarter of the time from the
    last message to the model.
    """
    before = gc.get_threshold()
    gc.set_threshold(*_COLLECTIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def all_cores() -> int:
    """Return how many processes can run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def executor(jobs: int, pauses: Callable[[], bool] = never_pauses) -> Executor:
    """Return the executor for a number of processes; pauses: of `Processes`."""
    if not isinstance(jobs, int) or jobs < 1:
        raise OptionError(
            f"jobs must be a whole number from 1 on, not {jobs!r}; leave it out for 1"
        )
    return Executor() if jobs == 1 else Processes(jobs, pauses=pauses)


def tokenized(
    raws: "Iterable[RawMessage | ReadingNote | SourcePiece]",
    skips: Skips,
    where: Executor,
    digests: bool = False,
    wanted: "Wanted" = TOKENS_ALONE,
    batch: int = _BATCH,
    skips_empty: bool = False,
) -> Iterator[TokenizedMessage]:
    """Yield each message tokenized, in order; one whose file cannot be read is skipped.

    digests: whether to compute digests, for a ledger.
    wanted: the numbers that the model counts beside tokens.
    skips_empty: whether to skip a mail without content, which cannot be learned; that is no error
        even under `strict`.
    Raises NbspamError when a process dies.
    """
    how = Tokenizing(digests, wanted, skips_empty)
    for results in where.map(_tokenize_all, how, in_batches(iter(raws), batch)):
        yield from without_skipped(results, skips)


def without_skipped(results: Iterable[A | ReadingNote], skips: Skips) -> Iterator[A]:
    """Yield results, and report the skipped messages."""
    for result in results:
        if isinstance(result, ReadingNote):
            skips.take(result)
        else:
            yield result


def _tokenize_all(how: Tokenizing, batch: "Batch") -> list[TokenizedMessage | ReadingNote]:
    return list(tokenize_batch(batch, how))


def in_batches(
    raws: "Iterator[RawMessage | ReadingNote | SourcePiece]",
    most: int = _BATCH,
    most_bytes: int = BATCH_BYTES,
    pauses: Callable[[], bool] = never_pauses,
) -> "Iterator[Batch]":
    """Yield the messages in batches, and each piece by itself; a failure comes in its place."""
    batch: list[RawMessage | ReadingNote] = []
    size = 0
    try:
        for raw in raws:
            if not isinstance(raw, RawMessage | ReadingNote):
                if batch:
                    yield batch
                yield raw
                batch, size = [], 0
                continue
            batch.append(raw)
            content = raw.content if isinstance(raw, RawMessage) else ""
            if isinstance(content, str):  # a text has more tokens than a mail of as many bytes
                size += _SHORT * len(content)
            else:
                size += len(content) if isinstance(content, bytes) else _FILE
            if len(batch) == most or size > most_bytes or pauses():
                yield batch
                batch, size = [], 0
    except Exception:
        if batch:
            yield batch
        raise
    if batch:
        yield batch
