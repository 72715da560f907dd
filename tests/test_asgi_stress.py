"""Eight threads ask two server processes of one model, and teach with every tenth request."""

import itertools
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import quantiles

import pytest

import nbspam

httpx = pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("starlette", reason="starlette is not installed")

ROOT = Path(__file__).parents[1]
THREADS = 8
SEEN_WITHIN = 1.0  # seconds


@contextmanager
def server(model):
    """Yield the address of a process that serves a model."""
    command = [sys.executable, "-m", "uvicorn", "nbspam.asgi:app", "--port", "0"]
    env = os.environ | {"NBSPAM_MODEL": str(model), "NBSPAM_TOKEN": "secret"}
    with subprocess.Popen(
        [*command, "--no-access-log"], env=env, cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            lines = (re.search(r"running on (http://[\d.:]+)", line) for line in process.stderr)
            yield next(found[1] for found in lines if found)
            process.terminate()
            assert "Traceback" not in process.stderr.read()
        finally:
            process.kill()


class Stress:
    """What the threads have done."""

    def __init__(self, addresses, learned, end):
        self.addresses, self.learned, self.end = addresses, learned, end
        self.numbers = itertools.count()
        self.lock = threading.Lock()
        self.answered, self.delays = [], []  # seconds

    def run(self, _):
        headers = {"Authorization": "Bearer secret"}
        with ExitStack() as stack:
            clients = [
                stack.enter_context(httpx.Client(base_url=a, headers=headers, timeout=30))
                for a in self.addresses
            ]
            for n in self.numbers:
                if n > 40 and time.monotonic() > self.end:
                    break
                client = clients[n % len(clients)]
                if n % 10 == 0:
                    self.teach(client, clients, n)
                else:
                    began = time.monotonic()
                    answer = client.post("/classify", json={"message": f"win a prize, {n} now"})
                    assert answer.json()["verdict"] in ("spam", "ham", "unsure")
                    self.answered.append(time.monotonic() - began)

    def teach(self, client, clients, n):
        word = "".join(chr(ord("a") + int(digit)) for digit in str(n))
        lesson = {"message": f"lesson {word} for {word}s", "label": ("ham", "spam")[n % 3 == 0]}
        answer = client.post("/learn", json=lesson)
        assert answer.json() == {"learned": 1, "moved": 0, "unchanged": 0}
        with self.lock:
            self.learned += 1
            learned = self.learned
        began = time.monotonic()
        for each in clients:
            while sum(each.get("/health").json()["messages"].values()) < learned:
                assert time.monotonic() - began < SEEN_WITHIN
        self.delays.append(time.monotonic() - began)


@pytest.mark.parametrize("seconds", [1, pytest.param(60, marks=pytest.mark.long)])
def test_every_process_sees_every_lesson_within_a_second(tmp_path, seconds):
    model = tmp_path / "model.json"
    spam_filter = nbspam.train(ROOT / "sample_data" / "fresh.tsv")
    spam_filter.save(model)
    before = sum(spam_filter.metadata.learned.messages)
    with server(model) as one, server(model) as other, ThreadPoolExecutor(THREADS) as pool:
        stress = Stress([one, other], before, time.monotonic() + seconds)
        list(pool.map(stress.run, range(THREADS)))
    with nbspam.open(model) as opened:
        assert sum(opened.metadata.learned.messages) == stress.learned > before
    for name, values in (("verdicts", stress.answered), ("seen", stress.delays)):
        cuts = quantiles(values, n=100, method="inclusive")
        print(
            f"{name}: {len(values):,}; median {cuts[49]:.4f} s, 99 % {cuts[98]:.4f} s,"
            f" longest {max(values):.4f} s"
        )
