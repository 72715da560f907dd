"""What is read of a text that is too long to be read whole: all of it a little.

Markup that shows nothing (comments, scripts, blanks, bare tags) goes first, so that no spammer can
push his text beyond a limit with it.  Of what is still too long, pieces are read: the beginning,
the end, and some from between.
"""

import re

from nbspam.patterns import lazy_pattern

SOURCE_LIMIT = 4 << 20  # characters of one text that are looked through for markup
_SHEET_LIMIT = 32 << 10  # characters of the beginning and of the end of a style sheet
_VALUE_LIMIT = 300  # characters of an attribute, the last ones
_PIECES = 16  # from between the beginning and the end
_EDGE = 200  # characters in which a piece may begin later, with a word or a tag

# As browsers have them: a comment; what is behind a tag's name, up to its >; the end of a closing
# tag.  None is tried twice at a place, whatever its length.
COMMENT = r"<!--(?:-?>|.*?(?:--!?>|\Z))"
ATTRIBUTES = r"(?![^\s/>])(?:[^>\"']++|\"[^\"]*+\"|'[^']*+'|[\"'])*+"
END = r"(?![^\s/>])[^>]*+>?"
_UNSEEN = lazy_pattern(
    rf"{COMMENT}|<script{ATTRIBUTES}>?.*?(?:</script{END}|\Z)"
    rf"|(<style{ATTRIBUTES}>?)(.*?)(</style{END}|\Z)",
    re.IGNORECASE | re.DOTALL | re.ASCII,
)
_BARE_INLINE = lazy_pattern(
    r"</?(?!(?:br|p|div|t[dhr]|table|tbody|li|[uo]l|dl|d[dt]|h[1-6]|hr|body|html|head|title|style"
    r"|template|noframes|select|option|details|textarea|center|blockquote|pre|form|section)\b)"
    r"[a-z][a-z0-9]{0,15}\s{0,9}/?>",
    re.IGNORECASE,
)
_BARE_RUN = lazy_pattern(
    r"(?:</?(?:p|div|center|br|span|section)\s{0,9}/?>\s{0,9}){3,}", re.IGNORECASE
)
# One pattern for both would be tried at each word: it took 91 ms for 2.4 MB, these take 42.
_LONG_VALUE = lazy_pattern(r"=\s{0,9}(?:\"([^\"<>]{300,})\"|'([^'<>]{300,})')")
_LONG_LOOK = lazy_pattern(
    r"(style|class)\s{0,9}=\s{0,9}(?:\"([^\"<>]{300,})\"|'([^'<>]{300,})')", re.IGNORECASE
)
# What was cut off may hide text or show it: a declaration of which nobody knows what it does.
_DOUBT = "opacity:calc(0)!important"
_BLANKS = lazy_pattern(r"[\s\u200b-\u200f\u2060]{3,}")
_BLANK_ENTITIES = lazy_pattern(r"(?:&(?:nbsp|zwnj|#160|#8203|#x200b);\s{0,9}){3,}", re.IGNORECASE)


def fitted(texts: list[str], are_html: list[bool], most: int, limits: set[str]) -> list[str]:
    """Return the texts cut to `most` characters in all, the longest first; adds to `limits`."""
    if sum(map(len, texts)) <= most:
        return texts
    texts = [
        _condensed(text, is_html, limits) if len(text) > most // len(texts) else text
        for text, is_html in zip(texts, are_html, strict=True)
    ]
    room = _room(sorted(map(len, texts)), most)
    if any(len(text) > room for text in texts):
        limits.add("text")
    return [sample(text, room) for text in texts]


def _room(sizes: list[int], most: int) -> int:
    """Return how much of each text fits: all of the short ones, and of the others alike.

    sizes: in ascending order.
    """
    for i, size in enumerate(sizes):
        share = most // (len(sizes) - i)
        if size > share:
            return share
        most -= size
    return sizes[-1] if sizes else 0


def _condensed(text: str, is_html: bool, limits: set[str]) -> str:
    """Return a text without what nobody sees of it."""
    if len(text) > SOURCE_LIMIT:
        limits.add("text")
        text = sample(text, SOURCE_LIMIT)
    if is_html:
        text = _UNSEEN.sub(_short_sheet, text)
        text = _BARE_INLINE.sub("", text)
        text = _LONG_LOOK.sub(_short_look, text)
        text = _LONG_VALUE.sub(lambda m: f'="{(m[1] or m[2])[-_VALUE_LIMIT:]}"', text)
        text = _BARE_RUN.sub("<p>", _BLANK_ENTITIES.sub("  ", text))
    return _BLANKS.sub("  ", text)


def _short_look(match: re.Match[str]) -> str:
    kept = (match[2] or match[3])[-_VALUE_LIMIT:] if match[1].lower() == "style" else ""
    return f'style="{kept};{_DOUBT}"'


def _short_sheet(match: re.Match[str]) -> str:
    if match[1] is None:
        return ""
    rules = match[2]
    if len(rules) > 2 * _SHEET_LIMIT:
        cut = f"</style><style>:is(*){{{_DOUBT}}}</style>{match[1]}"
        rules = rules[:_SHEET_LIMIT] + cut + rules[-_SHEET_LIMIT:]
    return f"{match[1]}{rules}{match[3]}"


def sample(text: str, room: int) -> str:
    """Return `room` characters of a text at most: half the beginning, a quarter the end."""
    if len(text) <= room:
        return text
    head, tail = room // 2, room // 4
    size = (room - head - tail) // _PIECES - 1
    pieces = [text[:head]]
    for i in range(_PIECES if size > 0 else 0):
        start = head + (len(text) - head - tail) * i // _PIECES
        pieces.append(_from_word(text[start : start + size]))
    pieces.append(_from_word(text[len(text) - tail :] if tail else ""))
    return "\n".join(pieces)[:room]


def _from_word(piece: str) -> str:
    """Return a piece from the beginning of its first whole tag or word on."""
    tag = piece.find("<", 0, _EDGE)
    return piece[tag:] if tag >= 0 else piece[piece.find(" ", 0, _EDGE) + 1 :]
