"""HTML to the text that a reader sees, with a token for each way of hiding text.

One pattern over the whole text: the standard library's html.parser takes 25 times as long (0.8 s
against 0.03 s for the 6.6 MB of HTML in the SpamAssassin corpus), and spam's HTML is seldom valid.

The tags are followed as a browser does: what each opens, what it ends, and what the styles of all
that are open make of the text.  Each text is read twice: as the styles say that are known for
certain, and as if all that is in doubt hid it (`styles.py`).  Where the readings differ the text is
perhaps hidden: its words count where they speak for spam, and never for ham.
"""

import re
from collections import defaultdict
from collections.abc import Collection
from functools import lru_cache, partial
from typing import NamedTuple, TypeVar, cast

from nbspam.patterns import lazy_pattern
from nbspam.reading.message import ATTRIBUTES, COMMENT, END
from nbspam.tokens import styles
from nbspam.tokens.styles import NO_LOOK, Declarations, Look, Pair, StyleSheet, either, laid_over
from nbspam.tokens.text import Memo

# Elements whose text is not HTML, and not shown.
RAW = "style|script|title|noframes|noembed|iframe"
_NAME = re.compile(rf"<(?:({RAW})(?![^\s/>])|(/?)([a-z][^\s<>/\"']*+))", re.ASCII)
_LINK = lazy_pattern(
    r"(?:href|src|action|background)\s{0,9}=\s{0,9}[\"']?\s{0,9}([^\s\"'<>]{1,500})"
)
# Tags that a word ends at; it goes on behind all others, and those that no browser knows:
# `v<b>ia</b>g<wbr>ra` is one word to the reader.
_BLOCK = frozenset(
    "address article aside base blockquote body br caption center col colgroup dd "
    "details dialog dir div dl dt embed fieldset figcaption figure footer form frame frameset "
    "h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe img input legend li link main "
    "map menu meta nav noframes noscript object ol optgroup option p param pre script section "
    "select style summary svg table tbody td template textarea tfoot th thead title tr ul "
    "video".split()
)
# Of these the opening tag parts a word, as what they show does, unless they are of no size.
_INLINE = frozenset("br embed hr iframe img input object svg video".split())
_SIZELESS = lazy_pattern(
    r"(?:width|height|font-size)\s{0,9}[=:]\s{0,9}[\"']?\s{0,9}0{0,9}[01]?(?:px|pt)?(?![\d.%a-z])"
    r"|display\s{0,9}:\s{0,9}none|[\s\"'/]hidden(?=[\s=/>])"
)
_VOID = frozenset("area base br col embed hr img input link meta param source wbr".split())
# Attributes that may change the look of a text; classes and ids do with a style sheet only, for
# which the tags of a mail are looked at one by one.
_LOOKS = lazy_pattern(
    r"style|color|text|hidden|open|popover|[\s\"']link|nowrap|background|(?:width|height)\W{1,5}\d{4}"
)
_ALT = lazy_pattern(r"\balt\s{0,9}=\s{0,9}([\"']?)([^\W\d_]{1,99})(?:\1|$)(?=[\s/>])")


class Tag(NamedTuple):
    """A tag, comment, style sheet or script."""

    gap: str  # what a reader sees in its place: a blank or nothing
    name: str = ""  # in lower case; none but tags have one
    closes: bool = False
    opens: bool = False
    links: tuple[str, ...] = ()  # in lower case
    inside: str = ""  # its attributes in lower case
    has_look: bool = False  # whether they may change the look of its text
    has_text: bool = False  # of an element whose text is not HTML, and no title


def _tag(source: str) -> Tag:
    lower = source.lower()
    match = _NAME.match(lower)
    if match is None:
        return Tag("")
    inside = lower[match.end() :]
    if match[1]:
        return Tag(" ", has_text=match[1].startswith(("no", "if")) and bool(inside.strip()))
    name, closes = match[3], bool(match[2])
    is_gap = name in _BLOCK
    if name in _INLINE and is_gap:
        is_gap = (name == "br" or not closes) and _SIZELESS.search(inside) is None
    return Tag(
        " " if is_gap else "",
        name,
        closes,
        not closes and name not in _VOID,
        tuple(_LINK.findall(inside)) if "=" in inside else (),
        inside,
        _LOOKS.search(inside) is not None,
    )


# Nine tags in ten were met before: html_text of 619 HTML mails takes 0.29 s in place of 0.38.
tags = Memo(_tag, limit=1 << 13)

# A comment, style or script that never closes goes on to the end, as in browsers; so the search for
# its end is made once.  A quoted value has any length: with a bound of 2,000 characters, the rest,
# which no program shows, was read as text.  An unclosed quote is passed over.
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
    """The content of an HTML source."""

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
    texts, sources, names = pieces[::3], pieces[1::3], pieces[2::3]
    # A split at once finds whether one follows a letter: few do.
    has_comment = any(piece[-1:].isalpha() for piece in source.split("<!--")[:-1])
    if has_comment and _has_comment_in_word(texts, sources):
        tricks.add("trick:comment")
    # Those of comments and titles are none.
    sheets = [
        tag for tag, raw in zip(sources, names, strict=True) if raw and raw.lower() == "style"
    ]
    sheet = _sheet_of["".join(sheets)] if sheets else None
    text, certain = visible(texts, list(map(tags.__getitem__, sources)), sheet, links, tricks)
    is_certain = certain is text
    text = styles.unescaped(text)
    if is_certain:
        return Page(text, text, links, tricks)
    if 2 * len(certain.split()) <= len(text.split()):
        tricks.add("trick:perhaps-hidden")
    return Page(text, styles.unescaped(certain), links, tricks)


def _has_comment_in_word(texts: list[str], sources: list[str]) -> bool:
    """Return whether a comment stands between two letters: `fr<!-- x -->ee`."""
    return any(
        source.startswith("<!--")
        and (texts[i] or (sources[i - 1] if i else ""))[-1:].isalpha()
        and texts[i + 1][:1].isalpha()
        for i, source in enumerate(sources)
    )


# Attributes that stand for a declaration.
_PRESENTATION = dict(
    pair.split("=")
    for pair in "color=color:{} text=color:{} bgcolor=background-color:{} width=width:{}"
    " height=min-height:{} hidden=display:none popover=display:none nowrap=white-space:nowrap"
    " background=background-image:{}".split()
)
# Elements whose text is never shown, whatever their style, and elements whose text only some
# programs show, or show in part.
_UNSEEN = frozenset({"template", "datalist", "audio", "canvas"})
_SELDOM_SEEN = frozenset(
    "bdo dialog marquee math noscript object progress meter rp svg textarea video".split()
)
# The size of letters in some, in those of what is around them; the pixels that are empty beside it.
_SCALES = {"small": 0.83, "sub": 0.83, "sup": 0.83, "h5": 0.83, "h6": 0.67, "rt": 0.5}
_INDENTS = dict.fromkeys(("blockquote", "ul", "ol", "dd", "menu", "dir"), 40)
_UNBROKEN = frozenset({"nobr", "pre", "xmp", "listing"})
_SPECIAL = _UNSEEN | _SELDOM_SEEN | _UNBROKEN | _SCALES.keys() | _INDENTS.keys()
_SPECIAL |= {"details", "select", "summary"}
# Tags that browsers open again if their parent was closed first.
_FORMATTING = frozenset("a b big code em font i nobr s small strike strong tt u".split())
_FEW_TAGS = 8
_REOPENED, _REOPENED_LIMIT = 8, 1_000  # at once, and of a page

_FEW_WORDS = 5
_FEW_COLOURS = 8  # pairs that a text may have by rules in doubt
# Hidden text that a page begins with is shown in the list of mails, and no trick.
_PREHEADER_LIMIT = 250
_FILLER = lazy_pattern(r"&[#\w]{1,9};|\W")
# Text is seen for certain if its letters have so many pixels, and its line room for so many.
_LEAST_SIZE, _FAIR_SIZE, _MOST_SIZE, _LEAST_ROOM = 4, 6.5, 200, 40
_MOST_CHARACTERS = 300  # in a line that does not break
# Why text is hidden, and the token for it where that has another name.
_INVISIBLE, _CLOSED, _CHOICE, _DOUBT = "invisible", "closed", "choice", "doubt"
_LASTING = frozenset({"hidden", _CHOICE, _DOUBT})  # whatever is inside
# A form's choices are hidden until the reader asks for them, and no trick.
_TRICKS = {_INVISIBLE: "hidden", _CLOSED: "hidden", _CHOICE: ""}
# A tag that opens ends an open one of these names, up to one of those (HTML, 13.2.6.4.7).
_TABLE = frozenset({"table", "td", "th", "caption", "template", "button", "object"})
_LIST = frozenset({"ul", "ol", "menu", *_TABLE})
_ROW = frozenset({"tr", "table", "template"})
_ENDS_P: tuple[tuple[str, ...], frozenset[str]] = ("p",), _TABLE
_ENDS: dict[str, tuple[tuple[str, ...], frozenset[str]]] = {
    "li": (("li",), _LIST),
    "dt": (("dt", "dd"), _TABLE | {"dl"}),
    "dd": (("dt", "dd"), _TABLE | {"dl"}),
    "td": (("td", "th"), _ROW),
    "th": (("td", "th"), _ROW),
    "tr": (("tr",), frozenset({"table", "template"})),
    "option": (("option",), frozenset({"select", "datalist"})),
} | dict.fromkeys(
    "address article aside blockquote center details dialog dir div dl fieldset figure footer form"
    " h1 h2 h3 h4 h5 h6 header hr main menu nav ol p pre section summary table ul".split(),
    _ENDS_P,
)
_CELLS = frozenset({"caption", "col", "colgroup", "tbody", "td", "tfoot", "th", "thead", "tr"})
_TABLE_PARTS = frozenset({"td", "th", "tr", "table", "tbody", "thead", "tfoot", "html", "body"})

_attributes_of = Memo(styles.attributes, limit=1 << 12)
_declarations_of = Memo(styles.declarations, limit=1 << 12)


_CLIPPED = lazy_pattern(r"overflow|width\W{1,5}\d{4}")


class _Element(NamedTuple):
    """The effect of an element on the text in it."""

    look: Look  # as far as it is known
    besides: Look | None  # what it may be besides
    is_open: bool

    # What is remembered of one (`_reading_in`) is found without looking into it: of those that are
    # alike `_only` returns one.
    __hash__, __eq__ = object.__hash__, object.__eq__  # type: ignore[misc]


_PLAIN = _Element(NO_LOOK, None, False)
_Kind = TypeVar("_Kind", bound=tuple[object, ...])
_alike: dict[tuple[object, ...], tuple[object, ...]] = {}


def _only(value: _Kind) -> _Kind:
    """Return the first of the values that are alike."""
    if len(_alike) > 1 << 13:
        _alike.clear()
    return cast("_Kind", _alike.setdefault(tuple(value), value))


def _element(
    inside: str, rules: Declarations, is_important: bool = False, besides: Look | None = None
) -> _Element:
    """Return the element of a tag with these attributes, in lower case, and rules."""
    attributes = _attributes_of[inside]
    inline, is_open = _declarations_of[attributes.get("style", "")], "open" in attributes
    style: Declarations = {}
    for name in attributes.keys() & _PRESENTATION.keys():
        value = attributes[name]
        # A box that does not clip its text is as large as it.  Most programs ask before they fetch
        # a picture; with these in doubt too, P3 has 73 errors and .2587 in place of 66 and .2452.
        if (name == "width" and not _CLIPPED.search(inside)) or (
            name == "background" and not value.startswith(("cid:", "data:"))
        ):
            continue
        value = f"{value}px" if value.isdigit() else value
        style |= _declarations_of[_PRESENTATION[name].format(value)]
    look = styles.look(style | rules | inline)
    if look == NO_LOOK and besides is None and not is_open:
        return _PLAIN
    if is_important and not rules.keys().isdisjoint(inline):
        other = styles.look(style | inline | rules)
        if other != look:
            known = (look, other) if besides is None else (look, other, besides)
            besides = either(known)._replace(shows=True)
    return _only(_Element(look, besides, is_open))


_unruled = Memo(lambda inside: _element(inside, {}), limit=1 << 12)


class _Sheet:
    """The style sheets of a page, and the elements that its tags make by them."""

    def __init__(self, source: str) -> None:
        sheet = StyleSheet(source)
        self.met_limit = sheet.met_limit
        self.elements = Memo(partial(_ruled, sheet), limit=1 << 10)


def _ruled(sheet: StyleSheet, tag: str) -> _Element:
    """Return the element of a tag (its name, a blank, its attributes) by style sheets."""
    name, _, inside = tag.partition(" ")
    attributes = _attributes_of[inside]
    classes = dict.fromkeys(attributes.get("class", "").split())
    rules = sheet.rules_for(name, classes, attributes.get("id", "").strip())
    element = _unruled[inside] if rules == styles.NO_RULES else _element(inside, *rules)
    if "data-ogs" in inside:  # Outlook adds it, and its rules were passed over
        element = element._replace(besides=_IN_DOUBT)
    return element


# Mail programs and senders write the same sheet each time.
_sheet_of = Memo(_Sheet, limit=1 << 4, longest=1 << 14)


def visible(
    texts: list[str], tags: list[Tag], sheet: _Sheet | None, links: list[str], tricks: set[str]
) -> tuple[str, str]:
    """Return the text that is not hidden for certain, and the part of it that is seen for certain.

    texts: the texts before each tag, and after the last one.
    links, tricks: receive the targets of links, and a token for each way of hiding text.
    """
    pieces: list[str] = []
    certain: list[str] = []
    unseen: list[str] = []
    preheader = 0  # characters of hidden text before all other
    line = 0  # characters in a line that does not break
    open_tags = _OpenTags(sheet)
    for i, (text, tag) in enumerate(zip(texts, [*tags, Tag("")], strict=True)):
        sure, doubted, _, _, _, _, _, is_unbroken = open_tags.reading
        if text:  # half of them are empty
            is_blank = text.isspace()
            if is_unbroken:
                line += max(map(len, text.split("\n"))) if open_tags.places["pre"] else len(text)
                doubted = doubted or (_DOUBT if line > _MOST_CHARACTERS else "")
            if not (sure and doubted):
                pieces.append(text)
                if is_blank or not (sure or doubted):
                    certain.append(text)
                if not is_blank:
                    preheader = _PREHEADER_LIMIT
            elif not is_blank:
                preheader += len(_FILLER.sub("", text)) if preheader < _PREHEADER_LIMIT else 1
                if (trick := _TRICKS.get(sure, sure)) and preheader > _PREHEADER_LIMIT:
                    tricks.add(f"trick:{trick}")
                unseen.append(text)
        _, name, _, _, its_links, inside, _, has_text = tag  # quicker than dots
        links += its_links
        if has_text:
            tricks.add("trick:hidden")
        was_gone = sure and open_tags.is_gone
        gap = open_tags.follow(tag)
        # What is not shown parts no word, nor does a cell outside of a table.
        if (
            gap
            and not (was_gone or (open_tags.reading.hidden and open_tags.is_gone))
            and (name not in _CELLS or open_tags.places["table"])
        ):
            if name == "img" and (text[-1:].isalpha() or texts[i + 1][:1].isalpha()):
                alt = _ALT.search(inside)  # shown by programs that show no pictures
                gap = alt[2] if alt else gap
            pieces.append(gap)
            certain.append(gap)
            line = 0
    text = "".join(pieces)
    # Rules that were not read may hide and show anything.
    if sheet is not None and sheet.met_limit:
        tricks.add("limit:styles")
        return " ".join([text, *unseen]), ""
    # If nothing of a mail is visible, its styles were misread.
    if unseen and len(text.split()) < _FEW_WORDS < sum(len(piece.split()) for piece in unseen):
        return " ".join([text, *unseen]), text
    if open_tags.is_covered:
        return text, ""
    return text, text if len(certain) == len(pieces) else "".join(certain)


class _Reading(NamedTuple):
    """How text in the open tags looks."""

    hidden: str = ""  # why it is hidden if nothing in doubt hides it; empty if it is not
    doubted: str = ""  # why if all that is in doubt hides it
    pairs: tuple[Pair, ...] = (
        ((styles.BLACK, 1.0), (styles.WHITE, 1.0)),
    )  # the colours that it may have
    size: float = 16.0  # of its letters, in pixels
    opacity: float = 1.0
    room: float = 1_000.0  # in its line, in pixels
    moves: bool = False  # whether it may lie over other text
    is_unbroken: bool = False  # whether its lines are as long as they are written

    __hash__, __eq__ = object.__hash__, object.__eq__  # type: ignore[misc]

    def within(self, name: str, element: _Element, besides: Look) -> "_Reading":
        """Return how text in one more tag looks.

        besides: its doubtful look.
        Text in a hidden tag may be visible if it has a size, a colour or a visibility of its own,
        as in the layout of newsletters.
        """
        look = element.look
        pixels, times = look.size or (0.0, _SCALES.get(name, 1.0))
        size = pixels + times * self.size
        opacity = self.opacity * look.opacity
        room = self.room - look.indent - besides.indent - _INDENTS.get(name, 0)
        pairs = self.pairs
        if look.pairs != NO_LOOK.pairs:
            pairs = laid_over(pairs, look.pairs)
        if besides.pairs != NO_LOOK.pairs:
            pairs = tuple(dict.fromkeys(pairs + laid_over(pairs, besides.pairs)))
        hidden = _why_hidden(self.hidden, name, element, size)
        may_show = besides.shows and hidden != "" and self.hidden not in _LASTING
        hidden = "" if may_show else hidden
        is_doubted = (
            may_show
            or besides.is_doubted
            or room < _LEAST_ROOM
            or _LEAST_SIZE <= size < _FAIR_SIZE
            or size > _MOST_SIZE
            or len(pairs) > _FEW_COLOURS
            or ((look.is_short or besides.is_short) and name not in _TABLE_PARTS)
        )
        if is_doubted:
            doubted = self.doubted if self.doubted in _LASTING else _DOUBT
        elif self.doubted == self.hidden:  # most tags
            doubted = hidden
        else:
            doubted = _why_hidden(self.doubted, name, element, size)
        is_as_before = pairs is self.pairs and opacity == self.opacity and not self.doubted
        if not is_as_before and not (hidden and doubted):
            shades = [opacity * _contrast(pair) for pair in pairs]
            if doubted != _DOUBT and max(shades) < styles.SAME:  # what is in doubt may be colours
                hidden = "same-colour"
            if min(shades) < styles.FAINT:
                doubted = doubted or "same-colour"
        moves = self.moves or look.moves or besides.moves
        is_unbroken = self.is_unbroken or name in _UNBROKEN
        if look.is_unbroken is not None:
            is_unbroken = look.is_unbroken
        pairs = pairs[:_FEW_COLOURS]
        return _Reading(hidden, doubted, pairs, size, opacity, room, moves, is_unbroken)


def _contrast(pair: Pair) -> float:
    (a, strength), (b, _) = pair  # type: ignore[misc]  # a page has both
    return float(strength * (abs(a[0] - b[0]) + abs(a[1] - b[1]) + abs(a[2] - b[2])))


def _why_hidden(before: str, name: str, element: _Element, size: float) -> str:
    """Return why text in a tag is hidden, whatever its colour; before: why what is around it is.

    size: of its letters.
    """
    look = element.look
    if before in _LASTING:
        return before
    if look.hides or name in _UNSEEN:
        return "hidden"
    if name == "select":
        return _CHOICE
    if (name == "details" and not element.is_open) or (before == _CLOSED and name != "summary"):
        return _CLOSED
    is_inherited = before == _INVISIBLE and look.visibility is None
    if look.visibility in ("hidden", "collapse") or is_inherited:
        return _INVISIBLE
    return "tiny" if size < _LEAST_SIZE else ""


# An open tag: its name, what it makes of the text in it, and what held before it.
_Open = tuple[str, _Element, _Reading]
_IN_DOUBT = Look(is_doubted=True)


def _link_of(value: str) -> _Element:
    """Return what a link is, whose colour an attribute of <body> names."""
    rgb, strength = styles.colour(value)
    paint = (rgb, strength) if rgb else (styles.LINK, 1.0)
    return _Element(NO_LOOK, Look(pairs=((paint, None),)), False)


_DEFAULT_LINK = _link_of("")


@lru_cache(1 << 12)
def _linked(element: _Element, link: _Element) -> _Element:
    """Return an element that may have the colour of a link."""
    looks = [part.besides for part in (element, link) if part.besides is not None]
    return _only(element._replace(besides=either(looks)))


def _covers(moves: bool, element: _Element, is_picture: bool) -> bool:
    """Return whether an element may lie over text, or lead out of sight.

    moves: whether what is around it may.
    """
    return any(
        (moves or look.moves) and not look.hides and (look.paints or is_picture)
        for look in (element.look, element.besides or NO_LOOK)
    )


_ROOT = _Reading()


@lru_cache(1 << 12)
def _reading_in(reading: _Reading, name: str, element: _Element) -> tuple[_Reading, bool]:
    """Return what text looks like in one more tag, and whether it may lie over other text."""
    besides = element.besides or NO_LOOK
    if element.look.is_doubted or (name in _SELDOM_SEEN and not element.is_open):
        besides = besides._replace(is_doubted=True)
    reading = _only(reading.within(name, element, besides))
    return reading, _covers(reading.moves, element, False)


class _OpenTags:
    """The open tags, and how text in them looks by either reading."""

    def __init__(self, sheet: _Sheet | None) -> None:
        self.reading = _ROOT
        self.is_covered = False  # whether something may lie over the text
        self._ruled = sheet.elements if sheet else None
        self._link = _DEFAULT_LINK
        self._stack: list[_Open] = []
        self._n_reopened = 0
        self.places: dict[str, list[int]] = defaultdict(list)  # of each name in the stack

    @property
    def is_gone(self) -> bool:
        """Whether the content of the open tags takes no room, by either reading."""
        return self.reading.hidden == "hidden" and self.reading.doubted in ("hidden", _DOUBT)

    def follow(self, tag: Tag) -> str:
        """Open or close a tag; return the gap that a reader sees in its place."""
        gap, name, closes, opens, _, inside, has_look, _ = tag
        if closes:
            if self._stack and self._stack[-1][0] == name:  # nine in ten
                _, element, self.reading = self._stack.pop()
                self.places[name].pop()
            else:
                bounds = _TABLE if name in _BLOCK or name in _FORMATTING else _BLOCK
                if name in _TABLE_PARTS:
                    bounds = frozenset()
                element = self._close((name,), bounds)
            if name == "html":
                self.reading = self.reading._replace(doubted=_DOUBT)
        elif opens:
            # One or two names: most often none of them is open.
            if (ends := _ENDS.get(name)) and (self.places[ends[0][0]] or self.places[ends[0][-1]]):
                self._close(*ends)
            element = _PLAIN
            if has_look or self._ruled is not None:
                element = self._element(name, inside)
            if name == "a" and "href" in inside and not element.look.pairs[0][0]:
                element = _linked(element, self._link)
            elif name == "body" and "link" in inside:
                self._link = _link_of(_attributes_of[inside].get("link", ""))
            self.places[name].append(len(self._stack))
            self._stack.append((name, element, self.reading))
            if element is not _PLAIN or name in _SPECIAL:
                self._enter(name, element)
        elif name and (has_look or self._ruled is not None or self.reading.moves):
            element = self._element(name, inside)
            if element is not _PLAIN or self.reading.moves:
                self.is_covered |= _covers(self.reading.moves, element, name in _INLINE)
            return "" if element.look.hides else gap
        else:
            return gap
        if element is _PLAIN or element.look.gap is None:  # nine in ten
            return gap
        return element.look.gap

    def _enter(self, name: str, element: _Element) -> None:
        self.reading, covers = _reading_in(self.reading, name, element)
        self.is_covered = self.is_covered or covers

    def _element(self, name: str, inside: str) -> _Element:
        """Return the element of a tag, by its attributes and the style sheets."""
        return _unruled[inside] if self._ruled is None else self._ruled[f"{name} {inside}"]

    def _close(self, names: Collection[str], bounds: frozenset[str]) -> _Element:
        """Close the innermost tag of some names and all tags within it; return its element.

        Nothing is closed if there is none, or if a tag of the `bounds` is further in.
        """
        if not any(map(self.places.get, names)):
            return _PLAIN
        place = self._innermost(names)
        if len(self._stack) - place < _FEW_TAGS:  # so many are quicker to look at than the bounds
            is_bound = not bounds.isdisjoint([tag[0] for tag in self._stack[place + 1 :]])
        else:
            is_bound = place < self._innermost(bounds)
        if is_bound:
            return _PLAIN
        (closed, element, self.reading), *inner = self._stack[place:]
        del self._stack[place:]
        self.places[closed].pop()
        for name, _, _ in inner:
            self.places[name].pop()
        if inner and closed not in _TABLE and closed not in _TABLE_PARTS:
            self._reopen(inner, closed in _FORMATTING)
        return element

    def _reopen(self, inner: list[_Open], are_all: bool) -> None:
        """Open tags again whose parent was closed, as browsers do (HTML, 13.2.4.3)."""
        candidates = [tag for tag in inner if are_all or tag[0] in _FORMATTING]
        reopened = candidates[-_REOPENED:]
        self._n_reopened += len(reopened)
        # A browser opens no more than three that are alike.
        has_more = any(tag[1] is not _PLAIN for tag in candidates[:-_REOPENED])
        self.is_covered |= has_more or self._n_reopened > _REOPENED_LIMIT
        for name, element, _ in reopened:
            self.places[name].append(len(self._stack))
            self._stack.append((name, element, self.reading))
            self._enter(name, element)

    def _innermost(self, names: Collection[str]) -> int:
        """Return the place of the innermost tag of some names; -1 if none is open."""
        open_ones = filter(None, map(self.places.get, names))
        return max([places[-1] for places in open_ones], default=-1)
