"""`nbspam classify --passthrough`: a message from standard input to standard output, marked."""

import contextlib
from typing import TYPE_CHECKING

from nbspam.cli.cut_off_options import Cutting
from nbspam.cli.notes import NoTrace, note_one_sided
from nbspam.cli.verdicts import Marking, check_positive, verdict_code
from nbspam.errors import ExitCode, VerdictCode
from nbspam.filter import open_filter
from nbspam.reading.marks import MARK
from nbspam.reading.message import BYTES_LIMIT, parse
from nbspam.serving import passthrough
from nbspam.tokens.kinds import is_fragment
from nbspam.tokens.tokenized import tokenize

if TYPE_CHECKING:
    from nbspam_main import Passage


def pass_on(
    passage: "Passage",
    model: str,
    base: str | None,
    cutting: Cutting,
    exit_code: bool,
    marking: Marking,
    trace: NoTrace,
) -> int:
    """Write the message with its verdict; nothing is written before all is known.

    passage: of the message.  Returns the exit code; what it raises comes before the message is out.
    """
    name, tag = marking.name(), marking.tag()
    taken = passage.take(BYTES_LIMIT)
    trace.begin(taken)
    with open_filter(model, cutting.of, indexed=False, base=base) as spam_filter:
        if exit_code:
            check_positive(spam_filter.metadata)
        # With the marks that it came with: a text without a header has an empty line after them.
        parsed = parse(taken, (name, MARK))
        message = tokenize(parsed, wanted=spam_filter.wanted)
        judged = spam_filter.judge(message)
        evidence = None
        if marking.evidence:
            words = spam_filter.explain(message).words
            telling = [(w.token, w.share) for w in words if not is_fragment(w.token)]
            evidence = passthrough.evidence_value(name, telling[: marking.evidence])
    code = verdict_code(spam_filter, judged)
    marks = passthrough.Marks(
        name=name,
        verdict=passthrough.verdict_value(judged.verdict, judged.probability, judged.reason),
        tag=tag if code == VerdictCode.SPAM else "",
        evidence=evidence,
    )
    raw = passthrough.cleaned(taken, name)
    passage.give(passthrough.marked(raw, marks))
    trace.judged(judged)
    with contextlib.suppress(OSError):  # the message is out
        note_one_sided(model, spam_filter.metadata)
    return code if exit_code else ExitCode.DONE
