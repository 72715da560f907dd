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
from contextlib import ExitStack, nullcontext, suppress
from threading import Semaphore
from typing import IO, Any

from nbspam.errors import NbspamError
from nbspam.serving.answer import Answer, answer, message_to_learn
from nbspam.serving.clients import Say
from nbspam.serving.models import CurrentModel, Handles, Setup, UserModels
from nbspam.serving.spamd import SOFTWARE, TEMPORARY, UNUSABLE, RefusedError, Request
from nbspam.tokens.tokenized import Numbers, TokenizedMessage, Wanted

# Those that the server heeds.  Its threads and processes have them blocked.
SIGNALS = signal.SIGTERM, signal.SIGINT, signal.SIGHUP
# Packages are found where the server found them, and the setup is made anew as it is printed.
_CODE = """
import sys; sys.path[:] = {!a}
from math import inf; from pathlib import PosixPath
from nbspam.serving.judges import be_judge
from nbspam.serving.models import Limits, Setup, UserFiles
be_judge(*{!a})"""
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


class Judges:
    """Processes that judge, or tokenize, one message at a time each."""

    def __init__(
        self, setup: Setup, current: CurrentModel, say: Say, are_for_large: bool = False
    ) -> None:
        """Start nothing yet.

        current: the model that the server has open.  say: tells what is wrong.
        are_for_large: whether it is for large messages; then there is one process.
        """
        self._setup, self._say = setup, say
        n_long = 1 if are_for_large else setup.n_workers  # long messages at a time
        n = n_long + (not are_for_large)
        self._all = [_Judge(setup, current, are_for_large) for _ in range(n)]
        self._what = "large messages" if are_for_large else "messages"
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
            judge.start()

    def judge(self, request: Request) -> Answer:
        """Return the answer to a request, whose body is freed as soon as the process has it.

        Raises RefusedError, NbspamError when the model is damaged.
        """
        found, reply = self._ask(request, None)
        return Answer(reply, *found)

    def tokenize(self, request: Request, wanted: Wanted) -> TokenizedMessage:
        """Return the message of a request, tokenized to be learned or forgotten; the body stays.

        wanted: the numbers that the model counts.  Raises RefusedError.
        """
        (digest, times, traits, perhaps), content = self._ask(request, wanted)
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

    def _ask(self, request: Request, wanted: Wanted | None) -> tuple[Any, bytes]:
        """Return what a process replies, when it is the message's turn; raises its error."""
        with self._long if len(request.body) > _SHORT else nullcontext(), self._any:
            judge = self._free.pop()
            try:
                process = judge.process
                if not self._is_closed and (process is None or process.poll() is not None):
                    judge.start()
                if self._is_closed:  # perhaps since a moment, and `close` has not seen the new one
                    raise RefusedError(TEMPORARY, "(the server stops)")
                _send(judge.channel, (request._replace(body=b""), wanted), request.body)
                if wanted is None and isinstance(request.body, bytearray):
                    request.body.clear()
                (code, found), content = _receive(judge.stream)
            except BaseException as error:
                judge.end()  # its reply would be taken for the next one's
                if not isinstance(error, OSError | EOFError):
                    raise
                has_died = isinstance(error, ConnectionError | EOFError)
                said = "it has ended" if has_died else error
                said = f"the process that reads {self._what} failed ({said}); a new one is started"
                why = "(the process that reads it has ended)"
                if isinstance(error, TimeoutError):
                    seconds = f"{self._setup.limits.reading:g} s"
                    said = f"gave up on a message after {seconds}"
                    why = f"(it took longer than {seconds})"
                if not self._is_closed:
                    self._say(said)
                raise RefusedError(TEMPORARY, why) from None
            finally:
                self._free.append(judge)
        if code == UNUSABLE:
            raise NbspamError(found)
        if code == SOFTWARE:
            self._say(f"internal error, {found}; please report it")
            found = found.partition(":")[0]
        if code:
            raise RefusedError(code, found)
        return found, content


class _Judge:
    """One process, or the place for one."""

    process: subprocess.Popen[bytes] | None = None
    channel: socket.socket
    stream: IO[bytes]  # what it says

    def __init__(self, setup: Setup, current: CurrentModel, is_for_large: bool) -> None:
        self._setup, self._current, self._is_for_large = setup, current, is_for_large
        self._opened = ExitStack()

    def start(self) -> None:
        """Start it, in place of one that has ended; raises OSError."""
        self.end()
        model = self._current.use()
        handles = model.handles  # of its open files
        ours, theirs = socket.socketpair()
        self.channel = self._opened.enter_context(ours)
        self.stream = self._opened.enter_context(ours.makefile("rb"))
        ours.settimeout(self._setup.limits.reading)  # for it to read, and to answer
        with theirs:
            told = theirs.fileno(), self._setup, handles, self._is_for_large
            code = _CODE.format(sys.path, told)
            self.process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), *handles.values()],
            )

    def end(self) -> None:
        """Kill it and free what it leaves."""
        process, self.process = self.process, None
        if process:
            process.kill()
            process.wait()
        self._opened.close()


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


def be_judge(number: int, setup: Setup, handles: Handles, is_for_large: bool) -> None:
    """Do tasks until the channel is closed.

    number: its descriptor.  handles: of the open files of the model to begin with.
    """
    # Signals to the group are the server's to obey: it finishes what was begun.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    give_back_freed_memory()
    channel = socket.socket(fileno=number)
    stream = channel.makefile("rb")
    with suppress(EOFError, OSError):  # the server needs it no longer
        if is_for_large:  # with 32 MiB of mail it takes 130 MB, the program itself included
            limit_memory((64 << 20) + 6 * setup.limits.max_size)
        models = setup.of_worker(handles, is_for_large)
        while True:
            task, body = _receive(stream)
            reply, content = _reply(task, body, models, setup)
            del task, body
            _send(channel, reply, content)
            del reply, content


def _reply(
    task: Any, body: bytes, models: CurrentModel | UserModels, setup: Setup
) -> tuple[Any, bytes]:
    """Return the reply to a task: 0 and what was found, or the code of an error and its text."""
    try:
        (command, version, _, *fields), wanted = task
        request = Request(command, tuple(version), body, *fields)
        message = request.message(setup.limits.max_size)
        if wanted:
            found = message_to_learn(message, Wanted(*wanted))
            times, traits, perhaps = found.numbers
            content = "\n".join(found.tokens).encode("utf-8", "surrogatepass")
            return (0, (found.digest, times, traits, sorted(perhaps))), content
        spam_filter = models.use(request.user).filter
        reply, *verdict = answer(request, message, spam_filter, setup.x_spam)
        return (0, verdict), reply
    except RefusedError as error:
        return (error.code, str(error)), b""
    except NbspamError as error:
        return (UNUSABLE, str(error)), b""
    except MemoryError:
        return (TEMPORARY, "(it takes too much memory)"), b""
    except Exception as error:  # noqa: BLE001 (a message that fails must not end the process)
        return (SOFTWARE, f"{type(error).__name__}: {error}"), b""
