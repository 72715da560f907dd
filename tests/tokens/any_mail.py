"""Strategies that draw mails: valid ones, and ones that are broken in every way.

A mail is drawn as a tree of parts, each with headers that fit it or lie about it; then its bytes
are spoiled, or not.
"""

import base64
import quopri

from golden_tables import golden_table
from hypothesis import strategies as st


def sampled(section, *more):
    """Return a strategy that draws one of a section of tests/golden/tokens/any_mail.table."""
    return st.sampled_from([*golden_table("tokens/any_mail.table", 1, section), *more])


CHARSETS = sampled("charsets", "")
ENCODINGS = sampled("encodings", "")
TYPES = sampled("types", "")
BOUNDARIES = sampled("boundaries", "")
DISPOSITIONS = sampled("dispositions")
HTML = sampled("html")
SCRIPTS = sampled("scripts")
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


# Verdicts, and what is written after a message arrived: no part of it.
NEVER = """
X-Spam-Status X-Spam-Flag X-Spam-Level X-Spam-Score X-Spam-Checker-Version X-Spam X-Spam-Anything
X-Bogosity X-Nbspam X-CRM114-Status X-DSPAM-Result X-Rspamd-Score X-Rspamd-Queue-Id
Authentication-Results ARC-Authentication-Results ARC-Seal ARC-Message-Signature Received-SPF
DKIM-Signature X-Virus-Scanned X-Barracuda-Spam-Score X-Proofpoint-Spam-Details
X-MailScanner-SpamCheck X-MS-Exchange-Organization-SCL X-Forefront-Antispam-Report
X-Microsoft-Antispam X-Ham-Report X-Junk-Score
Status X-Status X-Keywords X-UID X-UIDL X-Label X-Mozilla-Status X-Mozilla-Status2 X-Mozilla-Keys
X-Gmail-Labels Content-Length Lines X-IMAPbase X-Evolution
""".split()
