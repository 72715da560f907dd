"""The processes that read messages: the server's side, and what they run.

Reading a message is most of the work, and a pattern that runs over a hostile one keeps Python's
interpreter for a while: 20 ms with 128 KiB, seconds with 30 MB.  So messages go to worker
processes, each to one that is free, and the server only moves bytes.  There is one worker more than
may have long messages, so that short ones do not wait for them.  Large messages, and compressed
ones that may be large, have a pool of one worker; its memory is limited, and it is started with the
first of them.

A worker that takes too long is killed, and one that has died is replaced with the next message.
It begins with the version of the model that the server has open, so that it can be replaced while
the file is damaged, and looks before each message whether there is a newer one.  It ends when the
server has closed the channel, that is, in any case with the server.

Requests and results go through the channel pickled: both ends run the same code as the same user.
"""

import ctypes
import io
import logging
import pickle
import resource
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, nullcontext, suppress
from threading import Semaphore
from typing import Any, cast

from nbspam.errors import NbspamError
from nbspam.serving.answer import Answer, answer, message_to_learn
from nbspam.serving.models import CurrentModel, Setup, UserModels
from nbspam.serving.spamd import SOFTWARE, TEMPORARY, UNUSABLE, RefusedError, Request
from nbspam.tokens.tokenized import TokenizedMessage, Wanted

_logger = logging.getLogger(__name__)

# Those that the server obeys.  Its threads and processes have them blocked.
SIGNALS = signal.SIGTERM, signal.SIGINT, signal.SIGHUP
# Packages are found where the server found them.
_CODE = """
import sys; sys.path[:] = {!a}
from nbspam.serving.pool import run_worker
run_worker({})"""
_PROTOCOL = 5  # of pickle: a message is not copied
# Bytes.  One worker is for messages that are no longer than this, which wait for no other: hostile
# ones take 3 ms with 8 KiB, 10 with 32.
_SHORT = 8 << 10

# Allocations of this size go back to the system when they are freed.  glibc raises its limit to
# 32 MiB by itself, and keeps the memory: after 100 clients that hung up in the middle of 31 MiB,
# 40 at a time, the server held 393 MB, and 44 MB with this.
_MMAP_THRESHOLD = 1 << 20  # bytes
_ARENAS = 2  # heaps that threads share; each keeps what was freed in it
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # their numbers in glibc's malloc.h


class WorkerPool:
    """Worker processes that classify, or tokenize, one message at a time each."""

    def __init__(self, setup: Setup, current: CurrentModel, is_for_large: bool = False) -> None:
        """Start nothing yet.

        current: the model that the server has open.
        is_for_large: whether it is for large messages; then there is one process.
        """
        self._seconds = setup.limits.reading
        n_long = 1 if is_for_large else setup.n_workers  # long messages at a time
        n = n_long + (not is_for_large)
        self._workers = [Worker(setup, current, is_for_large) for _ in range(n)]
        self._free = list(self._workers)
        self._long, self._any = Semaphore(n_long), Semaphore(n)
        self._is_closed = False

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [process.pid for worker in self._workers if (process := worker.process)]

    def start(self) -> None:
        """Start the processes now rather than with their first messages; raises OSError."""
        for worker in self._workers:
            worker.start()

    def classify(self, request: Request) -> Answer:
        """Return the answer to a request, whose body is freed as soon as the process has it.

        Raises RefusedError, NbspamError when the model is damaged.
        """
        return cast(Answer, self._run(request, None))

    def tokenize(self, request: Request, wanted: Wanted) -> TokenizedMessage:
        """Return the message of a request, tokenized to be learned or forgotten; the body stays.

        wanted: the numbers that the model counts.  Raises RefusedError.
        """
        return cast(TokenizedMessage, self._run(request, wanted))

    def close(self) -> None:
        """Kill the processes, and with them what they are reading; `end` frees what they leave."""
        self._is_closed = True
        for worker in self._workers:
            if process := worker.process:
                process.kill()

    def end(self) -> None:
        """Free what the processes leave, except those in use, which `_run` ends."""
        for worker in list(self._free):
            worker.end()

    def _run(self, request: Request, wanted: Wanted | None) -> Any:
        """Return a worker's result, when it is the message's turn; raises its error."""
        with self._long if len(request.body) > _SHORT else nullcontext(), self._any:
            worker = self._free.pop()
            try:
                process = worker.process
                if not self._is_closed and (process is None or process.poll() is not None):
                    worker.start()
                if self._is_closed:  # perhaps since a moment, and `close` has not seen the new one
                    raise RefusedError(TEMPORARY, "(the server stops)")
                pickle.dump((request, wanted), worker.stream, _PROTOCOL)
                worker.stream.flush()
                if wanted is None and isinstance(request.body, bytearray):
                    request.body.clear()
                code, result = pickle.load(worker.stream)
            except BaseException as error:
                worker.end()  # its reply would be taken for the next one's
                if not isinstance(error, OSError | EOFError | pickle.UnpicklingError):
                    raise
                has_ended = not isinstance(error, OSError) or isinstance(error, ConnectionError)
                reason = "the process that reads it has ended" if has_ended else str(error)
                if isinstance(error, TimeoutError):
                    reason = f"it took longer than {self._seconds:g} s"
                if not self._is_closed:
                    _logger.warning(f"gave up on a message ({reason})")
                raise RefusedError(TEMPORARY, f"({reason})") from None
            finally:
                self._free.append(worker)
        if code == UNUSABLE:
            raise NbspamError(result)
        if code == SOFTWARE:
            _logger.warning(f"internal error, {result}; please report it")
            result = result.partition(":")[0]
        if code:
            raise RefusedError(code, result)
        return result


class Worker:
    """One process, or the place for one."""

    process: subprocess.Popen[bytes] | None = None
    stream: io.BufferedRWPair  # to it, and from it

    def __init__(self, setup: Setup, current: CurrentModel, is_for_large: bool) -> None:
        self._setup, self._current, self._is_for_large = setup, current, is_for_large
        self._opened = ExitStack()

    def start(self) -> None:
        """Start it, in place of one that has ended; raises OSError."""
        self.end()
        model = self._current.use()
        handles = model.handles  # of its open files
        ours, theirs = socket.socketpair()
        with theirs:
            ours.settimeout(self._setup.limits.reading)  # for it to read, and to answer
            self._opened.enter_context(ours)
            self.stream = self._opened.enter_context(ours.makefile("rwb"))
            command = [sys.executable, "-c", _CODE.format(sys.path, theirs.fileno())]
            fds, null = [theirs.fileno(), *handles.values()], subprocess.DEVNULL
            self.process = subprocess.Popen(
                command, stdin=null, stdout=null, stderr=null, pass_fds=fds
            )
        pickle.dump((self._setup, handles, self._is_for_large), self.stream)
        self.stream.flush()  # it opens the model now, not with its first message

    def end(self) -> None:
        """Kill it and free what it leaves."""
        process, self.process = self.process, None
        if process:
            process.kill()
            process.wait()
        with suppress(OSError):  # bytes that it has not read
            self._opened.close()


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


def run_worker(descriptor: int) -> None:
    """Answer requests until the channel is closed; descriptor: its number."""
    # Signals to the group are the server's to obey: it finishes what was begun.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    give_back_freed_memory()
    stream = socket.socket(fileno=descriptor).makefile("rwb")
    with suppress(EOFError, OSError, pickle.UnpicklingError):  # the server needs it no longer
        setup, handles, is_for_large = pickle.load(stream)
        if is_for_large:  # with 32 MiB of mail it takes 130 MB, the program itself included
            limit_memory((64 << 20) + 6 * setup.limits.max_size)
        models = setup.of_worker(handles, is_for_large)
        while True:
            pickle.dump(_result(models, setup, *pickle.load(stream)), stream, _PROTOCOL)
            stream.flush()


def _result(
    models: CurrentModel | UserModels, setup: Setup, request: Request, wanted: Wanted | None
) -> tuple[int, object]:
    """Return 0 and the result of a request, or the code of an error and its text."""
    try:
        message = request.message(setup.limits.max_size)
        if wanted:
            return 0, message_to_learn(message, wanted)
        return 0, answer(request, message, models.filter_for(request.user), setup.x_spam)
    except RefusedError as error:
        return error.code, str(error)
    except NbspamError as error:
        return UNUSABLE, str(error)
    except MemoryError:
        return TEMPORARY, "(it takes too much memory)"
    except Exception as error:  # noqa: BLE001 (a message that fails must not end the process)
        return SOFTWARE, f"{type(error).__name__}: {error}"
