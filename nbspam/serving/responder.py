"""The answer to each request: a message classified, or learned, or why neither was done.

A message of ordinary size is classified in the event loop itself, where a hop to a thread and back
would cost more than it saves; a large one in a thread, so that the loop gets its turn every few
milliseconds.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from nbspam.errors import NbspamError
from nbspam.serving.answer import answer
from nbspam.serving.current import CurrentModel, OpenModel, Say
from nbspam.serving.spamd import (
    IO,
    PING,
    PONG,
    SKIP,
    SOFTWARE,
    TELL,
    TIMEOUT,
    RefusedError,
    Request,
    tell_reply,
)
from nbspam.serving.tell import LearnQueue, LearnRequest

_SMALL = 32 << 10  # bytes; larger messages, and compressed ones, are classified in a thread
_THREADS = 2  # for those; they share one interpreter, so more would only slow each other down


class Response(NamedTuple):
    """What the server does with a request."""

    reply: bytes  # all that is sent
    summary: str  # for the log
    in_time: bool = True  # whether the request arrived in time


class Responder:
    """Answers requests with the current model."""

    def __init__(
        self,
        model: CurrentModel,
        max_size: int,
        queue: LearnQueue | None,
        say: Say,
        x_spam: bool = False,
    ) -> None:
        """Answer with `model`.

        max_size: of a decompressed message, in bytes.  queue: None where TELL is not allowed.
        say: writes to the log.  x_spam: whether messages get SpamAssassin's headers too.
        """
        self._model, self._max_size, self._queue = model, max_size, queue
        self._say, self._x_spam = say, x_spam
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="large")

    @property
    def can_tell(self) -> bool:
        """Whether TELL is allowed."""
        return self._queue is not None

    async def respond(self, request: Request | None) -> Response:
        """Return the response to a request; None stands for a client that closed without one."""
        if request is None:
            return Response(b"", "empty request")
        if request.command in (PING, SKIP):
            return Response(PONG if request.command == PING else b"", request.command)
        act = self._tell if request.command == TELL else self._classify
        reply, result = await act(request)
        return Response(
            reply,
            f"{request.command} {result}, {len(request.body)} byte{'s' * (len(request.body) != 1)}",
        )

    def refuse(self, error: Exception) -> Response:
        """Return the response that reports an error: a status line and nothing else."""
        if isinstance(error, RefusedError):
            refusal = error
        elif isinstance(error, TimeoutError):
            refusal = RefusedError(TIMEOUT, "(the request did not arrive in time)")
        elif isinstance(error, NbspamError):
            self._say(str(error))
            refusal = RefusedError(IO, str(error))
        else:
            self._say(f"internal error, {type(error).__name__}: {error}; please report it")
            refusal = RefusedError(SOFTWARE, type(error).__name__)
        return Response(refusal.line, f"refused: {refusal}", refusal.code != TIMEOUT)

    async def close(self) -> None:
        """Finish what was begun."""
        self._threads.shutdown()
        if self._queue:
            await self._queue.close()

    async def _classify(self, request: Request) -> tuple[bytes, str]:
        """Return the reply to a request about a message, and the verdict for the log."""
        with self._model.use() as model:
            if len(request.body) <= _SMALL and not request.compressed:
                return self._answer(request, model)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._answer, request, model, True)

    def _answer(
        self, request: Request, model: OpenModel, in_thread: bool = False
    ) -> tuple[bytes, str]:
        message = request.message(self._max_size)
        spam_filter = model.fresh_filter() if in_thread else model.filter
        reply, judged = answer(request, message, spam_filter, self._x_spam)
        return reply, f"{judged.verdict.verdict} {judged.tenths / 10:.1f}"

    async def _tell(self, request: Request) -> tuple[bytes, str]:
        """Learn or forget a message; return the reply, and what was done for the log."""
        assert self._queue is not None
        changed = False
        if request.set_local or request.remove_local:
            is_spam = request.message_class == "spam" if request.set_local else None
            loop = asyncio.get_running_loop()
            message = await loop.run_in_executor(self._threads, request.message, self._max_size)
            changed = await self._queue.submit(LearnRequest(message, is_spam))
        done = "learned" if request.set_local else "forgot"
        return tell_reply(request, changed), done if changed else "nothing new"
