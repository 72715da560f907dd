"""Learning while serving: a model at a time, with one save for the requests that wait for it.

Another program may hold the model's lock for any time.  So the requests that wait are
limited, in number and in time.  A request that is not learned in time is refused, and is not
learned later.
"""

import itertools
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from nbspam.bayes.event_model import Row
from nbspam.errors import LockedError, ModelError, Remedy
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.update import PendingMessages, forget, learn, open_for_learning
from nbspam.names import HAM
from nbspam.scoring.base import Base, open_base
from nbspam.serving import answer, log, models
from nbspam.serving.spamd import PROTOCOL, TEMPORARY, UNAVAILABLE, RefusedError
from nbspam.store.metadata import ModelSettings
from nbspam.store.writing import LockWait
from nbspam.tokens.tokenized import TokenizedMessage, Wanted

_logger = logging.getLogger(__name__)

# Bytes of the messages that one save is for, a large one aside, which is alone: their tokens take
# some 100 times as much.  Users' models that are taught at the same time share it.
_BATCH = 512 << 10
_MODELS = 4  # taught at the same time

# Returns a large message tokenized, with the numbers that the model counts; raises RefusedError.
Tokenizer = Callable[[Wanted], TokenizedMessage]


class LearnRequest(NamedTuple):
    """A message that a client asks to learn or to forget."""

    message: bytes | Tokenizer
    is_spam: bool | None  # None: forget it


class Done(str):
    """LEARNED, MOVED, FORGOTTEN or UNCHANGED; and what a log has to say of it."""

    note = ""


# Of a request: LEARNED, MOVED, FORGOTTEN or UNCHANGED, or why it was not applied.
Result = str | Exception


def apply_requests(
    path: Path, requests: list[LearnRequest], wait: LockWait, base: Path | None = None
) -> list[Result]:
    """Learn messages into the model at `path`, or forget them; in order, with few saves.

    wait: how long to wait for the model's lock.
    base: the file of the model that it is read through; with one a missing model is made.
    Returns what was done for each request: nothing when the message is known as that class, or was
    never learned and is to be forgotten; or that it was not applied because another program held
    the lock.
    Raises ModelError.
    """
    results: list[Result] = []
    with open_base(base) as opened:
        wanted = _known(path, [], opened)[1].wanted
        todo: list[_Todo] = []
        for message, is_spam in requests:
            if isinstance(message, bytes):
                todo.append((is_spam, answer.message_to_learn(message, wanted)))
            else:
                todo.append((is_spam, message(wanted)))
        for save in _saves(todo):
            if results and wait.is_over():  # as if another program had the lock
                late = RefusedError(TEMPORARY, "(the messages before it took too long)")
                results += [late] * len(save)
            else:
                results += _applied(path, save, wanted, wait, opened)
    return results


_Todo = tuple[bool | None, TokenizedMessage]  # what a request asks of a message


def _saves(todo: list[_Todo]) -> Iterator[list[_Todo]]:
    """Yield what one save can do, in order: learn or forget messages, each once."""
    save: list[_Todo] = []
    for is_spam, message in todo:
        if any(
            (is_spam is None) != (other_is_spam is None) or message.digest == other.digest
            for other_is_spam, other in save
        ):
            yield save
            save = []
        save.append((is_spam, message))
    yield save


def _applied(
    path: Path, save: list[_Todo], wanted: Wanted, wait: LockWait, base: Base | None
) -> list[Result]:
    """Learn or forget different messages; return what `apply_requests` does.

    wanted: the numbers that they were tokenized with.
    """
    rows, settings = _known(path, [message.digest for _, message in save], base)
    done: list[Result] = []
    messages: list[TokenizedMessage] = []
    for is_spam, message in save:
        row = rows.get(message.digest, (0,) * len(settings.classes))
        if is_spam is None:
            done.append(log.FORGOTTEN if any(row) else log.UNCHANGED)
            messages += [message] * sum(row)  # as often as it was learned
        else:
            label = _class_of(path, settings, is_spam)
            is_known = row[settings.classes.index(label)]
            done.append(log.UNCHANGED if is_known else log.MOVED if any(row) else log.LEARNED)
            messages.append(message._replace(label=label))
    try:
        if messages and save[0][0] is None:
            forget(path, messages, wait=wait, base=base)
        elif messages:
            pending = PendingMessages(wanted)
            pending.add(messages, path)
            change = learn(path, pending, TrainingSettings(base=base), wait=wait)
            looks_like = {lesson.digest: lesson.looks_like for lesson in change.surprising}
            for i, (_, message) in enumerate(save):
                if message.digest in looks_like:
                    done[i] = result = Done(done[i])
                    result.note = f"looks like {looks_like[message.digest]}"
    except LockedError as error:
        return [error.with_traceback(None)] * len(save)
    return done


def _known(
    path: Path, digests: list[str], base: Base | None
) -> tuple[dict[str, Row], ModelSettings]:
    """Return how often each class of a model has learned messages, and the model's settings.

    base: gives the settings of a model that has no file yet.
    """
    if base is not None and not path.exists():
        return {}, base.metadata.settings
    with open_for_learning(path) as lookup:
        return lookup.learned(digests), lookup.metadata.settings


def _class_of(path: Path, settings: ModelSettings, is_spam: bool) -> str:
    """Return the model's class for spam or ham; raises ModelError when it has none for ham."""
    if is_spam and settings.positive is not None:
        return settings.positive
    if len(settings.classes) == 2:
        return settings.classes[1 - (settings.positive_index or 0)]
    if HAM in settings.classes:
        return HAM
    raise ModelError(f"{path}: the model has no class called ham", Remedy.NAME_CLASS)


class _PendingRequest:
    """A request that waits for its result."""

    result: Result | None = None

    def __init__(self, path: Path, request: LearnRequest, ends: float) -> None:
        self.path, self.request = path, request
        self.ends = ends  # by the monotonic clock: when it gives up


class Teacher:
    """Takes requests from clients' threads, and applies those of one model that wait together.

    A save takes as long for one message as for many: requests that arrive during a save wait for
    the next, and share it.  A thread that finds its model idle applies all requests that wait for
    it.  So a model that another program has locked keeps one thread busy, and its users waiting.
    """

    def __init__(self, setup: models.Setup) -> None:
        self._setup, self._limits = setup, setup.limits
        self._changed = threading.Condition()
        self._queue: list[_PendingRequest] = []  # those that are not being applied yet
        self._busy: set[Path] = set()  # models; a model is never taught twice at the same time
        self._n_requests = 0  # that are not answered
        self._latest = math.inf  # by the monotonic clock: when the server waits no longer
        self._batch = _BATCH // _MODELS if setup.users else _BATCH

    @property
    def n_waiting(self) -> int:
        """The number of requests that are not being applied yet."""
        return len(self._queue)

    def path_of(self, request: LearnRequest, user: str) -> Path:
        """Return the model that a user teaches, for which there may be no file yet.

        Raises RefusedError for a name that no model may have, and for a new user too many.
        """
        files, most = self._setup.users, self._limits.max_users
        if files is None:
            return self._setup.path
        path = files.path(user)
        if path is None:
            raise RefusedError(PROTOCOL, "(the User header has no name that a model may have)")
        if not files.stamp(path) and request.is_spam is not None:
            if files.has_many(most):  # any client can make up names
                raise RefusedError(
                    UNAVAILABLE,
                    f"({most:,} users have models, and the server creates no more: raise its limit,"
                    " or remove some)",
                )
            files.make_folder(path)
        return path

    def submit(self, path: Path, request: LearnRequest) -> Result:
        """Return what it did to the model, once that is on the disk.

        Returns RefusedError or LockedError when it could not be learned in time; it never will be.
        """
        pending = _PendingRequest(path, request, time.monotonic() + self._limits.learning)
        with self._changed:
            if self._n_requests >= self._limits.connections:
                return RefusedError(TEMPORARY, "(too many messages wait to be learned)")
            self._n_requests += 1
            self._queue.append(pending)
            while pending.result is None:
                left = min(pending.ends, self._latest) - time.monotonic()
                is_waiting = pending in self._queue
                if is_waiting and path not in self._busy and len(self._busy) < _MODELS:
                    self._apply_batch(path)
                elif is_waiting and left <= 0:
                    self._queue.remove(pending)
                    reason = "(the messages before it are not learned yet)"
                    pending.result = RefusedError(TEMPORARY, reason)
                else:
                    self._changed.wait(left if is_waiting else None)
            self._n_requests -= 1
        return pending.result

    def _apply_batch(self, path: Path) -> None:
        """Apply those that came first for a model; others may look at the queue meanwhile."""
        waiting = [pending for pending in self._queue if pending.path == path]
        messages = (pending.request.message for pending in waiting)
        sizes = (len(body) if isinstance(body, bytes) else _BATCH for body in messages)
        n = max(1, sum(size <= self._batch for size in itertools.accumulate(sizes)))
        self._queue = [pending for pending in self._queue if pending not in waiting[:n]]
        self._busy.add(path)
        self._changed.release()
        try:
            self._settle(path, waiting[:n])
        finally:
            self._changed.acquire()
            self._busy.remove(path)
            self._changed.notify_all()

    def _settle(self, path: Path, batch: list[_PendingRequest]) -> None:
        """Apply requests together; if that fails one by one, so that a bad one fails alone."""
        ends = min(pending.ends for pending in batch)
        wait = LockWait(
            math.inf, _logger.warning, lambda: time.monotonic() >= min(ends, self._latest)
        )
        base = self._setup.path if self._setup.users else self._setup.base
        try:
            results = apply_requests(path, [pending.request for pending in batch], wait, base)
            for pending, result in zip(batch, results, strict=True):
                pending.result = result
        except Exception as error:  # noqa: BLE001 (its client gets it)
            if len(batch) == 1:
                # Without the frames that it passed through, which hold the message.
                batch[0].result = error.with_traceback(None)
            else:
                for pending in batch:
                    self._settle(path, [pending])

    def limit_waits(self, seconds: float) -> None:
        """Let no request wait for longer than so many seconds from now on."""
        with self._changed:
            self._latest = time.monotonic() + seconds
            self._changed.notify_all()

    def close(self) -> None:
        """Finish what was begun."""
        with self._changed:
            self._changed.wait_for(lambda: not self._busy)
