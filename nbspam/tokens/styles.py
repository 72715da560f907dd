"""What styles say of text: whether it is hidden, tiny, or of which colour.

Declarations of a `style` attribute, and the rules of style sheets with the selectors that mail
uses: tags, classes, ids and attributes, within others or as their children.  A rule with any other
selector, or for another medium than a screen, is taken for one that does not apply.

Source: CSS 2.1, chapters 4 to 6; near enough for text, at a hundredth of a browser's time.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nbspam.patterns import lazy_pattern

Declarations = dict[str, str]

_DECLARATIONS_LIMIT = 200  # of one style
_RULES_LIMIT = 2_000  # of a message that are kept: those that can hide
_COMMENT = lazy_pattern(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE = lazy_pattern(r"\\(?:([0-9a-f]{1,6})\s?|(.))", re.DOTALL)

_SMALL = r"0{0,9}[01](?:\.\d{0,9})?(?:px|pt|em|rem|ex|%|vh|vw|in|cm|mm)?|0{0,9}\.\d{1,9}[a-z%]{0,3}"
_FAR = r"-\s{0,3}\d{3}"
# Property -> the values that hide.
_HIDING = {
    "display": lazy_pattern(r"none\b"),
    "opacity": lazy_pattern(r"(?:0{1,9}(?:\.0\d{0,9})?|\.0\d{0,9})(?![\d.])|\d(?:\.\d{0,9})?%"),
    "mso-hide": lazy_pattern(r"all\b"),
    "max-height": lazy_pattern(r"0(?![.\d])"),
    "content-visibility": lazy_pattern(r"hidden\b"),
    "clip": lazy_pattern(r"rect\(\s{0,3}[01](?:px)?[\s,]{1,3}[01](?:px)?[\s,]"),
    "clip-path": lazy_pattern(r"(?:circle|ellipse)\(\s{0,3}0|inset\(\s{0,3}(?:[5-9]\d|100)%"),
    "transform": lazy_pattern(r".{0,99}scale(?:3d|x|y)?\(\s{0,3}0{0,9}(?:\.0\d{0,9})?\s{0,3}[,)]"),
    "text-indent": lazy_pattern(_FAR),
    "margin-left": lazy_pattern(_FAR),
    "margin-top": lazy_pattern(_FAR),
    "margin": lazy_pattern(f".{{0,40}}{_FAR}"),
}
_NO_SIZE = lazy_pattern(rf"(?:{_SMALL})\s{{0,9}}$")
_SIZES = ("height", "max-height", "width", "max-width")
_PLACES = ("left", "top", "right", "bottom")
_OUTSIDE = lazy_pattern(_FAR)
_TINY = lazy_pattern(
    r"[0-3](?:\.\d{0,3})?\s?(?:px|pt)|0?\.[0-2]\d{0,3}\s?r?em|0(?![.\d])|\d(?:\.\d{0,3})?%"
)
_FONT_SIZE = lazy_pattern(r"(?:|.{0,99}?\s)((?:\d{0,4}\.?\d{1,4}(?:px|pt|r?em|%)|0)(?=[\s/]))")
_COLOUR_IN = lazy_pattern(r"(?:(?:rgb|hsl)a?\([^()]{1,60}\)|#[0-9a-f]{3,8}|[a-z]{3,20})")
_URL = lazy_pattern(r"url\([^()]*\)?")
# Properties that a rule is kept for.
_LOOKS = frozenset(_HIDING) | {
    "visibility", "height", "width", "max-width", "overflow", "overflow-x", "overflow-y",
    "position", "left", "top", "right", "bottom", "font-size", "font", "color",
    "background", "background-color",
}  # fmt: skip


def declarations(style: str) -> Declarations:
    """Return the declarations of a style in lower case; of each property the one that holds."""
    found: Declarations = {}
    important: Declarations = {}
    for piece in plain(style).split(";", _DECLARATIONS_LIMIT)[:_DECLARATIONS_LIMIT]:
        name, colon, value = piece.partition(":")
        value, mark, _ = value.partition("!")
        if colon:
            (important if mark else found)[name.strip()] = value.strip()
    return found | important


def plain(style: str) -> str:
    """Return a style in lower case without comments and escapes."""
    if "/*" in style:
        style = _COMMENT.sub("", style)
    return _ESCAPE.sub(_unescaped, style).lower() if "\\" in style else style


def _unescaped(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[2]
    number = int(escape[1], 16)
    return chr(number) if number < 0xD800 else "\ufffd"


def hides(style: Declarations) -> bool:
    """Return whether text in this style is not to be seen, whatever its size and colour."""
    if any(_HIDING[name].match(value) for name, value in style.items() if name in _HIDING):
        return True
    if any("hidden" in style.get(name, "") for name in ("overflow", "overflow-x", "overflow-y")):
        return any(_NO_SIZE.match(style[name]) for name in _SIZES if name in style)
    return style.get("position") in ("absolute", "fixed") and any(
        _OUTSIDE.match(style[name]) for name in _PLACES if name in style
    )


def is_tiny(style: Declarations) -> bool | None:
    """Return whether text in this style is too small to be read; None if it has no size."""
    size = style.get("font-size")
    if size is None and "font" in style:
        found = _FONT_SIZE.match(style["font"])
        size = found[1] if found else None
    return None if size is None else _TINY.match(size) is not None


def background_of(style: Declarations) -> str:
    """Return the colour of the background, as it is written; empty if there is none."""
    value = style.get("background-color") or style.get("background", "")
    found = _COLOUR_IN.search(_URL.sub("", value) if "url(" in value else value)
    return found[0] if found else ""


class Element(NamedTuple):
    """A tag as selectors see it."""

    name: str
    classes: frozenset[str]
    id: str
    attributes: str  # as they are written, in lower case


class _Compound(NamedTuple):
    """What a selector says of one element."""

    name: str
    classes: frozenset[str]
    id: str
    attributes: tuple[re.Pattern[str], ...]
    is_child: bool  # of the element that the selector names before

    def matches(self, element: Element) -> bool:
        """Return whether an element is what the selector means."""
        return (
            self.name in ("", element.name)
            and self.classes <= element.classes
            and self.id in ("", element.id)
            and all(attribute.search(element.attributes) for attribute in self.attributes)
        )


class _Rule(NamedTuple):
    compounds: tuple[_Compound, ...]  # the element's own first, then those around it
    style: Declarations
    rank: tuple[int, int, int]  # specificity: ids, classes and attributes, tags
    place: int = 0  # among all rules


_RULE_PIECE = lazy_pattern(r"[{}]|[^{}]+")
_SHEET = lazy_pattern(r"<style\b[^>]{0,500}>(.*?)(?:</style\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_OTHER_MEDIA = lazy_pattern(r"\bprint\b|\bspeech\b|\bmax-|\bprefers-|\borientation\b|\bnot\b")
_SIMPLE = lazy_pattern(r"([a-z][\w-]*|\*|)((?:[.#][\w-]+|\[[^\[\]]{1,99}\])*)$")
_WORD = lazy_pattern(r">|(?:[^\s>\[]|\[[^\[\]]{0,99}\]?)+")
_PIECE = lazy_pattern(r"([.#])([\w-]+)|\[([^\[\]]+)\]")
_ATTRIBUTE = lazy_pattern(r"\s*([\w-]+)\s*(?:([~|^$*]?)=\s*[\"']?([^\"']*)[\"']?\s*)?$")
_NEAREST = 50  # open elements that are looked at for a selector's next part
_WORK_LIMIT = 200_000  # comparisons of elements with selectors


class StyleSheet:
    """The rules of a message that can hide text."""

    def __init__(self, source: str) -> None:
        """Read the style sheets of an HTML source."""
        self._rules: dict[str, list[_Rule]] = {}  # by the id, class or tag that they need
        self._left = _WORK_LIMIT
        n = 0
        for sheet in _SHEET.findall(source):
            # Old mail has its sheets in comments, for browsers that knew none.
            sheet = plain(sheet.lower().replace("<!--", "").replace("-->", ""))
            for rule in _rules_of(sheet):
                if n < _RULES_LIMIT:
                    self._rules.setdefault(_key(rule.compounds[0]), []).append(
                        rule._replace(place=n)
                    )
                    n += 1
        self.met_limit = n == _RULES_LIMIT

    def __bool__(self) -> bool:
        """Return whether there is a rule."""
        return bool(self._rules)

    def style_of(self, element: Element, around: Sequence[Element]) -> Declarations:
        """Return what the rules declare of an element.  around: from the outermost on."""
        keys = [f"#{element.id}", *[f".{name}" for name in element.classes], element.name, "*"]
        found = [
            rule
            for key in keys
            for rule in self._rules.get(key, ())
            if self._applies(rule, element, around)
        ]
        style: Declarations = {}
        for rule in sorted(found, key=lambda rule: (rule.rank, rule.place)):
            style |= rule.style
        return style

    def _applies(self, rule: _Rule, element: Element, around: Sequence[Element]) -> bool:
        self._left -= 1
        if self._left < 0:
            self.met_limit = True
            return False
        own, *others = rule.compounds
        if not own.matches(element):
            return False
        i = len(around)
        is_child = own.is_child
        for compound in others:
            nearest = range(i - 1, max(-1, i - 1 - (1 if is_child else _NEAREST)), -1)
            self._left -= len(nearest)
            place = next((j for j in nearest if compound.matches(around[j])), None)
            if place is None:
                return False
            i, is_child = place, compound.is_child
        return True


def _key(compound: _Compound) -> str:
    if compound.id:
        return f"#{compound.id}"
    if compound.classes:
        return f".{min(compound.classes)}"
    return compound.name or "*"


def _rules_of(sheet: str) -> Iterator[_Rule]:
    """Yield the rules of a sheet for screens that say what text looks like."""
    prelude = ""
    applies: list[bool] = []  # of each block that is open, those around it included
    for piece in _RULE_PIECE.findall(sheet):
        if piece == "{":
            applies.append((not applies or applies[-1]) and _is_for_screens(prelude))
            selectors, prelude = prelude, ""
        elif piece == "}":
            if applies:
                applies.pop()
            prelude = ""
        else:
            prelude = piece.strip()
            if applies and applies[-1] and ":" in piece and not selectors.startswith("@"):
                style = {k: v for k, v in declarations(piece).items() if k in _LOOKS}
                for selector in selectors.split(",", 100) if style else ():
                    compounds = _compounds(selector.strip())
                    if compounds:
                        yield _Rule(compounds, style, _rank(compounds))


def _is_for_screens(prelude: str) -> bool:
    if not prelude.startswith("@"):
        return True
    return prelude.startswith(("@media", "@supports", "@layer")) and not _OTHER_MEDIA.search(
        prelude
    )


def _rank(compounds: Sequence[_Compound]) -> tuple[int, int, int]:
    return (
        sum(bool(one.id) for one in compounds),
        sum(len(one.classes) + len(one.attributes) for one in compounds),
        sum(bool(one.name) for one in compounds),
    )


def _compounds(selector: str) -> tuple[_Compound, ...]:
    """Return the parts of a selector, the last first; empty if it has others than we know."""
    words = _WORD.findall(selector)[:20]
    found: list[_Compound] = []
    is_child = False
    for word in words:
        if word == ">":
            is_child = True
            continue
        simple = _SIMPLE.match(word)
        if not simple:
            return ()
        classes, attributes, own_id = [], [], ""
        for sign, name, attribute in _PIECE.findall(simple[2]):
            if sign == ".":
                classes.append(name)
            elif sign == "#":
                own_id = name
            elif (pattern := _attribute(attribute)) is not None:
                attributes.append(pattern)
            else:
                return ()
        name = "" if simple[1] == "*" else simple[1]
        found.append(_Compound(name, frozenset(classes), own_id, tuple(attributes), is_child))
        is_child = False
    return tuple(reversed(found))


def _attribute(text: str) -> re.Pattern[str] | None:
    """Return a pattern that finds an attribute among those of a tag, as they are written."""
    found = _ATTRIBUTE.match(text)
    if not found:
        return None
    name, sign, value = re.escape(found[1]), found[2], found[3]
    if value is None:
        return re.compile(rf"(?:^|[\s\"']){name}(?:[\s=/>]|$)")
    any_of = r"[^\"'>]{0,200}"
    before = any_of if sign in ("~", "$", "*") else ""
    after = any_of if sign in ("~", "^", "*", "|") else ""
    return re.compile(
        rf"(?:^|[\s\"']){name}\s*=\s*[\"']?{before}{re.escape(value)}{after}[\"'\s/>]?"
    )
