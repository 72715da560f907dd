"""HTML to the text a reader sees, with a token for each way of hiding text from him.

One pattern over the whole text: the standard library's html.parser takes 25 times as long (0.8 s
against 0.03 s for the 6.6 MB of HTML in the SpamAssassin corpus), and spam's HTML is seldom valid.
"""

import itertools
import re

from nbspam.patterns import lazy_pattern
from nbspam.tokens.colours import ANY, BLACK, WHITE, are_alike, colour
from nbspam.tokens.tags import RAW
from nbspam.tokens.tags import tags as tags_of

# A comment, style or script that never closes goes on to the end, as in browsers; so the search for
# its end is made once.  A quoted value is as long as it is: of one bounded to 2,000 characters, the
# rest was shown to nobody and read as text.  An unclosed quote is passed over.
_TAG = re.compile(
    r"(<!--.*?(?:-->|\Z)"
    rf"|<(?P<raw>{RAW})\b.*?(?:</(?P=raw)\s*>|\Z)"
    r"|<[!?][^>]{0,2000}>?"
    r"|</?[a-z][a-z0-9]{0,15}\b(?:[^<>\"']+|\"[^\"]*+\"|'[^']*+'|[\"']){0,200}>?)",
    re.IGNORECASE | re.DOTALL,
)
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
# What makes a slow, careful reading worth while, beside colours too near each other: something
# that the source in lower case has, and the pattern that it is part of.
_S = r"\s{0,9}"
_ZERO = r"(?:0{0,3}[01](?!\d)|0{0,3}\.\d)"
_SUSPECT_STYLES = (
    ("none", lazy_pattern(f"display{_S}:{_S}none")),
    ("hidden", lazy_pattern(f"visibility{_S}:{_S}hidden")),
    ("collapse", lazy_pattern(f"visibility{_S}:{_S}collapse")),
    ("opacity", lazy_pattern(rf"opacity{_S}:{_S}(?:0|\.0|\d%)")),
    ("mso-hide", lazy_pattern("mso-hide")),
    ("overflow", lazy_pattern(rf"(?:height|width){_S}:{_S}{_ZERO}")),
    ("max-height", lazy_pattern(rf"max-height{_S}:{_S}0")),
    ("position", lazy_pattern(rf"position{_S}:{_S}(?:absolute|fixed)")),
    ("indent", lazy_pattern(rf"text-indent{_S}:{_S}-")),
    ("margin", lazy_pattern(rf"margin(?:-left|-top)?{_S}:[^;\"']{{0,40}}-\s{{0,3}}\d{{3}}")),
    ("clip", lazy_pattern(f"clip(?:-path)?{_S}:")),
    ("scale", lazy_pattern(r"scale(?:3d|x|y)?\(")),
    ("content-visibility", lazy_pattern("content-visibility")),
    ("transparent", lazy_pattern(rf"(?<![-\w])color{_S}:{_S}transparent")),
    ("rgba", lazy_pattern(r"rgba\(")),
    ("hsla", lazy_pattern(r"hsla\(")),
    (
        "font-size",
        lazy_pattern(rf"font-size{_S}:{_S}(?:0?\.[0-2]|[0-3](?!\d)|\d(?:\.\d{{0,9}})?%)"),
    ),
    (
        "font:",
        lazy_pattern(r"font:[^;\"'<>]{0,99}?(?<![\d.])(?:[0-3](?:\.\d{0,3})?(?:p|r?em|%)|0[\s/])"),
    ),
    # Comments, escapes and entities, which may disguise any of these.
    ("style", lazy_pattern(rf"style{_S}={_S}[\"']?[^\"'<>\\&*]{{0,2000}}(?:\\|&|(?<=/)\*)")),
    ("\\", lazy_pattern(r"<style\b[^<]{0,100000}\\")),
    ("*/", lazy_pattern(rf":{_S}/\*|\*/{_S}:")),
)
_SUSPECT_TAGS = (
    "<template",
    "<noframes",
    "<noembed",
    "<select",
    "<datalist",
    "<details",
    "<audio",
    "<canvas",
)
# The attribute, and not the type of a form's field.
_HIDDEN = lazy_pattern(r"hidden(?=[\s=/>])(?<=[\s\"'/]hidden)(?<!=[\"']hidden)")
_COLOURS = lazy_pattern(
    rf"(bgcolor|background-color|background|color)\s{{0,3}}[:=]\s{{0,3}}[\"']?({ANY})"
)
# Pairs of a colour and a background beyond which the careful reading is cheaper: half a megabyte of
# colours, no two of them alike, took 90 s.
_COLOUR_PAIRS = 10_000


def html_text(source: str) -> tuple[str, list[str], set[str]]:
    """Return the visible text of an HTML source, its links' targets, and tokens for its tricks."""
    links: list[str] = []
    tricks: set[str] = set()
    if "&#" in source and _LETTER_ENTITY.search(source):
        tricks.add("trick:entity")
    lower = source.lower()
    pieces = _TAG.split(source)  # a text, a tag, the name of a sheet or script, a text, and so on
    texts, sources = pieces[::3], pieces[1::3]
    if "<!--" in source and _has_comment_in_word(texts, sources):
        tricks.add("trick:comment")
    tags = list(map(tags_of.__getitem__, sources))
    if _is_suspect(lower):
        from nbspam.tokens.hidden_text import visible  # four mails in ten of HTML go without
        from nbspam.tokens.styles import StyleSheet

        sheet = StyleSheet(source if "<style" in lower else "")
        text = visible(texts, tags, sheet, links, tricks)
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


def _is_suspect(lower: str) -> bool:
    """Return whether some text may be hidden."""
    if "style" in lower and any(
        sign in lower and pattern.search(lower) for sign, pattern in _SUSPECT_STYLES
    ):
        return True
    return (
        any(map(lower.__contains__, _SUSPECT_TAGS))
        or ("hidden" in lower and _HIDDEN.search(lower) is not None)
        or ("color" in lower and _blends_in(lower))
    )


def _blends_in(lower: str) -> bool:
    """Return whether some text's colour is near some background's; white is always one."""
    colours, backgrounds = {BLACK}, {WHITE}
    for name, value in set(_COLOURS.findall(lower)):
        if rgb := colour(value):
            (colours if name == "color" else backgrounds).add(rgb)
    if len(colours) * len(backgrounds) > _COLOUR_PAIRS:
        return True
    return any(are_alike(one, behind) for one in colours for behind in backgrounds)


def _has_comment_in_word(texts: list[str], sources: list[str]) -> bool:
    """Return whether a comment stands between two letters: `fr<!-- x -->ee`."""
    return any(
        source.startswith("<!--")
        and (texts[i] or (sources[i - 1] if i else ""))[-1:].isalpha()
        and texts[i + 1][:1].isalpha()
        for i, source in enumerate(sources)
    )
