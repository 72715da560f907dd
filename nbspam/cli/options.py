"""The options that several commands share, and records of options.

The options of commands that learn are in `learning_options.py`, so that classifying a message does
not load them.
"""

import contextlib
import math
import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from nbspam.cli import command, notes
from nbspam.errors import OptionError, Remedy, SourceError
from nbspam.names import is_url
from nbspam.reading import source
from nbspam.scoring.verdict import CutOffs
from nbspam.store.metadata import Metadata
from nbspam.workers import all_cores

if TYPE_CHECKING:  # these imports take 3 ms, and classifying one message does not need them
    from pathlib import Path

    from nbspam.reading.senders import SenderLists
    from nbspam.scoring.base import Base

_CLASSES_NAMED = 10  # classes named in an error


class ProbabilityType(click.types.FloatParamType):
    """A probability; for a percentage, the error names the equivalent probability."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return the name of the value in --help; click 8.1 passes no context."""
        return "P"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the number; the command checks its bounds."""
        with contextlib.suppress(ValueError):
            if str(value).endswith("%"):
                share = float(value[:-1]) / 100
                self.fail(f"{value!r} is a percentage; write it as {share:.12g}.", param, ctx)
        return super().convert(value, param, ctx)


PROBABILITY = ProbabilityType()


class FileName(click.Path):
    """A file name in the notation of `pathlib`, which is imported only if it changes the name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert the parameter's value; refuses a URL."""
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
    """Create the folder of the default model; the user must create other folders."""
    if notes.is_default_model(model):
        model.parent.mkdir(mode=0o700, parents=True, exist_ok=True)


# Declarations


_model = partial(
    command.option,
    "-m",
    "--model",
    help_heading="Model",
    envvar="NBSPAM_MODEL",  # in click, the environment takes precedence over a config file
    default=notes.default_model,
    show_default="$NBSPAM_MODEL, or the user's data folder",
    configurable=True,
    help="Use this model file.",
)
# readable=False: an unreadable file is an error of reading, not of usage.
MODEL = _model(type=FilePath(readable=False))
# For a command that may not need a model: None without --model if the user has no home.
MODEL_OR_NONE = _model(
    type=FilePath(readable=False), default=lambda: notes.default_model(is_needed=False)
)
MODEL_NAME = _model(type=FileName(readable=False))
BASE = command.rare_option(
    metavar="FILE",
    type=FileName(readable=False),
    help_heading="Model",
    envvar="NBSPAM_BASE",
    configurable=True,
    help="Add the counts of this shared model to the model's. [default: $NBSPAM_BASE, or none]",
)
FORM = command.option(
    "form",
    "--format",
    type=click.Choice(["text", "json"]),
    help_heading="Output",
    default="text",
    help="Print text for people or JSON for programs.",
)
QUIET = command.flag(
    "-q", "--quiet", help_heading="Output", help="Print only results, errors and guesses."
)
JOBS = command.rare_option(
    "-j",
    "--jobs",
    help_heading=command.MORE,
    type=click.IntRange(1),
    default=all_cores,
    configurable=True,
    show_default="all cores",
    help="Use N processes for many messages.",
)
DASK = command.rare_option(
    metavar="ADDRESS",
    help_heading=command.MORE,
    help="Run on the Dask cluster at this address; local:N starts N workers here. The output is the"
    " same.",
)
FILE_PATH = FilePath(readable=False)
OUTPUT = command.option(
    "-o", "--output", metavar="FILE", type=FILE_PATH, help="Write to this file."
)
REPLACE_OUTPUT = command.flag("--replace", help="Overwrite the output file if it exists.")


def open_base_model(base: str | None) -> "contextlib.AbstractContextManager[Base | None]":
    """Return a context with the open base, or with None."""
    if base is None:
        return contextlib.nullcontext()
    from nbspam.scoring.base import open_base  # not loaded without a base

    return open_base(base)


_column = partial(command.option, metavar="NAME", formats=source.TABLE_FORMATS, advanced=True)


@command.section("Sources")
class SourceOptions(NamedTuple):
    """The options for reading sources."""

    input_format: str | None = command.option(
        metavar="FORMAT",
        type=click.Choice(source.INPUT_FORMATS),
        help="Input format of files and pipes: a table (tsv, csv, jsonl, json, parquet), a message"
        " per line (lines), mbox or message. [default: one message on standard input; files are"
        " recognised]",
    )
    lines: bool = command.flag(
        conflicts_with="--input-format", help="Short for --input-format lines."
    )
    text_column: str | None = _column(help="Table column with the text. [default: recognised]")
    label_column: str | None = _column(help="Table column with the class. [default: recognised]")
    header_row: str | None = command.rare_option(
        type=click.Choice(["yes", "no"]),
        formats=("tsv", "csv", "json"),
        help="Whether the first row of a TSV or CSV table names the columns. [default: recognised]",
    )
    encoding: str | None = command.rare_option(
        metavar="NAME",
        formats=("tsv", "csv", "jsonl", "json", source.LINES),
        help="Encoding of a table. [default: UTF-8, else recognised]",
    )
    outside: bool = command.rare_flag(
        formats=(),
        help="Also read files outside the sources: targets of links in a folder, and files that an"
        " index names outside its parent folder.",
    )
    attached: bool = command.rare_flag(
        formats=(source.MBOX_FORMAT, source.MESSAGE),
        help="Read the messages that are attached to mails, forwarded as message/rfc822, and not"
        " the mails.",
    )
    strict: bool = command.rare_flag(
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

        names: sources; standard input among them is read as a single message.
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
            formats = parameter.formats if isinstance(parameter, command.Option) else None
            if formats is not None and form not in formats and context.params[parameter.name]:
                by = "--lines" if self.lines else f"--input-format {form}"
                raise OptionError(
                    f"{max(parameter.opts, key=len)} has no effect with {by}; leave one of them out"
                )

    def options(
        self, seen: bool = False, quiet: bool = False, require_content: bool = False
    ) -> source.ReadingOptions:
        """Return options for `nbspam.reading`.

        seen: read only mail that was read.  quiet: print no notes on how a source was read.
        require_content: skip empty messages.
        """
        header_row = None if self.header_row is None else self.header_row == "yes"
        table = source.TableOptions(self.text_column, self.label_column, self.encoding, header_row)
        return source.ReadingOptions(
            table,
            self.format,
            seen=seen,
            attached=self.attached,
            require_content=require_content,
            outside=self.outside,
            read_imap_folder=_read_imap_folder,
            on_note=partial(_print_reading_note, quiet),
        )


# Remedies of notes on guesses about a table, which even a quiet command prints.
_GUESSES = {
    *(Remedy.NAME_TEXT_COLUMN, Remedy.OTHER_LABEL_COLUMN, Remedy.NAME_ENCODING),
    *(Remedy.HEADER_IS_MESSAGE, Remedy.SAVE_SHEET),
}


def _print_reading_note(quiet: bool, note: SourceError) -> None:
    # `train` prints a note on the label column only if the labels do not fit.
    is_unasked = quiet and note.remedy not in _GUESSES
    if not (is_unasked or note.remedy is Remedy.NAME_ANOTHER_LABEL):
        notes.note_reading(note)


def _read_imap_folder(
    name: str, only_read: bool, skips: source.Skips
) -> Iterator[tuple[str, bytes]]:
    """Yield the messages of a folder at a mail server, each with its address."""
    from nbspam.cli.accounts import read_messages_at  # only mail at a server needs it

    return read_messages_at(name, only_read, skips)


def refuse_stdin_twice(names: Sequence[str]) -> None:
    """Raise OptionError if standard input is named twice."""
    if names.count(source.STDIN) > 1:
        raise OptionError("-: standard input is named twice; name it once")


@command.section("Cut-offs")
class CutOffOptions(NamedTuple):
    """The cut-offs; None means the model's cut-off."""

    spam_cutoff: float | None = command.option(
        type=PROBABILITY, help="Classify as spam when P(spam) > P. [default: the model's; 0.9]"
    )
    ham_cutoff: float | None = command.option(
        type=PROBABILITY,
        help="Classify as ham when P(spam) <= P, and as unsure in between. [default: the model's;"
        " 0.5]",
    )
    ham_cost: float | None = command.rare_option(
        metavar="L",
        type=float,
        help="Cost of a false positive relative to a false negative; both cut-offs become L/(1+L).",
    )
    trust_elsewhere: bool | None = command.rare_option(
        "--trust-elsewhere/--doubt-elsewhere",
        default=None,
        help="Call mail from elsewhere spam as easily as mail by servers whose mail was learned, or"
        " only if the model is surer. [default: the model's; doubt]",
    )

    @property
    def is_given(self) -> bool:
        """Whether any of the options was given."""
        return any(value is not None for value in self)

    def check(self) -> None:
        """Raise OptionError for cut-offs that are wrong with any model."""
        # A ham cut-off above the model's spam cut-off is wrong only for that model.
        CutOffs(1.0, 0.0).overridden(*self)

    def for_model(self, metadata: Metadata) -> CutOffs:
        """Return the cut-offs for a model; raises OptionError."""
        classes = metadata.settings.classes
        self.check_classes(classes)
        cut_offs = CutOffs.from_model(metadata)
        return cut_offs if len(classes) > 2 else cut_offs.overridden(*self)

    def check_classes(self, classes: Sequence[str]) -> None:
        """Raise OptionError for cut-offs with three or more classes."""
        if len(classes) > 2 and self.is_given:
            names = ", ".join(map(repr, classes[:_CLASSES_NAMED]))
            more = ", …" if len(classes) > _CLASSES_NAMED else ""
            raise OptionError(
                f"cut-offs need two classes, and the model has {len(classes)} classes"
                f" ({names}{more}); leave out the cut-offs, or correct a wrong label"
            )

    def for_new_model(self) -> CutOffs:
        """Return the cut-offs for a new model; raises OptionError."""
        return CutOffs().overridden(*self)


_senders = partial(command.option, metavar="SENDER", multiple=True, configurable=True)
_NEED_PROOF = "--allow --user-models"  # options for senders who must be authenticated


@command.section("Senders")
class SenderOptions(NamedTuple):
    """The senders whose mail is never spam or always spam."""

    allow: tuple[str, ...] = _senders(
        help="Mail of boss@example.org, @example.org, *@*.example.org or of a list, file:FILE, is"
        " never spam; with --auth-host."
    )
    block: tuple[str, ...] = _senders(help="Mail of such senders is spam.")
    auth_host: tuple[str, ...] = _senders(
        metavar="HOST",
        advanced=True,
        requires=_NEED_PROOF,
        help="Your mail server's name in the Authentication-Results fields that it writes: they"
        " prove who sent a mail.",
    )
    trust_from: bool = command.rare_flag(
        requires=_NEED_PROOF,
        configurable=True,
        help="Believe From without a proof; anybody can forge it.",
    )

    def lists(self, *hosts: str | None) -> "SenderLists | None":
        """Return the lists of senders, or None; raises OptionError.

        hosts: servers that replace --auth-host, for a place of mail.
        """
        if not (self.allow or self.block):
            return None
        from nbspam.reading.senders import sender_lists  # not loaded without lists

        names = command.option_origin("--allow"), command.option_origin("--block")
        named = tuple(host for host in hosts if host)
        return sender_lists(self.allow, self.block, named or self.auth_host, self.trust_from, names)


def _parse_ham_limit(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Parse a share such as 0.1% or 0.001; raises OptionError."""
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
    command.option, metavar="P%", callback=_parse_ham_limit, help_heading="Cut-offs"
)
