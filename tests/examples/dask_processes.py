"""A scheduler and workers of Dask as processes, as people run them."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from waiting import wait_until

ROOT = Path(__file__).parents[2]


class DaskProcesses:
    """`dask scheduler` and `dask worker`s on this machine."""

    def __init__(self, folder):
        self.folder, self.running = folder, {}
        self.env = {**os.environ, "PYTHONPATH": str(ROOT), "NBSPAM_CONFIG": ""}
        line = self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        self.address = line

    def start(self, what, *arguments, env=None, ready=r"Scheduler at: +(tcp://\S+)"):
        log = self.folder / f"{what}-{len(self.running)}.log"
        with log.open("wb") as file:
            command = [sys.executable, "-m", "dask", what, *arguments]
            process = subprocess.Popen(
                command, stderr=file, stdout=file, env={**self.env, **(env or {})}, cwd=self.folder
            )
        self.running[process] = log
        return self._line(process, ready)

    def _line(self, process, pattern):
        def said():
            return self.running[process].read_text(errors="replace")

        wait_until(lambda: re.search(pattern, said()) or process.poll() is not None, said=said)
        assert process.poll() is None, said()
        return re.search(pattern, said())[1]

    def add_worker(self, env=None, cwd=None):
        """Start a worker, without a nanny that would start it again; return its process."""
        arguments = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1"]
        arguments += ["--local-directory", str(self.folder)]
        self.start(
            "worker", self.address, *arguments, env=env, ready=r"(Starting established connection)"
        )
        return list(self.running)[-1]

    def end(self):
        for process in reversed(self.running):
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
