#!/usr/bin/env python3
"""Speed and memory of nbspam beside its peers, each pair of commands run in turn, on your corpora.

Usage:  python benchmarks/speed.py --ham DIR --spam DIR [--sms FILE] [--runs N] [--only train,...]

  --ham, --spam  folders of mails, one a file, such as the SpamAssassin public corpus's
  --sms          a table of label and text with tabs, such as the SMS Spam Collection
  --only         of: train, classify, one, size, update, sms
  --instructions count instructions with valgrind, not seconds: no noise, but fifty times as slow

Peers that are not installed are left out: bogofilter, and scikit-learn with the script of an
afternoon.  A ratio below 1 means that nbspam is faster; of train and classify it is that of nbspam
-j 1 to each.  Wall time, CPU time of all processes and peak memory of the largest one; medians of N
rounds, the first of which is not counted.
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

COUNTS: list[Path] = []  # where instructions are counted, if they are
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


# What somebody writes in an afternoon: no header but the Subject, no tricks, no probabilities.
SKLEARN_MAIL = """
import email, email.policy, pickle, re, sys
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import BernoulliNB
def text(name):
    with open(name.rstrip("\\n"), "rb") as file:
        message = email.message_from_binary_file(file)
    parts = [str(message["subject"] or "")]
    for part in message.walk():
        if part.get_content_maintype() == "text":
            body = (part.get_payload(decode=True) or b"").decode("latin-1")
            parts.append(re.sub("<[^>]*>", " ", body))
    return " ".join(parts)
ham, spam, path, what = sys.argv[1:]
names = [*open(ham), *open(spam)]
if what == "train":
    labels = ["ham"] * sum(1 for _ in open(ham)) + ["spam"] * sum(1 for _ in open(spam))
    words = CountVectorizer(binary=True, ngram_range=(1, 2))
    model = BernoulliNB().fit(words.fit_transform(map(text, names)), labels)
    with open(path, "wb") as file:
        pickle.dump((words, model), file)
else:
    with open(path, "rb") as file:
        words, model = pickle.load(file)
    print("\\n".join(model.predict(words.transform(map(text, names)))))
"""


class Used(NamedTuple):
    """What a program used."""

    wall: float  # seconds, or thousands of millions of instructions
    cpu: float  # seconds, of all processes; or the same instructions
    memory: float  # MiB at the peak


Command = Callable[[], list[Used]]  # one or several programs, one after the other


def run(command: list[str], stdin: Path | None = None) -> Used:
    """Run a command and return what it used; its output is thrown away."""
    if COUNTS:
        tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no"]
        command = [*tool, f"--cachegrind-out-file={COUNTS[0]}", *command]
    started = time.perf_counter()
    with (
        Path(stdin or os.devnull).open("rb") as source,
        subprocess.Popen(
            command,
            stdin=source,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process,
    ):
        _, status, use = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1, 2):
        raise SystemExit(f"{command[:4]} failed with {process.returncode}")
    if COUNTS:
        counted = COUNTS[0].read_text().rpartition("summary:")[2]
        COUNTS[0].unlink()
        return Used(float(counted) / 1e9, float(counted) / 1e9, 0)
    return Used(time.perf_counter() - started, use.ru_utime + use.ru_stime, use.ru_maxrss / 1024)


def total(parts: list[Used]) -> Used:
    """Return what several programs used one after the other."""
    return Used(sum(p.wall for p in parts), sum(p.cpu for p in parts), max(p.memory for p in parts))


def head(*columns: str) -> None:
    """Print the head of a table."""
    print(f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)


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
    parser.add_argument("--instructions", action="store_true")
    chosen = parser.parse_args()
    if chosen.instructions:
        COUNTS.append(Path(tempfile.gettempdir(), f"nbspam-cachegrind.{os.getpid()}"))
        chosen.runs, chosen.only = 1, "train,classify"
    only = chosen.only.split(",")
    ham, spam = files_of(chosen.ham), files_of(chosen.spam)
    with tempfile.TemporaryDirectory(prefix="nbspam-speed-") as name:
        work = Path(name)
        model = work / "model.json"
        learn = [*NBSPAM, "train", "-q", "--replace", "-m", str(model)]
        learn += [*sources("ham", chosen.ham), *sources("spam", chosen.spam)]
        if ham and spam:
            run(learn)
            mails(work, model, learn, chosen, only, ham, spam)
        if chosen.sms and "sms" in only and importlib.util.find_spec("sklearn"):
            head("what", "against", "wall ratio", "CPU ratio", "nbspam", "the other")
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
    runs, names = chosen.runs, ham + spam
    unit = "10^9 instructions" if COUNTS else "s"
    head("what", "program", "wall ratio", "CPU ratio", f"wall {unit}", f"CPU {unit}", "peak")
    cores = [1] if COUNTS else sorted({1, 2, len(os.sched_getaffinity(0))})
    ask = [*NBSPAM, "classify", "-m", str(model), *map(str, chosen.ham + chosen.spam)]
    for what, command in (("train", learn), ("classify", ask)):
        if what in only:
            contestants = {
                f"nbspam -j {jobs}": lambda c=command, j=jobs: [run([*c, "-j", str(j)])]
                for jobs in cores
            }
            contestants |= peers(work, what, ham, spam)
            side_by_side(f"{what}, {len(names)} mails", contestants, runs)
    if {"one", "size", "update"} & set(only):
        head("what", "against", "wall ratio", "CPU ratio", "nbspam", "the other")
    one = [*NBSPAM, "classify", "-m", str(model)]
    mail = Path(names[len(names) // 2])
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


def peers(work: Path, what: str, ham: list[str], spam: list[str]) -> dict[str, Command]:
    """Return the peers that are here, trained if they are to classify; each uses one core."""
    found: dict[str, Command] = {}
    lists = {"ham": work / "ham.list", "spam": work / "spam.list"}
    for path, files in zip(lists.values(), (ham, spam), strict=True):
        path.write_text("".join(f"{name}\n" for name in files))
    if there("bogofilter"):
        base = work / "bogofilter"
        bogofilter = ["bogofilter", "-d", str(base)]

        def learns() -> list[Used]:
            fresh(base)
            return [
                run([*bogofilter, option, "-b"], lists[label])
                for label, option in (("ham", "-n"), ("spam", "-s"))
            ]

        def classifies() -> list[Used]:
            return [run([*bogofilter, "-b", "-T"], lists[label]) for label in lists]

        if what == "classify":
            learns()
        found["bogofilter"] = learns if what == "train" else classifies
    if importlib.util.find_spec("sklearn"):
        script = work / "sklearn_mail.py"
        script.write_text(SKLEARN_MAIL, encoding="utf-8")
        command = [sys.executable, str(script), *map(str, lists.values()), str(work / "sk.pickle")]
        if what == "classify":
            run([*command, "train"])
        found["scikit-learn"] = lambda: [run([*command, what])]
    return found


def side_by_side(name: str, contestants: dict[str, Command], runs: int) -> None:
    """Run all in turn, several times, and print a row of each: medians, and beside the first."""
    warming = 0 if COUNTS else 1
    rounds = [[total(run()) for run in contestants.values()] for _ in range(runs + warming)]
    rounds = rounds[warming:]
    for i, contestant in enumerate(contestants):
        wall, cpu = (
            (
                statistics.median(used[i][field] for used in rounds),
                statistics.median(used[0][field] / used[i][field] for used in rounds),
            )
            for field in (0, 1)
        )
        memory = max(used[i].memory for used in rounds)
        print(
            f"| {name} | {contestant} | {wall[1]:.2f} | {cpu[1]:.2f} | {wall[0]:.2f} |"
            f" {cpu[0]:.2f} | {memory:.0f} MiB |",
            flush=True,
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
