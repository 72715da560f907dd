"""`nbspam model`: commands that inspect, check, change or prune a model."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from nbspam.bayes.event_model import Row
from nbspam.bayes.prediction import trust
from nbspam.bayes.trait_model import Variances
from nbspam.cli import notes, options
from nbspam.cli.command import LazyGroup, argument, command, given_on_command_line, option
from nbspam.cli.terminal import echo_paragraph, echo_sentence, print_result, unbroken
from nbspam.errors import OptionError, format_count, one_line
from nbspam.names import doubt_words
from nbspam.scoring import rules
from nbspam.store.lookup import Lookup, checked_model
from nbspam.store.metadata import BASE, DEFAULT, TRAINING, Metadata
from nbspam.tokens.kinds import COLLECTED_BY
from nbspam.tokens.tokenized import TOKENIZER_VERSION

_MAX_HOSTS_SHOWN, _MAX_HOSTS_LISTED = 5, 100  # in text and in JSON
_TYPICAL_HEADER_WORDS = 100  # known header words of a typical mail
# The origin of the calibration in words.
_CALIBRATED = {
    TRAINING: "fitted to the messages it was trained on, each left out",
    DEFAULT: "the default, not fitted; train --update refines it",
    BASE: "copied from its base; train --update --base refines it",
}


@click.group(
    "model",
    cls=LazyGroup,
    files={
        "info": ("model:info", "Print what a model has learned and how it decides"),
        "check": ("model:check", "Read the whole model and recompute every derived number"),
        "set": ("model:set_", "Change the cut-offs that are stored in a model"),
        "prune": ("model:prune", "Make a model smaller by removing its rarest tokens"),
    },
)
def model() -> None:
    """Inspect, check, change or prune a model."""


_FILE = argument("file", metavar="[FILE]", type=options.FILE_PATH, required=False)


def _model_to_inspect(file: Path | None, model: Path) -> Path:
    """Return the model to inspect: FILE, else the model of -m or the default model."""
    if file is not None and given_on_command_line("model"):
        raise OptionError(f"{file}: -m names another model, {model}; leave one of them out")
    return file or model


@command("info")
def info(
    *,
    files: tuple[Path, ...] = argument(
        "files", metavar="[FILE]...", type=options.FILE_PATH, nargs=-1
    ),
    model: Path = options.MODEL,
    form: str = options.FORM,
) -> None:
    """Print what a model has learned and how it decides; for several models, a table.

    \b
    Examples:
      nbspam model info
      nbspam model info mail.json --format json
      nbspam model info /var/lib/nbspam/users/*.json
    """
    models = files or (model,)
    _model_to_inspect(files[0] if files else None, model)
    if len(models) > 1 and form != "json":
        _print_table(models)
        return
    for path in models:
        _print_info(path, form)


def _print_table(models: Sequence[Path]) -> None:
    """Print a line for each model: its sizes and its learned messages."""
    rows = [("model", "bytes", "tokens", "rules", "learned")]
    for model in models:
        with Lookup(model) as lookup:
            metadata = lookup.metadata
        sizes = _sizes(metadata, metadata.learned.messages)
        numbers = (
            f"{model.stat().st_size:,}",
            f"{metadata.n_tokens:,}",
            str(metadata.settings.rules),
        )
        rows.append((one_line(str(model)), *numbers, sizes))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells, sizes in rows:
        aligned = [cell.rjust(width) for cell, width in zip(cells, widths[1:4], strict=True)]
        click.echo("  ".join([name.ljust(widths[0]), *aligned, sizes]))


def _print_info(model: Path, form: str) -> None:
    with Lookup(model) as lookup:
        metadata, remembered = lookup.metadata, lookup.ledger_size()
        host_rows = lookup.iter_prefix(COLLECTED_BY.prefix)
        top = sorted(host_rows, key=lambda item: sum(item[1]), reverse=True)[:_MAX_HOSTS_LISTED]
    hosts = {token.removeprefix(COLLECTED_BY.prefix): row for token, row in top}
    size = model.stat().st_size
    if form == "json":
        fields = {"model": str(model), "bytes": size} | _fields(metadata, remembered, hosts)
        click.echo(json.dumps(fields))
        return
    notes.note_older(model, metadata)
    settings, learned = metadata
    is_calibrated = rules.scoring_rule(metadata).is_calibrated
    prior = "as learned" if settings.prior is None else f"{settings.prior:g} (fixed)"
    traits = settings.traits
    if settings.has_traits:
        n = sum(sum(values.values()) for values in learned.trait_histograms[0])
        traits += f", of {format_count(n, 'message')}"
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
        trusted = 100 * trust(*metadata.host_trust, _TYPICAL_HEADER_WORDS)
        headers = f"trust {trusted:.0f} % ({notes.arrival_words(metadata)})"
    servers = [
        f"{unbroken(one_line(host))} ({_sizes(metadata, row)})"
        for host, row in list(hosts.items())[:_MAX_HOSTS_SHOWN]
    ]
    if (more := sum(learned.host_rows.values()) - len(servers)) > 0:
        servers.append(f"{more:,} more")
    rows = {
        "model": f"{unbroken(model)} ({size:,} bytes)",
        "learned": _sizes(metadata, learned.messages),
        "ledger": f"remembers {format_count(remembered, 'message')}",
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
        # A model with a base also knows the base's messages.
        "young": "" if learned.calibrated_by == BASE else notes.young_sentence(metadata),
    }
    for name, text in rows.items():
        if text:
            echo_paragraph(f"{name:11} {text}", indent=12)


def _sizes(metadata: Metadata, row: Row) -> str:
    return ", ".join(f"{name}: {n:,}" for name, n in metadata.by_class(row).items())


def _fields(metadata: Metadata, remembered: int, hosts: dict[str, Row]) -> dict[str, object]:
    settings, learned = metadata
    is_calibrated = rules.scoring_rule(metadata).is_calibrated
    return {
        "classes": settings.classes,
        **notes.counts_json(metadata),
        "columns": learned.columns,
        "rules": settings.rules,
        "program_rules": TOKENIZER_VERSION,
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
        "elsewhere": settings.elsewhere,
        "trust": trust(*metadata.host_trust, _TYPICAL_HEADER_WORDS),
        "hosts": {host: metadata.by_class(row) for host, row in hosts.items()},
        "hosts_total": sum(metadata.learned.host_rows.values()),
        "missing": metadata.messages_needed,
        "bias": metadata.bias,
    }


@command("check")
def check(*, file: Path | None = _FILE, model: Path = options.MODEL) -> None:
    """Read the whole model and recompute every derived number.

    If the file is damaged, the error names the contradictions, and the exit status is 1.

    \b
    Example:
      nbspam model check mail.json
    """
    model = _model_to_inspect(file, model)
    n_tokens = len(checked_model(model).counts)
    echo_sentence(
        f"{unbroken(model)}: intact; {format_count(n_tokens, 'token')} and all derived numbers"
        " agree"
    )


@command("set")
def set_(
    *, model: Path = options.MODEL, cut_off_options: options.CutOffOptions, form: str = options.FORM
) -> None:
    """Change the cut-offs that are stored in a model.

    The cut-offs apply to every command that uses the model, and to the server; an option of
    classify, eval or serve takes precedence.  Counts and calibration are not changed.

    \b
    Examples:
      nbspam model set --spam-cutoff 0.99
      nbspam model set --ham-cost 9 -m mail.json
      nbspam model set --trust-elsewhere
    """
    if not cut_off_options.is_given:
        raise OptionError(
            "nothing to set; give --spam-cutoff, --ham-cutoff, --ham-cost or --trust-elsewhere"
        )
    cut_off_options.check()
    from nbspam.learning import pruning  # inspecting a model loads less

    cut_offs = pruning.set_cut_offs(model, cut_off_options.for_model)
    fields = {
        "model": str(model),
        "spam_cutoff": cut_offs.spam,
        "ham_cutoff": cut_offs.ham,
        "elsewhere": cut_offs.elsewhere,
    }
    elsewhere = "doubted" if cut_offs.elsewhere else "trusted"
    sentence = (
        f"{unbroken(model)}: spam above {cut_offs.spam:g}, ham up to {cut_offs.ham:g}, mail from"
        f" elsewhere {elsewhere}"
    )
    print_result(form, fields, [sentence])


_size = partial(option, type=click.IntRange(min=1), help_heading="Model")


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

    Messages, ledger and calibration are not changed, and learned messages stay known.  Forgetting a
    message ignores its removed tokens; a removed token that is learned again is counted from 0.
    The names of receiving servers are kept.  The model no longer knows a removed token: a message
    with fewer than one known token in ten is unsure.

    In a model of 3,000 messages --min-count 2 keeps three tokens in ten and decides as well as
    before; on short texts it costs a few more errors (docs/model-file.md).  If fewer than 1 token
    in 20 is left, verdicts change, and a note says so.
    """
    if min_count is None and max_tokens is None:
        raise OptionError("nothing to remove; give --min-count or --max-tokens, or both")
    from nbspam.learning import pruning

    pruned = pruning.prune_file(model, output, min_count or 1, max_tokens, replace)
    target = output or model
    if pruned.is_little:
        notes.note(
            f"{target}: fewer than 1 in {1 / pruning.MIN_TOKEN_SHARE:.0f} tokens are left, so"
            " verdicts change; check it with nbspam eval, or train again and keep more"
        )
    sentence = (
        f"{unbroken(target)}: kept {pruned.tokens:,} of"
        f" {format_count(pruned.tokens_before, 'token')}, {pruned.bytes:,} of"
        f" {pruned.bytes_before:,} bytes; messages, ledger and calibration are"
        " unchanged; forget ignores the tokens that were removed"
    )
    print_result(form, {"model": str(target), **pruned._asdict()}, [sentence])
