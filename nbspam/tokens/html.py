"""HTML to the text a reader sees, with a token for each way of hiding text from him.

One pattern over the whole text: the standard library's html.parser takes 25 times as long (0.8 s
against 0.03 s for the 6.6 MB of HTML in the SpamAssassin corpus), and spam's HTML is seldom valid.
"""

import re
from typing import NamedTuple

from nbspam.patterns import lazy_pattern
from nbspam.reading.mime import ATTRIBUTES, COMMENT, END
from nbspam.tokens.hidden_text import visible
from nbspam.tokens.styles import StyleSheet
from nbspam.tokens.tags import RAW, tags, unescaped

# A comment, style or script that never closes goes on to the end, as in browsers; so the search for
# its end is made once.  A quoted value is as long as it is: of one bounded to 2,000 characters, the
# rest was shown to nobody and read as text.  An unclosed quote is passed over.
_TAG = re.compile(
    rf"({COMMENT}"
    rf"|<(?P<raw>{RAW}){ATTRIBUTES}>?.*?(?:</(?P=raw){END}|\Z)"
    r"|<(?:[!?]|/(?![a-z]))[^>]*+>?"
    r"|</?[a-z](?:[^<>\"']++|\"[^\"]*+\"|'[^']*+'|[\"'])*+>?)",
    re.IGNORECASE | re.DOTALL | re.ASCII,
)
_LETTER_ENTITY = lazy_pattern(
    r"&#(?:x[46][1-9a-f]|x[57][0-9a]|6[5-9]|[78]\d|90|9[7-9]|1[01]\d|12[0-2]);", re.I
)


class Page(NamedTuple):
    """What is in an HTML source."""

    text: str  # what is not hidden for certain
    certain: str  # of that, what is seen for certain
    links: list[str]  # the targets of links and images, in lower case
    tricks: set[str]  # tokens for ways of hiding text


def page_of(source: str) -> Page:
    """Return the visible text of an HTML source, its links' targets, and tokens for its tricks."""
    links: list[str] = []
    tricks: set[str] = set()
    if "&#" in source and _LETTER_ENTITY.search(source):
        tricks.add("trick:entity")
    pieces = _TAG.split(source)  # a text, a tag, the name of a sheet or script, a text, and so on
    texts, sources = pieces[::3], pieces[1::3]
    if "<!--" in source and _has_comment_in_word(texts, sources):
        tricks.add("trick:comment")
    # Those of comments and titles are none.
    sheets = [
        tag
        for tag, raw in zip(sources, pieces[2::3], strict=True)
        if raw and raw.lower() == "style"
    ]
    sheet = StyleSheet("".join(sheets)) if sheets else None
    text, certain = visible(texts, [tags[tag] for tag in sources], sheet, links, tricks)
    is_certain = certain is text
    text = unescaped(text)
    if is_certain:
        return Page(text, text, links, tricks)
    tricks.add("trick:perhaps-hidden")
    return Page(text, unescaped(certain), links, tricks)


def _has_comment_in_word(texts: list[str], sources: list[str]) -> bool:
    """Return whether a comment stands between two letters: `fr<!-- x -->ee`."""
    return any(
        source.startswith("<!--")
        and (texts[i] or (sources[i - 1] if i else ""))[-1:].isalpha()
        and texts[i + 1][:1].isalpha()
        for i, source in enumerate(sources)
    )
