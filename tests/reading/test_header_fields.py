from one_case import each

from nbspam.reading.header_fields import content_type, split_header

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


@each(
    "value, expected",
    [
        ("Text/HTML; charset=x", ("text/html", {"charset": "x"})),
        ("multipart/mixed; boundary*0=a; boundary*1=b", ("multipart/mixed", {"boundary": "ab"})),
        ('multipart/mixed; boundary="a"; boundary="b"', ("multipart/mixed", {"boundary": "a"})),
        ("html", ("text/html", {})),
        ("nonsense", ("text/plain", {})),
        ("", ("text/plain", {})),
    ],
)
def test_content_types(value, expected):
    assert content_type(value, "text/plain") == expected
