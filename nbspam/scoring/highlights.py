"""An excerpt of a message with what each of its words added to the score.

A token's share is spread evenly over its places, and within a place over its characters; a word has
the sum of its characters.  So `free` in "free prize" has the shares of `free` and `case:Free`, half
of those of the bigrams that it is part of, and its part of the character trigrams'.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from nbspam.scoring.explanation import Explanation
from nbspam.tokens.excerpt import Excerpt, Place, sender_places, text_places
from nbspam.tokens.kinds import TRIGRAM
from nbspam.tokens.text import MARKS, UNSPACED
from nbspam.tokens.tokenized import TokenizedMessage

_MONEY = "$£€¥₹"
_WORD = re.compile(
    rf"[{UNSPACED}]"  # a letter of a script without spaces
    # A word, a number, a link.
    rf"|(?:\w|[{_MONEY}](?=\w))(?:[^\s<>\"()\[\]{UNSPACED}]*[\w%{MARKS}])?"
    r"|\s+|[^\w\s]+"
)
# A word is highlighted if it is among the strongest that together make up so much of what all words
# of the excerpt add or take away, or near the strongest; strongly, if among the first of these.
_HIGHLIGHTED, _STRONG, _NEAR = 0.5, 0.2, 0.5
_LEAST = 0.005  # nats: less adds nothing that a reader could see


class Run(NamedTuple):
    """A piece of text, and what it added to the score."""

    text: str
    nats: float
    emphasis: int = 0  # -2 to 2: strongly against, against, neither, for, strongly for


class HighlightedExcerpt(NamedTuple):
    """An excerpt in runs: a word each, and what is between them; or joined to longer ones."""

    subject: tuple[Run, ...] = ()
    sender: tuple[Run, ...] = ()
    text: tuple[Run, ...] = ()
    rest: int = 0  # characters of the text that are left out

    def joined(self) -> "HighlightedExcerpt":
        """Return the same with adjacent runs of one emphasis as one; blanks between them belong."""
        return self._changed(_joined_runs)

    def with_highlights_alone(self) -> "HighlightedExcerpt":
        """Return the same with nothing added by what is not highlighted."""
        return self._changed(lambda runs: (r if r.emphasis else r._replace(nats=0.0) for r in runs))

    def in_one_strength(self) -> "HighlightedExcerpt":
        """Return the same with an emphasis of -1, 0 or 1 alone."""
        return self._changed(
            lambda runs: (r._replace(emphasis=max(-1, min(1, r.emphasis))) for r in runs)
        )

    def _changed(self, change: Callable[[tuple[Run, ...]], Iterable[Run]]) -> "HighlightedExcerpt":
        lines = self.subject, self.sender, self.text
        subject, sender, text = (tuple(change(runs)) for runs in lines)
        return HighlightedExcerpt(subject, sender, text, self.rest)


def without_highlights(excerpt: Excerpt) -> HighlightedExcerpt:
    """Return an excerpt without highlights."""
    subject, sender, text = (
        (Run(line, 0.0),) if line else ()
        for line in (excerpt.subject, excerpt.sender, excerpt.text)
    )
    return HighlightedExcerpt(subject, sender, text, excerpt.rest)


def highlighted_message(message: TokenizedMessage, found: Explanation) -> HighlightedExcerpt:
    """Return the excerpt of a message with the words of its explanation highlighted."""
    excerpt = message.excerpt or Excerpt("", "", "", 0)
    return highlighted(excerpt, {word.token: word.share for word in found.words})


def highlighted(excerpt: Excerpt, shares: Mapping[str, float]) -> HighlightedExcerpt:
    """Return an excerpt with its words highlighted.

    shares: token -> what it adds to the message's log-odds, in nats.
    """
    is_short = any(token.startswith(TRIGRAM.prefix) for token in shares)
    lines = (
        (
            excerpt.subject,
            [p._replace(token=f"subject:{p.token}") for p in text_places(excerpt.subject)],
        ),
        (excerpt.sender, list(sender_places(excerpt.sender))),
        (excerpt.text, list(text_places(excerpt.text, is_short))),
    )
    times = Counter(place.token for _, places in lines for place in places)
    words = [list(_words(text, places, shares, times)) for text, places in lines]
    weak, strong = _limits([abs(run.nats) for runs in words for run in runs])
    subject, sender, text = (
        tuple(run._replace(emphasis=_emphasis(run.nats, weak, strong)) for run in runs)
        for runs in words
    )
    return HighlightedExcerpt(subject, sender, text, excerpt.rest)


def _limits(sizes: list[float]) -> tuple[float, float]:
    """Return from which size on a word is highlighted, and from which strongly."""
    sizes.sort(reverse=True)
    total, so_far = sum(sizes), 0.0
    weak = strong = math.inf
    for size in sizes:
        is_enough = so_far > _HIGHLIGHTED * total and size < _NEAR * sizes[0]
        if size < _LEAST or is_enough:
            break
        weak = size
        if so_far <= _STRONG * total:
            strong = size
        so_far += size
    # A little less, since equal words differ in their last digit.
    return weak * (1 - 1e-9), strong * (1 - 1e-9)


def _words(
    text: str, places: Iterable[Place], shares: Mapping[str, float], times: Mapping[str, int]
) -> Iterator[Run]:
    """Yield the words of a text and what is between them, each with its nats."""
    nats = [0.0] * len(text)
    for token, start, end in places:
        if share := shares.get(token):
            each = share / times[token] / (end - start)
            for i in range(start, end):
                nats[i] += each
    for word in _WORD.finditer(text):
        yield Run(word[0], 0.0 if word[0].isspace() else sum(nats[word.start() : word.end()]))


def _joined_runs(runs: Sequence[Run]) -> Iterator[Run]:
    levels = [run.emphasis for run in runs]
    for i, run in enumerate(runs[1:-1], start=1):
        if run.text.isspace() and levels[i - 1] == runs[i + 1].emphasis:
            levels[i] = levels[i - 1]
    for level, group in groupby(zip(levels, runs, strict=True), key=lambda pair: pair[0]):
        several = [run for _, run in group]
        text = "".join(run.text for run in several)
        yield Run(text, math.fsum(run.nats for run in several), level)


def _emphasis(nats: float, weak: float, strong: float) -> int:
    level = 0 if abs(nats) < weak else 1 if abs(nats) < strong else 2
    return level if nats > 0 else -level


def excerpt_json(excerpt: HighlightedExcerpt) -> dict[str, object]:
    """Return an excerpt as JSON has it: what is shown, and the places of what is highlighted.

    A emphasis is [start, end, nats], in characters of its line.
    """
    excerpt = excerpt.joined()
    lines = {"subject": excerpt.subject, "from": excerpt.sender, "text": excerpt.text}
    shown: dict[str, object] = {
        name: "".join(run.text for run in runs) for name, runs in lines.items()
    }
    highlights = {name: list(_places_of(runs)) for name, runs in lines.items()}
    return shown | {"characters_left_out": excerpt.rest, "highlights": highlights}


def _places_of(runs: Iterable[Run]) -> Iterator[list[float]]:
    start = 0
    for text, nats, emphasis in runs:
        if emphasis:
            yield [start, start + len(text), nats]
        start += len(text)
