"""What styles and colours say of text: that it is seen for certain, hidden for certain, or neither.

No browser is rebuilt here.  Text is seen for certain if every declaration that concerns it is in a
table of harmless properties and values, and if what adds up along nesting (the size of its letters,
its opacity, the room in its line) leaves it legible.  Few declarations hide it for certain.  All
others, and rules whose selectors or media are not simple, are in doubt: the text that they concern
is *perhaps* hidden (`html.py`).

The reader is one with a light screen and a window of `_WINDOW`.  What a sheet declares for
telephones, dark screens and printers alone hides nothing from him.

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
LINK: Colour = (0, 0, 238)
# Colours nearer than this, added over red, green and blue, are one to the eye; perhaps they are.
SAME, FAINT = 48, 160
Paint = (
    tuple[Colour, float] | None
)  # and how much of what is behind it covers; None: none of its own
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
_NUMBERS = re.compile(r"-?\d{0,9}\.?\d{1,9}%?")

Declarations = dict[str, str]
_COMMENT = lazy_pattern(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE = lazy_pattern(r"\\(?:([0-9a-f]{1,6})\s?|(.))", re.DOTALL)

# Pixels of a unit.  Lines have 1,000, boxes in them 600, letters 16.
_UNITS = {
    "px": 1.0, "pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78, "em": 16.0,
    "rem": 16.0, "ex": 8.0, "ch": 8.0, "%": 6.0, "vw": 10.0, "vh": 10.0, "vmin": 10.0, "vmax": 10.0,
}  # fmt: skip
_LETTER_UNITS = _UNITS | {"": 16.0, "%": 0.16}
_SHARES = {"": 1.0, "%": 0.01}
_LENGTH = lazy_pattern(r"([-+]?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}))([a-z]{0,4}|%)\Z")
_FAR = 2_000  # pixels: nobody looks for text beyond
_ANY = (-math.inf, math.inf)
_WORD = (1, 0)  # no length
_INHERITED = frozenset({"", "inherit", "initial", "unset", "revert"})
# Property -> its values that hide no text: words (*: any; #: colours), and lengths in pixels.
_HARMLESS: Mapping[str, tuple[frozenset[str], float, float]] = {
    name: (frozenset(word.replace("_", " ") for word in words.split()) | _INHERITED, least, most)
    for names, words, (least, most) in (
        (
            "font-family font-weight font-style font-stretch font-variant font-feature-settings"
            " text-align text-decoration text-decoration-line text-decoration-style"
            " text-decoration-color text-decoration-thickness text-underline-offset text-transform"
            " text-rendering text-overflow direction word-wrap word-break overflow-wrap hyphens"
            " line-break overflow overflow-x overflow-y float clear box-sizing table-layout"
            " empty-cells caption-side border-collapse cursor list-style list-style-type"
            " list-style-position border-color border-style border-top-color border-right-color"
            " border-bottom-color border-left-color border-top-style border-right-style"
            " border-bottom-style border-left-style border-radius border-top-left-radius"
            " border-top-right-radius border-bottom-left-radius border-bottom-right-radius"
            " background-repeat background-position background-size background-attachment"
            " object-fit page-break-before page-break-after page-break-inside break-inside orphans"
            " widows pointer-events user-select transition font-smoothing osx-font-smoothing"
            " interpolation-mode tap-highlight-color tab-interval align valign font font-size"
            " color background background-color opacity",  # the last six: see `look`
            "*",
            _ANY,
        ),
        ("padding padding-left padding-right padding-top padding-bottom", "", (0, 600)),
        ("margin margin-left margin-right margin-top margin-bottom", "auto", (0, 600)),
        ("left right top bottom", "auto", (-5, 5)),
        ("text-indent border-spacing", "", (0, 100)),
        (
            "border border-left border-right border-top border-bottom border-width"
            " border-left-width border-right-width border-top-width border-bottom-width",
            "# none hidden solid dashed dotted double groove ridge inset outset thin medium thick"
            " transparent currentcolor",
            (0, 50),
        ),
        ("width max-width min-width min-height", "auto none fit-content", (0, _FAR)),
        ("height max-height", "auto none 100%", _WORD),
        (
            "vertical-align",
            "top middle bottom baseline sub super text-top text-bottom",
            (-20, 20),
        ),
        ("letter-spacing word-spacing", "normal", (-1, 20)),
        ("line-height", "normal", (8, 400)),
        ("z-index", "auto", (0, math.inf)),
        ("visibility", "visible hidden collapse", _WORD),
        (
            "display",
            "block inline inline-block inline-table list-item flow-root table table-row table-cell"
            " table-caption table-row-group table-header-group table-footer-group none",
            _WORD,
        ),
        ("position", "static relative", _WORD),
        ("white-space", "normal pre-wrap pre-line break-spaces nowrap", _WORD),
        ("text-size-adjust zoom", "none auto normal 1 100%", _WORD),
        (
            "outline text-shadow background-image clip-path transform filter animation",
            "none",
            (0, 0),
        ),
        ("box-shadow", "# none", (-20, 50)),
        ("background-clip background-origin", "border-box padding-box content-box", _WORD),
        ("color-scheme supported-color-schemes", "light light_dark only_light light_only", _WORD),
        ("unicode-bidi mix-blend-mode clip", "normal embed auto", _WORD),
    )
    for name in names.split()
}
# What hides text for certain.  What makes its box small is in `look`.
_HIDING: Mapping[str, re.Pattern[str]] = {
    "display": lazy_pattern(r"none\Z"),
    "mso-hide": lazy_pattern(r"all\Z"),
    "max-height": lazy_pattern(r"0(?:px)?\Z"),
    "content-visibility": lazy_pattern(r"hidden\Z"),
}
_PREFIX = lazy_pattern(r"-(?:webkit|moz|ms|o|epub)-")
_OFFICE = lazy_pattern(r"mso-(?!hide)")  # no browser knows them
# What may stand in brackets or quotes in a harmless value, and the signs that may not without.
_QUOTED = lazy_pattern(r"\"[^\"]*\"|'[^']*'|(?:rgb|hsl)a?\([^()\"']*\)")
_BRACKET = lazy_pattern(r"[\"'()\[\]{}\\@]")
# Of these the others than the harmless values move a box, which may come to lie over other text.
_MOVING = lazy_pattern(
    r"margin|left|right|top|bottom|position|inset|trans|scale|rotate|zoom|offset|grid|order|all\Z"
    r"|border|outline|box-shadow|animation|float|perspective"
)
_PAINTING = lazy_pattern(r"background|border(?!-(?:collapse|spacing))|outline|box-shadow")
_SIZES = ("height", "max-height", "width", "max-width")
_OVERFLOWS = ("overflow", "overflow-x", "overflow-y")
# Of these one side narrows a line, of those with 2 both do.
_INDENTS = dict.fromkeys(
    "padding-left padding-right margin-left margin-right text-indent border-left border-right"
    " border-left-width border-right-width left".split(),
    1,
) | dict.fromkeys("padding margin border border-width".split(), 2)
_SHOWING = frozenset({*_HIDING, *_SIZES, *_OVERFLOWS, "visibility", "opacity", "font-size", "font"})
# Properties that a rule is kept for whatever their value.
_LOOKS = _SHOWING | _INDENTS.keys() | {"color", "background", "background-color", "position"}
_SHORTHANDS = frozenset(
    "padding margin border border-left border-right border-top border-bottom border-width"
    " border-spacing box-shadow".split()
)
_LETTERS = {
    "xx-small": 9.0, "x-small": 10.0, "small": 13.0, "medium": 16.0, "large": 18.0,
    "x-large": 24.0, "xx-large": 32.0, "initial": 16.0,
}  # fmt: skip
_RELATIVE = {"smaller": 0.83, "larger": 1.2, "inherit": 1.0, "unset": 1.0, "revert": 1.0, "": 1.0}
_SYSTEM_FONTS = frozenset("inherit initial unset caption icon menu message-box".split())
# Words of a background that name no colour.
_NO_COLOURS = _INHERITED | frozenset(
    "none no-repeat repeat repeat-x repeat-y center left right top bottom scroll fixed cover"
    " contain auto".split()
)
_FUNCTION_CALL = lazy_pattern(r"(?:rgb|hsl)a?\([^()]*\)")
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


def are_alike(a: Colour, b: Colour, most: float = SAME) -> bool:
    """Return whether an eye takes two colours for one."""
    return abs(a[0] - b[0]) + abs(a[1] - b[1]) + abs(a[2] - b[2]) < most


def declarations(style: str) -> Declarations:
    """Return the declarations of a style in lower case; of each property the one that holds."""
    found: Declarations = {}
    important: Declarations = {}
    for piece in plain(style).split(";"):
        name, colon, value = piece.partition(":")
        if colon:
            value, mark, word = value.partition("!")
            if mark and word.strip() != "important":
                value += mark + word  # a browser passes it over, and none is harmless
            (important if mark else found)[name.strip()] = value.strip()
    return found | important


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
    """What a style makes of the text in an element."""

    hides: bool = False  # whatever its size and colour
    visibility: str | None = None
    size: tuple[float, float] | None = None  # of letters: pixels, multiple of those around it
    opacity: float = 1.0
    pairs: tuple[Pair, ...] = ((None, None),)  # the colours that it may have
    share: float = 1.0  # of the room in a line that it has
    most: float = math.inf  # pixels that it has at most
    indent: float = 0.0  # pixels that are empty beside it
    is_short: bool = False  # whether it is of a height that its text may be too much for
    is_sizeless: bool = False  # whether a box of it shows nothing
    gap: str | None = None  # what is before and behind it; None: what its name says
    is_doubted: bool = False  # whether another reading of the style hides the text
    moves: bool = False  # whether it may lie over other text
    paints: bool = False  # whether what lies under it is not seen
    is_unbroken: bool | None = None  # whether its lines are as long as they are written
    is_far: bool = False  # whether it may move what follows out of sight
    shows: bool = False  # whether it may undo what hides the text otherwise


def _pixels(length: str, units: Mapping[str, float] = _UNITS) -> float:
    """Return a length in pixels; not a number if it is none."""
    found = _LENGTH.match(length)
    number = float(found[1]) if found else math.nan
    return number * units.get(found[2], math.nan) if found and number else number


def _harmless(declaration: str) -> bool:
    """Return whether a declaration, `name:value`, by itself hides no text."""
    full_name, _, value = declaration.partition(":")
    name = _PREFIX.sub("", full_name)
    if name not in _HARMLESS or (name != full_name and name in _LOOKS):
        return not name or _OFFICE.match(name) is not None
    words, least, most = _HARMLESS[name]
    rest = _QUOTED.sub("", value)
    if value in words or ("*" in words and not _BRACKET.search(rest)):
        return True
    parts = rest.split()
    units = {"line-height": _LETTER_UNITS, "z-index": _SHARES}.get(name, _UNITS)
    return (len(parts) == 1 or (len(parts) < 5 and name in _SHORTHANDS)) and all(
        part in words
        or least <= _pixels(part, units) <= most
        or ("#" in words and colour(part)[0] is not None)
        for part in parts
    )


_is_harmless = Memo(_harmless, limit=1 << 13)


def _letters(value: str) -> tuple[float, float] | None:
    """Return the size of letters as `Look` has it; None if it is unknown."""
    if value in _LETTERS:
        return _LETTERS[value], 0.0
    if value in _RELATIVE:
        return 0.0, _RELATIVE[value]
    if value.endswith(("em", "%")) and not value.endswith("rem"):
        scale = _pixels(value, _LETTER_UNITS) / 16
        return None if math.isnan(scale) else (0.0, scale)
    size = _pixels(value)
    return None if math.isnan(size) else (size, 0.0)


def _font(value: str) -> tuple[float, float] | None:
    """Return the size of letters of a `font`; None if it or the height of its lines is unknown."""
    if value in _SYSTEM_FONTS:
        return 0.0, 1.0
    for word in value.replace(" /", "/").replace("/ ", "/").split():
        size, _, line = word.partition("/")
        if not size.isdigit() or size == "0":
            found = _letters(size)
            if found is not None:
                return found if _is_harmless[f"line-height:{line}"] or found[0] < 4 else None
    return None


def _paint(value: str) -> tuple[Paint, bool]:
    """Return the paint that a value names, and whether it is known."""
    if value in ("initial", "windowtext"):
        return (BLACK, 1.0), True
    rgb, strength = colour(value)
    if rgb is None and strength:
        return None, value in _OWN_COLOURS
    return (rgb or BLACK, strength), True


def look(style: Declarations) -> Look:
    """Return what a style makes of text."""
    get = style.get
    odd = [name for name, value in style.items() if not _is_harmless[f"{name}:{value}"]]
    is_far = moves = False
    for name in odd:
        moves = moves or _MOVING.match(name) is not None
        is_far = is_far or any(abs(_pixels(word)) > _FAR for word in style[name].split())
    is_doubted = any(name != "height" or "display" in style for name in odd)
    size: tuple[float, float] | None = None
    if "font-size" in style or "font" in style:
        size = _letters(style["font-size"]) if "font-size" in style else _font(style["font"])
        is_doubted = is_doubted or size is None
    opacity = 1.0
    if "opacity" in style:
        value = style["opacity"]
        opacity = max(_pixels(value, _SHARES), 0.0)
        if math.isnan(opacity):
            opacity, is_doubted = 1.0, is_doubted or value not in ("", "initial", "unset")
    letters, is_known = _paint(get("color", ""))
    is_doubted = is_doubted or not is_known
    behind: Paint = None
    for name in ("background", "background-color"):
        value = get(name, "")
        for word in [*_FUNCTION_CALL.findall(value), *_FUNCTION_CALL.sub(" ", value).split()]:
            if word not in _NO_COLOURS and math.isnan(_pixels(word)):
                paint, _ = _paint(word)
                behind, is_doubted = paint or behind, is_doubted or paint is None
    share, most = 1.0, math.inf
    for name in ("width", "max-width"):
        if (value := get(name, "")).endswith("%"):
            share = min(share, _pixels(value, _SHARES))
        elif not math.isnan(_pixels(value)):
            most = min(most, _pixels(value))
    clips = any("hidden" in get(name, "") or "clip" in get(name, "") for name in _OVERFLOWS)
    display = get("display", "")
    return Look(
        opacity < 0.1 or any(k in style and _HIDING[k].match(style[k]) for k in _HIDING),
        None if get("visibility", "") in _OWN_COLOURS else style["visibility"],
        size,
        opacity,
        ((letters, behind),),
        share,
        most,
        sum(
            sides * max((abs(_pixels(word)) for word in style[name].split()), default=0.0)
            for name, sides in _INDENTS.items()
            if name in style
        ),
        "height" in odd,
        clips and any(_pixels(style[name]) <= 1 for name in _SIZES if name in style),
        None if not display else "" if display.startswith("inline") else " ",
        is_doubted,
        moves or ("position" in style and get("box-shadow", "none") != "none"),
        any(map(_PAINTING.match, style)),
        get("white-space") == "nowrap" if "white-space" in style else None,
        is_far,
        not _SHOWING.isdisjoint(style),
    )


NO_LOOK = Look()
_FEW = (
    4  # colours that a text may have by rules in doubt; of more it is in doubt whether it is seen
)


def laid_over(below: Iterable[Pair], above: Iterable[Pair]) -> tuple[Pair, ...]:
    """Return every pair of colours laid over every other."""
    pairs = [(a or c, _blend(d, b) if b else d) for c, d in below for a, b in above]
    return tuple(dict.fromkeys(pairs) if len(pairs) > 1 else pairs)


def _blend(below: Paint, above: Paint) -> Paint:
    if above is None or below is None or above[1] >= 1:
        return above or below
    colours = zip(below[0], above[0], strict=True)
    red, green, blue = (round(a + (b - a) * above[1]) for a, b in colours)
    return (red, green, blue), 1.0


def either(looks: Collection[Look]) -> Look:
    """Return the look of what may have any of these looks, several, or none."""
    pairs = NO_LOOK.pairs
    for one in (*looks, *looks):  # in any order
        if one.pairs != NO_LOOK.pairs and len(pairs) <= _FEW:
            pairs = tuple(dict.fromkeys([*pairs, *laid_over(pairs, one.pairs)]))
    is_doubted = len(pairs) > _FEW or any(
        one.hides
        or one.is_doubted
        or one.is_sizeless
        or one.opacity < 1
        or (one.size is not None and sum(one.size) < (1 if one.size[1] else 9))
        or one.visibility not in (None, "visible")
        for one in looks
    )
    return Look(
        pairs=NO_LOOK.pairs if is_doubted else pairs,
        share=min(one.share for one in looks),
        most=min(one.most for one in looks),
        indent=max(one.indent for one in looks),
        is_short=any(one.is_short for one in looks),
        is_doubted=is_doubted,
        moves=any(one.moves for one in looks),
        paints=any(one.paints for one in looks),
        is_far=any(one.is_far for one in looks),
        is_unbroken=any(one.is_unbroken for one in looks) or None,
        shows=any(one.shows for one in looks),
    )


_RULE_PIECE = lazy_pattern(r"[{}]|[^{}]+")
# Sheets that are elsewhere (<link>, @import) are passed over: nearly all mail programs do as well.
_SHEET = lazy_pattern(
    rf"<style({ATTRIBUTES})>?(.*?)(?:</style{END}|\Z)", re.I | re.DOTALL | re.ASCII
)
_WINDOW = 960, 1400  # pixels: how wide the reader's window may be
# Whether a rule applies: it does, it may, for other readers alone, for none.
_ALWAYS, _PERHAPS, _ELSEWHERE, _NEVER = 3, 2, 1, 0
_WIDTH = lazy_pattern(r"\( ?(min|max)-(?:device-)?width ?: ?(\d{1,5}(?:\.\d{0,5})?)(px|r?em) ?\)\Z")
_FEATURES = {"screen": _ALWAYS, "all": _ALWAYS, "": _ALWAYS, "print": _NEVER, "speech": _NEVER}
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
            given = attributes(inside.lower())
            applies_here = _applies(f"@media {given.get('media', '')}", _ALWAYS)
            if given.get("type", "text/css") != "text/css":  # to most programs it is no sheet
                applies_here = min(applies_here, _PERHAPS)
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


def _rules_of(sheet: str, applies_here: int) -> Iterator[tuple[str, Declarations, int, bool]]:
    """Yield the selectors and declarations of the rules that say what text looks like.

    And whether they apply, as far as their medium and conditions go, and whether one of them is
    `!important`.
    """
    prelude = ""
    blocks: list[tuple[str, int]] = [
        ("", applies_here)
    ]  # open ones: before each, whether it applies
    for piece in _RULE_PIECE.findall(sheet):
        if piece == "{":
            blocks.append((prelude, _applies(prelude, blocks[-1][1])))
            if len(blocks) > 2 and not blocks[-2][0].startswith("@"):  # a rule in a rule
                blocks[-1] = prelude, min(blocks[-1][1], _PERHAPS)
            prelude = ""
        elif piece == "}":
            if len(blocks) > 1:
                blocks.pop()
            prelude = ""
        else:
            prelude = piece.strip()
            while prelude.startswith("@") and ";" in prelude:  # @import, @charset
                prelude = prelude.partition(";")[2].strip()
            selectors, applies = blocks[-1]
            if applies and selectors and ":" in piece and not selectors.startswith("@"):
                style = {
                    k: v
                    for k, v in declarations(piece).items()
                    if k in _LOOKS or not _is_harmless[f"{k}:{v}"]
                }
                if style:
                    yield selectors, style, applies, "!" in piece


def _applies(prelude: str, outer: int) -> int:
    """Return whether what is in a block applies."""
    if not prelude.startswith("@"):
        return outer
    if not prelude.startswith("@media") or len(prelude) > _PRELUDE_LIMIT:
        return min(outer, _PERHAPS)
    queries = " ".join(prelude.removeprefix("@media").split()).split(",")
    return min(outer, max(map(_query, queries)))


def _query(query: str) -> int:
    parts = query.strip().removeprefix("only ").split(" and ")
    return min(map(_feature, parts))


def _feature(feature: str) -> int:
    """Return whether a part of a media query is true."""
    width = _WIDTH.match(feature)
    if width is None:
        return _ELSEWHERE if _DARK.match(feature) else _FEATURES.get(feature, _PERHAPS)
    edge = float(width[2]) * (1 if width[3] == "px" else 16)
    least, most = _WINDOW if width[1] == "min" else (-_WINDOW[1], -_WINDOW[0])
    edge = edge if width[1] == "min" else -edge
    return _ALWAYS if edge <= least else _PERHAPS if edge <= most else _ELSEWHERE


def _keys(selectors: str) -> list[tuple[str, bool]]:
    """Return what each selector needs, and whether that is all that it asks for.

    A browser passes over the whole list if it knows one of them not.
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
