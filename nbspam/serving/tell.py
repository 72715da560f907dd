"""Learning while serving: in a thread of its own, with one save for all requests that wait."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from nbspam.errors import ModelError, Remedy
from nbspam.labels import HAM
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.update import PendingMessages, forget, learn
from nbspam.reading.message import parse
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import ModelSettings
from nbspam.tokens.tokenized import TokenizedMessage, Wanted, tokenize


class LearnRequest(NamedTuple):
    """A message that a client asks to learn or to forget."""

    message: bytes
    is_spam: bool | None  # None: forget it


class _TokenizedRequest(NamedTuple):
    is_spam: bool | None
    message: TokenizedMessage


def apply_requests(path: Path, requests: list[LearnRequest]) -> list[bool]:
    """Learn messages into the model at `path`, or forget them; in order, with few saves.

    Returns for each request whether it changed the model: learning does not when the message is
    known as that class, forgetting does not when it was never learned.  Raises ModelError.
    """
    with Lookup(path) as lookup:
        wanted = lookup.metadata.settings.wanted
    waiting = {
        number: _TokenizedRequest(
            request.is_spam, tokenize(parse(request.message), digest=True, wanted=wanted)
        )
        for number, request in enumerate(requests)
    }
    changed = [False] * len(requests)
    while waiting:
        # Several requests about one message are applied one after the other.
        first = {one.message.digest: number for number, one in reversed(waiting.items())}
        now = {number: waiting.pop(number) for number in sorted(first.values())}
        for number, has_changed in _apply_distinct(path, now, wanted):
            changed[number] = has_changed
    return changed


def _apply_distinct(
    path: Path, requests: dict[int, _TokenizedRequest], wanted: Wanted
) -> list[tuple[int, bool]]:
    """Apply requests about different messages; return of each whether it changed the model.

    wanted: the numbers that the messages were tokenized with.
    """
    with Lookup(path) as lookup:
        rows = lookup.learned(one.message.digest for one in requests.values())
        settings = lookup.metadata.settings
    to_learn, to_forget = [], []
    changed = []
    for number, (is_spam, message) in requests.items():
        row = rows.get(message.digest, (0,) * len(settings.classes))
        if is_spam is None:
            has_changed = any(row)
            # As often as it was learned, so that nothing of it is left.
            to_forget += [message] * sum(row)
        else:
            label = _class_of(path, settings, is_spam)
            has_changed = not row[settings.classes.index(label)]
            to_learn.append(message._replace(label=label))
        changed.append((number, has_changed))
    if to_forget:
        forget(path, to_forget)
    if to_learn:
        pending = PendingMessages(wanted)
        pending.read(path, to_learn, remember=True)
        learn(path, pending, TrainingSettings())
    return changed


def _class_of(path: Path, settings: ModelSettings, is_spam: bool) -> str:
    """Return the model's class for spam or ham; raises ModelError when it has none for ham."""
    if is_spam and settings.positive is not None:
        return settings.positive
    if len(settings.classes) == 2:
        return settings.classes[1 - (settings.positive_index or 0)]
    if HAM in settings.classes:
        return HAM
    raise ModelError(f"{path}: the model has no class called ham", Remedy.NAME_CLASS)


# Applies requests, and returns of each whether it changed the model; raises NbspamError.
ApplyRequests = Callable[[list[LearnRequest]], list[bool]]

_Waiting = tuple[LearnRequest, "asyncio.Future[bool]"]


class LearnQueue:
    """Takes requests one by one, and applies those that wait together.

    A save takes as long for one message as for many: what arrives during a save waits for the
    next, and shares it.
    """

    def __init__(self, apply: ApplyRequests) -> None:
        """Call `apply` in a thread, never twice at the same time."""
        self._apply = apply
        self._waiting: list[_Waiting] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="learner")
        self._task: asyncio.Task[None] | None = None

    async def submit(self, request: LearnRequest) -> bool:
        """Return whether it changed the model, once that is on the disk; raises NbspamError."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[bool] = loop.create_future()
        self._waiting.append((request, result))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._run())
        return await result

    async def _run(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            await self._settle(batch)

    async def _settle(self, batch: list[_Waiting]) -> None:
        """Apply requests together; if that fails one by one, so that a bad one fails alone."""
        loop = asyncio.get_running_loop()
        requests = [request for request, _ in batch]
        failure, changed = None, [False] * len(batch)
        try:
            changed = await loop.run_in_executor(self._thread, self._apply, requests)
        except Exception as error:  # noqa: BLE001 (its client gets it)
            failure = error
        if failure and len(batch) > 1:
            for one in batch:
                await self._settle([one])
            return
        for (_, result), has_changed in zip(batch, changed, strict=True):
            if result.done():  # its client has disconnected
                continue
            if failure:
                result.set_exception(failure)
            else:
                result.set_result(has_changed)

    async def close(self) -> None:
        """Finish what was begun."""
        if self._task is not None:
            await self._task
        self._thread.shutdown()
