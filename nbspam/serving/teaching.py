"""Learning while serving: a model at a time, with one save for the requests that wait for it.

Another program may hold the model's lock for as long as it likes.  So the requests that wait are
limited, in number and in time, and a request that is not learned in time is answered as such: it
has not been learned, and will not be.
"""

import itertools
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from nbspam.bayes.event_model import Row
from nbspam.errors import LockedError, ModelError, Remedy
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.update import PendingMessages, forget, learn
from nbspam.names import HAM
from nbspam.reading.message import parse
from nbspam.scoring.base import Base, open_base
from nbspam.serving.clients import Limits, Say
from nbspam.serving.log import FORGOTTEN, LEARNED, MOVED, UNCHANGED
from nbspam.serving.models import UserFiles
from nbspam.serving.spamd import PROTOCOL, TEMPORARY, UNAVAILABLE, RefusedError
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import ModelSettings
from nbspam.store.writing import LockWait
from nbspam.tokens.tokenized import TokenizedMessage, Wanted, tokenize

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


# Of a request: LEARNED, MOVED, FORGOTTEN or UNCHANGED, or why it was not applied.
Result = str | Exception


def apply_requests(
    path: Path, requests: list[LearnRequest], wait: LockWait, base: Path | None = None
) -> list[Result]:
    """Learn messages into the model at `path`, or forget them; in order, with few saves.

    wait: how long to wait for the model's lock.
    base: the file of the model that it is read through; with one a missing model is made.
    Returns what was done for each request: nothing when the message is known as that class or is
    empty, or was never learned and is to be forgotten; or that it was not applied because another
    program held the lock.
    Raises ModelError.
    """
    results: dict[int, Result] = dict.fromkeys(range(len(requests)), UNCHANGED)
    with open_base(base) as opened:
        wanted = _known(path, [], opened)[1].wanted
        waiting: dict[int, tuple[bool | None, TokenizedMessage]] = {}
        for number, (message, is_spam) in enumerate(requests):
            if not isinstance(message, bytes):
                waiting[number] = is_spam, message(wanted)
            elif is_spam is None or message.strip():  # an empty message is nothing to learn
                waiting[number] = is_spam, tokenize(parse(message), digest=True, wanted=wanted)
        n = len(waiting)
        while waiting:
            if len(waiting) < n and wait.is_over():  # as if another program had the lock
                late = RefusedError(TEMPORARY, "(the messages before it took too long)")
                return [late if i in waiting else result for i, result in results.items()]
            # Several requests about one message are applied one after the other.
            first = {message.digest: i for i, (_, message) in reversed(waiting.items())}
            now = {i: waiting.pop(i) for i in sorted(first.values())}
            results |= _apply_distinct(path, now, wanted, wait, opened)
    return list(results.values())


def _apply_distinct(
    path: Path,
    requests: dict[int, tuple[bool | None, TokenizedMessage]],
    wanted: Wanted,
    wait: LockWait,
    base: Base | None,
) -> dict[int, Result]:
    """Apply requests about different messages; return what `apply_requests` does, by their numbers.

    wanted: the numbers that the messages were tokenized with.
    """
    rows, settings = _known(path, [message.digest for _, message in requests.values()], base)
    to_learn, to_forget = [], []
    learning: dict[int, Result] = {}
    forgetting: dict[int, Result] = {}
    for number, (is_spam, message) in requests.items():
        row = rows.get(message.digest, (0,) * len(settings.classes))
        if is_spam is None:
            forgetting[number] = FORGOTTEN if any(row) else UNCHANGED
            # As often as it was learned, so that nothing of it is left.
            to_forget += [message] * sum(row)
        else:
            label = _class_of(path, settings, is_spam)
            is_known = row[settings.classes.index(label)]
            learning[number] = UNCHANGED if is_known else MOVED if any(row) else LEARNED
            to_learn.append(message._replace(label=label))
    try:
        if to_forget:
            forget(path, to_forget, wait=wait, base=base)
    except LockedError as error:
        forgetting = dict.fromkeys(forgetting, error.with_traceback(None))
    try:
        if to_learn:
            pending = PendingMessages(wanted)
            pending.add(to_learn, path)
            learn(path, pending, TrainingSettings(base=base), wait=wait)
    except LockedError as error:
        learning = dict.fromkeys(learning, error.with_traceback(None))
    return forgetting | learning


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


def _class_of(path: Path, settings: ModelSettings, is_spam: bool) -> str:
    """Return the model's class for spam or ham; raises ModelError when it has none for ham."""
    if is_spam and settings.positive is not None:
        return settings.positive
    if len(settings.classes) == 2:
        return settings.classes[1 - (settings.positive_index or 0)]
    if HAM in settings.classes:
        return HAM
    raise ModelError(f"{path}: the model has no class called ham", Remedy.NAME_CLASS)


ApplyRequests = Callable[[Path, list[LearnRequest], LockWait], list[Result]]


class _Waiting:
    """A request that waits for its result."""

    def __init__(self, path: Path, request: LearnRequest, ends: float) -> None:
        self.path, self.request = path, request
        self.ends = ends  # by the monotonic clock: when it gives up
        self.result: Result | None = None


class Teacher:
    """Takes requests from clients' threads, and applies those of one model that wait together.

    A save takes as long for one message as for many: what arrives during a save waits for the
    next, and shares it.  Whoever finds his model idle applies what waits for it, for all.  So a
    model that another program has locked keeps one thread busy, and its users waiting.
    """

    def __init__(self, apply: ApplyRequests, limits: Limits, say: Say, files: UserFiles | None):
        """Call `apply` for each model, never twice at the same time.

        say: tells what is wrong.  files: where users' models are; None if all teach one model.
        """
        self._apply, self._limits, self._say, self._files = apply, limits, say, files
        self._changed = threading.Condition()
        self._queue: list[_Waiting] = []  # those that are not being applied yet
        self._busy: set[Path] = set()
        self._n_requests = 0  # that are not answered
        self._latest = math.inf  # by the monotonic clock: when the server waits no longer
        self._batch = _BATCH if files is None else _BATCH // _MODELS

    @property
    def n_waiting(self) -> int:
        """The number of requests that are not being applied yet."""
        return len(self._queue)

    def path_of(self, request: LearnRequest, user: str, common: Path) -> Path:
        """Return the model that a user teaches, for which there may be no file yet.

        Raises RefusedError for a name that no model may have, and for a new user too many.
        """
        if self._files is None:
            return common
        path = self._files.path(user)
        if path is None:
            raise RefusedError(PROTOCOL, "(the User header has no name that a model may have)")
        if not self._files.stamp(path) and request.is_spam is not None:
            # Whoever can connect can make up names.
            if self._files.has_many(self._limits.max_users):
                raise RefusedError(
                    UNAVAILABLE,
                    f"({self._limits.max_users:,} users have models, and the server creates no"
                    " more: raise its limit, or remove some)",
                )
            self._files.make_folder(path)
        return path

    def submit(self, path: Path, request: LearnRequest) -> Result:
        """Return what it did to the model, once that is on the disk.

        Returns RefusedError or LockedError when it could not be learned in time; it never will be.
        """
        one = _Waiting(path, request, time.monotonic() + self._limits.learning)
        with self._changed:
            if self._n_requests >= self._limits.connections:
                return RefusedError(TEMPORARY, "(too many messages wait to be learned)")
            self._n_requests += 1
            self._queue.append(one)
            while one.result is None:
                left = min(one.ends, self._latest) - time.monotonic()
                is_waiting = one in self._queue
                if is_waiting and path not in self._busy and len(self._busy) < _MODELS:
                    self._apply_batch(path)
                elif is_waiting and left <= 0:
                    self._queue.remove(one)
                    reason = "(the messages before it are not learned yet)"
                    one.result = RefusedError(TEMPORARY, reason)
                else:
                    self._changed.wait(left if is_waiting else None)
            self._n_requests -= 1
        return one.result

    def _apply_batch(self, path: Path) -> None:
        """Apply those that came first for a model; others may look at the queue meanwhile."""
        waiting = [one for one in self._queue if one.path == path]
        messages = (one.request.message for one in waiting)
        sizes = (len(each) if isinstance(each, bytes) else _BATCH for each in messages)
        n = max(1, sum(size <= self._batch for size in itertools.accumulate(sizes)))
        self._queue = [one for one in self._queue if one not in waiting[:n]]
        self._busy.add(path)
        self._changed.release()
        try:
            self._settle(path, waiting[:n])
        finally:
            self._changed.acquire()
            self._busy.remove(path)
            self._changed.notify_all()

    def _settle(self, path: Path, batch: list[_Waiting]) -> None:
        """Apply requests together; if that fails one by one, so that a bad one fails alone."""
        ends = min(one.ends for one in batch)
        wait = LockWait(math.inf, self._say, lambda: time.monotonic() >= min(ends, self._latest))
        try:
            results = self._apply(path, [one.request for one in batch], wait)
            for one, result in zip(batch, results, strict=True):
                one.result = result
        except Exception as error:  # noqa: BLE001 (its client gets it)
            if len(batch) == 1:
                # Without the frames that it passed through, which hold the message.
                batch[0].result = error.with_traceback(None)
            else:
                for one in batch:
                    self._settle(path, [one])

    def hurry(self, seconds: float) -> None:
        """Let no request wait for longer than so many seconds from now on."""
        with self._changed:
            self._latest = time.monotonic() + seconds
            self._changed.notify_all()

    def close(self) -> None:
        """Finish what was begun."""
        with self._changed:
            self._changed.wait_for(lambda: not self._busy)
