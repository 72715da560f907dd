"""Which text of HTML is hidden from its reader.

The tags are followed as a browser does: what each opens, what it ends, and what the styles of all
that are open make of the text.  Where that cannot be known the text counts as seen.
"""

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
    r"(?<![^\s\"'/])(style|class|id|color|text|bgcolor|background|hidden|open)"
    r"(?:\s{0,9}=\s{0,9}(?:\"([^\"]{0,2000})\"?|'([^']{0,2000})'?|([^\s\"'>]{1,2000}))|(?=[\s/>]|$))"
)
# Attributes that are as good as a declaration.
_PRESENTATION = {"color": "color", "text": "color", "bgcolor": "background-color"}
# Elements that show nothing of the text in them, whatever their style.
_UNSEEN = frozenset({"template", "select", "datalist", "audio", "canvas"})
_SPECIAL = _UNSEEN | {"details", "summary"}

_FEW_WORDS = 5
# Why text is hidden, and the token for it where that has another name.
_INVISIBLE, _CLOSED = "invisible", "closed"
_TRICKS = {_INVISIBLE: "hidden", _CLOSED: "hidden"}
# A tag that opens ends an open one of these names, up to one of those (HTML, 13.2.6.4.7).
_TABLE = frozenset({"table", "td", "th", "caption", "template", "button", "object"})
_LIST = frozenset({"ul", "ol", "menu", *_TABLE})
_ROW = frozenset({"tr", "table", "template"})
_ENDS_P = frozenset({"p"}), _TABLE
_ENDS = {
    "li": (frozenset({"li"}), _LIST),
    "dt": (frozenset({"dt", "dd"}), _TABLE | {"dl"}),
    "dd": (frozenset({"dt", "dd"}), _TABLE | {"dl"}),
    "td": (frozenset({"td", "th"}), _ROW),
    "th": (frozenset({"td", "th"}), _ROW),
    "tr": (frozenset({"tr"}), frozenset({"table", "template"})),
    "option": (frozenset({"option"}), frozenset({"select", "datalist"})),
} | dict.fromkeys(
    "address article aside blockquote center details dialog dir div dl fieldset figure footer form"
    " h1 h2 h3 h4 h5 h6 header hr main menu nav ol p pre section summary table ul".split(),
    _ENDS_P,
)
_NOTHING: frozenset[str] = frozenset()
_TABLE_PARTS = frozenset({"td", "th", "tr", "table", "tbody", "thead", "tfoot", "html", "body"})


class _Look(NamedTuple):
    """What a tag's attributes say of the look of the text in it."""

    element: Element
    style: Declarations  # of attributes such as `color`
    inline: Declarations  # of the attribute `style`
    is_hidden: bool
    is_open: bool


def _look(inside: str) -> _Look:
    """Return what a tag's attributes, in lower case, say of the look of its text."""
    if "&" in inside:
        import html

        inside = html.unescape(inside)
    found: dict[str, str] = {}
    for name, *values in _ATTRIBUTE.findall(inside):
        found.setdefault(name, "".join(values))
    style = {_PRESENTATION[name]: found[name] for name in _PRESENTATION if name in found}
    classes = frozenset(found.get("class", "").split()[:20])
    element = Element("", classes, found.get("id", "").strip(), inside)
    inline = declarations(found.get("style", ""))
    return _Look(element, style, inline, "hidden" in found, "open" in found)


_looks = Memo(_look, limit=1 << 12)
_BARE = _look("")


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
            tricks.add(f"trick:{_TRICKS.get(opened.hidden, opened.hidden)}")
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


class _Open(NamedTuple):
    """An open tag, and what held before it."""

    name: str
    hidden: str
    colour: Colour | None
    background: Colour


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
        if tag.closes:
            self._close(frozenset({tag.name}), _NOTHING if tag.name in _TABLE_PARTS else _TABLE)
        elif tag.opens:
            names, bounds = _ENDS.get(tag.name, (_NOTHING, _NOTHING))
            self._close(names, bounds)
            self._open(tag)

    def _open(self, tag: Tag) -> None:
        look = _looks[tag.inside] if len(tag.inside) > 1 else _BARE
        element = look.element._replace(name=tag.name)
        self._places.setdefault(tag.name, []).append(len(self._stack))
        self._stack.append(_Open(tag.name, self.hidden, self._colour, self._background))
        style = look.style
        if self._sheet:
            style = style | self._sheet.style_of(element, self._elements)
            self._elements.append(element)
        style = style | look.inline
        if look.is_hidden and style.get("display") in (None, "none"):
            self.hidden = "hidden"
        elif style or tag.name in _SPECIAL:
            self._apply(tag.name, look, style)

    def _apply(self, name: str, look: _Look, style: Declarations) -> None:
        value = style.get("color", "")
        if is_clear(value):
            self._colour = None
        elif value:
            self._colour = colour(value) or self._colour
        self._background = colour(background_of(style)) or self._background
        self.hidden = self._why_hidden(name, look, style)

    def _why_hidden(self, name: str, look: _Look, style: Declarations) -> str:
        """Return why text under a tag of this style is hidden; "" for not.

        What is in a tag may be seen all the same if it has a size, a colour or a visibility of its
        own, as in the layout of newsletters.
        """
        before = self.hidden
        if before == "hidden" or name in _UNSEEN or hides(style):
            return "hidden"
        if (name == "details" and not look.is_open) or (before == _CLOSED and name != "summary"):
            return _CLOSED
        visibility = style.get("visibility")
        if visibility in ("hidden", "collapse") or (before == _INVISIBLE and visibility is None):
            return _INVISIBLE
        tiny = is_tiny(style)
        if tiny or (before == "tiny" and tiny is None):
            return "tiny"
        is_seen = self._colour is not None and not are_alike(self._colour, self._background)
        return "" if is_seen else "same-colour"

    def _close(self, names: frozenset[str], bounds: frozenset[str]) -> None:
        """Close the innermost tag of some names and all within it.

        Not if there is none, or if it is outside of a tag of the `bounds`.
        """
        place = self._innermost(names)
        if place < 0 or place < self._innermost(bounds):
            return
        for one in reversed(self._stack[place:]):
            self._places[one.name].pop()
        _, self.hidden, self._colour, self._background = self._stack[place]
        del self._stack[place:]
        del self._elements[place:]

    def _innermost(self, names: frozenset[str]) -> int:
        """Return the place of the innermost tag of some names; -1 if none is open."""
        return max((self._places[name][-1] for name in names if self._places.get(name)), default=-1)
