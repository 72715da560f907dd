#!/usr/bin/env python3
"""Training on a cluster of this machine's processes, against `-j`: time, CPU, memory, bytes.

Usage:  python benchmarks/scale.py [--rows 250000 --rows 1000000] [--pairs 2] [--workers 2]
                                   [--vocabulary 500] [--work DIR]
        python benchmarks/scale.py --same [--work DIR] SOURCE... | --ham=SRC --spam=SRC

The rows are those of growth.py.  Each pair is `train -j N` and `train --dask local:N`, one after
the other, so that whatever else the machine does slows both; the models must have the same bytes.
It prints seconds, CPU seconds of all processes, and the peak MiB of the process that was started
and of the largest of its children.

--same trains on a real corpus with -j 1 and 2, with the kernels of numpy and OpenBLAS for other
processors, with 1, 2 and 4 workers of a scheduler of its own, and once more while a worker is
killed, and another started, every few seconds; it prints the digest of each model.
"""

import argparse
import hashlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from growth import write_rows


class Measured(NamedTuple):
    """What a command took."""

    wall: float
    cpu: float
    driver: float  # MiB
    worker: float


def children_of(pid: int) -> list[int]:
    """Return a process's children and theirs."""
    try:
        threads = Path(f"/proc/{pid}/task").glob("*/children")
        own = [int(child) for path in threads for child in path.read_text().split()]
    except OSError:
        return []
    return own + [each for child in own for each in children_of(child)]


def peak(pid: int) -> float:
    """Return the most MiB that a process has had resident."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        return 0.0


NO_SIMD = "NPY_DISABLE_CPU_FEATURES=X86_V3,X86_V4"
KERNELS = [
    *("OPENBLAS_CORETYPE=" + name for name in ("Nehalem", "Sandybridge", "Haswell", "SkylakeX")),
    *("NPY_DISABLE_CPU_FEATURES=X86_V4", NO_SIMD, f"OPENBLAS_CORETYPE=Nehalem {NO_SIMD}"),
]


def measured(*arguments: object, settings: str = "") -> Measured:
    """Run nbspam, and return what it took; settings: of the environment."""
    before, began = os.times(), time.monotonic()
    command = [sys.executable, "-m", "nbspam", *map(str, arguments)]
    environment = os.environ | dict(pair.split("=") for pair in settings.split())
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    driver = worker = 0.0
    while process.poll() is None:
        driver = max(driver, peak(process.pid))
        worker = max([worker, *map(peak, children_of(process.pid))])
        time.sleep(0.5)
    assert process.returncode == 0
    after, wall = os.times(), time.monotonic() - began
    cpu = (after.children_user + after.children_system) - (
        before.children_user + before.children_system
    )
    return Measured(wall, cpu, driver, worker)


class Scheduler:
    """Dask's scheduler as a process, and workers that may be killed."""

    def __init__(self, folder: Path) -> None:
        """Start a scheduler."""
        self.folder, self.workers = folder, []
        log = folder / "scheduler.log"
        self._process = self._started(log, "scheduler", "--host", "127.0.0.1", "--port", "0")
        while not (found := re.search(r"Scheduler at: +(tcp://\S+)", log.read_text())):
            time.sleep(0.1)
        self.address = found[1]

    def _started(self, log: Path, *arguments: str) -> subprocess.Popen:
        with log.open("wb") as file:
            command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
            return subprocess.Popen(command, stdout=file, stderr=file)

    def add_worker(self) -> None:
        """Start a worker, and wait until it is there."""
        log = self.folder / f"worker{time.monotonic_ns()}.log"
        options = "--no-nanny", "--nthreads", "1", "--local-directory", str(self.folder)
        self.workers.append(self._started(log, "worker", self.address, *options))
        while "Starting established connection" not in log.read_text():
            time.sleep(0.1)

    def kill_first(self) -> None:
        """Kill the oldest worker."""
        worker = self.workers.pop(0)
        worker.kill()
        worker.wait()

    def end(self) -> None:
        """End all."""
        for process in [*self.workers, self._process]:
            process.kill()
            process.wait()


def print_digests(sources: list[str], work: Path | None) -> None:
    """Print the digest of the model of each way to train on a corpus."""
    with tempfile.TemporaryDirectory(dir=work) as name:
        model = Path(name) / "model.json"

        def train(what: str, *how: str, settings: str = "") -> None:
            command = ("train", "-q", "--replace", *how, "-m", model, *sources)
            found = measured(*command, settings=settings)
            digest = hashlib.sha256(model.read_bytes()).hexdigest()[:16]
            print(f"| {what} | {found.wall:.1f} | {digest} |", flush=True)

        print("| how | s | model |\n|---|---|---|")
        for jobs in ("-j1", "-j2"):
            train(jobs, jobs)
        for settings in KERNELS:
            train(settings, "-j2", settings=settings)
        scheduler = Scheduler(Path(name))
        try:
            for n in (1, 2, 4):
                while len(scheduler.workers) < n:
                    scheduler.add_worker()
                train(f"--dask, {n} workers", "--dask", scheduler.address)
            done, killed = threading.Event(), 0

            def kill() -> None:
                nonlocal killed
                while not done.wait(3):
                    scheduler.add_worker()
                    scheduler.kill_first()
                    killed += 1

            killer = threading.Thread(target=kill)
            killer.start()
            try:
                train("--dask, workers killed", "--dask", scheduler.address)
            finally:
                done.set()
                killer.join()
            print(f"\n{killed} workers killed")
        finally:
            scheduler.end()


def main() -> None:
    """Print a row for each command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--same", action="store_true")
    parser.add_argument("--rows", type=int, action="append")
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=500)
    parser.add_argument("--work", type=Path)
    chosen, sources = parser.parse_known_args()
    if chosen.same:
        print_digests(sources, chosen.work)
        return
    n = chosen.workers
    print("| rows | how | s | CPU s | started MiB | largest child MiB |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=chosen.work) as name:
        table = Path(name) / "rows.tsv"
        here, far = Path(name) / "here.json", Path(name) / "far.json"
        for rows in chosen.rows or [250_000, 1_000_000]:
            write_rows(table, rows, chosen.vocabulary)
            walls, cpus = [], []
            for _ in range(chosen.pairs):
                pair = []
                for how, model in ((f"-j{n}", here), (f"--dask=local:{n}", far)):
                    found = measured("train", "-q", "--replace", how, "-m", model, table)
                    pair.append(found)
                    figures = " | ".join(
                        [f"{found.wall:.1f}", f"{found.cpu:.1f}"]
                        + [f"{mib:.0f}" for mib in (found.driver, found.worker)]
                    )
                    print(f"| {rows:,} | {how} | {figures} |", flush=True)
                assert here.read_bytes() == far.read_bytes()
                walls.append(pair[1].wall / pair[0].wall)
                cpus.append(pair[1].cpu / pair[0].cpu)
            ratio = statistics.median(walls), statistics.median(cpus)
            print(f"| {rows:,} | ratio, median | {ratio[0]:.2f} | {ratio[1]:.2f} | | |", flush=True)


if __name__ == "__main__":
    main()
