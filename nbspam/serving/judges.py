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

Tasks and replies are pickled; a reply may be an error, which is raised in the server.
"""

import ctypes
import io
import pickle
import resource
import signal
import socket
import subprocess
import sys
from contextlib import nullcontext, suppress
from threading import Semaphore
from typing import Any, NamedTuple

from nbspam.reading.message import parse
from nbspam.serving.answer import Answer, answer
from nbspam.serving.clients import Limits, Say
from nbspam.serving.models import NO_HANDLES, CurrentModel, Handles, ServedModels, UserModels
from nbspam.serving.spamd import TEMPORARY, RefusedError, Request, raised
from nbspam.tokens.tokenized import TokenizedMessage, Wanted, tokenize

# Those that the server heeds.  Its threads and processes have them blocked.
SIGNALS = signal.SIGTERM, signal.SIGINT, signal.SIGHUP
# Packages are found where the server found them.
_CODE = "import sys; sys.path[:] = {!a}; from nbspam.serving.judges import be_judge; be_judge({})"
# Bytes.  One process is for messages that are no longer than this, which wait for no other: hostile
# ones take 3 ms with 8 KiB, 10 with 32.
_SHORT = 8 << 10

# Allocations of this size go back to the system when they are freed.  glibc raises its limit to
# 32 MiB by itself, and keeps the memory: after 100 clients that hung up in the middle of 31 MiB,
# 40 at a time, the server held 393 MB, and 44 MB with this.
_MMAP_THRESHOLD = 1 << 20  # bytes
_ARENAS = 2  # heaps that threads share; each keeps what was freed in it
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # their numbers in glibc's malloc.h


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

    def judge(self, request: Request) -> Answer:
        """Return the answer to a request, whose body is freed as soon as the process has it.

        Raises RefusedError, NbspamError when the model is damaged, or whatever failed.
        """
        answered: Answer = raised(self._ask(request, None))
        return answered

    def tokenize(self, request: Request, wanted: Wanted) -> TokenizedMessage:
        """Return the message of a request, tokenized to be learned or forgotten; the body stays.

        wanted: the numbers that the model counts.  Raises RefusedError.
        """
        tokenized: TokenizedMessage = raised(self._ask(request, wanted))
        return tokenized

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

    def _ask(self, request: Request, wanted: Wanted | None) -> Any:
        """Return what a process replies, when it is the message's turn; it may be an error."""
        with self._long if len(request.body) > _SHORT else nullcontext(), self._any:
            judge = self._free.pop()
            try:
                process = judge.process
                if not self._is_closed and (process is None or process.poll() is not None):
                    judge.start(self._setup, self._current)
                if self._is_closed:  # perhaps since a moment, and `close` has not seen the new one
                    raise RefusedError(TEMPORARY, "(the server stops)")
                _send(judge.stream, (request, wanted))
                if wanted is None:
                    request.body.clear()
                reply = pickle.load(judge.stream)
            except TimeoutError:
                judge.end()
                seconds = f"{self._setup.limits.reading:g} s"
                self._say(f"gave up on a message after {seconds}")
                raise RefusedError(TEMPORARY, f"(it took longer than {seconds})") from None
            except (OSError, EOFError, pickle.UnpicklingError) as error:
                cannot_start = isinstance(error, OSError) and not isinstance(error, ConnectionError)
                judge.end()
                if not self._is_closed:
                    what = "large messages" if self._setup.is_for_large else "messages"
                    reason = error if cannot_start else "it has ended"
                    self._say(
                        f"the process that reads {what} failed ({reason}); a new one is started"
                    )
                raise RefusedError(TEMPORARY, "(the process that reads it has ended)") from None
            except BaseException:  # its reply would be taken for the next one's
                judge.end()
                raise
            finally:
                self._free.append(judge)
        return reply


class _Judge:
    """One process, or the place for one."""

    process: subprocess.Popen[bytes] | None = None
    stream: io.BufferedRWPair  # to it and from it, while there is a process

    def start(self, setup: Setup, current: CurrentModel) -> None:
        """Start it, in place of one that has ended; raises OSError."""
        self.end()
        model = current.use()
        handles = model.handles
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.settimeout(setup.limits.reading)  # for it to read, and to answer
            self.process = subprocess.Popen(
                [sys.executable, "-c", _CODE.format(sys.path, theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), *handles.values()],
            )
            self.stream = ours.makefile("rwb")
        _send(self.stream, setup._replace(handles=handles))

    def end(self) -> None:
        """Kill it and free what it leaves."""
        process, self.process = self.process, None
        if process:
            process.kill()
            process.wait()
            with suppress(OSError):  # some of a task was not sent
                self.stream.close()


def _send(stream: io.BufferedRWPair, what: Any) -> None:
    pickle.dump(what, stream, protocol=5)  # which copies no large bytes
    stream.flush()


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


def be_judge(number: int) -> None:
    """Do tasks until the channel is closed; number: its descriptor."""
    # Signals to the group are the server's to obey: it finishes what was begun.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    give_back_freed_memory()
    with suppress(EOFError, OSError):  # the server needs it no longer
        stream = socket.socket(fileno=number).makefile("rwb")
        setup: Setup = pickle.load(stream)
        if setup.is_for_large:  # with 32 MiB of mail it takes 130 MB, the program itself included
            limit_memory((64 << 20) + 6 * setup.limits.max_size)
        models = setup.models.of_worker(setup.handles, setup.is_for_large)
        while True:
            task = pickle.load(stream)
            reply = _reply(models, setup, *task)
            del task
            _send(stream, reply)
            del reply


def _reply(
    models: CurrentModel | UserModels, setup: Setup, request: Request, wanted: Wanted | None
) -> Answer | TokenizedMessage | Exception:
    """Return the reply to a task, or why there is none."""
    try:
        message = request.message(setup.limits.max_size)
        request.body.clear()
        if wanted is not None:
            return tokenize(parse(message), digest=True, wanted=wanted)
        spam_filter = models.use(request.user).filter
        answered = answer(request, message, spam_filter, setup.x_spam)
        spam_filter.classifier.trim()
        return answered
    except MemoryError:
        return RefusedError(TEMPORARY, "(it takes too much memory)")
    except Exception as error:  # noqa: BLE001 (a message that fails must not end the process)
        return error
