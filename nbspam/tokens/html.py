"""HTML to the text a reader sees, with a token for each way of hiding text from him.

One pattern over the whole text: the standard library's html.parser takes 25 times as long (0.8 s
against 0.03 s for the 6.6 MB of HTML in the SpamAssassin corpus), and spam's HTML is seldom valid.
"""

import re

# A comment, style or script that never closes goes on to the end, as in browsers; so the search for
# its end is made once.  A quoted part of a tag is bounded: an unclosed quote costs its bound
# and not the rest.
_TAG = re.compile(
    r"<!--(?P<comment>.*?)(?:-->|\Z)"
    r"|<(?P<raw>style|script)\b.*?(?:</(?P=raw)\s*>|\Z)"
    r"|<[!?][^>]{0,2000}>?"
    r"|<(?P<close>/?)(?P<name>[a-z][a-z0-9]{0,15})\b"
    r"(?P<inside>(?:[^<>\"']+|\"[^\"]{0,2000}\"|'[^']{0,2000}'|[\"']){0,200})>?",
    re.IGNORECASE | re.DOTALL,
)
_LINK = re.compile(
    r"(?:href|src|action|background)\s{0,9}=\s{0,9}[\"']?\s{0,9}([^\s\"'<>]{1,500})", re.IGNORECASE
)
# Tags that a word may go on behind: `v<b>ia</b>gra` is one word to the reader.
_INLINE = frozenset("a abbr b big em font i ins o s small span strong sub sup tt u".split())
_VOID = frozenset("area base br col embed hr img input link meta param source wbr".split())

_LETTER_ENTITY = re.compile(
    r"&#(?:x[46][1-9a-f]|x[57][0-9a]|6[5-9]|[78]\d|90|9[7-9]|1[01]\d|12[0-2]);", re.I
)
_LONG_ENTITY = re.compile(r"&#(?:[0-9]{8}|[xX][0-9a-fA-F]{7})[0-9a-fA-F]{0,100000};?")
# What makes a slow, careful reading worth while, beside colours too near each other.
_SUSPECT = re.compile(
    r"display\s{0,3}:\s{0,3}none|visibility\s{0,3}:\s{0,3}hidden|opacity\s{0,3}:\s{0,3}0|mso-hide"
    r"|max-height\s{0,3}:\s{0,3}0|font-size\s{0,3}:\s{0,3}(?:0?\.[0-2]|[0-3](?!\d))"
)
_ANY_COLOUR = re.compile(
    r"(bgcolor|background-color|background|color)\s{0,3}[:=]\s{0,3}[\"']?(#?[a-z0-9]{3,20})"
)
_HIDDEN = re.compile(
    r"display\s{0,3}:\s{0,3}none|visibility\s{0,3}:\s{0,3}hidden|opacity\s{0,3}:\s{0,3}0(?![.\d])|mso-hide"
    r"|max-height\s{0,3}:\s{0,3}0(?!\d)",
    re.IGNORECASE,
)
_TINY = re.compile(
    r"font-size\s{0,3}:\s{0,3}(?:[0-3](?:\.\d{0,3})?\s?(?:px|pt)|0?\.[0-2]\d{0,3}\s?r?em|0(?![.\d]))",
    re.IGNORECASE,
)
_COLOUR = re.compile(
    r"(?<![-\w])(?:color|text)\s{0,3}[:=]\s{0,3}[\"']?(#?[a-z0-9]{3,20})", re.IGNORECASE
)
_RGB = re.compile(
    r"rgb\(\s{0,3}(\d{1,3})\s{0,3},\s{0,3}(\d{1,3})\s{0,3},\s{0,3}(\d{1,3})\s{0,3}\)", re.IGNORECASE
)
_GROUND = re.compile(
    r"(?:bgcolor|background(?:-color)?)\s{0,3}[:=]\s{0,3}[\"']?(#?[a-z0-9]{3,20})", re.IGNORECASE
)
_NAMED = {
    "white": (255, 255, 255),
    "black": (0, 0, 0),
    "red": (255, 0, 0),
    "yellow": (255, 255, 0),
    "blue": (0, 0, 255),
    "silver": (192, 192, 192),
    "gray": (128, 128, 128),
}
# Colours nearer than this, added over red, green and blue, are one to the eye.
_SAME_COLOUR = 48
_DEPTH_LIMIT = 200
# Attributes that change what text looks like; most tags have none of them.
_STYLES = re.compile(r"style|color|text|background", re.IGNORECASE)


_BEGINS = re.compile(r"\s{0,200}<(?:html|!doctype|head|body|table|div)\b", re.IGNORECASE)


def looks_like_html(text: str) -> bool:
    """Return whether a text is HTML whatever its type says."""
    return _BEGINS.match(text) is not None


def html_text(source: str) -> tuple[str, list[str], set[str]]:
    """Return the visible text of an HTML source, its links' targets, and tokens for its tricks."""
    links: list[str] = []
    tricks: set[str] = set()
    if _LETTER_ENTITY.search(source):
        tricks.add("trick:entity")
    lower = source.lower()
    if "rgb(" in lower:
        source = _RGB.sub(_hexadecimal, source)
        lower = source.lower()
    if _SUSPECT.search(lower) or ("color" in lower and _blends_in(lower)):
        text = _careful(source, links, tricks)
    else:

        def replace(tag: re.Match[str]) -> str:
            name = tag["name"]
            if name is None:
                _note_comment(tag, source, tricks)
                return "" if tag["raw"] is None else " "
            if tag["inside"] and "=" in tag["inside"]:
                links.extend(_LINK.findall(tag["inside"]))
            return "" if name.lower() in _INLINE else " "

        text = _TAG.sub(replace, source)
    if "&" in text:
        import html

        # Python turns no number of over 4,300 digits into an integer, and no character has 8.
        text = html.unescape(_LONG_ENTITY.sub(" ", text))
    return text, links, tricks


def _hexadecimal(colour: re.Match[str]) -> str:
    return "#" + "".join(f"{min(int(part), 255):02x}" for part in colour.groups())


def _blends_in(lower: str) -> bool:
    """Return whether some text's colour is near some background's; white is always one."""
    colours, grounds = {(0, 0, 0)}, {(255, 255, 255)}
    for found in set(_ANY_COLOUR.findall(lower)):
        if rgb := _rgb(found[1]):
            (colours if found[0] == "color" else grounds).add(rgb)
    return any(_near(colour, ground) for colour in colours for ground in grounds)


def _near(colour: tuple[int, ...], ground: tuple[int, ...]) -> bool:
    return sum(abs(a - b) for a, b in zip(colour, ground, strict=True)) < _SAME_COLOUR


def _note_comment(tag: re.Match[str], source: str, tricks: set[str]) -> None:
    """Note a comment between two letters: `fr<!-- x -->ee`."""
    start, end = tag.span()
    if (
        tag["comment"] is not None
        and source[start - 1 : start].isalpha()
        and source[end : end + 1].isalpha()
    ):
        tricks.add("trick:comment")


def _careful(source: str, links: list[str], tricks: set[str]) -> str:
    """Return the visible text, following which tags are open and how they are styled."""
    pieces: list[str] = []
    # (tag's name, why its text is hidden or "", text colour, background)
    open_tags: list[tuple[str, str, tuple[int, ...], tuple[int, ...]]] = []
    opened: dict[str, int] = {}  # how many of each name are among them
    hidden = ""
    colour: tuple[int, ...] = (0, 0, 0)
    ground: tuple[int, ...] = (255, 255, 255)
    end = 0
    for tag in _TAG.finditer(source):
        between = source[end : tag.start()]
        if between:
            if not hidden:
                pieces.append(between)
            elif between.strip():
                tricks.add(f"trick:{hidden}")
        end = tag.end()
        name = tag["name"]
        if name is None:
            _note_comment(tag, source, tricks)
            if tag["raw"] is not None:
                pieces.append(" ")
            continue
        name = name.lower()
        if name not in _INLINE:
            pieces.append(" ")
        if tag["close"]:
            closed = "" if opened.get(name) else name  # a tag that nothing opened closes nothing
            while closed != name:
                closed, hidden, colour, ground = open_tags.pop()
                opened[closed] -= 1
            continue
        inside = tag["inside"]
        if inside and "=" in inside:
            links.extend(_LINK.findall(inside))
        if name in _VOID or len(open_tags) >= _DEPTH_LIMIT:
            continue
        open_tags.append((name, hidden, colour, ground))
        opened[name] = opened.get(name, 0) + 1
        if inside and _STYLES.search(inside):
            hidden, colour, ground = _styled(inside, hidden, colour, ground)
    rest = source[end:]
    if not hidden:
        pieces.append(rest)
    elif rest.strip():
        tricks.add(f"trick:{hidden}")
    return "".join(pieces)


def _styled(
    inside: str, hidden: str, colour: tuple[int, ...], ground: tuple[int, ...]
) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """Return why text under a tag with these attributes is hidden ("" for not), and its colours."""
    if found := _GROUND.search(inside):
        ground = _rgb(found[1]) or ground
    if found := _COLOUR.search(inside):
        colour = _rgb(found[1]) or colour
    if hidden == "hidden" or (hidden == "tiny" and not _visible_again(inside)):
        return hidden, colour, ground
    if _HIDDEN.search(inside):
        return "hidden", colour, ground
    if _TINY.search(inside):
        return "tiny", colour, ground
    return "same-colour" if _near(colour, ground) else "", colour, ground


def _visible_again(inside: str) -> bool:
    """Return whether a tag under a tiny one sets a size of its own (newsletters do, for layout)."""
    return "font-size" in inside.lower() and not _TINY.search(inside)


def _rgb(text: str) -> tuple[int, int, int] | None:
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
