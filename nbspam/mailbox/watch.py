"""Sorting mail as it comes: waiting for it, and coming back after a lost connection."""

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from nbspam.errors import AwayError, LockedError
from nbspam.imap.account import Account
from nbspam.imap.connection import Connection

# Seconds after which IDLE is begun again, at the latest.  RFC 2177 asks for less than 29 minutes,
# routers forget a silent connection after 5, and other folders than the first are looked at then.
_IDLE_LIMIT = 240.0
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 900.0  # seconds before the next attempt; each is twice as long


class Stop:
    """Whether the user or the system has asked to end, and a way to wait for that."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self._is_asked = False

    def ask(self) -> None:
        """Ask to end."""
        self._is_asked = True
        os.write(self._write, b".")

    def is_asked(self) -> bool:
        """Return whether it was asked for."""
        return self._is_asked

    def wait(self, seconds: float, descriptor: int | None = None) -> bool:
        """Wait until it is asked for, there is something to read, or so much time has passed.

        Returns whether there is something to read from the descriptor.
        """
        both = [self._read] if descriptor is None else [self._read, descriptor]
        return descriptor in select.select(both, [], [], seconds)[0]

    def close(self) -> None:
        """Close what is waited on."""
        os.close(self._read)
        os.close(self._write)


@contextmanager
def stop_at_signals() -> Iterator[Stop]:
    """Take SIGTERM and SIGINT as the wish to end when the message at hand is done."""
    stop = Stop()

    def ask(_: int, __: FrameType | None) -> None:
        stop.ask()

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        stop.close()


def watch(
    account: Account,
    folder: str,
    sort: Callable[[Connection], None],
    stop: Stop,
    interval: float,
    say: Callable[[str], None],
    first_pause: float = _FIRST_PAUSE,
) -> None:
    """Sort the mail of an account whenever some has come, until `stop` is asked.

    folder: the one in which mail arrives.  sort: sorts what has come, once.
    interval: seconds between two looks where the server has no IDLE.
    say: called with a sentence when the connection is lost, and when it is there again.
    Raises AccountError where to try again would not help, such as for a wrong password.
    """
    pause = first_pause
    while not stop.is_asked():
        try:
            with Connection(account) as connection:
                while not stop.is_asked():
                    before = connection.select(folder, readonly=True).uidnext
                    _sort(connection, sort, say)
                    if pause != first_pause:
                        say(f"{account.server}: connected again")
                    pause = first_pause
                    # What came meanwhile is announced to no IDLE that begins later.
                    if connection.select(folder, readonly=True).uidnext == before:
                        _wait(connection, stop, interval)
        except AwayError as error:
            if stop.is_asked():
                return
            problem = error.problem.rpartition(";")[0] or error.problem
            say(f"{problem}; next attempt in {pause:.0f} s")
            stop.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _sort(
    connection: Connection, sort: Callable[[Connection], None], say: Callable[[str], None]
) -> None:
    try:
        sort(connection)
    except LockedError as error:  # another run is at it; the next time is soon enough
        say(str(error))


def _wait(connection: Connection, stop: Stop, interval: float) -> None:
    """Wait until mail may have come to the open folder, or it is time to look."""
    if not connection.can("IDLE"):
        stop.wait(interval)
        if not stop.is_asked():
            connection.noop()
        return
    connection.idle()
    stop.wait(_IDLE_LIMIT, connection.fileno())
    connection.end_idle()
