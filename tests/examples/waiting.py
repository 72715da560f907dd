"""Waiting for what another process does, however busy the machine is."""

import array
import fcntl
import termios
import time


def wait_until(condition, seconds=60.0):
    """Wait until a function returns something true."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def _number(fd, request):
    found = array.array("i", [0])
    fcntl.ioctl(fd, request, found)
    return found[0]


def unread(pipe):
    """Return how many bytes are in a pipe."""
    return _number(pipe, termios.FIONREAD)


def unsent(sock):
    """Return whether the other end has not read all that was sent."""
    return _number(sock, termios.TIOCOUTQ)
