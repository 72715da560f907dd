"""Options that several commands share, each group gathered into a typed record.

Those of commands that learn are in `sources_options.py` and `learning_options.py`, so that
classifying one message does not load them.
"""

import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from nbspam.cli.notes import NoTrace, note_reading
from nbspam.errors import OptionError
from nbspam.reading.source import INPUT_FORMATS, LINES, MESSAGE, Flow
from nbspam.reading.sources import STDIN, ReadingOptions, TableOptions
from nbspam.urls import is_url
from nbspam.workers import all_cores

if TYPE_CHECKING:  # importing it takes 3 ms, and classifying one message does without
    from pathlib import Path

_CLASSES_NAMED = 10  # in an error

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]
Options = TypeVar("Options", bound=Any)  # a NamedTuple of options


class ProbabilityType(click.types.FloatParamType):
    """The value of an option that is a probability; a percentage is told as one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; the command checks its bounds."""
        try:
            share = float(value[:-1]) / 100 if str(value).endswith("%") else None
        except ValueError:
            share = None
        if share is not None:
            self.fail(f"{value!r} is a percentage; write it as {share:.12g}.", param, ctx)
        return super().convert(value, param, ctx)


PROBABILITY = ProbabilityType()


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
        if is_url(value):
            from nbspam.reading.remote import remote_path

            return remote_path(str(value))
        from pathlib import Path

        return Path(value)


class FileName(click.Path):
    """A file by its name, written as `pathlib` does, which is imported if it changes the name."""

    def coerce_path_result(self, value: str | os.PathLike[str]) -> str:
        """Return the parameter's value."""
        name = os.fspath(value)
        if is_url(name):
            return name
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
    Its field `from_file`, if it has one, takes the names of those that a config file set.
    """
    fields: tuple[str, ...] = record._fields  # type: ignore[attr-defined]
    names = [name for name in fields if name != "from_file"]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_record(*args: Any, **values: Any) -> Any:
            own = {name: values.pop(name) for name in names}
            if len(names) < len(fields):
                own["from_file"] = _of_file(names)
            return command(*args, **values, **{parameter: record(**own)})

        for option in reversed(options):
            with_record = option(with_record)
        return with_record  # type: ignore[return-value]

    return decorate


def _of_file(names: Iterable[str]) -> frozenset[str]:
    """Return those of the running command's parameters that a config file set."""
    context = click.get_current_context()
    from_file = ParameterSource.DEFAULT_MAP
    return frozenset(n for n in names if context.get_parameter_source(n) is from_file)


def without_settings(record: Options) -> Options:
    """Return a record of options with None for those that a config file set."""
    unset: dict[str, Any] = dict.fromkeys(_of_file(record._fields))
    replaced: Options = record._replace(**unset)
    return replaced


def _model_option(kind: click.Path) -> Decorator[Any]:
    return click.option(
        "-m",
        "--model",
        type=kind,
        envvar="NBSPAM_MODEL",  # before a config file, says click's order
        default=default_model,
        show_default="$NBSPAM_MODEL, or the user's data folder",
        help="Use this model file.",
    )


# click would call a file that it may not read wrong usage, and guess where its name is from.
model_option = _model_option(FilePath(readable=False))
model_name_option = _model_option(FileName(readable=False))
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
dask_option = click.option(
    "--dask",
    metavar="ADDRESS",
    help="Use the workers of the Dask scheduler at this address; local:N starts N of them here.",
)
output_option = click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=FilePath(readable=False),
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
    """Return a decorator that adds --log to a command, and passes it a `Trace` or a NoTrace.

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

    input_format: str | None
    lines: bool
    text_column: str | None
    label_column: str | None
    header_row: str | None
    encoding: str | None
    outside: bool
    strict: bool

    @property
    def format(self) -> str | None:
        """The format of the sources that are no folders, if one is given; raises OptionError."""
        if not self.lines:
            return self.input_format
        if self.input_format not in (None, LINES):
            raise OptionError(
                f"--lines is short for --input-format lines, and --input-format"
                f" {self.input_format} is given too; give one of them"
            )
        return LINES

    @property
    def is_one_message(self) -> bool:
        """Whether standard input is one message."""
        return self.format in (None, MESSAGE)

    def check(self, names: Sequence[str] = ()) -> None:
        """Raise OptionError for an unknown encoding, two formats, and what they have no use for.

        names: of sources that are one message if they are standard input.
        """
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except (LookupError, UnicodeError) as error:
                raise OptionError(
                    f"--encoding {self.encoding!r} is unknown to Python; try utf-8, cp1252 or"
                    " utf-16"
                ) from error
        form = self.format
        if form or self.text_column or self.label_column or self.header_row or self.encoding:
            from nbspam.cli.unused_options import refuse_unused  # a mail needs none

            refuse_unused(self._asdict(), form, names)

    def options(
        self,
        seen: bool = False,
        quiet: bool = False,
        flow: Flow | None = None,
        needs_content: bool = False,
    ) -> ReadingOptions:
        """Return them, checked, as `reading` takes them.

        seen: read only mail that was read.  quiet: say nothing of how a source was read.
        needs_content: whether an empty message is none.
        flow: told of the stream whose messages are to be answered as they come.
        """
        header_row = None if self.header_row is None else self.header_row == "yes"
        table = TableOptions(self.text_column, self.label_column, self.encoding, header_row)
        from_file = self.lines and bool(_of_file(["lines"]))
        options = ReadingOptions(
            table,
            self.format,
            from_file,
            seen,
            needs_content,
            self.outside,
            flow=flow,
            at_server=_at_server,
        )
        return options if quiet else options._replace(tell=note_reading)


def _at_server(name: str, only_read: bool) -> Iterator[tuple[str, bytes]]:
    """Yield the messages of a folder at a mail server, each with its address."""
    from nbspam.cli.accounts import messages_at  # for mail at a server alone

    return messages_at(name, only_read)


reading_options: Decorator[Any] = gathered(
    "reading",
    Reading,
    click.option(
        "--input-format",
        type=click.Choice(INPUT_FORMATS),
        metavar="FORMAT",
        help="Read what is no folder as a table (tsv, csv, jsonl, json, parquet), a message per"
        " line (lines), an mbox, one message (message), or a list of files, a name per line (files)"
        " or with a NUL after each (files0). [default: one message on standard input; files are"
        " recognised]",
    ),
    click.option("--lines", is_flag=True, help="Short for --input-format lines."),
    click.option("--text-column", metavar="NAME", help="Name the table column with the text."),
    click.option("--label-column", metavar="NAME", help="Name the table column with the class."),
    click.option(
        "--header-row",
        type=click.Choice(["yes", "no"]),
        help="Say whether the first row of a TSV or CSV table names its columns. [default:"
        " recognised]",
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        help="Set the encoding of a table. [default: UTF-8, else Windows-1252]",
    ),
    click.option(
        "--outside",
        is_flag=True,
        help="Read files outside of the sources, too: what links in a folder lead to, and what an"
        " index names outside the folder above its own.",
    ),
    strict_option,
)


def refuse_stdin_twice(names: Sequence[str]) -> None:
    """Raise OptionError if standard input is named twice: the second time it is empty."""
    if names.count(STDIN) > 1:
        raise OptionError("-: standard input can be read only once; name it once")
