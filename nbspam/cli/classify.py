"""`nbspam classify`."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from nbspam.cli.base import base_option
from nbspam.cli.configured import ConfiguredCommand, checked
from nbspam.cli.cut_off_options import Cutting, cut_off_options
from nbspam.cli.notes import (
    NoTrace,
    has_reader,
    note_older,
    note_one_sided,
    note_skips,
    note_young,
)
from nbspam.cli.options import (
    Reading,
    dask_option,
    format_option,
    gathered,
    jobs_option,
    model_name_option,
    reading_options,
    refuse_stdin_twice,
    traced,
)
from nbspam.cli.verdicts import Marking, check_positive, verdict_code
from nbspam.errors import ExitCode, OptionError, SourceError, VerdictCode, one_line
from nbspam.filter import classified, open_filter
from nbspam.reading.marks import EVIDENCE, MARK
from nbspam.reading.message import RawMessage
from nbspam.reading.source import Flow, ReadingOptions, Skipped, Skips
from nbspam.reading.sources import STDIN, any_kind
from nbspam.scoring.verdict import Verdict
from nbspam.store.metadata import Metadata
from nbspam.urls import is_url
from nbspam.workers import Executor, executor

_TERSE = "terse"  # a form of the lines, besides those of --format
_SMALL = 1 << 18  # bytes of a file that is one message, or few

if TYPE_CHECKING:
    from nbspam.reading.cutting import SourcePiece
    from nbspam_main import Passage


def _check(
    sources: tuple[str, ...],
    cutting: Cutting,
    reading: Reading,
    form: str,
    terse: bool,
    passthrough: bool,
    marking: Marking,
) -> None:
    """Raise OptionError for options that are wrong with any model."""
    cutting.check()
    if passthrough:
        plain = form == "text" and not terse and reading.is_one_message
        if not plain or sources not in ((), (STDIN,)):
            raise OptionError(
                "--passthrough copies one message from standard input; leave out --format, --terse,"
                " --input-format, --lines and any SOURCE"
            )
        marking.check()
        return
    marking.refuse()
    reading.check(sources or (STDIN,))
    refuse_stdin_twice(sources)
    if terse and form != "text":
        raise OptionError("--terse is text; leave out --format json, or --terse")


@click.command("classify", cls=ConfiguredCommand)
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@model_name_option
@base_option
@cut_off_options
@reading_options
@format_option
@jobs_option
@dask_option
@traced("classify")
@click.option(
    "--exit-code",
    is_flag=True,
    help="Exit with 0 for spam, 1 for ham, 2 for unsure, 3 for any error.",
)
@click.option(
    "--terse",
    is_flag=True,
    help="Print S, H or U and the probability of spam, with 6 digits; then the SOURCE, if any.",
)
@click.option(
    "-p",
    "--passthrough",
    is_flag=True,
    help="Copy the message to standard output with its verdict as a header.",
)
@gathered(
    "marking",
    Marking,
    click.option("--header", metavar="NAME", help=f"With -p, name the header. [default: {MARK}]"),
    click.option(
        "--subject-tag",
        metavar="TEXT",
        help="With -p, put TEXT before the Subject of a message that is classified as spam.",
    ),
    click.option(
        "--evidence",
        type=click.IntRange(1, 100),
        metavar="N",
        help=f"With -p, add a header {MARK}{EVIDENCE} with the N strongest words, in nats.",
    ),
    click.option(
        "--on-error",
        type=click.Choice(["tempfail", "deliver"]),
        help="With -p, exit with 75 (try again) or 0 if the message was passed on without a"
        " verdict. [default: tempfail]",
    ),
)
@checked(_check)
@click.pass_obj
def command(
    passage: "Passage",
    /,
    sources: tuple[str, ...],
    model: str,
    base: str | None,
    cutting: Cutting,
    reading: Reading,
    form: str,
    jobs: int,
    dask: str | None,
    exit_code: bool,
    terse: bool,
    passthrough: bool,
    marking: Marking,
    trace: NoTrace,
) -> int:
    """Classify messages as spam or ham.

    Without a SOURCE it reads one message from standard input.  A SOURCE is anything that `train`
    takes; labels are ignored.  It prints one line per message, in the order of the input: verdict,
    probability of spam and source, separated by tabs; with --terse `S 0.998712`, H for ham, U for
    unsure, and the source last unless it is standard input.  With --input-format standard input is
    a table, lines, an mbox or a list of files; each message is answered as it comes.

    A message is unsure whatever its probability if fewer than 1 in 10 tokens of its text are known
    (for spam: none), or one class alone was learned.  Without --terse the line then ends with the
    reason, `too few known words` or `too few learned classes`.

    \b
    Examples:
      nbspam classify < message.eml
      nbspam classify inbox.mbox | grep ^spam
      echo "You have won a prize" | nbspam classify --format json
      nbspam classify --spam-cutoff 0.99 --ham-cutoff 0.1 ~/Maildir
      tail -f chat.log | nbspam classify --lines -
      find ~/mail -type f -print0 | nbspam classify --input-format files0 -

    In the mail path, -p copies the message byte for byte and adds one header, the last; any such
    header that came with the message is removed:

    \b
      X-Nbspam: spam, probability=0.998712, version=0.1.0

    If anything fails, even because of a wrong option, the message comes out unchanged and the exit
    status is 75: maildrop then keeps it in the queue, and so does procmail with the second recipe.

    \b
      # ~/.procmailrc                        # ~/.mailfilter
      :0fw                                   xfilter "nbspam classify -p"
      | nbspam classify -p                   if (/^X-Nbspam: spam,/)
      :0e                                    {
      { EXITCODE=75 HOST }                     to "Maildir/.Junk/"
      :0:                                    }
      * ^X-Nbspam: spam,
      spam

    --log writes one line for each message: its Message-ID, the user, the verdict, the probability
    and the milliseconds that it took; or why there is no verdict.

    Exit status: 0 on success, 1 on an error or if no message could be read, 2 for a wrong option;
    with -p 75 for both.  With --exit-code the verdict on the last message: 0 spam, 1 ham, 2 unsure,
    and 3 for any error (with -p 75), so that `* ? nbspam classify --exit-code` never takes an error
    for spam.
    """
    if passthrough:
        from nbspam.cli.passing import pass_on  # only a passthrough needs it

        return pass_on(passage, model, base, cutting, exit_code, marking, trace)
    request = _Request(sources or (STDIN,), model, base, cutting, reading, jobs, dask)
    return _classify(request, form, exit_code, terse, trace)


class _Request(NamedTuple):
    """What to classify, and with what."""

    sources: tuple[str, ...]
    model: str
    base: str | None
    cutting: Cutting
    reading: Reading
    jobs: int
    dask: str | None

    @property
    def is_small(self) -> bool:
        """Whether there are few messages, for which an index of the tokens does not pay."""
        return (
            self.dask is None
            and self.reading.is_one_message
            and all(source == STDIN or _is_small(source) for source in self.sources)
        )


def _classify(
    request: _Request,
    form: str,
    exit_code: bool,
    terse: bool,
    trace: NoTrace,
) -> int:
    """Print the verdict on each message; return the exit code."""
    sources, model, base, cutting, reading, _, _ = request
    flow = Flow()
    options, skips = reading.options(flow=flow), Skips(reading.strict)
    last: int = VerdictCode.ERROR
    n = 0
    few = request.is_small
    with open_filter(model, cutting.of, indexed=not few, base=base) as spam_filter:
        note_one_sided(model, spam_filter.metadata)
        note_young(model, spam_filter.metadata)
        if exit_code:
            check_positive(spam_filter.metadata)
        form = _check_terse(spam_filter.metadata) if terse else form
        with (
            _progress(sources, few) as shown,
            _work(request, options, skips, flow, trace) as (where, seen),
        ):
            for done in shown(classified(seen, skips, where, spam_filter, flow.pauses)):
                judged = done.verdict
                n += 1
                click.echo(_line(judged, form))
                trace.judged(judged)
                last = verdict_code(spam_filter, judged)
        if n > 1 or has_reader():  # else a mail program may run it for every mail
            note_older(model, spam_filter.metadata, spam_filter.classifier.base)
    note_skips(skips)
    if exit_code:
        return _status(last, skips, sources)
    return ExitCode.ERROR if skips.count and last == VerdictCode.ERROR else ExitCode.DONE


@contextlib.contextmanager
def _work(
    request: _Request, options: ReadingOptions, skips: Skips, flow: Flow, trace: NoTrace
) -> "Iterator[tuple[Executor, Iterable[RawMessage | Skipped | SourcePiece]]]":
    """Yield where to classify, and what."""
    if request.dask is None:
        sources = request.sources
        raws = (raw for source in sources for raw in any_kind(source, options, skips))
        yield executor(request.jobs, flow.pauses), trace.noted(raws)
        return
    from nbspam.cli.work_place import work_place
    from nbspam.reading.cutting import Asked

    with work_place(request.dask, request.jobs, trace) as place:
        cutter = place.cutter(options, request.sources)
        yield place.where, (p for name in request.sources for p in cutter.pieces(Asked(name)))


def _status(last: int, skips: Skips, sources: tuple[str, ...]) -> int:
    """Return the exit code for the last verdict; raises SourceError if there was no message."""
    if last == VerdictCode.ERROR and not skips.count:
        raise SourceError(f"{sources[-1]}: there is no message in it; name a source with one")
    return VerdictCode.ERROR if skips.count else last


def _check_terse(metadata: Metadata) -> str:
    """Return the form of the lines; raises OptionError for a model where --terse cannot be."""
    if len(metadata.settings.classes) > 2:
        raise OptionError(
            "--terse has letters for spam and ham, and the model has"
            f" {len(metadata.settings.classes)} classes; use --format json"
        )
    return _TERSE


def _line(judged: Verdict, form: str) -> str:
    if form == _TERSE:
        letters = dict(zip(judged.probabilities, "HS", strict=True))  # spam is the last of two
        line = f"{letters.get(judged.verdict, 'U')} {judged.probability:.6f}"
        return line if judged.source == STDIN else f"{line} {one_line(judged.source)}"
    if form == "text":
        return judged.as_line()
    return json.dumps(judged.as_json())


@contextlib.contextmanager
def _progress(
    sources: tuple[str, ...], few: bool
) -> Iterator[Callable[[Iterable[Any]], Iterable[Any]]]:
    """Show progress on a terminal, where the verdicts go elsewhere."""
    if few or sys.stdout.isatty():
        yield iter
        return
    from nbspam.cli.progress import progress

    with progress(False, sources) as shown:
        yield shown


def _is_small(source: str) -> bool:
    from pathlib import Path  # 3 ms, which standard input does without

    path = Path(source)
    try:
        return not is_url(source) and path.is_file() and path.stat().st_size < _SMALL
    except (OSError, ValueError):
        return True  # there is nothing to read
