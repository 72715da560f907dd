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

A task and a reply are a line of JSON and bytes: the message, or the reply to the client.
"""

import ctypes
import json
import resource
import signal
import socket
import subprocess
import sys
from contextlib import nullcontext, suppress
from threading import Semaphore
from typing import IO, Any, NamedTuple

from nbspam.errors import NbspamError
from nbspam.reading.message import parse
from nbspam.serving.answer import answer
from nbspam.serving.clients import Limits, Say
from nbspam.serving.models import NO_HANDLES, CurrentModel, Handles, ServedModels, UserModels
from nbspam.serving.spamd import SOFTWARE, TEMPORARY, RefusedError, Request
from nbspam.tokens.tokenized import Numbers, TokenizedMessage, Wanted, tokenize

# Packages are found where the server found them, and the setup is made anew as it is printed.
_CODE = """
import sys; sys.path[:] = {!a}
from math import inf; from pathlib import PosixPath
from nbspam.serving.judges import Limits, ServedModels, Setup, be_judge
be_judge({}, {!a})"""
_SMALL = 64 << 10  # bytes that are copied rather than sent by themselves
# Bytes.  One process is for messages that are no longer than this, which wait for no other: hostile
# ones take 3 ms with 8 KiB, 10 with 32.
_SHORT = 8 << 10

# Allocations of this size go back to the system when they are freed.  glibc raises its limit to
# 32 MiB by itself, and keeps the memory: after 100 clients that hung up in the middle of 31 MiB,
# 40 at a time, the server held 393 MB, and 44 MB with this.
_MMAP_THRESHOLD = 1 << 20  # bytes
_ARENAS = 2  # heaps that threads share; each keeps what was freed in it
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # their numbers in glibc's malloc.h

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
    x_spam: bool = False  # whether messages get SpamAssassin's headers too
    is_for_large: bool = False
    handles: Handles = NO_HANDLES  # of the model's open files


class Judges:
    """Processes that judge, or tokenize, one message at a time each."""

    def __init__(self, setup: Setup, current: CurrentModel, say: Say) -> None:
        """Start nothing yet.

        setup: without handles; if it is for large messages there is one process.
        current: the model that the server has open.  say: tells what is wrong.
        """
        self._setup, self._current, self._say = setup, current, say
        n_long = 1 if setup.is_for_large else setup.models.n_workers  # long messages at a time
        self._all = [_Judge() for _ in range(n_long + (not setup.is_for_large))]
        self._free = list(self._all)
        self._long, self._any = Semaphore(n_long), Semaphore(len(self._all))
        self._is_closed = False

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [process.pid for judge in self._all if (process := judge.process)]

    def start(self) -> None:
        """Start the processes now rather than with their first messages; raises OSError."""
        for judge in self._all:
            judge.start(self._setup, self._current)

    def judge(self, request: Request) -> Judged:
        """Return the reply to a request about a message.

        The body of the request is freed as soon as the process has it.
        Raises RefusedError, NbspamError when the model is damaged.
        """
        fields, reply = self._ask(request, None, request.body)
        return Judged(reply, *fields)

    def tokenize(self, request: Request, wanted: Wanted) -> TokenizedMessage:
        """Return the message of a request, tokenized to be learned or forgotten.

        wanted: the numbers that the model counts.  The body stays.  Raises RefusedError.
        """
        found, content = self._ask(request, wanted, bytes(request.body))
        digest, times, traits, perhaps = found
        tokens = content.decode("utf-8", "surrogatepass").split("\n") if content else []
        numbers = Numbers(times, tuple(traits), frozenset(perhaps))
        return TokenizedMessage("-", None, tokens, digest, numbers=numbers)

    def close(self) -> None:
        """Kill the processes, and with them what they are reading; `end` frees what they leave."""
        self._is_closed = True
        for judge in self._all:
            if process := judge.process:
                process.kill()

    def end(self) -> None:
        """Free what the processes leave; whoever still uses one frees it himself."""
        for judge in list(self._free):
            judge.end()

    def _ask(
        self, request: Request, wanted: Wanted | None, body: bytes | bytearray
    ) -> tuple[Any, bytes]:
        """Return what a process replies, when it is the message's turn.

        wanted: the numbers that the model counts, if the message is to be tokenized only.
        body: of the request; freed as soon as the process has it, if it is a bytearray.
        """
        with self._long if len(body) > _SHORT else nullcontext(), self._any:
            judge = self._free.pop()
            try:
                process = judge.process
                if not self._is_closed and (process is None or process.poll() is not None):
                    judge.start(self._setup, self._current)
                if self._is_closed:  # perhaps since a moment, and `close` has not seen the new one
                    raise RefusedError(TEMPORARY, "(the server stops)")
                _send(judge.channel, (request._replace(body=b""), wanted), body)
                if isinstance(body, bytearray):
                    body.clear()
                (kind, found), content = _receive(judge.stream)
            except TimeoutError:
                judge.end()
                seconds = f"{self._setup.limits.reading:g} s"
                self._say(f"gave up on a message after {seconds}")
                raise RefusedError(TEMPORARY, f"(it took longer than {seconds})") from None
            except (OSError, EOFError) as error:
                has_died = isinstance(error, ConnectionError | EOFError)
                judge.end()
                if not self._is_closed:
                    what = "large messages" if self._setup.is_for_large else "messages"
                    reason = "it has ended" if has_died else error
                    self._say(
                        f"the process that reads {what} failed ({reason}); a new one is started"
                    )
                raise RefusedError(TEMPORARY, "(the process that reads it has ended)") from None
            except BaseException:  # its reply would be taken for the next one's
                judge.end()
                raise
            finally:
                self._free.append(judge)
        if kind == _REFUSED:
            raise RefusedError(*found)
        if kind == _FAILED:
            raise NbspamError(found)
        if kind == _BUG:
            self._say(f"internal error, {found}; please report it")
            raise RefusedError(SOFTWARE, found.partition(":")[0])
        return found, content


class _Judge:
    """One process, or the place for one."""

    process: subprocess.Popen[bytes] | None = None
    channel: socket.socket  # while there is a process
    stream: IO[bytes]  # what it says

    def start(self, setup: Setup, current: CurrentModel) -> None:
        """Start it, in place of one that has ended; raises OSError."""
        self.end()
        model = current.use()
        handles = model.handles
        channel, theirs = socket.socketpair()
        channel.settimeout(setup.limits.reading)  # for it to read, and to answer
        with theirs:
            code = _CODE.format(sys.path, theirs.fileno(), setup._replace(handles=handles))
            try:
                process = subprocess.Popen(
                    [sys.executable, "-c", code],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno(), *handles.values()],
                )
            except BaseException:
                channel.close()
                raise
        self.channel, self.stream = channel, channel.makefile("rb")
        self.process = process

    def end(self) -> None:
        """Kill it and free what it leaves."""
        process, self.process = self.process, None
        if process:
            process.kill()
            process.wait()
            self.stream.close()
            self.channel.close()


def _send(channel: socket.socket, head: Any, body: bytes | bytearray) -> None:
    line = b"%s\n" % json.dumps([head, len(body)], default=bytes.decode).encode()
    if len(body) <= _SMALL:
        channel.sendall(line + body)
    else:
        channel.sendall(line)
        channel.sendall(body)


def _receive(stream: IO[bytes]) -> tuple[Any, bytes]:
    """Return what `_send` has sent; raises EOFError when the channel is closed, or OSError."""
    if not (line := stream.readline()).endswith(b"\n"):
        raise EOFError
    head, n = json.loads(line)
    if len(body := stream.read(n)) < n:
        raise EOFError
    return head, body


# What a process runs


def give_back_freed_memory() -> None:
    """Give large blocks back to the system as soon as they are freed."""
    with suppress(OSError, AttributeError):  # glibc has it
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD)
        library.mallopt(_M_ARENA_MAX, _ARENAS)


def limit_memory(n: int) -> None:
    """Let this process have `n` bytes of data; what needs more raises MemoryError."""
    with suppress(OSError, ValueError):  # a lower limit holds already
        resource.setrlimit(resource.RLIMIT_DATA, (n, n))


def be_judge(number: int, setup: Setup) -> None:
    """Do tasks until the channel is closed; number: its descriptor."""
    # Signals to the group are the server's to obey: it finishes what was begun.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    give_back_freed_memory()
    channel = socket.socket(fileno=number)
    stream = channel.makefile("rb")
    with suppress(EOFError, OSError):  # the server needs it no longer
        if setup.is_for_large:  # with 32 MiB of mail it takes 130 MB, the program itself included
            limit_memory((64 << 20) + 6 * setup.limits.max_size)
        models = setup.models.of_worker(setup.handles, setup.is_for_large)
        while True:
            task, body = _receive(stream)
            reply, content = _reply(task, body, models, setup)
            del task, body
            _send(channel, reply, content)
            del reply, content


def _reply(
    task: Any, body: bytes, models: CurrentModel | UserModels, setup: Setup
) -> tuple[Any, bytes]:
    """Return the reply to a task, whatever happens."""
    try:
        (command, version, _, *fields), wanted = task
        request = Request(command, tuple(version), body, *fields)
        message = request.message(setup.limits.max_size)
        if wanted:
            found = tokenize(parse(message), digest=True, wanted=Wanted(*wanted))
            times, traits, perhaps = found.numbers
            content = "\n".join(found.tokens).encode("utf-8", "surrogatepass")
            return (_DONE, (found.digest, times, traits, sorted(perhaps))), content
        spam_filter = models.use(request.user).filter
        reply, judged = answer(request, message, spam_filter, setup.x_spam)
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
