"""The executor: sources in, tokenized messages out; on several cores where there are many messages.

An executor applies a function to items, in order.  What comes back is data (tokenized messages, and
records of what was skipped), so an executor needs to know nothing of what it runs, and its caller
nothing of where that ran.
"""

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from nbspam.errors import NbspamError, Remedy, SourceError
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skipped, Skips
from nbspam.tokens.tokenized import TOKENS_ALONE, TokenizedMessage, Wanted, tokenize

if TYPE_CHECKING:  # classifying does without
    from nbspam.learning.corpus import Corpus
    from nbspam.learning.vocabulary import NumberedBatch, NumberedMessage, Numberer
    from nbspam.reading.piece import SourcePiece

    # What one process tokenizes at a time: messages, or where it finds them.
    Batch = list[RawMessage] | SourcePiece

A = TypeVar("A")
B = TypeVar("B")
S = TypeVar("S")
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

    def map(self, function: Callable[[S, A], B], shared: S, items: Iterable[A]) -> Iterator[B]:
        """Yield function(shared, item) of each item, in order; what precedes a failure comes first.

        function, items and values can go to another process.  shared: goes to each process once, as
        it is then, without a copy where processes are forked.
        Raises NbspamError when one dies.
        """


class Serial:
    """Everything in this process."""

    def map(self, function: Callable[[S, A], B], shared: S, items: Iterable[A]) -> Iterator[B]:
        """Yield function(shared, item) of each item, in order."""
        return (function(shared, item) for item in items)


class Processes:
    """Several processes of this machine; the first items are done in this one."""

    def __init__(
        self,
        jobs: int,
        alone: int = _ALONE,
        pauses: Callable[[], bool] = never_pauses,
        start_method: str | None = None,
    ) -> None:
        """Use `jobs` processes where there are more than `alone` items.

        pauses: whether the next item is yet to come, so that none is waited for.
        start_method: of `multiprocessing`; None is Python's choice.
        """
        self._jobs, self._alone, self._pauses = jobs, alone, pauses
        self._start_method = start_method

    def map(self, function: Callable[[S, A], B], shared: S, items: Iterable[A]) -> Iterator[B]:
        """Yield function(shared, item) of each item, in order; raises NbspamError if one dies."""
        items = iter(items)
        for item in itertools.islice(items, self._alone):
            yield function(shared, item)
        for first in items:
            yield from self._in_processes(function, shared, itertools.chain([first], items))

    def _in_processes(
        self, function: Callable[[S, A], B], shared: S, items: Iterator[A]
    ) -> Iterator[B]:
        from concurrent.futures import Future, ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import get_context

        pool = ProcessPoolExecutor(
            self._jobs, get_context(self._start_method), _Worker, (function, shared)
        )
        submitted: Iterator[Future[B]] = (pool.submit(_Worker.work, item) for item in items)
        try:
            for future in ahead(submitted, _WAITING * self._jobs, self._pauses):
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


class _Worker:
    """A process that applies a function; the one of its process is `own`."""

    own: "_Worker"

    def __init__(self, function: Callable[[Any, Any], Any], shared: Any) -> None:
        """Leave Ctrl-C to the parent, and end when it ends, killed or not."""
        import signal
        from multiprocessing import parent_process
        from threading import Thread

        self._function, self._shared = function, shared
        _Worker.own = self
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        parent = parent_process()

        def watch() -> None:
            if parent is not None:
                parent.join()
            os._exit(1)

        Thread(target=watch, daemon=True).start()

    @staticmethod
    def work(item: Any) -> Any:
        """Return the function's value."""
        return _Worker.own._function(_Worker.own._shared, item)


def all_cores() -> int:
    """Return how many processes can run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def executor(jobs: int, pauses: Callable[[], bool] = never_pauses) -> Executor:
    """Return the executor for a number of processes; pauses: as `tokenized` takes it."""
    return Serial() if jobs == 1 else Processes(jobs, pauses=pauses)


def tokenized(
    raws: "Iterable[RawMessage | SourcePiece]",
    skips: Skips,
    where: Executor,
    digests: bool = False,
    wanted: Wanted = TOKENS_ALONE,
    batch: int = _BATCH,
    pauses: Callable[[], bool] = never_pauses,
) -> Iterator[TokenizedMessage]:
    """Yield each message tokenized, in order; one whose file cannot be read is skipped.

    digests: whether the messages are to be looked up in a ledger or entered into it.
    wanted: the numbers that the model counts beside their tokens.
    pauses: whether the next message is yet to come, so that those before it do not wait for it.
    Raises NbspamError when a process dies.
    """
    batches = in_batches(iter(raws), batch, pauses)
    for results in where.map(_tokenize_all, (digests, wanted), batches):
        yield from without_skipped(results, skips)


def gather(
    corpus: "Corpus",
    raws: "Iterable[RawMessage | SourcePiece]",
    skips: Skips,
    where: Executor,
    shown: Callable[[Iterable[Any]], Iterable[Any]] = iter,
    batch: int = _BATCH,
) -> None:
    """Add each message to a corpus, in order, with its digest; as `tokenized` reads them.

    shown: what the messages pass through on their way, to show how far it is.
    """
    # In one process, numbers would only be a second copy of the vocabulary; and who does work once
    # more elsewhere, where a machine fails, must know nothing of what was sent before.
    if corpus.wanted.times or not isinstance(where, Processes):
        found = tokenized(raws, skips, where, digests=True, wanted=corpus.wanted, batch=batch)
        for message in shown(found):
            corpus.add(message)
        return
    for numbered in shown(_numbered(corpus, raws, skips, where, batch)):
        corpus.add_numbered(numbered)


def _numbered(
    corpus: "Corpus",
    raws: "Iterable[RawMessage | SourcePiece]",
    skips: Skips,
    where: Executor,
    batch: int,
) -> "Iterator[NumberedMessage]":
    """Yield each message tokenized, its tokens numbered as the corpus numbers them."""
    from nbspam.learning.vocabulary import Numberer, Renumberer

    renumberer = Renumberer(corpus.numbers)
    how = Numberer(), corpus.wanted
    for done, skipped in where.map(_number_all, how, in_batches(iter(raws), batch)):
        messages = renumberer.messages(done)
        found = (skipped.get(i) or next(messages) for i in range(len(done.messages) + len(skipped)))
        yield from without_skipped(found, skips)


def without_skipped(results: Iterable[A | Skipped], skips: Skips) -> Iterator[A]:
    """Yield results, and tell what was skipped."""
    for result in results:
        if isinstance(result, Skipped):
            skips(*result)
        else:
            yield result


def read_batch(batch: "Batch") -> "Iterator[RawMessage | Skipped]":
    """Return the messages of a batch, and what cannot be read of it, in order."""
    return iter(batch) if isinstance(batch, list) else batch.read()


def _tokenize_all(how: tuple[bool, Wanted], batch: "Batch") -> list[TokenizedMessage | Skipped]:
    return [
        tokenize_raw(raw, *how) if isinstance(raw, RawMessage) else raw for raw in read_batch(batch)
    ]


def _number_all(
    how: "tuple[Numberer, Wanted]", raws: "Batch"
) -> "tuple[NumberedBatch, dict[int, Skipped]]":
    """Return the messages that can be read, and those that cannot by their place."""
    numberer, wanted = how
    found = _tokenize_all((True, wanted), raws)
    skipped = {i: item for i, item in enumerate(found) if not isinstance(item, TokenizedMessage)}
    return numberer.numbered(m for m in found if isinstance(m, TokenizedMessage)), skipped


def tokenize_raw(
    raw: RawMessage, digest: bool, wanted: Wanted, ordered: bool = True
) -> TokenizedMessage | Skipped:
    """Return a message tokenized; digest, wanted, ordered: as `tokenize` takes them."""
    try:
        message = raw.message()
    except SourceError as error:
        return Skipped(raw.source, str(error).removeprefix(f"{raw.source}: "))
    size = len(raw.content) if isinstance(raw.content, bytes | str) else 0
    done = tokenize(message, raw.source, raw.label, ordered=ordered, digest=digest, wanted=wanted)
    return done._replace(size=size)


def in_batches(
    raws: "Iterator[RawMessage | SourcePiece]",
    most: int = _BATCH,
    pauses: Callable[[], bool] = never_pauses,
) -> "Iterator[Batch]":
    """Yield the messages in batches, a piece by itself; before a failure what was read before."""
    batch: list[RawMessage] = []
    size = 0
    try:
        for raw in raws:
            if not isinstance(raw, RawMessage):
                if batch:
                    yield batch
                yield raw
                batch, size = [], 0
                continue
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
