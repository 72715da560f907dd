#!/usr/bin/env python3
"""Measure what each kind of token brings: leave-one-out with and without it.

Usage:  python benchmarks/token_kinds.py [--train-first N] SOURCE...

SOURCE is what `nbspam train` takes.  A token's kind is its prefix (`num` of `num:5`); words have
none.  Prints a row per kind; more errors and a larger 1-ROCA% without a kind mean that it is worth
having.  With --train-first only the first N messages are used: the training half of a protocol.
"""

import argparse
import itertools

import numpy as np

from nbspam.evaluation.metrics import figures
from nbspam.model.training import Corpus, Settings, fit, left_out_scores
from nbspam.reading.skips import Skips
from nbspam.reading.sources import ReadingOptions, labelled
from nbspam.workers import token_sets

Messages = list[tuple[str, set[str]]]


def kind(token: str) -> str:
    """Return the kind of a token."""
    return token.partition(":")[0] if ":" in token else "word"


def row(name: str, messages: Messages) -> None:
    """Print the figures of these token sets."""
    corpus = Corpus()
    for label, tokens in messages:
        corpus.add(label, tokens)
    presence = corpus.presence()
    fitted = fit(presence, corpus.labels, Settings())
    scores = left_out_scores(presence, fitted)
    log_odds = np.array([score.log_odds for score in scores])
    probability = np.array([score.probability for score in scores])
    found = figures(fitted.labels == 1, log_odds, probability, log_odds > 0, 0.5).values
    errors = int(found["fp"] or 0) + int(found["fn"] or 0)
    print(
        f"{name:16} {fitted.head.n_tokens:9,} {errors:7} {found['mcc']:8.4f}"
        f" {found['one_minus_roca_pct']:9.4f} {found['log_loss']:9.4f}"
    )


def main() -> None:
    """Read the sources, print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    parser.add_argument("--train-first", type=int, metavar="N")
    options = parser.parse_args()
    skips = Skips()
    raws = (raw for source in options.sources for raw in labelled(source, ReadingOptions(), skips))
    first = itertools.islice(token_sets(raws, skips), options.train_first)
    messages = [(raw.label or "", tokens) for raw, tokens in first]
    print(f"{'tokens':16} {'number':>9} {'errors':>7} {'MCC':>8} {'1-ROCA%':>9} {'log-loss':>9}")
    row("all", messages)
    for name in sorted({kind(token) for _, tokens in messages for token in tokens}):
        without = [(label, {t for t in tokens if kind(t) != name}) for label, tokens in messages]
        row(f"without {name}", without)


if __name__ == "__main__":
    main()
