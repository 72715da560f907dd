"""Options that several commands share, each group gathered into a typed record.

Those of commands that learn are in `sources_options.py` and `learning_options.py`, so that
classifying one message does not load them.
"""

import functools
import math
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from nbspam.cli.notes import NoTrace
from nbspam.errors import OptionError
from nbspam.reading.sources import (
    STDIN,
    ReadingOptions,
    TableOptions,
)
from nbspam.scoring.verdict import CutOffs
from nbspam.store.metadata import Metadata
from nbspam.workers import all_cores

if TYPE_CHECKING:  # importing it takes 3 ms, and classifying one message does without
    from pathlib import Path

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]


def default_model() -> str:
    """Return $NBSPAM_MODEL, else the model's place in the user's data folder."""
    if named := os.environ.get("NBSPAM_MODEL"):
        return named
    home = os.path.expanduser("~").rstrip("/")  # noqa: PTH111 (no pathlib for one message)
    if home.startswith("~"):  # a mail server's user may have none
        raise OptionError("there is no home folder for the model; name it with --model")
    if sys.platform == "darwin":
        folder = f"{home}/Library/Application Support"
    else:
        folder = os.environ.get("XDG_DATA_HOME") or f"{home}/.local/share"
    return f"{folder.rstrip('/')}/nbspam/model.json"


class FilePath(click.Path):
    """A file as a `pathlib.Path`, which is imported when there is one."""

    def coerce_path_result(self, value: str | os.PathLike[str]) -> "Path":
        """Return the parameter's value."""
        from pathlib import Path

        return Path(value)


class FileName(click.Path):
    """A file by its name, written as `pathlib` does, which is imported if it changes the name."""

    def coerce_path_result(self, value: str | os.PathLike[str]) -> str:
        """Return the parameter's value."""
        name = os.fspath(value)
        if "//" in name or "./" in name or name.endswith(("/", "/.")) or not name:
            from pathlib import Path

            name = str(Path(name))
        return name


def make_default_folder(model: "Path") -> None:
    """Create the folder of the default model; that of any other is the user's to make."""
    if model == FilePath().coerce_path_result(default_model()):
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


def _model_option(kind: click.Path) -> Decorator[Any]:
    return click.option(
        "-m",
        "--model",
        type=kind,
        default=default_model,
        show_default="$NBSPAM_MODEL, or the user's data folder",
        help="Use this model file.",
    )


model_option = _model_option(FilePath())
model_name_option = _model_option(FileName())
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
    type=FilePath(),
    help="Write to this file.",
)
replace_output_option = click.option(
    "--replace", is_flag=True, help="Overwrite the output file if it exists."
)
strict_option = click.option(
    "--strict", is_flag=True, help="Stop at the first row or file that cannot be read."
)


LOGS = ["syslog", "journal", "stderr"]  # as nbspam.serving.log has them, which is not loaded here


def traced(action: str) -> Decorator[Any]:
    """Return a decorator that adds --log to a command, and passes it a `Trace`.

    Without --log that is a NoTrace.
    action: what the command does with a message, as its log lines name it.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_trace(*args: Any, log: str | None, **values: Any) -> Any:
            if log is None:
                return command(*args, trace=NoTrace(), **values)
            from nbspam.cli.tracing import Trace

            with Trace(action, log) as trace:
                return command(*args, trace=trace, **values)

        option = click.option(
            "--log",
            type=click.Choice(LOGS),
            help="Log a line for each message to syslog, the systemd journal or standard error.",
        )
        return option(with_trace)  # type: ignore[return-value]

    return decorate


class Reading(NamedTuple):
    """How to read the sources."""

    lines: bool
    text_column: str | None
    label_column: str | None
    encoding: str | None
    outside: bool
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
        return ReadingOptions(table, self.lines, seen, self.outside)


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
    click.option(
        "--outside",
        is_flag=True,
        help="Read the files that an index names outside the folder above its own, too.",
    ),
    strict_option,
)


class Cutting(NamedTuple):
    """Where spam begins and ham ends; None is the model's own."""

    spam_cutoff: float | None
    ham_cutoff: float | None
    ham_cost: float | None

    @property
    def is_given(self) -> bool:
        """Whether one of them was given."""
        return any(value is not None for value in self)

    def check(self) -> None:
        """Raise OptionError for what is wrong with any model."""
        # A ham cut-off above the model's spam cut-off is wrong only for that model.
        CutOffs(1.0, 0.0).changed(*self)

    def of(self, metadata: Metadata) -> CutOffs:
        """Return the cut-offs for a model; raises OptionError."""
        self.check_classes(len(metadata.settings.classes))
        return CutOffs.of_model(metadata).changed(*self)

    def check_limit(self, max_ham_blocked: str | None) -> None:
        """Raise OptionError for a limit on blocked ham, which finds cut-offs, beside cut-offs."""
        if max_ham_blocked is not None and self.is_given:
            raise OptionError(
                "--max-ham-blocked finds the cut-offs; leave out --spam-cutoff, --ham-cutoff and"
                " --ham-cost"
            )

    def check_classes(self, n_classes: int) -> None:
        """Raise OptionError for a model that has no use for them."""
        if n_classes > 2 and self.is_given:
            raise OptionError(
                f"the model has {n_classes} classes and its verdict is the most probable one;"
                " leave out the cut-offs"
            )

    def of_new(self) -> CutOffs:
        """Return the cut-offs for a model that is yet to be trained; raises OptionError."""
        return CutOffs().changed(*self)


cut_off_options: Decorator[Any] = gathered(
    "cutting",
    Cutting,
    click.option(
        "--spam-cutoff",
        type=float,
        metavar="P",
        help="Classify as spam when P(spam) > P. [default: the model's, 0.9 unless it was set]",
    ),
    click.option(
        "--ham-cutoff",
        type=float,
        metavar="P",
        help="Classify as ham when P(spam) <= P, and as unsure in between. [default: the model's,"
        " 0.5 unless it was set]",
    ),
    click.option(
        "--ham-cost",
        type=float,
        metavar="L",
        help="Set the cost of a false positive relative to a false negative; both cut-offs are then"
        " L/(1+L).",
    ),
)


def max_ham_blocked_option(what: str) -> Decorator[Any]:
    """Return the option --max-ham-blocked; what: what it does, the first words of its help."""
    return click.option(
        "--max-ham-blocked",
        metavar="P%",
        help=f"{what} that blocks at most this share of ham.",
    )


def ham_limit(text: str | None) -> float | None:
    """Return the share that --max-ham-blocked means, 0.1% or 0.001; raises OptionError."""
    if text is None:
        return None
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share < 1:
        raise OptionError(f"--max-ham-blocked {text!r} must be in [0, 1); try 0.1% or 0.001")
    return share


def refuse_stdin_twice(names: Sequence[str]) -> None:
    """Raise OptionError if standard input is named twice: the second time it is empty."""
    if names.count(STDIN) > 1:
        raise OptionError("-: standard input can be read only once; name it once")
