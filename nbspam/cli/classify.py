"""`nbspam classify`."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nbspam.cli.options import (
    cut_off_options,
    cut_offs_of,
    format_option,
    jobs_option,
    model_option,
    reading_of,
    reading_options,
    refuse_stdin_twice,
    tell,
    tell_one_sided,
)
from nbspam.errors import ExitCode, OptionError, SourceError, VerdictCode, one_line
from nbspam.reading.marks import EVIDENCE, MARK, NAME_LIMIT, TAG_LIMIT, may_be_mark, may_be_tag
from nbspam.reading.message import BYTES_LIMIT, parse
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.sources import STDIN, any_kind
from nbspam.scoring.classifier import Classifier, Score
from nbspam.scoring.verdict import CutOffs, fields, verdict
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import Metadata
from nbspam.tokens.text import TRIPLE
from nbspam.tokens.tokenizer import message_tokens
from nbspam.workers import TokenizedMessage, token_sets

_SMALL = 1 << 18  # bytes of a file that is one message, or few

if TYPE_CHECKING:
    from nbspam.serving.passage import Passage


@click.command("classify")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@model_option
@cut_off_options
@reading_options
@format_option
@jobs_option
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
@click.option("--header", metavar="NAME", help=f"With -p: the header's name. [default: {MARK}]")
@click.option(
    "--subject-tag",
    metavar="TEXT",
    help="With -p: put TEXT before the Subject of what is called spam.",
)
@click.option(
    "--evidence",
    type=click.IntRange(1, 100),
    metavar="N",
    help=f"With -p: add a header {MARK}{EVIDENCE} with the N most telling words, in nats.",
)
@click.option(
    "--on-error",
    type=click.Choice(["tempfail", "deliver"]),
    help="With -p: what to exit with when the message had to go without a verdict, 75 (it is tried"
    " again) or 0. [default: tempfail]",
)
@click.pass_obj
def command(
    passages: "list[Passage]",
    /,
    sources: tuple[str, ...],
    model: Path,
    form: str,
    jobs: int,
    exit_code: bool,
    passthrough: bool,
    **options: Any,
) -> int:
    """Say of each message whether it is spam.

    Without a SOURCE it reads one message from standard input.  A SOURCE is whatever `train` takes;
    labels are ignored.  One line a message, in the order of the input: verdict, probability of
    spam, source, with tabs between them.

    \b
    Examples:
      nbspam classify < message.eml
      nbspam classify inbox.mbox | grep ^spam
      echo "You have won a prize" | nbspam classify --format json
      nbspam classify --spam-cutoff 0.99 --ham-cutoff 0.1 ~/Maildir

    In the mail path, -p passes the message on byte for byte with one header more, the last,
    and without any such header that came with it:

    \b
      X-Nbspam: spam, probability=0.998712, version=0.1.0

    If anything fails, a wrong option too, the message comes out unchanged and the exit code is 75:
    maildrop keeps it in the queue, and so does procmail with the second recipe.

    \b
      # ~/.procmailrc                        # ~/.mailfilter
      :0fw                                   xfilter "nbspam classify -p"
      | nbspam classify -p                   if (/^X-Nbspam: spam,/)
      :0e                                    {
      { EXITCODE=75 HOST }                     to "Maildir/.Junk/"
      :0:                                    }
      * ^X-Nbspam: spam,
      spam

    Exit codes: 0 when it did its job, 1 on an error, 2 when an option is wrong; with -p 75 for
    both.  With --exit-code the verdict on the last message: 0 spam, 1 not spam, 2 unsure, and 3
    for any error (with -p 75), so that `* ? nbspam classify --exit-code` never takes an error for
    spam.
    """
    marking = {
        option: options.pop(option.removeprefix("--").replace("-", "_"))
        for option in ("--header", "--subject-tag", "--evidence", "--on-error")
    }
    cut_offs = cut_offs_of(options)
    if passthrough:
        if form != "text" or options["lines"] or sources not in ((), (STDIN,)):
            raise OptionError(
                "--passthrough copies one message from standard input; leave out --format, --lines"
                " and any SOURCE"
            )
        name, tag = _name_and_tag(marking["--header"], marking["--subject-tag"])
        return _pass(passages, model, cut_offs, exit_code, name, tag, marking["--evidence"])
    for option, value in marking.items():
        if value is not None:
            raise OptionError(f"{option} goes with --passthrough alone; add that or leave it out")
    refuse_stdin_twice(sources)
    reading, skips = reading_of(options)
    last: int = VerdictCode.ERROR
    with _opened(model, sources) as lookup:
        tell_one_sided(model, lookup.head)
        classifier = Classifier(lookup.head, lookup.counts)
        raws = (raw for source in sources or (STDIN,) for raw in any_kind(source, reading, skips))
        chosen = cut_offs(lookup.head)
        if exit_code:
            _check_positive(lookup.head)
        with _progress(sources) as shown:
            for raw, tokens, _ in classifier.in_batches(shown(token_sets(raws, skips, jobs))):
                score = classifier.score(tokens)
                called = verdict(lookup.head, score, chosen)
                click.echo(_line(raw, score, called, lookup.head, form))
                last = _code(lookup.head, called)
    tell(skips)
    if not exit_code:
        return ExitCode.DONE
    if last == VerdictCode.ERROR and not skips.count:
        raise SourceError(
            f"{sources[-1] if sources else STDIN}: there is no message in it; name a"
            " source with one"
        )
    return VerdictCode.ERROR if skips.count else last


def _line(raw: RawMessage, score: Score, called: str, head: Metadata, form: str) -> str:
    if form == "text":
        return f"{called}\t{score.probability:.4f}\t{one_line(raw.source)}"
    return json.dumps({"source": raw.source, **fields(head.classes, called, score)})


def _check_positive(head: Metadata) -> None:
    if head.positive is None:
        raise OptionError(
            "--exit-code tells spam from the rest, and the model has no class that counts as spam;"
            " name it with train --spam-label, or leave out --exit-code"
        )


def _opened(model: Path, sources: tuple[str, ...]) -> Lookup:
    """Return the open model; for what may be many messages, with an index of its tokens."""
    if _are_few(sources):
        return Lookup(model)
    from nbspam.store.index import Index

    return Index(model)


@contextlib.contextmanager
def _progress(
    sources: tuple[str, ...],
) -> Iterator[Callable[[Iterator[TokenizedMessage]], Iterator[TokenizedMessage]]]:
    """Show on a terminal how far long work has come, where the verdicts go elsewhere."""
    if _are_few(sources) or sys.stdout.isatty():
        yield iter
        return
    from nbspam.cli.progress import progress

    with progress(False, sources) as shown:
        yield shown


def _are_few(sources: tuple[str, ...]) -> bool:
    return all(source == STDIN or _is_small(Path(source)) for source in sources)


def _is_small(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size < _SMALL
    except (OSError, ValueError):
        return True  # there is nothing to read


def _code(head: Metadata, called: str) -> VerdictCode:
    if called == head.positive:
        return VerdictCode.SPAM
    return VerdictCode.HAM if called in head.classes else VerdictCode.UNSURE


def _name_and_tag(name: str | None, tag: str | None) -> tuple[str, str]:
    """Return the header's name and the Subject's tag, "" for none; raises OptionError."""
    if name is not None and not may_be_mark(name):
        raise OptionError(
            f"--header {name!r} cannot hold the verdict; take a name of at most {NAME_LIMIT}"
            f" letters and hyphens that mail does not use itself, such as {MARK}"
        )
    if tag is not None and not may_be_tag(tag):
        raise OptionError(
            f"--subject-tag {tag!r} cannot go before a Subject; take at most {TAG_LIMIT} plain"
            " characters (ASCII) without blanks around them, such as [SPAM]"
        )
    return name or MARK, tag or ""


def _pass(
    passages: "list[Passage]",
    model: Path,
    cut_offs: Callable[[Metadata | None], CutOffs],
    exit_code: bool,
    name: str,
    tag: str,
    n_words: int | None,
) -> int:
    """Give the message out with its verdict; nothing is written before all is known."""
    # Deferred, as `explain` below: whoever passes nothing through need not load it.
    from nbspam.serving import passthrough
    from nbspam.serving.passage import Passage

    passage = Passage(sys.stdin, sys.stdout)
    passages.append(passage)
    taken = passage.take(BYTES_LIMIT)
    raw = passthrough.cleaned(taken, name)
    with Lookup(model) as lookup:
        head = lookup.head
        chosen = cut_offs(head)
        if exit_code:
            _check_positive(head)
        classifier = Classifier(head, lookup.counts)
        tokens = sorted(message_tokens(parse(raw)))  # summed up as in bulk
        score = classifier.score(tokens)
        called = verdict(head, score, chosen)
        evidence = None
        if n_words:
            from nbspam.scoring.explanation import explain

            words = explain(classifier, tokens).words
            # Letter triples say nothing to a reader.
            telling = [(w.token, w.share) for w in words if not w.token.startswith(TRIPLE)]
            evidence = passthrough.evidence_value(name, telling[:n_words])
    code = _code(head, called)
    marks = passthrough.Marks(
        name=name,
        verdict=passthrough.verdict_value(called, score.probability),
        tag=tag if code == VerdictCode.SPAM else "",
        evidence=evidence,
    )
    passage.give(passthrough.marked(raw, marks, is_cut=len(taken) == BYTES_LIMIT))
    with contextlib.suppress(OSError):  # the message is out
        tell_one_sided(model, head)
    return code if exit_code else ExitCode.DONE
