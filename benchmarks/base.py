#!/usr/bin/env python3
"""P8: a shared model beneath a new user's own, against the user's own alone, and against a merge.

Usage:  python benchmarks/base.py BASE USER [--skip N] [--first 1000] [--batch 10]

  BASE   labelled messages that the shared model is trained on: an index file, a folder, a table
  USER   the user's messages in the order they came, of which N are skipped and `--first` are taken

Each batch is judged, then learned.  The first batch is not counted: the filter that has only the
user's messages knows nothing then.

Rows: the user's messages alone; the shared model alone, which learns nothing; merged, the shared
model that goes on learning; beneath, the user's model with the shared one as its base.
Columns: errors at P(spam) = 0.5 within the first 50, 100, 200, 500 and all; ham called spam by the
verdicts within 50, 200 and all; 1-ROCA% and log-loss of all; the strength of the base at the end.
"""

import argparse
import itertools
from collections.abc import Iterable, Iterator

import numpy as np

from nbspam.bayes.base_prior import strength_of
from nbspam.evaluation.metrics import figures
from nbspam.evaluation.samples import ScoredMessages
from nbspam.learning.batch import fit, token_counts
from nbspam.learning.corpus import Corpus
from nbspam.learning.online import OnlineLearner
from nbspam.learning.settings import TrainingSettings, empty_metadata
from nbspam.reading.skips import Skips
from nbspam.reading.sources import ReadingOptions, labelled
from nbspam.scoring.base import Base
from nbspam.scoring.classifier import Counts
from nbspam.scoring.verdict import CutOffs, Verdict, verdict_on
from nbspam.store.metadata import Metadata
from nbspam.tokens.tokenized import TokenizedMessage
from nbspam.workers import executor, tokenized

SETTINGS = TrainingSettings()
ERRORS_AT, BLOCKED_AT = (50, 100, 200, 500), (50, 200)


def read(source: str) -> Iterator[TokenizedMessage]:
    """Yield the messages of a source, in its order."""
    skips = Skips(strict=False)
    raws = labelled(source, ReadingOptions(outside=True), skips)
    yield from tokenized(raws, skips, executor(1), digests=True, wanted=SETTINGS.wanted)


def trained(messages: Iterable[TokenizedMessage]) -> tuple[Metadata, dict[str, tuple[int, ...]]]:
    """Return the metadata and the counts of a model of these messages."""
    corpus = Corpus(SETTINGS.wanted)
    for message in messages:
        corpus.add(message)
    fitted = fit(corpus, corpus.labels, SETTINGS, corpus.channels(), corpus.traits())
    return fitted.metadata, dict(token_counts(corpus.vocabulary, fitted.counts))


def judged(
    learner: OnlineLearner, messages: list[TokenizedMessage], batch: int, learns: bool = True
) -> list[Verdict]:
    """Judge each batch, then learn it."""
    verdicts = []
    for start in range(0, len(messages), batch):
        classifier, some = learner.classifier(), messages[start : start + batch]
        cut_offs = CutOffs.of_model(classifier.metadata)
        for message in some:
            score = classifier.score(message.tokens, message.numbers)
            verdict = verdict_on(classifier.metadata, score, cut_offs, label=message.label)
            verdicts.append(verdict)
        if learns:
            for message in some:
                learner.learn(message.label or "", message.tokens, message.numbers)
            for message in some:
                learner.refine(message.label or "", message.tokens, message.numbers)
    return verdicts


def line(name: str, verdicts: list[Verdict], batch: int, last: str = "") -> str:
    """Return the row of the table."""
    wrong = [(v.log_odds > 0) != (v.label == "spam") for v in verdicts]
    blocked = [v.label == "ham" and v.verdict == "spam" for v in verdicts]
    counted = verdicts[batch:]
    truth = np.array([v.label == "spam" for v in counted])
    log_odds = np.array([v.log_odds for v in counted])
    probability = np.array([v.probability for v in counted])
    scored = ScoredMessages.of_two_classes(truth, log_odds, probability, log_odds > 0, 0.5)
    values = {key: value or 0.0 for key, value in figures(scored).values.items()}
    cells = [str(sum(wrong[batch:n])) for n in (*ERRORS_AT, len(verdicts))]
    cells += [str(sum(blocked[batch:n])) for n in (*BLOCKED_AT, len(verdicts))]
    cells += [f"{values['one_minus_roca_pct']:.3f}", f"{values['log_loss']:.4f}", last]
    return f"{name:12}" + "".join(cell.rjust(8) for cell in cells)


def main() -> None:
    """Print a row for each way to use the shared model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base")
    parser.add_argument("user")
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=10)
    options = parser.parse_args()
    metadata, counts = trained(read(options.base))
    user = list(itertools.islice(read(options.user), options.skip, options.skip + options.first))

    def counts_of(tokens: Iterable[str]) -> Counts:
        return {token: counts[token] for token in tokens if token in counts}

    empty = empty_metadata(("ham", "spam"), "spam", SETTINGS)
    based = OnlineLearner(empty, {}, Base("the base", metadata, counts_of))
    heads = [*map(str, ERRORS_AT), "all", *(f"bh{n}" for n in BLOCKED_AT), "bh", "1-ROCA%"]
    print(" " * 12 + "".join(head.rjust(8) for head in [*heads, "logloss", "s"]))
    batch = options.batch
    for name, learner, learns in (
        ("alone", OnlineLearner(empty, {}), True),
        ("base alone", OnlineLearner(metadata, dict(counts)), False),
        ("merged", OnlineLearner(metadata, dict(counts)), True),
        ("beneath", based, True),
    ):
        verdicts = judged(learner, user, batch, learns)
        state = learner.metadata.learned.with_base
        last = f"{strength_of(state.losses):.0f}" if state else ""
        print(line(name, verdicts, batch, last), flush=True)


if __name__ == "__main__":
    main()
