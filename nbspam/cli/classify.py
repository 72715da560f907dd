"""`nbspam classify`."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from nbspam.cli.options import (
    cut_off_options,
    cut_offs_of,
    format_option,
    jobs_option,
    model_option,
    reading_of,
    reading_options,
    tell,
    tell_one_sided,
)
from nbspam.model.classifier import Classifier
from nbspam.model.lookup import Lookup
from nbspam.model.verdict import CutOffs, fields, verdict
from nbspam.reading.raw import Raw
from nbspam.reading.sources import STDIN, any_kind
from nbspam.workers import token_sets

# What would break the line, or command a terminal.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f]")


@click.command("classify")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@model_option
@cut_off_options
@reading_options
@format_option
@jobs_option
def command(sources: tuple[str, ...], model: Path, form: str, jobs: int, **options: Any) -> None:
    """Say of each message whether it is spam.

    Without a SOURCE it reads one message from standard input.  A SOURCE is whatever `train` takes;
    labels are ignored.  One line a message, in the order of the input: verdict, probability of
    spam, source, with tabs between them.

    \b
    Examples:
      nbspam classify < message.eml
      nbspam classify inbox.mbox | grep ^spam
      echo "You have won a prize" | nbspam classify --format json
      nbspam classify --spam-cutoff 0.99 --ham-cutoff 0.1 ~/Maildir
    """
    cut_offs = cut_offs_of(options)
    reading, skips = reading_of(options)
    with Lookup(model) as lookup:
        tell_one_sided(model, lookup.head)
        classifier = Classifier(lookup.head, lookup.counts)
        raws = (raw for source in sources or (STDIN,) for raw in any_kind(source, reading, skips))
        chosen = cut_offs(lookup.head)
        for raw, tokens, _ in classifier.in_batches(token_sets(raws, skips, jobs)):
            click.echo(_line(raw, tokens, classifier, chosen, form))
    tell(skips)


def _line(
    raw: Raw, tokens: Iterable[str], classifier: Classifier, cut_offs: CutOffs, form: str
) -> str:
    head = classifier.head
    score = classifier.score(tokens)
    called = verdict(head, score, cut_offs)
    if form == "text":
        source = _UNSEEN.sub(" ", raw.source)
        return f"{called}\t{score.probability:.4f}\t{source}"
    return json.dumps({"source": raw.source, **fields(head.classes, called, score)})
