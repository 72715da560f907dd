#!/usr/bin/env python3
"""Measure what each kind of token brings: the same protocol with and without it.

Usage:  python benchmarks/token_kinds.py [--train-first N | --online] [--name P1] SOURCE...

SOURCE is what `nbspam train` takes.  With --train-first the first N messages train and the rest
test; with --online each batch of 100 is classified, then learned.  Prints a Markdown row per kind:
more errors or a larger 1-ROCA% without a kind mean that it is worth having.  `left out` is
leave-one-out on the training messages, by which kinds should be chosen; the test is for the record.
"""

import argparse

import numpy as np

from nbspam.evaluation.metrics import ScoredMessages, figures
from nbspam.evaluation.protocols import Trial, online, train_first
from nbspam.evaluation.results import compute
from nbspam.learning.batch import fit
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import TrainingSettings
from nbspam.reading.source import ReadingOptions, Skips
from nbspam.reading.sources import read_labelled
from nbspam.scoring.verdict import CutOffs
from nbspam.tokens.kinds import kind_of
from nbspam.tokens.tokenized import TokenizedMessage
from nbspam.workers import all_cores, make_executor, tokenize_messages

BATCH = 100
SETTINGS = TrainingSettings(traits="none")  # what tokens are worth, whatever traits add


def kind(token: str) -> str:
    """Return the kind of a token, as docs/tokens.md calls it."""
    if name := kind_of(token).name:
        return name
    if " " in token:
        return "bigram"
    return "number" if token[0] in "0$£€¥₹" else "word"


def corpus_of(messages: list[TokenizedMessage], without: str) -> Corpus:
    """Return the messages' corpus, one kind of token left out."""
    return Corpus.from_messages(
        message._replace(tokens=[token for token in message.tokens if kind(token) != without])
        for message in messages
    )


def left_out(corpus: Corpus, first: int) -> str:
    """Return the cells for the training messages, each scored with itself left out."""
    presence, labels = corpus.presence()[:first], corpus.labels[:first]
    fitted = fit(presence, labels, SETTINGS, corpus.channels())
    scores = list(fitted.left_out_scores())
    log_odds = np.array([score.log_odds for score in scores])
    probability = np.array([score.probability for score in scores])
    messages = ScoredMessages.binary(fitted.labels == 1, log_odds, probability)
    found = figures(messages).values
    errors = int(found["fp"] or 0) + int(found["fn"] or 0)
    return f"{errors} | {found['one_minus_roca_pct']:.4f} | {found['log_loss']:.4f}"


def row(name: str, protocol: str, read: Corpus, first: int | None) -> None:
    """Print a row of the table."""
    trial = Trial(read, SETTINGS, CutOffs())
    evaluation = online(trial, BATCH) if first is None else train_first(trial, first)
    found = compute(evaluation).figures.values
    errors = int(found["fp"] or 0) + int(found["fn"] or 0)
    cells = f"{errors} | {found['one_minus_roca_pct']:.4f} | {found['sm_pct_at_hm_0_1']:.2f}"
    honest = " |  | " if first is None else left_out(read, first)
    print(f"| {protocol} | {name} | {cells} | {honest} |", flush=True)


def main() -> None:
    """Read the sources, print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    parser.add_argument("--name", default="")
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--train-first", type=int, metavar="N")
    way.add_argument("--online", action="store_true")
    options = parser.parse_args()
    skips = Skips()
    raws = (
        raw for source in options.sources for raw in read_labelled(source, ReadingOptions(), skips)
    )
    messages = list(tokenize_messages(raws, skips, make_executor(all_cores())))
    print(
        "| protocol | tokens | errors | 1-ROCA% | sm@hm.1 | left out: errors | 1-ROCA% | log-loss |"
    )
    print("|---|---|---|---|---|---|---|---|")
    row("all", options.name, corpus_of(messages, ""), options.train_first)
    for name in sorted({kind(token) for message in messages for token in message.tokens}):
        corpus = corpus_of(messages, name)
        row(f"without {name}", options.name, corpus, options.train_first)


if __name__ == "__main__":
    main()
