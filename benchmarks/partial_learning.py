#!/usr/bin/env python3
"""What learning some of the messages brings and costs: self-training, and train on error.

Usage:  python benchmarks/partial_learning.py SOURCE FIRST [--then SOURCE] [--test N]

  SOURCE  labelled messages in the order they came: a table, or an index file
  FIRST   so many of them are learned first, all at once; 0: the model begins with nothing
  --then  the messages that come after them, in place of the rest of SOURCE
  --test  so many of the last are judged and never learned

Self-training: each message is judged, and learned as what it was judged from a probability of 0.99
or 0.999 on (which no command does: docs/research/ideas-tried.md); "corrected" learns each message
that was judged wrong or unsure as what it is, at once ("half": every second one), and "all" learns
every message as what it is.
Train on error: a message is learned as what it is unless it was judged right; "sure": with 0.99.

Columns: errors at P(spam) = 0.5, ham called spam and spam called ham by the verdicts, unsure ham
and spam, 1-ROCA%, log-loss; messages learned, and learned as what they are not; tokens in the end.
"""

import argparse
import random
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from nbspam.evaluation.metrics import ScoredMessages, figures
from nbspam.learning.batch import fit, token_counts
from nbspam.learning.corpus import Corpus
from nbspam.learning.learner import Learner
from nbspam.learning.settings import TrainingSettings, empty_metadata
from nbspam.names import UNSURE
from nbspam.reading.source import ReadingOptions, Skips
from nbspam.reading.sources import read_labelled
from nbspam.scoring.verdict import CutOffs, Verdict, make_verdict
from nbspam.tokens.tokenized import TokenizedMessage
from nbspam.workers import make_executor, tokenize_messages

SETTINGS = TrainingSettings()
Teach = Callable[[Verdict], str | None]  # the class as which a judged message is learned, if any


def read(source: str) -> list[TokenizedMessage]:
    """Return the messages of a source, in its order."""
    skips = Skips(strict=False)
    raws = read_labelled(source, ReadingOptions(outside=True), skips)
    return list(
        tokenize_messages(raws, skips, make_executor(1), digests=True, outputs=SETTINGS.outputs)
    )


def begun(messages: list[TokenizedMessage]) -> Learner:
    """Return a learner of the first messages."""
    if not messages:
        return Learner(empty_metadata(("ham", "spam"), "spam", SETTINGS), {})
    corpus = Corpus(SETTINGS.outputs)
    for message in messages:
        corpus.add(message)
    fitted = fit(corpus, corpus.labels, SETTINGS, corpus.channels(), corpus.traits())
    counts = dict(token_counts(corpus.vocabulary, fitted.counts))
    return Learner(fitted.metadata, counts)


class Stream(NamedTuple):
    """What came of a stream of messages."""

    judged: list[Verdict]
    learned: int
    wrongly: int

    def line(self, name: str, tokens: int) -> str:
        """Return the row of the table."""
        truth = np.array([one.label == "spam" for one in self.judged])
        log_odds = np.array([one.log_odds for one in self.judged])
        probability = np.array([one.probability for one in self.judged])
        scored = ScoredMessages.binary(truth, log_odds, probability)
        values = {key: value or 0.0 for key, value in figures(scored).values.items()}
        pairs = [(one.label, one.verdict) for one in self.judged]
        called = [("ham", "spam"), ("spam", "ham"), ("ham", UNSURE), ("spam", UNSURE)]
        cells = [
            f"{values['fp'] + values['fn']:.0f}",
            *(str(pairs.count(pair)) for pair in called),
            f"{values['one_minus_roca_pct']:.4f}",
            f"{values['log_loss']:.4f}",
            *map(str, (self.learned, self.wrongly, tokens)),
        ]
        return f"{name:24}" + "".join(cell.rjust(9) for cell in cells)


def run(learner: Learner, messages: Iterable[TokenizedMessage], teach: Teach) -> Stream:
    """Judge each message, then learn it as `teach` says, each digest once."""
    judged, learned, wrongly = [], 0, 0
    known: set[str] = set()
    classifier = learner.classifier()
    for message in messages:
        score = classifier.score(message.tokens, message.extras)
        cut_offs = CutOffs.from_model(classifier.metadata)
        verdict = make_verdict(classifier.metadata, score, cut_offs, label=message.label)
        judged.append(verdict)
        label = teach(verdict)
        if label is not None and message.digest not in known:
            known.add(message.digest)
            learner.learn(label, message.tokens, message.extras)
            learner.refine(label, message.tokens, message.extras)
            learned, wrongly = learned + 1, wrongly + (label != message.label)
            classifier = learner.classifier()
    return Stream(judged, learned, wrongly)


def sure(bound: float, corrected: float = 0.0) -> Teach:
    """Learn what is sure; and what is wrong or unsure, as what it is, with this probability."""
    chance = random.Random(1)

    def teach(judged: Verdict) -> str | None:
        if judged.verdict != judged.label and chance.random() < corrected:
            return judged.label
        is_sure = judged.verdict != UNSURE and judged.probabilities[judged.verdict] >= bound
        return judged.verdict if is_sure else None

    return teach


def on_error(bound: float) -> Teach:
    """Learn what is not judged right with this probability."""

    def teach(judged: Verdict) -> str | None:
        is_right = judged.verdict == judged.label
        return None if is_right and judged.probabilities[judged.verdict] >= bound else judged.label

    return teach


MODES: dict[str, Callable[[], Teach]] = {
    "none": lambda: lambda _: None,
    "all": lambda: lambda judged: judged.label,
    "self .99": lambda: sure(0.99),
    "self .999": lambda: sure(0.999),
    "self .99, corrected": lambda: sure(0.99, 1.0),
    "self .99, half corrected": lambda: sure(0.99, 0.5),
    "on error": lambda: on_error(0.0),
    "on error, sure": lambda: on_error(0.99),
}


def main() -> None:
    """Print a row for each way of learning."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("first", type=int)
    parser.add_argument("--then")
    parser.add_argument("--test", type=int, default=0)
    arguments = parser.parse_args()
    messages = read(arguments.source)
    first, rest = messages[: arguments.first], messages[arguments.first :]
    rest = read(arguments.then) if arguments.then else rest
    last = len(rest) - arguments.test
    heads = "errors fp fn uns.ham uns.spam 1-ROCA% log-loss learned wrongly tokens".split()
    print(" " * 24 + "".join(head.rjust(9) for head in heads))
    for name, mode in MODES.items():
        learner = begun(first)
        print(run(learner, rest[:last], mode()).line(name, len(learner.counts)), flush=True)
        if arguments.test:
            tested = run(learner, rest[last:], MODES["none"]())
            print(tested.line("  then tested", len(learner.counts)), flush=True)


if __name__ == "__main__":
    main()
