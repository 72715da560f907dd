#!/usr/bin/env python3
"""What each stage of training and of classifying in bulk takes, in one process.

Usage:  python benchmarks/stages.py [--ham DIR --spam DIR] [--copies N]

  --ham, --spam  folders of mails, Maildirs or mboxes; without them, the mails of sample_data
  --copies       learn each mail N times, each lot with a word of its own in it (default: 1)

It prints CPU milliseconds per 1,000 mails, the least of three passes for what is done to each mail.
The same mails are classified that were learned.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import nbspam.tokens.html
import nbspam.tokens.tokenized
from nbspam.evaluation.estimate import leave_one_out_rates
from nbspam.filter import open_filter
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.training import TrainingRun
from nbspam.reading.message import RawMessage, parse
from nbspam.reading.source import ReadingOptions, Skips
from nbspam.reading.sources import read_unlabelled
from nbspam.scoring.classifier import BulkClassifier
from nbspam.store.index import TokenTable
from nbspam.store.lookup import Lookup
from nbspam.store.model_file import replace_model
from nbspam.tokens.tokenized import (
    TokenizedMessage,
    TokenizeOptions,
    TokenizerOutputs,
    digest_of,
    message_traits,
    tokenize,
    tokenize_batch,
)
from nbspam.workers import PIECE_LIMITS, Executor, batch_messages, rare_collections

SAMPLE = Path(__file__).parent.parent / "sample_data" / "mail"
PASSES = 3
clock = time.process_time


class Within:
    """Adds up the time that one function takes within another."""

    def __init__(self, module: Any, name: str) -> None:
        """Put this in the place of a module's function."""
        self.function, self.seconds = getattr(module, name), 0.0
        setattr(module, name, self)

    def __call__(self, *given: Any) -> Any:
        """Call the function."""
        begun = clock()
        try:
            return self.function(*given)
        finally:
            self.seconds += clock() - begun


def least(work: Callable[[], Any]) -> float:
    """Return the least CPU seconds of several passes."""
    seconds = []
    for _ in range(PASSES):
        begun = clock()
        work()
        seconds.append(clock() - begun)
    return min(seconds)


def once(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of one pass, and what it made."""
    begun = clock()
    made = work()
    return clock() - begun, made


def each(function: Callable[..., Any], items: Iterable[Any]) -> None:
    """Call a function for each item and keep nothing: as a worker does."""
    for item in items:
        function(*item)


def mails(chosen: argparse.Namespace) -> list[tuple[str, bytes]]:
    """Return the label and the bytes of each mail; each lot of copies has another word in it."""
    spam, ham = chosen.spam or [SAMPLE / "spam.mbox"], chosen.ham or [SAMPLE / "ham.mbox"]
    found = []
    for label, sources in (("spam", spam), ("ham", ham)):
        for source in sources:
            for raw in read_unlabelled(str(source), label, ReadingOptions(), Skips()):
                content = raw.content
                found.append(
                    (label, content.read_bytes() if isinstance(content, Path) else content)
                )
    copies = [
        (label, raw + f"\ncopy{'x' * i}\n".encode())
        for i in range(1, chosen.copies)
        for label, raw in found
    ]
    return found + copies


def main() -> None:
    """Print a row for each stage."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ham", type=Path, action="append", default=[])
    parser.add_argument("--spam", type=Path, action="append", default=[])
    parser.add_argument("--copies", type=int, default=1)
    chosen = parser.parse_args()
    raws = mails(chosen)
    rows: dict[str, float] = {}
    of_each(rows, raws)
    with rare_collections(), tempfile.TemporaryDirectory() as name:
        of_all(rows, raws, Path(name) / "model.json")
    print(f"CPU ms per 1,000 mails, of {len(raws):,}\n\n| stage | ms |\n|---|---|")
    for stage, seconds in rows.items():
        print(f"| {stage} | {1e6 * seconds / len(raws):.0f} |")


def of_each(rows: dict[str, float], raws: list[tuple[str, bytes]]) -> None:
    """Measure what is done to each mail by itself."""
    rows["header fields, MIME, charsets"] = least(lambda: each(lambda _, raw: parse(raw), raws))
    tokenizer, html = nbspam.tokens.tokenized, nbspam.tokens.html
    parsed = [(parse(raw), []) for _, raw in raws]
    rows["all tokens"] = least(lambda: each(lambda m, _: tokenizer.message_tokens(m), parsed))
    within = {
        "of these: of header fields": Within(tokenizer, "header_tokens"),
        "of these: HTML": Within(html, "read_page"),
        "of these: of texts": Within(tokenizer, "text_tokens"),
    }
    found = [tokenizer.message_tokens(message, texts) for message, texts in parsed]
    rows |= {stage: part.seconds for stage, part in within.items()}
    rows["traits"] = least(lambda: each(message_traits, parsed))
    known = [(tokens, message.headers) for tokens, (message, _) in zip(found, parsed, strict=True)]
    rows["digest"] = least(lambda: each(digest_of, known))


def of_all(rows: dict[str, float], raws: list[tuple[str, bytes]], model: Path) -> None:
    """Measure what is done to all mails together."""
    outputs = TokenizerOutputs(traits=True)
    messages = [
        tokenize(parse(raw), str(i), label, outputs=outputs) for i, (label, raw) in enumerate(raws)
    ]
    batches = [messages[i : i + 50] for i in range(0, len(messages), 50)]
    pairs = [RawMessage(str(i), label, raw) for i, (label, raw) in enumerate(raws)]
    how = TokenizeOptions(True, outputs, skip_empty=True)
    alone, _ = once(lambda: sum(1 for _ in tokenize_batch(pairs, how)))
    run = TrainingRun(Executor(), TrainingSettings())
    read, _ = once(lambda: run.read(batch_messages(iter(pairs), *PIECE_LIMITS), Skips()))
    rows["tokens as numbers"] = read - alone
    rows["counts"], _ = once(run.count)
    rows["left-out features, fit"], _ = once(run.fit)
    rows["write the model"], _ = once(lambda: replace_model(model, run.write))
    rows["left-out scores, for the estimate"], _ = once(lambda: leave_one_out_rates(run))
    classify(rows, batches, model)


def classify(rows: dict[str, float], batches: list[list[TokenizedMessage]], model: Path) -> None:
    """Measure the scores of messages that are tokenized."""
    with Lookup(model) as lookup:
        rows["classify: table of the model's tokens"], table = once(lambda: TokenTable(lookup))
    with open_filter(model) as spam_filter:
        bulk = BulkClassifier(spam_filter.version.classifier, table)
        rows["classify: find tokens, score"] = least(
            lambda: [list(bulk.scores(batch)) for batch in batches]
        )


if __name__ == "__main__":
    main()
