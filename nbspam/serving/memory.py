"""How much memory a process has and may have, and when it gives freed memory back."""

import ctypes
import os
import resource
from contextlib import suppress

# Allocations of this size go back to the system when they are freed.  glibc raises its limit to
# 32 MiB by itself, and keeps the memory: after 100 clients that hung up in the middle of 31 MiB,
# 40 at a time, the server held 393 MB, and 44 MB with this.
_MMAP_THRESHOLD = 1 << 20  # bytes
_M_MMAP_THRESHOLD = -3  # its number in glibc's malloc.h


def give_back_freed_memory() -> None:
    """Give large blocks back to the system as soon as they are freed."""
    with suppress(OSError, AttributeError):  # glibc has it
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD)


def limit_memory(n: int) -> None:
    """Let this process have `n` bytes of data; what needs more raises MemoryError."""
    with suppress(OSError, ValueError):  # a lower limit holds already
        resource.setrlimit(resource.RLIMIT_DATA, (n, n))


def resident_memory() -> int:
    """Return the bytes of memory that this process has; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
