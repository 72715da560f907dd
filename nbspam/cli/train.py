"""`nbspam train`."""

import json
import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from nbspam.cli.options import (
    default_model,
    format_option,
    jobs_option,
    labelled_messages,
    labelled_sources,
    learning_options,
    model_option,
    named_sources,
    quiet_option,
    reading_of,
    reading_options,
    settings_of,
    tell,
)
from nbspam.cli.progress import progress
from nbspam.errors import OptionError
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import Settings
from nbspam.learning.update import Change, PendingMessages, learn
from nbspam.reading.skips import Skips
from nbspam.reading.sources import STDIN
from nbspam.scoring.classifier import Score
from nbspam.scoring.verdict import CutOffs, verdict
from nbspam.store.lookup import Lookup
from nbspam.store.model_file import ModelExistsError, already_there, write_model
from nbspam.workers import token_sets


@click.command("train")
@labelled_sources
@model_option
@click.option("--update", is_flag=True, help="Add to the model, or make it if there is none.")
@click.option("--replace", is_flag=True, help="Overwrite the model file if there is one.")
@click.option(
    "--ledger/--no-ledger",
    default=True,
    help="Remember which messages were learned, for --update and forget. [default: ledger]",
)
@click.option(
    "--seen",
    is_flag=True,
    help="Of a Maildir or mbox, only mail that was read and not deleted.",
)
@learning_options
@click.option(
    "--max-ham-blocked",
    metavar="P%",
    help="Choose the spam cut-off so that at most this share of ham is blocked, and store it.",
)
@reading_options
@format_option
@quiet_option
@jobs_option
def command(
    model: Path,
    update: bool,
    replace: bool,
    ledger: bool,
    max_ham_blocked: str | None,
    form: str,
    quiet: bool,
    jobs: int,
    **options: Any,
) -> None:
    """Learn from labelled messages and write a model, or add to one.

    A SOURCE with labels is a table (TSV, CSV, JSON lines, Parquet), a folder with one sub-folder
    per class, or a TREC index file.  Without labels, given by --spam, --ham or --label: an mbox, a
    Maildir, a folder of messages, one message, a text file with --lines, or - for standard input.
    Gzip, bzip2 and xz are read as they are.

    At the end it prints what to expect of the model on new messages: every message is scored by a
    model that has not seen it (leave-one-out).

    --update adds to the model, or makes it.  The model remembers what it has learned: a message is
    brought up to the number of times that the sources have it, never above, and one that was
    learned in another class is moved.  So the same line can run every night.  One message from
    standard input is learned in silence.

    \b
    Examples:
      nbspam train messages.tsv
      nbspam train --ham ~/Maildir --spam ~/Maildir/.Junk -m mail.json
      nbspam train --update --seen -q --ham ~/Maildir --spam ~/Maildir/.Junk
      nbspam train --update --spam - < message.eml
      nbspam train --max-ham-blocked 0.1% --ham inbox.mbox --spam junk.mbox
      nbspam train --replace --label promo=promo.mbox --ham inbox.mbox --spam junk.mbox
    """
    if update and replace:
        raise OptionError("--update adds to the model and --replace begins anew; give one of them")
    if update and max_ham_blocked is not None:
        raise OptionError(
            "--max-ham-blocked needs all messages at once; give it with --replace, or leave it out"
        )
    there = model.exists() and not model.is_dir()
    if there and not (update or replace):
        raise already_there(model)
    given = {
        name for name in ("alpha", "prior", "scoring", "spam_label") if options[name] is not None
    }
    settings = settings_of(options)
    if there and update:
        _check_settings(model, settings, given)
    limit = None if max_ham_blocked is None else _share(max_ham_blocked)
    reading, skips = reading_of(options)
    named = named_sources(options)
    silent = quiet or (update and named == [STDIN])  # as in a macro of a mail reader
    raws = labelled_messages(options, reading, skips)
    with progress(silent, named) as shown:
        messages = (
            (raw.label or "", tokens, digest)
            for raw, tokens, digest in shown(token_sets(raws, skips, jobs, digests=True))
        )
        if update:
            found = PendingMessages()
            found.read(model, messages, ledger)
            corpus = found.corpus
        else:
            corpus = Corpus()
            for label, tokens, digest in messages:
                corpus.add(label, tokens, digest)
    tell(skips)
    if model == default_model():
        model.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not update or (not model.exists() and len(set(corpus.labels)) > 1):
        try:
            _fit(model, corpus, settings, limit, replace, ledger, skips, form, quiet)
            return
        except ModelExistsError:
            if not update:  # else another process has made it meanwhile
                raise
    _tell_change(model, learn(model, found, settings, ledger), skips, form, silent)


def _tell_change(model: Path, change: Change, skips: Skips, form: str, silent: bool) -> None:
    if form == "json":
        told = {"model": str(model), **change._asdict(), "skipped": skips.count}
        del told["forgotten"]
        click.echo(json.dumps(told))
    elif not silent:
        click.echo(
            f"{model}: learned {change.learned} new messages, moved {change.moved} to another"
            f" class, {change.unchanged} were known"
        )


def _fit(
    model: Path,
    corpus: Corpus,
    settings: Settings,
    limit: float | None,
    replace: bool,
    ledger: bool,
    skips: Skips,
    form: str,
    quiet: bool,
) -> None:
    """Learn from all messages at once, write the model and say what to expect of it."""
    from nbspam.learning.batch import fit, left_out_scores, token_counts, with_cut_off

    fitted = fit(corpus, corpus.labels, settings, corpus.is_header())
    if limit is not None:
        fitted = with_cut_off(fitted, left_out_scores(corpus, fitted), limit)
    write_model(
        model,
        fitted.head,
        token_counts(corpus.vocabulary, fitted.counts),
        corpus.learned(fitted.head.classes) if ledger else (),
        replace_old=replace,
    )
    if quiet and form == "text":
        return
    estimate = _estimate(fitted, left_out_scores(corpus, fitted))
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


def _check_settings(model: Path, settings: Settings, given: set[str]) -> None:
    """Raise OptionError if an option asks for what the model is not made with."""
    with Lookup(model) as lookup:
        head = lookup.head
    for name in sorted(given):
        asked = getattr(settings, "positive" if name == "spam_label" else name)
        kept = getattr(head, "positive" if name == "spam_label" else name)
        if asked != kept:
            raise OptionError(
                f"--{name.replace('_', '-')} {asked}: the model {model} was made with {kept};"
                " leave it out, or train anew with --replace"
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


def _estimate(fitted: Any, scores: Iterable[Score]) -> dict[str, Any]:
    """Return the leave-one-out estimate: what to expect on new messages like these."""
    from nbspam.evaluation.metrics import share

    head = fitted.head
    cut_offs = CutOffs.of_options(default=head.spam_cutoff)
    called = Counter(
        (head.classes[k], verdict(head, score, cut_offs))
        for k, score in zip(fitted.labels, scores, strict=True)
    )
    right = sum(n for (label, found), n in called.items() if label == found)
    spam, caught = _called_positive(called, head.positive, True)
    ham, blocked = _called_positive(called, head.positive, False)
    return (
        share("accuracy", right, called.total(), 1)
        | share("sc_pct", caught, spam, 100)
        | share("bh_pct", blocked, ham, 100)
    )


def _called_positive(
    called: Counter[tuple[str, str]], positive: str | None, are_positive: bool
) -> tuple[int, int]:
    """Return how many messages are (or are not) of the positive class, and how many called so."""
    if positive is None:
        return 0, 0
    of = {pair: n for pair, n in called.items() if (pair[0] == positive) == are_positive}
    return sum(of.values()), sum(n for (_, found), n in of.items() if found == positive)


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
