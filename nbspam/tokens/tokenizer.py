"""A message's tokens, from all its parts."""

import re
from collections.abc import Iterable, KeysView

from nbspam.reading.message import Message
from nbspam.reading.mime import Part
from nbspam.tokens.headers import header_tokens
from nbspam.tokens.text import SHORT, link_tokens, short_text_tokens, text_tokens, words_of
from nbspam.tokens.unicode import has_tricks, undo_tricks
from nbspam.tokens.visible_text import VisibleText

# Stored in the model: counts taken by another tokenizer or other rules do not fit these tokens.  To
# be raised when a message would give other tokens, or other times or traits.
NAME = "nbspam"
RULES = 6
# Tokens of one message, far above the mail in the corpora (18,430 in the largest of 10,546): a mail
# of 104,000 different words took 2.9 s to learn, and the model grew by 3 MB.
TOKENS_LIMIT = 20_000
# Words of an alternative that another part says too, from which on it is the same text: of ham's
# they mostly are.  If they never speak for ham whatever they say, 1-ROCA% is .0139 (P2) and .1268
# (P5) in place of .0133 and .1261; if they always do, any ham can stand there.
_SAME = 0.8
_NO_MEDIA_TYPE = re.compile(r"[^\w.+/-]+")


def message_tokens(
    message: Message,
    texts: list[VisibleText] | None = None,
    perhaps_hidden: set[str] | None = None,
) -> KeysView[str]:
    """Return the set of tokens of a message, always in the same order.

    texts: a list to which its texts are added as a reader sees them, if they are needed for more.
    perhaps_hidden: a set to which those are added that only text has that is perhaps hidden.
    """
    is_mail = bool(message.headers)
    has_others = any(part.is_doubtful for part in message.parts)
    # Mail software may put a header's fields in another order, and never a text's words.
    tokens = dict.fromkeys(sorted(header_tokens(message.headers)) if is_mail else ())
    perhaps: dict[str, None] = {}
    others: list[str] = []  # texts that mail programs show another part for
    shown: set[str] = set()
    for part in message.parts:
        if is_mail:
            tokens[f"mime:{_NO_MEDIA_TYPE.sub('', part.content_type[:60])}"] = None
            if part.filename:
                _add_filename(part.filename, tokens)
        if not part.text:
            continue
        text = _visible_text(part, tokens)
        if texts is not None:
            texts.append(text)
        if part.is_doubtful:
            others.append(text.text)
            continue
        if has_others:
            shown.update(text.text.lower().split())
        found = _text_tokens(text.text, is_mail)
        if text.certain is not None:
            perhaps |= found
            found = _text_tokens(text.certain, is_mail) if text.certain else {}
        if len(found) > len(tokens):  # the smaller set goes into the larger
            tokens, found = found, tokens
        tokens |= found
    for other in others:
        words = set(other.lower().split())
        is_same = len(words & shown) >= _SAME * len(words)
        (tokens if is_same else perhaps).update(_text_tokens(other, is_mail))
    only_perhaps = perhaps.keys() - tokens.keys() if perhaps else frozenset()
    tokens |= perhaps
    limits = message.limits
    if len(tokens) > TOKENS_LIMIT:
        tokens, limits = _drawn(tokens), limits | {"tokens"}
    for name in sorted(limits):
        tokens[f"limit:{name}"] = None
    if perhaps_hidden is not None:
        perhaps_hidden |= only_perhaps & tokens.keys()
    return tokens.keys()


def _text_tokens(text: str, is_mail: bool) -> dict[str, None]:
    tokens = text_tokens(text)
    if not is_mail:
        tokens |= dict.fromkeys(short_text_tokens(text.lstrip()[:SHORT]))
    return tokens


def _drawn(tokens: Iterable[str]) -> dict[str, None]:
    """Return TOKENS_LIMIT tokens, the same from the same set.

    Which, depends on all of them: no spammer can write words that crowd out his others.
    """
    from hashlib import blake2b

    ordered = sorted(tokens)
    key = blake2b("\n".join(ordered).encode("utf-8", "replace"), digest_size=16).digest()

    def draw(token: str) -> bytes:
        return blake2b(token.encode("utf-8", "replace"), digest_size=8, key=key).digest()

    return dict.fromkeys(sorted(ordered, key=draw)[:TOKENS_LIMIT])


def _visible_text(part: Part, tokens: dict[str, None]) -> VisibleText:
    """Return a part's text as a reader sees it, and of HTML the targets of its links.

    Adds the tokens of its links and tricks.
    """
    text, certain, targets = part.text, part.text, None
    if part.is_html:
        # Its patterns take 2 ms to compile: one mail of plain text goes without them.
        from nbspam.tokens.html import page_of

        text, certain, targets, found = page_of(text)
        for link in set(targets):
            add_target(link, found)
        tokens |= dict.fromkeys(sorted(found))
    is_certain = certain is text
    if has_tricks(text):
        text, tricks = undo_tricks(text)
        tokens |= dict.fromkeys(sorted(tricks))
    return VisibleText(text, targets, None if is_certain else undo_tricks(certain)[0])


def add_target(link: str, tokens: set[str]) -> None:
    """Add the tokens of the target of an HTML link or image, in lower case."""
    scheme, colon, _ = link.partition(":")
    if link.startswith(("http://", "https://", "//", "www.")):
        link_tokens(link.removeprefix("//"), tokens)
    elif colon and scheme.isalpha() and len(scheme) <= 12:
        tokens.add(f"link:{scheme}")  # mailto, cid, javascript, data


def _add_filename(name: str, tokens: dict[str, None]) -> None:
    """Add the tokens of an attachment's name: its words and its ending."""
    stem, dot, suffix = name.lower().rpartition(".")
    if dot and suffix.isalnum() and len(suffix) <= 8:
        tokens[f"attachment:.{suffix}"] = None
    tokens |= dict.fromkeys([f"attachment:{word}" for word in words_of(stem or suffix)])
