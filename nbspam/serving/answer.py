"""The verdict on a message as a reply of the spamd protocol.

**Score.**  SpamAssassin's users know points: a message with 5.0 or more is spam.  Here a point is a
nat: the score is 5 plus the calibrated log-odds minus the log-odds of the spam cut-off.  So the
cut-off always scores 5.0, and odds 2.7 times as high score 6.0.  With the default cut-off, 0.9, a
probability of 0.99 scores 7.4, and a probability of 0.5 scores 2.8.

**Symbols** are the names of matching tests: the verdict, then one of SpamAssassin's Bayes classes
by the probability, for programs that look for BAYES_99.
"""

from bisect import bisect_right
from typing import NamedTuple

from nbspam import __version__
from nbspam.bayes.event_model import logit
from nbspam.errors import one_line
from nbspam.names import UNSURE
from nbspam.reading.marks import MARK
from nbspam.reading.message import parse
from nbspam.scoring.verdict import Verdict
from nbspam.scoring.version import FilterVersion
from nbspam.serving import spamd
from nbspam.serving.passthrough import VerdictHeader, add_fields, remove_own_fields, verdict_value
from nbspam.serving.spamd import REPORT_IFSPAM, RefusedError, Request
from nbspam.tokens.tokenized import TokenizedMessage, TokenizerOutputs, tokenize

THRESHOLD = 5.0
_POINTS_LIMIT = 100.0  # points, positive or negative; a plain sum's log-odds reach thousands
_STARS_LIMIT = 50  # in X-Spam-Level, as in SpamAssassin
_MAX_REPORTED_WORDS = 15  # words in a report, which mail readers show as a header

# Upper ends of SpamAssassin's Bayes classes.
_BOUNDS = (0.01, 0.05, 0.20, 0.40, 0.60, 0.80, 0.95, 0.99)
_BAYES = "00 05 20 40 50 60 80 95 99".split()
_BAYES_999_FROM = 0.999


class ScoredVerdict(NamedTuple):
    """A verdict on SpamAssassin's scale."""

    verdict: Verdict
    spam: bool
    tenths: int  # the score on SpamAssassin's scale, times 10

    @property
    def line(self) -> str:
        """The value of `Spam:`."""
        return f"{self.spam} ; {self.tenths / 10:.1f} / {THRESHOLD:.1f}"


def message_to_learn(message: bytes, outputs: TokenizerOutputs) -> TokenizedMessage:
    """Tokenize a message to learn or forget; raises RefusedError if it is not a message."""
    parsed = parse(message)
    if parsed.problem:
        raise RefusedError(spamd.DATA, f"the message {parsed.problem}")
    return tokenize(parsed, digest=True, outputs=outputs)


def scored_verdict(version: FilterVersion, message: TokenizedMessage) -> ScoredVerdict:
    """Return the verdict on a message, with at least 50 tenths if and only if it is spam.

    The score never decreases as the log-odds increase.
    """
    verdict = version.classify(message)
    metadata, settings = version.metadata, version.metadata.settings
    is_spam = verdict.verdict == settings.positive
    margin = 0.0  # how far the message is above the spam cut-off, in nats
    if len(settings.classes) == 2:
        margin = verdict.log_odds - logit(version.cut_offs.spam)
    elif not metadata.lacks_two_classes:
        others = list(verdict.score.log_scores)
        margin = others.pop(settings.positive_index or 0) - max(others)
    tenths = round(10 * min(max(THRESHOLD + margin, -_POINTS_LIMIT), _POINTS_LIMIT))
    limit = round(10 * THRESHOLD)
    # A score just below the cut-off is 49 tenths, because rounded to 50 it would contradict the
    # verdict.
    return ScoredVerdict(
        verdict, is_spam, max(tenths, limit) if is_spam else min(tenths, limit - 1)
    )


class Answer(NamedTuple):
    """The reply to a request about a message, and the verdict for the log."""

    reply: bytes
    verdict: str
    probability: float
    reason: str | None


def answer(
    request: Request, message: bytes, version: FilterVersion, x_spam: bool = False
) -> Answer:
    """Return the answer to a request about a message.

    x_spam: whether a message also gets SpamAssassin's headers.
    Raises RefusedError when spamc could not use the reply, ModelError when the model is damaged.
    """
    tokenized = tokenize(parse(message), outputs=version.outputs)
    scored = scored_verdict(version, tokenized)
    content: bytes | None = None  # the reply to CHECK has no content
    if request.command == spamd.SYMBOLS:
        content = ",".join(matching_tests(scored)).encode()
    elif request.command == REPORT_IFSPAM and not scored.spam:
        content = b""
    elif request.command in (spamd.REPORT, REPORT_IFSPAM):
        content = report(version, tokenized, scored).encode("utf-8", "replace")
    elif request.command in (spamd.PROCESS, spamd.HEADERS):
        content = rewrite_message(message, scored, x_spam)
        if request.command == spamd.HEADERS:
            content = header_for_spamc(message, content)
    verdict, reply = scored.verdict, spamd.reply(request, scored.line, content)
    return Answer(reply, verdict.verdict, verdict.probability, verdict.reason)


def matching_tests(scored: ScoredVerdict) -> list[str]:
    """Return the names of the tests that match a message, as SpamAssassin lists them."""
    kind = "SPAM" if scored.spam else "UNSURE" if scored.verdict.verdict == UNSURE else "HAM"
    probability, reason = scored.verdict.probability, scored.verdict.reason
    names = [f"NBSPAM_{kind}", f"BAYES_{_BAYES[bisect_right(_BOUNDS, probability)]}"]
    if reason:
        names.insert(1, f"NBSPAM_{reason.upper().replace(' ', '_')}")
    return [*names, "BAYES_999"] if probability >= _BAYES_999_FROM else names


def report(version: FilterVersion, message: TokenizedMessage, scored: ScoredVerdict) -> str:
    """Return the strongest words of a message with their contributions, as text."""
    explanation = version.explain(message)
    shown = explanation.readable_words[:_MAX_REPORTED_WORDS]
    lines = [
        f"nbspam {__version__}: {scored.verdict.verdict}{scored.verdict.reason_suffix},"
        f" probability {scored.verdict.probability:.4f},"
        f" score {scored.tenths / 10:.1f}, spam from {THRESHOLD:.1f}",
        f"strongest words, in nats, {explanation.of} against {explanation.against}:",
    ]
    for word in shown:
        counts = zip(version.classes, word.counts, strict=True)
        seen = ", ".join(f"{name} {n}" for name, n in counts)
        lines.append(f"{word.share:+8.3f}  {one_line(word.token)}  ({seen})")
    rest = explanation.total - sum(word.share for word in shown)
    lines.append(f"{rest:+8.3f}  everything else")
    return "\n".join(lines) + "\n"


def rewrite_message(message: bytes, scored: ScoredVerdict, x_spam: bool = False) -> bytes:
    """Return the message with its verdict in the header, like a passthrough.

    x_spam: whether to add, before our header, the headers that recipes for SpamAssassin look for.
    """
    verdict, score = scored.verdict, scored.tenths / 10
    fields = [(MARK, verdict_value(verdict.verdict, verdict.probability, verdict.reason))]
    if x_spam:
        status = f"{'Yes' if scored.spam else 'No'}, score={score:.1f} required={THRESHOLD:.1f}"
        fields = [
            ("X-Spam-Flag", "YES" if scored.spam else ""),
            ("X-Spam-Level", "*" * min(int(score), _STARS_LIMIT)),
            # rspamd reads the score only if `autolearn` follows the tests.
            ("X-Spam-Status", f"{status} tests={','.join(matching_tests(scored))} autolearn=no"),
            *fields,
        ]
    for name, value in fields:
        message = remove_own_fields(message, name)
        if value:
            message = add_fields(message, VerdictHeader(name, value))
    return message


def header_for_spamc(message: bytes, whole: bytes) -> bytes:
    """Return the part of the rewritten message, `whole`, that spamc puts before the body.

    spamc takes the body from the message that it sent, after the first empty line, and copies it
    as a C string: it would replace everything after a NUL by NULs.  Raises RefusedError if the
    result would not be the rewritten message; spamc then outputs the original.
    """
    ends = [at + len(end) for end in (b"\n\n", b"\r\n\r\n") if (at := message.find(end)) >= 0]
    if not ends:
        raise RefusedError(
            spamd.DATA, "HEADERS needs a message with an empty line after its header"
        )
    body = message[min(ends) :]
    if not whole.endswith(body) or b"\x00" in body:
        raise RefusedError(spamd.DATA, "HEADERS would change this message's body; use PROCESS")
    return whole[: len(whole) - len(body)]
