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
_ENOUGH_WORDS = 20  # different ones, of a text that is compared with another
_NO_MEDIA_TYPE = re.compile(r"[^\w.+/-]+")


def message_tokens(message: Message, texts: list[VisibleText] | None = None) -> set[str]:
    """Return the set of tokens of a message.

    texts: a list to which its texts are added as a reader sees them, if they are needed for more.
    """
    is_mail = bool(message.headers)
    tokens: set[str] = header_tokens(message.headers) if is_mail else set()
    if is_mail:
        for part in message.parts:
            tokens.add(f"mime:{_NO_MEDIA_TYPE.sub('', part.content_type[:60])}")
            if part.filename:
                _add_filename(part.filename, tokens)
    for text in _shown_texts(message.parts, tokens):
        if texts is not None:
            texts.append(text)
        found = text_tokens(text.text)
        if len(found) > len(tokens):  # the smaller set goes into the larger
            tokens, found = found, tokens
        tokens |= found
        if not is_mail:
            tokens |= short_text_tokens(text.text.lstrip()[:SHORT])
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


def _shown_texts(parts: list[Part], tokens: set[str]) -> list[VisibleText]:
    """Return the texts that mail programs show; adds the tokens of links and tricks.

    Where a message gives its text as HTML too, its plain text is not shown.  Nearly always it is
    the same text, and is read; if it is another one, it is there to mislead.
    """
    shown = [(part, _visible_text(part, tokens)) for part in parts if part.text]
    pages = {part.choice: text for part, text in shown if text.targets is not None and part.choice}
    if not pages or len(shown) < 2:
        return [text for _, text in shown]
    texts = []
    for part, text in shown:
        page = pages.get(part.choice)
        if page and text.targets is None and _is_another(text.text, page.text):
            tokens.add("trick:alternative")
        else:
            texts.append(text)
    return texts


def _is_another(plain: str, page: str) -> bool:
    """Return whether a plain text is not that of the page beside it."""
    words, shown = set(plain.lower().split()), set(page.lower().split())
    enough = min(len(words), len(shown)) >= _ENOUGH_WORDS
    return enough and 2 * len(words & shown) < len(words)


def _visible_text(part: Part, tokens: set[str]) -> VisibleText:
    """Return a part's text as a reader sees it, and of HTML the targets of its links.

    Adds the tokens of its links and tricks.
    """
    text = part.text
    targets = None
    if part.is_html:
        # Its patterns take 2 ms to compile: one mail of plain text goes without them.
        from nbspam.tokens.html import html_text

        text, targets, tricks = html_text(text)
        tokens |= tricks
        for link in set(targets):
            add_target(link.lower(), tokens)
    if has_tricks(text):
        text, tricks = undo_tricks(text)
        tokens |= tricks
    return VisibleText(text, targets)


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
