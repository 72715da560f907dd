"""`nbspam classify`."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import click

from nbspam.cli.notes import NoTrace, note_one_sided, note_skips, note_young
from nbspam.cli.options import (
    Cutting,
    Reading,
    cut_off_options,
    format_option,
    gathered,
    jobs_option,
    model_name_option,
    reading_options,
    refuse_stdin_twice,
    traced,
)
from nbspam.errors import ExitCode, OptionError, SourceError, VerdictCode, one_line
from nbspam.filter import Filter, open_filter
from nbspam.reading.marks import EVIDENCE, MARK, NAME_LIMIT, TAG_LIMIT, may_be_mark, may_be_tag
from nbspam.reading.message import BYTES_LIMIT, parse
from nbspam.reading.skips import Skips
from nbspam.reading.sources import STDIN, any_kind
from nbspam.scoring.verdict import Verdict
from nbspam.store.metadata import Metadata
from nbspam.tokens.kinds import is_fragment
from nbspam.tokens.tokenized import TokenizedMessage, tokenize
from nbspam.workers import executor, tokenized

_SMALL = 1 << 18  # bytes of a file that is one message, or few

if TYPE_CHECKING:
    from nbspam_main import Passage


class Marking(NamedTuple):
    """How -p marks the message; None is the default."""

    header: str | None
    subject_tag: str | None
    evidence: int | None
    on_error: str | None  # read from the arguments by nbspam_main.py

    def name(self) -> str:
        """Return the header's name; raises OptionError."""
        if self.header is not None and not may_be_mark(self.header):
            raise OptionError(
                f"--header {self.header!r} cannot hold the verdict; take a name of at most"
                f" {NAME_LIMIT} letters and hyphens that mail does not use itself, such as {MARK}"
            )
        return self.header or MARK

    def tag(self) -> str:
        """Return the Subject's tag, "" for none; raises OptionError."""
        if self.subject_tag is not None and not may_be_tag(self.subject_tag):
            raise OptionError(
                f"--subject-tag {self.subject_tag!r} cannot go before a Subject; take at most"
                f" {TAG_LIMIT} plain ASCII characters without blanks around them, such as [SPAM]"
            )
        return self.subject_tag or ""

    def refuse(self) -> None:
        """Raise OptionError if an option was given that only -p has a use for."""
        for name, value in self._asdict().items():
            if value is not None:
                raise OptionError(
                    f"--{name.replace('_', '-')} goes with --passthrough alone; add that or leave"
                    " it out"
                )


@click.command("classify")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@model_name_option
@cut_off_options
@reading_options
@format_option
@jobs_option
@traced("classify")
@click.option(
    "--exit-code",
    is_flag=True,
    help="Exit with 0 for spam, 1 for ham, 2 for unsure, 3 for any error.",
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
@click.pass_obj
def command(
    passage: "Passage",
    /,
    sources: tuple[str, ...],
    model: str,
    cutting: Cutting,
    reading: Reading,
    form: str,
    jobs: int,
    exit_code: bool,
    passthrough: bool,
    marking: Marking,
    trace: NoTrace,
) -> int:
    """Classify messages as spam or ham.

    Without a SOURCE it reads one message from standard input.  A SOURCE is anything that `train`
    takes; labels are ignored.  It prints one line per message, in the order of the input: verdict,
    probability of spam and source, separated by tabs.

    \b
    Examples:
      nbspam classify < message.eml
      nbspam classify inbox.mbox | grep ^spam
      echo "You have won a prize" | nbspam classify --format json
      nbspam classify --spam-cutoff 0.99 --ham-cutoff 0.1 ~/Maildir

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

    Exit status: 0 on success, 1 on an error, 2 for a wrong option; with -p 75 for both.  With
    --exit-code the verdict on the last message: 0 spam, 1 ham, 2 unsure, and 3 for any error (with
    -p 75), so that `* ? nbspam classify --exit-code` never takes an error for spam.
    """
    cutting.check()
    if passthrough:
        if form != "text" or reading.lines or sources not in ((), (STDIN,)):
            raise OptionError(
                "--passthrough copies one message from standard input; leave out --format, --lines"
                " and any SOURCE"
            )
        return _pass(passage, model, cutting, exit_code, marking, trace)
    marking.refuse()
    refuse_stdin_twice(sources)
    sources = sources or (STDIN,)
    options, skips = reading.options(), Skips(reading.strict)
    last: int = VerdictCode.ERROR
    # For what may be many messages an index of the tokens pays.
    with open_filter(model, cutting.of, indexed=not _are_few(sources)) as spam_filter:
        note_one_sided(model, spam_filter.metadata)
        note_young(model, spam_filter.metadata)
        if exit_code:
            _check_positive(spam_filter.metadata)
        raws = (raw for source in sources for raw in any_kind(source, options, skips))
        with _progress(sources) as shown:
            messages = shown(
                tokenized(trace.noted(raws), skips, executor(jobs), wanted=spam_filter.wanted)
            )
            for judged in spam_filter.judge_all(messages):
                click.echo(_line(judged, form))
                trace.judged(judged)
                last = _code(spam_filter, judged)
    note_skips(skips)
    if not exit_code:
        return ExitCode.DONE
    if last == VerdictCode.ERROR and not skips.count:
        raise SourceError(f"{sources[-1]}: there is no message in it; name a source with one")
    return VerdictCode.ERROR if skips.count else last


def _line(judged: Verdict, form: str) -> str:
    if form == "text":
        return f"{judged.verdict}\t{judged.probability:.4f}\t{one_line(judged.source)}"
    return json.dumps(judged.as_json())


def _check_positive(metadata: Metadata) -> None:
    if metadata.settings.positive is None:
        raise OptionError(
            "--exit-code needs a class that counts as spam, and the model has none; name it with"
            " train --spam-label, or leave out --exit-code"
        )


@contextlib.contextmanager
def _progress(
    sources: tuple[str, ...],
) -> Iterator[Callable[[Iterable[TokenizedMessage]], Iterable[TokenizedMessage]]]:
    """Show progress on a terminal, where the verdicts go elsewhere."""
    if _are_few(sources) or sys.stdout.isatty():
        yield iter
        return
    from nbspam.cli.progress import progress

    with progress(False, sources) as shown:
        yield shown


def _are_few(sources: tuple[str, ...]) -> bool:
    return all(source == STDIN or _is_small(source) for source in sources)


def _is_small(source: str) -> bool:
    from pathlib import Path  # 3 ms, which standard input does without

    path = Path(source)
    try:
        return path.is_file() and path.stat().st_size < _SMALL
    except (OSError, ValueError):
        return True  # there is nothing to read


def _code(spam_filter: Filter, judged: Verdict) -> VerdictCode:
    if judged.verdict == spam_filter.metadata.settings.positive:
        return VerdictCode.SPAM
    return VerdictCode.HAM if judged.verdict in judged.probabilities else VerdictCode.UNSURE


def _pass(
    passage: "Passage",
    model: str,
    cutting: Cutting,
    exit_code: bool,
    marking: Marking,
    trace: NoTrace,
) -> int:
    """Write the message with its verdict; nothing is written before all is known."""
    from nbspam.serving import passthrough  # only a passthrough needs it

    name, tag = marking.name(), marking.tag()
    taken = passage.take(BYTES_LIMIT)
    trace.begin(taken)
    with open_filter(model, cutting.of, indexed=False) as spam_filter:
        if exit_code:
            _check_positive(spam_filter.metadata)
        # With the marks that it came with: a text without a header has an empty line after them.
        message = tokenize(parse(taken, (name, MARK)), wanted=spam_filter.wanted)
        judged = spam_filter.judge(message)
        evidence = None
        if marking.evidence:
            words = spam_filter.explain(message).words
            telling = [(w.token, w.share) for w in words if not is_fragment(w.token)]
            evidence = passthrough.evidence_value(name, telling[: marking.evidence])
    code = _code(spam_filter, judged)
    marks = passthrough.Marks(
        name=name,
        verdict=passthrough.verdict_value(judged.verdict, judged.probability),
        tag=tag if code == VerdictCode.SPAM else "",
        evidence=evidence,
    )
    raw = passthrough.cleaned(taken, name)
    passage.give(passthrough.marked(raw, marks))
    trace.judged(judged)
    with contextlib.suppress(OSError):  # the message is out
        note_one_sided(model, spam_filter.metadata)
    return code if exit_code else ExitCode.DONE
