"""The processes that read messages: the server's side, and what they run.

Reading a message is most of the work, and a pattern that runs over a hostile one keeps Python's
interpreter for a while: 20 ms with 128 KiB, seconds with 30 MB.  So messages go to processes of
their own, each to whichever is free, and the server only moves bytes.  There is one more than may
have long messages, so that short ones do not wait for them.  Large messages, and
compressed ones that may be large, have one process for themselves, one at a time; its memory is
limited, and it is started with the first of them.

A process that takes too long is killed, and one that has died is replaced with the next message.
It begins with the version of the model that the server has open, so that it can be replaced while
the file is damaged, and looks before each message whether there is a newer one.  It ends when the
server has closed the channel, that is, in any case with the server.

A task and a reply are a prefix with two lengths, a value as JSON and bytes: the message, or the
reply to the client.
"""

import itertools
import json
import signal
import socket
import struct
import subprocess
import sys
from collections import deque
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any, NamedTuple

from nbspam.errors import NbspamError
from nbspam.reading.message import parse
from nbspam.serving.answer import answer
from nbspam.serving.limits import Limits, give_back_freed_memory, limit_memory
from nbspam.serving.models import NO_HANDLES, CurrentModel, Handles, Models, Say, ServedModels
from nbspam.serving.spamd import SOFTWARE, TEMPORARY, RefusedError, Request
from nbspam.tokens.tokenized import Numbers, TokenizedMessage, Wanted, tokenize

_CODE = (  # packages are found where the server found them
    "import sys; sys.path[:] = {}\nfrom nbspam.serving.judges import be_judge; be_judge({}, {!r})"
)
_PREFIX = struct.Struct("!QQ")  # how long the value is, and how many bytes follow it
_SMALL = 64 << 10  # bytes that are copied rather than sent by themselves
# Bytes.  One process is for messages that are no longer than this, which wait for no other: hostile
# ones take 3 ms with 8 KiB, 10 with 32.
_SHORT = 8 << 10

_Turn = SimpleQueue["_Judge"]  # of one who waits for a process

# What a process answers: its reply, or why there is none.
_DONE, _REFUSED, _FAILED, _BUG = range(4)


class Judged(NamedTuple):
    """The reply to a request about a message, and what is logged of its verdict."""

    reply: bytes
    verdict: str
    probability: float
    reason: str | None


class Setup(NamedTuple):
    """What a process is told when it starts."""

    models: ServedModels
    limits: Limits
    x_spam: bool  # whether messages get SpamAssassin's headers too
    is_for_large: bool
    handles: Handles = NO_HANDLES  # of the model's open files

    def as_json(self) -> str:
        """Return the setup as JSON."""
        handles = {str(path): handle for path, handle in self.handles.items()}
        return json.dumps(self._replace(handles=handles), default=str)  # type: ignore[arg-type]

    @classmethod
    def of_json(cls, text: str) -> "Setup":
        """Return the setup that is JSON."""
        (path, cut_offs, base, users, *n), limits, x_spam, is_for_large, handles = json.loads(text)
        models = ServedModels(
            Path(path), tuple(cut_offs), base and Path(base), users and Path(users), *n
        )
        opened = {Path(name): handle for name, handle in handles.items()}
        return cls(models, Limits(*limits), x_spam, is_for_large, opened)


class Judges:
    """Processes that judge, or tokenize, one message at a time each."""

    def __init__(
        self,
        models: ServedModels,
        current: CurrentModel,
        limits: Limits,
        say: Say,
        x_spam: bool,
        is_for_large: bool = False,
    ) -> None:
        """Start nothing yet.

        current: the model that the server has open.  say: tells what is wrong.
        is_for_large: whether for large messages, with one process.
        """
        self._setup = Setup(models, limits, x_spam, is_for_large)
        self._current, self._limits, self._say = current, limits, say
        self._what = "large messages" if is_for_large else "messages"
        self._lock = Lock()
        self._most_long = 1 if is_for_large else models.n_workers  # of long messages at a time
        self._all = [_Judge() for _ in range(self._most_long + (not is_for_large))]
        self._free = list(self._all)
        self._n_long = 0
        self._waiting = deque[_Turn](), deque[_Turn]()  # with short messages, with long ones
        self._is_closed = False

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [judge.process.pid for judge in self._all if judge.process]

    def start(self) -> None:
        """Start the processes now rather than with their first messages; raises OSError."""
        for judge in self._all:
            self._start(judge)

    def judge(self, request: Request) -> Judged:
        """Return the reply to a request about a message.

        The body of the request is freed as soon as the process has it.
        Raises RefusedError, NbspamError when the model is damaged.
        """
        task = {"command": request.command, "version": request.version, "user": request.user}
        fields, reply = self._ask(task | {"compressed": request.compressed}, request.body)
        return Judged(reply, *fields)

    def tokenize(self, request: Request, wanted: Wanted) -> TokenizedMessage:
        """Return the message of a request, tokenized to be learned or forgotten.

        wanted: the numbers that the model counts.  The body stays.  Raises RefusedError.
        """
        task = {"wanted": wanted, "compressed": request.compressed}
        (digest, times, traits, perhaps), content = self._ask(task, bytes(request.body))
        tokens = content.decode("utf-8", "surrogatepass").split("\n") if content else []
        numbers = Numbers(times, tuple(traits), frozenset(perhaps))
        return TokenizedMessage("-", None, tokens, digest, numbers=numbers)

    def end(self) -> None:
        """Free what the processes leave, once nobody uses them."""
        for judge in self._all:
            judge.end()

    def close(self) -> None:
        """Kill the processes, and with them what they are reading."""
        with self._lock:
            self._is_closed = True
            for judge in self._all:
                judge.kill()
            for turn in itertools.chain(*self._waiting):
                turn.put(self._all[0])

    def _ask(self, task: Any, body: bytes | bytearray) -> tuple[Any, bytes]:
        """Return what a process replies to a task, when it is the message's turn."""
        is_long = len(body) > _SHORT
        judge = self._take(is_long)
        try:
            if self._is_closed:
                raise RefusedError(TEMPORARY, "(the server stops)")
            if judge.has_ended:
                self._start(judge)
            (kind, found), content = judge.exchange(task, body)
        except TimeoutError:
            judge.end()
            seconds = f"{self._limits.reading:g} s"
            self._say(f"a message was given up after {seconds}")
            raise RefusedError(TEMPORARY, f"(it took longer than {seconds})") from None
        except (OSError, EOFError) as error:
            has_died = isinstance(error, ConnectionError | EOFError)
            reason = "it has ended" if has_died else error
            judge.end()
            if not self._is_closed:
                self._say(
                    f"the process that reads {self._what} failed ({reason}); a new one follows"
                )
            raise RefusedError(TEMPORARY, "(the process that reads it has ended)") from None
        except BaseException:
            judge.end()
            raise
        finally:
            self._give(judge, is_long)
        if kind == _REFUSED:
            raise RefusedError(*found)
        if kind == _FAILED:
            raise NbspamError(found)
        if kind == _BUG:
            self._say(f"internal error, {found}; please report it")
            raise RefusedError(SOFTWARE, found.partition(":")[0])
        return found, content

    def _take(self, is_long: bool) -> "_Judge":
        """Return a process, when one is free for such a message."""
        turn: _Turn = SimpleQueue()
        with self._lock:
            if self._is_closed:
                return self._all[0]
            self._waiting[is_long].append(turn)
            self._hand_out()
        return turn.get()

    def _give(self, judge: "_Judge", is_long: bool) -> None:
        """Let the next one have a process."""
        with self._lock:
            self._free.append(judge)
            self._n_long -= is_long
            self._hand_out()

    def _hand_out(self) -> None:
        """Give free processes to those who wait: one to long messages, then the short go first."""
        short, long = self._waiting
        while self._free:
            if long and self._n_long < (1 if short else self._most_long):
                self._n_long += 1
                long.popleft().put(self._free.pop())
            elif short:
                short.popleft().put(self._free.pop())
            else:
                break

    def _start(self, judge: "_Judge") -> None:
        judge.end()
        with self._current.use() as model:
            judge.start(self._setup._replace(handles=model.handles), self._limits.reading)


class _Judge:
    """One process, or the place for one."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    @property
    def has_ended(self) -> bool:
        """Whether there is none, or it has died with nothing to do."""
        return self.process is None or self.process.poll() is not None

    def start(self, setup: Setup, seconds: float) -> None:
        """Start it; raises OSError.  seconds: for it to read and to answer."""
        self._channel, theirs = socket.socketpair()
        with theirs:
            handles = [theirs.fileno(), *setup.handles.values()]
            code = _CODE.format(sys.path, theirs.fileno(), setup.as_json())
            self.process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=handles,
            )
        bound = struct.pack("ll", int(seconds), int(seconds % 1 * 1_000_000))
        for option in (
            socket.SO_RCVTIMEO,
            socket.SO_SNDTIMEO,
        ):  # a timeout of Python's takes longer
            self._channel.setsockopt(socket.SOL_SOCKET, option, bound)

    def exchange(self, task: Any, body: bytes | bytearray) -> tuple[Any, bytes]:
        """Return the reply to a task, and free its message once the process has that.

        Raises TimeoutError, and EOFError or OSError when the process has died.
        """
        assert self._channel is not None
        try:
            _send(self._channel, task, body)
            if isinstance(body, bytearray):
                body.clear()
            return _receive(self._channel)
        except BlockingIOError:
            raise TimeoutError from None

    def kill(self) -> None:
        """Kill it; whoever waits for its reply gets an EOFError."""
        if self.process:
            self.process.kill()

    def end(self) -> None:
        """Kill it and free what it leaves."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None
        if self._channel:
            self._channel.close()
            self._channel = None


def _send(channel: socket.socket, head: Any, body: bytes | bytearray) -> None:
    packed = json.dumps(head).encode()
    start = _PREFIX.pack(len(packed), len(body)) + packed
    if len(body) <= _SMALL:
        channel.sendall(start + body)
    else:
        channel.sendall(start)
        channel.sendall(body)


def _receive(channel: socket.socket) -> tuple[Any, bytes]:
    """Return what `_send` has sent; raises EOFError when the channel is closed, or OSError."""
    n_head, n_body = _PREFIX.unpack(_bytes(channel, _PREFIX.size))
    head = _bytes(channel, n_head)
    return json.loads(head), _bytes(channel, n_body)


def _bytes(channel: socket.socket, n: int) -> bytes:
    """Return `n` bytes, read in one piece: joining pieces would take them twice."""
    data = channel.recv(n, socket.MSG_WAITALL) if n else b""
    while len(data) < n:  # a signal came between, or the end
        chunk = channel.recv(n - len(data), socket.MSG_WAITALL)
        if not chunk:
            raise EOFError
        data += chunk
    return data


# What a process runs


def be_judge(number: int, text: str) -> None:
    """Do tasks until the channel is closed; number: its descriptor.  text: the `Setup`."""
    # Signals to the group are the server's to obey: it finishes what was begun.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    give_back_freed_memory()
    setup = Setup.of_json(text)
    with socket.socket(fileno=number) as channel:
        try:
            if setup.is_for_large:
                limit_memory(setup.limits.reading_memory)
            models = setup.models.of_worker(setup.handles, setup.is_for_large)
            while True:
                task, body = _receive(channel)
                reply, content = _reply(task, body, models, setup)
                del task, body
                _send(channel, reply, content)
                del reply, content
        except (EOFError, OSError):  # the server needs it no longer
            pass


def _reply(task: Any, body: bytes, models: Models, setup: Setup) -> tuple[Any, bytes]:
    """Return the reply to a task, whatever happens."""
    try:
        request = Request(task.get("command", ""), body=body, compressed=task["compressed"])
        message = request.message(setup.limits.max_size)
        if "wanted" in task:
            found = tokenize(parse(message), digest=True, wanted=Wanted(*task["wanted"]))
            times, traits, perhaps = found.numbers
            content = "\n".join(found.tokens).encode("utf-8", "surrogatepass")
            return (_DONE, (found.digest, times, traits, sorted(perhaps))), content
        request = request._replace(version=tuple(task["version"]))
        with models.use(task["user"]) as model:
            reply, judged = answer(request, message, model.filter, setup.x_spam)
        verdict = judged.verdict
        return (_DONE, (verdict.verdict, verdict.probability, verdict.reason)), reply
    except RefusedError as error:
        return (_REFUSED, (error.code, str(error))), b""
    except NbspamError as error:
        return (_FAILED, str(error)), b""
    except MemoryError:
        return (_REFUSED, (TEMPORARY, "(it takes too much memory)")), b""
    except Exception as error:  # noqa: BLE001 (a message that fails must not end the process)
        return (_BUG, f"{type(error).__name__}: {error}"), b""
