"""Headless Chromium, driven through its debugging pipe: no package, no port."""

import fcntl
import json
import os
import shutil

PROGRAM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
_OPTIONS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --remote-debugging-pipe"
)
_COMMANDS, _ANSWERS = 3, 4  # the pipe's file descriptors in Chromium


class Browser:
    """A page at a time."""

    def __init__(self, folder):
        """folder: for Chromium's profile."""
        reader, self._commands = self._pipe()
        self._answers, writer = self._pipe()
        actions = [(os.POSIX_SPAWN_OPEN, n, os.devnull, os.O_RDWR, 0) for n in (1, 2)]
        actions += [(os.POSIX_SPAWN_DUP2, reader, _COMMANDS)]
        actions += [(os.POSIX_SPAWN_DUP2, writer, _ANSWERS)]
        command = [PROGRAM, *_OPTIONS.split(), f"--user-data-dir={folder}"]
        self._child = os.posix_spawn(PROGRAM, command, os.environ, file_actions=actions)
        os.close(reader)
        os.close(writer)
        self._sent, self._received, self._session = 0, b"", None
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self._call("Page.enable")

    @staticmethod
    def _pipe():
        """Return a pipe whose ends do not take the numbers that Chromium's have."""
        ends = os.pipe()
        moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
        for end in ends:
            os.close(end)
        return moved

    def _read(self):
        while b"\0" not in self._received:
            data = os.read(self._answers, 1 << 20)
            assert data, "Chromium has ended"
            self._received += data
        message, _, self._received = self._received.partition(b"\0")
        return json.loads(message)

    def _call(self, method, **params):
        self._sent += 1
        request = {"id": self._sent, "method": method, "params": params}
        if self._session:
            request["sessionId"] = self._session
        os.write(self._commands, json.dumps(request).encode() + b"\0")
        while (answer := self._read()).get("id") != self._sent:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def look(self, scheme, width):
        """Show the open page in a window; scheme: light or dark; width: CSS pixels."""
        size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
        self._call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": scheme}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def show(self, path):
        """Open a page."""
        self._call("Page.navigate", url=path.resolve().as_uri())
        while self._read().get("method") != "Page.loadEventFired":
            pass

    def value_of(self, expression):
        """Return the value of a JavaScript expression, which a page's policy does not forbid."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"]["value"]

    def close(self):
        """End Chromium."""
        self._session = None
        self._call("Browser.close")
        os.waitpid(self._child, 0)
        os.close(self._commands)
        os.close(self._answers)
