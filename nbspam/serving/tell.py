"""Learning while serving: in a thread of its own, all that has come in at once with one save."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from nbspam.errors import ModelError
from nbspam.model.head import Head
from nbspam.model.ledger import digest_of
from nbspam.model.lookup import Lookup
from nbspam.model.settings import Settings
from nbspam.model.update import Lessons, forget, learn
from nbspam.reading.message import parse
from nbspam.reading.raw import HAM
from nbspam.tokens.tokenizer import message_tokens


class Told(NamedTuple):
    """What a client says of a message."""

    message: bytes
    is_spam: bool | None  # None: forget it


class _Known(NamedTuple):
    told: Told
    tokens: list[str]  # in ascending order
    digest: str


def obey(path: Path, told: list[Told]) -> list[bool]:
    """Learn messages into the model at `path`, or forget them; in order, with few saves.

    Returns of each whether it changed anything: a message that was known as what it is said to be
    did not, nor one to be forgotten that was never learned.  Raises ModelError.
    """
    waiting = {}
    for number, one in enumerate(told):
        message = parse(one.message)
        tokens = sorted(message_tokens(message))
        waiting[number] = _Known(one, tokens, digest_of(tokens, message.headers))
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
        found = Lessons()
        found.read(path, lessons, remember=True)
        learn(path, found, Settings())
    return changed


def _class_of(path: Path, head: Head, is_spam: bool) -> str:
    """Return what the model calls spam or ham; raises ModelError when it knows no ham."""
    if is_spam and head.positive is not None:
        return head.positive
    if len(head.classes) == 2:
        return head.classes[1 - (head.positive_index or 0)]
    if HAM in head.classes:
        return HAM
    raise ModelError(f"{path}: has no class called ham; teach it with nbspam train --label")


# Obeys some clients, and returns of each whether it changed anything; raises NbspamError.
Obey = Callable[[list[Told]], list[bool]]


class Learner:
    """Takes what clients tell one by one, and obeys them together.

    A save takes as long for one message as for many: what arrives during a save waits for the
    next, and shares it.
    """

    def __init__(self, obey: Obey) -> None:
        self._obey = obey
        self._waiting: list[tuple[Told, asyncio.Future[bool]]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="learner")
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, told: Told) -> bool:
        """Return whether it changed the model, once that is on the disk; raises NbspamError."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bool] = loop.create_future()
        self._waiting.append((told, done))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._go_on())
        return await done

    async def _go_on(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting, []
            told = [one for one, _ in batch]
            try:
                changed = await loop.run_in_executor(self._thread, self._obey, told)
            except Exception as error:  # noqa: BLE001 (each client is told)
                if len(batch) > 1:  # what one asks for shall not fail the others: one by one
                    for one in batch:
                        await self._obey_one(*one)
                elif not batch[0][1].done():
                    batch[0][1].set_exception(error)
                continue
            for (_, done), new in zip(batch, changed, strict=True):
                if not done.done():  # its client has gone
                    done.set_result(new)

    async def _obey_one(self, told: Told, done: "asyncio.Future[bool]") -> None:
        loop = asyncio.get_running_loop()
        try:
            (new,) = await loop.run_in_executor(self._thread, self._obey, [told])
        except Exception as error:  # noqa: BLE001 (its client is told)
            if not done.done():
                done.set_exception(error)
            return
        if not done.done():
            done.set_result(new)

    async def close(self) -> None:
        """Finish what was begun."""
        if self._task is not None:
            await self._task
        self._thread.shutdown()
