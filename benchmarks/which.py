#!/usr/bin/env python3
"""Which naive Bayes: the kinds of it on the corpora of the papers, by `nbspam eval --compare`.

Usage:  python benchmarks/which.py [--sms FILE] [--spamassassin DIR] [--enron DIR] [--work DIR]

  --sms           SMS Spam Collection v.1: all kinds by leave-one-out, and on the published split
  --spamassassin  SpamAssassin public corpus: all kinds by leave-one-out, on P2's training half
  --enron         Enron-Spam, enron1 to enron3: the sums, online in batches of 100; with nbspam's
                  tokens, and as in the paper with the 3,000 words of most information gain

Prints the tables of docs/research/which-naive-bayes.md, and of the first two how long the command
took and how much memory at most.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from compare import enron, shuffled
from peers import BATCH, Labelled
from scipy.sparse import csc_array

from nbspam.bayes.matrix import Booleans, Floats
from nbspam.evaluation.metrics import ScoredMessages, one_minus_roca
from nbspam.learning.batch import fit
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import TrainingSettings
from nbspam.scoring.rules import SumRule
from nbspam.tokens.text import words_of
from nbspam.tokens.tokenized import TokenExtras, TokenizedMessage, TokenizerOutputs

TRAINED = 1674  # of the SMS: the published split
ATTRIBUTES = 3_000  # of the paper
DEFAULT = "bernoulli+kernel:evidence"
SUMS = f"bernoulli:sum,multinomial:sum,complement:sum,{DEFAULT}"
COLUMNS = {
    "errors": 0,
    "precision": 4,
    "recall": 4,
    "f1": 4,
    "mcc": 4,
    "one_minus_roca_pct": 4,
    "log_loss": 4,
    "calibration_error": 4,
}
# Run in a process of its own, so that the peak of its memory is the command's.
MEASURED = (
    "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], check=True);"
    "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss;"
    "print(peak // 1024, file=sys.stderr)"
)


def compared(names: str, source: Path, *protocol: str) -> dict[str, Any]:
    """Run the comparison, print how long it took, and return its JSON."""
    command = [sys.executable, "-m", "nbspam", "eval", "--compare", names, "--format", "json"]
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *command, "-q", *protocol, str(source)],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    seconds = time.perf_counter() - begun
    first = found["models"][0]
    print(
        f"\n{source.name}, {found['protocol']}: {first['messages']:,} messages,"
        f" {len(found['models'])} models, {seconds:.0f} s, {done.stderr.split()[-1]} MB\n"
    )
    return found


def print_table(found: dict[str, Any]) -> None:
    """Print all models in Markdown."""
    heads = ["model", *COLUMNS, "from the best"]
    print(f"| {' | '.join(heads)} |")
    print(f"|{'---|' * len(heads)}")
    for model in found["models"]:
        cells = [f"{model[key]:.{digits}f}" for key, digits in COLUMNS.items()]
        alone, p, roca_p = (
            model[key] for key in ("only_this_wrong", "mcnemar_p_holm", "delong_p_holm")
        )
        verdict = ""
        if alone is not None:
            verdict = f"{alone} : {model['only_best_wrong']}, p {p:.2g}; {roca_p:.2g}"
        print(f"| `{model['name']}` | {' | '.join(cells)} | {verdict} |")
    print(f"\n{found['advice']}")


def print_recalls(found: dict[str, Any]) -> None:
    """Print what the paper's tables have: the recall of spam and of ham, in percent."""
    for model in found["models"]:
        spam, ham = 100 * model["recall"], 100 - model["hm_pct"]
        area = model["one_minus_roca_pct"]
        print(
            f"| `{model['name']}` | {spam:.2f} | {ham:.2f} | {(spam + ham) / 2:.2f} | {area:.3f} |"
        )


def as_in_the_paper(messages: list[Labelled]) -> None:
    """Print the recalls of the sums as Metsis et al. 2006 had them.

    Words alone, the 3,000 of most information gain in what was learned so far, Laplace's smoothing;
    in batches of 100, each classified and then learned, the first not counted.
    """
    corpus = Corpus(TokenizerOutputs(times=True))
    for is_spam, path in messages:
        words = Counter(words_of(path.read_text("latin-1").lower()))
        tokens, label = sorted(words), "spam" if is_spam else "ham"
        corpus.add(TokenizedMessage(path.name, label, tokens, extras=TokenExtras(words)))
    labels = corpus.labels
    spam = np.array([is_spam for is_spam, _ in messages])
    for name in ("bernoulli", "multinomial"):
        settings = TrainingSettings(alpha=1.0, scoring="sum", event_model=name)
        read = corpus if settings.outputs.times else corpus.without_times()
        presence = read.presence().tocsc()
        parts: list[Floats] = []
        for end in range(BATCH, len(messages), BATCH):
            learned = presence[:end]
            chosen = np.argsort(-information_gain(learned, spam[:end]), kind="stable")[:ATTRIBUTES]
            chosen = np.sort(chosen)
            fitted = fit(learned[:, chosen].tocsr(), labels[:end], settings)
            rule, is_known = SumRule(fitted.metadata), fitted.counts.any(axis=0)
            weights = np.array([rule.weights(tuple(row)) for row in fitted.counts.T.tolist()])
            new = presence[end : end + BATCH][:, chosen]
            joint_log_likelihoods = new @ (weights * is_known[:, None]) + np.array(
                fitted.metadata.bias
            )
            parts.append(joint_log_likelihoods[:, 1] - joint_log_likelihoods[:, 0])
        odds = np.concatenate(parts)
        found = ScoredMessages.binary(
            spam[BATCH:], odds, 1 / (1 + np.exp(-np.clip(odds, -700, 700)))
        )
        recalls = 100 * (odds > 0)[found.spam].mean(), 100 * (odds <= 0)[~found.spam].mean()
        area = one_minus_roca(found)
        print(
            f"| `{name}:sum` | {recalls[0]:.2f} | {recalls[1]:.2f} | {sum(recalls) / 2:.2f}"
            f" | {area:.3f} |"
        )


def information_gain(presence: csc_array[Any, tuple[int, int]], spam: Booleans) -> Floats:
    """Return the mutual information of each token's presence and the class, (n_tokens,)."""
    n = len(spam)
    having = np.diff(presence.indptr)
    column = np.repeat(np.arange(len(having)), having)
    in_spam = np.bincount(column, spam[presence.indices], len(having))
    cells = [in_spam, having - in_spam, spam.sum() - in_spam]
    cells.append(n - sum(cells))
    present, absent = having / n, 1 - having / n
    is_spam = spam.mean()
    expected = [present * is_spam, present * (1 - is_spam), absent * is_spam]
    expected.append(absent * (1 - is_spam))
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [
            np.where(c > 0, c / n * np.log(c / n / e), 0.0)
            for c, e in zip(cells, expected, strict=True)
        ]
    return np.asarray(sum(terms))


def main() -> None:
    """Print a table for each corpus that was given."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("--sms", "--spamassassin", "--enron", "--work"):
        parser.add_argument(name, type=Path)
    options = parser.parse_args()
    work = options.work or Path(tempfile.mkdtemp())
    work.mkdir(parents=True, exist_ok=True)
    if options.sms:
        print_table(compared("all", options.sms))
        print_table(compared("all", options.sms, "--train-first", str(TRAINED)))
    if options.spamassassin:
        half = [message for same in shuffled(options.spamassassin) for message in same[::2]]
        index = work / "p2-training.index"
        lines = (f"{'spam' if is_spam else 'ham'} {path.resolve()}\n" for is_spam, path in half)
        index.write_text("".join(lines))
        print_table(compared("all", index))
    for i in (1, 2, 3) if options.enron else ():
        index = work / f"enron{i}.index"
        lines = (
            f"{'spam' if is_spam else 'ham'} {path.resolve()}\n"
            for is_spam, path in enron(options.enron / f"enron{i}")
        )
        index.write_text("".join(lines))
        print_recalls(compared(SUMS, index, "--online", "--batch", str(BATCH)))
        print("\nas in the paper\n")
        as_in_the_paper(enron(options.enron / f"enron{i}"))


if __name__ == "__main__":
    main()
