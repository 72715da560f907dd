"""Header fields, and the Message-ID that logs are searched for, whatever mail it is in."""

from ast import literal_eval

from golden_tables import golden_table
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading.header_fields import content_type, split_header
from nbspam.reading.message import HEAD, Identity, RawMessage, identity, message_id

TYPE = ("content-type", "text/html")


def split(raw):
    limits: set[str] = set()
    headers, body = split_header(raw, limits)
    return headers, body, limits


@each(
    "junk", [b"this is no field\n", b": no name\n", b"\x00\x01\n", b"two words: x\n", b" \x00 \n"]
)
def test_a_header_goes_on_after_junk_if_a_field_of_mime_follows(junk):
    headers, body, limits = split(b"From: a\n" + junk + b"Content-Type: text/html\n\nbody\n")
    assert headers[0][0] == "from"
    assert TYPE in headers
    assert body == b"body\n"
    assert not limits


def test_what_stands_right_after_the_header_or_far_below_is_text():
    text = b"this is the text\nNote: with a colon\n\nmore\n"
    assert split(b"Subject: x\n" + text) == ([("subject", "x")], text, set())
    text = b"junk\n" + b"a line of text\n" * 9_000 + b"Content-Type: text/html\n\nmore\n"
    assert split(b"Subject: x\n" + text)[1] == text


def test_fields_of_mime_are_found_beyond_the_number_of_fields():
    many = b"".join(b"X-%d: y\n" % i for i in range(2_000))
    headers, body, limits = split(many + b"Content-Type: text/html\nX-Z: y\n\nbody")
    assert len(headers) == 1_001
    assert headers[-1] == TYPE
    assert body == b"body"
    assert limits == {"header"}


@each("more", range(-3, 4))
@each("unit", [b"a b c\n ", b"x", b"y\nX-A: "])
def test_fields_of_mime_are_found_beyond_the_length_of_a_header(unit, more):
    filler = b"X-A: " + unit * ((262_144 + more - 10) // len(unit)) + b"z" * (more + 3)
    headers, body, limits = split(b"To: b\n" + filler + b"\nContent-Type:\n text/html\n\nbody")
    assert headers[-1] == TYPE
    assert body == b"body"
    assert limits <= {"header"}


@each("value, expected", golden_table("reading/headers.table", 2, "content types"))
def test_content_types(value, expected):
    assert content_type(value, "text/plain") == literal_eval(expected)


@each("raw, found", golden_table("reading/headers.table", 2, "message ids"))
def test_message_id(raw, found):
    assert message_id(raw.encode("latin-1")) == found
    assert message_id(bytearray(raw, "latin-1")) == found


def test_it_is_looked_for_in_the_beginning_alone():
    filler = b"X-Filler: " + b"x" * HEAD + b"\n"
    assert message_id(filler + b"Message-ID: <1@x>\n\n") == ""
    assert len(message_id(b"Message-ID: " + b"x" * 1_000_000)) < HEAD


@given(st.binary(max_size=300), st.binary(max_size=100))
def test_it_is_one_line_of_the_header(before, value):
    found = message_id(before + b"\nMessage-ID: " + value + b"\n\nbody")
    assert not {"\n", "\r"} & set(found)


def test_what_identifies_a_message(tmp_path):
    mail = b"Message-ID: <1@x>\n\nhello\n"
    path = tmp_path / "mail.eml"
    path.write_bytes(mail)
    assert identity(RawMessage("-", None, mail)) == Identity("<1@x>", len(mail))
    assert identity(RawMessage("mail.eml", None, path)) == Identity("<1@x>", len(mail))
    assert identity(RawMessage("table:1", None, "Message-ID: <1@x>")) == Identity()
    assert identity(RawMessage("none", None, tmp_path / "none")) == Identity()


RAW = b"""Subject: %b
From: ann@example.org
Content-Type: multipart/alternative;
 boundary=x

--x
Content-Type: text/plain; format=flowed;
\tCharset="%b"

hello
--x--
"""


@each(
    "charset, codec, word",
    [
        ("windows-1251", "cp1251", "приз"),
        ("gb2312", "gbk", "免费的钱"),
        ("koi8-r", "koi8-r", "приз"),
        ("iso-8859-1", "utf-8", "приз"),
        ("gb2312", "utf-8", "приз"),
        ("utf-16", "cp1252", "Müller"),
        ("iso-2022-jp", "cp1252", "Müller"),
        ("unknown", "cp1252", "Müller"),
        ("utf-8", "cp1252", "Müller"),
    ],
)
def test_a_subject_without_encoding_has_the_charset_of_the_body(charset, codec, word):
    headers, _, _ = split(RAW % (word.encode(codec), charset.encode()))
    assert headers[:2] == [("subject", word), ("from", "ann@example.org")]
