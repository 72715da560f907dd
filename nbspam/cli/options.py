"""Options that several commands share, and what they stand for."""

import itertools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from nbspam.errors import OptionError
from nbspam.labels import HAM, SPAM, normal_label
from nbspam.learning.settings import Settings
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.reading.sources import STDIN, ReadingOptions, labelled, unlabelled
from nbspam.reading.tables import TableOptions
from nbspam.scoring.verdict import CutOffs
from nbspam.store.metadata import ALPHA_LIMIT, ALPHA_MIN, EVIDENCE, Metadata
from nbspam.workers import all_cores

Command = TypeVar("Command", bound=Callable[..., Any])


def default_model() -> Path:
    """Return $NBSPAM_MODEL, else the model's place in the user's data folder."""
    if named := os.environ.get("NBSPAM_MODEL"):
        return Path(named)
    try:
        home = Path.home()
    except RuntimeError as error:  # a mail server's user may have none
        raise OptionError(f"the model has no place ({error}); name it with --model") from error
    if sys.platform == "darwin":
        folder = home / "Library" / "Application Support"
    else:
        folder = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return folder / "nbspam" / "model.json"


def _decorate(*decorators: Callable[[Any], Any]) -> Callable[[Command], Command]:
    def apply(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return apply


model_option = click.option(
    "-m",
    "--model",
    type=click.Path(path_type=Path),
    default=default_model,
    show_default="$NBSPAM_MODEL, or the user's data folder",
    help="The model file.",
)
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for people, JSON for programs.",
)
quiet_option = click.option(
    "-q", "--quiet", is_flag=True, help="Print nothing but results and errors."
)
jobs_option = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(1),
    default=all_cores,
    show_default="all cores",
    metavar="N",
    help="Processes to use where there are many messages.",
)
reading_options = _decorate(
    click.option("--lines", is_flag=True, help="A text file is one message a line."),
    click.option("--text-column", metavar="NAME", help="A table's column with the text."),
    click.option("--label-column", metavar="NAME", help="A table's column with the class."),
    click.option(
        "--encoding", metavar="NAME", help="A table's encoding. [default: UTF-8, else Windows-1252]"
    ),
    click.option(
        "--strict", is_flag=True, help="Stop at the first row or file that cannot be read."
    ),
)
labelled_sources = _decorate(
    click.argument("sources", nargs=-1, metavar="[SOURCE]..."),
    click.option(
        "--spam", multiple=True, metavar="SRC", help="A source of spam; may be given again."
    ),
    click.option(
        "--ham", multiple=True, metavar="SRC", help="A source of ham; may be given again."
    ),
    click.option(
        "--label",
        multiple=True,
        metavar="NAME=SRC",
        help="A source of messages of the class NAME; may be given again.",
    ),
)
learning_options = _decorate(
    click.option(
        "--scoring",
        type=click.Choice(["evidence", "bernoulli"]),
        help="How word weights become a score: blended and calibrated, or the textbook's plain sum."
        " [default: evidence]",
    ),
    click.option(
        "--alpha",
        type=float,
        metavar="A",
        help="Smoothing: pseudo-messages with and without each token, above 0."
        " [default: 0.05; bernoulli 0.1]",
    ),
    click.option(
        "--prior",
        type=float,
        metavar="P",
        help="Fix the share of spam to expect, between 0 and 1. [default: the share learned]",
    ),
    click.option(
        "--spam-label", metavar="NAME", help="The class to count as spam, if none is called so."
    ),
)
cut_off_options = _decorate(
    click.option(
        "--spam-cutoff",
        type=float,
        metavar="P",
        help="Spam is above this. [default: the model's, 0.5 unless --max-ham-blocked set it]",
    ),
    click.option(
        "--ham-cutoff",
        type=float,
        metavar="P",
        help="Ham is up to this, and unsure between the two. [default: the model's]",
    ),
    click.option(
        "--ham-cost",
        type=float,
        metavar="L",
        help="A lost ham is L times worse than a spam let through; sets the cut-off to L/(1+L).",
    ),
)


def reading_of(options: dict[str, Any]) -> tuple[ReadingOptions, Skips]:
    """Take the reading options out of a command's."""
    encoding = options.pop("encoding")
    if encoding is not None:
        _check_encoding(encoding)
    table = TableOptions(options.pop("text_column"), options.pop("label_column"), encoding)
    reading = ReadingOptions(table, options.pop("lines"), options.pop("seen", False))
    return reading, Skips(options.pop("strict"))


def _check_encoding(name: str) -> None:
    try:
        "".encode(name)
    except (LookupError, UnicodeError) as error:
        raise OptionError(
            f"--encoding {name!r} is not one Python knows; try utf-8, cp1252 or utf-16"
        ) from error


def cut_offs_of(options: dict[str, Any]) -> Callable[[Metadata | None], CutOffs]:
    """Take the cut-off options out of a command's; raises OptionError.

    Returns what gives the cut-offs for a model, or for one that is yet to be trained (None).
    """
    spam, ham = options.pop("spam_cutoff"), options.pop("ham_cutoff")
    cost = options.pop("ham_cost")
    # A senseless option is wrong for any model; one above the model's own cut-off may be right.
    CutOffs.of_options(1.0 if spam is None and cost is None else spam, ham, cost)

    def cut_offs(head: Metadata | None) -> CutOffs:
        asked = (spam, ham, cost) != (None, None, None)
        if head and len(head.classes) > 2 and asked:
            raise OptionError(
                f"the model has {len(head.classes)} classes and its verdict is the most probable"
                " one; leave out the cut-offs"
            )
        return CutOffs.of_options(spam, ham, cost, head.spam_cutoff if head else 0.5)

    return cut_offs


def settings_of(options: dict[str, Any]) -> Settings:
    """Take the learning options out of a command's and return training Settings.

    Raises OptionError for a value that makes no sense.
    """
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


def named_sources(options: dict[str, Any]) -> list[str]:
    """Return the names of all sources in a command's options."""
    labelled_ = [pair.partition("=")[2] for pair in options["label"]]
    names = [*options["sources"], *options["spam"], *options["ham"], *labelled_]
    refuse_stdin_twice(names)
    return names


def refuse_stdin_twice(names: Sequence[str]) -> None:
    """Raise OptionError if standard input is named twice: the second time it is empty."""
    if names.count(STDIN) > 1:
        raise OptionError("-: standard input can be read once only; name it once")


def labelled_messages(
    options: dict[str, Any], reading: ReadingOptions, skips: Skips
) -> Iterator[RawMessage]:
    """Take the sources out of a command's options and yield their messages with labels.

    First the sources that have labels themselves, then --spam, --ham and --label, as given.
    """
    sources = options.pop("sources")
    named: list[tuple[str, str]] = [(SPAM, source) for source in options.pop("spam")]
    named += [(HAM, source) for source in options.pop("ham")]
    for pair in options.pop("label"):
        name, equals, source = pair.partition("=")
        if not (equals and normal_label(name) and source):
            raise OptionError(f"--label {pair!r} is not NAME=SOURCE; try --label promo=promo.mbox")
        named.append((normal_label(name), source))
    if not sources and not named:
        raise OptionError(
            "there is nothing to read; name a table or a folder, or use --spam and --ham"
        )
    if reading.lines and sources:
        raise OptionError(
            f"--lines: the lines of {sources[0]} have no labels; give it with --spam or --ham"
        )
    return itertools.chain(
        *(labelled(source, reading, skips) for source in sources),
        *(unlabelled(source, label, reading, skips) for label, source in named),
    )


def tell_one_sided(model: Path, head: Metadata) -> None:
    """Say on standard error that the model has not seen both sides yet, if so."""
    if head.is_one_sided:
        seen = [name for name, n in zip(head.classes, head.messages, strict=True) if n]
        what = f"only {seen[0]}" if seen else "nothing"
        click.echo(
            f"nbspam: {model}: has learned {what} so far, so every verdict is unsure; teach it the"
            " rest with nbspam train --update",
            err=True,
        )


def tell(skips: Skips) -> None:
    """Say on standard error what was skipped."""
    for line in skips.report():
        click.echo(f"nbspam: {line}" if not line.startswith(" ") else line, err=True)
