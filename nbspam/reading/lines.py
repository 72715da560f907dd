"""The lines of a text: its charset, recognised by its letters, and its line ends.

A byte order mark decides the charset, else the user's option; without both it is UTF-8.  The
charset of lines that are not UTF-8 is guessed from the letters of all such lines.  Lines end with
LF, and in a text with more CR than LF (Excel for Mac) also with CR.
"""

import io
import math
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

from nbspam.errors import Remedy
from nbspam.patterns import lazy_pattern
from nbspam.reading.charsets import bom_encoding
from nbspam.reading.source import SAMPLE_BYTES, Input, Skips

Opener = Callable[[], io.BufferedReader]
Line = tuple[int, str]  # the line's number, its text with the line end

_LINE_LIMIT = 4 << 20  # bytes of one line
_BLOCK = 1 << 20  # bytes of lines that are checked together
_WIDE_SAMPLE = 4 << 10  # bytes in which UTF-16 is recognised
_OTHER_BYTES = 1 << 16  # bytes of lines that are not UTF-8, from which their charset is guessed


class Decoding(NamedTuple):
    """How the bytes of a text become lines."""

    codec: str = "utf-8"
    fallback: str | None = "cp1252"  # charset for invalid lines; None skips them
    has_cr: bool = False  # whether a CR without LF also ends a line


def decoding_of(source: Input, open_text: Opener) -> Decoding:
    """Find the decoding of a text, and note a guessed charset; open_text: opens its bytes."""
    with open_text() as stream:
        first = stream.read(SAMPLE_BYTES)
    decoding = Decoding()
    if mark := bom_encoding(first):
        decoding = Decoding(mark, None) if is_wide(mark) else Decoding()
    elif encoding := source.options.table.encoding:
        decoding = Decoding(encoding, None)
    else:
        charset = wide_encoding(first[:_WIDE_SAMPLE])
        if charset:
            decoding = Decoding(charset, None)
        elif other := b"".join(_not_utf_8(open_text)):
            charset = guess_charset(other)
            # Short Chinese lines may be valid UTF-8 by chance; lines in one-byte charsets hardly
            # ever are.
            is_first = charset in MULTIBYTE_CHARSETS
            decoding = Decoding(*((charset, "utf-8") if is_first else ("utf-8", charset)))
        if charset:
            problem = f"{source.title}: is not UTF-8, and is read as {charset_title(charset)}"
            source.note(problem, Remedy.NAME_ENCODING)
    text = first.decode(decoding.codec, "replace")
    return decoding._replace(has_cr=text.count("\r") - text.count("\r\n") > text.count("\n"))


def _not_utf_8(open_text: Opener) -> Iterator[bytes]:
    """Yield the first lines that are not UTF-8."""
    size = 0
    with open_text() as stream:
        while size < _OTHER_BYTES and (block := stream.read(_BLOCK) + stream.readline(_LINE_LIMIT)):
            if not _is_utf_8(block):
                for line in block.splitlines(keepends=True):
                    if not _is_utf_8(line):
                        size += len(line)
                        yield line


def _is_utf_8(data: bytes) -> bool:
    return data.isascii() or _try_decode(data, "utf-8") is not None


def decode_lines(
    name: str, open_text: Opener, decoding: Decoding, skips: Skips
) -> Generator[Line, None, None]:
    """Yield (line number, text with its line end) of a text; closes it at the end.

    name: the text's name in errors.  open_text: opens its bytes; called for the first line.
    """
    codec, fallback, has_cr = decoding
    with open_text() as stream:
        if has_cr or is_wide(codec):
            newline = None if has_cr else "\n"
            errors = "replace" if is_wide(codec) or not fallback else "surrogateescape"
            texts = io.TextIOWrapper(stream, codec, errors, newline)
            for number, text in enumerate(texts, 1):
                if errors == "surrogateescape" and not text.isascii():
                    data = text.encode(codec, "surrogateescape")
                    text = _try_decode(data, codec) or _decode_invalid(data, decoding)
                yield number, text.removeprefix("\ufeff") if number == 1 else text
            return
        for number, line in enumerate(each_line(stream), 1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            try:
                yield number, line.decode(codec)
            except UnicodeError as error:
                if fallback:
                    yield number, _decode_invalid(line, decoding)
                else:
                    reason = getattr(error, "reason", error)
                    skips(f"{name}:{number}", f"the line is not {codec} ({reason})")


def each_line(stream: io.BufferedReader) -> Iterator[bytes]:
    """Yield the lines of a text as bytes; a line above _LINE_LIMIT is cut into several."""
    while line := stream.readline(_LINE_LIMIT):
        yield line


def nonblank_lines(lines: Iterator[Line]) -> Iterator[Line]:
    """Yield the lines that are not blank, without their line ends."""
    for number, line in lines:
        if line.strip():
            yield number, line.rstrip("\r\n")


def _decode_invalid(data: bytes, decoding: Decoding) -> str:
    """Decode a line that is invalid in the text's codec."""
    codec, fallback, _ = decoding
    last = codec if fallback in (None, "utf-8") else fallback
    return (fallback and _try_decode(data, fallback)) or data.decode(last, "replace")


def _try_decode(data: bytes, codec: str) -> str | None:
    try:
        return data.decode(codec)
    except UnicodeError:
        return None


# Charsets

_MARKS = b"\n\r\t,;|"  # marks that occur in a table, and in nearly every text


def is_wide(encoding: str | None) -> bool:
    """Return whether a line end is more than one byte."""
    name = (encoding or "").lower().replace("_", "-")
    return name.startswith(("utf-16", "utf-32", "utf16", "utf32"))


def wide_encoding(first: bytes) -> str | None:
    """Recognise UTF-16 and UTF-32, with two or four bytes a character; None for other encodings.

    first: the first bytes of a text without a byte order mark.
    In UTF-16 most delimiters and line ends have a NUL next to them.
    """
    if b"\0" not in first:
        return None
    places = [i for i, byte in enumerate(first) if byte in _MARKS]
    for encoding, width in (("utf-32", 4), ("utf-16", 2)):
        zeros = bytes(width - 1)
        little = sum(i % width == 0 and first[i + 1 : i + width] == zeros for i in places)
        big = sum(i % width == width - 1 and first[i - width + 1 : i] == zeros for i in places)
        if 2 * max(little, big) > len(places):
            return f"{encoding}-le" if little > big else f"{encoding}-be"
    return None


# Multi-byte charsets, and the frequent characters of their languages.  In a wrong charset a text is
# invalid, or has rare characters.
MULTIBYTE_CHARSETS = {
    "gb18030": "的一是不了人我在有他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去"
    "之过家学对可里后小么心多天而能好都然没日于起还发成事只作当想看文无开手用主行方又如前所"
    "本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二理美点月明其种声"
    "全工己话儿者向情部正名定女问力机给等几很业最间新什打便位因重被走电市送查击链接免费您"
    "请奖元",
    "big5": "的一是不了人我在有他這中大來上個國到說們為子和你地出道也時年得就那要下以生會自著去之"
    "過家學對可裡後小麼心多天而能好都然沒日於起還發成事只作當想看文無開手用主行方又如前所"
    "本見經頭面公同三已老從動兩長知民樣現分將外但身些與高意進把法此實回二理美點月明其種聲"
    "全工己話兒者向情部正名定女問力機給等幾很業最間新什打便位因重被走電市送查擊連結免費您"
    "請獎元",
    "cp932": "".join(map(chr, [*range(0x3041, 0x3094), *range(0x30A1, 0x30FD)])),
    "cp949": "이다는을가에하고의지한어도시를사로나아기서그자대리게요해있으은라니일인보수거마오면안"
    "부상정스전주야만들여원장과무없것세입습드중용했및내문신료제확금",
}
# The least share of these characters in a text.  The right charset gives 0.35 or more, a wrong one
# 0.05.
_MIN_COMMON_SHARE = 0.2
# One-byte charsets, and the letters beyond ASCII of a few languages, the most frequent first.
SINGLE_BYTE_CHARSETS = (
    *(("cp1252", letters) for letters in ("éàèêçùâîôûëïœ", "üäößé", "óáíéñú¿¡ü", "ãçéáóíõêâúà")),
    *(("cp1252", letters) for letters in ("àèòóéíùçúïì·", "äöå", "åøæéö", "ëéïóö", "áíéóæðþúöý")),
    *(("cp1250", letters) for letters in ("ąłęóśżćźń", "íáéěýřčžšůúťňďóľôĺŕä", "éáöóőüíúű")),
    *(("cp1250", letters) for letters in ("ăîâţşșțá", "čšžćđ")),
    ("cp1254", "ıişğüçöâ"),
    ("cp1251", "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё"),
    ("cp1251", "оаиніветрслкудмпзяьбгйчхцїюжєшщфґ"),
    ("cp1251", "аоиенртсвкјудмплзгбљћчшњцжџхђфъщюяйь"),
    ("koi8-r", "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё"),
    ("cp1253", "αοιετσνηυρπκμλςωγδχθφβξζψάέίόήύώϊϋ"),
    ("cp1255", "יוהלארתבםמנשעדקחפסטכגצזןךףץ"),
    ("cp1256", "اليمنتورهبعدسفقكحجأةطشصخضإذزئثغىءؤظآ،"),
    ("cp1256", "اینردتمهوبسشلکخزفقپعجگحآصچطضغثذظژئ،یيك"),
)
_LATIN = ("cp1252", "cp1250", "cp1254")
_COMMON_SYMBOLS = "“”‘’„‚–—…«»€£°§©®·•´\xa0™×½¼¾²"
# The probability of all common symbols together, and the log-probability of each other character
# that is not a letter of the language.
_SYMBOL_SHARE, _OTHER_LOG_PROBABILITY = 0.1, -9.2
# In English the only character beyond ASCII is often £, whose byte in Windows-1250 is the Polish
# letter \u0141.  Letters are in words, so a character before a digit is a symbol.
_PRICES = lazy_pattern(
    rb"[\x80-\xff]+(?=\d)|(?<![A-Za-z\x80-\xff])[\x80-\xff](?= \d)|\xa3+(?![A-Za-z\x80-\xff])"
)
_CP1252_MARGIN = 3.0  # nats by which another charset must be better than Windows-1252
_TITLES = {"cp932": "Shift-JIS", "cp949": "EUC-KR", "gb18030": "GB18030", "big5": "Big5"}


def charset_title(codec: str) -> str:
    """Return the usual name of a codec's charset."""
    name = codec.upper()
    return _TITLES.get(codec, f"Windows-{name[2:]}" if name.startswith("CP") else name)


def guess_charset(data: bytes) -> str:
    """Guess the codec of a text that is not UTF-8, by its letters.

    Right guesses for tables of Django's translations into 40 languages
    (`benchmarks/table_charsets.py`); charset-normalizer reads German and Spanish as Windows-1250:

        rows a table    tables    this function    charset-normalizer
        200             200       200              155
        8               192       190              137
        2               169       162              104
    """
    best = _MIN_COMMON_SHARE, ""
    for codec, common in MULTIBYTE_CHARSETS.items():
        text = _try_decode(data, codec)
        characters = [c for c in text or "" if c > "\x7f" and c.isalpha()]
        if characters:
            best = max(best, (sum(c in common for c in characters) / len(characters), codec))
    if best[1]:
        return best[1]
    signs, data = Counter(run[-1] for run in _PRICES.findall(data)), _PRICES.sub(b"", data)
    high = [byte > 0x7F for byte in data]
    # Latin letters beyond ASCII are seldom adjacent; a text with prices may have no such letters.
    is_latin = 2 * sum(map(min, high, high[1:])) <= sum(high)
    counts = Counter(byte for byte in data if byte > 0x7F)
    scores = {codec: -math.inf for codec, _ in SINGLE_BYTE_CHARSETS}
    for codec, letters in SINGLE_BYTE_CHARSETS:
        if (codec in _LATIN) == is_latin:
            likelihood = _likelihood(counts, codec, letters) + _likelihood(signs, codec, "")
            scores[codec] = max(scores[codec], likelihood)
    scores["cp1252"] += _CP1252_MARGIN
    return max(scores, key=lambda codec: scores[codec])


def _likelihood(counts: Counter[int], codec: str, letters: str) -> float:
    """Return the log-likelihood of bytes, with letter frequencies of 1 / (rank + 1.5)."""
    total = sum(1 / (rank + 1.5) for rank in range(len(letters)))
    logs = dict.fromkeys(_COMMON_SYMBOLS, math.log(_SYMBOL_SHARE / len(_COMMON_SYMBOLS)))
    for rank, letter in enumerate(letters):
        logs[letter] = math.log((1 - _SYMBOL_SHARE) / (rank + 1.5) / total)
    characters = ((bytes([byte]).decode(codec, "replace"), n) for byte, n in counts.items())
    return sum(
        n
        * logs.get(
            c.lower(), 4 * _OTHER_LOG_PROBABILITY if c == "\ufffd" else _OTHER_LOG_PROBABILITY
        )
        for c, n in characters
    )
