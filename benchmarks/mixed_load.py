#!/usr/bin/env python3
"""The server under everything at once: what becomes of its lessons, and how much memory it takes.

Usage:  python benchmarks/mixed_load.py [--seconds N]

Clients that judge, two that send hostile mail (`hostile.py`) of 32 KiB and 2 MiB, fifty that say
nothing, and two that teach, for N seconds (600).  Then the server is ended, and every message whose
lesson it acknowledged is looked for in the model's ledger.  The memory is that of all its
processes, what they share counted once (PSS), every five seconds.
"""

import argparse
import itertools
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from hostile import CONSTRUCTS, of_size
from serve import ask

SAMPLE = Path(__file__).parents[1] / "sample_data" / "sms.tsv"
NBSPAM = [sys.executable, "-m", "nbspam"]


def request(command: str, body: bytes, fields: str = "") -> bytes:
    """Return a request of the protocol of spamc."""
    return f"{command} SPAMC/1.5\r\nContent-length: {len(body)}\r\n{fields}\r\n".encode() + body


def hostile_client(path: Path, size: int) -> None:
    """Send one hostile mail after the other."""
    bodies = [of_size(make, size) for make in CONSTRUCTS.values()]
    for body in itertools.cycle(bodies):
        with suppress(OSError):
            ask(path, request("PROCESS", body))


def judging_client(path: Path, number: int) -> None:
    """Have one mail after the other judged."""
    for i in itertools.count():
        body = f"From: a@example.com\nSubject: {number} {i}\n\nlunch or a prize {i}\n".encode()
        with suppress(OSError):
            ask(path, request("CHECK", body))


def teacher(path: Path, name: str, told: "multiprocessing.Queue[int]") -> None:
    """Teach one mail after the other; tell how many lessons were acknowledged."""
    fields = f"Message-class: {name}\r\nSet: local\r\n"
    for i in itertools.count():
        body = f"Message-ID: <{name}{i}@example.com>\nSubject: x\n\n{name} lesson w{i}\n".encode()
        with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(request("TELL", body, fields))
            reply = b"".join(iter(lambda: client.recv(1 << 16), b""))
            if b"DidSet: local" in reply:
                told.put(i)
        time.sleep(0.05)


def memory(pid: int) -> float:
    """Return the memory in MiB of a process and all beneath it."""
    total = 0.0
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) / 1024
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += sum(memory(int(child)) for child in (task / "children").read_text().split())
    return total


def main() -> None:
    """Run the load, and print what became of the lessons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    seconds = parser.parse_args().seconds
    work = Path(tempfile.mkdtemp())
    model, path = work / "model.json", work / "socket"
    subprocess.run([*NBSPAM, "train", "-q", "-m", model, SAMPLE], check=True)
    before = json.loads(
        subprocess.check_output([*NBSPAM, "model", "info", "-m", model, "--format", "json"])
    )["remembered"]
    options = ["--tell", "--workers", "2", "--timeout", "30"]
    server = subprocess.Popen(
        [*NBSPAM, "serve", "-q", "-m", model, "--socket", path, *options],
        env=os.environ | {"NBSPAM_CONFIG": ""},
    )
    while not path.exists():
        time.sleep(0.05)
    told: multiprocessing.Queue[int] = multiprocessing.Queue()
    clients = [
        *((hostile_client, (path, size)) for size in (32 << 10, 2 << 20)),
        *((judging_client, (path, number)) for number in range(2)),
        *((teacher, (path, name, told)) for name in ("spam", "ham")),
    ]
    processes = [multiprocessing.Process(target=f, args=a, daemon=True) for f, a in clients]
    for process in processes:
        process.start()
    idle = []
    most, acknowledged, ends = 0.0, 0, time.monotonic() + seconds
    while time.monotonic() < ends:
        if not idle or int(time.monotonic()) % 30 < 5:
            idle = [socket.socket(socket.AF_UNIX) for _ in range(50)]
            for one in idle:
                with suppress(OSError):
                    one.connect(str(path))
        time.sleep(5)
        most = max(most, memory(server.pid))
        while not told.empty():
            told.get()
            acknowledged += 1
    for process in processes[-2:]:
        process.terminate()
        process.join()
    while not told.empty():
        told.get()
        acknowledged += 1
    for process in processes:
        process.terminate()
    server.terminate()
    server.wait()
    info = subprocess.check_output([*NBSPAM, "model", "info", "-m", model, "--format", "json"])
    learned = json.loads(info)["remembered"] - before
    print(f"acknowledged {acknowledged:,}, in the model {learned:,}; most memory {most:.0f} MiB")


if __name__ == "__main__":
    main()
