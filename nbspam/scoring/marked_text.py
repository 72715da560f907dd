"""An excerpt of a message with what each of its words added to the score.

A token's share is spread evenly over its places, and within a place over its characters; a word has
the sum of its characters.  So `free` in "free prize" has the shares of `free` and `case:Free`, half
of those of the bigrams that it is part of, and its part of the character trigrams'.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from nbspam.scoring.explanation import Explanation
from nbspam.tokens.excerpt import Excerpt
from nbspam.tokens.kinds import TRIGRAM
from nbspam.tokens.places import Place, sender_places, text_places
from nbspam.tokens.tokenized import TokenizedMessage
from nbspam.tokens.unicode import MARKS, UNSPACED

_MONEY = "$£€¥₹"
_WORD = re.compile(
    rf"[{UNSPACED}]"  # a letter of a script without spaces
    rf"|[\w{_MONEY}](?:[^\s{UNSPACED}]*[\w%{MARKS}])?"  # a word, a number, a link
    r"|\s+|(?:[^\w\s])+"
)
# A word is marked if it is among the strongest that together make up so much of what all words of
# the excerpt add or take away; strongly, if among the first of these.
_MARKED, _STRONGLY = 0.5, 0.2
_LEAST = 0.005  # nats: less adds nothing that a reader could see


class Run(NamedTuple):
    """A piece of text, and what it added to the score."""

    text: str
    nats: float
    mark: int  # -2 to 2: strongly against, against, neither, for, strongly for


class MarkedExcerpt(NamedTuple):
    """An excerpt in runs; adjacent ones have different marks."""

    subject: tuple[Run, ...]
    sender: tuple[Run, ...]
    text: tuple[Run, ...]
    rest: int  # characters of the text that are left out


def marked_message(message: TokenizedMessage, found: Explanation) -> MarkedExcerpt:
    """Return the excerpt of a message with the words of its explanation marked."""
    excerpt = message.excerpt or Excerpt("", "", "", 0)
    return marked(excerpt, {word.token: word.share for word in found.words})


def marked(excerpt: Excerpt, shares: Mapping[str, float]) -> MarkedExcerpt:
    """Return an excerpt with its words marked.

    shares: token -> what it adds to the message's log-odds, in nats.
    """
    is_short = any(token.startswith(TRIGRAM.prefix) for token in shares)
    places = {
        "subject": [
            place._replace(token=f"subject:{place.token}") for place in text_places(excerpt.subject)
        ],
        "sender": list(sender_places(excerpt.sender)),
        "text": list(text_places(excerpt.text, is_short)),
    }
    known = {name: [p for p in found if p.token in shares] for name, found in places.items()}
    times: dict[str, int] = {}
    for found in known.values():
        for place in found:
            times[place.token] = times.get(place.token, 0) + 1
    words = {
        name: list(_words(getattr(excerpt, name), found, shares, times))
        for name, found in known.items()
    }
    weak, strong = _limits([abs(nats) for found in words.values() for _, nats in found])
    runs = {name: tuple(_runs(found, weak, strong)) for name, found in words.items()}
    return MarkedExcerpt(**runs, rest=excerpt.rest)


def _limits(sizes: list[float]) -> tuple[float, float]:
    """Return from which size on a word is marked, and from which strongly."""
    sizes.sort(reverse=True)
    total, so_far = sum(sizes), 0.0
    weak = strong = math.inf
    for size in sizes:
        if size < _LEAST or so_far > _MARKED * total:
            break
        weak = size
        if so_far <= _STRONGLY * total:
            strong = size
        so_far += size
    # A little less, since equal words differ in their last digit.
    return weak * (1 - 1e-9), strong * (1 - 1e-9)


def _words(
    text: str, places: Iterable[Place], shares: Mapping[str, float], times: Mapping[str, int]
) -> Iterator[tuple[str, float]]:
    """Yield the words of a text and what is between them, each with its nats."""
    nats = [0.0] * len(text)
    for token, start, end in places:
        each = shares[token] / times[token] / (end - start)
        for i in range(start, end):
            nats[i] += each
    for word in _WORD.finditer(text):
        yield word[0], sum(nats[word.start() : word.end()])


def _runs(words: Iterable[tuple[str, float]], weak: float, strong: float) -> Iterator[Run]:
    """Yield the words in runs of one mark; blanks between two that are marked alike are in them."""
    run = Run("", 0.0, 0)
    blank: Run | None = None
    for text, nats in words:
        if text.isspace():
            blank = Run(text, nats, 0)
            continue
        word = Run(text, nats, _mark(nats, weak, strong))
        if blank is not None:
            if run.mark in (0, word.mark):
                run = _joined(run, blank)
            else:
                yield run
                run = blank
            blank = None
        if word.mark == run.mark:
            run = _joined(run, word)
        else:
            yield from [run] if run.text else []
            run = word
    yield from [run] if run.text else []


def _joined(run: Run, more: Run) -> Run:
    return Run(run.text + more.text, run.nats + more.nats, run.mark)


def _mark(nats: float, weak: float, strong: float) -> int:
    level = 0 if abs(nats) < weak else 1 if abs(nats) < strong else 2
    return level if nats > 0 else -level


def excerpt_json(excerpt: MarkedExcerpt) -> dict[str, object]:
    """Return an excerpt as JSON has it: what is shown, and the places of what is marked.

    A mark is [start, end, nats], in characters of its line.
    """
    lines = {"subject": excerpt.subject, "from": excerpt.sender, "text": excerpt.text}
    shown: dict[str, object] = {
        name: "".join(run.text for run in runs) for name, runs in lines.items()
    }
    marks = {name: list(_marks(runs)) for name, runs in lines.items()}
    return shown | {"characters_left_out": excerpt.rest, "marks": marks}


def _marks(runs: Iterable[Run]) -> Iterator[list[float]]:
    start = 0
    for text, nats, mark in runs:
        if mark:
            yield [start, start + len(text), nats]
        start += len(text)
