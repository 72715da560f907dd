"""HTML to the text a reader sees, with a token for each way of hiding text from him.

One pattern over the whole text: the standard library's html.parser takes 25 times as long (0.8 s
against 0.03 s for the 6.6 MB of HTML in the SpamAssassin corpus), and spam's HTML is seldom valid.
"""

import itertools
import re
from typing import NamedTuple

from nbspam.patterns import lazy_pattern
from nbspam.tokens.memo import Memo

# A comment, style or script that never closes goes on to the end, as in browsers; so the search for
# its end is made once.  A quoted part of a tag is bounded: an unclosed quote costs its bound
# and not the rest.
_TAG = re.compile(
    r"(<!--.*?(?:-->|\Z)"
    r"|<(?P<raw>style|script)\b.*?(?:</(?P=raw)\s*>|\Z)"
    r"|<[!?][^>]{0,2000}>?"
    r"|</?[a-z][a-z0-9]{0,15}\b(?:[^<>\"']+|\"[^\"]{0,2000}\"|'[^']{0,2000}'|[\"']){0,200}>?)",
    re.IGNORECASE | re.DOTALL,
)
_NAME = re.compile(r"<(?:(style|script)|(/?)([a-z][a-z0-9]{0,15}))\b", re.IGNORECASE)
_LINK = lazy_pattern(
    r"(?:href|src|action|background)\s{0,9}=\s{0,9}[\"']?\s{0,9}([^\s\"'<>]{1,500})", re.IGNORECASE
)
# Tags that a word may go on behind: `v<b>ia</b>gra` is one word to the reader.
_INLINE = frozenset("a abbr b big em font i ins o s small span strong sub sup tt u".split())
_VOID = frozenset("area base br col embed hr img input link meta param source wbr".split())

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
# What makes a slow, careful reading worth while, beside colours too near each other.
_SUSPECT = lazy_pattern(
    r"display\s{0,3}:\s{0,3}none|visibility\s{0,3}:\s{0,3}hidden|opacity\s{0,3}:\s{0,3}0|mso-hide"
    r"|max-height\s{0,3}:\s{0,3}0|font-size\s{0,3}:\s{0,3}(?:0?\.[0-2]|[0-3](?!\d))"
)
_ANY_COLOUR = lazy_pattern(
    r"(bgcolor|background-color|background|color)\s{0,3}[:=]\s{0,3}[\"']?(#?[a-z0-9]{3,20})"
)
# Of a tag's attributes in lower case.
_HIDDEN = lazy_pattern(
    r"display\s{0,3}:\s{0,3}none|visibility\s{0,3}:\s{0,3}hidden|opacity\s{0,3}:\s{0,3}0(?![.\d])|mso-hide"
    r"|max-height\s{0,3}:\s{0,3}0(?!\d)"
)
_TINY = lazy_pattern(
    r"font-size\s{0,3}:\s{0,3}(?:[0-3](?:\.\d{0,3})?\s?(?:px|pt)|0?\.[0-2]\d{0,3}\s?r?em|0(?![.\d]))"
)
_COLOUR = lazy_pattern(r"(?<![-\w])(?:color|text)\s{0,3}[:=]\s{0,3}[\"']?(#?[a-z0-9]{3,20})")
_RGB = lazy_pattern(
    r"rgb\(\s{0,3}(\d{1,3})\s{0,3},\s{0,3}(\d{1,3})\s{0,3},\s{0,3}(\d{1,3})\s{0,3}\)", re.IGNORECASE
)
_BACKGROUND = lazy_pattern(
    r"(?:bgcolor|background(?:-color)?)\s{0,3}[:=]\s{0,3}[\"']?(#?[a-z0-9]{3,20})"
)
_Colour = tuple[int, int, int]
_BLACK: _Colour = (0, 0, 0)
_WHITE: _Colour = (255, 255, 255)
_NAMED = {
    "white": _WHITE,
    "black": _BLACK,
    "red": (255, 0, 0),
    "yellow": (255, 255, 0),
    "blue": (0, 0, 255),
    "silver": (192, 192, 192),
    "gray": (128, 128, 128),
}
# Colours nearer than this, added over red, green and blue, are one to the eye.
_SAME_COLOUR = 48
# Pairs of a colour and a background beyond which the careful reading is cheaper: half a megabyte of
# colours, no two of them alike, took 90 s.
_COLOUR_PAIRS = 10_000
_DEPTH_LIMIT = 200
# Attributes that change what text looks like; most tags have none of them.
_STYLES = re.compile("style|color|text|background")


class _Style(NamedTuple):
    """What a tag's attributes say of how the text in it looks."""

    colour: _Colour | None
    background: _Colour | None
    hides: bool
    tiny: bool
    sized: bool  # has a size that is not tiny


class _Tag(NamedTuple):
    """A tag, comment, style sheet or script."""

    gap: str  # what a reader sees in its place: a blank or nothing
    name: str = ""  # in lower case; none but tags have one
    closes: bool = False
    opens: bool = False
    links: tuple[str, ...] = ()
    style: _Style | None = None


_BEGINS = lazy_pattern(r"\s{0,200}<(?:html|!doctype|head|body|table|div)\b", re.IGNORECASE)


def looks_like_html(text: str) -> bool:
    """Return whether a text is HTML whatever its type says."""
    return _BEGINS.match(text) is not None


def html_text(source: str) -> tuple[str, list[str], set[str]]:
    """Return the visible text of an HTML source, its links' targets, and tokens for its tricks."""
    links: list[str] = []
    tricks: set[str] = set()
    if "&#" in source and _LETTER_ENTITY.search(source):
        tricks.add("trick:entity")
    lower = source.lower()
    if "rgb(" in lower:
        source = _RGB.sub(_hexadecimal, source)
        lower = source.lower()
    pieces = _TAG.split(source)  # a text, a tag, the name of a sheet or script, a text, and so on
    texts, sources = pieces[::3], pieces[1::3]
    if "<!--" in source and _has_comment_in_word(texts, sources):
        tricks.add("trick:comment")
    tags = list(map(_tags.__getitem__, sources))
    if _SUSPECT.search(lower) or ("color" in lower and _blends_in(lower)):
        text = _visible(texts, tags, links, tricks)
    else:
        links += [link for tag in tags if tag.links for link in tag.links]
        gaps = [*[tag.gap for tag in tags], ""]
        text = "".join(itertools.chain.from_iterable(zip(texts, gaps, strict=True)))
    if "&" in text:
        text = _unescaped(text)
    return text, links, tricks


def _unescaped(text: str) -> str:
    """Return a text with its entities as characters."""
    if len(_COMMON_ENTITY.findall(text)) == text.count("&"):
        return _COMMON_ENTITY.sub(lambda entity: _COMMON_ENTITIES[entity[1]], text)
    import html  # 2 ms: it has a table of 2,231 entities

    # Python turns no number of over 4,300 digits into an integer, and no character has 8.
    return html.unescape(_LONG_ENTITY.sub(" ", text))


def _hexadecimal(colour: re.Match[str]) -> str:
    return "#" + "".join(f"{min(int(part), 255):02x}" for part in colour.groups())


def _blends_in(lower: str) -> bool:
    """Return whether some text's colour is near some background's; white is always one."""
    colours, backgrounds = {_BLACK}, {_WHITE}
    for found in set(_ANY_COLOUR.findall(lower)):
        if rgb := _rgb(found[1]):
            (colours if found[0] == "color" else backgrounds).add(rgb)
    if len(colours) * len(backgrounds) > _COLOUR_PAIRS:
        return True
    return any(_near(colour, behind) for colour in colours for behind in backgrounds)


def _near(a: _Colour, b: _Colour) -> bool:
    return abs(a[0] - b[0]) + abs(a[1] - b[1]) + abs(a[2] - b[2]) < _SAME_COLOUR


def _has_comment_in_word(texts: list[str], sources: list[str]) -> bool:
    """Return whether a comment stands between two letters: `fr<!-- x -->ee`."""
    return any(
        source.startswith("<!--")
        and (texts[i] or (sources[i - 1] if i else ""))[-1:].isalpha()
        and texts[i + 1][:1].isalpha()
        for i, source in enumerate(sources)
    )


def _tag(source: str) -> _Tag:
    found = _NAME.match(source)
    if found is None:
        return _Tag("")
    if found[1]:
        return _Tag(" ")
    name, closes, inside = found[3].lower(), bool(found[2]), source[found.end() :]
    return _Tag(
        "" if name in _INLINE else " ",
        name,
        closes,
        not closes and name not in _VOID,
        tuple(_LINK.findall(inside)) if "=" in inside else (),
        _style(inside.lower()),
    )


# Nine tags in ten were met before: html_text of 619 HTML mails takes 0.29 s in place of 0.38.
_tags = Memo(_tag, limit=1 << 13)


def _style(inside: str) -> _Style | None:
    """Return what a tag's attributes, in lower case, say of the look of its text."""
    if not _STYLES.search(inside):
        return None
    colour, background = _COLOUR.search(inside), _BACKGROUND.search(inside)
    suspect = _SUSPECT.search(inside) is not None  # finds all that the next two do, in one go
    tiny = suspect and _TINY.search(inside) is not None
    return _Style(
        _rgb(colour[1]) if colour else None,
        _rgb(background[1]) if background else None,
        suspect and _HIDDEN.search(inside) is not None,
        tiny,
        not tiny and "font-size" in inside,
    )


def _visible(texts: list[str], tags: list[_Tag], links: list[str], tricks: set[str]) -> str:
    """Return the visible text, following which tags are open and how they are styled.

    texts: what stands before each tag, and after the last one.
    """
    pieces: list[str] = []
    style = _OpenTags()
    for text, tag in zip(texts, [*tags, _Tag("")], strict=True):
        if text:
            if not style.hidden:
                pieces.append(text)
            elif text.strip():
                tricks.add(f"trick:{style.hidden}")
        if tag.gap:
            pieces.append(" ")
        if tag.closes:
            style.close(tag.name)
            continue
        if tag.links:
            links += tag.links
        if tag.opens:
            style.open(tag)
    return "".join(pieces)


class _OpenTags:
    """Which tags are open, and how the text in them looks."""

    def __init__(self) -> None:
        self.hidden = ""  # why the text is hidden; empty if it is not
        self._colour, self._background = _BLACK, _WHITE
        # (tag's name, and what held before it opened)
        self._stack: list[tuple[str, str, _Colour, _Colour]] = []
        self._open: dict[str, int] = {}  # how many of each name are open

    def open(self, tag: _Tag) -> None:
        """Open a tag, unless too many are open."""
        if len(self._stack) == _DEPTH_LIMIT:
            return
        self._stack.append((tag.name, self.hidden, self._colour, self._background))
        self._open[tag.name] = self._open.get(tag.name, 0) + 1
        if style := tag.style:
            self._colour = style.colour or self._colour
            self._background = style.background or self._background
            self.hidden = _hidden(style, self.hidden, self._colour, self._background)

    def close(self, name: str) -> None:
        """Close the innermost tag of a name and all within it; one that is not open is ignored."""
        closed = "" if self._open.get(name) else name
        while closed != name:
            closed, self.hidden, self._colour, self._background = self._stack.pop()
            self._open[closed] -= 1


def _hidden(style: _Style, hidden: str, colour: _Colour, background: _Colour) -> str:
    """Return why text under a tag of this style, within `hidden`, is hidden; "" for not.

    A tag under a tiny one may set a size of its own (newsletters do, for layout).
    """
    if hidden == "hidden" or (hidden == "tiny" and not style.sized):
        return hidden
    if style.hides:
        return "hidden"
    if style.tiny:
        return "tiny"
    return "same-colour" if _near(colour, background) else ""


def _rgb(text: str) -> _Colour | None:
    text = text.lower()
    if text in _NAMED:
        return _NAMED[text]
    digits = text.lstrip("#")
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    try:
        value = int(digits, 16)
    except ValueError:
        return None
    return (value >> 16, value >> 8 & 255, value & 255) if len(digits) == 6 else None
