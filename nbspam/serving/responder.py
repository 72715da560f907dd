"""The answer to each request: a message classified, or learned, or why neither was done.

A message of ordinary size is classified in the event loop itself, where a hop to a thread and back
would cost more than it saves; a longer one in a thread, so that the loop gets its turn every few
milliseconds; a large one in a process of its own, where it can hold up no other.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import NamedTuple

from nbspam.errors import LockedError, NbspamError
from nbspam.reading.header_fields import HEAD, message_id
from nbspam.serving.answer import answer
from nbspam.serving.current import Models, OpenModel, Say
from nbspam.serving.large_mail import LargeMail
from nbspam.serving.limits import Limits
from nbspam.serving.log import UNCHANGED, Entry
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
from nbspam.serving.tell import LearnRequest, Teacher
from nbspam.tokens.tokenized import TokenizedMessage, Wanted

SMALL = 32 << 10  # bytes; longer messages are classified in a thread
_THREADS = 2  # for those; they share one interpreter, so more would only slow each other down

Parked = Callable[[], AbstractContextManager[None]]
# The reply, the verdict, the probability of spam, and why it is unsure if that did not decide.
_Judged = tuple[bytes | bytearray, str, float, str | None]


class Response(NamedTuple):
    """What the server does with a request."""

    reply: bytes | bytearray  # all that is sent
    entry: Entry  # for the log and the metrics
    code: int = 0  # of a refusal

    @property
    def in_time(self) -> bool:
        """Whether the request arrived in time."""
        return self.code != TIMEOUT


def entry_of(request: Request | None, is_logged: bool) -> Entry:
    """Return what is known of a request before it is answered.

    is_logged: whether the Message-ID is wanted, which takes 25 µs to find.
    """
    if request is None or request.command in (PING, SKIP):
        return Entry(command=request.command if request else "")
    is_tell = request.command == TELL
    return Entry(
        action="classify" if not is_tell else "learn" if request.set_local else "forget",
        command=request.command,
        message_id=message_id(request.beginning(HEAD)) if is_logged else "",
        user=request.user,
        label=request.message_class if is_tell and request.set_local else "",
        size=len(request.body),
    )


def release(error: BaseException | None) -> None:
    """Free what the frames of an error and of its causes hold: the message.

    A stream keeps the error that ended it, and the error's frames keep the stream, so the message
    would stay until the garbage collector runs, which is seldom.
    """
    while error:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


class Responder:
    """Answers requests with the current model."""

    def __init__(
        self,
        model: Models,
        limits: Limits,
        queue: Teacher | None,
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

    async def respond(self, request: Request | None, entry: Entry, parked: Parked) -> Response:
        """Return the response to a request; None stands for a client that closed without one.

        entry: what is known of the request.
        parked: returns a context for the time in which the client waits for the server.
        """
        if request is None:
            return Response(b"", entry)
        if request.command in (PING, SKIP):
            return Response(PONG if request.command == PING else b"", entry)
        if request.command == TELL:
            reply, result = await self._tell(request, parked)
            return Response(reply, entry._replace(result=result))
        judged, verdict, probability, reason = await self._classify(request, parked)
        entry = entry._replace(verdict=verdict, probability=probability, reason=reason)
        return Response(judged, entry)

    def respond_at_once(self, request: Request, is_logged: bool) -> Response:
        """Return the response to a request about a message of at most SMALL bytes.

        is_logged: whether the Message-ID is wanted.  It does not raise.
        """
        started, size = time.perf_counter(), len(request.body)
        name = message_id(request.beginning(HEAD)) if is_logged else ""
        try:
            with self._model.use(request.user) as model:
                reply, verdict, probability, reason = self._answer(request, model)
        except Exception as error:  # noqa: BLE001 (a message that fails must not end the server)
            response = self.refuse(error, entry_of(request, is_logged))
            release(error)
            seconds = time.perf_counter() - started
            return response._replace(entry=response.entry._replace(seconds=seconds))
        # Made at once: each `_replace` of a tuple takes as long as a hundredth of the verdict.
        label = result = ""
        seconds = time.perf_counter() - started
        done = (verdict, probability, reason, label, result, size, seconds)
        return Response(reply, Entry("classify", request.command, name, request.user, *done))

    def refuse(self, error: Exception, entry: Entry) -> Response:
        """Return the response that reports an error: a status line and nothing else.

        entry: what is known of the request.
        """
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
        reason = refusal.line.decode().removeprefix("SPAMD/1.0 ").rstrip()
        entry = entry._replace(action=entry.action or "serve", error=reason)
        return Response(refusal.line, entry, refusal.code)

    def hurry(self, seconds: float) -> None:
        """Wait no longer than so many seconds for the model's lock from now on."""
        if self._queue:
            self._queue.hurry(seconds)

    async def close(self) -> None:
        """Finish what was begun."""
        await self._large.close()  # first: the queue may wait for it
        if self._queue:
            await self._queue.close()
        self._threads.shutdown()

    async def _classify(self, request: Request, parked: Parked) -> _Judged:
        """Return the reply to a request about a message, and what is logged of its verdict."""
        if request.is_large:
            with parked():
                return await self._large.judge(request)
        with self._model.use(request.user) as model:
            if len(request.body) <= SMALL:
                return self._answer(request, model)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._answer, request, model, True)

    def _answer(self, request: Request, model: OpenModel, in_thread: bool = False) -> _Judged:
        spam_filter = model.fresh_filter() if in_thread else model.filter
        reply, judged = answer(request, bytes(request.body), spam_filter, self._x_spam)
        verdict = judged.verdict
        return reply, verdict.verdict, verdict.probability, verdict.reason

    async def _tell(self, request: Request, parked: Parked) -> tuple[bytes, str]:
        """Learn or forget a message; return the reply, and what was done for the log."""
        assert self._queue is not None
        result = UNCHANGED
        if request.set_local or request.remove_local:
            is_spam = request.message_class == "spam" if request.set_local else None
            message = self._tokenizer(request) if request.is_large else bytes(request.body)
            with parked():
                result = await self._queue.submit(LearnRequest(message, is_spam), request.user)
        return tell_reply(request, result != UNCHANGED), result

    def _tokenizer(self, request: Request) -> Callable[[Wanted], TokenizedMessage]:
        """Return a function that the learner's thread gets a large message tokenized with."""
        loop = asyncio.get_running_loop()

        def tokenized(wanted: Wanted) -> TokenizedMessage:
            tokenizing = self._large.tokenize(request, wanted)
            return asyncio.run_coroutine_threadsafe(tokenizing, loop).result()

        return tokenized
