#!/usr/bin/env python3
"""Speed and memory of nbspam beside its peers, each pair of commands run in turn, on your corpora.

Usage:  python benchmarks/speed.py --ham DIR --spam DIR [--sms FILE] [--runs N] [--only train,...]

  --ham, --spam  folders of mails, one a file, such as the SpamAssassin public corpus's
  --sms          a table of label and text with tabs, such as the SMS Spam Collection
  --only         of: train, classify, one, size, update, sms

Peers that are not installed are left out: bogofilter, spamprobe, SpamAssassin's sa-learn and
scikit-learn.  A ratio below 1 means that nbspam is faster.  Wall time, CPU time of all processes
and peak memory of the largest one; medians of N pairs, the first of which is not counted.
"""

import argparse
import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

NBSPAM = [str(Path(sys.executable).with_name("nbspam"))]
FLOOR = [sys.executable, "-c", "import click, email.parser, json, mmap"]
SKLEARN = """
import sys
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import BernoulliNB
def rows(name):
    return [line.rstrip("\\n").split("\\t", 1) for line in open(name, encoding="utf-8")]
learned, asked = rows(sys.argv[1]), rows(sys.argv[2])
words = CountVectorizer(binary=True)
matrix = words.fit_transform([text for _, text in learned])
model = BernoulliNB().fit(matrix, [label for label, _ in learned])
print("\\n".join(model.predict(words.transform([text for _, text in asked]))))
"""


class Used(NamedTuple):
    """What a program used."""

    wall: float  # seconds
    cpu: float  # seconds, of all processes
    memory: float  # MiB at the peak


Command = Callable[[], list[Used]]  # one or several programs, one after the other


def run(command: list[str], stdin: Path | None = None, listed: list[str] | None = None) -> Used:
    """Run a command and return what it used; its output is thrown away."""
    started = time.perf_counter()
    with (
        Path(stdin or os.devnull).open("rb") as source,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE if listed else source,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process,
    ):
        if listed:
            process.stdin.write("".join(f"{name}\n" for name in listed).encode())
            process.stdin.close()
        _, status, use = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1, 2):
        raise SystemExit(f"{command[:4]} failed with {process.returncode}")
    return Used(time.perf_counter() - started, use.ru_utime + use.ru_stime, use.ru_maxrss / 1024)


def total(parts: list[Used]) -> Used:
    """Return what several programs used one after the other."""
    return Used(sum(p.wall for p in parts), sum(p.cpu for p in parts), max(p.memory for p in parts))


def compare(name: str, ours: Command, peer: str, theirs: Command, runs: int) -> None:
    """Run both in turn and print the ratios' medians."""
    pairs = []
    for i in range(runs + 1):
        pair = total(ours()), total(theirs())
        if i:
            pairs.append(pair)
    wall = statistics.median(a.wall / b.wall for a, b in pairs)
    cpu = statistics.median(a.cpu / b.cpu for a, b in pairs)
    seconds = [statistics.median(p[i].wall for p in pairs) for i in (0, 1)]
    memory = [max(p[i].memory for p in pairs) for i in (0, 1)]
    print(
        f"| {name} | {peer} | {wall:.2f} | {cpu:.2f} | {seconds[0]:.3f} s, {memory[0]:.0f} MiB |"
        f" {seconds[1]:.3f} s, {memory[1]:.0f} MiB |",
        flush=True,
    )


def files_of(folders: list[Path]) -> list[str]:
    """Return all files in folders."""
    return sorted(str(p) for folder in folders for p in folder.rglob("*") if p.is_file())


def sources(kind: str, folders: list[Path]) -> list[str]:
    """Return the options that name folders."""
    return [word for folder in folders for word in (f"--{kind}", str(folder))]


def there(program: str) -> bool:
    """Return whether a program is installed; say so if not."""
    if shutil.which(program):
        return True
    print(f"(no {program} here)", file=sys.stderr)
    return False


def fresh(folder: Path) -> Path:
    """Make a folder anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ham", type=Path, action="append", default=[])
    parser.add_argument("--spam", type=Path, action="append", default=[])
    parser.add_argument("--sms", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="train,classify,one,size,update,sms")
    chosen = parser.parse_args()
    only = chosen.only.split(",")
    ham, spam = files_of(chosen.ham), files_of(chosen.spam)
    print("| what | against | wall ratio | CPU ratio | nbspam | the other |")
    print("|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="nbspam-speed-") as name:
        work = Path(name)
        model = work / "model.json"
        learn = [*NBSPAM, "train", "-q", "--replace", "-m", str(model)]
        learn += [*sources("ham", chosen.ham), *sources("spam", chosen.spam)]
        if ham and spam:
            run(learn)
            mails(work, model, learn, chosen, only, ham, spam)
        if chosen.sms and "sms" in only and importlib.util.find_spec("sklearn"):
            sms(work, chosen.sms, chosen.runs)


def mails(
    work: Path,
    model: Path,
    learn: list[str],
    chosen: argparse.Namespace,
    only: list[str],
    ham: list[str],
    spam: list[str],
) -> None:
    """Compare on mail."""
    runs = chosen.runs
    both = ham + spam
    peers: list[tuple[str, Command, Command]] = []  # name, training, classifying
    folders = [str(folder) for folder in chosen.ham + chosen.spam]
    if there("bogofilter"):
        base = work / "bogofilter"
        bogofilter = ["bogofilter", "-d", str(base)]

        def bogofilter_learns() -> list[Used]:
            fresh(base)
            return [
                run([*bogofilter, "-n", "-b"], listed=ham),
                run([*bogofilter, "-s", "-b"], listed=spam),
            ]

        peers.append(
            ("bogofilter", bogofilter_learns, lambda: [run([*bogofilter, "-b", "-T"], listed=both)])
        )
    if there("spamprobe"):
        probe = ["spamprobe", "-d", str(work / "spamprobe")]

        def spamprobe_learns() -> list[Used]:
            fresh(work / "spamprobe")
            return [run([*probe, "good", *ham]), run([*probe, "spam", *spam])]

        peers.append(("spamprobe", spamprobe_learns, lambda: [run([*probe, "score", *both])]))
    if there("sa-learn"):
        bayes = ["sa-learn", "--no-sync", "--dbpath", str(work / "sa" / "bayes")]

        def spamassassin_learns() -> list[Used]:
            fresh(work / "sa")
            return [
                run([*bayes, f"--{kind}", *map(str, dirs)])
                for kind, dirs in (("ham", chosen.ham), ("spam", chosen.spam))
            ]

        peers.append(("SpamAssassin's Bayes", spamassassin_learns, list))
    for name, learns, classifies in peers:
        slow = 1 if name.startswith("SpamAssassin") else runs
        if "train" in only:
            compare(f"train, {len(both)} mails", lambda: [run(learn)], name, learns, slow)
        if "classify" in only and classifies is not list:
            learns()
            ours = [*NBSPAM, "classify", "-m", str(model), *folders]
            compare(f"classify, {len(both)} mails", lambda c=ours: [run(c)], name, classifies, runs)
    one = [*NBSPAM, "classify", "-m", str(model)]
    mail = Path(both[len(both) // 2])
    if "one" in only:
        compare("one mail", lambda: [run(one, mail)], "imports", lambda: [run(FLOOR)], 4 * runs)
    if "size" in only or "update" in only:
        large = work / "large.json"
        make_large(large)
        many = [*NBSPAM, "classify", "-m", str(large)]
        if "size" in only:
            small = work / "small.json"
            make_large(small, 10_000)
            few = [*NBSPAM, "classify", "-m", str(small)]
            compare(
                "one mail, a model of 1,000,000 tokens",
                lambda: [run(many, mail)],
                "10,000 tokens",
                lambda: [run(few, mail)],
                4 * runs,
            )
        if "update" in only:
            add = [*NBSPAM, "train", "--update", "--spam", "-", "-m", str(large)]

            def learns_one() -> list[Used]:
                new = work / "new.eml"
                new.write_bytes(
                    f"Message-ID: <{time.time_ns()}@example.org>\n".encode() + mail.read_bytes()
                )
                return [run(add, new)]

            compare(
                "learn one mail into 1,000,000 tokens",
                learns_one,
                "classify it",
                lambda: [run(many, mail)],
                2 * runs,
            )


def make_large(path: Path, tokens: int = 1_000_000) -> None:
    """Write a model of invented tokens."""
    from nbspam.learning.settings import TrainingSettings, empty_metadata
    from nbspam.store.lookup import Model
    from nbspam.store.metadata import with_counts
    from nbspam.store.model_file import write_model

    rows = [
        (f"token{i * 7919 % tokens:07}", ((1, 2), (3, 1), (0, 1))[i % 3]) for i in range(tokens)
    ]
    empty = empty_metadata(("ham", "spam"), "spam", TrainingSettings())
    learned = empty._replace(learned=empty.learned._replace(messages=(5000, 5000)))
    write_model(path, Model(with_counts(learned, dict(rows)), dict(rows), {}))


def sms(work: Path, table: Path, runs: int) -> None:
    """Compare training and classifying SMS, whole commands, with scikit-learn."""
    lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
    first, rest = work / "first.tsv", work / "rest.tsv"
    first.write_text("".join(lines[::2]), encoding="utf-8")
    rest.write_text("".join(lines[1::2]), encoding="utf-8")
    script = work / "sklearn_sms.py"
    script.write_text(SKLEARN, encoding="utf-8")
    model = str(work / "sms.json")
    compare(
        f"train and classify SMS, {len(lines) // 2} each",
        lambda: [
            run([*NBSPAM, "train", "-q", "--replace", "-m", model, str(first)]),
            run([*NBSPAM, "classify", "-m", model, str(rest)]),
        ],
        "scikit-learn",
        lambda: [run([sys.executable, str(script), str(first), str(rest)])],
        runs,
    )


if __name__ == "__main__":
    main()
