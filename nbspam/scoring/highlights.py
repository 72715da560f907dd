"""An excerpt of a message with each word's contribution to the score.

The tokenizer itself finds the tokens of a word, by tokenizing only this word.  Tokens that appear
only when two neighbours are tokenized together (bigrams) belong to both.  A token's share is spread
evenly over its occurrences.  So `Free` in "Free prize" gets the shares of `free`, `case:Free` and
its trigrams, and half of its bigrams' shares.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby, pairwise
from typing import NamedTuple

from nbspam.scoring.explanation import Explanation, Word
from nbspam.tokens.headers import header_tokens
from nbspam.tokens.kinds import SENDER, TRIGRAM
from nbspam.tokens.text import (
    MARKS,
    UNSPACED,
    short_text_tokens,
    text_tokens,
    written_numbers,
)
from nbspam.tokens.tokenized import Excerpt, TokenizedMessage

_MONEY = "$£€¥₹"
_WORD = re.compile(
    rf"[{UNSPACED}]"  # a letter of a script without spaces
    # A word, a number or a link.
    rf"|(?:\w|[{_MONEY}](?=\w))(?:[^\s<>\"()\[\]{UNSPACED}]*[\w%{MARKS}])?"
    r"|\s+|[^\w\s]+"
)
# Sort the excerpt's words by the size of their contributions.  The words that make up
# _HIGHLIGHTED_SHARE of the total are highlighted, and so is a word with _NEAR_SHARE of the largest
# contribution; the words that make up _STRONG_SHARE are highlighted strongly.
_HIGHLIGHTED_SHARE, _STRONG_SHARE, _NEAR_SHARE = 0.5, 0.2, 0.5
_MIN_NATS = 0.005  # smaller contributions are not visible in the figures


class Run(NamedTuple):
    """A piece of text, and its contribution to the score."""

    text: str
    nats: float
    emphasis: int = 0  # -2 strongly against, -1 against, 0 neither, 1 for, 2 strongly for


class HighlightedExcerpt(NamedTuple):
    """An excerpt in runs: words and the text between them, or longer merged runs."""

    subject: tuple[Run, ...] = ()
    sender: tuple[Run, ...] = ()
    text: tuple[Run, ...] = ()
    rest: int = 0  # characters of the text after the excerpt

    def merge_runs(self, max_emphasis: int = 2) -> "HighlightedExcerpt":
        """Merge adjacent runs with the same emphasis, and the blanks between them.

        max_emphasis: 1 treats strong emphasis like normal emphasis.
        """
        lines = self.subject, self.sender, self.text
        subject, sender, text = (tuple(_merge_runs(runs, max_emphasis)) for runs in lines)
        return HighlightedExcerpt(subject, sender, text, self.rest)


def words_as_written(excerpt: HighlightedExcerpt, words: Sequence[Word]) -> tuple[Word, ...]:
    """Replace the zeros of tokens with the digits of the message, where the excerpt has them."""
    written = dict[str, str]()
    for prefix, runs in zip(("subject:", "from:", ""), excerpt[:3], strict=True):
        line = "".join(run.text for run in runs)
        numbers = written_numbers(line) if any(map(str.isdigit, line)) else {}
        written |= {prefix + token: prefix + number for token, number in numbers.items()}
    return tuple(word._replace(token=written.get(word.token, word.token)) for word in words)


def without_highlights(excerpt: Excerpt) -> HighlightedExcerpt:
    """Convert an excerpt, without highlights."""
    return highlight(excerpt, {}).merge_runs()


def highlight_message(message: TokenizedMessage, explanation: Explanation) -> HighlightedExcerpt:
    """Highlight the words of a message's explanation in its excerpt."""
    excerpt = message.excerpt or Excerpt("", "", "", 0)
    return highlight(excerpt, {word.token: word.share for word in explanation.words})


def highlight(excerpt: Excerpt, shares: Mapping[str, float]) -> HighlightedExcerpt:
    """Highlight the words of an excerpt.

    shares: token -> its contribution to the message's log-odds, in nats.
    """
    is_short = any(token.startswith(TRIGRAM.prefix) for token in shares)
    pieces = [_WORD.findall(line) for line in excerpt[:3]]
    tokens_of = _subject_tokens, _sender_tokens, _short_text_tokens if is_short else text_tokens
    lines = zip(pieces, tokens_of, strict=True)
    places = [list(_token_positions(*line)) if shares else [] for line in lines]
    times = Counter(token for of_line in places for token, _ in of_line)
    nats = [[0.0] * len(line) for line in pieces]
    for of_line, sums in zip(places, nats, strict=True):
        for token, indices in of_line:
            for i in indices:
                sums[i] += shares.get(token, 0.0) / times[token] / len(indices)
    weak, strong = _highlight_thresholds([abs(size) for sums in nats for size in sums])
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


def _token_positions(
    pieces: Sequence[str], tokens_of: Callable[[str], Iterable[str]]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield each token of a line with the indices of its pieces: one, or two neighbours."""
    cached = cache(lambda piece: frozenset(tokens_of(piece)))
    tokens_of_pieces = list(map(cached, pieces))
    for i, tokens in enumerate(tokens_of_pieces):
        yield from ((token, (i,)) for token in tokens)
    solid = [i for i, piece in enumerate(pieces) if not piece.isspace()]
    words = [i for i in solid if any(map(str.isalnum, pieces[i]))]
    for i, j in sorted({*pairwise(solid), *pairwise(words)}):  # in "free, prize": "free," and all
        together = cached("".join(pieces[i : j + 1]))
        new = together.difference(*tokens_of_pieces[i : j + 1])
        yield from ((token, (i, j)) for token in new)


def _highlight_thresholds(sizes: list[float]) -> tuple[float, float]:
    """Return the smallest size of a highlighted word, and of a strongly highlighted word."""
    sizes.sort(reverse=True)
    total, so_far = sum(sizes), 0.0
    weak = strong = math.inf
    for size in sizes:
        is_enough = so_far > _HIGHLIGHTED_SHARE * total and size < _NEAR_SHARE * sizes[0]
        if size < _MIN_NATS or is_enough:
            break
        weak = size
        if so_far <= _STRONG_SHARE * total:
            strong = size
        so_far += size
    # Slightly less, because equal words differ in their last digit.
    return weak * (1 - 1e-9), strong * (1 - 1e-9)


def _merge_runs(runs: Sequence[Run], max_emphasis: int) -> Iterator[Run]:
    levels = [max(-max_emphasis, min(max_emphasis, run.emphasis)) for run in runs]
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
    """Convert an excerpt to JSON: its text, and the spans of its highlights.

    A span is [start, end, nats]; start and end count characters of the line.
    """
    excerpt = excerpt.merge_runs()
    lines = {"subject": excerpt.subject, "from": excerpt.sender, "text": excerpt.text}
    texts = {name: "".join(run.text for run in runs) for name, runs in lines.items()}
    highlights = {name: list(_highlighted_spans(runs)) for name, runs in lines.items()}
    return texts | {"characters_left_out": excerpt.rest, "highlights": highlights}


def _highlighted_spans(runs: Iterable[Run]) -> Iterator[list[float]]:
    start = 0
    for text, nats, emphasis in runs:
        if emphasis:
            yield [start, start + len(text), nats]
        start += len(text)
