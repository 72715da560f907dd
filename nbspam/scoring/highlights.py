"""An excerpt of a message with what each of its words added to the score.

The tokenizer itself says which tokens a word has: those that it makes of the word alone.  What it
makes of two neighbours together (a bigram) stands in both.  A token's share is spread evenly over
the places where it stands.  So `Free` in "Free prize" has the shares of `free`, of `case:Free` and
of its trigrams, and half of those of the bigrams that it is part of.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby, pairwise
from typing import NamedTuple

from nbspam.scoring.explanation import Explanation
from nbspam.tokens.headers import header_tokens
from nbspam.tokens.kinds import SENDER, TRIGRAM
from nbspam.tokens.text import MARKS, UNSPACED, short_text_tokens, text_tokens
from nbspam.tokens.tokenized import Excerpt, TokenizedMessage

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

    def joined(self, most: int = 2) -> "HighlightedExcerpt":
        """Return the same with adjacent runs of one emphasis as one; blanks between them belong.

        most: the strongest emphasis that is told from others.
        """
        lines = self.subject, self.sender, self.text
        subject, sender, text = (tuple(_joined_runs(runs, most)) for runs in lines)
        return HighlightedExcerpt(subject, sender, text, self.rest)


def without_highlights(excerpt: Excerpt) -> HighlightedExcerpt:
    """Return an excerpt without highlights."""
    return highlighted(excerpt, {}).joined()


def highlighted_message(message: TokenizedMessage, explanation: Explanation) -> HighlightedExcerpt:
    """Return the excerpt of a message with the words of its explanation highlighted."""
    excerpt = message.excerpt or Excerpt("", "", "", 0)
    return highlighted(excerpt, {word.token: word.share for word in explanation.words})


def highlighted(excerpt: Excerpt, shares: Mapping[str, float]) -> HighlightedExcerpt:
    """Return an excerpt with its words highlighted.

    shares: token -> what it adds to the message's log-odds, in nats.
    """
    is_short = any(token.startswith(TRIGRAM.prefix) for token in shares)
    pieces = [_WORD.findall(line) for line in excerpt[:3]]
    tokens_of = _subject_tokens, _sender_tokens, _short_text_tokens if is_short else text_tokens
    lines = zip(pieces, tokens_of, strict=True)
    places = [list(_places(*line)) if shares else [] for line in lines]
    times = Counter(token for of_line in places for token, _ in of_line)
    nats = [[0.0] * len(line) for line in pieces]
    for of_line, sums in zip(places, nats, strict=True):
        for token, indices in of_line:
            for i in indices:
                sums[i] += shares.get(token, 0.0) / times[token] / len(indices)
    weak, strong = _limits([abs(size) for sums in nats for size in sums])
    subject, sender, text = (
        tuple(map(Run, line, sums, (_emphasis(size, weak, strong) for size in sums)))
        for line, sums in zip(pieces, nats, strict=True)
    )
    return HighlightedExcerpt(subject, sender, text, excerpt.rest)


def _subject_tokens(piece: str) -> set[str]:
    return {f"subject:{token}" for token in text_tokens(piece)}


def _sender_tokens(piece: str) -> set[str]:
    tokens = header_tokens([("from", piece)])
    return {token for token in tokens if token.startswith(("from:", SENDER.prefix))}


def _short_text_tokens(piece: str) -> set[str]:
    return {*text_tokens(piece), *short_text_tokens(piece)}


def _places(
    pieces: Sequence[str], tokens_of: Callable[[str], Iterable[str]]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield each token of a line with the pieces that it stands in: one, or two neighbours."""
    cached = cache(lambda piece: frozenset(tokens_of(piece)))
    alone = list(map(cached, pieces))
    for i, tokens in enumerate(alone):
        yield from ((token, (i,)) for token in tokens)
    solid = [i for i, piece in enumerate(pieces) if not piece.isspace()]
    words = [i for i in solid if any(map(str.isalnum, pieces[i]))]
    for i, j in sorted({*pairwise(solid), *pairwise(words)}):  # "free, prize" has two and three
        together = cached("".join(pieces[i : j + 1]))
        yield from ((token, (i, j)) for token in together.difference(*alone[i : j + 1]))


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


def _joined_runs(runs: Sequence[Run], most: int) -> Iterator[Run]:
    levels = [max(-most, min(most, run.emphasis)) for run in runs]
    for i, run in enumerate(runs[1:-1], start=1):
        if run.text.isspace() and levels[i - 1] == levels[i + 1]:
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

    A place is [start, end, nats], in characters of its line.
    """
    excerpt = excerpt.joined()
    lines = {"subject": excerpt.subject, "from": excerpt.sender, "text": excerpt.text}
    texts = {name: "".join(run.text for run in runs) for name, runs in lines.items()}
    highlights = {name: list(_places_of(runs)) for name, runs in lines.items()}
    return texts | {"characters_left_out": excerpt.rest, "highlights": highlights}


def _places_of(runs: Iterable[Run]) -> Iterator[list[float]]:
    start = 0
    for text, nats, emphasis in runs:
        if emphasis:
            yield [start, start + len(text), nats]
        start += len(text)
