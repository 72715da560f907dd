"""`nbspam model`: what is in a model, and a model changed."""

import json
import sys
from functools import partial
from pathlib import Path

import click

from nbspam.bayes.calibration import DECIMALS, trust
from nbspam.bayes.event_model import Row
from nbspam.bayes.trait_model import Variances
from nbspam.cli import notes, options
from nbspam.cli.command import LazyGroup, argument, command, is_typed, option
from nbspam.cli.terminal import echo_paragraph, echo_sentence, unbroken
from nbspam.errors import OptionError, counted, one_line
from nbspam.names import doubt_words
from nbspam.reading.source import STDIN
from nbspam.scoring import explanation, rules, verdict
from nbspam.store.lookup import Lookup, checked_model
from nbspam.store.metadata import BASE, DEFAULT, TRAINING, Metadata
from nbspam.tokens.kinds import COLLECTED_BY
from nbspam.tokens.tokenized import RULES

_SHOWN, _LISTED = 5, 100  # hosts with the most mails, in text and in JSON
_MANY = 100  # known header words of a typical mail
# The origin of the calibration in words.
_CALIBRATED = {
    TRAINING: "fitted to the messages it was trained on, each left out",
    DEFAULT: "the default, not fitted; train --update refines it",
    BASE: "begun as that of its base; train --update --base refines it",
}


@click.group(
    "model",
    cls=LazyGroup,
    files={
        "info": ("model:info", "Print what a model has learned and how it decides"),
        "check": ("model:check", "Read the whole model and recompute every derived number"),
        "set": ("model:set_", "Change the cut-offs that are stored in a model"),
        "words": ("model:words", "Print how often single words were learned"),
        "prune": ("model:prune", "Make a model smaller by removing its rarest tokens"),
    },
)
def model() -> None:
    """Inspect, check, change or prune a model."""


_FILE = argument("file", metavar="[FILE]", type=options.FILE_PATH, required=False)


def _named(file: Path | None, model: Path) -> Path:
    """Return the model to inspect: FILE, else that of -m or the default."""
    if file is not None and is_typed("model"):
        raise OptionError(f"{file}: -m names another model, {model}; leave one of them out")
    return file or model


@command("info")
def info(
    *, file: Path | None = _FILE, model: Path = options.MODEL, form: str = options.FORM
) -> None:
    """Print what a model has learned and how it decides.

    \b
    Examples:
      nbspam model info
      nbspam model info mail.json --format json
    """
    model = _named(file, model)
    with Lookup(model) as lookup:
        metadata, remembered = lookup.metadata, lookup.remembered()
        host_rows = lookup.beginning_with(COLLECTED_BY.prefix)
        top = sorted(host_rows, key=lambda item: sum(item[1]), reverse=True)[:_LISTED]
    hosts = {token.removeprefix(COLLECTED_BY.prefix): row for token, row in top}
    size = model.stat().st_size
    if form == "json":
        fields = {"model": str(model), "bytes": size} | _fields(metadata, remembered, hosts)
        click.echo(json.dumps(fields))
        return
    notes.note_older(model, metadata)
    settings, learned = metadata
    is_calibrated = rules.rule_of(metadata).is_calibrated
    prior = "as learned" if settings.prior is None else f"{settings.prior:g} (fixed)"
    traits = settings.traits
    if settings.has_traits:
        n = sum(sum(values.values()) for values in learned.trait_histograms[0])
        traits += f", of {counted(n, 'message')}"
    if settings.variances != Variances():
        smoothing, variance, shared = settings.variances
        traits += f"; variance smoothing {smoothing:g}, variance prior {variance:g}"
        traits += ", shared variance" if shared else ""
    labels = "none look wrong"
    shares = zip(metadata.label_noise, learned.messages, strict=True)
    if doubt := doubt_words(metadata.by_class([(share * n, n) for share, n in shares])):
        labels = f"{doubt}, and have little influence: eval --leave-one-out --errors 20 shows some"
    cut_offs = "none: the verdict is the most probable class"
    if len(settings.classes) == 2:
        spam, ham = settings.spam_cutoff, settings.ham_cutoff
        cut_offs = f"spam above {spam:g}, ham up to {ham:g}, unsure between"
    headers, calibration = "treated as other words", "none: the plain posterior"
    if is_calibrated:
        calibration = _CALIBRATED[learned.calibrated_by]
        trusted = 100 * trust(*metadata.host_trust, _MANY)
        headers = f"trust {trusted:.0f} % ({notes.arrival_words(metadata)})"
    servers = [
        f"{unbroken(one_line(host))} ({_sizes(metadata, row)})"
        for host, row in list(hosts.items())[:_SHOWN]
    ]
    if (more := sum(learned.host_rows.values()) - len(servers)) > 0:
        servers.append(f"{more:,} more")
    rows = {
        "model": f"{unbroken(model)} ({size:,} bytes)",
        "learned": _sizes(metadata, learned.messages),
        "ledger": f"remembers {counted(remembered, 'message')}",
        "columns": "; ".join(f"text {text!r}, label {label!r}" for text, label in learned.columns),
        "tokens": f"{metadata.n_tokens:,}",
        "tokenizer": f"rules {settings.rules}",
        "scoring": f"{settings.scoring}, prior {prior}",
        "event model": f"{settings.event_model} with alpha {settings.alpha:g}",
        "traits": traits,
        "calibration": calibration,
        "labels": labels if is_calibrated and learned.calibrated_by == TRAINING else "",
        "cut-offs": cut_offs,
        "headers": headers,
        "servers": "; ".join(servers) or "none",
        "spam is": settings.positive or "no class: the verdict is the most probable one",
        "young": notes.young_sentence(metadata),
    }
    for name, text in rows.items():
        if text:
            echo_paragraph(f"{name:11} {text}", indent=12)


def _sizes(metadata: Metadata, row: Row) -> str:
    return ", ".join(f"{name}: {n:,}" for name, n in metadata.by_class(row).items())


def _fields(metadata: Metadata, remembered: int, hosts: dict[str, Row]) -> dict[str, object]:
    """Return the JSON fields."""
    settings, learned = metadata
    is_calibrated = rules.rule_of(metadata).is_calibrated
    return {
        "classes": settings.classes,
        **notes.counts_json(metadata),
        "columns": learned.columns,
        "rules": settings.rules,
        "program_rules": RULES,
        "event_model": settings.event_model,
        "traits": settings.traits,
        "variance_smoothing": settings.variances.smoothing,
        "variance_prior": settings.variances.prior,
        "shared_variance": settings.variances.shared,
        "alpha": settings.alpha,
        "prior": settings.prior,
        "positive": settings.positive,
        "scoring": settings.scoring,
        "calibrated_by": learned.calibrated_by if is_calibrated else None,
        "label_noise": metadata.by_class(metadata.label_noise) if is_calibrated else None,
        "remembered": remembered,
        "spam_cutoff": settings.spam_cutoff,
        "ham_cutoff": settings.ham_cutoff,
        "trust": trust(*metadata.host_trust, _MANY),
        "hosts": {host: metadata.by_class(row) for host, row in hosts.items()},
        "hosts_total": sum(metadata.learned.host_rows.values()),
        "missing": metadata.missing,
        "bias": metadata.bias,
    }


@command("check")
def check(*, file: Path | None = _FILE, model: Path = options.MODEL) -> None:
    """Read the whole model and recompute every derived number.

    If the file is damaged, it prints what disagrees and exits with 1.

    \b
    Example:
      nbspam model check mail.json
    """
    model = _named(file, model)
    n_tokens = len(checked_model(model).counts)
    echo_sentence(
        f"{unbroken(model)}: intact; {counted(n_tokens, 'token')} and all derived numbers agree"
    )


@command("words")
def words(
    *,
    words: tuple[str, ...] = argument(
        "words", metavar="WORD...", type=str, nargs=-1, required=True
    ),
    model: Path = options.MODEL,
    form: str = options.FORM,
) -> None:
    """Print how many messages of each class contain a word, and its weight in nats.

    A WORD is a word, two adjacent words in quotes, or a token of another kind such as subject:free
    or host:example.org; - reads words from standard input, one per line.  Words are looked up as
    the tokenizer writes them: in lower case and without disguises, so FREE and fr3e are free, and a
    digit is 0.  If the model knows the word only as another kind of token, it says as which.

    The weight is the log-odds of the word's presence: above 0 for spam, below 0 for ham.  With
    three or more classes it is that of the class that the word favours most.

    \b
    Examples:
      nbspam model words free meeting
      nbspam model words "claim now" subject:free -m mail.json
      nbspam model words --format json - < words.txt
    """
    options.refuse_stdin_twice(words)
    typed_words: list[str] = []
    for word in words:
        if word == STDIN:
            lines = sys.stdin.buffer.read().decode("utf-8", "replace") if sys.stdin else ""
            typed_words += [line.strip() for line in lines.splitlines() if line.strip()]
        else:
            typed_words.append(word)
    with Lookup(model) as lookup:
        metadata = lookup.metadata
        if not metadata.settings.counts.has_tokens:
            raise OptionError(f"{model}: counts no words, only traits; see nbspam model info")
        rows = explanation.word_counts(lookup, typed_words)
    classes, messages = metadata.settings.classes, metadata.learned.messages
    if form == "json":
        for row in rows:
            fields = {
                "word": row.typed,
                "token": row.token,
                "known": row.counts is not None,
                "counts": metadata.by_class(row.counts or (0,) * len(classes)),
                "messages": metadata.by_class(messages),
                "weights": None if row.weights is None else metadata.by_class(row.weights),
                "other_kinds": list(row.other_kinds),
            }
            click.echo(json.dumps(verdict.rounded(fields, DECIMALS)))
        return
    sizes = _sizes(metadata, messages)
    click.echo(f"{model}: learned {counted(sum(messages), 'message')} ({sizes})\n")
    width = max([4, *(len(one_line(row.token)) for row in rows)])
    heads = [f"in {name}".rjust(7) for name in classes]
    click.echo("  ".join(["word".ljust(width), *heads, "  weight"]))
    for row in rows:
        if row.counts is None:
            others = f", but {one_line(', '.join(row.other_kinds))}" if row.other_kinds else ""
            cells = [f"not in the model{others}"]
        else:
            counts = zip(row.counts, heads, strict=True)
            cells = [*(f"{n:,}".rjust(len(head)) for n, head in counts), _weight(row, metadata)]
        click.echo("  ".join([one_line(row.token).ljust(width), *cells]))


def _weight(word: explanation.WordCount, metadata: Metadata) -> str:
    settings = metadata.settings
    if word.weights is None:
        return "none".rjust(8)
    if settings.positive_index is not None and len(settings.classes) == 2:
        return f"{word.weights[settings.positive_index]:+8.3f}"
    weight, name = max(zip(word.weights, settings.classes, strict=True), key=lambda pair: pair[0])
    return f"{weight:+8.3f} for {name}"


@command("set")
def set_(
    *, model: Path = options.MODEL, cutting: options.Cutting, form: str = options.FORM
) -> None:
    """Change the cut-offs that are stored in a model.

    They apply to every command that uses the model, and to the server; an option of classify, eval
    or serve takes precedence.  What was learned is not changed.

    \b
    Examples:
      nbspam model set --spam-cutoff 0.99
      nbspam model set --ham-cost 9 -m mail.json
    """
    if not cutting.is_given:
        raise OptionError("nothing to set; give --spam-cutoff, --ham-cutoff or --ham-cost")
    cutting.check()
    from nbspam.learning import update  # inspecting a model loads less

    cut_offs = update.set_cut_offs(model, cutting.of)
    if form == "json":
        fields = {"model": str(model), "spam_cutoff": cut_offs.spam, "ham_cutoff": cut_offs.ham}
        click.echo(json.dumps(fields))
        return
    click.echo(f"{model}: spam above {cut_offs.spam:g}, ham up to {cut_offs.ham:g}")


_size = partial(option, type=click.IntRange(min=1), under="Model")


@command("prune")
def prune(
    *,
    model: Path = options.MODEL,
    min_count: int | None = _size(
        help="Keep the tokens that occur in at least N messages (if repeats count: N times)."
    ),
    max_tokens: int | None = _size(
        help="Keep the N most frequent tokens; among equally frequent ones the strongest."
    ),
    output: Path | None = options.OUTPUT,
    replace: bool = options.REPLACE_OUTPUT,
    form: str = options.FORM,
) -> None:
    """Make a model smaller by removing its rarest tokens; by default in place.

    \b
    Examples:
      nbspam model prune --min-count 2
      nbspam model prune --max-tokens 100000 -m mail.json -o small.json

    Messages, ledger and calibration are not changed, and learned messages stay known.  Forgetting
    one ignores the tokens that were removed; a removed token that occurs again is counted from 0.
    The names of receiving servers are kept.  The model no longer knows a removed token: a message
    with fewer than one known token in ten is unsure.

    In a model of 3,000 messages --min-count 2 keeps three tokens in ten and decides as well as
    before; on short texts it costs a few more errors (docs/model-file.md).  If fewer than 1 in 20
    are left, verdicts change, and a note says so.
    """
    if min_count is None and max_tokens is None:
        raise OptionError("nothing to remove; give --min-count or --max-tokens, or both")
    from nbspam.learning import update

    pruned = update.prune_file(model, output, min_count or 1, max_tokens, replace)
    target = output or model
    if pruned.is_little:
        notes.note(
            f"{target}: fewer than 1 in {1 / update.LITTLE:.0f} tokens are left, so verdicts"
            " change; check it with nbspam eval, or train again and keep more"
        )
    if form == "json":
        click.echo(json.dumps({"model": str(target), **pruned._asdict()}))
        return
    echo_sentence(
        f"{unbroken(target)}: kept {pruned.tokens:,} of {counted(pruned.tokens_before, 'token')},"
        f" {pruned.bytes:,} of {pruned.bytes_before:,} bytes; messages, ledger and calibration are"
        " unchanged; forget ignores the tokens that were removed"
    )
