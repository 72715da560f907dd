"""Sources in, token sets out; on several cores where there are many messages.

The messages come out in the order in which they went in, whatever the number of processes.
"""

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from nbspam.errors import NbspamError, SourceError
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.tokens.tokenizer import message_tokens

A = TypeVar("A")
B = TypeVar("B")
# Messages that one process does before others are started: to start them takes 0.05 s, in which
# a mail or two hundred rows are done.
_ALONE = 200
_BATCH = 50  # messages handed over at a time, and no more than:
_BATCH_BYTES = 1 << 20
_WAITING = 12  # batches a process, done or to be done: memory does not go by the corpus


class TokenizedMessage(NamedTuple):
    """A message and what was taken from it."""

    raw: RawMessage
    tokens: list[str]  # each once, in ascending order
    digest: str  # for the ledger; "" when it was not asked for


def all_cores() -> int:
    """Return how many processes can run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def token_sets(
    raws: Iterable[RawMessage], skips: Skips, jobs: int = 1, digests: bool = False
) -> Iterator[TokenizedMessage]:
    """Yield each message with its tokens, in order; one whose file cannot be read is skipped.

    jobs: processes to use.  digests: whether the messages are to be remembered in a ledger.
    Raises NbspamError when a process dies.
    """
    raws = iter(raws)
    for raw in itertools.islice(raws, _ALONE if jobs > 1 else None):
        tokens, digest = _take(raw, digests)
        if tokens is None:
            skips(raw.source, digest)
        else:
            yield TokenizedMessage(raw, tokens, digest)
    for batch, results in _in_order(partial(_take_all, digests), _batches(raws), jobs):
        for raw, (text, digest) in zip(batch, results, strict=True):
            if text is None:
                skips(raw.source, digest)
            else:
                yield TokenizedMessage(raw, text.split("\n") if text else [], digest)


def _take(raw: RawMessage, digests: bool) -> tuple[list[str] | None, str]:
    """Return a message's tokens and digest; else None and why it cannot be read."""
    try:
        message = raw.message()
    except SourceError as error:
        return None, str(error).removeprefix(f"{raw.source}: ")
    # In order, so that sums are added up alike and the same messages make the same model, always.
    tokens = sorted(message_tokens(message))
    if not digests:
        return tokens, ""
    from nbspam.learning.ledger import digest_of

    return tokens, digest_of(tokens, message.headers)


def _take_all(digests: bool, raws: list[RawMessage]) -> list[tuple[str | None, str]]:
    """Return the tokens, a line each, and the digest of each message; else None and why not.

    One string is handed to another process in a fifth of the time that its tokens take.
    """
    done: list[tuple[str | None, str]] = []
    for raw in raws:
        tokens, digest = _take(raw, digests)
        done.append((None if tokens is None else "\n".join(tokens), digest))
    return done


def _batches(raws: Iterator[RawMessage]) -> Iterator[list[RawMessage]]:
    """Yield the messages in batches; what was read before a failure comes before it."""
    batch: list[RawMessage] = []
    size = 0
    try:
        for raw in raws:
            batch.append(raw)
            size += 0 if isinstance(raw.content, Path) else len(raw.content)
            if len(batch) == _BATCH or size > _BATCH_BYTES:
                yield batch
                batch, size = [], 0
    except Exception:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _in_order(function: Callable[[A], B], items: Iterator[A], jobs: int) -> Iterator[tuple[A, B]]:
    """Yield each item with what the function makes of it in another process, in order."""
    first = next(items, None)
    if first is None:
        return
    from concurrent.futures import Future, ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    waiting: deque[tuple[A, Future[B]]] = deque()
    pool = ProcessPoolExecutor(jobs, initializer=_begin)
    try:
        item: A | None = first
        failure: Exception | None = None
        while item is not None:
            waiting.append((item, pool.submit(function, item)))
            if len(waiting) == _WAITING * jobs:
                done, future = waiting.popleft()
                yield done, future.result()
            try:
                item = next(items, None)
            except Exception as error:  # noqa: BLE001 (told after what was read before it)
                item, failure = None, error
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()
        if failure is not None:
            raise failure
    except BrokenProcessPool:
        raise NbspamError(
            "a process that reads messages was killed, perhaps for want of memory; run it again"
            " with -j 1"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


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
