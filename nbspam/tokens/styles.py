"""Styles and colours: whether they leave text visible for certain, hide it for certain, or neither.

This is not a browser.  Text is seen for certain if every declaration that applies to it is in a
table of harmless properties and values, and if it is legible by what adds up along nesting: the
size of its letters, its opacity, the room in its line.  Few declarations hide text for certain.
All others, and rules with complex selectors or media, are doubtful: the text that they apply to is
*perhaps* hidden (`html.py`).

The reader is assumed to have a light screen and a window of `_WINDOW`.  Rules for telephones, dark
screens or printers hide nothing from this reader.

Source: CSS 2.1, chapters 4 to 6 and 14; HTML, 15.3.
"""

import colorsys
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from nbspam.patterns import lazy_pattern
from nbspam.reading.message import ATTRIBUTES, END
from nbspam.tokens.text import Memo

# Of any length, since a limit would cut off part of a style.  No character is matched twice.
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
LINK: Colour = (0, 0, 238)
# Colours nearer than this, added over red, green and blue, are one to the eye; perhaps they are.
SAME, FAINT = 48, 160
# A colour and how much of what is behind it covers; None: none of its own.
Paint = tuple[Colour, float] | None
Pair = tuple[Paint, Paint]  # of letters, and of what is behind them
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
_HEX = lazy_pattern(r"(?:[0-9a-f]{2}){3,4}\Z")
_NUMBERS = re.compile(r"-?\d{0,9}\.?\d{1,9}%?")

Declarations = dict[str, str]
_COMMENT = lazy_pattern(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE = lazy_pattern(r"\\(?:([0-9a-f]{1,6})\s?|(.))", re.DOTALL)

# Pixels of a unit.  Lines have 1,000, boxes in them 600, letters 16.
_UNITS = {
    "px": 1.0, "pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78, "em": 16.0, "rem": 16.0,
    "ex": 8.0, "ch": 8.0, "%": 6.0, "vw": 10.0, "vh": 10.0, "vmin": 10.0, "vmax": 10.0,
}  # fmt: skip
_OF_LETTERS = _UNITS | {"": 16.0, "%": 0.16}
_SHARES = {"": 1.0, "%": 0.01}
_LENGTH = lazy_pattern(r"([-+]?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}))([a-z]{0,4}|%)\Z")
_FAR = 2_000.0  # pixels: text beyond is out of sight
_SIDE = r"(?:-(?:left|right|top|bottom))?"
_LINE = r"none hidden solid dashed dotted double groove ridge inset outset thin medium thick"
# Properties, and their values that hide no text: words (*: all, #: colours), lengths in pixels.
# All other values and properties are doubtful.
_HARMLESS = [
    (re.compile(names), frozenset(words.replace("_", " ") for words in values.split()), *ends)
    for names, values, *ends in (
        (
            r"font-(?:family|weight|style|stretch|variant)\Z|(?:-[a-z]+-)?(?:text-(?:align|decoration"
            r"|transform|rendering|overflow|underline)|overflow|word-(?:wrap|break)|line-break|hyphens"
            r"|float\Z|clear\Z|direction|box-sizing|table-layout|empty-cells|caption-side|cursor"
            rf"|border(?:-collapse|-(?:top-|bottom-)?(?:left-|right-)?radius|{_SIDE}-(?:color|style))"
            r"|list-style|background-(?:repeat|position|size|attachment)|object-fit|page-break|orphans"
            r"|break-inside|widows|user-select|pointer-events|transition|(?:osx-)?font-smoothing"
            r"|interpolation-mode|tap-highlight-color|tab-interval|v?align\Z|appearance)|mso-(?!hide)|-premailer-|--",
            "*", 1, 0,
        ),
        # `look` evaluates these.
        (r"(?:font|font-size|color|background|background-color|opacity)\Z", "*", 1, 0),
        (rf"padding{_SIDE}\Z", "", 0, 600),
        (rf"margin{_SIDE}\Z", "auto", 0, 600),
        (rf"border{_SIDE}(?:-width)?\Z", f"# {_LINE} transparent currentcolor", 0, 50),
        (r"(?:text-indent|border-spacing)\Z", "", 0, 100),
        (r"(?:left|right|top|bottom)\Z", "auto", -5, 5),
        (r"(?:(?:max-)?width|min-width|min-height)\Z", "auto none fit-content", 0, _FAR),
        (r"(?:max-)?height\Z", "auto none 100%", 1, 0),
        (r"vertical-align\Z", "top middle bottom baseline sub super text-top text-bottom", -20, 20),
        (r"(?:letter|word)-spacing\Z", "normal", -1, 20),
        (r"line-height\Z", "normal", 8, 400),
        (r"z-index\Z", "auto", 0, 1e9),
        (r"visibility\Z", "visible hidden collapse", 1, 0),
        (
            r"display\Z",
            "none block inline inline-block inline-table list-item table table-row table-cell"
            " table-caption table-row-group table-header-group table-footer-group", 1, 0,
        ),
        (r"position\Z", "static relative", 1, 0),
        (r"white-space\Z", "normal nowrap pre-wrap pre-line break-spaces", 1, 0),
        (r"(?:(?:-[a-z]+-)?text-size-adjust|zoom)\Z", "none auto normal 1 100%", 1, 0),
        (r"(?:outline|(?:text|box)-shadow|background-image|transform|filter)\Z", "none", 0, 0),
        (r"(?:-webkit-|-moz-)?box-shadow\Z", "# inset none", -20, 50),
        (r"(?:supported-)?color-schemes?\Z", "light light_dark dark_light only_light", 1, 0),
        (r"(?:background-clip|unicode-bidi|clip)\Z", "border-box padding-box normal auto", 1, 0),
        (r"\Z", "*", 1, 0),
    )
]  # fmt: skip
_INHERITED = frozenset({"", "inherit", "initial", "unset", "revert"})
# What may stand in brackets and quotes in a harmless value, and the signs that may not without.
_QUOTED = lazy_pattern(r"\"[^\"]*\"|'[^']*'|(?:rgb|hsl)a?\([^()\"']*\)")
_BRACKET = lazy_pattern(r"[\"'()\[\]{}\\@]")
_SHORTHAND = lazy_pattern(r"padding|margin|border|box-shadow")
# Values of these that are not harmless move a box, which may cover other text.
_MOVING = lazy_pattern(
    r"margin|left|right|top|bottom|position|inset|trans|scale|rotate|zoom|offset|grid|order|all\Z"
    r"|border|outline|box-shadow|animation|float|perspective"
)
_PAINTING = lazy_pattern(r"background|border(?!-(?:collapse|spacing))|outline|box-shadow")
# Properties that narrow a line, on one side or on both.
_INDENT = lazy_pattern(r"(?:padding|margin|border|text-indent)(-left|-right)?(?:-width)?\Z")
_SHOWING = frozenset("display mso-hide max-height height visibility opacity font font-size".split())
_LETTERS = {"x-small": 10.0, "small": 13.0, "medium": 16.0, "large": 18.0, "initial": 16.0}
_RELATIVE = {"smaller": 0.83, "larger": 1.2, "inherit": 1.0, "unset": 1.0, "": 1.0}
_FONT = lazy_pattern(r"(?:(?:[a-z-]++|[1-9]00) )*+([\d.]++(?:[a-z]++|%)?)(?: ?/ ?(\S++))?(?: |\Z)")
_FUNCTION_CALL = lazy_pattern(r"(?:rgb|hsl)a?\([^()]*\)")
_NO_COLOURS = _INHERITED | frozenset(
    "none no-repeat repeat repeat-x repeat-y center left right top bottom scroll fixed".split()
)
_OWN_COLOURS = frozenset({"", "inherit", "currentcolor", "unset"})


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
    values_of: dict[str, str] = {}
    for name, in_double, in_single, bare in _ATTRIBUTE.findall(inside):
        values_of.setdefault(name, unescaped(in_double or in_single or bare))
    return values_of


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
    digits = _NAMED.get(text, text).removeprefix("#")
    if len(digits) in (3, 4):
        digits = "".join(2 * digit for digit in digits)
    if _HEX.match(digits) is None:
        return None, 0.0 if text == "transparent" else 1.0
    red, green, blue, cover = bytes.fromhex(f"{digits}ff"[:8])
    return (red, green, blue), cover / 255


def declarations(style: str) -> Declarations:
    """Return the declarations of a style in lower case; of each property the one that holds."""
    normal: Declarations = {}
    important: Declarations = {}
    for piece in plain(style).split(";"):
        name, colon, value = piece.partition(":")
        if colon:
            value, mark, word = value.partition("!")
            if mark and word.strip() != "important":  # a browser passes it over
                value += mark
            (important if mark else normal)[name.strip()] = value.strip()
    return normal | important


def plain(style: str) -> str:
    """Return a style in lower case without comments and escapes."""
    if "/*" in style:
        style = _COMMENT.sub(" ", style)  # within a word it makes two
    return _ESCAPE.sub(_unescaped, style).lower() if "\\" in style else style


def _unescaped(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[2]
    number = int(escape[1], 16)
    return chr(number) if number < 0xD800 else "\ufffd"


class Look(NamedTuple):
    """The effect of a style on the text in an element."""

    hides: bool = False  # whatever its size and colour
    visibility: str | None = None
    size: tuple[float, float] | None = None  # of letters: pixels, multiple of those around it
    opacity: float = 1.0
    pairs: tuple[Pair, ...] = ((None, None),)  # the colours that it may have
    indent: float = 0.0  # pixels that are empty beside it
    is_short: bool = False  # whether it is of a height that its text may be too much for
    is_unbroken: bool | None = None  # whether its lines are as long as they are written
    gap: str | None = None  # what is before and behind it; None: what its name says
    is_doubted: bool = False  # whether another reading of the style hides the text
    moves: bool = False  # whether it may lie over other text, or lead out of sight
    paints: bool = False  # whether what lies under it is not seen
    shows: bool = False  # whether it may undo what hides the text otherwise


def _pixels(length: str, units: Mapping[str, float] = _UNITS) -> float:
    """Return a length in pixels; not a number if it is none."""
    match = _LENGTH.match(length)
    number = float(match[1]) if match else math.nan
    return number * units.get(match[2], math.nan) if match and number else number


def _harmless(declaration: str) -> bool:
    """Return whether a declaration, `name:value`, by itself hides no text."""
    name, _, value = declaration.partition(":")
    units = {"line-height": _OF_LETTERS, "z-index": _SHARES}.get(name, _UNITS)
    rest = _QUOTED.sub("", value)
    parts = rest.split()
    has_parts = len(parts) == 1 or (1 < len(parts) < 5 and _SHORTHAND.match(name))
    for names, words, least, most in _HARMLESS:
        if names.match(name) and (
            value in words
            or value in _INHERITED
            or ("*" in words and not _BRACKET.search(rest))
            or (
                has_parts
                and all(
                    least <= _pixels(part, units) <= most
                    or (least <= most and part in words)
                    or ("#" in words and colour(part)[0] is not None)
                    for part in parts
                )
            )
        ):
            return True
    return False


_is_harmless = Memo(_harmless, limit=1 << 13)


def _letters(value: str) -> tuple[float, float] | None:
    """Return the size of letters as `Look` has it; None if it is unknown."""
    if value in _RELATIVE:
        return 0.0, _RELATIVE[value]
    is_relative = value.endswith("%") or (value.endswith("em") and not value.endswith("rem"))
    pixels = _LETTERS.get(value, _pixels(value, _OF_LETTERS if is_relative else _UNITS))
    return None if math.isnan(pixels) else (0.0, pixels / 16) if is_relative else (pixels, 0.0)


def _paint(value: str) -> Paint:
    """Return the paint that a value names; None if none or an unknown one."""
    if value in ("initial", "windowtext"):
        return BLACK, 1.0
    rgb, strength = colour(value)
    return None if rgb is None and strength else (rgb or BLACK, strength)


def look(style: Declarations) -> Look:
    """Return the effect of a style on text."""
    return _look_of[";".join([f"{name}:{value}" for name, value in style.items()])]


def _look(text: str) -> Look:
    """Return the effect of a style, `name:value;name:value`, on text."""
    pairs = [piece.partition(":")[::2] for piece in text.split(";") if text]
    style = dict(pairs)
    get = style.get
    odd = [name for name, value in pairs if not _is_harmless[f"{name}:{value}"]]
    is_doubted = any(name != "height" or "display" in style for name in odd)
    size_text, line = get("font-size"), ""
    if size_text is None and "font" in style:
        font = _FONT.match(" ".join(style["font"].split()))
        size_text, line = (font[1], font[2] or "") if font else (style["font"], "")
    size = None if size_text is None else _letters(size_text)
    opacity = max(_pixels(style["opacity"], _SHARES), 0.0) if "opacity" in style else 1.0
    if math.isnan(opacity):
        opacity, is_doubted = 1.0, True
    letters, behind = _paint(get("color", "")), None
    unknown = letters is None and get("color", "") not in _OWN_COLOURS
    for name in ("background", "background-color"):
        if not (value := get(name)):
            continue
        for word in [*_FUNCTION_CALL.findall(value), *_FUNCTION_CALL.sub(" ", value).split()]:
            if word not in _NO_COLOURS and math.isnan(_pixels(word)):
                paint = _paint(word)
                behind, unknown = paint or behind, unknown or paint is None
    far = [name for name in odd if any(abs(_pixels(part)) > _FAR for part in style[name].split())]
    indent, clips = 0.0, False
    for name, value in style.items():
        clips = clips or (name.startswith("overflow") and value not in ("visible", "auto"))
        if side := _INDENT.match(name):
            is_double = side[1] is None and name != "text-indent"
            indent += max(map(abs, map(_pixels, value.split())), default=0.0) * (1 + is_double)
    if clips:
        room = min(_pixels(get(name, "100%"), _ROOM) for name in ("width", "max-width"))
        clips = not room - indent > 99
    display = get("display", "")
    return Look(
        opacity < 0.1
        or display == "none"
        or get("mso-hide") == "all"
        or get("max-height") in ("0", "0px")
        or get("content-visibility") == "hidden",
        None if get("visibility", "") in _OWN_COLOURS else style["visibility"],
        size,
        opacity,
        ((letters, behind),),
        indent,
        "height" in odd,
        get("white-space") == "nowrap" if "white-space" in style else None,
        None if not display else "" if display.startswith("inline") else " ",
        is_doubted
        or unknown
        or (size_text is not None and size is None)
        or not _is_harmless[f"line-height:{line}"]
        or clips,
        bool(far)
        or any(map(_MOVING.match, odd))
        or ("position" in style and "box-shadow" in style),
        bool(far) or any(map(_PAINTING.match, style)),
        not _SHOWING.isdisjoint(style),
    )


# Of 1,000 mails' 3,593 styles 615 are different.
_look_of = Memo(_look, limit=1 << 12)
NO_LOOK = Look()
_ROOM = _UNITS | {"%": 1.2} | dict.fromkeys(("", "auto", "none"), math.inf)
_FEW = 4  # pairs of colours by rules in doubt; with more a text is in doubt


def laid_over(below: Iterable[Pair], above: Iterable[Pair]) -> tuple[Pair, ...]:
    """Return every pair of colours laid over every other."""
    pairs = [(a or c, _blend(d, *b) if b else d) for c, d in below for a, b in above]
    return tuple(dict.fromkeys(pairs) if len(pairs) > 1 else pairs)


def _blend(below: Paint, rgb: Colour, cover: float) -> Paint:
    if below is None or cover >= 1:
        return rgb, cover
    red, green, blue = (round(a + (b - a) * cover) for a, b in zip(below[0], rgb, strict=True))
    return (red, green, blue), 1.0


def either(looks: Collection[Look]) -> Look:
    """Return the look of text that may have any of these looks, several, or none."""
    pairs = NO_LOOK.pairs
    for look in (*looks, *looks):  # in any order
        if look.pairs != NO_LOOK.pairs and len(pairs) <= _FEW:
            pairs = tuple(dict.fromkeys([*pairs, *laid_over(pairs, look.pairs)]))
    is_doubted = len(pairs) > _FEW or any(
        look.hides
        or look.is_doubted
        or look.opacity < 1
        or (look.size is not None and sum(look.size) < (1 if look.size[1] else 9))
        or look.visibility not in (None, "visible")
        for look in looks
    )
    return Look(
        pairs=NO_LOOK.pairs if is_doubted else pairs,
        indent=max(look.indent for look in looks),
        is_short=any(look.is_short for look in looks),
        is_unbroken=any(look.is_unbroken for look in looks) or None,
        is_doubted=is_doubted,
        moves=any(look.moves for look in looks),
        paints=any(look.paints for look in looks),
        shows=any(look.shows for look in looks),
    )


_RULE_PIECE = lazy_pattern(r"[{}]|[^{}]+")
# Sheets that are elsewhere (<link>, @import) are passed over: nearly all mail programs do as well.
_SHEET = lazy_pattern(
    rf"<style({ATTRIBUTES})>?(.*?)(?:</style{END}|\Z)", re.I | re.DOTALL | re.ASCII
)
# Whether a rule applies: it does, it may, for other readers alone, for none.
_ALWAYS, _PERHAPS, _ELSEWHERE, _NEVER = 3, 2, 1, 0
_WINDOW = 960, 1400  # pixels: how wide the reader's window may be
_WIDTH = lazy_pattern(r"\( ?(min|max)-(?:device-)?width ?: ?(\d{1,5}(?:\.\d{0,5})?)(px|r?em) ?\)\Z")
_SCREENS = frozenset({"", "screen", "all"})
_DARK = lazy_pattern(r"\( ?prefers-color-scheme ?: ?dark ?\)\Z")
_BRACKETS = lazy_pattern(r"\[[^\[\]]*\]|:[\w-]+")
_COMBINATORS = lazy_pattern(r"[\s>+~]+")
_COMPOUND = lazy_pattern(r"([a-z][\w-]*|\*|)([.#][\w-]+)?")
# Parts of selectors that concern no text before a reader touches it, or on dark screens alone.
_UNTOUCHED = lazy_pattern(r":(?:hover|active|focus|visited|before|after|selection)\b|\[data-ogs")
_PRELUDE_LIMIT = 500  # characters of an @media that are read
_KNOWN_SELECTORS = lazy_pattern(
    r"(?:[a-z0-9\s*>+~,._#-]++|:(?:root|link|hover|active|focus|visited|:?(?:before|after)"
    r"|first-child|last-child|:?first-letter|:?first-line|:selection)(?![\w-])|\[[^\[\]]*\])*+"
)
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
            sheet_tag = attributes(inside.lower())
            applies_here = _applies(f"@media {sheet_tag.get('media', '')}", _ALWAYS)
            if sheet_tag.get("type", "text/css") != "text/css":  # to most programs it is no sheet
                applies_here = min(applies_here, _PERHAPS)
            # Old mail has its sheets in comments, for browsers that knew none.
            sheet = sheet.lower().replace("<!--", "").replace("-->", "")
            is_plain = "\\" not in sheet  # an escape in a name changes what the rule applies to
            for selectors, style, applies, is_important in _rules_of(plain(sheet), applies_here):
                keys = _keys(selectors) if is_plain else [("*", False)]
                n += len(keys)
                if n > _RULES_LIMIT:
                    self.met_limit = True
                    return
                for key, is_simple in keys:
                    if applies == _ALWAYS and is_simple:
                        if is_important:
                            self._important.add(key)
                        before = self._certain.get(key, (0, 0, {}))[2]
                        rank = 4 * ("#" in key) + 2 * ("." in key) + (key[0] not in "*.#")
                        self._certain[key] = rank, n, before | style
                    else:
                        made = look(style)
                        if applies == _ELSEWHERE:
                            made = Look(shows=made.shows)
                        self._doubtful[key] = either((self._doubtful.get(key, NO_LOOK), made))

    def rules_for(
        self, name: str, classes: Iterable[str], own_id: str
    ) -> tuple[Declarations, bool, Look | None]:
        """Return the declarations for an element, whether they may override its own style.

        And the look that doubtful rules may give it.
        """
        keys = ["*", name]
        for class_name in classes:
            keys += [f".{class_name}", f"{name}.{class_name}"]
        if own_id:
            keys += [f"#{own_id}", f"{name}#{own_id}"]
        if self._certain.keys().isdisjoint(keys) and self._doubtful.keys().isdisjoint(keys):
            return NO_RULES
        style: Declarations = {}
        certain = (self._certain[key] for key in keys if key in self._certain)
        for _, _, declared in sorted(certain, key=lambda rule: rule[:2]):
            style |= declared
        doubtful = [self._doubtful[key] for key in keys if key in self._doubtful]
        is_important = not self._important.isdisjoint(keys)
        return style, is_important, either(doubtful) if doubtful else None


# The result of `rules_for` for most elements.
NO_RULES: tuple[Declarations, bool, Look | None] = {}, False, None


def _rules_of(sheet: str, applies_here: int) -> Iterator[tuple[str, Declarations, int, bool]]:
    """Yield selectors and declarations of the rules of a sheet.

    And whether they apply, by their medium and conditions, and whether one is `!important`.
    """
    prelude = ""
    blocks = [("", applies_here)]  # what is open: what stands before it, whether it applies
    for piece in _RULE_PIECE.findall(sheet):
        if piece == "{":
            outer, applies = blocks[-1]
            if outer and not outer.startswith("@"):  # a rule in a rule
                applies = min(applies, _PERHAPS)
            blocks.append((prelude, _applies(prelude, applies)))
            prelude = ""
        elif piece == "}":
            del blocks[max(1, len(blocks) - 1) :]
            prelude = ""
        else:
            prelude = _STATEMENTS.sub("", piece).strip()
            selectors, applies = blocks[-1]
            if applies and selectors and ":" in piece and not selectors.startswith("@"):
                yield selectors, declarations(piece), applies, "!" in piece


_STATEMENTS = lazy_pattern(r"\A(?:\s*+@[^;]*+;)++")  # @import, @charset


def _applies(prelude: str, outer: int) -> int:
    """Return whether the rules in a block apply."""
    if not prelude.startswith("@"):
        return outer
    if not prelude.startswith("@media") or len(prelude) > _PRELUDE_LIMIT:
        return min(outer, _PERHAPS)
    queries = " ".join(prelude.removeprefix("@media").split()).split(",")
    parts = (query.strip().removeprefix("only ").split(" and ") for query in queries)
    return min(outer, max(min(map(_feature, query)) for query in parts))


def _feature(feature: str) -> int:
    """Return whether a part of a media query is true."""
    if feature in _SCREENS or feature.isalpha():
        return _ALWAYS if feature in _SCREENS else _NEVER
    width = _WIDTH.match(feature)
    if width is None:
        return _ELSEWHERE if _DARK.match(feature) else _PERHAPS
    edge = float(width[2]) * (1 if width[3] == "px" else 16)
    holds = [edge <= size if width[1] == "min" else edge >= size for size in _WINDOW]
    return _ALWAYS if all(holds) else _PERHAPS if any(holds) else _ELSEWHERE


def _keys(selectors: str) -> list[tuple[str, bool]]:
    """Return the key of each selector, and whether the key is the whole selector.

    A browser ignores the whole list if it does not know one of them.
    """
    if "(" in selectors:
        return [("*", False)]
    keys = []
    for selector in selectors.split(","):
        if _UNTOUCHED.search(selector):
            continue
        selector = selector.strip()
        last = _COMBINATORS.split(_BRACKETS.sub("", selector))[-1]
        name, suffix = _COMPOUND.match(last).groups("")  # type: ignore[union-attr]  # may be empty
        key = "html" if selector == ":root" else name + suffix
        if suffix and name == "*":
            key = suffix
        is_odd = not key or "[" in last or "]" in last or '"' in last
        keys.append(("*", False) if is_odd else (key, selector in (key, f"*{key}", ":root")))
    is_known = _KNOWN_SELECTORS.fullmatch(selectors) is not None
    return keys if is_known else [(key, False) for key, _ in keys]
