"""`nbspam train`."""

import json
import math
from pathlib import Path
from typing import Any

import click

from nbspam.cli.options import (
    default_model,
    format_option,
    labelled_messages,
    labelled_sources,
    learning_options,
    model_option,
    quiet_option,
    reading_of,
    reading_options,
    tell,
)
from nbspam.errors import ModelError, OptionError
from nbspam.model.head import ALPHA_LIMIT, ALPHA_MIN, EVIDENCE
from nbspam.reading.raw import normal_label


@click.command("train")
@labelled_sources
@model_option
@click.option("--replace", is_flag=True, help="Overwrite the model file if there is one.")
@learning_options
@click.option(
    "--max-ham-blocked",
    metavar="P%",
    help="Choose the spam cut-off so that at most this share of ham is blocked, and store it.",
)
@reading_options
@format_option
@quiet_option
def command(
    model: Path, replace: bool, max_ham_blocked: str | None, form: str, quiet: bool, **options: Any
) -> None:
    """Learn from labelled messages and write a model.

    A SOURCE with labels is a table (TSV, CSV, JSON lines, Parquet), a folder with one sub-folder
    per class, or a TREC index file.  Without labels, given by --spam, --ham or --label: an mbox, a
    Maildir, a folder of messages, one message, a text file with --lines, or - for standard input.
    Gzip, bzip2 and xz are read as they are.

    At the end it prints what to expect of the model on new messages: every message is scored by a
    model that has not seen it (leave-one-out).

    \b
    Examples:
      nbspam train messages.tsv
      nbspam train --ham ~/Maildir --spam ~/Maildir/.Junk -m mail.json
      nbspam train --max-ham-blocked 0.1% --ham inbox.mbox --spam junk.mbox
      nbspam train --replace --label promo=promo.mbox --ham inbox.mbox --spam junk.mbox
    """
    if model.exists() and not model.is_dir() and not replace:
        raise ModelError(f"{model}: there is a model already; add --replace to overwrite it")
    settings = settings_of(options)
    limit = None if max_ham_blocked is None else _share(max_ham_blocked)
    reading, skips = reading_of(options)
    raws = labelled_messages(options, reading, skips)

    from nbspam.evaluation.report import progress
    from nbspam.model.json_file import write_model
    from nbspam.model.training import Corpus, fit, left_out_scores, token_counts, with_cut_off
    from nbspam.workers import token_sets

    corpus = Corpus()
    with progress(quiet) as shown:
        for raw, tokens in shown(token_sets(raws, skips)):
            corpus.add(raw.label or "", tokens)
    tell(skips)
    presence = corpus.presence()
    fitted = fit(presence, corpus.labels, settings, corpus.is_trace())
    scores = left_out_scores(presence, fitted)
    if limit is not None:
        fitted = with_cut_off(fitted, scores, limit)
    if model == default_model():
        model.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_model(model, fitted.head, token_counts(corpus.vocabulary, fitted.counts))
    if quiet and form == "text":
        return
    estimate = _estimate(fitted, scores)
    learned = dict(zip(fitted.head.classes, fitted.head.messages, strict=True))
    if form == "json":
        click.echo(
            json.dumps(
                {
                    "model": str(model),
                    "messages": learned,
                    "tokens": fitted.head.n_tokens,
                    "skipped": skips.count,
                    "leave_one_out": estimate,
                },
            )
        )
        return
    shown_counts = ", ".join(f"{name}: {n}" for name, n in learned.items())
    click.echo(
        f"{model}: learned {len(corpus)} messages ({shown_counts}), {fitted.head.n_tokens} tokens"
    )
    click.echo(_sentence(estimate))
    if limit is not None:
        click.echo(_cut_off_sentence(fitted, limit))


def settings_of(options: dict[str, Any]) -> Any:
    """Take the learning options out of a command's and return training Settings.

    Raises OptionError for a value that makes no sense.
    """
    from nbspam.model.training import Settings

    alpha, prior = options.pop("alpha"), options.pop("prior")
    if alpha is not None and not ALPHA_MIN <= alpha <= ALPHA_LIMIT:
        raise OptionError(
            f"--alpha must be above 0 and at most {ALPHA_LIMIT:g}, not {alpha}: without smoothing"
            " one unseen word would decide everything; leave it out for the default"
        )
    if prior is not None and not 0 < prior < 1:
        raise OptionError(f"--prior must be between 0 and 1, not {prior}; leave it out to learn it")
    return Settings(
        alpha=alpha,
        prior=prior,
        scoring=options.pop("scoring") or EVIDENCE,
        positive=None if (name := options.pop("spam_label")) is None else normal_label(name),
    )


def _share(text: str) -> float:
    """Return the share that `--max-ham-blocked` means: 0.1% or 0.001."""
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share < 1:
        raise OptionError(
            f"--max-ham-blocked {text!r} is no share from 0 to below 1; try 0.1% or 0.001"
        )
    return share


def _cut_off_sentence(fitted: Any, limit: float) -> str:
    """Say where the cut-off came to lie, and what it can be worth."""
    head = fitted.head
    sentence = (
        f"cut-off for at most {100 * limit:g} % of ham blocked: spam is above"
        f" {head.spam_cutoff:.6g}, stored in the model; the shares above are those it gives"
    )
    if head.spam_cutoff >= 1:
        sentence += "; the model is so sure of some ham that nothing will be called spam"
    ham = sum(head.messages) - head.messages[head.positive_index]
    if limit * ham < 1:
        sentence += f"; {ham} ham messages are too few to measure less than {100 / ham:.2g} %"
    return sentence


def _estimate(fitted: Any, scores: list[Any]) -> dict[str, Any]:
    """Return the leave-one-out estimate: what to expect on new messages like these."""
    from nbspam.evaluation.metrics import share
    from nbspam.model.verdict import CutOffs, verdict

    head = fitted.head
    cut_offs = CutOffs.of_options(default=head.spam_cutoff)
    pairs = [
        (head.classes[k], verdict(head, score, cut_offs))
        for k, score in zip(fitted.labels.tolist(), scores, strict=True)
    ]
    of_spam = [called == head.positive for label, called in pairs if label == head.positive]
    of_ham = [called == head.positive for label, called in pairs if label != head.positive]
    if head.positive is None:
        of_spam = of_ham = []
    return (
        share("accuracy", [label == called for label, called in pairs], 1)
        | share("sc_pct", of_spam, 100)
        | share("bh_pct", of_ham, 100)
    )


def _sentence(estimate: dict[str, Any]) -> str:
    parts = []
    for name, what, times in (
        ("accuracy", "right", 100),
        ("sc_pct", "spam caught", 1),
        ("bh_pct", "ham blocked", 1),
    ):
        value, interval = estimate[name], estimate[f"{name}_ci"]
        if value is not None:
            low, high = (times * end for end in interval)
            parts.append(f"{what} {times * value:.2f} % ({low:.2f} to {high:.2f})")
    return "expect on new messages like these, each scored with itself left out: " + ", ".join(
        parts
    )
