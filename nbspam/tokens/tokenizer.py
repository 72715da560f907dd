"""A message's tokens, from all its parts."""

import re

from nbspam.reading.message import Message
from nbspam.reading.mime import Part
from nbspam.tokens.headers import header_tokens
from nbspam.tokens.text import SHORT, link_tokens, short_text_tokens, text_tokens, words_of
from nbspam.tokens.unicode import has_tricks, undo_tricks
from nbspam.tokens.visible_text import VisibleText

# Stored in the model: counts taken by another tokenizer or other rules do not fit these tokens.  To
# be raised when a message would give other tokens, or other times or traits.
NAME = "nbspam"
RULES = 4
# Tokens of one message, far above the mail in the corpora (18,430 in the largest of 10,546): a mail
# of 104,000 different words took 2.9 s to learn, and the model grew by 3 MB.
TOKENS_LIMIT = 20_000
_NO_MEDIA_TYPE = re.compile(r"[^\w.+/-]+")


def message_tokens(message: Message, texts: list[VisibleText] | None = None) -> set[str]:
    """Return the set of tokens of a message.

    texts: a list to which its texts are added as a reader sees them, if they are needed for more.
    """
    is_mail = bool(message.headers)
    tokens: set[str] = header_tokens(message.headers) if is_mail else set()
    for part in message.parts:
        if is_mail:
            tokens.add(f"mime:{_NO_MEDIA_TYPE.sub('', part.content_type[:60])}")
            if part.filename:
                _add_filename(part.filename, tokens)
        if not part.text:
            continue
        text, links = _visible_text(part, tokens)
        if texts is not None:
            texts.append(VisibleText(text, links))
        found = text_tokens(text)
        if len(found) > len(tokens):  # the smaller set goes into the larger
            tokens, found = found, tokens
        tokens |= found
        if not is_mail:
            tokens |= short_text_tokens(text.lstrip()[:SHORT])
    limits = message.limits
    if len(tokens) > TOKENS_LIMIT:
        tokens, limits = _drawn(tokens), limits | {"tokens"}
    return tokens.union([f"limit:{name}" for name in limits]) if limits else tokens


def _drawn(tokens: set[str]) -> set[str]:
    """Return TOKENS_LIMIT tokens, the same from the same set.

    Which, depends on all of them: no spammer can write words that crowd out his others.
    """
    from hashlib import blake2b

    ordered = sorted(tokens)
    key = blake2b("\n".join(ordered).encode("utf-8", "replace"), digest_size=16).digest()

    def draw(token: str) -> bytes:
        return blake2b(token.encode("utf-8", "replace"), digest_size=8, key=key).digest()

    return set(sorted(ordered, key=draw)[:TOKENS_LIMIT])


def _visible_text(part: Part, tokens: set[str]) -> tuple[str, list[str] | None]:
    """Return a part's text as a reader sees it, and of HTML the targets of its links.

    Adds the tokens of its links and tricks.
    """
    text = part.text
    targets = None
    if (is_html := part.content_type == "text/html") or text[:201].lstrip().startswith("<"):
        # Its patterns take 2 ms to compile: one mail of plain text goes without them.
        from nbspam.tokens.html import html_text, looks_like_html

        if is_html or looks_like_html(text):
            text, targets, tricks = html_text(text)
            tokens |= tricks
            for link in set(targets):
                add_target(link.lower(), tokens)
    if has_tricks(text):
        text, tricks = undo_tricks(text)
        tokens |= tricks
    return text, targets


def add_target(link: str, tokens: set[str]) -> None:
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
