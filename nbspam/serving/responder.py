"""The answer to each request: a message classified, or learned, or why neither was done.

A message of ordinary size is classified in the event loop itself, where a hop to a thread and back
would cost more than it saves; a longer one in a thread, so that the loop gets its turn every few
milliseconds; a large one in a process of its own, where it can hold up no other.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import NamedTuple

from nbspam.errors import LockedError, NbspamError
from nbspam.serving.answer import answer
from nbspam.serving.current import CurrentModel, OpenModel, Say
from nbspam.serving.large_mail import LargeMail
from nbspam.serving.limits import Limits
from nbspam.serving.spamd import (
    IO,
    PING,
    PONG,
    SKIP,
    SOFTWARE,
    TELL,
    TEMPORARY,
    TIMEOUT,
    RefusedError,
    Request,
    tell_reply,
)
from nbspam.serving.tell import LearnQueue, LearnRequest
from nbspam.tokens.tokenized import TokenizedMessage, Wanted

_SMALL = 32 << 10  # bytes; longer messages are classified in a thread
_THREADS = 2  # for those; they share one interpreter, so more would only slow each other down

Parked = Callable[[], AbstractContextManager[None]]


class Response(NamedTuple):
    """What the server does with a request."""

    reply: bytes | bytearray  # all that is sent
    summary: str  # for the log
    in_time: bool = True  # whether the request arrived in time


class Responder:
    """Answers requests with the current model."""

    def __init__(
        self,
        model: CurrentModel,
        limits: Limits,
        queue: LearnQueue | None,
        say: Say,
        x_spam: bool = False,
    ) -> None:
        """Answer with `model`.

        queue: None where TELL is not allowed.
        say: writes to the log.  x_spam: whether messages get SpamAssassin's headers too.
        """
        self._model, self._queue = model, queue
        self._say, self._x_spam = say, x_spam
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="long")
        self._large = LargeMail(model, limits, say, x_spam)

    @property
    def can_tell(self) -> bool:
        """Whether TELL is allowed."""
        return self._queue is not None

    async def respond(self, request: Request | None, parked: Parked) -> Response:
        """Return the response to a request; None stands for a client that closed without one.

        parked: returns a context for the time in which the client waits for the server.
        """
        if request is None:
            return Response(b"", "empty request")
        if request.command in (PING, SKIP):
            return Response(PONG if request.command == PING else b"", request.command)
        size = len(request.body)
        act = self._tell if request.command == TELL else self._classify
        reply, result = await act(request, parked)
        return Response(reply, f"{request.command} {result}, {size} byte{'s' * (size != 1)}")

    def refuse(self, error: Exception) -> Response:
        """Return the response that reports an error: a status line and nothing else."""
        if isinstance(error, RefusedError):
            refusal = error
        elif isinstance(error, TimeoutError):
            refusal = RefusedError(TIMEOUT, "(the request did not arrive in time)")
        elif isinstance(error, LockedError):  # who waited for the lock has said so
            refusal = RefusedError(TEMPORARY, str(error))
        elif isinstance(error, NbspamError):
            self._say(str(error))
            refusal = RefusedError(IO, str(error))
        else:
            self._say(f"internal error, {type(error).__name__}: {error}; please report it")
            refusal = RefusedError(SOFTWARE, type(error).__name__)
        return Response(refusal.line, f"refused: {refusal}", refusal.code != TIMEOUT)

    def hurry(self, seconds: float) -> None:
        """Wait no longer than so many seconds for the model's lock from now on."""
        if self._queue:
            self._queue.hurry(seconds)

    async def close(self) -> None:
        """Finish what was begun."""
        self._threads.shutdown()
        if self._queue:
            await self._queue.close()
        await self._large.close()

    async def _classify(self, request: Request, parked: Parked) -> tuple[bytes | bytearray, str]:
        """Return the reply to a request about a message, and the verdict for the log."""
        if request.is_large:
            with parked():
                return await self._large.judge(request)
        with self._model.use() as model:
            if len(request.body) <= _SMALL:
                return self._answer(request, model)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._answer, request, model, True)

    def _answer(
        self, request: Request, model: OpenModel, in_thread: bool = False
    ) -> tuple[bytes, str]:
        spam_filter = model.fresh_filter() if in_thread else model.filter
        reply, judged = answer(request, bytes(request.body), spam_filter, self._x_spam)
        return reply, judged.summary

    async def _tell(self, request: Request, parked: Parked) -> tuple[bytes, str]:
        """Learn or forget a message; return the reply, and what was done for the log."""
        assert self._queue is not None
        changed = False
        if request.set_local or request.remove_local:
            is_spam = request.message_class == "spam" if request.set_local else None
            message = self._tokenizer(request) if request.is_large else bytes(request.body)
            with parked():
                changed = await self._queue.submit(LearnRequest(message, is_spam))
        done = "learned" if request.set_local else "forgot"
        return tell_reply(request, changed), done if changed else "nothing new"

    def _tokenizer(self, request: Request) -> Callable[[Wanted], TokenizedMessage]:
        """Return a function that the learner's thread gets a large message tokenized with."""
        loop = asyncio.get_running_loop()

        def tokenized(wanted: Wanted) -> TokenizedMessage:
            tokenizing = self._large.tokenize(request, wanted)
            return asyncio.run_coroutine_threadsafe(tokenizing, loop).result()

        return tokenized
