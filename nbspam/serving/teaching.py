"""Learning while serving: all messages that wait for the same model are learned in one save.

Another worker, or another program, may hold the model's lock for any time.  So the number of
waiting messages and their time are limited.  A message that is not learned in time is refused, and
is not learned later.
"""

import asyncio
import logging
import math
import time
from collections.abc import Iterator
from typing import NamedTuple

from nbspam.errors import LockedError, ModelError, Remedy
from nbspam.filter import Filter
from nbspam.names import HAM
from nbspam.serving.log import FORGOTTEN, LEARNED, LOGGER, MOVED, UNCHANGED
from nbspam.serving.models import Limits
from nbspam.serving.spamd import TEMPORARY, RefusedError
from nbspam.store.metadata import ModelSettings
from nbspam.store.writing import LockWait
from nbspam.tokens.tokenized import TokenizedMessage

_logger = logging.getLogger(LOGGER)


class Lesson(NamedTuple):
    """A message that a client asks to learn or to forget."""

    is_spam: bool | None  # None: forget it
    message: TokenizedMessage  # the message, with its digest


class TeachResult(NamedTuple):
    """The result of a lesson: LEARNED, MOVED, FORGOTTEN or UNCHANGED, and a note for the log."""

    result: str
    note: str = ""


Result = TeachResult | Exception  # an exception: why a lesson was not applied


def apply_lessons(spam_filter: Filter, lessons: list[Lesson], wait: LockWait) -> list[Result]:
    """Learn messages, or forget them; in order, with few saves.

    wait: how long to wait for the model's lock.
    Returns the result of each lesson: UNCHANGED if the model knows the message as this class, or
    should forget a message that it never learned; an exception if another program held the lock.
    Raises ModelError.
    """
    results: list[Result] = []
    for save in _group_into_saves(lessons):
        if results and wait.should_stop():  # refuse the lesson, as if another program held the lock
            late = RefusedError(TEMPORARY, "(the messages before it took too long)")
            results += [late] * len(save)
        else:
            results += _apply_save(spam_filter, save, wait)
    return results


def _group_into_saves(lessons: list[Lesson]) -> Iterator[list[Lesson]]:
    """Group lessons, in order: a save can either learn or forget messages, each of them once."""
    save: list[Lesson] = []
    for lesson in lessons:
        if any(
            (lesson.is_spam is None) != (other.is_spam is None)
            or lesson.message.digest == other.message.digest
            for other in save
        ):
            yield save
            save = []
        save.append(lesson)
    yield save


def _apply_save(spam_filter: Filter, save: list[Lesson], wait: LockWait) -> list[Result]:
    """Learn or forget different messages in one save; returns results like `apply_lessons`."""
    version = spam_filter.version
    settings = version.personal_metadata.settings
    rows = version.ledger_rows(lesson.message.digest for lesson in save)
    results: list[str] = []
    messages: list[TokenizedMessage] = []
    for is_spam, message in save:
        row = rows.get(message.digest, (0,) * len(settings.classes))
        if is_spam is None:
            results.append(FORGOTTEN if any(row) else UNCHANGED)
            messages += [message._replace(label="")] * sum(row)  # as often as it was learned
        else:
            label = _class_of(settings, is_spam)
            is_known = row[settings.classes.index(label)]
            results.append(UNCHANGED if is_known else MOVED if any(row) else LEARNED)
            messages.append(message._replace(label=label))
    notes: dict[str, str] = {}
    try:
        if messages and save[0].is_spam is None:
            spam_filter.forget(messages, wait=wait)
        elif messages:
            change = spam_filter.learn(messages, wait=wait)
            # another worker has learned the messages meanwhile
            if not (change.learned or change.moved):
                results = [UNCHANGED] * len(save)
            notes = {m.digest: f"looks like {m.looks_like}" for m in change.surprising}
    except LockedError as error:
        return [error.with_traceback(None)] * len(save)
    pairs = zip(results, save, strict=True)
    return [TeachResult(result, notes.get(lesson.message.digest, "")) for result, lesson in pairs]


def _class_of(settings: ModelSettings, is_spam: bool) -> str:
    """Return the model's class for spam or ham; raises ModelError if no class is called ham."""
    if is_spam and settings.positive is not None:
        return settings.positive
    if len(settings.classes) == 2:
        return settings.classes[1 - (settings.positive_index or 0)]
    if HAM in settings.classes:
        return HAM
    raise ModelError("the model has no class called ham", Remedy.NAME_CLASS)


_Waiting = tuple[Lesson, asyncio.Future[Result]]


class Teacher:
    """Applies the lessons of one model that wait together.

    A save takes as long for one message as for many, so lessons that arrive during a save share the
    next one.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: dict[Filter, list[_Waiting]] = {}
        self._saving: dict[Filter, asyncio.Task[None]] = {}
        self.deadline = math.inf  # on the monotonic clock: the server waits until then

    @property
    def n_waiting(self) -> int:
        """The number of lessons that are not being applied yet."""
        return sum(map(len, self._waiting.values()))

    async def submit(self, spam_filter: Filter, lesson: Lesson) -> TeachResult:
        """Return the result of a lesson once the changed model is on the disk.

        Raises RefusedError or LockedError if the message was not learned in time, and never will
        be.
        """
        if self.n_waiting >= self._limits.connections:
            raise RefusedError(TEMPORARY, "(too many messages wait to be learned)")
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        waiting = lesson, future
        self._waiting.setdefault(spam_filter, []).append(waiting)
        if spam_filter not in self._saving:
            self._saving[spam_filter] = asyncio.create_task(self._save(spam_filter))
        seconds = min(self._limits.learning, self.deadline - time.monotonic())
        await asyncio.wait([future], timeout=max(0, seconds))
        if waiting in (others := self._waiting.get(spam_filter, [])):
            others.remove(waiting)
            raise RefusedError(TEMPORARY, "(the messages before it are not learned yet)")
        result = await future
        if isinstance(result, Exception):
            raise result
        return result

    async def finish(self) -> None:
        """Wait for the saves that are under way."""
        await asyncio.gather(*self._saving.values())

    async def _save(self, spam_filter: Filter) -> None:
        """Apply the lessons that wait for a model, until there are no more."""
        while batch := self._waiting.pop(spam_filter, []):
            give_up_at = time.monotonic() + self._limits.learning
            lessons = [lesson for lesson, _ in batch]
            results = await asyncio.to_thread(self._results, spam_filter, lessons, give_up_at)
            for (_, future), result in zip(batch, results, strict=True):
                future.set_result(result)
        del self._saving[spam_filter]

    def _results(
        self, spam_filter: Filter, lessons: list[Lesson], give_up_at: float
    ) -> list[Result]:
        """Apply lessons together, or one by one if that fails, so that only a bad lesson fails."""
        wait = LockWait(
            math.inf, _logger.warning, lambda: time.monotonic() >= min(give_up_at, self.deadline)
        )
        try:
            return apply_lessons(spam_filter, lessons, wait)
        except Exception as error:  # noqa: BLE001 (its client gets it)
            if len(lessons) == 1:
                # Without its traceback, whose frames keep the message in memory.
                return [error.with_traceback(None)]
            return [r for one in lessons for r in self._results(spam_filter, [one], give_up_at)]
