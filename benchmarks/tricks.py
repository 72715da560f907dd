"""Tricks of spammers against filters: each makes a mail that shows a spam's text to its reader.

A trick is a function from a `Spam`, the ham that may pad it and a generator of random numbers to a
`Body`: the MIME fields and what follows the header.  All are written from what mail programs show:
text is read, joined over inline tags; hidden text is not.
"""

import base64
import binascii
import html
import quopri
import random
import re
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

BIG = 700 << 10  # bytes of what stands before the text; more than some filter reads


class Spam(NamedTuple):
    """What a spam says: its text as plain text and as HTML (the inside of a body)."""

    text: str
    html: str


class Body(NamedTuple):
    """The MIME fields of a mail, each line with its end, and its body."""

    fields: str
    body: bytes


Trick = Callable[[Spam, list[str], random.Random], Body]

_HTML = 'Content-Type: text/html; charset="utf-8"\n'
_PLAIN = 'Content-Type: text/plain; charset="utf-8"\n'
_BIT8 = "MIME-Version: 1.0\nContent-Transfer-Encoding: 8bit\n"
_WORD = re.compile(r"[A-Za-z]{4,}")
_TAG_OR_TEXT = re.compile(r"(<[^>]*>)")


def plain(text: str) -> Body:
    """Return a mail of plain text."""
    return Body(_BIT8 + _PLAIN, text.encode("utf-8", "replace"))


def page(inside: str, head: str = "", attributes: str = "") -> Body:
    """Return a mail of HTML."""
    source = f"<html><head>{head}</head><body{attributes}>\n{inside}\n</body></html>\n"
    return Body(_BIT8 + _HTML, source.encode("utf-8", "replace"))


def multipart(
    kind: str, parts: list[bytes], boundary: str = "=_frontier", parameters: str = ""
) -> Body:
    """Return a mail of parts, each with its fields, an empty line and its body."""
    parameters = parameters or f'boundary="{boundary}"'
    start = f"--{boundary}\n".encode()
    body = b"".join(start + part + b"\n" for part in parts) + f"--{boundary}--\n".encode()
    return Body(f"MIME-Version: 1.0\nContent-Type: multipart/{kind}; {parameters}\n", body)


def part(body: Body) -> bytes:
    """Return a mail's body as a part."""
    return body.fields.replace("MIME-Version: 1.0\n", "").encode() + b"\n" + body.body


# Words


def each_word(change: Callable[[str], str]) -> Trick:
    """Return a trick that changes each word of four letters or more, in plain text."""
    return lambda spam, _, __: plain(_WORD.sub(lambda word: change(word[0]), spam.text))


def each_word_of_html(change: Callable[[str], str]) -> Trick:
    """Return a trick that changes each word of four letters or more in the text of HTML."""

    def changed(spam: Spam) -> str:
        pieces = _TAG_OR_TEXT.split(spam.html)
        for i in range(0, len(pieces), 2):
            pieces[i] = _WORD.sub(lambda word: change(word[0]), pieces[i])
        return "".join(pieces)

    return lambda spam, _, __: page(changed(spam))


def within(mark: str) -> Callable[[str], str]:
    """Return a function that puts a mark into the middle of a word."""
    return lambda word: word[: len(word) // 2] + mark + word[len(word) // 2 :]


def between(mark: str) -> Callable[[str], str]:
    """Return a function that puts a mark between all letters of a word."""
    return mark.join


def letters(table: dict[str, str]) -> Callable[[str], str]:
    """Return a function that writes letters by other ones."""
    translation = str.maketrans(table)
    return lambda word: word.translate(translation)


_LEET = {"a": "4", "e": "3", "i": "1", "o": "0", "s": "5", "A": "4", "E": "3", "I": "1", "O": "0"}
_SMALL_CAPITALS = dict(zip("abcdefghijklmnoprstuvwyz", "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", strict=True))
_CYRILLIC = dict(zip("aceopxyi", "асеорхуі", strict=True))
_ACCENTED = dict(zip("aeioucn", "áéíóúçñ", strict=True))
_LOWER = "abcdefghijklmnopqrstuvwxyz"
_FULL_WIDTH = {c: chr(ord(c) + 0xFEE0) for c in _LOWER}
_BOLD = {c: chr(0x1D41A + i) for i, c in enumerate(_LOWER)}
_CIRCLED = {c: chr(0x24D0 + i) for i, c in enumerate(_LOWER)}
_REGIONAL = {c: chr(0x1F1E6 + i) for i, c in enumerate(_LOWER)}
_TAGS = "".join(chr(0xE0000 + ord(c)) for c in "xq")

WORDS: dict[str, Trick] = {
    "an empty <wbr> within words": each_word_of_html(within("<wbr>")),
    "an unknown inline tag within words": each_word_of_html(within("<zq></zq>")),
    "a new unknown tag in each word": lambda spam, _, rng: each_word_of_html(
        lambda w: within(f"<q{rng.randrange(10**6)}>")(w)
    )(spam, _, rng),
    "an empty <b></b> within words": each_word_of_html(within("<b></b>")),
    "a comment within words": each_word_of_html(within("<!-- kx -->")),
    "a hidden span within words": each_word_of_html(
        within('<span style="display:none">qzx</span>')
    ),
    "a span of size 0 within words": each_word_of_html(
        within('<span style="font-size:0">qzx</span>')
    ),
    "<svg width=0> within words": each_word_of_html(within("<svg width=0 height=0></svg>")),
    "an <img> of no size within words": each_word_of_html(within("<img width=0 height=0>")),
    "<td> within words": each_word_of_html(within("<td>")),
    "<p hidden> within words": each_word_of_html(within("<p hidden></p>")),
    "a floated <i> within words": each_word_of_html(within('<i style="float:right"></i>')),
    "zero-width spaces within words": each_word(within("\u200b")),
    "soft hyphens within words": each_word(within("\xad")),
    "&shy; within words": each_word_of_html(within("&shy;")),
    "&zwnj; between letters": each_word_of_html(between("&zwnj;")),
    "variation selectors within words": each_word(within("\ufe0f")),
    "supplementary variation selectors": each_word(within("\U000e0105")),
    "tag characters within words": each_word(within(_TAGS)),
    "Hangul fillers within words": each_word(within("\u3164")),
    "control characters within words": each_word(within("\x08")),
    "combining marks on letters": each_word(between("\u0335")),
    "accents": each_word(letters(_ACCENTED)),
    "small capitals": each_word(letters(_SMALL_CAPITALS)),
    "Cyrillic look-alikes": each_word(letters(_CYRILLIC)),
    "full-width letters": each_word(letters(_FULL_WIDTH)),
    "mathematical bold": each_word(letters(_BOLD)),
    "circled letters": each_word(letters(_CIRCLED)),
    "regional letters": each_word(letters(_REGIONAL)),
    "every letter an entity": each_word_of_html(lambda w: "".join(f"&#{ord(c)};" for c in w)),
    "leet": each_word(letters(_LEET)),
    "s p a c e d": each_word(between(" ")),
    "d.o.t.s": each_word(between(".")),
    "h-y-p-h-e-n-s": each_word(between("-")),
    "under_scores": each_word(within("_")),
    "CAPITALS": each_word(str.upper),
    "two letters swapped": each_word(lambda w: w[0] + w[2] + w[1] + w[3:]),
    "a letter doubled": each_word(lambda w: w[:2] + w[1:]),
}


# Encodings


def encoded(body: Body, fields: str, data: bytes) -> Body:
    """Return a body in another transfer encoding.  fields: in place of its own."""
    return Body(body.fields.replace("Content-Transfer-Encoding: 8bit\n", fields), data)


def base64_lines(data: bytes, size: int = 57) -> bytes:
    """Return base64 in lines of `size` bytes each, each encoded by itself."""
    pieces = (data[i : i + size] for i in range(0, len(data), size))
    return b"".join(base64.b64encode(piece) + b"\n" for piece in pieces)


def uuencoded(data: bytes) -> bytes:
    """Return uuencoded data, with its first and last line."""
    lines = (binascii.b2a_uu(data[i : i + 45]) for i in range(0, len(data), 45))
    return b"begin 644 page.html\n" + b"".join(lines) + b"`\nend\n"


def _of_page(make: Callable[[Body], Body]) -> Trick:
    return lambda spam, _, __: make(page(spam.html))


_CTE = "Content-Transfer-Encoding: "
ENCODINGS: dict[str, Trick] = {
    "base64": _of_page(lambda b: encoded(b, f"{_CTE}base64\n", base64_lines(b.body))),
    "base64 with padding in the first line": _of_page(
        lambda b: encoded(
            b, f"{_CTE}base64\n", base64_lines(b.body[:55], 55) + base64_lines(b.body[55:])
        )
    ),
    "base64 with padding in each line": _of_page(
        lambda b: encoded(b, f"{_CTE}base64\n", base64_lines(b.body, 55))
    ),
    "base64 with junk between": _of_page(
        lambda b: encoded(
            b, f"{_CTE}base64\n", b"!*\n".join(re.findall(b".{1,9}", base64.b64encode(b.body)))
        )
    ),
    "two encodings, base64 the second": _of_page(
        lambda b: encoded(b, f"{_CTE}7bit\n{_CTE}base64\n", base64_lines(b.body))
    ),
    "two encodings, base64 the first": _of_page(
        lambda b: encoded(b, f"{_CTE}base64\n{_CTE}7bit\n", base64_lines(b.body))
    ),
    "base64 in quotes and with a comment": _of_page(
        lambda b: encoded(b, f'{_CTE}"base64" (x)\n', base64_lines(b.body))
    ),
    "x-uuencode": _of_page(lambda b: encoded(b, f"{_CTE}x-uuencode\n", uuencoded(b.body))),
    "quoted-printable, every character": _of_page(
        lambda b: encoded(
            b,
            f"{_CTE}quoted-printable\n",
            b"=\n".join(re.findall(b".{1,72}", b"".join(b"=%02X" % c for c in b.body))),
        )
    ),
    "quoted-printable, lines cut in words": _of_page(
        lambda b: encoded(
            b,
            f"{_CTE}quoted-printable\n",
            b"=\n".join(
                re.findall(b"(?s).{1,5}", quopri.encodestring(b.body).replace(b"=\n", b""))
            ),
        )
    ),
    "UTF-16": lambda spam, _, __: Body(
        f'MIME-Version: 1.0\n{_CTE}base64\nContent-Type: text/html; charset="utf-16"\n',
        base64_lines(page(spam.html).body.decode().encode("utf-16")),
    ),
    "UTF-7": lambda spam, _, __: Body(
        'MIME-Version: 1.0\nContent-Type: text/plain; charset="utf-7"\n',
        b"".join(
            b"+" + base64.b64encode(c.encode("utf-16-be")).rstrip(b"=") + b"-"
            if c.isalpha() and c.isascii()
            else c.encode("ascii", "replace")
            for c in spam.text
        ),
    ),
    "an attachment of octet-stream that is HTML": lambda spam, _, __: multipart(
        "mixed",
        [
            b"Content-Type: application/octet-stream\n"
            b'Content-Disposition: attachment; filename="page.html"\n'
            b"Content-Transfer-Encoding: base64\n\n" + base64_lines(page(spam.html).body)
        ],
    ),
    "octet-stream shown in place": lambda spam, _, __: multipart(
        "mixed",
        [b"Content-Type: application/octet-stream; name=page.html\n\n" + page(spam.html).body],
    ),
    "text/html as text/x-unknown": lambda spam, _, __: Body(
        "MIME-Version: 1.0\nContent-Type: text/x-unknown\n", page(spam.html).body
    ),
}


# Encoded bytes in a text, which no mail program decodes
ENCODED: dict[str, Trick] = {
    "uuencoded in the text": lambda spam, _, __: plain(
        uuencoded(page(spam.html).body).decode("ascii")
    ),
}


# Parts


def _page64(spam: Spam) -> Body:
    """Return a mail of HTML in base64: who overlooks its fields reads nothing."""
    body = page(spam.html)
    return encoded(body, f"{_CTE}base64\n", base64_lines(body.body))


def _nested(spam: Spam, depth: int) -> Body:
    body = _page64(spam)
    for level in range(depth):
        body = multipart("mixed", [part(body)], f"=_level{level}_")
    return body


def _forwarded(spam: Spam, depth: int) -> Body:
    body = _page64(spam)
    for _ in range(depth):
        body = Body(
            "MIME-Version: 1.0\nContent-Type: message/rfc822\n",
            b"Subject: Fwd\n" + body.fields.encode() + b"\n" + body.body,
        )
    return body


def _after_fields(fields: str) -> Trick:
    def made(spam: Spam, _: list[str], __: random.Random) -> Body:
        body = _page64(spam)
        return body._replace(fields=fields + body.fields)

    return made


_APPLICATION = b"Content-Type: application/pdf; name=a.pdf\n\nJVBERi0"
PARTS: dict[str, Trick] = {
    "200 application parts before": lambda spam, _, __: multipart(
        "mixed", [_APPLICATION] * 200 + [part(_page64(spam))]
    ),
    "2,000 empty text parts before": lambda spam, _, __: multipart(
        "mixed", [b"Content-Type: text/plain\n\n"] * 2_000 + [part(_page64(spam))]
    ),
    "11,000 empty text parts before": lambda spam, _, __: multipart(
        "mixed", [b"Content-Type: text/plain\n\n"] * 11_000 + [part(_page64(spam))]
    ),
    "a junk line in a part's header": lambda spam, _, __: multipart(
        "mixed", [b"this is not a field\n" + part(_page64(spam))]
    ),
    "25 multiparts deep": lambda spam, _, __: _nested(spam, 25),
    "25 forwarded messages deep": lambda spam, _, __: _forwarded(spam, 25),
    "two boundaries, the second used": lambda spam, _, __: multipart(
        "mixed", [part(_page64(spam))], "two", 'boundary="one"; boundary="two"'
    ),
    "two boundaries, the first used": lambda spam, _, __: multipart(
        "mixed", [part(_page64(spam))], "one", 'boundary="one"; boundary="two"'
    ),
    "a boundary in pieces (RFC 2231)": lambda spam, _, __: multipart(
        "mixed", [part(_page64(spam))], "onetwo", "boundary*0=one; boundary*1=two"
    ),
    "two Content-Types, the second multipart": lambda spam, _, __: Body(
        "Content-Type: text/plain\n" + multipart("mixed", [b""]).fields,
        multipart(
            "mixed",
            [part(_page64(spam))],
        ).body,
    ),
    "an empty text/plain beside": lambda spam, _, __: multipart(
        "alternative", [b"Content-Type: text/plain\n\n", part(_page64(spam))]
    ),
    "1,000 header lines before": _after_fields("".join(f"X-A{i}: 1\n" for i in range(1_000))),
    "256 KiB of header before": _after_fields("X-A: " + "a b c d e\n " * (26 << 10) + "z\n"),
    "a junk line in the header": _after_fields("this is not a field\n"),
    "a field without a name in the header": _after_fields(": x\n"),
    "a NUL in the header": _after_fields("X-A: \0\n"),
}

# Much that is not read by a human stands before the spam

LARGE: dict[str, Trick] = {
    "700 KiB of comment before, as XHTML": lambda spam, _, __: Body(
        _BIT8 + "Content-Type: application/xhtml+xml\n",
        page(f"<!-- {'z ' * (BIG // 2)}-->{spam.html}").body,
    ),
    "700 KiB of comment before": lambda spam, _, __: page(
        f"<!-- {'z ' * (BIG // 2)}-->{spam.html}"
    ),
    "700 KiB of comments before": lambda spam, _, __: page("<!-- zq -->" * (BIG // 11) + spam.html),
    "700 KiB of blanks before": lambda spam, _, __: page(" \n" * (BIG // 2) + spam.html),
    "700 KiB of &nbsp; before": lambda spam, _, __: page("&nbsp;" * (BIG // 6) + spam.html),
    "700 KiB of empty tags before": lambda spam, _, __: page("<b></b>" * (BIG // 7) + spam.html),
    "700 KiB of <style> before": lambda spam, _, __: page(
        spam.html, f"<style>{'.a{color:red}' * (BIG // 13)}</style>"
    ),
    "700 KiB of blank lines before, plain": lambda spam, _, __: plain("\n" * BIG + spam.text),
    "700 KiB of attributes before": lambda spam, _, __: page(
        "".join(f"<p title='{'z' * 1000}'>" for _ in range(BIG // 1010)) + spam.html
    ),
}


# Pages that show the spam, each in a way that a filter may take for hidden: the lines of shown.txt,
# the first two a plain <div>.  In a line, HTML is the spam as HTML; TEXT and CSS are its text in an
# attribute and in a string of CSS, LETTERS with pictures as letters; the others are in data: URLs.


def _base64(source: str) -> str:
    return base64.b64encode(source.encode("utf-8", "replace")).decode()


def in_page(template: str) -> Trick:
    """Return a trick that puts the spam into a page behind 20 words of ham in plain sight."""

    def made(spam: Spam, ham: list[str], _: random.Random) -> Body:
        text = " ".join(spam.text.split())
        forms: dict[str, Callable[[], str]] = {
            "HTML": lambda: spam.html,
            "TEXT": lambda: html.escape(text),
            "CSS": lambda: re.sub(r"[\\\"'<>]", " ", text),
            "QUOTED": lambda: urllib.parse.quote(spam.html),
            "BASE64": lambda: _base64(f"<meta charset=utf-8>{spam.html}"),
            "NESTED": lambda: _base64(
                f'<iframe src="data:text/html;base64,{_base64(spam.html)}"></iframe>'
            ),
            "LETTERS": lambda: re.sub(
                r"\b(\w)(\w)(?=\w)", r"\1<img alt=\2>", html.escape(text, quote=False)
            ),
        }
        inside = re.sub("|".join(forms), lambda form: forms[form[0]](), template)
        return page(f"<p>{_words(ham, 20)}</p>\n{inside}")

    return made


SHOWN: dict[str, Trick] = {
    line: in_page(line)
    for line in Path(__file__).with_name("shown.txt").read_text("utf-8").splitlines()
}

# Ham that no reader sees


def _words(ham: list[str], number: int) -> str:
    """Return that many running words of ham, escaped for HTML."""
    words: list[str] = []
    for text in ham:
        words += text.split()
        if len(words) >= number:
            break
    return html.escape(" ".join(words[:number]))


def hiding(template: str) -> Trick:
    """Return a trick that hides 2,000 words of ham, at HAM, behind the spam."""
    return lambda spam, ham, _: page(spam.html + template.replace("HAM", _words(ham, 2_000)))


HIDDEN: dict[str, Trick] = {
    template: hiding(template)
    for template in (
        *(
            f'<div style="{style}">HAM</div>'
            for style in (
                "display:none", "visibility:hidden", "opacity:0", "font-size:0", "font-size:1px",
                "font:0/0 a", "color:white", "color:transparent", "color:hsl(0,0%,100%)",
                "color:#123;background:#123", "height:0;overflow:hidden", "text-indent:-9999px",
                "max-height:0;overflow:hidden", "position:absolute;left:-9999px",
                r"display:n\6fne",
            )
        ),
        "<div hidden>HAM</div>",
        "<font color=white>HAM</font>",
        "<table bgcolor=#000000><tr><td><font color=#000000>HAM</font></table>",
        "<style>dfn{display:none}</style><dfn>HAM</dfn>",
        "<style>.x{font-size:0}</style><div class=x>HAM</div>",
        "<style>#x{visibility:hidden}</style><div id=x>HAM</div>",
        "<title>HAM</title>",
        "<template>HAM</template>",
        "<noframes>HAM</noframes>",
        '<img src=x alt="HAM">',
        "<!-- HAM -->",
        "</body></html>HAM",
    )
}  # fmt: skip


# Visible ham


def _after(number: int) -> Trick:
    return lambda spam, ham, _: page(f"{spam.html}\n<p>{_words(ham, number)}</p>")


def _before(number: int) -> Trick:
    return lambda spam, ham, _: page(f"<p>{_words(ham, number)}</p>\n{spam.html}")


def _big_ham(ham: list[str]) -> str:
    text = " ".join(ham)
    return (text * (1 + BIG // max(1, len(text))))[:BIG]


def _between(spam: Spam, ham: list[str], _: random.Random) -> Body:
    words = _words(ham, len(spam.text.split())).split()
    pairs = zip(html.escape(spam.text).split(), words, strict=False)
    return page(" ".join(f"{of_spam} {of_ham}" for of_spam, of_ham in pairs))


VISIBLE: dict[str, Trick] = {
    "a ham word between each two of the spam": _between,
    "200 words of ham after": _after(200),
    "400 words of ham after": _after(400),
    "1,000 words of ham after": _after(1_000),
    "2,000 words of ham after": _after(2_000),
    "200 words of ham before": _before(200),
    "2,000 words of ham before": _before(2_000),
    "2,000 words of ham around": lambda spam, ham, _: page(
        f"<p>{_words(ham, 1_000)}</p>\n{spam.html}\n<p>{_words(ham[::-1], 1_000)}</p>"
    ),
    "2,000 words of ham as text/plain beside": lambda spam, ham, _: multipart(
        "alternative",
        [part(plain(html.unescape(_words(ham, 2_000)))), part(page(spam.html))],
    ),
    "2,000 words of ham as a part after": lambda spam, ham, _: multipart(
        "mixed", [part(page(spam.html)), part(plain(html.unescape(_words(ham, 2_000))))]
    ),
    "700 KiB of ham before, plain": lambda spam, ham, _: plain(_big_ham(ham) + "\n" + spam.text),
    "700 KiB of ham as a part before": lambda spam, ham, _: multipart(
        "mixed", [part(plain(_big_ham(ham))), part(page(spam.html))]
    ),
    "1,000 random words after": lambda spam, _, rng: page(
        spam.html
        + " ".join("".join(rng.choices(_LOWER, k=rng.randrange(3, 9))) for _ in range(1_000))
    ),
}

# Ham that the filters have learned: a letter to a list, say, which any sender can have


def _opened(number: int) -> Trick:
    return lambda spam, ham, _: plain(f"{ham[0].strip()[:number]}\n\n{spam.text}")


LEARNED: dict[str, Trick] = {
    "the first 500 characters of a learned ham before": _opened(500),
    "the first 200 characters of a learned ham before": _opened(200),
}

NONE: dict[str, Trick] = {
    "none, as HTML": lambda spam, _, __: page(spam.html),
    "none, as plain text": lambda spam, _, __: plain(spam.text),
}
GROUPS_OF_TEXT: dict[str, dict[str, Trick]] = {
    "none": NONE,
    "shown": SHOWN,
    "hidden": HIDDEN,
    "words": WORDS,
    "encodings": ENCODINGS,
    "encoded": ENCODED,
    "parts": PARTS,
    "large": LARGE,
    "visible": VISIBLE,
    "learned": LEARNED,
}
# Percent of spams that may become ham, with their own and with a neutral header.
PROMISES = dict.fromkeys(("hidden", "parts", "unseen parts", "large"), (5, 10))
# Of this group, how much more may become ham than of the same spam in a plain <div>.
MORE_THAN_PLAIN = {"shown": 4}
PLAIN_HTML, PLAIN_TEXT = list(SHOWN)[:2]
