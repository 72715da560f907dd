"""The text of an HTML page, read without a browser.

Everything is read.  Text that is plainly hidden is read too, but its words count for spam only
(`Page.hidden`), so a wrong guess about hiding costs certainty and never a word.  All other text
between tags is in plain sight (`Page.text`).  These ways of hiding are known, whether an attribute
or a rule of a style sheet for `*`, one element, one class or one id asks for them:

    display:none, the attribute hidden    visibility:hidden or collapse    opacity below 0.1
    letters of at most 2 px               letters in the colour behind them, or transparent
    a height or width of 0 with overflow:hidden
    left, right, top, bottom, text-indent, margin-left or margin-top of at most -500 px

Each way of hiding leaves a token, except in the first 250 letters of a page: mail programs show a
hidden preheader in the list of messages, so it counts like text in plain sight.  Without a token,
these count for spam only:

    text behind </html>, such as the lines that mailing lists and spammers append
    <title>, <iframe>, <textarea> and other elements whose content is not parsed as HTML
    attributes that programs may show (alt, title, value), and words spelled with pictures' alt
    strings of style sheets, data: URLs other than pictures, comments for Outlook
    tags in a script or style sheet, because programs disagree where a script or sheet ends

One pattern splits the page: the standard library's html.parser takes 25 times as long (0.8 s
instead of 0.03 s for the 6.6 MB of HTML in the SpamAssassin corpus), and spam's HTML is seldom
valid.
"""

import re
from collections.abc import Collection, Iterator
from colorsys import hls_to_rgb
from functools import lru_cache, partial
from typing import NamedTuple

from nbspam.patterns import lazy_pattern
from nbspam.reading.charsets import decode_base64
from nbspam.tokens.text import Memo

# The attributes in a tag.  A quote that never closes is passed over.
_INSIDE = r"(?:[^<>\"']++|\"[^\"]*+\"|'[^']*+'|[\"'])*+"
# A comment, or one of these elements, that never closes extends to the end, as in browsers; so
# the search for its end is made only once.
_RAW = "script|style|title|textarea|xmp|plaintext|iframe|noembed|noframes|template"
_TAG = re.compile(
    r"(<!--(?:-?>|.*?(?:--!?>|\Z))"
    rf"|<(?P<raw>{_RAW})(?![^\s/>])({_INSIDE})>?(.*?)(?:</(?P=raw)(?![^\s/>])[^>]*+>?|\Z)"
    r"|<(?:[!?]|/(?![a-z]))[^>]*+>?"
    rf"|</?[a-z]{_INSIDE}>?)",
    re.IGNORECASE | re.DOTALL | re.ASCII,
)
_NAME = re.compile(r"<?(/?)([a-z][^\s<>/\"']*+|)", re.ASCII | re.IGNORECASE)
_ANY_TAG = lazy_pattern(r"<[a-z/!][^>]*+>?", re.IGNORECASE)
# Markup that only some programs take for text: comments for Outlook, CDATA, and a comment that
# never closes.
_CONDITIONAL = lazy_pattern(
    r"<!--\[[^\]]*\]>?(.*)|<!\[CDATA\[(.*)|<!--((?!-?>)(?:(?!--!?>).)*\Z)",
    re.DOTALL | re.IGNORECASE,
)
# Values have any length, because a limit could cut a style.  The pattern never goes back over a
# character, so its time is linear.
_ATTRIBUTE = lazy_pattern(
    r"([^\s\"'<>/=]++)(?:\s*+=\s*+(?:\"([^\"]*+)\"?|'([^']*+)'?|([^\s\"'>]++)))?", re.ASCII
)
_LINK = lazy_pattern(
    r"(?:href|src|action|background)\s{0,9}=\s{0,9}[\"']?\s{0,9}([^\s\"'<>]{1,500})"
)
# Tags that end a word.  A word continues behind all other tags, also unknown ones:
# `v<b>ia</b>g<wbr>ra` is one word to the reader.
_BLOCK = frozenset(
    "address article aside blockquote body br caption center col colgroup dd details dialog dir "
    "div dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 "
    "header hgroup hr html iframe img input legend li main menu nav object ol optgroup option p "
    "plaintext pre section select summary svg table tbody td textarea tfoot th thead tr ul video "
    "xmp".split()
)
_VOID = frozenset("area base br col embed hr img input link meta param source wbr".split())
_SHOWN_ATTRIBUTES = frozenset("alt title value placeholder label srcdoc".split())
# Tag -> two lists of tags.  An opening tag closes the innermost open tag of the first list, unless
# a tag of the second list is open inside that tag.
_CELLS = frozenset({"td", "th", "tr", "table"})
_CLOSED_BY: dict[str, tuple[Collection[str], Collection[str]]] = {
    "p": (("p",), _CELLS | {"div"}),
    "li": (("li",), _CELLS | {"ul", "ol"}),
    "dt": (("dt", "dd"), _CELLS | {"dl"}),
    "dd": (("dt", "dd"), _CELLS | {"dl"}),
    "td": (("td", "th"), ("tr", "table")),
    "th": (("td", "th"), ("tr", "table")),
    "tr": (("tr",), ("table",)),
    "option": (("option",), ("select",)),
}
_MAX_CLOSED = 30  # open tags that one tag closes
_MAX_PREHEADER = 250  # letters
_REVERSING = "<bdo", "-override"
_FILLER = lazy_pattern(r"&[#\w]{1,9};|\W")
# The tokens of the ways of hiding.
_TRICKS = {name: {f"trick:{name}"} for name in ("hidden", "tiny", "same-colour")}

_ZEROS = lazy_pattern(r"(&#[xX]?)0++")
_LONG_ENTITY = lazy_pattern(r"&#(?:[0-9]{8}|[xX][0-9a-fA-F]{7})[0-9a-fA-F]{0,100000};?")


def unescape(text: str) -> str:
    """Decode the entities of a text."""
    if "&" not in text:
        return text
    import html  # importing html takes 2 ms, for a table of 2,231 entities

    # int() rejects numbers of more than 4,300 digits, and no character's number has 8.
    return html.unescape(_LONG_ENTITY.sub(" ", _ZEROS.sub(r"\1", text)))


# Text inside other text

_BASE64_URL = lazy_pattern(
    r"data:(image/(?!svg)|audio|video|font|)[^,]{0,200}?;\s{0,9}base64\s{0,9},([\w+/\s-]*)=*",
    re.IGNORECASE,
)


def _decode_base64(url: re.Match[str]) -> str:
    return (
        " "
        if url[1]
        else decode_base64(url[2].encode("utf-8", "replace"), set()).decode("utf-8", "replace")
    )


def _without_line_ends(value: str) -> str:
    """Remove the line ends and tabs that browsers leave out of a URL."""
    return value.replace("\n", "").replace("\r", "").replace("\t", "")


def _embedded_text(value: str) -> str:
    """Read a value that a program may show, and the page in it if it contains one."""
    if "data:" in (url := _without_line_ends(value)).lower():
        from urllib.parse import unquote

        original = "" if url == value else f" {value}"  # may be a text with line ends
        value = url
        for _ in range(3):  # data: URLs inside each other
            value = _BASE64_URL.sub(_decode_base64, unquote(value))
        value += original
    # Read in two ways: without tags, which joins words that tags separate, and with the text in
    # tags.
    return f"{_ANY_TAG.sub('', value)} {value.replace('<', ' ')}" if "<" in value else value


# A colour is red, green and blue, each 0 to 255, or one of the colours below.
Colour = tuple[int, ...]
_UNKNOWN, _TRANSPARENT, _WHITE = (), (-999,), (255, 255, 255)
# Two colours look the same if their differences in red, green and blue add up to less.
_SAME_COLOUR_BELOW = 48
# The names of CSS near white or black, where text is hidden, and those that mails use most.
_NAMED = dict(
    pair.split("=")
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
        " transparent=rgb(0,0,0,0)"
    ).split()
)
_HEX = lazy_pattern(r"#?(?:[0-9a-f]{6}|[0-9a-f]{3})\Z")
_NUMBER = r"(\d{1,9}+(?:\.\d{0,9}+)?+|\.\d{1,9}+)(?:%|deg)?+"
_COLOUR_FUNCTION = lazy_pattern(
    rf"(rgb|hsl)a?\(\s*+{_NUMBER}[\s,]++{_NUMBER}[\s,]++{_NUMBER}(?:[\s,/]++{_NUMBER})?\s*+\)\Z"
)
_BACKGROUND_WORD = lazy_pattern(r"[a-z]*+\([^()]*+\)|[#\w]++")
_MIN_OPACITY = 0.1


def parse_colour(text: str) -> Colour:
    """Parse a CSS colour in lower case; empty if it is unknown."""
    text = _NAMED.get(text, text)
    if function := _COLOUR_FUNCTION.match(text):
        *numbers, opacity = map(float, function.groups("1")[1:])
        if function[1] == "hsl":
            rgb = hls_to_rgb(numbers[0] / 360, numbers[2] / 100, numbers[1] / 100)
            numbers = [255 * part for part in rgb]
        return tuple(map(round, numbers)) if opacity >= _MIN_OPACITY else _TRANSPARENT
    digits = "".join(2 * digit for digit in text.lstrip("#")) if len(text) < 5 else text[-6:]
    return tuple(bytes.fromhex(digits)) if _HEX.match(text) else _UNKNOWN


def _background(value: str) -> Colour | None:
    """Parse a background's colour; None if the background shows what is behind it."""
    if "url(" in value or "gradient(" in value:
        return _UNKNOWN
    colours = map(parse_colour, _BACKGROUND_WORD.findall(value))
    return next((found for found in colours if found and found != _TRANSPARENT), None)


# Styles

Style = dict[str, str]  # property -> value, in lower case
_OFFSETS = frozenset("left right top bottom text-indent margin-left margin-top".split())
_EXTENTS = ("height", "max-height", "width", "max-width")
_PROPERTIES = _OFFSETS.union(
    _EXTENTS, "display visibility opacity font-size color background overflow".split()
)
_CSS_COMMENT = lazy_pattern(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_CSS_ESCAPE = lazy_pattern(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.?))", re.DOTALL)
_LENGTH = lazy_pattern(r"(-?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}))([a-z]*|%)\Z")
_FONT_SIZE = lazy_pattern(r"(?<![^\s])(?:0(?![\d.])|[\d.]{1,9}(?:[a-z]{2,3}|%))")
_NORMAL, _TINY, _FAR, _PAGE_WIDTH = 16.0, 2.0, -500.0, 600.0  # pixels
_PIXELS = {"pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 38.0, "mm": 3.8, "rem": _NORMAL}  # in a unit


def _css(text: str) -> str:
    """Remove the comments of CSS and decode its escapes."""
    text = _CSS_COMMENT.sub(" ", text) if "/*" in text else text
    if "\\" not in text:
        return text
    return _CSS_ESCAPE.sub(_decode_escape, text)


def _decode_escape(escape: re.Match[str]) -> str:
    """Decode an escape of CSS; a quote, bracket or semicolon becomes a blank: it ends nothing."""
    text = unescape(f"&#x{escape[1]};") if escape[1] else escape[2].strip("\n")
    return " " if text in tuple("\"'(){};") else text


def _parse_pixels(value: str, default: float, em: float = _NORMAL) -> float:
    """Parse a length into pixels; the default if it is not a length."""
    if (match := _LENGTH.match(value)) is None:
        return default
    return float(match[1]) * {"em": em, "%": em / 100, **_PIXELS}.get(match[2], 1.0)


def parse_style(css: str) -> Style:
    """Parse the declarations of a style that may hide text; the last one of a property counts."""
    style: Style = {}
    for declaration in (text for text in css.lower().split(";") if ":" in text):
        name, _, value = map(str.strip, declaration.partition("!")[0].partition(":"))
        if name == "font":
            name, value = "font-size", "".join(_FONT_SIZE.findall(value)[:1])
        if (name := name.removesuffix("-color").removesuffix("-image")) in _PROPERTIES:
            style[name] = value[:200]  # short, because caches keep the value
    return style


class _Effect(NamedTuple):
    """The effect of an element on the text in it."""

    is_hiding: bool = False  # also hides the text of elements inside
    visibility: str = ""
    size: str = ""  # CSS font size
    letters: Colour | None = None  # None: inherited
    back: Colour | None = None
    # The text to put for the element's tags: a blank or nothing; None: the element's name decides.
    replacement: str | None = None


_PLAIN = _Effect()


@lru_cache(1 << 12)
def _effect_of(declarations: tuple[tuple[str, str], ...]) -> _Effect:
    """Find the effect of declarations; the last one of a property counts."""
    if not declarations:
        return _PLAIN
    style = dict(declarations)
    get, display = style.get, style.get("display", "")
    return _Effect(
        display == "none"
        or _parse_pixels(get("opacity", ""), 1) < _MIN_OPACITY
        or (get("overflow") == "hidden" and 0 in [_parse_pixels(get(e, ""), 1) for e in _EXTENTS])
        or any(_parse_pixels(style[side], 0) <= _FAR for side in style.keys() & _OFFSETS),
        get("visibility", ""),
        get("font-size", ""),
        parse_colour(style["color"]) if get("color", "inherit") != "inherit" else None,
        _background(get("background", "")),
        ""
        if display.startswith(("inline", "hidden"))
        or _parse_pixels(get("width", ""), 1) == 0
        or _parse_pixels(get("gap", ""), _PAGE_WIDTH, _PAGE_WIDTH) <= _TINY
        else None
        if display in ("", "none")
        else " ",
    )


_SHOWING = lazy_pattern(
    r"(?:(?:content|list-style|list-style-type|quotes|symbols|prefix|suffix|pad|negative|background"
    r"|background-image|text-overflow|hyphenate-character|(?<![\w-])--[\w-]++)\s*+:|@import)"
    r"((?:[^;{}\"']++|\"[^\"]*+\"|'[^']*+')*+)",
    re.IGNORECASE,
)
_STRING = lazy_pattern(
    r"url\(\s*+(?:\"(data:[^\"]*+)\"?|'(data:[^']*+)'?|(data:[^)]*+)|\"[^\"]*+\"?|'[^']*+'?)?"
    r"|\"([^\"]*+)\"|'([^']*+)'",
    re.IGNORECASE,
)


def _strings(css: str) -> list[str]:
    """Find the strings that a style sheet shows."""
    if not any(map(css.__contains__, "\"'(")):  # as in most styles
        return []
    return [
        _embedded_text("".join(string))
        for value in _SHOWING.findall(css)
        for string in _STRING.findall(value)
    ]


# Tags


class _Tag(NamedTuple):
    """A tag."""

    replacement: str  # shown in its place: a blank or nothing
    name: str = ""  # in lower case; empty for comments
    closes: bool = False
    links: tuple[str, ...] = ()  # in lower case
    texts: tuple[str, ...] = ()  # in attributes that programs may show
    keys: tuple[str, ...] = ()  # selectors of the rules that apply to it
    styles: tuple[Style, Style] = ({}, {})  # by the tag's attributes; by its own style attribute
    effect: _Effect = _PLAIN


# Element (empty: any), attribute, property, value.  The colour of links, and of a picture behind
# the text, is unknown.
_PRESENTATION = (
    ("", "hidden", "display", "none"),
    ("font", "size", "font-size", "medium"),
    ("a", "href", "color", "link"),
    ("font", "color", "color", "{}"),
    ("body", "text", "color", "{}"),
    ("img", "width", "gap", "{}"),  # a gap of no or few pixels separates no words
    ("svg", "width", "gap", "{}"),
    ("embed", "width", "gap", "{}"),
    ("iframe", "width", "gap", "{}"),
    ("input", "type", "display", "{}"),  # "hidden" takes no room
    ("", "bgcolor", "background", "{}"),
    ("", "background", "background", "url()"),
)


def _parse_tag(source: str) -> _Tag:
    _, slash, name, inside = _NAME.split(source, maxsplit=1)
    name = name.lower()
    replacement = " " if name in _BLOCK else ""
    if slash or not name or ("=" not in inside and "hidden" not in inside.lower()):
        return _Tag(replacement, name, bool(slash), keys=("*", name))
    values: dict[str, str] = {}
    for key, in_double, in_single, bare in _ATTRIBUTE.findall(inside):
        values.setdefault(key.lower(), unescape(in_double or in_single or bare))
    css = values.get("style", "")
    texts = [
        _embedded_text(value)
        for key, value in values.items()
        if key in _SHOWN_ATTRIBUTES or "data:" in _without_line_ends(value).lower()
    ]
    by_attributes = {
        name_of_property: value.format(values[key].strip().lower()[:200])
        for element, key, name_of_property, value in _PRESENTATION
        if key in values and element in ("", name)
    }
    own = parse_style(_css(css)) if css else {}
    return _Tag(
        replacement,
        name,
        False,
        tuple(_LINK.findall(inside.lower())),
        (*texts, *_strings(css)),
        (
            "*",
            name,
            *[f".{word}" for word in values.get("class", "").lower().split()],
            f"#{values.get('id', '').lower()}",
        ),
        (by_attributes, own),
        _effect_of((*by_attributes.items(), *own.items())),
    )


# Nine of ten tags were parsed before.
_tags = Memo(_parse_tag, limit=1 << 13)

# Style sheets

_AT_RULE = lazy_pattern(r"@([^@{};]*+)(?:;|\{((?:[^{}]*+\{[^{}]*+\})*+)[^{}]*+\})")
_RULE = lazy_pattern(r"(?<![^{}])([^{}]*+)\{([^{}]*+)\}")
_SELECTOR = lazy_pattern(r"(?:\*|[.#]?[\w-]+)\Z")


def _rules_of(css: str) -> dict[str, Style]:
    """Find the rules of a page that may hide text, by their selectors."""
    rules: dict[str, Style] = {}
    # Old mail has its sheets in comments, for browsers that did not know sheets.
    css = _AT_RULE.sub(
        lambda at: at[2] or "" if at[1].strip() in ("media screen", "media all") else "",
        _css(css.lower().replace("<!--", "").replace("-->", "")),
    )
    for selectors, text in _RULE.findall(css):
        style = parse_style(text)
        for selector in map(str.strip, selectors.split(",") if style else ()):
            if _SELECTOR.match(selector):
                rules[selector] = rules.get(selector, {}) | style
    return rules


def _apply_rules(rules: dict[str, Style], source: str) -> _Tag:
    """Parse a tag of a page with style sheets."""
    tag = _tags[source]
    by_attributes, own = tag.styles
    styles = [by_attributes, *[rules[key] for key in tag.keys if key in rules], own]
    return tag._replace(
        effect=_effect_of(tuple(pair for style in styles for pair in style.items()))
    )


# Style sheet -> its tags, because mail programs and senders write the same sheet each time.
_sheets = Memo(
    lambda css: Memo(partial(_apply_rules, _rules_of(css)), limit=1 << 11) if css else _tags,
    limit=1 << 4,
    longest=1 << 14,
)

# Pages


class _TextState(NamedTuple):
    """The look of text in the open tags."""

    hidden: str = ""  # the name of the trick that hides it
    visibility: str = ""
    size: float = _NORMAL  # font size in pixels
    letters: Colour = _UNKNOWN
    back: Colour = _WHITE


# The states in which no tag further in can show text.
_HIDDEN_STATE, _AFTER_END_STATE = _TextState("hidden"), _TextState("end")


@lru_cache(1 << 12)
def _enter_element(outer: _TextState, effect: _Effect) -> _TextState:
    """Find the look of text in one more tag."""
    if effect.is_hiding or outer in (_HIDDEN_STATE, _AFTER_END_STATE):
        return _AFTER_END_STATE if outer == _AFTER_END_STATE else _HIDDEN_STATE
    visibility = effect.visibility or outer.visibility
    size = _parse_pixels(effect.size, _NORMAL, outer.size) if effect.size else outer.size
    letters = outer.letters if effect.letters is None else effect.letters
    back = outer.back if effect.back is None else effect.back
    is_one_colour = letters == _TRANSPARENT or (
        letters
        and back
        and sum(abs(a - b) for a, b in zip(letters, back, strict=True)) < _SAME_COLOUR_BELOW
    )
    reasons = (
        "hidden" if visibility in ("hidden", "collapse") else "",
        "same-colour" if is_one_colour else "",
        "tiny" if size <= _TINY else "",
    )
    return _TextState(next(filter(None, reasons), ""), visibility, size, letters, back)


class Page(NamedTuple):
    """The content of an HTML page."""

    text: str  # in plain sight
    hidden: str  # counts for spam only
    links: list[str]  # targets of links and pictures, in lower case
    tricks: set[str]  # tokens for the ways of hiding


def read_page(source: str) -> Page:
    """Read an HTML page."""
    pieces = _TAG.split(source)  # a text, a tag, and a raw element's name, attributes, content
    texts, tags, names, contents = pieces[::5], pieces[1::5], pieces[2::5], pieces[4::5]
    unseen: list[str] = []
    css = sheets = ""
    for i, name in enumerate(names):
        if name:
            tags[i] = f"<{name}{pieces[5 * i + 3]}>"
            if name.lower() == "style":
                sheets += _css(contents[i]) + "\n"
                css += "" if "print" in tags[i].lower() else contents[i]
    unseen += _strings(sheets) if sheets else []
    # A sheet may show attributes, and some programs show the content of comments.
    unseen += [tag.replace("<", " ") for tag in tags] if "attr(" in sheets.lower() else []
    comments = map(_CONDITIONAL.match, [tag for tag in tags if tag.startswith("<!")])
    unseen += [_TAG.sub(" ", odd[odd.lastindex or 0]) for odd in comments if odd]
    beginning: list[str] = []  # hidden text before all other
    seen: list[str] = []
    spellings: dict[int, str] = {}  # place in `seen` -> letters of a picture there
    tricks: set[str] = set()
    preheader = _MAX_PREHEADER  # letters that the preheader may still have
    sheet = _sheets[css]
    # each tag once, because a page may have more tags than the memo holds
    parsed = [sheet[tag] for tag in tags]
    for text, reason in _hidden_texts(texts, parsed, contents, seen):
        if reason in _TRICKS and preheader >= 0:
            preheader -= (
                _MAX_PREHEADER + 1 if "".join(seen).strip() else len(_FILLER.sub("", text)) or 1
            )
        if reason in _TRICKS and preheader >= 0:
            beginning.append(text)
        elif reason == "picture":
            spellings[len(seen)] = text
        else:
            unseen.append(text)
            tricks |= _TRICKS.get(reason, set())
    if spellings:
        unseen.append("".join(spellings.get(i, piece) for i, piece in enumerate(seen)))
    if any(map(source.lower().__contains__, _REVERSING)):
        unseen.append(unescape("".join(seen))[::-1])
    seen = [*beginning, " ", *seen] if beginning else seen
    links = [link for tag in parsed for link in tag.links]
    return Page(unescape("".join(seen)), unescape(" ".join(unseen)).strip(), links, tricks)


# An open tag: its name, the replacement to put where the tag is closed, and the state before it.
_Open = tuple[str, str, _TextState]


def _hidden_texts(
    texts: list[str],
    tags: list[_Tag],
    contents: list[str | None],
    seen: list[str],
) -> Iterator[tuple[str, str]]:
    """Yield the texts that are not in plain sight, each with a word for the reason.

    texts: the text before each tag, and the text behind the last tag.  contents: the contents of
    raw elements.
    seen: a list that receives all other text.
    """
    stack: list[_Open] = []
    state = _TextState()
    for text, tag, content in zip(texts, [*tags, _Tag("")], [*contents, None], strict=True):
        hidden = state.hidden
        if not hidden or text.isspace():
            seen.append(text)
        elif text:
            yield text, hidden
        replacement, name, closes, _, shown, _, _, effect = tag  # faster than dots
        for value in shown:
            spells = name == "img" and value.isalnum() and (text[-1:].isalnum() or len(value) == 1)
            yield value, "picture" if spells else "attribute"
        if closes:
            bounds = () if name == "table" else ("table",) if name in _CELLS else _CELLS
            _, replacement, state = _close(stack, (name,), bounds) or (name, replacement, state)
            state = _AFTER_END_STATE if name == "html" else state
        elif name:
            state = _TextState() if name == "html" else state
            if name in _CLOSED_BY:
                _, _, state = _close(stack, *_CLOSED_BY[name]) or (name, replacement, state)
            hidden = state.hidden or ("hidden" if effect.is_hiding else "")
            replacement = replacement if effect.replacement is None else effect.replacement
            if content is not None:
                if name in ("script", "style") and effect.replacement is None:  # not displayed
                    content = " ".join(_ANY_TAG.split(content)[1:])
                yield _embedded_text(content), "content"
            elif name not in _VOID:
                stack.append((name, replacement, state))
                state = state if effect is _PLAIN else _enter_element(state, effect)
        if not hidden:
            seen.append(replacement)


def _close(stack: list[_Open], names: Collection[str], bounds: Collection[str]) -> _Open | None:
    """Close the innermost open tag of some names, and all tags in it; return that tag.

    Nothing is closed if no such tag is near, or if a tag of the bounds is further in.
    """
    for place in range(len(stack) - 1, max(-1, len(stack) - _MAX_CLOSED), -1):
        tag = stack[place]
        if tag[0] in names:
            del stack[place:]
            return tag
        if tag[0] in bounds:
            return None
    return None
