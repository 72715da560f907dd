#!/usr/bin/env python3
"""Accuracy of nbspam, bogofilter and scikit-learn on the same messages, in one run.

Usage:  python benchmarks/compare.py [--sms FILE] [--spamassassin DIR --index FILE] [--enron DIR]
                                     [--only P1,P2,...] [--work DIR] [--markdown]

  --sms           SMS Spam Collection v.1 (UCI), the file SMSSpamCollection
  --spamassassin  SpamAssassin public corpus 20030228, unpacked: easy_ham, easy_ham_2, hard_ham,
                  spam and spam_2 in one folder
  --index         its messages in the order they were received: lines of `label path`
  --enron         Enron-Spam, unpacked: enron1, enron2, enron3 with ham and spam in each

Protocols (docs/benchmarks.md): P1 SMS 30/70; P2 SpamAssassin interleaved; P3 old to new; P4 Enron
and P5 SpamAssassin by date, online in batches of 100; X1 SpamAssassin to Enron; X2 Enron 1 and 2
to 3.  nbspam runs through its commands with default settings.  bogofilter is left out where it is
not installed.  scikit-learn's BernoulliNB and MultinomialNB (alpha 1, words by its own pattern,
presence only) get the raw text, headers and all; online they are fitted anew for each batch.
"""

import argparse
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

from nbspam.evaluation.bins import calibration_bins, calibration_error
from nbspam.evaluation.metrics import figures
from nbspam.evaluation.samples import ScoredMessages

BATCH = 100
NBSPAM = [sys.executable, "-m", "nbspam"]
Labelled = tuple[bool, Path]  # whether it is spam, its file
Scores = tuple[str, list[float]]  # who, and the log-odds it gave


def run(command: list[str], stdin: str = "", good: tuple[int, ...] = (0,)) -> str:
    """Return a command's standard output."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, errors="replace")
    if done.returncode not in good:
        raise SystemExit(f"{command[:6]} failed: {done.stderr[-500:]}")
    return done.stdout


def show(protocol: str, who: str, spam: list[bool], log_odds: list[float], markdown: bool) -> None:
    """Print a row of figures."""
    truth, scores = np.array(spam), np.array(log_odds)
    probability = 1 / (1 + np.exp(-np.clip(scores, -700, 700)))
    messages = ScoredMessages.of_two_classes(truth, scores, probability, scores > 0, 0.5)
    found = figures(messages).values
    error = calibration_error(calibration_bins(truth, probability))
    cells = [
        protocol,
        who,
        str(int(found["fp"] or 0) + int(found["fn"] or 0)),
        *(f"{found[name]:.2f}" for name in ("sc_pct", "bh_pct")),
        f"{100 * (found['accuracy'] or 0):.2f}",
        f"{found['mcc']:.4f}",
        f"{found['one_minus_roca_pct']:.4f}",
        f"{found['sm_pct_at_hm_0_1']:.2f}",
        *((f"{found['log_loss']:.4f}", f"{error:.4f}") if who != "bogofilter" else ("", "")),
    ]
    print(
        f"| {' | '.join(cells)} |" if markdown else "  ".join(c.rjust(9) for c in cells), flush=True
    )


HEAD = ["protocol", "filter", "errors", "SC%", "BH%", "acc%", "MCC", "1-ROCA%", "sm@hm.1"]
HEAD += ["log-loss", "cal.err."]
Show = Callable[[str, str, list[bool], list[float]], None]


def logit(spamicity: float) -> float:
    """Return bogofilter's spamicity as log-odds, finite at both ends; the order is kept."""
    q = min(max(spamicity, 1e-16), 1 - 1e-16)
    return float(np.log(q / (1 - q)))


class Bogofilter:
    """bogofilter with a database of its own."""

    def __init__(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._base = ["bogofilter", "-d", str(folder)]

    def learn(self, messages: list[Labelled]) -> None:
        """Learn messages."""
        for flag, label in (("-s", True), ("-n", False)):
            names = [str(path) for spam, path in messages if spam == label]
            if names:
                run([*self._base, flag, "-b"], "\n".join(names) + "\n")

    def score(self, messages: list[Labelled]) -> list[float]:
        """Return the log-odds of messages."""
        names = "\n".join(str(path) for _, path in messages) + "\n"
        lines = run([*self._base, "-TT", "-b"], names, good=(0, 1, 2)).splitlines()
        return [logit(float(line.split()[-1])) for line in lines]


def sklearn_split(train: list[str], spam: list[bool], test: list[str]) -> Iterator[Scores]:
    """Yield each naive Bayes of scikit-learn with its log-odds of the test texts."""
    words = CountVectorizer(binary=True)
    matrix, tests = words.fit_transform(train), words.transform(test)
    for model in (BernoulliNB(), MultinomialNB()):
        yield type(model).__name__, odds(model.fit(matrix, spam), tests)


def sklearn_online(texts: list[str], spam: list[bool]) -> Iterator[Scores]:
    """Yield the same, fitted anew before each batch to all messages before it.

    The vocabulary is that of the messages fitted to: a column for each word still to come would
    weigh down BernoulliNB, which counts absence too.
    """
    matrix = CountVectorizer(binary=True).fit_transform(texts).tocsc()
    first_row = np.array([matrix.indices[start] for start in matrix.indptr[:-1]])
    for model in (BernoulliNB(), MultinomialNB()):
        scores: list[float] = []
        for start in range(BATCH, len(texts), BATCH):
            seen = matrix[:, first_row < start].tocsr()
            model.fit(seen[:start], spam[:start])
            scores += odds(model, seen[start : start + BATCH])
        yield type(model).__name__, scores


def odds(model: BernoulliNB | MultinomialNB, matrix: csr_matrix) -> list[float]:
    """Return the log-odds of the matrix's rows; of one class only, 0."""
    joint = model.predict_joint_log_proba(matrix)
    return [float(row[-1] - row[0]) for row in joint]


def text_of(path: Path) -> str:
    """Return a mail's bytes as text."""
    return path.read_text("latin-1")


def sms(path: Path, work: Path, out: Show) -> None:
    """P1: the first 1,674 messages train, the other 3,900 test."""
    lines = path.read_text("utf-8").splitlines()
    spam = [line.startswith("spam") for line in lines]
    texts = [line.split("\t", 1)[1] for line in lines]
    cut = 1674
    predictions = work / "p1.jsonl"
    command = ["eval", "--train-first", str(cut), "--predictions", str(predictions), str(path)]
    run([*NBSPAM, *command])
    rows = [json.loads(line) for line in predictions.read_text().splitlines()]
    out("P1", "nbspam", spam[cut:], [row["log_odds"] for row in rows])
    for name, scores in sklearn_split(texts[:cut], spam[:cut], texts[cut:]):
        out("P1", name, spam[cut:], scores)


def place(messages: list[Labelled], folder: Path) -> None:
    """Link messages into a folder with one sub-folder per class."""
    shutil.rmtree(folder, ignore_errors=True)
    for number, (spam, path) in enumerate(messages):
        target = folder / ("spam" if spam else "ham") / f"{number:06}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(path.resolve())


def split(name: str, train: list[Labelled], test: list[Labelled], work: Path, out: Show) -> None:
    """Train on one set of mails, test on another."""
    spam = [label for label, _ in test]
    if shutil.which("bogofilter"):
        peer = Bogofilter(work / name / "bogofilter")
        peer.learn(train)
        out(name, "bogofilter", spam, peer.score(test))
    place(train, work / name / "train")
    place(test, work / name / "test")
    model = work / name / "model.json"
    run([*NBSPAM, "train", "-q", "--replace", "-m", str(model), str(work / name / "train")])
    command = ["classify", "-m", str(model), "--format", "json", str(work / name / "test")]
    rows = [json.loads(line) for line in run([*NBSPAM, *command]).splitlines()]
    by_number = {int(Path(row["source"]).name): row["log_odds"] for row in rows}
    out(name, "nbspam", spam, [by_number[i] for i in range(len(test))])
    texts, tests = [text_of(p) for _, p in train], [text_of(p) for _, p in test]
    for who, scores in sklearn_split(texts, [label for label, _ in train], tests):
        out(name, who, spam, scores)


def online(name: str, messages: list[Labelled], work: Path, out: Show) -> None:
    """Classify each batch of 100, then learn it; the first is not counted."""
    batches = [messages[i : i + BATCH] for i in range(0, len(messages), BATCH)]
    spam = [label for label, _ in messages[BATCH:]]
    (work / name).mkdir(parents=True, exist_ok=True)
    if shutil.which("bogofilter"):
        peer = Bogofilter(work / name / "bogofilter")
        peer.learn(batches[0])
        scores = []
        for batch in batches[1:]:
            scores += peer.score(batch)
            peer.learn(batch)
        out(name, "bogofilter", spam, scores)
    index, predictions = work / name / "messages.index", work / name / "predictions.jsonl"
    lines = (f"{'spam' if label else 'ham'} {path.resolve()}\n" for label, path in messages)
    index.write_text("".join(lines))
    command = ["eval", "--online", "--batch", str(BATCH), "--predictions", str(predictions)]
    run([*NBSPAM, *command, str(index)])
    rows = [json.loads(line) for line in predictions.read_text().splitlines()]
    out(name, "nbspam", spam, [row["log_odds"] for row in rows])
    texts = [text_of(path) for _, path in messages]
    for who, scores in sklearn_online(texts, [label for label, _ in messages]):
        out(name, who, spam, scores)


def spamassassin(root: Path, *names: str) -> list[Labelled]:
    """Return the mails of some folders of the SpamAssassin corpus."""
    return [
        (name.startswith("spam"), path)
        for name in names
        for path in sorted((root / name).iterdir())
        if path.name != "cmds"
    ]


def enron(root: Path) -> list[Labelled]:
    """Return one Enron-Spam set in its order: the number that begins each file's name."""
    found = [
        (int(path.name.partition(".")[0]), label == "spam", path)
        for label in ("ham", "spam")
        for path in (root / label).iterdir()
    ]
    return [(label, path) for _, label, path in sorted(found)]


def protocols(
    options: argparse.Namespace, work: Path, out: Show
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield each protocol whose corpora were given."""
    if options.sms:
        yield "P1", lambda: sms(options.sms, work, out)
    if options.spamassassin:
        root = options.spamassassin

        def of(*names: str) -> list[Labelled]:
            return spamassassin(root, *names)

        def md5(message: Labelled) -> str:
            return message[1].name.rpartition(".")[2]  # in the file's name: a fixed shuffle

        ham = sorted(of("easy_ham", "easy_ham_2", "hard_ham"), key=md5)
        junk = sorted(of("spam", "spam_2"), key=md5)
        hard = of("hard_ham")
        yield "P2", lambda: split("P2", ham[::2] + junk[::2], ham[1::2] + junk[1::2], work, out)
        old = of("easy_ham") + hard[:125] + of("spam")
        new = of("easy_ham_2") + hard[125:] + of("spam_2")
        yield "P3", lambda: split("P3", old, new, work, out)
        if options.index:
            pairs = (line.split(maxsplit=1) for line in options.index.read_text().splitlines())
            dated = [(label == "spam", root / name) for label, name in pairs]
            yield "P5", lambda: online("P5", dated, work, out)
    if options.enron:
        sets = [enron(options.enron / f"enron{i}") for i in (1, 2, 3)]
        for i, messages in enumerate(sets, 1):
            yield f"P4.{i}", lambda i=i, messages=messages: online(f"P4.{i}", messages, work, out)
        if options.spamassassin:
            everything = list(itertools.chain(*sets))
            yield "X1", lambda: split("X1", ham + junk, everything, work, out)
        yield "X2", lambda: split("X2", sets[0] + sets[1], sets[2], work, out)


def main() -> None:
    """Run the protocols and print their table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("--sms", "--spamassassin", "--index", "--enron", "--work"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        if options.markdown:
            print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
        else:
            print("  ".join(name.rjust(9) for name in HEAD))

        def out(protocol: str, who: str, spam: list[bool], log_odds: list[float]) -> None:
            show(protocol, who, spam, log_odds, options.markdown)

        wanted = set(filter(None, options.only.split(",")))
        for name, measure in protocols(options, work, out):
            if not wanted or name in wanted:
                measure()


if __name__ == "__main__":
    main()
