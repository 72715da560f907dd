#!/usr/bin/env python3
"""What learning into a large model costs: one message, a thousand, and mail that is known already.

Usage:  python benchmarks/update.py [--tokens N] [--runs N] [--mails N] [--work DIR]

Needs no corpus: the model is of invented tokens (1,000,000 are 25 MB) and the mails of words out of
it.  Prints ratios first: each is the median of ratios of neighbouring runs, so that what else the
machine does touches both sides alike.
"""

import argparse
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nbspam.learning.settings import TrainingSettings, empty_metadata
from nbspam.store.lookup import Model
from nbspam.store.metadata import with_counts
from nbspam.store.model_file import write_model

LETTERS = "abcdefghijklmnopqrstuvwxyz"
HAM, SPAM = 40_000, 35_000


def make_model(path: Path, n: int) -> list[str]:
    """Write a model of so many tokens and 75,000 messages; return the tokens."""
    chance = random.Random(1)
    words: set[str] = set()
    while len(words) < n:
        words.add("".join(chance.choices(LETTERS, k=chance.randint(4, 14))))
    counts = {}
    for word in sorted(words):
        total = min(30_000, int(chance.paretovariate(0.8)))  # most words are rare
        ham = chance.randint(0, total)
        counts[word] = (ham, total - ham)
    empty = empty_metadata(("ham", "spam"), "spam", TrainingSettings())
    metadata = empty._replace(learned=empty.learned._replace(messages=(HAM, SPAM)))
    learned = sorted(
        (f"{chance.getrandbits(128):032x}", (1, 0) if i < HAM else (0, 1))
        for i in range(HAM + SPAM)
    )
    write_model(path, Model(with_counts(metadata, counts), counts, dict(learned)))
    return list(counts)


def make_mail(number: int, words: list[str]) -> bytes:
    """Return a mail of 250 words, 40 of them new."""
    chance = random.Random(number)
    text = chance.sample(words, 210) + [f"new{number}word{i}" for i in range(40)]
    lines = [" ".join(text[i : i + 12]) for i in range(0, len(text), 12)]
    return (
        f"From: sender{number}@example.org\nTo: me@example.com\n"
        f"Message-ID: <{number}@example.org>\nSubject: {text[0]} {text[1]}\n\n"
        + "\n".join(lines)
        + "\n"
    ).encode()


def seconds(*arguments: object, message: bytes = b"", code: int = 0) -> float:
    """Return how long a run of nbspam takes."""
    command = [sys.executable, "-m", "nbspam", *map(str, arguments)]
    started = time.perf_counter()
    done = subprocess.run(command, input=message, capture_output=True)
    if done.returncode != code:
        raise SystemExit(f"{command} failed: {done.stderr.decode()}")
    return time.perf_counter() - started


def ratio(name: str, pairs: list[tuple[float, float]], goal: str) -> None:
    """Print the median ratio of pairs of seconds."""
    found = statistics.median(a / b for a, b in pairs)
    first, second = (1000 * statistics.median(side) for side in zip(*pairs, strict=True))
    print(f"{name:62} {found:6.2f}   {goal:12} {first:9.0f} ms  {second:9.0f} ms")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--mails", type=int, default=3_000)
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        measure(Path(folder), options.tokens, options.runs, options.mails)


def measure(work: Path, tokens: int, runs: int, mails: int) -> None:
    """Measure in a folder that is the measurement's own."""
    model = work / "model.json"
    words = make_model(model, tokens)
    learn = ("train", "--update", "-q", "--ham")
    size = model.stat().st_size / 1e6
    print(
        f"a model of {tokens:,} tokens, {size:.0f} MB; medians of {runs} runs; ratio, goal, times"
    )

    one, again, forgotten = [], [], []
    for number in range(runs):
        message = make_mail(number, words)
        classify = seconds("classify", "-m", model, message=message)
        one.append((seconds(*learn, "-", "-m", model, message=message), classify))
        again.append((seconds(*learn, "-", "-m", model, message=message), classify))
        forgotten.append((seconds("forget", "-m", model, message=message), classify))
    ratio("learn one message, against classify it", one, "<= 3")
    ratio("learn it again, against classify", again, "about 1")
    ratio("forget it, against classify", forgotten, "<= 3")

    few = max(3, runs // 4)
    batches, known = [], []
    for run in range(few):
        folder = work / f"maildir{run}" / "cur"
        folder.mkdir(parents=True)
        for name in ("new", "tmp"):
            (folder.parent / name).mkdir()
        for i in range(1_000):
            mail = make_mail(10_000 + 1_000 * run + i, words)
            (folder / f"{i}.host:2,S").write_bytes(mail)
        reading = seconds("classify", "-j", 1, "-m", model, folder.parent)
        batches.append((seconds(*learn, folder.parent, "-j", 1, "-m", model), reading))
        known.append((seconds(*learn, folder.parent, "-j", 1, "-m", model), reading))
    each = [(total / 1_000, single) for (total, _), (single, _) in zip(batches, one, strict=False)]
    ratio("learn 1,000 at once, a message, against learn one", each, "far below 1")
    ratio("learn 1,000 at once, against classify them", batches, "")
    ratio("know 1,000 again, against classify them", known, "")

    folder = work / "known" / "cur"
    folder.mkdir(parents=True)
    for name in ("new", "tmp"):
        (folder.parent / name).mkdir()
    for i in range(mails):
        (folder / f"{i}.host:2,S").write_bytes(make_mail(100_000 + i, words))
    nightly = (*learn, folder.parent, "--seen", "-j", 1)
    seconds(*nightly, "-m", model)
    pairs = []
    for _ in range(few):
        # Into a folder that is none: they are read, and there it ends.
        nowhere = work / "none" / "model.json"
        reading = seconds(*learn, folder.parent, "-j", 1, "-m", nowhere, code=1)
        pairs.append((seconds(*nightly, "-m", model), reading))
    ratio(f"{mails:,} known mails on a Maildir, against reading them", pairs, "about 1")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"most memory of any run: {peak:.0f} MiB")


if __name__ == "__main__":
    main()
