#!/usr/bin/env python3
"""Training on a cluster of this machine's processes, against `-j`: time, CPU, memory, bytes.

Usage:  python benchmarks/scale.py [--rows 250000 --rows 1000000] [--pairs 2] [--workers 2]
                                   [--vocabulary 500] [--work DIR]

The rows are those of growth.py.  Each pair is `train -j N` and `train --dask local:N`, one after
the other, so that whatever else the machine does slows both; the models must have the same bytes.
It prints seconds, CPU seconds of all processes, and the peak MiB of the process that was started
and of the largest of its children.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
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


def measured(*arguments: object) -> Measured:
    """Run nbspam, and return what it took."""
    before, began = os.times(), time.monotonic()
    command = [sys.executable, "-m", "nbspam", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
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


def main() -> None:
    """Print a row for each command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, action="append")
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=500)
    parser.add_argument("--work", type=Path)
    chosen = parser.parse_args()
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
