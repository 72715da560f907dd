"""Learning for users: a queue for each who teaches, so that none waits for the others.

One user's messages are learned one after the other.  Those of several users are learned in a few
threads, so a model that another program has locked keeps one of them busy, and its user waiting.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from nbspam.serving.current import Say
from nbspam.serving.limits import Limits
from nbspam.serving.spamd import PROTOCOL, TEMPORARY, UNAVAILABLE, RefusedError
from nbspam.serving.tell import LearnQueue, LearnRequest, Result
from nbspam.serving.user_files import UserFiles
from nbspam.store.writing import LockWait

_THREADS = 4
_BATCH = (512 << 10) // _THREADS  # bytes of one user's messages for a save; their tokens take more

ApplyTo = Callable[[Path, list[LearnRequest], LockWait], list[Result]]


class UserQueues:
    """Takes requests of all users."""

    def __init__(self, apply: ApplyTo, files: UserFiles, limits: Limits, say: Say) -> None:
        """apply: called in threads, with a user's model; say: writes to the log."""
        self._apply, self._files, self._limits, self._say = apply, files, limits, say
        self._queues: dict[Path, LearnQueue] = {}
        self._n: dict[Path, int] = {}  # requests that are not answered
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="learner")
        self._seconds: float | None = None  # once the server stops

    @property
    def n_waiting(self) -> int:
        """The number of requests that are not being applied yet."""
        return sum(queue.n_waiting for queue in self._queues.values())

    async def submit(self, request: LearnRequest, user: str = "") -> str:
        """Return what it did to the user's model, once that is on the disk; raises NbspamError.

        Raises RefusedError for a name that no model may have, for a new user too many, or when it
        was not learned in time.
        """
        path = self._files.path(user)
        if path is None:
            raise RefusedError(PROTOCOL, "(the User header has no name that a model may have)")
        if sum(self._n.values()) >= self._limits.connections:
            raise RefusedError(TEMPORARY, "(too many messages wait to be learned)")
        if not self._files.stamp(path) and request.is_spam is not None:
            self._check_number()
            self._files.make_folder(path)
        queue = self._queues.get(path) or self._new(path)
        self._n[path] = self._n.get(path, 0) + 1
        try:
            return await queue.submit(request)
        finally:
            self._n[path] -= 1
            if not self._n[path]:
                del self._n[path], self._queues[path]

    def _check_number(self) -> None:
        """Raise RefusedError if no model may be made: whoever can connect can make up names."""
        if self._files.has_many(self._limits.max_users):
            raise RefusedError(
                UNAVAILABLE,
                f"(there are models of {self._limits.max_users:,} users, and the server makes no"
                " more: raise its limit, or remove some)",
            )

    def _new(self, path: Path) -> LearnQueue:
        apply = partial(self._apply, path)
        queue = LearnQueue(apply, self._limits, self._say, self._threads, _BATCH)
        self._queues[path] = queue
        if self._seconds is not None:
            queue.hurry(self._seconds)
        return queue

    def hurry(self, seconds: float) -> None:
        """Let no request wait for longer than so many seconds from now on."""
        self._seconds = seconds
        for queue in self._queues.values():
            queue.hurry(seconds)

    async def close(self) -> None:
        """Finish what was begun."""
        for queue in list(self._queues.values()):
            await queue.close()
        self._threads.shutdown()
