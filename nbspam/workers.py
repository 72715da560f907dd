"""The executor: sources in, tokenized messages out; on several cores where there are many messages.

An executor applies a function to items, in order.  What comes back is data (tokenized messages, and
records of what was skipped), so an executor needs to know nothing of what it runs, and its caller
nothing of where that ran.
"""

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from nbspam.errors import NbspamError, Remedy, SourceError
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.tokens.tokenized import TOKENS_ALONE, TokenizedMessage, Wanted, tokenize

A = TypeVar("A")
B = TypeVar("B")
_BATCH = 50  # messages handed over at a time, and no more than:
_BATCH_BYTES = 1 << 20
_WAITING = 12  # batches per process, done or to be done: memory does not grow with the corpus
# Batches done before processes are started: starting them takes 0.05 s, in which a mail or two
# hundred rows are done.
_ALONE = 4


def never_pauses() -> bool:
    """Return whether the next message is yet to be written: that of a file never is."""
    return False


class Executor(Protocol):
    """Where work is done."""

    def map(self, function: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
        """Yield the function's value of each item, in order; what precedes a failure comes first.

        function, items and values can go to another process.  Raises NbspamError when one dies.
        """


class Serial:
    """Everything in this process."""

    def map(self, function: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
        """Yield the function's value of each item, in order."""
        return map(function, items)


class Processes:
    """Several processes of this machine; the first items are done in this one."""

    def __init__(
        self, jobs: int, alone: int = _ALONE, pauses: Callable[[], bool] = never_pauses
    ) -> None:
        """Use `jobs` processes where there are more than `alone` items.

        pauses: whether the next item is yet to come, so that none is waited for.
        """
        self._jobs, self._alone, self._pauses = jobs, alone, pauses

    def map(self, function: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
        """Yield the function's value of each item, in order; raises NbspamError if one dies."""
        items = iter(items)
        yield from map(function, itertools.islice(items, self._alone))
        for first in items:
            yield from self._in_processes(function, itertools.chain([first], items))

    def _in_processes(self, function: Callable[[A], B], items: Iterator[A]) -> Iterator[B]:
        from concurrent.futures import Future, ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool

        pool = ProcessPoolExecutor(self._jobs, initializer=_begin)
        submitted: Iterator[Future[B]] = (pool.submit(function, item) for item in items)
        try:
            for future in _ahead(submitted, _WAITING * self._jobs, self._pauses):
                yield future.result()
        except BrokenProcessPool:
            raise NbspamError(
                "a process that reads messages was killed, perhaps for lack of memory",
                Remedy.ONE_PROCESS,
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _ahead(
    items: Iterator[A], length: int, pauses: Callable[[], bool] = never_pauses
) -> Iterator[A]:
    """Yield items while `length` of the next are taken already; a failure comes in its place.

    While the items pause, none is taken before all that were taken are yielded.
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


def _begin() -> None:
    """Leave Ctrl-C to the parent, and end when it ends, killed or not."""
    import signal
    from multiprocessing import parent_process
    from threading import Thread

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def all_cores() -> int:
    """Return how many processes can run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def executor(jobs: int, pauses: Callable[[], bool] = never_pauses) -> Executor:
    """Return the executor for a number of processes; pauses: as `tokenized` takes it."""
    return Serial() if jobs == 1 else Processes(jobs, pauses=pauses)


class Skipped(NamedTuple):
    """A message that could not be read, or has nothing in it."""

    source: str
    reason: str
    is_error: bool = True  # under `strict`


def tokenized(
    raws: Iterable[RawMessage],
    skips: Skips,
    where: Executor,
    digests: bool = False,
    wanted: Wanted = TOKENS_ALONE,
    batch: int = _BATCH,
    pauses: Callable[[], bool] = never_pauses,
    skips_empty: bool = False,
) -> Iterator[TokenizedMessage]:
    """Yield each message tokenized, in order; one whose file cannot be read is skipped.

    digests: whether the messages are to be looked up in a ledger or entered into it.
    wanted: the numbers that the model counts beside their tokens.
    pauses: whether the next message is yet to come, so that those before it do not wait for it.
    skips_empty: whether a mail with nothing in it is skipped, too: it is not to be learned; no
        error even under `strict`.
    Raises NbspamError when a process dies.
    """
    batches = _batches(iter(raws), batch, pauses)
    for results in where.map(partial(_tokenize_all, digests, wanted, skips_empty), batches):
        for result in results:
            if isinstance(result, Skipped):
                skip = skips if result.is_error else skips.note
                skip(result.source, result.reason)
            else:
                yield result


def _tokenize_all(
    digests: bool, wanted: Wanted, skips_empty: bool, raws: list[RawMessage]
) -> list[TokenizedMessage | Skipped]:
    return [_tokenize(raw, digests, wanted, skips_empty) for raw in raws]


def _tokenize(
    raw: RawMessage, digests: bool, wanted: Wanted, skips_empty: bool
) -> TokenizedMessage | Skipped:
    try:
        message = raw.message()
    except SourceError as error:
        return Skipped(raw.source, str(error).removeprefix(f"{raw.source}: "))
    if skips_empty and not isinstance(raw.content, str) and message.is_empty:
        return Skipped(raw.source, "the message is empty", is_error=False)
    size = len(raw.content) if isinstance(raw.content, bytes | str) else 0
    done = tokenize(message, raw.source, raw.label, ordered=True, digest=digests, wanted=wanted)
    return done._replace(size=size)


def _batches(
    raws: Iterator[RawMessage], most: int, pauses: Callable[[], bool] = never_pauses
) -> Iterator[list[RawMessage]]:
    """Yield the messages in batches; what was read before a failure comes before it."""
    batch: list[RawMessage] = []
    size = 0
    try:
        for raw in raws:
            batch.append(raw)
            size += len(raw.content) if isinstance(raw.content, bytes | str) else 0
            if len(batch) == most or size > _BATCH_BYTES or pauses():
                yield batch
                batch, size = [], 0
    except Exception:
        if batch:
            yield batch
        raise
    if batch:
        yield batch
