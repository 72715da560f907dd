"""`nbspam model info`, `check` and `words`: what is in a model."""

import heapq
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from nbspam.bayes.event_model import Row
from nbspam.bayes.prediction import trust
from nbspam.bayes.trait_model import Variances
from nbspam.cli.configured import configured
from nbspam.cli.declared import argument
from nbspam.cli.notes import arrival_words, note_older, young_sentence
from nbspam.cli.options import FORM, MODEL, refuse_stdin_twice
from nbspam.cli.terminal import echo_paragraph, echo_sentence, unbroken
from nbspam.errors import ModelError, OptionError, counted, one_line
from nbspam.reading.sources import STDIN
from nbspam.scoring.explanation import WordCount, word_counts
from nbspam.scoring.rules import rule_of
from nbspam.store.check import disagreements
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import BASE, DEFAULT, MERGING, TRAINING, Metadata, ModelSettings
from nbspam.tokens.kinds import COLLECTED_BY
from nbspam.tokens.tokenized import RULES

_SHOWN, _LISTED = 5, 100  # hosts in the text, and in the JSON: those with the most mails
_MANY = 100  # known words of a header, as of most mails
# Where the calibration comes from, in words.
_CALIBRATED = {
    TRAINING: "fitted to the messages it was trained on, each left out",
    MERGING: "combined from those of the models it was merged from",
    DEFAULT: "not fitted, the default; train --update refines it",
    BASE: "begun as that of its base; train --update --base refines it",
}


@configured("info")
def info(*, model: Path = MODEL, form: str = FORM) -> None:
    """Print what a model has learned and how it decides.

    \b
    Examples:
      nbspam model info
      nbspam model info -m mail.json --format json
    """
    with Lookup(model) as lookup:
        metadata, remembered = lookup.metadata, lookup.remembered()
        hosts = _largest(lookup.beginning_with(COLLECTED_BY.prefix))
    size = model.stat().st_size
    if form == "json":
        click.echo(
            json.dumps({"model": str(model), "bytes": size} | _fields(metadata, remembered, hosts))
        )
        return
    note_older(model, metadata)
    settings, learned = metadata
    prior = "as learned" if settings.prior is None else f"{settings.prior:g} (fixed)"
    calibrated = "none: the plain posterior"
    if rule_of(metadata).is_calibrated:
        calibrated = _CALIBRATED[learned.calibrated_by]
    messages = zip(settings.classes, learned.messages, strict=True)
    rows = {
        "model": f"{unbroken(model)} ({size:,} bytes)",
        "learned": ", ".join(f"{name}: {n:,}" for name, n in messages),
        "ledger": f"remembers {counted(remembered, 'message')}",
        "tokens": f"{metadata.n_tokens:,}",
        "tokenizer": f"rules {settings.rules}",
        "scoring": f"{settings.scoring}, prior {prior}",
        "event model": f"{settings.event_model} with alpha {settings.alpha:g}",
        "traits": _traits(metadata),
        "calibration": calibrated,
        "labels": _labels(metadata),
        "cut-offs": _cut_offs(settings),
        "headers": _headers(metadata),
        "hosts": _hosts(metadata, hosts),
        "spam is": settings.positive or "no class: the verdict is the most probable one",
    }
    if learned.calibrated_by != TRAINING or not rule_of(metadata).is_calibrated:
        del rows["labels"]  # which were not looked at
    if sentence := young_sentence(metadata):
        rows["young"] = sentence
    for name, text in rows.items():
        echo_paragraph(f"{name:11} {text}", indent=12)


def _largest(found: Iterator[tuple[str, Row]]) -> dict[str, Row]:
    """Return the hosts with the most mails."""
    top = heapq.nlargest(_LISTED, found, key=lambda item: sum(item[1]))
    return {token.removeprefix(COLLECTED_BY.prefix): row for token, row in top}


def _labels(metadata: Metadata) -> str:
    if not metadata.label_noise:
        return "none look wrong beyond chance"
    return (
        f"about {100 * metadata.label_noise:.2g} % looked wrong in training, and count for little"
    )


def _cut_offs(settings: ModelSettings) -> str:
    if len(settings.classes) > 2:
        return "none: the verdict is the most probable class"
    return f"spam above {settings.spam_cutoff:g}, ham up to {settings.ham_cutoff:g}, unsure between"


def _traits(metadata: Metadata) -> str:
    settings, learned = metadata
    if not settings.has_traits:
        return settings.traits
    n = sum(sum(values.values()) for values in learned.trait_histograms[0])
    shown = f"{settings.traits}, of {counted(n, 'message')}"
    if settings.variances != Variances():
        smoothing, prior, shared = settings.variances
        shown += f"; variance smoothing {smoothing:g}, variance prior {prior:g}"
        shown += ", shared variance" if shared else ""
    return shown


def _headers(metadata: Metadata) -> str:
    if not rule_of(metadata).is_calibrated:
        return "treated as other words"
    rho, messages = metadata.host_trust
    return f"trust {100 * trust(rho, messages, _MANY):.0f} % ({arrival_words(metadata)})"


def _hosts(metadata: Metadata, hosts: dict[str, Row]) -> str:
    shown = []
    for host, row in list(hosts.items())[:_SHOWN]:
        mails = ", ".join(f"{name}: {n:,}" for name, n in _per_class(metadata, row).items())
        shown.append(f"{unbroken(one_line(host))} ({mails})")
    more = sum(metadata.learned.host_rows.values()) - len(shown)
    return "; ".join([*shown, f"{more:,} more"] if more > 0 else shown) or "none"


def _per_class(metadata: Metadata, row: Row) -> dict[str, int]:
    return dict(zip(metadata.settings.classes, row, strict=True))


def _fields(metadata: Metadata, remembered: int, hosts: dict[str, Row]) -> dict[str, object]:
    """Return the JSON fields."""
    settings, learned = metadata
    is_calibrated = rule_of(metadata).is_calibrated
    return {
        "classes": settings.classes,
        "messages": dict(zip(settings.classes, learned.messages, strict=True)),
        "tokens": metadata.n_tokens,
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
        "label_noise": metadata.label_noise if is_calibrated else None,
        "remembered": remembered,
        "spam_cutoff": settings.spam_cutoff,
        "ham_cutoff": settings.ham_cutoff,
        "trust": trust(*metadata.host_trust, _MANY),
        "hosts": {host: _per_class(metadata, row) for host, row in hosts.items()},
        "hosts_total": sum(metadata.learned.host_rows.values()),
        "missing": metadata.missing,
        "bias": metadata.bias,
    }


@configured("check")
def check(*, model: Path = MODEL) -> None:
    """Read the whole model and recompute every derived number.

    Exits with 1 and says what disagrees when the file is damaged.

    \b
    Example:
      nbspam model check -m mail.json
    """
    whole, wrong = disagreements(model)
    if wrong:
        raise ModelError(f"{model}: {'; '.join(wrong)}; restore it from a copy or train again")
    echo_sentence(
        f"{unbroken(model)}: whole; {counted(len(whole.counts), 'token')} and all derived numbers"
        " agree"
    )


@configured("words")
def words(
    *,
    words: tuple[str, ...] = argument("WORD...", nargs=-1, required=True),
    model: Path = MODEL,
    form: str = FORM,
) -> None:
    """Print how many messages of each class contain a word, and its weight in nats.

    A WORD is a word, two adjacent words in quotes, or a token of another kind such as subject:free
    or host:example.org; - reads words from standard input, one per line.  Words are looked up as
    the tokenizer writes them: in lower case and without disguises, so FREE and fr3e are free, and a
    digit is 0.  If the model knows the word only as another kind of token, it says as which.

    The weight is the log-odds of the word's presence: above 0 for spam, below 0 for ham.  With
    three or more classes it is that of the class that the word speaks for most.

    \b
    Examples:
      nbspam model words free meeting
      nbspam model words "claim now" subject:free -m mail.json
      nbspam model words --format json - < words.txt
    """
    asked = _typed(words)
    with Lookup(model) as lookup:
        metadata = lookup.metadata
        if not metadata.settings.counts.has_tokens:
            raise OptionError(f"{model}: counts no words, only traits; see nbspam model info")
        found = word_counts(lookup, asked)
    if form == "json":
        for word in found:
            click.echo(json.dumps(_word_json(word, metadata)))
    else:
        _print_words(model, found, metadata)


def _typed(words: tuple[str, ...]) -> list[str]:
    """Return the words, with those of standard input in the place of a `-`; raises OptionError."""
    refuse_stdin_twice(words)
    typed: list[str] = []
    for word in words:
        if word == STDIN:
            lines = sys.stdin.buffer.read().decode("utf-8", "replace") if sys.stdin else ""
            typed += [line.strip() for line in lines.splitlines() if line.strip()]
        else:
            typed.append(word)
    return typed


def _word_json(word: WordCount, metadata: Metadata) -> dict[str, object]:
    classes = metadata.settings.classes
    counts = word.counts or (0,) * len(classes)
    return {
        "word": word.typed,
        "token": word.token,
        "known": word.counts is not None,
        "counts": dict(zip(classes, counts, strict=True)),
        "messages": dict(zip(classes, metadata.learned.messages, strict=True)),
        "weights": None if word.weights is None else dict(zip(classes, word.weights, strict=True)),
        "other_kinds": list(word.other_kinds),
    }


def _print_words(model: Path, found: list[WordCount], metadata: Metadata) -> None:
    classes, messages = metadata.settings.classes, metadata.learned.messages
    sizes = ", ".join(f"{name}: {n:,}" for name, n in zip(classes, messages, strict=True))
    click.echo(f"{model}: learned {counted(sum(messages), 'message')} ({sizes})\n")
    width = max([4, *(len(one_line(word.token)) for word in found)])
    heads = [f"in {name}".rjust(7) for name in classes]
    click.echo("  ".join(["word".ljust(width), *heads, "  weight"]))
    for word in found:
        token = one_line(word.token).ljust(width)
        if word.counts is None:
            click.echo(f"{token}  {_absent(word)}")
            continue
        cells = [f"{n:,}".rjust(len(head)) for n, head in zip(word.counts, heads, strict=True)]
        click.echo("  ".join([token, *cells, _weight(word, metadata)]))


def _absent(word: WordCount) -> str:
    if not word.other_kinds:
        return "not in the model"
    return f"not in the model, but {one_line(', '.join(word.other_kinds))}"


def _weight(word: WordCount, metadata: Metadata) -> str:
    settings = metadata.settings
    if word.weights is None:
        return "none".rjust(8)
    if settings.positive_index is not None and len(settings.classes) == 2:
        return f"{word.weights[settings.positive_index]:+8.3f}"
    k = max(range(len(settings.classes)), key=lambda k: word.weights[k] if word.weights else 0.0)
    return f"{word.weights[k]:+8.3f} for {settings.classes[k]}"
