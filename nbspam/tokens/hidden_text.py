"""Which text of HTML is hidden from its reader.

The tags are followed as a browser does: what each opens, what it ends, and what the styles of all
that are open make of the text.  Where that cannot be known the text counts as seen.
"""

from collections.abc import Collection
from typing import NamedTuple

from nbspam.patterns import lazy_pattern
from nbspam.tokens.colours import BLACK, WHITE, Colour, are_alike, colour, is_clear
from nbspam.tokens.memo import Memo
from nbspam.tokens.styles import (
    Declarations,
    Element,
    StyleSheet,
    background_of,
    declarations,
    hides,
    is_tiny,
)
from nbspam.tokens.tags import Tag

_ATTRIBUTE = lazy_pattern(
    r"([^\s\"'<>/=]{1,40})"
    r"(?:\s{0,9}=\s{0,9}(?:\"([^\"]{0,2000})\"?|'([^']{0,2000})'?|([^\s\"'>]{1,2000})))?"
)
# Attributes that are as good as a declaration.
_PRESENTATION = {"color": "color", "text": "color", "bgcolor": "background-color"}
# Elements that show nothing of the text in them, whatever their style.
_UNSEEN = frozenset({"template", "datalist", "audio", "canvas"})
_SPECIAL = _UNSEEN | {"details", "summary", "select"}

_FEW_WORDS = 5
# Why text is hidden, and the token for it where that has another name.
_INVISIBLE, _CLOSED, _CHOICE = "invisible", "closed", "choice"
# A form's choices are hidden until the reader asks for them, and no trick.
_TRICKS = {_INVISIBLE: "hidden", _CLOSED: "hidden", _CHOICE: ""}
# A tag that opens ends an open one of these names, up to one of those (HTML, 13.2.6.4.7).
_TABLE = frozenset({"table", "td", "th", "caption", "template", "button", "object"})
_LIST = frozenset({"ul", "ol", "menu", *_TABLE})
_ROW = frozenset({"tr", "table", "template"})
_ENDS_P: tuple[Collection[str], Collection[str]] = ("p",), _TABLE
_ENDS = {
    "li": (("li",), _LIST),
    "dt": (("dt", "dd"), _TABLE | {"dl"}),
    "dd": (("dt", "dd"), _TABLE | {"dl"}),
    "td": (("td", "th"), _ROW),
    "th": (("td", "th"), _ROW),
    "tr": (("tr",), ("table", "template")),
    "option": (("option",), ("select", "datalist")),
} | dict.fromkeys(
    "address article aside blockquote center details dialog dir div dl fieldset figure footer form"
    " h1 h2 h3 h4 h5 h6 header hr main menu nav ol p pre section summary table ul".split(),
    _ENDS_P,
)
_TABLE_PARTS = frozenset({"td", "th", "tr", "table", "tbody", "thead", "tfoot", "html", "body"})


class _Attributes(NamedTuple):
    """What a tag's attributes say, as far as they change the look of the text in it."""

    element: Element  # but for its name
    style: Declarations  # of attributes such as `color`
    inline: Declarations  # of the attribute `style`
    is_hidden: bool
    is_open: bool


class _Look(NamedTuple):
    """What styles make of the text in a tag."""

    is_clear: bool
    colour: Colour | None
    background: Colour | None
    hides: bool
    visibility: str | None
    is_tiny: bool | None
    is_open: bool


def _attributes(inside: str) -> _Attributes:
    """Return what the attributes of a tag, in lower case, say."""
    if "&" in inside:
        import html

        inside = html.unescape(inside)
    found: dict[str, str] = {}
    for name, *values in _ATTRIBUTE.findall(inside):
        found.setdefault(name, "".join(values))
    style = {_PRESENTATION[name]: found[name] for name in _PRESENTATION if name in found}
    classes = frozenset(found.get("class", "").split()[:20])
    element = Element("", classes, found.get("id", "").strip(), inside)
    inline = declarations(found["style"]) if "style" in found else {}
    return _Attributes(element, style, inline, "hidden" in found, "open" in found)


_attributes_of = Memo(_attributes, limit=1 << 12)


def _look(attributes: _Attributes, rules: Declarations) -> _Look | None:
    """Return what attributes and the rules of a sheet make of a text; None if nothing."""
    style = attributes.style | rules | attributes.inline
    is_hidden = attributes.is_hidden and style.get("display") in (None, "none")
    if not (style or is_hidden or attributes.is_open):
        return None
    value = style.get("color", "")
    return _Look(
        is_clear(value),
        colour(value) if value else None,
        colour(background_of(style)),
        is_hidden or hides(style),
        style.get("visibility"),
        is_tiny(style),
        attributes.is_open,
    )


_NO_LOOK = _Look(False, None, None, False, None, None, False)
_looks = Memo(lambda inside: _look(_attributes_of[inside], {}), limit=1 << 12)


def visible(
    texts: list[str], tags: list[Tag], sheet: StyleSheet, links: list[str], tricks: set[str]
) -> str:
    """Return the visible text, following which tags are open and how they are styled.

    texts: what stands before each tag, and after the last one.  links, tricks: get the targets of
    the links, and a token for each way of hiding text.
    """
    seen: list[str] = []
    unseen: list[str] = []
    opened = _OpenTags(sheet)
    for text, tag in zip(texts, [*tags, Tag("")], strict=True):
        if not opened.hidden:
            seen.append(text)
        elif text and not text.isspace():
            if trick := _TRICKS.get(opened.hidden, opened.hidden):
                tricks.add(f"trick:{trick}")
            unseen.append(text)
        seen.append(tag.gap)
        links += tag.links
        if tag.has_text:
            tricks.add("trick:hidden")
        opened.follow(tag)
    if sheet.met_limit:
        tricks.add("limit:styles")
    # A mail of which nothing is to be seen is one whose styles we misread.
    text = "".join(seen)
    if unseen and len(text.split()) < _FEW_WORDS < sum(len(piece.split()) for piece in unseen):
        return " ".join([text, *unseen])
    return text


# An open tag, and what held before it: why text was hidden, its colour, its background.
_Open = tuple[str, str, Colour | None, Colour]


class _OpenTags:
    """Which tags are open, and how the text in them looks."""

    def __init__(self, sheet: StyleSheet) -> None:
        self.hidden = ""  # why the text is hidden; empty if it is not
        self._colour: Colour | None = BLACK  # None: clear
        self._background = WHITE
        self._sheet = sheet
        self._stack: list[_Open] = []
        self._elements: list[Element] = []  # of the stack, if there is a sheet
        self._places: dict[str, list[int]] = {}  # of each name in the stack

    def follow(self, tag: Tag) -> None:
        """Open or close a tag."""
        name, stack = tag.name, self._stack
        if tag.opens:
            if name in _ENDS:
                self._close(*_ENDS[name])
            self._places.setdefault(name, []).append(len(stack))
            stack.append((name, self.hidden, self._colour, self._background))
            look = self._ruled(tag) if self._sheet else _looks[tag.inside] if tag.has_look else None
            if look or name in _SPECIAL:
                self._apply(name, look or _NO_LOOK)
        elif tag.closes and (places := self._places.get(name)):
            if places[-1] == len(stack) - 1:  # nine in ten
                del places[-1]
                _, self.hidden, self._colour, self._background = stack.pop()
                del self._elements[len(stack) :]
            else:
                self._close((name,), () if name in _TABLE_PARTS else _TABLE)

    def _ruled(self, tag: Tag) -> _Look | None:
        """Return what attributes and style sheets make of the text in a tag."""
        attributes = _attributes_of[tag.inside]
        element = attributes.element._replace(name=tag.name)
        look = _look(attributes, self._sheet.style_of(element, self._elements))
        self._elements.append(element)
        return look

    def _apply(self, name: str, look: _Look) -> None:
        if look.is_clear:
            self._colour = None
        elif look.colour:
            self._colour = look.colour
        self._background = look.background or self._background
        self.hidden = self._why_hidden(name, look)

    def _why_hidden(self, name: str, look: _Look) -> str:
        """Return why text under a tag of this look is hidden; "" for not.

        What is in a tag may be seen all the same if it has a size, a colour or a visibility of its
        own, as in the layout of newsletters.
        """
        before = self.hidden
        if before in ("hidden", _CHOICE):
            return before
        if look.hides or name in _UNSEEN:
            return "hidden"
        if name == "select":
            return _CHOICE
        if (name == "details" and not look.is_open) or (before == _CLOSED and name != "summary"):
            return _CLOSED
        is_inherited = before == _INVISIBLE and look.visibility is None
        if look.visibility in ("hidden", "collapse") or is_inherited:
            return _INVISIBLE
        if look.is_tiny or (before == "tiny" and look.is_tiny is None):
            return "tiny"
        is_seen = self._colour is not None and not are_alike(self._colour, self._background)
        return "" if is_seen else "same-colour"

    def _close(self, names: Collection[str], bounds: Collection[str]) -> None:
        """Close the innermost tag of some names and all within it.

        Not if there is none, or if it is outside of a tag of the `bounds`.
        """
        place = self._innermost(names)
        if place < 0 or place < self._innermost(bounds):
            return
        for name, *_ in reversed(self._stack[place:]):
            self._places[name].pop()
        _, self.hidden, self._colour, self._background = self._stack[place]
        del self._stack[place:]
        del self._elements[place:]

    def _innermost(self, names: Collection[str]) -> int:
        """Return the place of the innermost tag of some names; -1 if none is open."""
        place = -1
        for name in names:
            if (places := self._places.get(name)) and places[-1] > place:
                place = places[-1]
        return place
