#!/usr/bin/env python3
"""Accuracy of nbspam and of other filters on the same messages, in one run.

Usage:  python benchmarks/compare.py [--sms FILE] [--spamassassin DIR --index FILE] [--enron DIR]
                                     [--trec DIR] [--only P1,P2,...] [--filters nbspam,...]
                                     [--work DIR] [--markdown]

  --sms           SMS Spam Collection v.1 (UCI), the file SMSSpamCollection
  --spamassassin  SpamAssassin public corpus 20030228, unpacked: easy_ham, easy_ham_2, hard_ham,
                  spam and spam_2 in one folder
  --index         its messages in the order they were received: lines of `label path`
  --enron         Enron-Spam, unpacked: enron1, enron2, enron3 with ham and spam in each
  --trec          TREC 2007 public corpus (trec07p), unpacked; only its first 40,000 messages are
                  read, since the rest is a test that nothing is tuned to
  --filters       nbspam, bogofilter, naive-bayes, linear; all by default

Protocols (docs/research/benchmarks.md): P1 SMS 30/70; P2 SpamAssassin interleaved; P3 old to new;
P4 Enron and P5 SpamAssassin by date, online in batches of 100; P6 one server's mail in order, .1
10,000 to 30,000 and .2 online in batches of 100; P7 cold start, 1 to 500 messages of each class
drawn five times from P2's training half, the mean of five tests on its other half; X1 SpamAssassin
to Enron; X2 Enron 1 and 2 to 3.  nbspam runs through its commands with default settings; `peers.py`
has the others.  P7 compares with bogofilter alone, and P6 leaves out naive Bayes, for time.

Errors, SC%, BH%, accuracy and MCC are at P(spam) = 0.5.  The last three columns are of the verdicts
that a filter gives by itself: ham called spam, spam not called spam, and messages called unsure.
"""

import argparse
import itertools
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from peers import (
    BATCH,
    Labelled,
    Scores,
    bogofilter_online,
    bogofilter_split,
    logistic_online,
    logistic_split,
    naive_bayes_online,
    naive_bayes_split,
    run,
    svm_split,
)

from nbspam.evaluation.metrics import ScoredMessages, calibration_bins, calibration_error, figures

NBSPAM = [sys.executable, "-m", "nbspam"]
ALL = ("nbspam", "bogofilter", "naive-bayes", "linear")
SIZES = (1, 5, 10, 20, 50, 100, 200, 500)  # of P7
DRAWS = 5
TREC_MESSAGES, TREC_TRAINED = 40_000, 10_000

# Column -> digits after the point.
COLUMNS = {
    "errors": 0,
    "SC%": 2,
    "BH%": 2,
    "acc%": 2,
    "MCC": 4,
    "1-ROCA%": 4,
    "sm@hm.1": 2,
    "log-loss": 4,
    "cal.err.": 4,
    "verdicts: BH%": 2,
    "SM%": 2,
    "unsure%": 2,
}


def figures_of(spam: list[bool], scores: Scores) -> dict[str, float]:
    """Return the value of each column that there is one for."""
    truth, log_odds = np.array(spam), np.array(scores.log_odds)
    probability = 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
    messages = ScoredMessages.binary(truth, log_odds, probability)
    values = {name: value or 0.0 for name, value in figures(messages).values.items()}
    columns = {
        "errors": values["fp"] + values["fn"],
        "SC%": values["sc_pct"],
        "BH%": values["bh_pct"],
        "acc%": 100 * values["accuracy"],
        "MCC": values["mcc"],
        "1-ROCA%": values["one_minus_roca_pct"],
        "sm@hm.1": values["sm_pct_at_hm_0_1"],
    }
    if scores.has_probabilities:
        columns["log-loss"] = values["log_loss"]
        columns["cal.err."] = calibration_error(calibration_bins(truth, probability))
    if scores.verdicts:
        verdicts = np.array(scores.verdicts)
        columns["verdicts: BH%"] = 100 * float((verdicts[~truth] == "spam").mean())
        columns["SM%"] = 100 * float((verdicts[truth] != "spam").mean())
        columns["unsure%"] = 100 * float((verdicts == "unsure").mean())
    return columns


class Table(NamedTuple):
    """Where the rows go."""

    markdown: bool

    def head(self) -> None:
        """Print the heads of the columns."""
        self._print(["protocol", "filter", *COLUMNS])
        if self.markdown:
            print("|" + "---|" * (2 + len(COLUMNS)))

    def row(self, protocol: str, who: str, columns: dict[str, float]) -> None:
        """Print a filter's figures."""
        cells = (f"{columns[c]:.{d}f}" if c in columns else "" for c, d in COLUMNS.items())
        self._print([protocol, who, *cells])

    def _print(self, cells: list[str]) -> None:
        line = f"| {' | '.join(cells)} |" if self.markdown else "  ".join(c.rjust(9) for c in cells)
        print(line, flush=True)


class Comparison(NamedTuple):
    """Which filters to run, where, and where their figures go."""

    work: Path
    table: Table
    filters: frozenset[str]

    def show(self, protocol: str, spam: list[bool], scores: Iterator[Scores]) -> None:
        """Print a row for each filter's scores."""
        for found in scores:
            self.table.row(protocol, found.who, figures_of(spam, found))

    def of(self, name: str, scores: Callable[[], Iterator[Scores]]) -> Iterator[Scores]:
        """Yield the scores of a filter, if it is to run."""
        if name in self.filters:
            yield from scores()


def text_of(path: Path) -> str:
    """Return a mail's bytes as text."""
    return path.read_text("latin-1")


def nbspam_scores(rows: list[dict[str, object]]) -> Scores:
    """Return nbspam's scores in the lines of its JSON."""
    log_odds = [float(str(row["log_odds"])) for row in rows]
    return Scores("nbspam", log_odds, [str(row["verdict"]) for row in rows])


def nbspam_eval(protocol: list[str], source: Path, folder: Path) -> Iterator[Scores]:
    """Yield nbspam's scores in a protocol of its `eval`."""
    predictions = folder / "predictions.jsonl"
    run([*NBSPAM, "eval", *protocol, "--predictions", str(predictions), str(source)])
    yield nbspam_scores([json.loads(line) for line in predictions.read_text().splitlines()])


def nbspam_split(train: list[Labelled], test: list[Labelled], folder: Path) -> Iterator[Scores]:
    """Yield nbspam's scores of one set of mails, trained on another."""
    place(train, folder / "train")
    place(test, folder / "test")
    model = ["--outside", "-m", str(folder / "model.json")]
    run([*NBSPAM, "train", "-q", "--replace", *model, str(folder / "train")])
    command = ["classify", *model, "--format", "json", str(folder / "test")]
    rows = [json.loads(line) for line in run([*NBSPAM, *command]).splitlines()]
    by_number = {int(Path(row["source"]).name): row for row in rows}
    yield nbspam_scores([by_number[i] for i in range(len(test))])


def place(messages: list[Labelled], folder: Path) -> None:
    """Link messages into a folder with one sub-folder per class."""
    shutil.rmtree(folder, ignore_errors=True)
    for number, (spam, path) in enumerate(messages):
        target = folder / ("spam" if spam else "ham") / f"{number:06}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(path.resolve())


def sms(path: Path, comparison: Comparison) -> None:
    """P1: the first 1,674 messages train, the other 3,900 test."""
    lines = path.read_text("utf-8").splitlines()
    spam = [line.startswith("spam") for line in lines]
    texts = [line.split("\t", 1)[1] for line in lines]
    cut = 1674
    sets = texts[:cut], spam[:cut], texts[cut:]
    folder = comparison.work / "P1"
    folder.mkdir(parents=True, exist_ok=True)
    scores = itertools.chain(
        comparison.of("nbspam", lambda: nbspam_eval(["--train-first", str(cut)], path, folder)),
        comparison.of("naive-bayes", lambda: naive_bayes_split(*sets)),
        comparison.of("linear", lambda: svm_split(*sets)),
    )
    comparison.show("P1", spam[cut:], scores)


def split(
    name: str,
    train: list[Labelled],
    test: list[Labelled],
    comparison: Comparison,
    naive_bayes: bool = True,
) -> None:
    """Train on one set of mails, test on another."""
    folder = comparison.work / name
    scores = [
        comparison.of("bogofilter", lambda: bogofilter_split(train, test, folder / "bogofilter")),
        comparison.of("nbspam", lambda: nbspam_split(train, test, folder)),
    ]
    if naive_bayes:

        def by_words() -> Iterator[Scores]:
            texts, tests = [text_of(p) for _, p in train], [text_of(p) for _, p in test]
            return naive_bayes_split(texts, [label for label, _ in train], tests)

        scores.append(comparison.of("naive-bayes", by_words))
    scores.append(comparison.of("linear", lambda: logistic_split(train, test)))
    comparison.show(name, [label for label, _ in test], itertools.chain(*scores))


def online(
    name: str, messages: list[Labelled], comparison: Comparison, naive_bayes: bool = True
) -> None:
    """Classify each batch of 100, then learn it; the first is not counted."""
    folder = comparison.work / name
    folder.mkdir(parents=True, exist_ok=True)
    index = folder / "messages.index"
    lines = (f"{'spam' if label else 'ham'} {path.resolve()}\n" for label, path in messages)
    index.write_text("".join(lines))
    protocol = ["--online", "--batch", str(BATCH)]
    scores = [
        comparison.of("bogofilter", lambda: bogofilter_online(messages, folder / "bogofilter")),
        comparison.of("nbspam", lambda: nbspam_eval(protocol, index, folder)),
    ]
    if naive_bayes:

        def by_words() -> Iterator[Scores]:
            texts = [text_of(path) for _, path in messages]
            return naive_bayes_online(texts, [label for label, _ in messages])

        scores.append(comparison.of("naive-bayes", by_words))
    scores.append(comparison.of("linear", lambda: logistic_online(messages)))
    comparison.show(name, [label for label, _ in messages[BATCH:]], itertools.chain(*scores))


def cold_start(
    ham: list[Labelled], junk: list[Labelled], test: list[Labelled], comparison: Comparison
) -> None:
    """P7: a few messages of each class, drawn from those of P2; the mean of the draws."""
    spam = [label for label, _ in test]
    draw = np.random.RandomState(7)
    folder = comparison.work / "P7"
    for size in SIZES:
        rows: dict[str, list[dict[str, float]]] = {}
        for _ in range(DRAWS):
            train = [same[i] for same in (ham, junk) for i in draw.permutation(len(same))[:size]]
            scores = itertools.chain(
                comparison.of(
                    "bogofilter",
                    lambda train=train: bogofilter_split(train, test, folder / "bogofilter"),
                ),
                comparison.of("nbspam", lambda train=train: nbspam_split(train, test, folder)),
            )
            for found in scores:
                rows.setdefault(found.who, []).append(figures_of(spam, found))
        for who, draws in rows.items():
            mean = {c: float(np.mean([row[c] for row in draws])) for c in draws[0]}
            comparison.table.row(f"P7, {size} of each", who, mean)


def spamassassin(root: Path, *names: str) -> list[Labelled]:
    """Return the mails of some folders of the SpamAssassin corpus."""
    return [
        (name.startswith("spam"), path)
        for name in names
        for path in sorted((root / name).iterdir())
        if path.name != "cmds"
    ]


def shuffled(root: Path) -> tuple[list[Labelled], list[Labelled]]:
    """Return SpamAssassin's ham and spam in a fixed shuffle; P2 trains on each second one."""

    def md5(message: Labelled) -> str:
        return message[1].name.rpartition(".")[2]  # in the file's name

    ham = sorted(spamassassin(root, "easy_ham", "easy_ham_2", "hard_ham"), key=md5)
    return ham, sorted(spamassassin(root, "spam", "spam_2"), key=md5)


def enron(root: Path) -> list[Labelled]:
    """Return one Enron-Spam set in its order: the number that begins each file's name."""
    found = [
        (int(path.name.partition(".")[0]), label == "spam", path)
        for label in ("ham", "spam")
        for path in (root / label).iterdir()
    ]
    return [(label, path) for _, label, path in sorted(found)]


def trec(root: Path) -> list[Labelled]:
    """Return the first mails of trec07p, in order."""
    with (root / "full" / "index").open() as lines:
        pairs = [line.split() for line in itertools.islice(lines, TREC_MESSAGES)]
    return [(label == "spam", root / "data" / Path(name).name) for label, name in pairs]


Protocols = Iterator[tuple[str, Callable[[], None]]]


def protocols(options: argparse.Namespace, comparison: Comparison) -> Protocols:
    """Yield each protocol whose corpora were given."""
    if options.sms:
        yield "P1", lambda: sms(options.sms, comparison)
    if options.spamassassin:
        yield from protocols_of_spamassassin(options, comparison)
    if options.enron:
        sets = [enron(options.enron / f"enron{i}") for i in (1, 2, 3)]
        for i, messages in enumerate(sets, 1):
            yield f"P4.{i}", lambda i=i, messages=messages: online(f"P4.{i}", messages, comparison)
        yield "X2", lambda: split("X2", sets[0] + sets[1], sets[2], comparison)
    if options.trec:
        first = trec(options.trec)
        sets = first[:TREC_TRAINED], first[TREC_TRAINED:]
        yield "P6.1", lambda: split("P6.1", *sets, comparison, naive_bayes=False)
        yield "P6.2", lambda: online("P6.2", first, comparison, naive_bayes=False)


def protocols_of_spamassassin(options: argparse.Namespace, comparison: Comparison) -> Protocols:
    """Yield the protocols that SpamAssassin's corpus is needed for."""
    root = options.spamassassin

    def of(*names: str) -> list[Labelled]:
        return spamassassin(root, *names)

    ham, junk = shuffled(root)
    test = ham[1::2] + junk[1::2]
    yield "P2", lambda: split("P2", ham[::2] + junk[::2], test, comparison)
    hard = of("hard_ham")
    old = of("easy_ham") + hard[:125] + of("spam")
    new = of("easy_ham_2") + hard[125:] + of("spam_2")
    yield "P3", lambda: split("P3", old, new, comparison)
    if options.index:
        pairs = (line.split(maxsplit=1) for line in options.index.read_text().splitlines())
        dated = [(label == "spam", root / name) for label, name in pairs]
        yield "P5", lambda: online("P5", dated, comparison)
    yield "P7", lambda: cold_start(ham[::2], junk[::2], test, comparison)
    if options.enron:
        everything = [mail for i in (1, 2, 3) for mail in enron(options.enron / f"enron{i}")]
        yield "X1", lambda: split("X1", ham + junk, everything, comparison)


def main() -> None:
    """Run the protocols and print their table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("--sms", "--spamassassin", "--index", "--enron", "--trec", "--work"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--filters", default=",".join(ALL))
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        table = Table(options.markdown)
        comparison = Comparison(work, table, frozenset(options.filters.split(",")))
        table.head()
        chosen = set(filter(None, options.only.split(",")))
        for name, measure in protocols(options, comparison):
            if not chosen or name in chosen:
                measure()


if __name__ == "__main__":
    main()
