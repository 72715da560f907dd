"""Why a message got its verdict, in sentences."""

from collections.abc import Iterable, Iterator

from nbspam.errors import counted
from nbspam.scoring.explanation import TRAIT_PREFIX, Explanation
from nbspam.scoring.rules import BIAS, CALIBRATION, CAUTION, LENGTH, OTHER_CLASSES, PRIOR, rule_of
from nbspam.scoring.verdict import TOO_FEW_WORDS, Verdict
from nbspam.store.metadata import Metadata
from nbspam.tokens.kinds import HEADER, channel_of, is_fragment, kind_of

# What a constant term is, in words.
CONSTANTS = {
    BIAS: "the absence of every word (bias)",
    CALIBRATION: "calibration: any message",
    LENGTH: "calibration: its length",
    CAUTION: "caution for ham",
    PRIOR: "the prior",
    OTHER_CLASSES: "the other classes' scores",
}


_TRAIT = "a number that every message has, and how many messages had the same"


def legend(tokens: Iterable[str], of: str) -> Iterator[tuple[str, str]]:
    """Yield what the figures mean, and the kinds of the tokens, each once: a term, its meaning.

    of: the class that positive figures speak for.
    """
    yield (
        "nats",
        f"the unit of log-odds: +0.7 doubles the odds of {of}, -0.7 halves them",
    )
    yield "weight", "what a word says by itself, in nats"
    for name, meaning in sorted(dict(map(_kind, tokens)).items()):
        if name:
            yield f"{name}:", meaning


def _kind(token: str) -> tuple[str, str]:
    if token.startswith(TRAIT_PREFIX):
        return TRAIT_PREFIX.rstrip(":"), _TRAIT
    kind = kind_of(token)
    return kind.name, kind.meaning


def sentences(judged: Verdict, found: Explanation, metadata: Metadata) -> Iterator[str]:
    """Yield what there is to say of a verdict, a sentence each."""
    if metadata.is_one_sided:
        yield f"{judged.verdict}: the model has learned no messages of two classes yet."
        return
    if unknown := "; ".join(_unknown(judged, found)):
        yield unknown
    if found.unheard:
        words = counted(found.unheard, "word")
        yield f"{words} of text that is perhaps hidden would speak for {found.against}, and may not"
    if trust := _trust(found, metadata):
        yield trust
    if found.base is not None:
        yield f"the counts include those of the base {found.base}"
    yield _decisive(judged, found)


def _unknown(judged: Verdict, found: Explanation) -> Iterator[str]:
    """Yield how many tokens are unknown, and that too few are known where that decided."""
    if found.unknown:
        of = counted(found.unknown + sum(not word.is_trait for word in found.words), "token")
        verb = "is" if found.unknown == 1 else "are"
        yield f"{found.unknown:,} of {of} {verb} unknown to the model, and ignored"
    if judged.reason == TOO_FEW_WORDS:
        known, text = found.score.known, found.score.text
        model = "it" if found.unknown else "the model"
        knows = f"{model} knows {known:,} of {text:,} in the text" if text else "the text has none"
        # One known token is enough for the other class.
        called = found.against if known else f"{found.against} or {found.of}"
        yield f"{knows}, too few to call it {called}"


def _trust(found: Explanation, metadata: Metadata) -> str:
    """Return how far the headers were trusted, and why; empty where they are words like others."""
    words = sum(channel_of(word.token) == HEADER for word in found.words)
    if not words or not rule_of(metadata).is_calibrated:
        return ""
    rho, mails = metadata.host_trust
    if not mails:
        return (
            "headers are not trusted: no mails of two classes were learned with the host that took"
            " them in"
        )
    known = f"{counted(words, 'header word')} {'is' if words == 1 else 'are'} known"
    return (
        f"headers count for {100 * found.score.trust:.0f} %: the hosts that took the mails in leave"
        f" {100 * rho:.0f} % of the class open (all of it on one server's mail), and {known}"
    )


def _decisive(judged: Verdict, found: Explanation) -> str:
    """Return one sentence that says what decided."""
    side = 1 if found.total > 0 else -1
    toward, other = (found.of, found.against)[::side]
    words = sum(word.share for word in found.words)
    largest = max(found.constants, key=lambda key: found.constants[key] * side, default=PRIOR)
    constant = CONSTANTS[largest].replace("calibration: ", "the calibration of ")
    if words * side > 0:
        reason = _strongest(found, side)
    elif words:
        reason = f"because of {constant}: its words lean to {other}, too weakly"
    else:
        reason = f"which is {constant}: {_unmoved(found)}"
    lean = f"the sum leans to {toward} by {abs(found.total):.2f} nats"
    return f"{judged.verdict}{judged.remark}: {lean}, {reason}."


def _unmoved(found: Explanation) -> str:
    """Return why no word has a share: none is known, or `hold` (bayes/prediction.py) left none."""
    known = [word for word in found.words if not word.is_trait]
    if not known:
        return "the model knows none of its words"
    count = [w for w in known if found.score.trust or channel_of(w.token) != HEADER]
    sides = {found.of if word.weight > 0 else found.against for word in count if word.weight}
    if len(sides) != 1:
        return "its known words do not move it"
    return f"its known words lean to {sides.pop()}, too weakly to move it"


def _strongest(found: Explanation, side: int) -> str:
    """Return which words point to one side most strongly."""
    leaning = [word.token for word in found.words if word.share * side > 0]
    readable = [token for token in leaning if not is_fragment(token)]
    names = [f"“{token}”" for token in (readable or leaning)[:3]]
    if len(names) == 1:
        reason = f"and the strongest word for that is {names[0]}"
    else:
        reason = f"and the strongest words for that are {', '.join(names[:-1])} and {names[-1]}"
    words = sum(word.share for word in found.words)
    fragments = sum(word.share for word in found.words if is_fragment(word.token))
    if 2 * fragments * side > words * side:
        reason += "; its character trigrams contribute most of it"
    return reason
