"""HTML to the text a reader sees, with a token for each way of hiding text from him.

One pattern over the whole text: the standard library's html.parser takes 25 times as long (0.8 s
against 0.03 s for the 6.6 MB of HTML in the SpamAssassin corpus), and spam's HTML is seldom valid.
"""

import re
from typing import NamedTuple

from nbspam.patterns import lazy_pattern
from nbspam.tokens.hidden_text import visible
from nbspam.tokens.styles import StyleSheet
from nbspam.tokens.tags import RAW, tags

# A comment, style or script that never closes goes on to the end, as in browsers; so the search for
# its end is made once.  A quoted value is as long as it is: of one bounded to 2,000 characters, the
# rest was shown to nobody and read as text.  An unclosed quote is passed over.
_TAG = re.compile(
    r"(<!--.*?(?:-->|\Z)"
    rf"|<(?P<raw>{RAW})\b.*?(?:</(?P=raw)\s*>|\Z)"
    r"|<[!?][^>]{0,2000}>?"
    r"|</?[a-z][a-z0-9]{0,15}\b(?:[^<>\"']+|\"[^\"]*+\"|'[^']*+'|[\"']){0,200}>?)",
    re.IGNORECASE | re.DOTALL,
)
_STYLE = lazy_pattern(r"<style\b", re.IGNORECASE)
_LETTER_ENTITY = lazy_pattern(
    r"&#(?:x[46][1-9a-f]|x[57][0-9a]|6[5-9]|[78]\d|90|9[7-9]|1[01]\d|12[0-2]);", re.I
)
_COMMON_ENTITIES = {
    "amp": "&",
    "lt": "<",
    "gt": ">",
    "quot": '"',
    "nbsp": "\xa0",
    "copy": "©",
    "#39": "'",
    "#160": "\xa0",
}
_COMMON_ENTITY = lazy_pattern(f"&({'|'.join(_COMMON_ENTITIES)});")
_LONG_ENTITY = lazy_pattern(r"&#(?:[0-9]{8}|[xX][0-9a-fA-F]{7})[0-9a-fA-F]{0,100000};?")


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
    sheet = StyleSheet(source) if _STYLE.search(source) else None
    text, certain = visible(texts, [tags[tag] for tag in sources], sheet, links, tricks)
    is_certain = certain is text
    text = _unescaped(text) if "&" in text else text
    if is_certain:
        return Page(text, text, links, tricks)
    tricks.add("trick:perhaps-hidden")
    return Page(text, _unescaped(certain) if "&" in certain else certain, links, tricks)


def _unescaped(text: str) -> str:
    """Return a text with its entities as characters."""
    if len(_COMMON_ENTITY.findall(text)) == text.count("&"):
        return _COMMON_ENTITY.sub(lambda entity: _COMMON_ENTITIES[entity[1]], text)
    import html  # 2 ms: it has a table of 2,231 entities

    # Python turns no number of over 4,300 digits into an integer, and no character has 8.
    return html.unescape(_LONG_ENTITY.sub(" ", text))


def _has_comment_in_word(texts: list[str], sources: list[str]) -> bool:
    """Return whether a comment stands between two letters: `fr<!-- x -->ee`."""
    return any(
        source.startswith("<!--")
        and (texts[i] or (sources[i - 1] if i else ""))[-1:].isalpha()
        and texts[i + 1][:1].isalpha()
        for i, source in enumerate(sources)
    )
