from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading import mail as mbox
from nbspam.reading.message import parse, parse_text
from nbspam.tokens.tokenized import digest_of, tokenize

MAIL = b"""\
From: Ann <ann@example.org>
To: ben@example.com
Subject: the meeting on Friday
Message-ID: <one@example.org>
Received: from mx.example.org by mail.example.com; Fri, 1 Mar 2024 10:00:00 +0000

Hello Ben,
shall we meet at noon?
"""


WITHOUT_ID = MAIL.replace(b"Message-ID: <one@example.org>\n", b"")


def digest(raw):
    return tokenize(parse(raw), digest=True).digest


@given(st.lists(st.text()))
def test_a_digest_is_32_hexadecimal_digits(tokens):
    found = digest_of(tokens, [])
    assert bytes.fromhex(found).hex() == found
    assert len(found) == 32


def after_the_header(line):
    return lambda mail: mail.replace(b"\n\n", b"\n" + line + b"\n\n", 1)


@each("mail", [MAIL, WITHOUT_ID])
@each(
    "on_the_way",
    [
        after_the_header(b"X-Nbspam: spam, probability=0.998712, version=1.0"),
        after_the_header(b"X-Nbspam-Evidence: meeting noon"),
        after_the_header(b"Status: O\nX-Status: AF\nX-Keywords: later\nX-UID: 17\nLines: 3"),
        after_the_header(b"Content-Length: 38"),
        after_the_header(b"X-Bogosity: Ham, tests=bogofilter"),
        after_the_header(b"X-Spam-Status: No, score=0.1"),
        lambda mail: b"From ann@example.org Fri Mar  1 10:00:00 2024\n" + mail,
        lambda mail: mail.replace(b"\n", b"\r\n"),
        lambda mail: (b"From a@b.org Fri Mar  1 10:00:00 2024\n" + mail).replace(b"\n", b"\r\n"),
        lambda mail: mail + b"\n",
        lambda mail: mail.rstrip(b"\n"),
        lambda mail: mail.replace(b"Hello", b"Hello ").replace(b"noon?", b"noon?\t\n\n"),
    ],
)
def test_what_software_adds_on_the_way_is_no_part_of_a_message(mail, on_the_way):
    assert on_the_way(mail) != mail
    assert digest(mail) == digest(on_the_way(mail))


@each("mail", [MAIL, WITHOUT_ID])
def test_a_message_out_of_an_mbox_is_the_one_that_was_put_in(tmp_path, mail):
    body = mail + b"From here on it is another line.\n"
    quoted = body.replace(b"\nFrom here", b"\n>From here")
    box = tmp_path / "box"
    line = b"From ann@example.org Fri Mar  1 10:00:00 2024\n"
    box.write_bytes(line + quoted + b"\n" + line + mail + b"\n")
    with box.open("rb") as stream:
        found = [digest(raw) for raw in mbox.messages(stream, 1 << 20)]
    assert [digest(body), digest(mail)] == found
    assert digest(quoted) == digest(body)  # a copy whose quotes nobody took away


@each(
    "other",
    [
        MAIL.replace(b"<one@", b"<two@"),
        MAIL.replace(b"Message-ID: <one@example.org>\n", b""),
        MAIL.replace(b"noon", b"eight"),
        MAIL.replace(b"Friday", b"Monday"),
        MAIL.replace(b"ann@", b"amy@"),
    ],
)
def test_another_message_has_another_digest(other):
    assert digest(MAIL) != digest(other)


NUMBERED = (
    "Subject: offer number {}\n\nhello",
    "Subject: offer\n\nnumber {} of our offers",
    "Subject: offer\nContent-Type: text/html\n\n<html><body>number <b>{}</b> of our offers</body>",
    f"{'our offer of today is a fine one, ' * 20} number {{}}",
)


@each("form", NUMBERED)
def test_texts_that_differ_in_a_number_are_several_messages(form):
    raws = [form.format(i).encode() for i in range(1, 7)]
    assert len({tuple(tokenize(parse(raw)).tokens) for raw in raws}) == 1
    assert len(set(map(digest, raws))) == 6
    numbered = [MAIL.replace(b"noon?", b"%d?" % i) for i in range(1, 7)]
    assert len(set(map(digest, numbered))) == 1  # a Message-ID says which message it is


@each("line", [b"Message-ID:", b"Message-ID: <>", b"Message-ID: < >"])
def test_an_empty_message_id_is_none(line):
    mail = MAIL.replace(b"Message-ID: <one@example.org>", line)
    assert digest(mail) != digest(mail.replace(b"Friday", b"friday"))
    full = mail.replace(line, line + b"\nMessage-ID: <one@example.org>")
    assert digest(full) == digest(full.replace(b"Friday", b"friday"))


def test_a_text_is_the_same_message_wherever_it_stands():
    text = "WINNER!  Claim your £ 1,000 prize,\u00a0now: http://prize.example/win"
    raw = text.encode()
    marked = b"X-Nbspam: spam, probability=0.998712, version=1.0\n\n" + raw
    found = tokenize(parse_text(text), digest=True).digest
    for same in (raw, raw + b"\n", raw + b"\r\n", b"\n" + raw, marked):
        assert digest(same) == found


def test_a_text_is_known_however_it_is_encoded():
    head = b"Subject: %s\nContent-Type: text/plain; charset=%s\nContent-Transfer-Encoding: %s\n\n"
    eight = head % ("caf\u00e9 1".encode(), b"utf-8", b"8bit") + "caf\u00e9 at 1".encode()
    quoted = (
        head % (b"=?utf-8?q?caf=C3=A9_1?=", b"utf-8", b"quoted-printable") + b"caf=C3=A9 at=\n 1"
    )
    texts = [part.text for part in parse(quoted).parts]
    assert texts == [part.text for part in parse(eight).parts]
    one, other = (digest_of((), parse(raw).headers, texts=texts) for raw in (eight, quoted))
    assert one == other


def test_the_first_message_id_counts_and_is_not_mistaken_for_a_token():
    headers = [("message-id", "free")]
    assert digest_of({"prize"}, headers) != digest_of(["free", "prize"], [])
    assert digest_of(set(), headers) != digest_of({"free"}, [])
    one, two = ("message-id", "<one>"), ("message-id", "<two>")
    assert digest_of({"a"}, [one, two]) == digest_of({"a"}, [one])
    assert digest_of({"a"}, [one, two]) != digest_of({"a"}, [two])
    assert len(digest_of({"\ud800"}, [("message-id", "\udfff")])) == 32
