#!/usr/bin/env python3
"""How time and memory of training grow with messages and with vocabulary.

Usage:  python benchmarks/growth.py [--most 1000000] [--work DIR]

The rows are invented: words of syllables, as frequent as Zipf's law has it, 15 a row.  Twice: with
a vocabulary that is the same for all sizes, and with one that grows with them.  It prints seconds,
and the peak memory of the largest process.
"""

import argparse
import itertools
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SYLLABLES = "ba ko ri ten mul sa vo pel dri ga nu fi cho lar mi zu".split()
WORDS = 15
NBSPAM = str(Path(sys.executable).with_name("nbspam"))
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


def train(table: Path, model: Path) -> tuple[float, float, float, int]:
    """Return wall and CPU seconds, peak MiB and tokens."""
    command = [sys.executable, "-c", TIMED, NBSPAM, "train", "--replace", "-m", model, table]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wall, cpu, memory = map(float, done.stdout.split())
    head = model.open(encoding="utf-8").read(1 << 20)
    found = re.search(r'"derived": \{"tokens": (\d+)', head)
    assert found
    return wall, cpu, memory, int(found[1])


def main() -> None:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--work", type=Path)
    chosen = parser.parse_args()
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
