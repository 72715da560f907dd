#!/usr/bin/env python3
"""How time and memory of training grow with messages and with vocabulary.

Usage:  python benchmarks/growth.py [--most 1000000] [--work DIR] [--index FILE]

With --index, the first 1,000, 3,000, 10,000 and so on mails of a TREC index are learned, by
bogofilter too if it is installed.  Without, the rows are invented: words of syllables, as frequent
as Zipf's law has it, 15 a row.  Twice: with a vocabulary that is the same for all sizes, and with
one that grows with them.  It prints seconds, and the peak memory of the largest process.
"""

import argparse
import itertools
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SYLLABLES = "ba ko ri ten mul sa vo pel dri ga nu fi cho lar mi zu".split()
WORDS = 15
NBSPAM = [sys.executable, "-m", "nbspam"]
TIMED = (
    "import resource, subprocess, sys, time; t = time.time();"
    "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
    "u = resource.getrusage(resource.RUSAGE_CHILDREN);"
    "print(time.time() - t, u.ru_utime + u.ru_stime, u.ru_maxrss / 1024)"
)


def write_rows(path: Path, n: int, vocabulary: int) -> None:
    """Write n labelled rows of words out of so many."""
    chance = random.Random(1)
    words = [
        "".join(chance.choices(SYLLABLES, k=1 + i % 4)) + str(i % 9) for i in range(vocabulary)
    ]
    weights = list(itertools.accumulate(1 / (i + 10) for i in range(vocabulary)))
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, n, 1000):
            drawn = iter(chance.choices(words, cum_weights=weights, k=1000 * WORDS))
            for i in range(start, min(start + 1000, n)):
                row = list(itertools.islice(drawn, WORDS))
                label = "spam" if i % 7 == 0 else "ham"
                if label == "spam":
                    row[:3] = [f"{word}s" for word in row[:3]]
                file.write(f"{label}\t{' '.join(row)}\n")


def train(table: Path, model: Path, *options: str) -> tuple[float, float, float, int]:
    """Return wall and CPU seconds, peak MiB and tokens."""
    command = [sys.executable, "-c", TIMED, *NBSPAM, "train", "--replace", *options]
    command += ["-m", model, table]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wall, cpu, memory = map(float, done.stdout.split())
    head = model.open(encoding="utf-8").read(1 << 20)
    found = re.search(r'"derived": \{"tokens": (\d+)', head)
    assert found
    return wall, cpu, memory, int(found[1])


def mails(index: Path, most: int, work: Path | None) -> None:
    """Print a row for each number of mails, up to `most`."""
    lines = index.read_text(encoding="utf-8").splitlines()
    files = [(line.split()[0], index.parent / line.split(maxsplit=1)[1]) for line in lines]
    has_peer = shutil.which("bogofilter") is not None
    print(
        "| mails | tokens | s | CPU s | peak MiB | bogofilter s | its CPU s | ratio | CPU ratio |"
    )
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for n in (1_000, 3_000, 10_000, 20_000, 40_000, 75_000):
        if n > min(most, len(files)):
            break
        with tempfile.TemporaryDirectory(dir=work) as name:
            some = Path(name) / "index"
            some.write_text("".join(f"{label} {path.resolve()}\n" for label, path in files[:n]))
            wall, cpu, memory, tokens = train(some, Path(name) / "model.json", "--outside")
            row = f"| {n:,} | {tokens:,} | {wall:.1f} | {cpu:.1f} | {memory:.0f} |"
            if has_peer:
                theirs, their_cpu = bogofilter(files[:n], Path(name))
                row += f" {theirs:.1f} | {their_cpu:.1f} |"
                row += f" {wall / theirs:.2f} | {cpu / their_cpu:.2f} |"
            print(row, flush=True)


def bogofilter(files: list[tuple[str, Path]], work: Path) -> tuple[float, float]:
    """Return wall and CPU seconds in which bogofilter learns mails."""
    wall = cpu = 0.0
    for label, sign in (("ham", "-n"), ("spam", "-s")):
        names = "".join(f"{path}\n" for of, path in files if of == label)
        command = [sys.executable, "-c", TIMED, "bogofilter", "-d", work, sign, "-b"]
        done = subprocess.run(command, input=names, capture_output=True, text=True, check=True)
        seconds = list(map(float, done.stdout.split()))
        wall, cpu = wall + seconds[0], cpu + seconds[1]
    return wall, cpu


def main() -> None:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--index", type=Path)
    chosen = parser.parse_args()
    if chosen.index:
        mails(chosen.index, chosen.most, chosen.work)
        return
    print("| messages | tokens | s | CPU s | peak MiB | CPU ms a message |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=chosen.work) as name:
        table, model = Path(name) / "rows.tsv", Path(name) / "model.json"
        for grows in (False, True):
            n = 1_000
            while n <= chosen.most:
                write_rows(table, n, n // 2 if grows else 500)
                wall, cpu, memory, tokens = train(table, model)
                each = 1000 * cpu / n
                print(
                    f"| {n:,} | {tokens:,} | {wall:.1f} | {cpu:.1f} | {memory:.0f} | {each:.2f} |",
                    flush=True,
                )
                n *= 10


if __name__ == "__main__":
    main()
