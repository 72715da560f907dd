"""Options that several commands share, each group gathered into a typed record."""

import functools
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from nbspam.errors import OptionError
from nbspam.labels import HAM, SPAM, normal_label
from nbspam.learning.settings import TrainingSettings
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.reading.sources import (
    STDIN,
    ReadingOptions,
    TableOptions,
    any_kind,
    labelled,
    unlabelled,
)
from nbspam.scoring.verdict import CutOffs
from nbspam.store.metadata import EVIDENCE, SCORINGS, Metadata
from nbspam.workers import all_cores

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]


def default_model() -> Path:
    """Return $NBSPAM_MODEL, else the model's place in the user's data folder."""
    if named := os.environ.get("NBSPAM_MODEL"):
        return Path(named)
    try:
        home = Path.home()
    except RuntimeError as error:  # a mail server's user may have none
        raise OptionError(
            f"there is no home folder for the model ({error}); name it with --model"
        ) from error
    if sys.platform == "darwin":
        folder = home / "Library" / "Application Support"
    else:
        folder = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return folder / "nbspam" / "model.json"


def make_default_folder(model: Path) -> None:
    """Create the folder of the default model; that of any other is the user's to make."""
    if model == default_model():
        model.parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def gathered(
    parameter: str, record: Callable[..., object], *options: Callable[[Any], Any]
) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command and passes them as one record.

    parameter: the command's parameter that takes it.  record: a NamedTuple with the options' names.
    """
    names: tuple[str, ...] = record._fields  # type: ignore[attr-defined]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_record(*args: Any, **values: Any) -> Any:
            own = {name: values.pop(name) for name in names}
            return command(*args, **values, **{parameter: record(**own)})

        for option in reversed(options):
            with_record = option(with_record)
        return with_record  # type: ignore[return-value]

    return decorate


model_option = click.option(
    "-m",
    "--model",
    type=click.Path(path_type=Path),
    default=default_model,
    show_default="$NBSPAM_MODEL, or the user's data folder",
    help="Use this model file.",
)
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Print text for people or JSON for programs.",
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print only results and errors.")
jobs_option = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(1),
    default=all_cores,
    show_default="all cores",
    metavar="N",
    help="Use N processes where there are many messages.",
)
output_option = click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write to this file.",
)
replace_output_option = click.option(
    "--replace", is_flag=True, help="Overwrite the output file if it exists."
)
strict_option = click.option(
    "--strict", is_flag=True, help="Stop at the first row or file that cannot be read."
)


class Reading(NamedTuple):
    """How to read the sources."""

    lines: bool
    text_column: str | None
    label_column: str | None
    encoding: str | None
    strict: bool

    def options(self, seen: bool = False) -> ReadingOptions:
        """Return them as `reading` takes them; raises OptionError."""
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except (LookupError, UnicodeError) as error:
                raise OptionError(
                    f"--encoding {self.encoding!r} is unknown to Python; try utf-8, cp1252 or"
                    " utf-16"
                ) from error
        table = TableOptions(self.text_column, self.label_column, self.encoding)
        return ReadingOptions(table, self.lines, seen)


reading_options: Decorator[Any] = gathered(
    "reading",
    Reading,
    click.option("--lines", is_flag=True, help="Read a text file as one message per line."),
    click.option("--text-column", metavar="NAME", help="Name the table column with the text."),
    click.option("--label-column", metavar="NAME", help="Name the table column with the class."),
    click.option(
        "--encoding",
        metavar="NAME",
        help="Set the encoding of a table. [default: UTF-8, else Windows-1252]",
    ),
    strict_option,
)


class Sources(NamedTuple):
    """The labelled messages to read."""

    sources: tuple[str, ...]  # that carry their own labels
    spam: tuple[str, ...]
    ham: tuple[str, ...]
    label: tuple[str, ...]  # NAME=SRC

    def names(self) -> list[str]:
        """Return the names of all sources; raises OptionError if one cannot be read twice."""
        pairs = [pair.partition("=")[2] for pair in self.label]
        names = [*self.sources, *self.spam, *self.ham, *pairs]
        refuse_stdin_twice(names)
        return names

    def messages(self, reading: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
        """Return the messages, with labels; raises OptionError.

        First the sources that carry labels themselves, then --spam, --ham and --label, in order.
        """
        named = self._named()
        if not self.sources and not named:
            raise OptionError(
                "there is nothing to read; name a table or a folder, or use --spam and --ham"
            )
        if reading.lines and self.sources:
            raise OptionError(
                f"--lines: the lines of {self.sources[0]} have no labels; give it with --spam or"
                " --ham"
            )
        return itertools.chain(
            *(labelled(source, reading, skips) for source in self.sources),
            *(unlabelled(source, label, reading, skips) for label, source in named),
        )

    def messages_of_any_kind(self, reading: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
        """Return the messages; those of the plain sources have a label only if they carry one."""
        named = self._replace(sources=())
        return itertools.chain(
            *(any_kind(source, reading, skips) for source in self.sources),
            named.messages(reading, skips) if named != Sources((), (), (), ()) else (),
        )

    def _named(self) -> list[tuple[str, str]]:
        """Return (label, source) of --spam, --ham and --label."""
        named = [(SPAM, source) for source in self.spam] + [(HAM, source) for source in self.ham]
        for pair in self.label:
            name, equals, source = pair.partition("=")
            if not (equals and normal_label(name) and source):
                raise OptionError(
                    f"--label {pair!r} is not NAME=SOURCE; try --label promo=promo.mbox"
                )
            named.append((normal_label(name), source))
        return named


labelled_sources: Decorator[Any] = gathered(
    "sources",
    Sources,
    click.argument("sources", nargs=-1, metavar="[SOURCE]..."),
    click.option("--spam", multiple=True, metavar="SRC", help="Read spam from SRC (repeatable)."),
    click.option("--ham", multiple=True, metavar="SRC", help="Read ham from SRC (repeatable)."),
    click.option(
        "--label",
        multiple=True,
        metavar="NAME=SRC",
        help="Read messages of the class NAME from SRC (repeatable).",
    ),
)


class Learning(NamedTuple):
    """How to learn; None is the default."""

    scoring: str | None
    alpha: float | None
    prior: float | None
    spam_label: str | None

    def settings(self) -> TrainingSettings:
        """Return them as `learning` takes them; raises OptionError for a senseless value."""
        settings = TrainingSettings(
            alpha=self.alpha,
            prior=self.prior,
            scoring=self.scoring or EVIDENCE,
            positive=None if self.spam_label is None else normal_label(self.spam_label),
        )
        settings.check()
        return settings

    def given(self) -> list[str]:
        """Return the names of the options that were given."""
        return [name for name, value in self._asdict().items() if value is not None]

    @staticmethod
    def option(name: str) -> str:
        """Return a field's option: `--spam-label`."""
        return f"--{name.replace('_', '-')}"


learning_options: Decorator[Any] = gathered(
    "learning",
    Learning,
    click.option(
        "--scoring",
        type=click.Choice(SCORINGS),
        help="Combine and calibrate the weights as evidence, or take the textbook's plain sum."
        " [default: evidence]",
    ),
    click.option(
        "--alpha",
        type=float,
        metavar="A",
        help="Set the additive (Laplace) smoothing, above 0. [default: 0.05; sum 0.1]",
    ),
    click.option(
        "--prior",
        type=float,
        metavar="P",
        help="Fix the prior probability of spam, between 0 and 1. [default: the share learned]",
    ),
    click.option(
        "--spam-label", metavar="NAME", help="Count this class as spam, if none is called spam."
    ),
)


class Cutting(NamedTuple):
    """Where spam begins and ham ends; None is the model's own."""

    spam_cutoff: float | None
    ham_cutoff: float | None
    ham_cost: float | None

    def check(self) -> None:
        """Raise OptionError for what is wrong with any model."""
        # A ham cut-off above the model's spam cut-off is wrong only for that model.
        spam = 1.0 if self.spam_cutoff is None and self.ham_cost is None else self.spam_cutoff
        CutOffs.of_options(spam, self.ham_cutoff, self.ham_cost)

    def of(self, metadata: Metadata) -> CutOffs:
        """Return the cut-offs for a model; raises OptionError."""
        classes = metadata.settings.classes
        if len(classes) > 2 and any(value is not None for value in self):
            raise OptionError(
                f"the model has {len(classes)} classes and its verdict is the most probable one;"
                " leave out the cut-offs"
            )
        return CutOffs.of_options(*self, default=metadata.settings.spam_cutoff)

    def of_new(self) -> CutOffs:
        """Return the cut-offs for a model that is yet to be trained; raises OptionError."""
        return CutOffs.of_options(*self)


cut_off_options: Decorator[Any] = gathered(
    "cutting",
    Cutting,
    click.option(
        "--spam-cutoff",
        type=float,
        metavar="P",
        help="Classify as spam when P(spam) > P. [default: the model's, 0.5 unless"
        " --max-ham-blocked set it]",
    ),
    click.option(
        "--ham-cutoff",
        type=float,
        metavar="P",
        help="Classify as ham when P(spam) <= P, and as unsure in between. [default: the model's]",
    ),
    click.option(
        "--ham-cost",
        type=float,
        metavar="L",
        help="Set the cost of a false positive relative to a false negative; the cut-off is"
        " L/(1+L).",
    ),
)


def refuse_stdin_twice(names: Sequence[str]) -> None:
    """Raise OptionError if standard input is named twice: the second time it is empty."""
    if names.count(STDIN) > 1:
        raise OptionError("-: standard input can be read only once; name it once")
