"""A message's tokens, from all its parts."""

import re

from nbspam.reading.message import Message
from nbspam.tokens.headers import header_tokens
from nbspam.tokens.text import SHORT, link_tokens, short_text_tokens, text_tokens, words_of
from nbspam.tokens.unicode import undo_tricks

# Stored in the model: counts taken under other rules do not fit this program's tokens.
RULES = 1
_NO_MEDIA_TYPE = re.compile(r"[^\w.+/-]+")


def message_tokens(message: Message) -> set[str]:
    """Return the set of tokens of a message."""
    tokens: set[str] = header_tokens(message.headers) if message.headers else set()
    for part in message.parts:
        text = part.text
        if message.headers:
            tokens.add(f"mime:{_NO_MEDIA_TYPE.sub('', part.content_type[:60])}")
            if part.filename:
                _add_filename(part.filename, tokens)
        if not text:
            continue
        if (is_html := part.content_type == "text/html") or text[:201].lstrip().startswith("<"):
            # Its patterns take 2 ms to compile: one mail of plain text goes without them.
            from nbspam.tokens.html import html_text, looks_like_html

            if is_html or looks_like_html(text):
                text, links, tricks = html_text(text)
                tokens |= tricks
                for link in set(links):
                    _add_target(link.lower(), tokens)
        if not text.isascii():
            text, tricks = undo_tricks(text)
            tokens |= tricks
        found = text_tokens(text)
        if len(found) > len(tokens):  # the smaller set goes into the larger
            tokens, found = found, tokens
        tokens |= found
        if not message.headers:
            tokens |= short_text_tokens(text[:SHORT])
    return tokens


def _add_target(link: str, tokens: set[str]) -> None:
    """Add the tokens of the target of an HTML link or image."""
    scheme, colon, _ = link.partition(":")
    if link.startswith(("http://", "https://", "//", "www.")):
        link_tokens(link.removeprefix("//"), tokens)
    elif colon and scheme.isalpha() and len(scheme) <= 12:
        tokens.add(f"link:{scheme}")  # mailto, cid, javascript, data


def _add_filename(name: str, tokens: set[str]) -> None:
    """Add the tokens of an attachment's name: its words and its ending."""
    stem, dot, suffix = name.lower().rpartition(".")
    if dot and suffix.isalnum() and len(suffix) <= 8:
        tokens.add(f"attachment:.{suffix}")
    tokens.update([f"attachment:{word}" for word in words_of(stem or suffix)])
