"""How much of the server one client, and all clients together, may use; and memory in general."""

import ctypes
import os
import resource
from contextlib import suppress
from typing import NamedTuple

# Bytes.  Larger messages share a room in memory and are read in a process of their own.  The
# costliest shapes known keep the interpreter for 20 to 35 ms with 128 KiB, 40 to 70 with 256 KiB.
# Of the 6,047 mails of SpamAssassin's corpus 5 are larger.
LARGE = 128 << 10

# Allocations of this size go back to the system when they are freed.  glibc raises its limit to
# 32 MiB by itself, and keeps the memory: after 100 clients that hung up in the middle of 31 MiB,
# 40 at a time, the server held 393 MB, and 44 MB with this.
_MMAP_THRESHOLD = 1 << 20  # bytes
_ARENAS = 2  # heaps that threads share; each keeps what was freed in it
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # their numbers in glibc's malloc.h


class Limits(NamedTuple):
    """Sizes, numbers and times that bound what clients may use."""

    # Bytes of a message, as sent and decompressed; twice what the reader looks at.
    max_size: int = 32 << 20
    timeout: float = 60.0  # seconds for a client to send its request, and as many to read the reply
    # Clients served at a time; more wait in the system's queue.  As many more may wait for the
    # server with a large message, and as many with a message to learn.
    connections: int = 64
    # Seconds that a client may keep others waiting: for a connection, or for room.
    grace: float = 2.0
    shutdown: float = 10.0  # seconds for clients to finish when the server stops
    retry: float = 1.0  # seconds before accepting again after the system refused to
    learning: float = 30.0  # seconds that a message waits to be learned, or for the model's lock
    reading: float = 60.0  # seconds to read and judge one message
    max_users: int = 1_000  # users' models beside which no client's message makes another

    @property
    def judging_room(self) -> int:
        """Bytes that the large messages of all clients may take together while they are judged."""
        return 3 * self.max_size

    @property
    def learning_room(self) -> int:
        """The same of messages to learn: those that wait for the model must not fill the other."""
        return self.max_size

    @property
    def reading_memory(self) -> int:
        """Bytes for the process that reads large messages.

        With 32 MiB of mail it takes 130 MB, the program itself included.
        """
        return (64 << 20) + 6 * self.max_size


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


def memory_and_time(pid: int) -> tuple[int, float]:
    """Return the bytes of memory that a process has, and its seconds on the processor.

    Zeros where the system does not say.
    """
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123
            memory = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
        return memory, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0, 0.0
