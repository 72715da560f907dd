"""Learning while serving: in a thread of its own, with one save for the requests that wait.

Another program may hold the model's lock for as long as it likes.  So the requests that wait are
limited, in number and in time, and a request that is not learned in time is answered as such: it
has not been learned, and will not be.
"""

import asyncio
import itertools
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Protocol

from nbspam.bayes.event_model import Row
from nbspam.errors import LockedError, ModelError, Remedy
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.update import PendingMessages, forget, learn
from nbspam.names import HAM
from nbspam.reading.message import parse
from nbspam.scoring.base import Base, open_base
from nbspam.serving.current import Say
from nbspam.serving.limits import Limits
from nbspam.serving.log import FORGOTTEN, LEARNED, MOVED, UNCHANGED
from nbspam.serving.spamd import TEMPORARY, RefusedError
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import ModelSettings
from nbspam.store.writing import LockWait
from nbspam.tokens.tokenized import TokenizedMessage, Wanted, tokenize

# Returns a large message tokenized, with the numbers that the model counts; raises RefusedError.
Tokenizer = Callable[[Wanted], TokenizedMessage]


class LearnRequest(NamedTuple):
    """A message that a client asks to learn or to forget."""

    message: bytes | Tokenizer
    is_spam: bool | None  # None: forget it


# Of a request: LEARNED, MOVED, FORGOTTEN or UNCHANGED, or why it was not applied.
Result = str | Exception


class _TokenizedRequest(NamedTuple):
    is_spam: bool | None
    message: TokenizedMessage


def apply_requests(
    path: Path,
    requests: list[LearnRequest],
    wait: LockWait,
    base: Path | None = None,
) -> list[Result]:
    """Learn messages into the model at `path`, or forget them; in order, with few saves.

    wait: how long to wait for the model's lock.
    base: the file of the model that it is read through; with one a missing model is made.
    Returns what was done for each request: nothing when the message is known as that class or is
    empty, or was never learned and is to be forgotten; or that it was not applied because another
    program held the lock.
    Raises ModelError.
    """
    with open_base(base, indexed=False) as opened:
        wanted = _known(path, [], opened)[1].wanted
        waiting = {
            number: _TokenizedRequest(request.is_spam, _tokenized(request.message, wanted))
            for number, request in enumerate(requests)
            if request.is_spam is None or _has_content(request.message)
        }
        results: list[Result] = [UNCHANGED] * len(requests)
        n = len(waiting)
        while waiting:
            if len(waiting) < n and wait.is_over():  # as if another program had the lock
                late = RefusedError(TEMPORARY, "(the messages before it took too long)")
                return [late if i in waiting else result for i, result in enumerate(results)]
            # Several requests about one message are applied one after the other.
            first = {one.message.digest: number for number, one in reversed(waiting.items())}
            now = {number: waiting.pop(number) for number in sorted(first.values())}
            for number, result in _apply_distinct(path, now, wanted, wait, opened):
                results[number] = result
        return results


def _has_content(message: bytes | Tokenizer) -> bool:
    """Return whether there is something to learn: an empty message is none."""
    return bool(message.strip()) if isinstance(message, bytes) else True


def _tokenized(message: bytes | Tokenizer, wanted: Wanted) -> TokenizedMessage:
    if isinstance(message, bytes):
        return tokenize(parse(message), digest=True, wanted=wanted)
    return message(wanted)


def _apply_distinct(
    path: Path,
    requests: dict[int, _TokenizedRequest],
    wanted: Wanted,
    wait: LockWait,
    base: Base | None,
) -> list[tuple[int, Result]]:
    """Apply requests about different messages; return what `apply_requests` does, by their numbers.

    wanted: the numbers that the messages were tokenized with.
    """
    rows, settings = _known(path, [one.message.digest for one in requests.values()], base)
    to_learn, to_forget = [], []
    learning: list[tuple[int, Result]] = []
    forgetting: list[tuple[int, Result]] = []
    for number, (is_spam, message) in requests.items():
        row = rows.get(message.digest, (0,) * len(settings.classes))
        if is_spam is None:
            forgetting.append((number, FORGOTTEN if any(row) else UNCHANGED))
            # As often as it was learned, so that nothing of it is left.
            to_forget += [message] * sum(row)
        else:
            label = _class_of(path, settings, is_spam)
            learning.append((number, _effect(row, settings.classes.index(label))))
            to_learn.append(message._replace(label=label))
    try:
        if to_forget:
            forget(path, to_forget, wait=wait, base=base)
    except LockedError as error:
        forgetting = [(number, error) for number, _ in forgetting]
    try:
        if to_learn:
            pending = PendingMessages(wanted)
            pending.read(path, to_learn, remember=True)
            learn(path, pending, TrainingSettings(base=base), wait=wait)
    except LockedError as error:
        learning = [(number, error) for number, _ in learning]
    return forgetting + learning


def _known(
    path: Path, digests: list[str], base: Base | None
) -> tuple[dict[str, Row], ModelSettings]:
    """Return how often each class of a model has learned messages, and the model's settings.

    base: whose settings a model will have that is not there yet.
    """
    if base is not None and not path.exists():
        return {}, base.metadata.settings
    with Lookup(path) as lookup:
        return lookup.learned(digests), lookup.metadata.settings


def _effect(row: Row, k: int) -> str:
    """Return what learning a message as class `k` does; row: how often each has learned it."""
    if row[k]:
        return UNCHANGED
    return MOVED if any(row) else LEARNED


def _class_of(path: Path, settings: ModelSettings, is_spam: bool) -> str:
    """Return the model's class for spam or ham; raises ModelError when it has none for ham."""
    if is_spam and settings.positive is not None:
        return settings.positive
    if len(settings.classes) == 2:
        return settings.classes[1 - (settings.positive_index or 0)]
    if HAM in settings.classes:
        return HAM
    raise ModelError(f"{path}: the model has no class called ham", Remedy.NAME_CLASS)


class Teacher(Protocol):
    """What messages to learn are given to."""

    @property
    def n_waiting(self) -> int:
        """The number of requests that are not being applied yet."""

    async def submit(self, request: LearnRequest, user: str = "") -> str:
        """Return what it did to the user's model, once that is on the disk; raises NbspamError.

        Raises RefusedError or LockedError when it could not be learned in time; it never will be.
        """

    def hurry(self, seconds: float) -> None:
        """Let no request wait for longer than so many seconds from now on."""

    async def close(self) -> None:
        """Finish what was begun."""


ApplyRequests = Callable[[list[LearnRequest], LockWait], list[Result]]  # as `apply_requests`

# Bytes of the messages that one save is for, a large one aside, which is alone: their tokens take
# some 100 times as much.
_BATCH = 512 << 10


class _Waiting(NamedTuple):
    request: LearnRequest
    result: "asyncio.Future[str]"
    ends: float  # by the clock of the loop: when it has waited long enough

    @property
    def size(self) -> int:
        message = self.request.message
        return len(message) if isinstance(message, bytes) else _BATCH


class LearnQueue:
    """Takes requests one by one, and applies those that wait together.

    A save takes as long for one message as for many: what arrives during a save waits for the
    next, and shares it.
    """

    def __init__(
        self,
        apply: ApplyRequests,
        limits: Limits,
        say: Say,
        threads: ThreadPoolExecutor | None = None,
        batch: int = _BATCH,
    ) -> None:
        """Call `apply` in a thread, never twice at the same time; say: writes to the log.

        threads: those of several queues; None for one of its own.  batch: bytes for one save.
        """
        self._apply, self._limits, self._say, self._batch = apply, limits, say, batch
        self._waiting: list[_Waiting] = []
        self._own_thread = ThreadPoolExecutor(1, "learner") if threads is None else None
        self._threads = threads or self._own_thread
        self._task: asyncio.Task[None] | None = None
        self._latest = math.inf  # by the clock of the loop: when the server waits no longer

    @property
    def n_waiting(self) -> int:
        """The number of requests that are not being applied yet."""
        return len(self._waiting)

    async def submit(self, request: LearnRequest, user: str = "") -> str:
        """Return what it did to the model, once that is on the disk; raises NbspamError.

        Raises RefusedError or LockedError when it could not be learned in time; it never will be.
        """
        if len(self._waiting) >= self._limits.connections:
            raise RefusedError(TEMPORARY, "(too many messages wait to be learned)")
        loop = asyncio.get_running_loop()
        ends = min(loop.time() + self._limits.learning, self._latest)
        one = _Waiting(request, loop.create_future(), ends)
        self._waiting.append(one)
        timer = loop.call_at(ends, self._give_up, one)
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._run())
        try:
            return await one.result
        finally:
            timer.cancel()

    def hurry(self, seconds: float) -> None:
        """Let no request wait for longer than so many seconds from now on."""
        loop = asyncio.get_running_loop()
        self._latest = min(self._latest, loop.time() + seconds)
        for one in self._waiting:
            loop.call_at(self._latest, self._give_up, one)

    def _give_up(self, one: _Waiting) -> None:
        """Refuse a request whose time is up, unless it is being applied."""
        if one in self._waiting:
            self._waiting.remove(one)
            if not one.result.done():
                reason = "(the messages before it are not learned yet)"
                one.result.set_exception(RefusedError(TEMPORARY, reason))

    async def _run(self) -> None:
        while self._waiting:
            await self._settle(self._next())

    def _next(self) -> list[_Waiting]:
        """Return the requests to apply next, which wait no longer."""
        sizes = itertools.accumulate(one.size for one in self._waiting)
        n = max(1, sum(size <= self._batch for size in sizes))
        batch, self._waiting = self._waiting[:n], self._waiting[n:]
        return batch

    async def _settle(self, batch: list[_Waiting]) -> None:
        """Apply requests together; if that fails one by one, so that a bad one fails alone."""
        loop = asyncio.get_running_loop()
        requests = [one.request for one in batch]
        ends = min(one.ends for one in batch)
        wait = LockWait(math.inf, self._say, lambda: loop.time() >= min(ends, self._latest))
        results: list[Result]
        try:
            results = await loop.run_in_executor(self._threads, self._apply, requests, wait)
        except Exception as error:  # noqa: BLE001 (its client gets it)
            if len(batch) > 1:
                for one in batch:
                    await self._settle([one])
                return
            results = [error]
        for one, result in zip(batch, results, strict=True):
            if one.result.done():  # its client has disconnected
                continue
            if isinstance(result, Exception):
                one.result.set_exception(result)
            else:
                one.result.set_result(result)

    async def close(self) -> None:
        """Finish what was begun."""
        if self._task is not None:
            await self._task
        if self._own_thread:
            self._own_thread.shutdown()
