"""Learning while serving: in a thread of its own, all that has come in at once with one save."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from nbspam.errors import ModelError
from nbspam.labels import HAM
from nbspam.learning.settings import Settings
from nbspam.learning.update import PendingMessages, forget, learn
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.reading.sources import STDIN
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import Metadata
from nbspam.workers import token_sets


class LearnRequest(NamedTuple):
    """What a client says of a message."""

    message: bytes
    is_spam: bool | None  # None: forget it


class _Known(NamedTuple):
    told: LearnRequest
    tokens: list[str]  # in ascending order
    digest: str


def obey(path: Path, told: list[LearnRequest]) -> list[bool]:
    """Learn messages into the model at `path`, or forget them; in order, with few saves.

    Returns of each whether it changed anything: a message that was known as what it is said to be
    did not, nor one to be forgotten that was never learned.  Raises ModelError.
    """
    raws = [RawMessage(STDIN, None, one.message) for one in told]
    taken = token_sets(raws, Skips(), digests=True)
    waiting = {
        number: _Known(one, found.tokens, found.digest)
        for number, (one, found) in enumerate(zip(told, taken, strict=True))
    }
    changed = [False] * len(told)
    while waiting:
        # What is said of the same message twice is done twice, one after the other.
        first = {known.digest: number for number, known in reversed(waiting.items())}
        now = {number: waiting.pop(number) for number in sorted(first.values())}
        for number, new in _obey_each(path, now):
            changed[number] = new
    return changed


def _obey_each(path: Path, told: dict[int, _Known]) -> list[tuple[int, bool]]:
    """Obey what is said of different messages."""
    with Lookup(path) as lookup:
        rows = lookup.learned(known.digest for known in told.values())
        head = lookup.head
    lessons, to_forget = [], []
    changed = []
    for number, (one, tokens, digest) in told.items():
        row = rows.get(digest, (0,) * len(head.classes))
        if one.is_spam is None:
            new = any(row)
            # As often as it was learned: what is forgotten is to leave nothing.
            to_forget += [(None, tokens, digest)] * sum(row)
        else:
            label = _class_of(path, head, one.is_spam)
            new = not row[head.classes.index(label)]
            lessons.append((label, tokens, digest))
        changed.append((number, new))
    if to_forget:
        forget(path, to_forget)
    if lessons:
        found = PendingMessages()
        found.read(path, lessons, remember=True)
        learn(path, found, Settings())
    return changed


def _class_of(path: Path, head: Metadata, is_spam: bool) -> str:
    """Return what the model calls spam or ham; raises ModelError when it knows no ham."""
    if is_spam and head.positive is not None:
        return head.positive
    if len(head.classes) == 2:
        return head.classes[1 - (head.positive_index or 0)]
    if HAM in head.classes:
        return HAM
    raise ModelError(f"{path}: has no class called ham; teach it with nbspam train --label")


# Obeys some clients, and returns of each whether it changed anything; raises NbspamError.
Obey = Callable[[list[LearnRequest]], list[bool]]


class Learner:
    """Takes what clients tell one by one, and obeys them together.

    A save takes as long for one message as for many: what arrives during a save waits for the
    next, and shares it.
    """

    def __init__(self, obey: Obey) -> None:
        self._obey = obey
        self._waiting: list[tuple[LearnRequest, asyncio.Future[bool]]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="learner")
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, told: LearnRequest) -> bool:
        """Return whether it changed the model, once that is on the disk; raises NbspamError."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bool] = loop.create_future()
        self._waiting.append((told, done))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._go_on())
        return await done

    async def _go_on(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            await self._settle(batch)

    async def _settle(self, batch: "list[tuple[LearnRequest, asyncio.Future[bool]]]") -> None:
        """Obey some together; what one of them asks for and cannot have fails it alone."""
        loop = asyncio.get_running_loop()
        told = [one for one, _ in batch]
        failure, changed = None, [False] * len(batch)
        try:
            changed = await loop.run_in_executor(self._thread, self._obey, told)
        except Exception as error:  # noqa: BLE001 (its client is told)
            failure = error
        if failure and len(batch) > 1:
            for one in batch:
                await self._settle([one])
            return
        for (_, done), new in zip(batch, changed, strict=True):
            if done.done():  # its client has gone
                continue
            if failure:
                done.set_exception(failure)
            else:
                done.set_result(new)

    async def close(self) -> None:
        """Finish what was begun."""
        if self._task is not None:
            await self._task
        self._thread.shutdown()
