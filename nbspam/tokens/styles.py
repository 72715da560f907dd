"""What styles and colours say of text: that it is seen for certain, hidden for certain, or neither.

No browser is rebuilt here.  Declarations of `style` attributes count, and rules of style sheets
whose selectors are simple: a tag, a class, an id, or a tag with one of these.  Every other
selector, medium or value that could hide a text is one of which nobody but the browser knows what
it does: the text that it may concern is *perhaps* hidden (`html.py`).

Source: CSS 2.1, chapters 4 to 6 and 14; HTML, 15.3.
"""

import colorsys
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from nbspam.patterns import lazy_pattern
from nbspam.reading.message import ATTRIBUTES, END

# Of any length: what a limit cut off a style would be unknown.  Nothing is tried twice.
_ATTRIBUTE = lazy_pattern(
    r"([^\s\"'<>/=]++)(?:\s*+=\s*+(?:\"([^\"]*+)\"?|'([^']*+)'?|([^\s\"'>]++)))?", re.ASCII
)
_COMMON_ENTITIES = dict(
    zip("amp lt gt quot nbsp copy #39 #160".split(), "&<>\"\xa0©'\xa0", strict=True)
)
_COMMON_ENTITY = lazy_pattern(f"&({'|'.join(_COMMON_ENTITIES)});")
_ZEROS = lazy_pattern(r"(&#[xX]?)0++")
_LONG_ENTITY = lazy_pattern(r"&#(?:[0-9]{8}|[xX][0-9a-fA-F]{7})[0-9a-fA-F]{0,100000};?")

Colour = tuple[int, int, int]  # red, green, blue: 0 to 255
BLACK: Colour = (0, 0, 0)
WHITE: Colour = (255, 255, 255)
# Colours nearer than this, added over red, green and blue, are one to the eye.
_SAME = 48
# Alpha below which text is not seen for certain, and perhaps.
_CLEAR, _PALE = 0.1, 0.5
# The names of CSS near white or black, where text is hidden, and those that mails use most.
_NAMED = {
    pair[:-7]: pair[-6:]
    for pair in (
        "aliceblue=f0f8ff antiquewhite=faebd7 aqua=00ffff azure=f0ffff beige=f5f5dc bisque=ffe4c4"
        " black=000000 blanchedalmond=ffebcd blue=0000ff brown=a52a2a cornsilk=fff8dc cyan=00ffff"
        " darkblue=00008b darkgray=a9a9a9 darkgreen=006400 darkgrey=a9a9a9 darkred=8b0000"
        " darkslategray=2f4f4f dimgray=696969 floralwhite=fffaf0 fuchsia=ff00ff gainsboro=dcdcdc"
        " ghostwhite=f8f8ff gold=ffd700 gray=808080 green=008000 grey=808080 honeydew=f0fff0"
        " ivory=fffff0 khaki=f0e68c lavender=e6e6fa lavenderblush=fff0f5 lemonchiffon=fffacd"
        " lightblue=add8e6 lightcyan=e0ffff lightgoldenrodyellow=fafad2 lightgray=d3d3d3"
        " lightgreen=90ee90 lightgrey=d3d3d3 lightyellow=ffffe0 lime=00ff00 linen=faf0e6"
        " magenta=ff00ff maroon=800000 midnightblue=191970 mintcream=f5fffa mistyrose=ffe4e1"
        " moccasin=ffe4b5 navajowhite=ffdead navy=000080 oldlace=fdf5e6 olive=808000 orange=ffa500"
        " papayawhip=ffefd5 pink=ffc0cb purple=800080 red=ff0000 royalblue=4169e1 seashell=fff5ee"
        " silver=c0c0c0 skyblue=87ceeb snow=fffafa steelblue=4682b4 teal=008080 tomato=ff6347"
        " turquoise=40e0d0 violet=ee82ee white=ffffff whitesmoke=f5f5f5 yellow=ffff00"
    ).split()
}
_FUNCTION = lazy_pattern(r"(rgb|hsl)a?\(\s{0,9}([^()]{1,60})\)")
_NUMBERS = re.compile(r"-?\d{0,9}\.?\d{1,9}%?")

Declarations = dict[str, str]
_COMMENT = lazy_pattern(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE = lazy_pattern(r"\\(?:([0-9a-f]{1,6})\s?|(.))", re.DOTALL)

_SMALL = r"0{0,9}[01](?:\.\d{0,9})?(?:px|pt|em|rem|ex|%|vh|vw|in|cm|mm)?|0{0,9}\.\d{1,9}[a-z%]{0,3}"
_FAR = r"-\s{0,3}\d{3}"
_ZERO = r"0{1,9}(?:\.0\d{0,9})?|\.0\d{0,9}"
# Property -> the values that hide for certain, and those that may.
_HIDING: Mapping[str, tuple[re.Pattern[str], re.Pattern[str]]] = {
    name: (lazy_pattern(certain), lazy_pattern(perhaps))
    for names, certain, perhaps in (
        ("display", r"none\b", r".{0,99}\("),
        ("visibility", r"(?!)", r".{0,99}\("),
        ("opacity", rf"(?:{_ZERO})(?![\d.])|\d(?:\.\d{{0,9}})?%", r"0?\.[0-4]|[1-4]\d%|.{0,99}\("),
        ("mso-hide", r"all\b", r".{0,99}\("),
        ("max-height", r"0(?![.\d])", r"(?!)"),
        ("content-visibility", r"hidden\b", r"auto|.{0,99}\("),
        ("clip", r"rect\(\s{0,3}[01](?:px)?[\s,]{1,3}[01](?:px)?[\s,]", r"(?!auto|none)"),
        ("clip-path", r"(?:circle|ellipse)\(\s{0,3}0|inset\(\s{0,3}(?:[5-9]\d|100)%", r"(?!none)"),
        (
            "transform",
            rf".{{0,99}}scale(?:3d|x|y)?\(\s{{0,3}}(?:{_ZERO})\s{{0,3}}[,)]",
            r"(?!none|initial)",
        ),
        ("scale", rf"(?:{_ZERO})(?![\d.])", r"(?!none|1)"),
        ("zoom", rf"(?:{_ZERO})(?![\d.])", r"0|\.|.{0,99}\("),
        ("filter", r"opacity\(\s{0,3}0[^.1-9]", r"(?!none|progid|alpha|drop-shadow)"),
        ("mix-blend-mode", r"(?!)", r"(?!normal)"),
        (
            "mask mask-image -webkit-mask -webkit-mask-image animation animation-name translate",
            r"(?!)",
            r"(?!none)",
        ),
        ("-webkit-text-fill-color", r"transparent", r"(?!inherit|currentcolor)"),
        ("unicode-bidi", r"(?!)", r"bidi-override|isolate-override"),
        ("z-index", r"(?!)", r"-"),
        ("letter-spacing", r"-\d{2}", r"-\.?[1-9]|-0?\.[1-9]\d?em|-0\.[1-9]|.{0,99}\("),
        ("line-height", r"(?!)", rf"(?:{_ZERO})(?:px|pt|em|%)?$|.{{0,99}}\("),
        ("text-indent", _FAR, r"-|.{0,99}\("),
        ("margin-left margin-top", _FAR, r"-\s{0,3}\d{2}|.{0,99}\("),
        ("margin", f".{{0,40}}{_FAR}", r".{0,40}-\s{0,3}\d{2}|.{0,99}\("),
    )
    for name in names.split()
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
    *_SIZES, *_PLACES, "overflow", "overflow-x", "overflow-y", "position", "font-size", "font",
    "color", "background", "background-color", "background-image",
}  # fmt: skip


def unescaped(text: str) -> str:
    """Return a text with its entities as characters."""
    if "&" not in text:
        return text
    if len(_COMMON_ENTITY.findall(text)) == text.count("&"):
        return _COMMON_ENTITY.sub(lambda entity: _COMMON_ENTITIES[entity[1]], text)
    import html  # 2 ms: it has a table of 2,231 entities

    # Python turns no number of over 4,300 digits into an integer, and no character has 8.
    return html.unescape(_LONG_ENTITY.sub(" ", _ZEROS.sub(r"\1", text)))


def attributes(inside: str) -> dict[str, str]:
    """Return the attributes of a tag by their names; inside: what stands in it, in lower case."""
    found: dict[str, str] = {}
    for name, *values in _ATTRIBUTE.findall(inside):
        found.setdefault(name, unescaped("".join(values)))
    return found


def colour(text: str) -> tuple[Colour | None, float]:
    """Return the colour that a text in lower case names, None if it names none.

    And how much of what is behind it covers: 0 to 1.
    """
    text = text.strip()
    if function := _FUNCTION.match(text):
        numbers = _NUMBERS.findall(function[2])
        if len(numbers) < 3:
            return None, 1.0
        a, b, c, *alpha = (float(number.rstrip("%")) for number in numbers[:4])
        strength = alpha[0] / (100 if numbers[3].endswith("%") else 1) if alpha else 1.0
        scale, parts = 2.55 if numbers[0].endswith("%") else 1.0, (a, b, c)
        if function[1] == "hsl":
            lightness, saturation = (min(max(x / 100, 0.0), 1.0) for x in (c, b))
            scale, parts = 255.0, colorsys.hls_to_rgb(a / 360 % 1, lightness, saturation)
        red, green, blue = (round(min(max(scale * part, 0), 255)) for part in parts)
        return (red, green, blue), strength
    digits = _NAMED.get(text, text).lstrip("#")
    if len(digits) in (3, 4):
        digits = "".join(2 * digit for digit in digits)
    strength = 0.0 if text == "transparent" else 1.0
    if text.startswith("#") and len(digits) == 8 and not digits[6:].strip("0123456789abcdef"):
        strength = int(digits[6:], 16) / 255  # #rgba, #rrggbbaa
    try:
        value = int(digits[:6], 16) if len(digits) in (6, 8) else None
    except ValueError:
        value = None
    return None if value is None else (value >> 16, value >> 8 & 255, value & 255), strength


def are_alike(a: Colour, b: Colour) -> bool:
    """Return whether an eye takes two colours for one."""
    return abs(a[0] - b[0]) + abs(a[1] - b[1]) + abs(a[2] - b[2]) < _SAME


def declarations(style: str) -> Declarations:
    """Return the declarations of a style in lower case; of each property the one that holds."""
    found: Declarations = {}
    important: Declarations = {}
    for piece in plain(style).split(";"):
        name, colon, value = piece.partition(":")
        if colon:
            value, mark, _ = value.partition("!")
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


class Look(NamedTuple):
    """What a style makes of the text in an element."""

    hides: bool = False  # whatever its size and colour
    visibility: str | None = None
    is_tiny: bool | None = None  # None: it has no size of its own
    colours: tuple[Colour | None, ...] = ()  # None: one that is not seen; empty: none of its own
    backgrounds: tuple[Colour, ...] = ()
    is_doubted: bool = False  # whether another reading of the style hides the text
    covers: bool = False  # whether it may lie over other text
    shows: bool = False  # whether it may undo what hides the text otherwise


def look(style: Declarations) -> Look:
    """Return what a style makes of text."""
    get = style.get
    hides = is_doubted = False
    for name, value in style.items():
        if name in _HIDING:
            certain, perhaps = _HIDING[name]
            hides = hides or certain.match(value) is not None
            is_doubted = is_doubted or perhaps.match(value) is not None
    if any("hidden" in get(name, "") or "clip" in get(name, "") for name in _OVERFLOWS):
        sizes = [style[name] for name in _SIZES if name in style]
        hides = hides or any(map(_NO_SIZE.match, sizes))
        is_doubted = is_doubted or any("(" in size for size in sizes)
    covers = False
    if get("position") in ("absolute", "fixed", "sticky"):
        places = [style[name] for name in _PLACES if name in style]
        hides = hides or any(map(_OUTSIDE.match, places))
        is_doubted = is_doubted or any("(" in place or "-" in place for place in places)
        covers = any(name in style for name in ("background", "background-color", "z-index"))
    size = get("font-size")
    if size is None and "font" in style:
        found = _FONT_SIZE.match(style["font"])
        size = found[1] if found else None
        is_doubted = is_doubted or (size is None and "(" in style["font"])
    is_doubted = is_doubted or (size is not None and "(" in size)
    value = get("color", "")
    own: tuple[Colour | None, ...] = ()
    if value:
        rgb, strength = colour(value)
        own = (None,) if strength < _CLEAR else () if rgb is None else (rgb,)
        is_doubted = is_doubted or _CLEAR <= strength < _PALE or ("(" in value and rgb is None)
    value = get("background-color") or get("background", "")
    shade = _COLOUR_IN.search(_URL.sub("", value) if "url(" in value else value)
    behind = colour(shade[0])[0] if shade else None
    is_doubted = is_doubted or ("(" in value and behind is None and "url(" not in value)
    return Look(
        hides,
        get("visibility"),
        None if size is None else _TINY.match(size) is not None,
        own,
        () if behind is None else (behind,),
        is_doubted,
        covers,
        not _SHOWING.isdisjoint(style),
    )


_OVERFLOWS = ("overflow", "overflow-x", "overflow-y")
_SHOWING = frozenset({*_HIDING, *_SIZES, *_PLACES, *_OVERFLOWS, "position", "font-size", "font"})
NO_LOOK = Look()
_FEW = 4  # colours that a text may have; of more it is in doubt whether it is seen


def either(looks: Collection[Look]) -> Look:
    """Return the look of what may have any of these looks, or none."""
    colours = {colour for one in looks for colour in one.colours}
    backgrounds = {colour for one in looks for colour in one.backgrounds}
    is_doubted = max(len(colours), len(backgrounds)) > _FEW or any(
        one.hides or one.is_doubted or one.is_tiny or one.visibility not in (None, "visible")
        for one in looks
    )
    return Look(
        colours=tuple(colours)[:_FEW],
        backgrounds=tuple(backgrounds)[:_FEW],
        is_doubted=is_doubted,
        covers=any(one.covers for one in looks),
        shows=any(one.shows for one in looks),
    )


_RULE_PIECE = lazy_pattern(r"[{}]|[^{}]+")
# Sheets that are elsewhere (<link>, @import) are passed over: nearly all mail programs do as well.
_SHEET = lazy_pattern(
    rf"<style({ATTRIBUTES})>?(.*?)(?:</style{END}|\Z)", re.I | re.DOTALL | re.ASCII
)
_QUERY = lazy_pattern(
    r"\s*(?:only\s+)?(?:screen|all)?(?:\s+and\b)?\s*(?:\(\s*min-(?:device-)?width\s*:\s*\d{1,3}(?:\.\d*)?px\s*\)\s*)?$"
)
_OTHER_MEDIUM = lazy_pattern(r"\s*(?:only\s+)?(?:print|speech)\b")
_BRACKETS = lazy_pattern(r"\[[^\[\]]*\]|:[\w-]+")
_COMBINATORS = lazy_pattern(r"[\s>+~]+")
_COMPOUND = lazy_pattern(r"([a-z][\w-]*|\*|)([.#][\w-]+)?")
# Parts of selectors that concern no text as it stands before a reader touches it.
_UNTOUCHED = lazy_pattern(r":(?:hover|active|focus|visited|before|after|selection)\b")
_RULES_LIMIT = 2_000  # of a message that are kept: those that can hide


class StyleSheet:
    """The rules of a message that can hide text, by what they need: a tag, a class, an id."""

    def __init__(self, source: str) -> None:
        """Read the style sheets of an HTML source."""
        # Rank, place and declarations, merged; and what the rules that may apply make of a text.
        self._certain: dict[str, tuple[int, int, Declarations]] = {}
        self._doubtful: dict[str, Look] = {}
        self._important: set[str] = set()  # keys of rules that may beat a tag's own style
        self.met_limit = False
        n = 0
        for inside, sheet in _SHEET.findall(source):
            given = attributes(inside.lower())
            applies_here = _applies(f"@media {given.get('media', '')}", True)
            if given.get("type", "text/css") != "text/css" and applies_here:
                applies_here = False  # to most programs it is no sheet
            # Old mail has its sheets in comments, for browsers that knew none.
            sheet = sheet.lower().replace("<!--", "").replace("-->", "")
            is_plain = "\\" not in sheet  # an escape in a name changes what the rule applies to
            for selectors, style, applies, is_important in _rules_of(plain(sheet), applies_here):
                found = _keys(selectors) if is_plain else [("*", False)]
                n += len(found)
                if n > _RULES_LIMIT:
                    self.met_limit = True
                    return
                for key, is_simple in found:
                    if applies and is_simple:
                        if is_important:
                            self._important.add(key)
                        before = self._certain.get(key, (0, 0, {}))[2]
                        rank = 4 * ("#" in key) + 2 * ("." in key) + (key[0] not in "*.#")
                        self._certain[key] = rank, n, before | style
                    else:
                        before_it = self._doubtful.get(key, NO_LOOK)
                        self._doubtful[key] = either((before_it, look(style)))

    def rules_for(
        self, name: str, classes: Iterable[str], own_id: str
    ) -> tuple[Declarations, bool, Look | None]:
        """Return what the rules declare of an element, whether that may beat its own style.

        And what others may make of it besides.
        """
        keys = ["*", name]
        for one in classes:
            keys += [f".{one}", f"{name}.{one}"]
        if own_id:
            keys += [f"#{own_id}", f"{name}#{own_id}"]
        style: Declarations = {}
        for _, _, declared in sorted(
            (self._certain[key] for key in keys if key in self._certain), key=lambda rule: rule[:2]
        ):
            style |= declared
        doubtful = [self._doubtful[key] for key in keys if key in self._doubtful]
        is_important = not self._important.isdisjoint(keys)
        return style, is_important, either(doubtful) if doubtful else None


# What `rules_for` returns of most elements.
NO_RULES: tuple[Declarations, bool, Look | None] = {}, False, None


def _rules_of(
    sheet: str, applies_here: bool | None
) -> Iterator[tuple[str, Declarations, bool, bool]]:
    """Yield the selectors and declarations of the rules that say what text looks like.

    And whether they apply for certain, as far as their medium and conditions go, and whether one of
    them is `!important`.
    """
    prelude = selectors = ""
    applies: list[bool | None] = []  # of each block that is open, those around it included
    for piece in _RULE_PIECE.findall(sheet):
        if piece == "{":
            outer = applies[-1] if applies else applies_here
            applies.append(outer if outer is None else _applies(prelude, outer))
            selectors, prelude = prelude, ""
        elif piece == "}":
            if applies:
                applies.pop()
            prelude = ""
        else:
            prelude = piece.strip()
            is_certain = applies[-1] if applies else None
            if is_certain is not None and ":" in piece and not selectors.startswith("@"):
                style = {k: v for k, v in declarations(piece).items() if k in _LOOKS}
                if style:
                    yield selectors, style, is_certain, "!" in piece


def _applies(prelude: str, outer: bool) -> bool | None:
    """Return whether what is in a block applies: None if not, False if that is in doubt."""
    if not prelude.startswith("@"):
        return outer
    queries = prelude.removeprefix("@media").split(",")
    if not prelude.startswith("@media") or len(prelude) > 500:
        return False
    if all(_OTHER_MEDIUM.match(query) for query in queries):
        return None
    return outer and any(_QUERY.match(query) is not None for query in queries)


def _keys(selectors: str) -> list[tuple[str, bool]]:
    """Return what each selector needs, and whether that is all that it asks for."""
    if "(" in selectors:
        return [("*", False)]
    keys = []
    for selector in selectors.split(","):
        if _UNTOUCHED.search(selector):
            continue
        selector = selector.strip()
        last = _COMBINATORS.split(_BRACKETS.sub("", selector))[-1]
        name, suffix = _COMPOUND.match(last).groups("")  # type: ignore[union-attr]  # may be empty
        key = name + suffix
        if suffix and name == "*":
            key = suffix
        is_odd = not key or "[" in last or "]" in last or '"' in last
        keys.append(("*", False) if is_odd else (key, key == selector or f"*{key}" == selector))
    return keys
