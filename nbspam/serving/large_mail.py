"""The process that reads large messages, as the server sees it.

A pattern that runs over 30 MB keeps Python's interpreter for seconds, and a thread that runs it
keeps all other threads out.  So large messages, and compressed ones that may be large, go to a
process of their own, one at a time, in the order in which they came.  The process is started with
the first of them, is killed when one takes too long, and is replaced when it has died.  It reads
the versions of the model that the server has open.

`large_mail_program` is what it runs.
"""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from nbspam.errors import NbspamError
from nbspam.serving.current import Models, OpenModel, Say
from nbspam.serving.large_mail_program import PREFIX
from nbspam.serving.limits import Limits
from nbspam.serving.spamd import TEMPORARY, RefusedError, Request
from nbspam.tokens.tokenized import Numbers, TokenizedMessage, Wanted

_CODE = (  # packages are found where the server found them
    "import sys; sys.path[:] = {}\n"
    "from nbspam.serving.large_mail_program import read_large_mail; read_large_mail({}, {})"
)

_Reply = tuple[dict[str, Any], bytearray]


class LargeMail:
    """Judges and tokenizes large messages in a process of their own."""

    def __init__(self, model: Models, limits: Limits, say: Say, x_spam: bool) -> None:
        """Judge with `model`; nothing is started yet.

        say: writes to the log.  x_spam: whether messages get SpamAssassin's headers too.
        """
        self._model, self._limits, self._say, self._x_spam = model, limits, say, x_spam
        self._turn = asyncio.Lock()
        self._process: _Process | None = None
        self._is_closed = False

    async def judge(self, request: Request) -> tuple[bytearray, str, float, str | None]:
        """Return the reply to a request about a message, and its verdict, P(spam) and reason.

        The body of the request is freed as soon as the process has it.
        Raises RefusedError, NbspamError when the model is damaged.
        """
        task = {
            "command": request.command,
            "version": request.version,
            "x_spam": self._x_spam,
        }
        reply, content = await self._ask(task, request)
        return content, reply["verdict"], reply["probability"], reply["reason"]

    async def tokenize(self, request: Request, wanted: Wanted) -> TokenizedMessage:
        """Return the message of a request, tokenized to be learned or forgotten.

        wanted: the numbers that the model counts.  The body stays.  Raises RefusedError.
        """
        reply, content = await self._ask({"wanted": wanted}, request)
        tokens = content.decode("utf-8", "surrogatepass").split("\n") if content else []
        perhaps = frozenset(reply["perhaps_hidden"])
        numbers = Numbers(reply["times"], tuple(reply["traits"]), perhaps)
        return TokenizedMessage("-", None, tokens, reply["digest"], numbers=numbers)

    async def close(self) -> None:
        """End the process, and with it what it is reading."""
        self._is_closed = True
        if self._process:
            self._process.kill()
        async with self._turn:
            await self._end_process()

    async def _ask(self, task: Mapping[str, Any], request: Request) -> _Reply:
        """Return the process's reply to a task, when it is the message's turn."""
        async with self._turn:
            if self._is_closed:
                raise RefusedError(TEMPORARY, "(the server stops)")
            reply, content = await self._reply(task, request)
        if "refused" in reply:
            raise RefusedError(*reply["refused"])
        if "failed" in reply:
            raise NbspamError(reply["failed"])
        if "bug" in reply:
            raise RuntimeError(reply["bug"])
        return reply, content

    async def _reply(self, task: Mapping[str, Any], request: Request) -> _Reply:
        """Exchange a task for a reply; a process that gives none is ended."""
        seconds = self._limits.reading
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(task, request)
        except TimeoutError:
            await self._end_process()
            self._say(f"a large message was given up after {seconds:g} s")
            raise RefusedError(TEMPORARY, f"(it took longer than {seconds:g} s)") from None
        except (OSError, EOFError) as error:
            reason = "it has ended" if isinstance(error, ConnectionError | EOFError) else error
            await self._end_process()
            if not self._is_closed:
                self._say(
                    f"the process that reads large messages failed ({reason}); a new one follows"
                )
            raise RefusedError(TEMPORARY, "(the process that reads it has ended)") from None
        except BaseException:
            await self._end_process()
            raise

    async def _exchange(self, task: Mapping[str, Any], request: Request) -> _Reply:
        """Hand a task to the process, started if there is none, and wait for the reply."""
        if self._process and self._process.has_ended:
            await self._end_process()
        if not self._process:
            self._process = _Process(self._limits.reading_memory)
        process, max_size = self._process, self._limits.max_size
        if "wanted" in task:
            await process.send(task, request, max_size)
        else:
            with self._model.use(request.user) as model:
                await process.send(task, request, max_size, model)
            if isinstance(request.body, bytearray):
                request.body.clear()  # while it is read, the process alone has it
        return await process.receive()

    async def _end_process(self) -> None:
        if self._process:
            process, self._process = self._process, None
            await process.end()


class _Process:
    """One process, running; raises OSError when it cannot be started."""

    def __init__(self, memory: int) -> None:
        """Start it; memory: bytes that it may have."""
        self._channel, theirs = socket.socketpair()
        try:
            with theirs:
                self._channel.setblocking(False)
                code = _CODE.format(sys.path, theirs.fileno(), memory)
                self._popen = subprocess.Popen(
                    [sys.executable, "-c", code],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
        except BaseException:
            self._channel.close()
            raise
        self._model_number = 0  # of the version of the model that it has

    async def send(
        self,
        task: Mapping[str, Any],
        request: Request,
        max_size: int,
        model: OpenModel | None = None,
    ) -> None:
        """Hand over a task and its message; and the model, if that is another one now."""
        fields = {**task, "compressed": request.compressed, "max_size": max_size}
        handles = []
        if model and model.number != self._model_number:
            files = [name for name, _ in model.files]
            fields["model"] = {"files": files, "cut_offs": model.cut_offs}
            handles = [handle for _, handle in model.files]
            self._model_number = model.number
        head = json.dumps(fields).encode()
        # The channel is empty, so these few bytes are sent whole.
        socket.send_fds(self._channel, [PREFIX.pack(len(head), len(request.body))], handles)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self._channel, head)
        with memoryview(request.body) as body:
            await loop.sock_sendall(self._channel, body)

    async def receive(self) -> _Reply:
        """Return the reply; raises EOFError or OSError when the process has died."""
        head, content = PREFIX.unpack(await self._bytes(PREFIX.size))
        return json.loads(await self._bytes(head)), await self._bytes(content)

    async def _bytes(self, n: int) -> bytearray:
        loop = asyncio.get_running_loop()
        data = bytearray(n)
        with memoryview(data) as view:
            at = 0
            while at < n:
                received = await loop.sock_recv_into(self._channel, view[at:])
                if not received:
                    raise EOFError
                at += received
        return data

    @property
    def has_ended(self) -> bool:
        """Whether it has died, with nothing to do."""
        return self._popen.poll() is not None

    def kill(self) -> None:
        """Kill the process; whoever waits for its reply gets an EOFError."""
        self._popen.kill()

    async def end(self) -> None:
        """Kill the process and free what it leaves."""
        self.kill()
        self._channel.close()
        await asyncio.to_thread(self._popen.wait)
