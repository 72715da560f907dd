"""Whole messages, and as their sources have them."""

import email
import email.policy
import encodings
import gzip
import itertools
import json
import time
from email.message import EmailMessage
from pathlib import Path

import pytest
from golden_tables import golden_table
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.names import normal_label
from nbspam.reading.header_fields import decode_words
from nbspam.reading.message import (
    BYTES_LIMIT,
    Message,
    RawMessage,
    is_mail,
    parse,
)
from nbspam.reading.mime import Part

REPOSITORY = Path(__file__).parents[2]
GOLDEN = REPOSITORY / "tests" / "golden" / "reading"
SECONDS = 5  # of CPU; generous: each of the bounded cases takes a fraction of one


def size(message):
    return sum(len(part.text) for part in message.parts)


def parsed_in_time(raw):
    start = time.process_time()
    message = parse(raw)
    for name, _ in message.headers[:10]:
        message.header(name)
    assert time.process_time() - start < SECONDS, raw[:200]
    assert size(message) <= 2 << 20
    assert len(message.parts) <= 1_000
    assert len(message.headers) <= 1_000
    return message


@each("case", sorted(GOLDEN.glob("*.eml")))
def test_golden_mail(case):
    """Beside each mail is a line with its headers, and a line for each part."""
    headers, *parts = map(json.loads, case.with_suffix(".jsonl").read_text("utf-8").splitlines())
    message = parse(case.read_bytes())
    wanted = [(part["type"], part["text"], part.get("filename", "")) for part in parts]
    assert [(part.content_type, part.text, part.filename) for part in message.parts] == wanted
    assert headers == {name: message.header(name) for name in headers}


def test_every_golden_file_has_its_fellow():
    mails = {path.stem for path in GOLDEN.glob("*.eml")}
    assert mails == {path.stem for path in GOLDEN.glob("*.jsonl")}


@each("path", sorted((REPOSITORY / "sample_data" / "odd").glob("*.eml")))
def test_odd_samples_are_parsed(path):
    message = parsed_in_time(path.read_bytes())
    assert message.parts
    assert bool(message.headers) == (path.stem not in ("empty", "no-headers"))


# Bounds


@pytest.mark.few(1)
@pytest.mark.parametrize("unit", [b"four words a line\n", b"a\rb\r\n", b"w\x00", b"x"])
def test_100_mb_body(unit):
    message = parsed_in_time(b"Subject: large\n\n" + unit * (100_000_000 // len(unit)))
    assert message.header("subject") == "large"
    assert size(message) > 131_072


MULTIPART = b"Subject: x\nContent-Type: multipart/digest; boundary=b\n\n"
NUMBERS = itertools.count()


def words_in_charsets_of_their_own(count):
    return b"".join(b"=?x%d?q?=E4?=" % next(NUMBERS) for _ in range(count))


@each("begins, unit, n, ends", golden_table("reading/headers.table", 4, "long headers"))
def test_no_header_takes_more_than_linear_time(begins, unit, n, ends):
    parsed_in_time((begins + unit * int(n) + ends).encode("latin-1"))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "begins, pieces, times", list(golden_table("reading/headers.table", 3, "large mails"))
)
def test_no_input_takes_more_than_linear_time(begins, pieces, times):
    unit = b""
    for piece in pieces.split(" + "):
        text, _, n = piece.partition(" * ")
        unit += text.encode("latin-1") * int(n or 1)
    words = words_in_charsets_of_their_own(15_000)
    raw = begins.encode().replace(b"<MULTIPART>", MULTIPART) + unit * int(times)
    parsed_in_time(raw.replace(b"<WORDS>", words))


def test_charsets_that_nobody_knows_are_not_kept_in_memory():
    """Python remembers each name that it looked for in vain, as long as the process lives."""
    before = len(encodings._cache)
    for _ in range(100):
        parse(b"Content-Type: text/plain; charset=nobody-%d\n\n\xe4" % next(NUMBERS))
    parse(b"Subject: x\nContent-Type: x/y; name=" + words_in_charsets_of_their_own(100))
    assert len(encodings._cache) == before


# Properties

PIECES = [text.encode("latin-1") for text in golden_table("reading/headers.table", 1, "pieces")]
MAIL_PIECES = st.sampled_from(PIECES)


def holds(message):
    assert size(message) <= 2 << 20
    assert len(message.parts) <= 1_000
    for name, value in message.headers:
        assert name == name.lower()
        assert "\n" not in value
        message.header(name).encode("utf-8")
    for part in message.parts:
        f"{part.content_type}{part.text}{part.filename}".encode()


LIKE_MAIL = st.lists(st.one_of(MAIL_PIECES, MAIL_PIECES, st.binary(max_size=8)), max_size=40)


@given(st.binary(max_size=400) | LIKE_MAIL.map(lambda pieces: b"Subject: x\n" + b"".join(pieces)))
def test_parse_never_raises(raw):
    holds(parse(raw))
    is_mail(raw)


@given(st.text(max_size=80))
def test_decode_words_never_raises(value):
    decode_words(value)
    decode_words(f"=?utf-8?b?{value}?= =?utf-7?q?{value}?=")


# The standard library's reader as a second opinion on valid mail

WORDS = st.text(
    st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"], include_characters="\n"),
    min_size=1,
    max_size=120,
)


@st.composite
def valid_mails(draw):
    mail = EmailMessage()
    mail["Subject"] = draw(WORDS).replace("\n", " ").strip()
    encoding = draw(st.sampled_from(["base64", "quoted-printable", "8bit"]))
    mail.set_content(draw(WORDS), charset="utf-8", cte=encoding)
    html = draw(st.none() | WORDS)
    if html is not None:
        mail.add_alternative(f"<p>{html}</p>", subtype="html", cte="base64")
    for number, content in enumerate(draw(st.lists(WORDS | st.just(b"\x00\x01"), max_size=2))):
        if isinstance(content, str):
            mail.add_attachment(content, filename=f"note{number}.txt", cte="base64")
        else:
            mail.add_attachment(content, "application", "pdf", filename=f"é{number}.pdf")
    return mail


def plain(text):
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")


@given(valid_mails(), st.sampled_from([email.policy.SMTP, email.policy.default]))
def test_valid_mail_reads_as_in_the_standard_library(mail, policy):
    raw = mail.as_bytes(policy=policy)
    reference = email.message_from_bytes(raw, policy=email.policy.default)
    expected = [
        (
            part.get_content_type(),
            plain(part.get_content()) if part.get_content_maintype() == "text" else "",
            part.get_filename() or "",
        )
        for part in reference.walk()
        if not part.is_multipart()
    ]
    message = parse(raw)
    actual = [(p.content_type, plain(p.text), p.filename) for p in message.parts]
    assert expected == actual
    assert str(reference["subject"]).split() == message.header("subject").split()


# The small ones


def test_text_of_a_table_has_no_headers_and_a_header_that_is_not_there_is_empty():
    expected = Message([], [Part("text/plain", "Subject: not a header\n\nx")])
    assert expected == RawMessage("-", None, "Subject: not a header\n\nx").message()
    assert parse(b"Subject: x\n\n").header("to") == ""


@each("sample, expected", golden_table("reading/headers.table", 2, "mails"))
def test_is_mail(sample, expected):
    assert is_mail(sample.encode("latin-1")) == (expected == "True")


MAIL = b"Subject: hello\n\nthe body\n"


def test_a_huge_archive_is_read_in_part(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(MAIL + b"x" * (3 * BYTES_LIMIT), 1))
    message = RawMessage(str(path), None, path).message()
    assert message.header("subject") == "hello"
    assert message.limits == {"bytes", "text"}


def test_normal_label():
    labels = {"Spam": "spam", " HAM ": "ham", "PromO  A\t": "promo a", " 1": "1", "": ""}
    labels |= {"a\u202eb": "ab", "\u05d0\u200f": "\u05d0"}
    assert {label: normal_label(label) for label in labels} == labels
