"""The options that several commands share: declarations, and records of them.

Those of commands that learn are in `learning_options.py`, so that classifying one message does not
load them.
"""

import math
import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from nbspam.cli.command import Option, option, section
from nbspam.cli.notes import default_model, note_reading
from nbspam.errors import OptionError, Remedy, SourceError
from nbspam.reading.source import (
    INPUT_FORMATS,
    LINES,
    MBOX_FORMAT,
    MESSAGE,
    TABLE_FORMATS,
    Flow,
)
from nbspam.reading.sources import STDIN, ReadingOptions, TableOptions
from nbspam.scoring.verdict import CutOffs
from nbspam.store.metadata import Metadata
from nbspam.workers import all_cores

if TYPE_CHECKING:  # importing it takes 3 ms, and classifying one message does without
    import contextlib
    from pathlib import Path

    from nbspam.scoring.base import Base

_CLASSES_NAMED = 10  # in an error


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


# Declarations


_model = partial(
    option,
    "-m",
    "--model",
    under="Model",
    envvar="NBSPAM_MODEL",  # before a config file, says click's order
    default=default_model,
    show_default="$NBSPAM_MODEL, or the user's data folder",
    in_file=True,
    help="Use this model file.",
)
# click would call a file that it may not read wrong usage, and guess where its name is from.
MODEL = _model(type=FilePath(readable=False))
MODEL_NAME = _model(type=FileName(readable=False))
BASE = option(
    "--base",
    metavar="FILE",
    type=FileName(readable=False),
    under="Model",
    envvar="NBSPAM_BASE",
    in_file=True,
    seldom=True,
    help="Add the counts of this shared model to those of the model. [default: $NBSPAM_BASE, or"
    " none]",
)
FORM = option(
    "form",
    "--format",
    type=click.Choice(["text", "json"]),
    under="Output",
    default="text",
    help="Print text for people or JSON for programs.",
)
QUIET = option(
    "-q", "--quiet", is_flag=True, under="Output", help="Print only results, errors and guesses."
)
JOBS = option(
    "-j",
    "--jobs",
    metavar="N",
    type=click.IntRange(1),
    default=all_cores,
    in_file=True,
    show_default="all cores",
    seldom=True,
    help="Use N processes for many messages.",
)
DASK = option(
    "--dask",
    metavar="ADDRESS",
    seldom=True,
    help="Run on the Dask cluster at this address; local:N starts N workers here. The output is the"
    " same.",
)
STRICT = option(
    "--strict",
    is_flag=True,
    under="Sources",
    seldom=True,
    help="Stop at the first row or file that cannot be read, instead of skipping it.",
)
FILE_PATH = FilePath(readable=False)
OUTPUT = option(
    "-o", "--output", metavar="FILE", type=FILE_PATH, under="Output", help="Write to this file."
)
REPLACE_OUTPUT = option(
    "--replace", is_flag=True, under="Output", help="Overwrite the output file if it exists."
)


def opened_base(base: str | None) -> "contextlib.AbstractContextManager[Base | None]":
    """Give the open base, None without one, for learning."""
    if base is None:
        from contextlib import nullcontext

        return nullcontext()
    from nbspam.scoring.base import open_base  # which a model without a base does without

    return open_base(base)


_column = partial(option, metavar="NAME", formats=TABLE_FORMATS, seldom=True)


@section("Sources")
class Reading(NamedTuple):
    """How to read the sources."""

    input_format: str | None = option(
        "--input-format",
        metavar="FORMAT",
        type=click.Choice(INPUT_FORMATS),
        help="Input format of files and pipes: a table (tsv, csv, jsonl, json, parquet), a message"
        " per line (lines), mbox or message. [default: one message on standard input; files are"
        " recognised]",
    )
    lines: bool = option("--lines", is_flag=True, help="Short for --input-format lines.")
    text_column: str | None = _column(
        "--text-column", help="Table column with the text. [default: recognised]"
    )
    label_column: str | None = _column(
        "--label-column", help="Table column with the class. [default: recognised]"
    )
    header_row: str | None = option(
        "--header-row",
        type=click.Choice(["yes", "no"]),
        formats=("tsv", "csv", "json"),
        seldom=True,
        help="Whether the first row of a TSV or CSV table names the columns. [default: recognised]",
    )
    encoding: str | None = option(
        "--encoding",
        metavar="NAME",
        formats=("tsv", "csv", "jsonl", "json", LINES),
        seldom=True,
        help="Encoding of a table. [default: UTF-8, else recognised]",
    )
    outside: bool = option(
        "--outside",
        is_flag=True,
        formats=(),
        seldom=True,
        help="Read files outside the sources, too: targets of links in a folder, and files that an"
        " index names outside its parent folder.",
    )
    attached: bool = option(
        "--attached",
        is_flag=True,
        formats=(MBOX_FORMAT, MESSAGE),
        seldom=True,
        help="Read the messages that are attached to mails, forwarded as message/rfc822, and not"
        " the mails.",
    )
    strict: bool = STRICT

    @property
    def format(self) -> str | None:
        """The format of the sources that are no folders, if one is given; raises OptionError."""
        if not self.lines:
            return self.input_format
        if self.input_format not in (None, LINES):
            raise OptionError(
                f"--lines and --input-format {self.input_format} cannot be used together; leave one"
                " of them out"
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
                    f"--encoding {self.encoding!r}: unknown encoding; try utf-8, cp1252 or utf-16"
                ) from error
        form = self.format
        if form is None:
            is_stdin = names and all(name == STDIN for name in names)
            for name in ("text_column", "label_column", "header_row", "encoding"):
                if is_stdin and getattr(self, name):
                    raise OptionError(
                        f"--{name.replace('_', '-')} applies to tables only, and standard input is"
                        " read as one message; name its format with --input-format, or leave it out"
                    )
            return
        context = click.get_current_context()
        for each in context.command.params:
            formats = each.formats if isinstance(each, Option) else None
            if formats is not None and form not in formats and context.params[each.name]:
                by = "--lines" if self.lines else f"--input-format {form}"
                raise OptionError(
                    f"{max(each.opts, key=len)} has no effect with {by}; leave one of them out"
                )

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
        return ReadingOptions(
            table,
            self.format,
            seen=seen,
            attached=self.attached,
            needs_content=needs_content,
            outside=self.outside,
            flow=flow,
            at_server=_at_server,
            tell=_tell_guess if quiet else _tell,
        )


def _tell(what: SourceError) -> None:
    if what.remedy is not Remedy.NAME_ANOTHER_LABEL:  # `train` says it of labels that do not fit
        note_reading(what)


# What the program guessed of a table, which even a quiet command does not do silently.
_GUESSES = {
    *(Remedy.NAME_TEXT_COLUMN, Remedy.OTHER_LABEL_COLUMN, Remedy.NAME_ENCODING),
    *(Remedy.HEADER_IS_MESSAGE, Remedy.SAVE_SHEET),
}


def _tell_guess(what: SourceError) -> None:
    if what.remedy in _GUESSES:
        note_reading(what)


def _at_server(name: str, only_read: bool) -> Iterator[tuple[str, bytes]]:
    """Yield the messages of a folder at a mail server, each with its address."""
    from nbspam.cli.accounts import messages_at  # for mail at a server alone

    return messages_at(name, only_read)


def refuse_stdin_twice(names: Sequence[str]) -> None:
    """Raise OptionError if standard input is named twice: the second time it is empty."""
    if names.count(STDIN) > 1:
        raise OptionError("-: standard input is named twice; name it once")


@section("Cut-offs")
class Cutting(NamedTuple):
    """Where spam begins and ham ends; None is the model's own."""

    spam_cutoff: float | None = option(
        "--spam-cutoff",
        metavar="P",
        type=PROBABILITY,
        help="Classify as spam when P(spam) > P. [default: the model's; 0.9]",
    )
    ham_cutoff: float | None = option(
        "--ham-cutoff",
        metavar="P",
        type=PROBABILITY,
        help="Classify as ham when P(spam) <= P, and as unsure in between. [default: the model's;"
        " 0.5]",
    )
    ham_cost: float | None = option(
        "--ham-cost",
        metavar="L",
        type=float,
        seldom=True,
        help="Cost of a false positive relative to a false negative; both cut-offs become L/(1+L).",
    )

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
        classes = metadata.settings.classes
        self.check_classes(classes)
        own = CutOffs.of_model(metadata)
        return own if len(classes) > 2 else own.changed(*self)

    def check_classes(self, classes: Sequence[str]) -> None:
        """Raise OptionError for a model that has no use for them."""
        if len(classes) > 2 and self.is_given:
            names = ", ".join(map(repr, classes[:_CLASSES_NAMED]))
            more = ", …" if len(classes) > _CLASSES_NAMED else ""
            raise OptionError(
                f"cut-offs need two classes, and the model has {len(classes)} classes"
                f" ({names}{more}); leave out the cut-offs, or correct a wrong label"
            )

    def of_new(self) -> CutOffs:
        """Return the cut-offs for a model that is yet to be trained; raises OptionError."""
        return CutOffs().changed(*self)


def _ham_limit(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Return the share that 0.1% or 0.001 means; raises OptionError."""
    if text is None:
        return None
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share < 1:
        raise OptionError(f"--max-ham-blocked {text!r} must be in [0, 1); try 0.1% or 0.001")
    return share


ham_limit_option = partial(
    option,
    "--max-ham-blocked",
    metavar="P%",
    type=click.STRING,
    callback=_ham_limit,
    under="Cut-offs",
)
