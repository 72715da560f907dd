"""Strategies that draw mails: valid ones, and ones that are broken in every way.

A mail is drawn as a tree of parts, each with headers that fit it or lie about it; then its bytes
are spoiled, or not.
"""

import base64
import quopri

from hypothesis import strategies as st

CHARSETS = st.sampled_from(
    [
        *"utf-8 us-ascii iso-8859-1 windows-1251 koi8-r utf-7 utf-16 utf-16le utf-32".split(),
        *"gb2312 big5 hz iso-2022-jp iso-2022-kr shift_jis euc-kr klingon x-unknown".split(),
        *"idna hex rot13 unicode_escape".split(),
        *("", '"utf-8', "utf-8;", "ütf-8", "u\0tf-8", "x" * 90, "=?utf-8?q?utf-8?="),
    ]
)
ENCODINGS = st.sampled_from(
    [*"7bit 8bit binary base64 quoted-printable BASE64 x-uuencode base64;x".split(), "", "base 64"]
)
TYPES = st.sampled_from(
    [
        *"text/plain text/html text/calendar application/pdf image/png TEXT/HTML".split(),
        *"application/xhtml+xml message/delivery-status text / text/ */*".split(),
        *("", "text/html; charset", "text/plain; ;;=", "text/\x1b[2J"),
    ]
)
BOUNDARIES = st.sampled_from(["b", "bb", "=_b.1", 'b"', "b b", "-", "", "ü", "x" * 80])
DISPOSITIONS = st.sampled_from(
    [
        *("attachment", "inline; filename=a.pdf", 'attachment; filename="a b.exe', "; ;", "="),
        *("attachment; filename*=utf-8''%e4%zz", "attachment; filename*1=b; filename*0=a"),
        "attachment; filename==?klingon?q?=E4?=",
    ]
)
HTML = st.sampled_from(
    [
        *("<html>", "<p>", "</p>", "<b", "</", "<!--", "-->", "<style>", "</style", "<script", "<"),
        *('<a href="', "<a href=http://x.example/a?b>", "<div style='display:none'>", "</div>"),
        *('<font color="#fff">', "color=", "rgb(1,2,3)", "&#102;", "&#x110000;", "&#9999999999;"),
        *("&amp", "&", '"', "'", ">", "fr<!-- -->ee", "<p style=font-size:1px>", "\0"),
    ]
)
SCRIPTS = st.sampled_from(
    [
        *(
            "fr\u200bee",
            "ｆｒｅｅ",
            "frее",
            "𝐟𝐫𝐞𝐞",
            "漢字仮名",
            "ภาษาไทย",
            "हिन्दी",
            "👩\u200d👩",
            "\u0300",
        ),
        *("\ufeff", "\u202e", "ﬃ", "İ", "ß", "$1,000.00", "0" * 40, "http://a@b.example:81/c%20"),
        *("www.", "!!!", "WORD", "a-b'c", "\x1b[2J", "\x85", "\u2028", "\r", "\n", " ", "word"),
    ]
)
TEXTS = st.lists(st.one_of(SCRIPTS, HTML, st.text(max_size=8)), max_size=8).map("".join)
WORDS = st.one_of(
    TEXTS, st.builds("=?{}?{}?{}?=".format, CHARSETS, st.sampled_from("bqBQx"), TEXTS)
)
HEADERS = st.builds(
    "{}: {}".format,
    st.sampled_from(
        [
            *"Subject From To Reply-To Message-ID Received X-Mailer Date MIME-Version".split(),
            *"Content-Type Content-Disposition Content-Transfer-Encoding X-Thing".split(),
            *("X-Spam-Status", "Status", "Subject ", "Sübject", "", ":", "X-" + "a" * 100),
        ]
    ),
    st.lists(WORDS, max_size=3).map("\n ".join),
)


def _encoded(text, charset, encoding):
    try:
        data = text.encode(charset, "replace")
    except (LookupError, ValueError):
        data = text.encode("utf-8", "surrogatepass")
    if "base64" in encoding.lower():
        return base64.encodebytes(data)
    return quopri.encodestring(data) if "quoted" in encoding else data


@st.composite
def leaves(draw):
    """Draw a part with text or anything in it, under a header that may lie."""
    claimed, encoding = draw(CHARSETS), draw(ENCODINGS)
    truly = claimed if draw(st.booleans()) else draw(CHARSETS)
    really = encoding if draw(st.booleans()) else draw(ENCODINGS)
    lines = [
        f"Content-Type: {draw(TYPES)}; charset={claimed}",
        f"Content-Transfer-Encoding: {encoding}",
    ]
    if draw(st.booleans()):
        lines.append(f"Content-Disposition: {draw(DISPOSITIONS)}")
    lines += draw(st.lists(HEADERS, max_size=2))
    body = draw(st.one_of(TEXTS.map(lambda text: _encoded(text, truly, really)), st.binary()))
    return "\n".join(draw(st.permutations(lines))).encode("utf-8", "surrogatepass") + b"\n\n" + body


@st.composite
def multiparts(draw, inner):
    """Draw a multipart, or a message in a message, of such parts."""
    if draw(st.integers(0, 4)) == 0:
        return b"Content-Type: message/rfc822\n\n" + draw(inner)
    boundary = draw(BOUNDARIES)
    used = (boundary if draw(st.integers(0, 5)) else draw(BOUNDARIES)).encode()
    kind = draw(st.sampled_from(["mixed", "alternative", "digest", "related", ""]))
    parts = draw(st.lists(inner, max_size=3))
    body = b"".join(b"\n--" + used + b"\n" + part for part in parts)
    if draw(st.booleans()):
        body += b"\n--" + used + b"--\n"
    quote = draw(st.sampled_from(['"', ""]))
    head = f"Content-Type: multipart/{kind}; boundary={quote}{boundary}{quote}\n\n"
    return head.encode() + draw(st.binary(max_size=4)) + body


TREES = st.recursive(leaves(), multiparts, max_leaves=6)


@st.composite
def mails(draw):
    """Draw the bytes of a mail."""
    head = "".join(line + "\n" for line in draw(st.lists(HEADERS, max_size=4)))
    raw = b"From: a@example.org\n" + head.encode("utf-8", "surrogatepass") + draw(TREES)
    if draw(st.booleans()):
        raw = b"From a@example.org Mon Nov 20 10:00:00 2023\n" + raw
    line_end = draw(st.sampled_from([b"\n", b"\n", b"\r\n", b"\r", b"\r\r\n"]))
    return draw(spoiled(raw.replace(b"\n", line_end)))


@st.composite
def spoiled(draw, raw):
    """Draw the bytes as they are, or cut, doubled, or with other bytes in places."""
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2, 5]))):
        at = draw(st.integers(0, len(raw)))
        end = draw(st.integers(at, min(len(raw), at + 40)))
        piece = draw(
            st.one_of(
                st.just(b""),
                st.just(2 * raw[at:end]),
                st.binary(max_size=6),
                st.sampled_from(
                    [b"\n", b"\n\n", b"\0", b"\xff", b"--", b"\xe4", b":", b'"', b"\x1b$B"]
                ),
            )
        )
        raw = raw[:at] + piece + raw[end:]
    if draw(st.integers(0, 9)) == 0:
        raw = raw[: draw(st.integers(0, len(raw)))]
    return raw
