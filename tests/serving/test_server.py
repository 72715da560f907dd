"""What the server does around its clients."""

import asyncio
import os
import signal
import threading

from nbspam.serving.server import serve


class Watched:
    """A server that has no clients, and counts how often it was asked to reopen its model."""

    shares = False

    def __init__(self):
        self.n_reloads = 0

    async def run(self, _, ready, __):
        ready()
        while not self.n_reloads:
            await asyncio.sleep(0.001)

    def reload(self):
        self.n_reloads += 1


def test_signals_are_heeded_once_it_says_that_it_serves():
    """Who waits for that and sends SIGHUP would end it otherwise."""
    server, handlers = Watched(), []

    def say_start():
        assert threading.current_thread() is threading.main_thread()
        handlers.extend(signal.getsignal(n) for n in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT))
        assert signal.SIG_DFL not in handlers
        os.kill(os.getpid(), signal.SIGHUP)

    before = signal.getsignal(signal.SIGHUP)
    serve(server, [], say_start=say_start)
    assert server.n_reloads == 1
    assert signal.getsignal(signal.SIGHUP) is before
