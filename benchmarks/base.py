#!/usr/bin/env python3
"""P8: a user's model read through a shared one, against the user's own alone, and against a merge.

Usage:  python benchmarks/base.py BASE USER [--skip N] [--first 1000] [--batch 10]
        python benchmarks/base.py BASE

  BASE   labelled messages that the shared model is trained on: an index file, a folder, a table
  USER   the user's messages in the order they came, of which N are skipped and `--first` are taken

With a USER each batch is judged, then learned.  The first batch is not counted: the filter that has
only the user's messages knows nothing then.  Rows: the user's messages alone; the shared model
alone, which learns nothing; merged, the shared model that goes on learning; through, the user's
model read through the shared one.  Columns: errors at P(spam) = 0.5 within the first 50, 100, 200,
500 and all; 1-ROCA% and log-loss; the ham blocked and the spam missed by the verdicts, in percent.

Without a USER, the user's mail is like the shared model's: that learns the first 2,000 messages of
BASE, the user is taught some of the next 200, and both are tested on the 2,000 after them.  Rows:
taught nothing, one spam, one ham, 20 of each class, and all 200 in order.
"""

import argparse
import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from nbspam.evaluation.metrics import ScoredMessages, figures
from nbspam.learning.batch import fit, token_counts
from nbspam.learning.corpus import Corpus
from nbspam.learning.learner import Learner
from nbspam.learning.settings import TrainingSettings, empty_metadata
from nbspam.reading.source import ReadingOptions, Skips
from nbspam.reading.sources import read_labelled
from nbspam.scoring.base import Base
from nbspam.scoring.classifier import Classifier, Counts
from nbspam.scoring.verdict import CutOffs, Verdict, make_verdict
from nbspam.store.metadata import Metadata
from nbspam.tokens.tokenized import TokenizedMessage
from nbspam.workers import make_executor, tokenize_messages

SETTINGS = TrainingSettings()
ERRORS_AT = (50, 100, 200, 500)
SHARED, TAUGHT, TESTED = 2000, 200, 2000  # messages of the second measurement


def read(source: str) -> Iterator[TokenizedMessage]:
    """Yield the messages of a source, in its order."""
    skips = Skips(strict=False)
    raws = read_labelled(source, ReadingOptions(outside=True), skips)
    yield from tokenize_messages(
        raws, skips, make_executor(1), digests=True, outputs=SETTINGS.outputs
    )


def trained(messages: Iterable[TokenizedMessage]) -> tuple[Metadata, dict[str, tuple[int, ...]]]:
    """Return the metadata and the counts of a model of these messages."""
    corpus = Corpus(SETTINGS.outputs)
    for message in messages:
        corpus.add(message)
    fitted = fit(corpus, corpus.labels, SETTINGS, corpus.channels(), corpus.traits())
    return fitted.metadata, dict(token_counts(corpus.vocabulary, fitted.counts))


def base_of(metadata: Metadata, counts: dict[str, tuple[int, ...]]) -> Base:
    """Return a model in memory as a base."""

    def counts_of(tokens: Iterable[str]) -> Counts:
        return {token: counts[token] for token in tokens if token in counts}

    return Base("the base", metadata, counts_of)


def judged(classifier: Classifier, messages: Iterable[TokenizedMessage]) -> list[Verdict]:
    """Return the verdicts on messages."""
    cut_offs = CutOffs.from_model(classifier.metadata)
    scores = ((m.label, classifier.score(m.tokens, m.extras)) for m in messages)
    return [
        make_verdict(classifier.metadata, score, cut_offs, label=label) for label, score in scores
    ]


def teach(learner: Learner, messages: Sequence[TokenizedMessage]) -> None:
    """Learn messages together, as `nbspam train --update` does."""
    for message in messages:
        learner.learn(message.label or "", message.tokens, message.extras)
    for message in messages:
        learner.refine(message.label or "", message.tokens, message.extras)


def online(
    learner: Learner, messages: list[TokenizedMessage], batch: int, learns: bool
) -> list[Verdict]:
    """Judge each batch, then learn it."""
    verdicts = []
    for start in range(0, len(messages), batch):
        some = messages[start : start + batch]
        verdicts += judged(learner.classifier(), some)
        if learns:
            teach(learner, some)
    return verdicts


def measures(verdicts: list[Verdict]) -> list[str]:
    """Return 1-ROCA%, log-loss, and the ham blocked and spam missed by the verdicts."""
    truth = np.array([v.label == "spam" for v in verdicts])
    log_odds = np.array([v.log_odds for v in verdicts])
    probability = np.array([v.probability for v in verdicts])
    scored = ScoredMessages.binary(truth, log_odds, probability)
    values = {key: value or 0.0 for key, value in figures(scored).values.items()}
    called = np.array([v.verdict == "spam" for v in verdicts])
    shares = 100 * called[~truth].mean(), 100 * (1 - called[truth].mean())
    return [
        f"{values['one_minus_roca_pct']:.3f}",
        f"{values['log_loss']:.4f}",
        *(f"{share:.2f}" for share in shares),
    ]


def show(name: str, cells: Iterable[str]) -> None:
    """Print a row of the table."""
    print(f"{name:12}" + "".join(cell.rjust(9) for cell in cells), flush=True)


def first_weeks(
    base: Base, counts: dict[str, tuple[int, ...]], options: argparse.Namespace
) -> None:
    """Print a row for each way to use the shared model."""
    end = options.skip + options.first
    user = list(itertools.islice(read(options.user), options.skip, end))
    empty = empty_metadata(("ham", "spam"), "spam", SETTINGS)
    show("", [*map(str, ERRORS_AT), "all", "1-ROCA%", "log-loss", "blocked%", "missed%"])
    for name, learner, learns in (
        ("alone", Learner(empty, {}), True),
        ("base alone", Learner(base.metadata, dict(counts)), False),
        ("merged", Learner(base.metadata, dict(counts)), True),
        ("through", Learner(base.empty_personal_model(), {}, base), True),
    ):
        verdicts = online(learner, user, options.batch, learns)
        wrong = [(v.log_odds > 0) != (v.label == "spam") for v in verdicts]
        errors = (sum(wrong[options.batch : n]) for n in (*ERRORS_AT, len(verdicts)))
        show(name, [*map(str, errors), *measures(verdicts[options.batch :])])


def like_the_base(base: Base, messages: Sequence[TokenizedMessage]) -> None:
    """Print a row for each number of messages that a user is taught; messages: after the base's."""
    lessons, tested = messages[:TAUGHT], messages[TAUGHT:]
    spam = [message for message in lessons if message.label == "spam"]
    ham = [message for message in lessons if message.label != "spam"]
    show("taught", ["1-ROCA%", "log-loss", "blocked%", "missed%"])
    for name, taught in (
        ("nothing", []),
        ("one spam", spam[:1]),
        ("one ham", ham[:1]),
        ("20 of each", spam[:20] + ham[:20]),
        ("200 in order", lessons),
    ):
        learner = Learner(base.empty_personal_model(), {}, base)
        teach(learner, taught)
        show(name, measures(judged(learner.classifier(), tested)))


def main() -> None:
    """Measure one of the two."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base")
    parser.add_argument("user", nargs="?")
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=10)
    options = parser.parse_args()
    if options.user is not None:
        metadata, counts = trained(read(options.base))
        first_weeks(base_of(metadata, counts), counts, options)
        return
    found = read(options.base)
    metadata, counts = trained(itertools.islice(found, SHARED))
    like_the_base(base_of(metadata, counts), list(itertools.islice(found, TAUGHT + TESTED)))


if __name__ == "__main__":
    main()
