"""`nbspam classify`; -p copies a message from standard input to standard output, and marks it."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from nbspam.cli import notes, options
from nbspam.cli.command import (
    argument,
    command,
    flag,
    given_on_command_line,
    option,
    rare_flag,
    section,
)
from nbspam.errors import ExitCode, OptionError, SourceError, VerdictCode
from nbspam.filter import Filter, open_filter
from nbspam.reading.marks import EVIDENCE, MARK, NAME_LIMIT, TAG_LIMIT, may_be_mark, may_be_tag
from nbspam.reading.message import BYTES_LIMIT, parse
from nbspam.reading.source import STDIN, LiveInput, Skips
from nbspam.reading.sources import read_messages
from nbspam.scoring.verdict import Verdict
from nbspam.scoring.version import classify_messages
from nbspam.store.metadata import Metadata
from nbspam.tokens.kinds import is_fragment
from nbspam.tokens.tokenized import tokenize
from nbspam.workers import make_executor

_LINE_FORMATS = ("text", "json", "header")  # values of --format that are not tables
_SMALL_BELOW = 1 << 18  # bytes; a smaller file has few messages

if TYPE_CHECKING:
    from pathlib import Path

    from nbspam.display.tables import VerdictTable


_header_option = partial(option, requires="--passthrough", advanced=True)


@section("Output")
class HeaderOptions(NamedTuple):
    """Options to pass a message through and mark it; None is the default."""

    passthrough: bool = flag(
        "-p",
        "--passthrough",
        help="Copy the message to standard output with its verdict as a header.",
    )
    header: str | None = _header_option(
        metavar="NAME", help=f"With -p, name of the header. [default: {MARK}]"
    )
    subject_tag: str | None = _header_option(
        metavar="TEXT", help="With -p, put TEXT before the Subject of spam."
    )
    evidence: int | None = _header_option(
        type=click.IntRange(1, 100),
        help=f"With -p, add the header {MARK}{EVIDENCE} with the N strongest words and their"
        " weights.",
    )
    on_error: str | None = _header_option(
        type=click.Choice(["tempfail", "deliver"]),
        help="With -p, exit with 75 (try again) or 0 after an error. [default: tempfail]",
    )

    def name(self) -> str:
        """Return the header's name; raises OptionError."""
        if self.header is not None and not may_be_mark(self.header):
            raise OptionError(
                f"--header {self.header!r} is not allowed; choose a name of at most {NAME_LIMIT}"
                f" letters and hyphens that mail itself does not use, such as {MARK}"
            )
        return self.header or MARK

    def tag(self) -> str:
        """Return the Subject's tag, by default ""; raises OptionError."""
        if self.subject_tag is not None and not may_be_tag(self.subject_tag):
            raise OptionError(
                f"--subject-tag {self.subject_tag!r} is not allowed; choose at most {TAG_LIMIT}"
                " ASCII characters without blanks around them, such as [SPAM]"
            )
        return self.subject_tag or ""


def _check(
    sources: tuple[str, ...],
    source_options: options.SourceOptions,
    form: str,
    header_options: HeaderOptions,
) -> None:
    """Raise OptionError for options that are wrong with any model."""
    if not header_options.passthrough:
        source_options.check(sources or (STDIN,))
        options.refuse_stdin_twice(sources)
        return
    is_whole = source_options.is_one_message and not source_options.attached
    if form != "text" or not is_whole or sources not in ((), (STDIN,)):
        raise OptionError(
            "--passthrough copies one message from standard input; leave out --format,"
            " --input-format, --lines, --attached and any SOURCE"
        )
    header_options.name()  # raises for a header that mail uses itself
    header_options.tag()


@command("classify")
def classify(
    *,
    sources: tuple[str, ...] = argument("sources", metavar="[SOURCE]...", nargs=-1),
    model: str = options.MODEL_NAME,
    base: str | None = options.BASE,
    cut_off_options: options.CutOffOptions,
    senders: options.SenderOptions,
    source_options: options.SourceOptions,
    form: str = option(
        "form",
        "--format",
        type=click.Choice(["text", "json", "header", "csv", "tsv", "jsonl"]),
        default="text",
        help="Print text for people, JSON for programs, the value of an X-Nbspam header, or (csv,"
        " tsv, jsonl) the table that was read with the verdicts as columns.",
    ),
    output: "Path | None" = option(
        "-o",
        "--output",
        metavar="FILE",
        type=options.FILE_PATH,
        conflicts_with="--passthrough",
        help="Write the table with the verdicts to FILE: .csv, .tsv, .jsonl, .json, .parquet or"
        " .xlsx.",
    ),
    keep_formulas: bool = rare_flag(
        help="In a CSV or TSV, put no apostrophe before text that a spreadsheet would read as a"
        " formula."
    ),
    exit_code: bool = flag(help="Exit with 0 for spam, 1 for ham, 2 for unsure, 3 for any error."),
    header_options: HeaderOptions,
    jobs: int = options.JOBS,
    dask: str | None = options.DASK,
) -> int:
    """Classify messages as spam or ham.

    Without a SOURCE it reads one message from standard input.  A SOURCE is anything that `train`
    accepts; labels are ignored.  The output has one line per message: verdict, probability of spam
    (with three or more classes: of the verdict) and source, separated by tabs.

    \b
    Examples:
      nbspam classify < message.eml
      nbspam classify inbox.mbox | grep ^spam
      echo "You have won a prize" | nbspam classify --format json
      nbspam classify --spam-cutoff 0.99 --ham-cutoff 0.1 ~/Maildir
    \f
    Lines come in the order of the input.  With --input-format standard input is a table, lines or
    an mbox; each message is answered as it arrives.

    A message is unsure whatever its probability if the model knows fewer than 1 in 10 tokens of its
    text (for spam: none), or has learned only one class.  The line then ends with the reason, `too
    few known words` or `too few learned classes`.  A message is spam whatever its probability if
    --block names its sender (`blocked sender`).  It is never spam if --allow names its sender
    (`allowed sender`) and the server named by --auth-host reports that the sender is not forged.

    \b
    More examples:
      tail -f chat.log | nbspam classify --lines -
      find ~/mail -type f -exec nbspam classify {} +

    In a mail system, --format header prints the verdict, and the mail program keeps the message:
    whatever happens to nbspam, it is neither changed nor lost.  With procmail (~/.procmailrc):

    \b
      SHELL=/bin/sh
      PATH=$HOME/.local/bin:/usr/local/bin:/usr/bin:/bin
      MAILDIR=$HOME/Maildir
      DEFAULT=$MAILDIR/
      VERDICT=`nbspam classify --format header;`

    \b
      :0
      * ! VERDICT ?? ^^(spam|ham|unsure),
      { EXITCODE=75 HOST }

    \b
      :0fhw
      | formail -fI "X-Nbspam: $VERDICT"

    \b
      :0
      * VERDICT ?? ^^spam,
      .Junk/

    -p copies the message byte for byte and adds the header as the last header line; such a header
    that came with the message is removed.  If anything fails, even because of a wrong option, the
    message is passed on unchanged and the exit status is 75.

    Exit status: 0 on success, 1 on an error or if no message could be read, 2 for a wrong option;
    with -p 75 for errors and wrong options.  With --exit-code the verdict on the last message: 0
    spam, 1 ham, 2 unsure, and 3 for any error (with -p 75).  A mail program should read the header
    instead: it may get 0 although nbspam did not run.
    """
    cut_off_options.check()
    _check(sources, source_options, form, header_options)

    def open_model_filter() -> Filter:
        return open_filter(model, cut_off_options.for_model, base, senders.lists())

    if header_options.passthrough:
        return _pass_on(open_model_filter, model, exit_code, header_options)
    names = sources or (STDIN,)
    live_input, skips = LiveInput(), Skips(source_options.strict)
    is_few = dask is None and source_options.is_one_message and all(map(_is_small, names))
    last_code: int = VerdictCode.ERROR
    n = 0
    with open_model_filter() as spam_filter:
        version = spam_filter.version
        _check_positive(version.metadata, exit_code)
        notes.note_one_class(model, version.metadata)
        learned = version.metadata.learned
        reading_options = source_options.options().with_learned_columns(learned.columns)
        reading_options = reading_options._replace(live_input=live_input)
        with contextlib.ExitStack() as stack:
            table: VerdictTable | None = None
            if output is not None or keep_formulas or form not in _LINE_FORMATS:
                opening = _verdict_table(output, form, keep_formulas, (names, model), live_input)
                table = stack.enter_context(opening)
                reading_options = reading_options._replace(on_row=table.on_row)
            with_progress: Callable[[Iterable[Any]], Iterable[Any]] = iter
            size = 0
            if not is_few or len(names) > 1:
                from nbspam.cli.progress import progress, size_of

                size = size_of(names) or 0
                # On a terminal, the printed verdicts show the progress.
                if not is_few and (output is not None or not sys.stdout.isatty()):
                    with_progress = stack.enter_context(progress(False, names))
            pauses = live_input.would_block
            workers = make_executor(jobs, pauses)
            if dask is not None:
                from nbspam.cli.progress import open_executor

                workers = stack.enter_context(open_executor(dask, jobs))
            read_here = (
                raw for name in names for raw in read_messages(name, reading_options, skips)
            )
            raws = table.track_messages(read_here) if table else read_here
            messages = classify_messages(
                raws, skips, workers, version, pauses, size, drop_evidence=True
            )
            for message in with_progress(messages):
                verdict = message.verdict
                n += 1
                if table:
                    table.add(verdict)
                else:
                    click.echo(_format_verdict(verdict, form))
                last_code = _verdict_code(version.metadata, verdict)
        if n > 1 or notes.has_reader():  # a mail program runs this command once per mail
            notes.note_older(model, version.metadata, version.classifier.base)
    notes.note_skips(skips)
    if not (n or skips.count):
        nothing = f"{names[-1]}: contains no message; name a source with one"
        if exit_code:
            raise SourceError(nothing)
        if notes.has_reader():
            notes.note(nothing)
    if not exit_code:
        return ExitCode.DONE if n or not skips.count else ExitCode.ERROR
    return VerdictCode.ERROR if skips.count else last_code


def _format_verdict(verdict: Verdict, form: str) -> str:
    """Format the output line of a verdict; the form `header` is the value that -p writes."""
    if form == "text":
        return verdict.as_line()
    if form == "json":
        return json.dumps(verdict.as_json())
    from nbspam.serving.passthrough import verdict_value  # other forms load no serving

    return verdict_value(verdict.verdict, verdict.probability, verdict.reason)


@contextlib.contextmanager
def _verdict_table(
    output: "Path | None",
    form: str,
    keep_formulas: bool,
    read: tuple[tuple[str, ...], str],
    live: LiveInput,
) -> "Iterator[VerdictTable]":
    """Open the table that `classify` writes, in a file or to standard output.

    form: the value of --format; by default the ending of the file decides.
    read: names of the sources, and of the model, whose files must not be overwritten.
    live: rows are flushed when no more input is available.
    Raises OptionError for conflicting options, SourceError, and ModelError.
    """
    from pathlib import Path

    from nbspam.display import tables

    path = None if output == Path(STDIN) else output
    if path is not None and not given_on_command_line("form"):
        form = tables.table_format(path)
    elif form in _LINE_FORMATS:
        raise OptionError(
            "--output and --keep-formulas are for tables; add --format csv, or leave them out"
        )
    elif path is not None and path.suffix.lower()[1:] in {*tables.FORMS} - {form}:
        raise OptionError(f"--output {path}: is not for --format {form}; leave out one of them")
    if keep_formulas and form not in ("csv", "tsv"):
        raise OptionError("--keep-formulas is for a CSV or a TSV; leave it out")
    tables.check_outputs({"--output": path}, *read)
    with tables.open_output(path) if path else contextlib.nullcontext(sys.stdout.buffer) as file:
        writer = tables.TableWriter(file, form, keep_formulas, notes.note)
        table = tables.VerdictTable(writer, live.would_block)
        yield table
        table.close()


def _is_small(source: str) -> bool:
    """Return whether a source has few messages."""
    if source == STDIN:
        return True
    from pathlib import Path  # takes 3 ms, and standard input does not need it

    path = Path(source)
    try:
        return path.is_file() and path.stat().st_size < _SMALL_BELOW
    except (OSError, ValueError):
        return True  # an unreadable file: reading it raises the error


def _pass_on(
    open_model_filter: Callable[[], Filter],
    model: str,
    exit_code: bool,
    header_options: HeaderOptions,
) -> int:
    """Write the message with its verdict; return the exit code.

    Nothing is written before the verdict is known, and no error is raised after the message is
    written.
    """
    from nbspam.serving import passthrough  # only -p needs it

    passage = click.get_current_context().obj.passage
    if passage is None:
        raise OptionError("write -p as an option of its own; it was not read as one")
    name, tag = header_options.name(), header_options.tag()
    raw_message, rest = passage.message[:BYTES_LIMIT], passage.message[BYTES_LIMIT:]
    with open_model_filter() as spam_filter:
        version = spam_filter.version
        _check_positive(version.metadata, exit_code)
        # Parsed with its old marks, because a text without them would start with an empty line.
        message = tokenize(parse(raw_message, (name, MARK)), outputs=version.outputs)
        verdict = version.classify(message)
        evidence = None
        if header_options.evidence:
            words = version.explain(message).words
            telling = [(w.token, w.share) for w in words if not is_fragment(w.token)]
            evidence = passthrough.evidence_value(name, telling[: header_options.evidence])
    code = _verdict_code(version.metadata, verdict)
    tag = tag if code == VerdictCode.SPAM else ""
    marks = passthrough.VerdictHeader(name, _format_verdict(verdict, "header"), tag, evidence)
    passage.write(
        passthrough.add_fields(passthrough.remove_own_fields(raw_message, name), marks) + rest
    )
    with contextlib.suppress(OSError):  # the message is written already, so nothing may fail now
        notes.note_one_class(model, version.metadata)
    return code if exit_code else ExitCode.DONE


def _check_positive(metadata: Metadata, exit_code: bool) -> None:
    """Raise OptionError for --exit-code and a model without a class that counts as spam."""
    if exit_code and metadata.settings.positive is None:
        raise OptionError(
            "--exit-code needs a spam class, and the model has none; name it with train"
            " --spam-label, or leave out --exit-code"
        )


def _verdict_code(metadata: Metadata, verdict: Verdict) -> VerdictCode:
    if verdict.verdict == metadata.settings.positive:
        return VerdictCode.SPAM
    return VerdictCode.HAM if verdict.verdict in verdict.probabilities else VerdictCode.UNSURE
