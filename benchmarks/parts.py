"""Tricks with parts, attachments, large mails and reports: ham where a reader may not see it.

Each adds 2,000 words of ham to a mail that shows the spam, or hides the spam from a filter that
does not read a mail whole.  They are tricks as in `tricks.py`.
"""

import base64
import random
import re
from collections.abc import Callable

from tricks import (
    BIG,
    Body,
    Spam,
    Trick,
    base64_lines,
    multipart,
    page,
    part,
    plain,
    uuencoded,
)

_HAM_WORDS = 2_000
_ATTACHED = "Content-Disposition: attachment; filename="
_REPORT = (
    "Received: from localhost by amavisd.attacker.example with SpamAssassin (version 4.0)\n"
    "X-Spam-Checker-Version: SpamAssassin 4.0\n"
)


def _ham(ham: list[str], number: int = _HAM_WORDS) -> str:
    words = " ".join(ham).split()
    return " ".join((words * (number // len(words) + 1))[:number])


def _plain(text: str, fields: str = "") -> bytes:
    return part(Body(fields + plain("").fields, plain(text).body))


def _page(source: str, fields: str = "") -> bytes:
    return part(Body(fields + page("").fields, page(source).body))


def _message(text: str, subject: str = "minutes of the meeting", fields: str = "") -> bytes:
    inner = f"From: ann@example.org\nSubject: {subject}\n\n{text}\n"
    return f"Content-Type: message/rfc822\n{fields}\n{inner}".encode()


def _with(kind: str, *order: str, parameters: str = "") -> Trick:
    """Return a trick: a multipart of the spam and 2,000 words of ham, each as a kind of part."""

    def made(spam: Spam, ham: list[str], _: random.Random) -> Body:
        padding = _ham(ham)
        start, root = "Content-ID: <start>\n", "Content-ID: <root>\n"
        first_words = " ".join(spam.text.split()[:15])
        parts = {
            "spam page": _page(spam.html),
            "spam text": _plain(spam.text),
            "spam stub": _plain(first_words),
            "spam started": _page(spam.html, start),
            "spam image": b"Content-Type: image/png\n\n",
            "ham page": _page(padding),
            "ham text": _plain(padding),
            "ham started": _plain(padding, start),
            "ham root": _plain(padding, root),
            "ham page root": _page(padding, root),
            "ham attached": _plain(padding, f"{_ATTACHED}notes.txt\n"),
            "ham page attached": _page(padding, f"{_ATTACHED}notes.html\n"),
            "ham of unknown disposition": _plain(padding, "Content-Disposition: later\n"),
            "ham csv": _plain(padding).replace(b"text/plain", b"text/csv"),
            "ham calendar": _plain(padding).replace(b"text/plain", b"text/calendar"),
            "ham message": _message(padding),
            "ham subjects": b"\n--=_frontier\n".join(
                _message("", padding[i : i + 300]) for i in range(0, 6_000, 300)
            ),
            "ham digest": part(
                multipart("digest", [b"\nSubject: x\n\n" + padding.encode()], "=_d")
            ),
            "ham attached parts": part(
                Body(
                    f"{_ATTACHED}x\n" + multipart("mixed", [], "=_in").fields,
                    multipart("mixed", [_plain(padding)], "=_in").body,
                )
            ),
            "both": part(multipart("alternative", [_plain(padding), _page(spam.html)], "=_in")),
        }
        return multipart(kind, [parts[name] for name in order], "=_frontier", parameters)

    return made


def _start(name: str) -> str:
    return f'boundary="=_frontier"; start="<{name}>"; type="text/html"'


def _filled(inner: str, size: int = 600 << 10) -> Trick:
    """Return a trick that puts so many bytes of hidden ham before and after the spam."""

    def made(spam: Spam, ham: list[str], _: random.Random) -> Body:
        filling = (inner.format(_ham(ham)) + "\n") * (size // _HAM_WORDS // 6)
        filling = filling[: size - len(inner)] + inner.rpartition("{}")[2]
        return page(f"{filling}\n{spam.html}\n{filling}")

    return made


def _between(before: bytes, number: int) -> Trick:
    """Return a trick that puts so many parts before and after the spam."""

    def made(spam: Spam, ham: list[str], _: random.Random) -> Body:
        words = _ham(ham).split()
        parts = [
            before % " ".join(words[i % 1_900 : i % 1_900 + 10]).encode() for i in range(number)
        ]
        return multipart("mixed", [*parts, _page(spam.html), *parts])

    return made


def _long(spam: Spam, ham: list[str], _: random.Random) -> Body:
    """Return the spam between texts of ham, too long to be read."""
    filling = _ham(ham, 40_000)
    long = "\n".join([filling] * (3 * (1 << 20) // len(filling)))
    return plain(f"{long}\n{spam.text}\n{long}")


def _report(kind: str, fields: str) -> Trick:
    def made(spam: Spam, ham: list[str], _: random.Random) -> Body:
        original = _message(_ham(ham), fields="X-Spam-Type: original\n")
        if kind == "text":
            shown = b"text/plain; x-spam-type=original\nContent-Disposition: attachment"
            original = original.replace(b"message/rfc822", shown)
        else:
            original = original.replace(b"rfc822", b"rfc822; x-spam-type=original", 1)
        body = multipart("mixed", [_page(spam.html), original])
        return Body(fields + body.fields, body.body)

    return made


def _delivery_report(spam: Spam, ham: list[str], _: random.Random) -> Body:
    status = b"Content-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example.org\n"
    parts = [_page(spam.html), status, _message(_ham(ham))]
    return multipart("report", parts, "=_r", 'boundary="=_r"; report-type="delivery-status"')


def _uuencoded(spam: Spam, ham: list[str], _: random.Random) -> Body:
    return plain(f"{spam.text}\n\n{uuencoded(_ham(ham).encode()).decode()}")


def _winmail(spam: Spam, ham: list[str], _: random.Random) -> Body:
    data = b"\x78\x9f\x3e\x22\x01\x00" + _ham(ham).encode()
    fields = b"Content-Type: application/ms-tnef\nContent-Transfer-Encoding: base64\n\n"
    return multipart("mixed", [_page(spam.html), fields + base64_lines(data)])


# Lines of encoded bytes: noise that looks like words, which most spams do not have.
_CODES: dict[str, Callable[[bytes], bytes]] = {
    "Ascii85": lambda data: base64.a85encode(data, wrapcol=76),
    "base85": lambda data: b"\n".join(re.findall(b".{1,76}", base64.b85encode(data))),
    "base64": base64_lines,
}


def _encoded_below(code: Callable[[bytes], bytes]) -> Trick:
    def made(spam: Spam, ham: list[str], rng: random.Random) -> Body:
        mail = plain(spam.text)
        return Body(mail.fields, mail.body + b"\n\n" + code(rng.randbytes(30_000)) + b"\n")

    return made


_SHORT = re.sub(rb"\n$", b"", _plain("%s"))
UNSEEN: dict[str, Trick] = {
    "ham in text/plain, first": _with("alternative", "ham text", "spam page"),
    "ham in text/plain, last": _with("alternative", "spam page", "ham text"),
    "ham in HTML, last": _with("alternative", "spam text", "ham page"),
    "ham in HTML, first": _with("alternative", "ham page", "spam text"),
    "ham in HTML between two": _with("alternative", "spam text", "ham page", "spam page"),
    "ham in HTML, last of two": _with("alternative", "spam page", "ham page"),
    "ham in an alternative in an alternative": _with("alternative", "both", "spam page"),
    "ham in a calendar": _with("alternative", "spam page", "ham calendar"),
    "ham in the first, start= names the spam": _with(
        "related", "ham root", "spam started", parameters=_start("start")
    ),
    "ham at start=, the spam first": _with(
        "related", "spam page", "ham started", parameters=_start("start")
    ),
    "ham in a related part": _with("related", "spam page", "ham page root"),
    "ham first in related, as text": _with("related", "ham text", "spam page"),
    "ham in an attached text": _with("mixed", "spam page", "ham attached"),
    "ham in an attached page": _with("mixed", "spam page", "ham page attached"),
    "ham in a text to show later": _with("mixed", "spam page", "ham of unknown disposition"),
    "ham in a table": _with("mixed", "spam page", "ham csv"),
    "ham in attached parts": _with("mixed", "spam page", "ham attached parts"),
    "ham in an attached message": _with("mixed", "spam page", "ham message"),
    "ham in an attached message, first": _with("mixed", "ham message", "spam page"),
    "ham in 20 attached messages' Subjects": _with("mixed", "spam page", "ham subjects"),
    "ham in a digest": _with("mixed", "spam page", "ham digest"),
    "ham in a report of amavis": _report("message", _REPORT),
    "ham in a report, as text": _report("text", _REPORT),
    "ham in a delivery report": _delivery_report,
    "ham uuencoded below": _uuencoded,
    **{f"ham's bytes in {name} below": _encoded_below(code) for name, code in _CODES.items()},
    "ham in winmail.dat": _winmail,
    "600 KiB of hidden ham before and after": _filled('<div style="display:none">{}</div>'),
    "600 KiB of comments before and after": _filled("<!-- {} -->"),
    "50,000 empty spans before": lambda spam, ham, _: page(
        "<span></span>" * 50_000 + spam.html + f'<p style="display:none">{_ham(ham)}</p>'
    ),
    "105 attached texts of ham before and after": _between(
        _SHORT.replace(b"\n\n", b"\nContent-Disposition: attachment\n\n", 1), 105
    ),
    "1,000 texts of 10 words before and after": _between(_SHORT, 1_000),
    "3 MiB of text before and after": _long,
    "700 KiB of comment, the ham behind </html>": lambda spam, ham, _: Body(
        page("").fields,
        page(f"<!-- {'z ' * (BIG // 2)}-->{spam.html}").body + _ham(ham).encode(),
    ),
}
# What is as ham in sight to nearly all readers, so that the score must withstand it.
AS_IN_SIGHT: dict[str, Trick] = {
    "ham in HTML, the plain text a stub of spam": _with("alternative", "spam stub", "ham page"),
}
