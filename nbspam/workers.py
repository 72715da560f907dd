"""Executors, which tokenize the messages of sources, on several cores if there are many messages.

An executor applies a function to items, in order.  The values are data (tokenized messages, notes
of skipped messages), so it does not matter in which process the function runs.
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
from nbspam.reading.source import Note, Skips
from nbspam.tokens.tokenized import TOKENS_ONLY, TokenizedMessage, TokenizeOptions, tokenize_batch

if TYPE_CHECKING:  # only for annotations
    from nbspam.tokens.tokenized import Batch, TokenizerOutputs

A = TypeVar("A")
B = TypeVar("B")
S = TypeVar("S")
# Limits of a batch, in messages and bytes: about 50 mails, or 200 short texts.  With 3,900 SMS,
# batches of 200 take 0.9 times the CPU time of batches of 50.
_BATCH, BATCH_BYTES = 200, 400 << 10
# The same limits for a piece of a corpus.  Each piece has its own vocabulary.  Training on short
# messages, 2 processes:
#
#     messages a piece    1,674: s, CPU s    5,574: s, CPU s
#     10,000              0.81, 0.77         1.67, 2.05
#     400                 0.74, 0.79         1.62, 2.11
#     200                 0.74, 0.82         1.57, 2.12
PIECE_LIMITS = 400, 1 << 19
_TEXT_FACTOR = 4  # a text has more tokens than a mail of the same size
_FILE_BYTES = 8_192  # assumed size of a message in a file
# Batches per process that are queued or done; the limit bounds the memory.
_QUEUED_PER_WORKER = 12
# Seconds of work in this process before other processes are started.  Starting them takes 0.07 s,
# and work that has taken this long will probably take much longer.
_SERIAL_SECONDS = 0.1
# Sources of this size certainly take longer, so processes are started before the first piece is
# read.
_FORK_AT_BYTES = 1 << 20


def never_blocks() -> bool:
    """Return False, because reading the next message from a file never blocks."""
    return False


_GC_THRESHOLDS = 50_000, 20, 100  # for `gc.set_threshold`; Python's default is 700, 10, 10


class ProgressPasses:
    """Receives the progress of work in passes; this one shows nothing."""

    def start(self, title: str, parts: int | None, done: int = 0) -> None:
        """Start a pass, or its next part if `done` parts are done.

        parts: the number of parts; None if the pass is measured in bytes of the sources.
        """

    def advance(self, messages: int = 0, size: int = 0) -> None:
        """Count a finished part with its messages and bytes."""


class Executor:
    """Runs work in this process, one item after the other; subclasses run it elsewhere."""

    # Whether the workers have this machine's files.
    is_local = True
    _jobs = 1

    @property
    def workers(self) -> int:
        """The number of workers."""
        return self._jobs

    def announce_size(self, size: int) -> None:
        """Prepare for sources with `size` bytes."""

    def map(
        self, function: Callable[[S, A], B], shared: S, items: Iterable[A], n: int = 1
    ) -> Iterator[B]:
        """Yield function(shared, item) for each item, in order.

        If an item fails, the values of the items before it are yielded before the error is raised.
        function, items and values can be sent to another process.
        shared: sent to each process once, when the process starts; a forked process shares it with
        its parent, without a copy.
        n: if above 1, the function returns a tuple of n values.  The first is always yielded as a
        value.  A subclass may leave the others in the worker, and yield references to them; later
        items may contain these references.
        Raises NbspamError when a process dies.
        """
        return (function(shared, item) for item in items)


class Processes(Executor):
    """Runs work in several processes of this machine; the first items in this one."""

    def __init__(
        self,
        jobs: int,
        serial_seconds: float = _SERIAL_SECONDS,
        input_blocks: Callable[[], bool] = never_blocks,
        start_method: str | None = None,
    ) -> None:
        """Start `jobs` processes for the work that remains after `serial_seconds` seconds.

        input_blocks: whether reading the next item would block.
        start_method: the start method of `multiprocessing`; None is Python's choice.
        """
        self._jobs, self._serial_seconds, self._input_blocks = jobs, serial_seconds, input_blocks
        self._forks = False  # if True, all further work goes to processes
        self._start_method = start_method

    def announce_size(self, size: int) -> None:
        """Start processes at once for large sources."""
        self._forks |= size >= _FORK_AT_BYTES

    def map(
        self, function: Callable[[S, A], B], shared: S, items: Iterable[A], n: int = 1
    ) -> Iterator[B]:
        """Yield function(shared, item) for each item, in order; for errors see `Executor.map`."""
        items = iter(items)
        worked = 0.0  # seconds, without the time that the consumer of the values takes
        for item in items:
            if worked >= self._serial_seconds or self._forks:
                self._forks = True
                yield from self._in_processes(function, shared, itertools.chain([item], items))
                return
            started = time.monotonic()
            done = function(shared, item)
            worked += time.monotonic() - started
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
            for future in read_ahead(
                submitted, _QUEUED_PER_WORKER * self.workers, self._input_blocks
            ):
                yield future.result()
        except BrokenProcessPool:
            raise NbspamError(
                "a process that reads messages was killed, perhaps for lack of memory",
                Remedy.ONE_PROCESS,
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def read_ahead(
    items: Iterator[A], length: int, input_blocks: Callable[[], bool] = never_blocks
) -> Iterator[A]:
    """Yield items, reading up to `length` items ahead.

    An error while reading is raised after the items before it were yielded.

    While reading would block, the items read so far are yielded.
    """
    waiting: deque[A] = deque()
    failure: Exception | None = None
    while True:
        try:
            while failure is None and len(waiting) < length and not (waiting and input_blocks()):
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


_task: dict[str, Callable[[Any], Any]] = {}  # set if this process is a worker


def _begin_worker(function: Callable[[Any, Any], Any], shared: Any) -> None:
    """Leave Ctrl-C to the parent process, and end when the parent ends or is killed."""
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
    gc.set_threshold(*_GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def all_cores() -> int:
    """Return how many processes can run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def make_executor(jobs: int, input_blocks: Callable[[], bool] = never_blocks) -> Executor:
    """Return the executor for a number of processes; input_blocks: as in `Processes`."""
    if not isinstance(jobs, int) or jobs < 1:
        raise OptionError(
            f"jobs must be a whole number from 1 on, not {jobs!r}; leave it out for 1"
        )
    return Executor() if jobs == 1 else Processes(jobs, input_blocks=input_blocks)


def tokenize_messages(
    raws: Iterable[RawMessage],
    skips: Skips,
    executor: Executor,
    digests: bool = False,
    outputs: "TokenizerOutputs" = TOKENS_ONLY,
    batch: int = _BATCH,
    skip_empty: bool = False,
) -> Iterator[TokenizedMessage]:
    """Tokenize messages, in order; skips a message whose file cannot be read.

    digests: whether to compute digests, for a ledger.
    outputs: the outputs that the model counts in addition to tokens.
    skip_empty: whether to skip mails without content, which cannot be learned, also with `strict`.
    Raises NbspamError when a process dies.
    """
    options = TokenizeOptions(digests, outputs, skip_empty)
    for results in executor.map(_tokenize_all, options, batch_messages(raws, batch)):
        yield from report_skipped(results, skips)


def report_skipped(results: Iterable[A | Note], skips: Skips) -> Iterator[A]:
    """Yield results, and report the skipped messages."""
    for result in results:
        if isinstance(result, Note):
            skips.record(result)
        else:
            yield result


def _tokenize_all(options: TokenizeOptions, batch: "Batch") -> list[TokenizedMessage | Note]:
    return list(tokenize_batch(batch, options))


def batch_messages(
    raws: Iterable[RawMessage],
    max_messages: int = _BATCH,
    max_bytes: int = BATCH_BYTES,
    input_blocks: Callable[[], bool] = never_blocks,
) -> "Iterator[Batch]":
    """Yield the messages in batches; an error is raised after the messages before it."""
    batch: list[RawMessage] = []
    size = 0
    try:
        for raw in raws:
            batch.append(raw)
            if isinstance(raw.content, str):
                size += _TEXT_FACTOR * len(raw.content)
            else:
                size += len(raw.content) if isinstance(raw.content, bytes) else _FILE_BYTES
            is_range = type(raw) is not RawMessage
            if is_range or len(batch) == max_messages or size > max_bytes or input_blocks():
                yield batch
                batch, size = [], 0
    except Exception:
        if batch:
            yield batch
        raise
    if batch:
        yield batch
