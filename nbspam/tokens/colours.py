"""Colours as styles and attributes name them."""

import colorsys
import re

from nbspam.patterns import lazy_pattern

Colour = tuple[int, int, int]  # red, green, blue: 0 to 255
BLACK: Colour = (0, 0, 0)
WHITE: Colour = (255, 255, 255)
# Colours nearer than this, added over red, green and blue, are one to the eye.
_SAME = 48
_CLEAR = 0.1  # alpha below which text is not seen
# The names of CSS near white or black, where text is hidden, and those that mails use most.
_NAMED = {
    name: (int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16))
    for name, digits in (
        pair.split("=")
        for pair in (
            "aliceblue=f0f8ff antiquewhite=faebd7 aqua=00ffff azure=f0ffff beige=f5f5dc"
            " bisque=ffe4c4 black=000000 blanchedalmond=ffebcd blue=0000ff brown=a52a2a"
            " cornsilk=fff8dc cyan=00ffff darkblue=00008b darkgray=a9a9a9 darkgreen=006400"
            " darkgrey=a9a9a9 darkred=8b0000 darkslategray=2f4f4f dimgray=696969"
            " floralwhite=fffaf0 fuchsia=ff00ff gainsboro=dcdcdc ghostwhite=f8f8ff gold=ffd700"
            " gray=808080 green=008000 grey=808080 honeydew=f0fff0 ivory=fffff0 khaki=f0e68c"
            " lavender=e6e6fa lavenderblush=fff0f5 lemonchiffon=fffacd lightblue=add8e6"
            " lightcyan=e0ffff lightgoldenrodyellow=fafad2 lightgray=d3d3d3 lightgreen=90ee90"
            " lightgrey=d3d3d3 lightyellow=ffffe0 lime=00ff00 linen=faf0e6 magenta=ff00ff"
            " maroon=800000 midnightblue=191970 mintcream=f5fffa mistyrose=ffe4e1"
            " moccasin=ffe4b5 navajowhite=ffdead navy=000080 oldlace=fdf5e6 olive=808000"
            " orange=ffa500 papayawhip=ffefd5 pink=ffc0cb purple=800080 red=ff0000"
            " royalblue=4169e1 seashell=fff5ee silver=c0c0c0 skyblue=87ceeb snow=fffafa"
            " steelblue=4682b4 teal=008080 tomato=ff6347 turquoise=40e0d0 violet=ee82ee"
            " white=ffffff whitesmoke=f5f5f5 yellow=ffff00"
        ).split()
    )
}
_FUNCTION = lazy_pattern(r"(rgb|hsl)a?\(\s{0,9}([^()]{1,60})\)")
_NUMBERS = re.compile(r"-?\d{0,9}\.?\d{1,9}%?")
# What a colour can look like, in lower case.
ANY = r"(?:(?:rgb|hsl)a?\([^()]{1,60}\)|#?[a-z0-9]{3,20})"


def colour(text: str) -> Colour | None:
    """Return the colour that a text in lower case names; None if it names none."""
    text = text.strip()
    if text in _NAMED:
        return _NAMED[text]
    if function := _FUNCTION.match(text):
        return _of_function(function[1], _NUMBERS.findall(function[2]))
    digits = text.lstrip("#")
    if len(digits) in (3, 4):
        digits = "".join(2 * digit for digit in digits[:3])
    try:
        value = int(digits[:6], 16) if len(digits) in (6, 8) else None
    except ValueError:
        return None
    return None if value is None else (value >> 16, value >> 8 & 255, value & 255)


def _of_function(name: str, numbers: list[str]) -> Colour | None:
    """Return the colour of `rgb()` or `hsl()`, without its alpha."""
    if len(numbers) < 3:
        return None
    a, b, c = (float(number.rstrip("%")) for number in numbers[:3])
    if name == "hsl":
        parts = colorsys.hls_to_rgb(a / 360 % 1, _unit(c / 100), _unit(b / 100))
        red, green, blue = (round(255 * part) for part in parts)
        return red, green, blue
    scale = 2.55 if numbers[0].endswith("%") else 1.0
    red, green, blue = (round(min(max(scale * part, 0), 255)) for part in (a, b, c))
    return red, green, blue


def _unit(number: float) -> float:
    return min(max(number, 0.0), 1.0)


def is_clear(text: str) -> bool:
    """Return whether a colour, in lower case, lets all behind it through."""
    text = text.strip()
    if function := _FUNCTION.match(text):
        numbers = _NUMBERS.findall(function[2])
        if len(numbers) < 4:
            return False
        alpha = float(numbers[3].rstrip("%")) / (100 if numbers[3].endswith("%") else 1)
        return alpha < _CLEAR
    if text.startswith("#") and len(text) in (5, 9):  # #rgba, #rrggbbaa
        return text[-(len(text) // 4) :].strip("0123456789abcdef") == "" and (
            int(text[-(len(text) // 4) :], 16) < _CLEAR * (15 if len(text) == 5 else 255)
        )
    return text == "transparent"


def are_alike(a: Colour, b: Colour) -> bool:
    """Return whether an eye takes two colours for one."""
    return abs(a[0] - b[0]) + abs(a[1] - b[1]) + abs(a[2] - b[2]) < _SAME
