"""The options that several commands share, and records of them.

Those of commands that learn are in `learning_options.py`, so that classifying one message does not
load them.
"""

import contextlib
import math
import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from nbspam.cli import command
from nbspam.cli.command import MORE, Option, flag, option, rare_flag, rare_option, section
from nbspam.cli.notes import default_model, note_reading
from nbspam.errors import OptionError, Remedy, SourceError
from nbspam.names import LIST_FILE, is_url
from nbspam.reading import source
from nbspam.scoring.verdict import CutOffs
from nbspam.store.metadata import Metadata
from nbspam.workers import all_cores

if TYPE_CHECKING:  # 3 ms that classifying one message saves
    from pathlib import Path

    from nbspam.reading.senders import SenderLists
    from nbspam.scoring.base import Base

_CLASSES_NAMED = 10  # in an error


class ProbabilityType(click.types.FloatParamType):
    """A probability; a percentage is refused with the probability that it means."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return its name in --help; click 8.1 passes no context."""
        return "P"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; the command checks its bounds."""
        with contextlib.suppress(ValueError):
            if str(value).endswith("%"):
                share = float(value[:-1]) / 100
                self.fail(f"{value!r} is a percentage; write it as {share:.12g}.", param, ctx)
        return super().convert(value, param, ctx)


PROBABILITY = ProbabilityType()


class FileName(click.Path):
    """A file name as `pathlib` writes it; pathlib is imported only if it changes the name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the parameter's value; a URL is refused."""
        if is_url(value):
            self.fail(f"{value} is a URL, and a file is needed; download it, and name the copy.")
        return super().convert(value, param, ctx)

    def coerce_path_result(self, value: str | os.PathLike[str]) -> str:
        """Return the parameter's value."""
        name = os.fspath(value)
        if "//" in name or "./" in name or name.endswith(("/", "/.")) or not name:
            from pathlib import Path

            name = str(Path(name))
        return name


class FilePath(FileName):
    """A file as a `pathlib.Path`, imported only when a value is converted."""

    def coerce_path_result(self, value: str | os.PathLike[str]) -> "Path":  # type: ignore[override]
        """Return the parameter's value."""
        from pathlib import Path

        return Path(value)


def make_default_folder(model: "Path") -> None:
    """Create the folder of the default model; other folders are the user's to create."""
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
# readable=False: an unreadable file is an error of reading, not of usage.
MODEL = _model(type=FilePath(readable=False))
MODEL_NAME = _model(type=FileName(readable=False))
BASE = rare_option(
    metavar="FILE",
    type=FileName(readable=False),
    under="Model",
    envvar="NBSPAM_BASE",
    in_file=True,
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
QUIET = flag("-q", "--quiet", under="Output", help="Print only results, errors and guesses.")
JOBS = rare_option(
    "-j",
    "--jobs",
    under=MORE,
    type=click.IntRange(1),
    default=all_cores,
    in_file=True,
    show_default="all cores",
    help="Use N processes for many messages.",
)
DASK = rare_option(
    metavar="ADDRESS",
    under=MORE,
    help="Run on the Dask cluster at this address; local:N starts N workers here. The output is the"
    " same.",
)
FILE_PATH = FilePath(readable=False)
OUTPUT = option("-o", "--output", metavar="FILE", type=FILE_PATH, help="Write to this file.")
REPLACE_OUTPUT = flag("--replace", help="Overwrite the output file if it exists.")


def opened_base(base: str | None) -> "contextlib.AbstractContextManager[Base | None]":
    """Return a context with the open base, None without one."""
    if base is None:
        return contextlib.nullcontext()
    from nbspam.scoring.base import open_base  # not loaded without a base

    return open_base(base)


_column = partial(option, metavar="NAME", formats=source.TABLE_FORMATS, seldom=True)


@section("Sources")
class Reading(NamedTuple):
    """How to read the sources."""

    input_format: str | None = option(
        metavar="FORMAT",
        type=click.Choice(source.INPUT_FORMATS),
        help="Input format of files and pipes: a table (tsv, csv, jsonl, json, parquet), a message"
        " per line (lines), mbox or message. [default: one message on standard input; files are"
        " recognised]",
    )
    lines: bool = flag(excludes="--input-format", help="Short for --input-format lines.")
    text_column: str | None = _column(help="Table column with the text. [default: recognised]")
    label_column: str | None = _column(help="Table column with the class. [default: recognised]")
    header_row: str | None = rare_option(
        type=click.Choice(["yes", "no"]),
        formats=("tsv", "csv", "json"),
        help="Whether the first row of a TSV or CSV table names the columns. [default: recognised]",
    )
    encoding: str | None = rare_option(
        metavar="NAME",
        formats=("tsv", "csv", "jsonl", "json", source.LINES),
        help="Encoding of a table. [default: UTF-8, else recognised]",
    )
    outside: bool = rare_flag(
        formats=(),
        help="Read files outside the sources, too: targets of links in a folder, and files that an"
        " index names outside its parent folder.",
    )
    attached: bool = rare_flag(
        formats=(source.MBOX_FORMAT, source.MESSAGE),
        help="Read the messages that are attached to mails, forwarded as message/rfc822, and not"
        " the mails.",
    )
    strict: bool = rare_flag(
        help="Stop at the first row or file that cannot be read, instead of skipping it."
    )

    @property
    def format(self) -> str | None:
        """The format of files and pipes, if one is given."""
        return source.LINES if self.lines else self.input_format

    @property
    def is_one_message(self) -> bool:
        """Whether standard input is one message."""
        return self.format in (None, source.MESSAGE)

    def check(self, names: Sequence[str] = ()) -> None:
        """Raise OptionError for an unknown encoding, two formats, or options without an effect.

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
            is_stdin = names and all(name == source.STDIN for name in names)
            for name in ("text_column", "label_column", "header_row", "encoding"):
                if is_stdin and getattr(self, name):
                    raise OptionError(
                        f"--{name.replace('_', '-')} applies to tables only, and standard input is"
                        " read as one message; name its format with --input-format, or leave it out"
                    )
            return
        context = click.get_current_context()
        for parameter in context.command.params:
            formats = parameter.formats if isinstance(parameter, Option) else None
            if formats is not None and form not in formats and context.params[parameter.name]:
                by = "--lines" if self.lines else f"--input-format {form}"
                raise OptionError(
                    f"{max(parameter.opts, key=len)} has no effect with {by}; leave one of them out"
                )

    def options(
        self, seen: bool = False, quiet: bool = False, needs_content: bool = False
    ) -> source.ReadingOptions:
        """Return options for `reading`.

        seen: read only mail that was read.  quiet: say nothing of how a source was read.
        needs_content: whether an empty message is none.
        """
        header_row = None if self.header_row is None else self.header_row == "yes"
        table = source.TableOptions(self.text_column, self.label_column, self.encoding, header_row)
        return source.ReadingOptions(
            table,
            self.format,
            seen=seen,
            attached=self.attached,
            needs_content=needs_content,
            outside=self.outside,
            read_imap_folder=_read_imap_folder,
            tell=partial(_tell, quiet),
        )


# Guesses about a table: even a quiet command prints them.
_GUESSES = {
    *(Remedy.NAME_TEXT_COLUMN, Remedy.OTHER_LABEL_COLUMN, Remedy.NAME_ENCODING),
    *(Remedy.HEADER_IS_MESSAGE, Remedy.SAVE_SHEET),
}


def _tell(quiet: bool, what: SourceError) -> None:
    # `train` prints a note on the label column only where the labels do not fit.
    is_unasked = quiet and what.remedy not in _GUESSES
    if not (is_unasked or what.remedy is Remedy.NAME_ANOTHER_LABEL):
        note_reading(what)


def _read_imap_folder(name: str, only_read: bool) -> Iterator[tuple[str, bytes]]:
    """Yield the messages of a folder at a mail server, each with its address."""
    from nbspam.cli.accounts import messages_at  # only mail at a server needs it

    return messages_at(name, only_read)


def refuse_stdin_twice(names: Sequence[str]) -> None:
    """Raise OptionError if standard input is named twice."""
    if names.count(source.STDIN) > 1:
        raise OptionError("-: standard input is named twice; name it once")


@section("Cut-offs")
class Cutting(NamedTuple):
    """The cut-offs; None is the model's."""

    spam_cutoff: float | None = option(
        type=PROBABILITY, help="Classify as spam when P(spam) > P. [default: the model's; 0.9]"
    )
    ham_cutoff: float | None = option(
        type=PROBABILITY,
        help="Classify as ham when P(spam) <= P, and as unsure in between. [default: the model's;"
        " 0.5]",
    )
    ham_cost: float | None = rare_option(
        metavar="L",
        type=float,
        help="Cost of a false positive relative to a false negative; both cut-offs become L/(1+L).",
    )

    @property
    def is_given(self) -> bool:
        """Whether one of them was given."""
        return any(value is not None for value in self)

    def check(self) -> None:
        """Raise OptionError for cut-offs that are wrong with any model."""
        # A ham cut-off above the model's spam cut-off is wrong only for that model.
        CutOffs(1.0, 0.0).changed(*self)

    def of(self, metadata: Metadata) -> CutOffs:
        """Return the cut-offs for a model; raises OptionError."""
        classes = metadata.settings.classes
        self.check_classes(classes)
        cut_offs = CutOffs.of_model(metadata)
        return cut_offs if len(classes) > 2 else cut_offs.changed(*self)

    def check_classes(self, classes: Sequence[str]) -> None:
        """Raise OptionError for cut-offs where there are three or more classes."""
        if len(classes) > 2 and self.is_given:
            names = ", ".join(map(repr, classes[:_CLASSES_NAMED]))
            more = ", …" if len(classes) > _CLASSES_NAMED else ""
            raise OptionError(
                f"cut-offs need two classes, and the model has {len(classes)} classes"
                f" ({names}{more}); leave out the cut-offs, or correct a wrong label"
            )

    def of_new(self) -> CutOffs:
        """Return the cut-offs for a new model; raises OptionError."""
        return CutOffs().changed(*self)


def config_files(*senders: str) -> dict[str, str]:
    """Return what each file of the user's settings is.  senders: entries of their lists."""
    files = {
        os.path.expanduser(entry.removeprefix(LIST_FILE)): "a list of senders"  # noqa: PTH111
        for entry in senders
        if entry.startswith(LIST_FILE)
    }
    config = command.config_file()
    return files | ({config: "the config file"} if config else {})


_senders = partial(option, metavar="SENDER", multiple=True, in_file=True)
_PROVED = "--allow --user-models"  # what has senders that need a proof


@section("Senders")
class SenderOptions(NamedTuple):
    """Whose mail is never spam, and whose always."""

    allow: tuple[str, ...] = _senders(
        help="Mail of boss@example.org, @example.org, *@*.example.org or of a list, file:FILE, is"
        " never spam; with --auth-host."
    )
    block: tuple[str, ...] = _senders(help="Mail of such senders is spam.")
    auth_host: tuple[str, ...] = _senders(
        metavar="HOST",
        seldom=True,
        needs=_PROVED,
        help="Your mail server, as the Authentication-Results that it writes name it: they prove"
        " who sent a mail.",
    )
    trust_from: bool = rare_flag(
        needs=_PROVED, in_file=True, help="Believe From without a proof; anybody can forge it."
    )

    def lists(self, *hosts: str | None) -> "SenderLists | None":
        """Return the lists, None without any; raises OptionError.

        hosts: servers in place of those of --auth-host, for one place of mail.
        """
        if not (self.allow or self.block):
            return None
        from nbspam.reading.senders import sender_lists  # not loaded without lists

        names = command.place_of("--allow"), command.place_of("--block")
        named = tuple(host for host in hosts if host)
        return sender_lists(self.allow, self.block, named or self.auth_host, self.trust_from, names)


def _ham_limit(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Return the share of a text such as 0.1% or 0.001; raises OptionError."""
    if text is None:
        return None
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share < 1:
        raise OptionError(f"--max-ham-blocked {text!r} must be in [0, 1); try 0.1% or 0.001")
    return share


ham_limit_option = partial(option, metavar="P%", callback=_ham_limit, under="Cut-offs")
