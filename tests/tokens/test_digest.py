import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.reading import mbox
from nbspam.reading.message import parse
from nbspam.tokens.digest import digest_of
from nbspam.tokens.tokenizer import message_tokens

MAIL = b"""\
From: Ann <ann@example.org>
To: ben@example.com
Subject: the meeting on Friday
Message-ID: <one@example.org>
Received: from mx.example.org by mail.example.com; Fri, 1 Mar 2024 10:00:00 +0000

Hello Ben,
shall we meet at noon?
"""


def digest(raw: bytes) -> str:
    message = parse(raw)
    return digest_of(message_tokens(message), message.headers)


@given(st.sets(st.text()), st.randoms())
def test_the_order_of_the_tokens_does_not_matter(tokens, chance):
    mixed = list(tokens)
    chance.shuffle(mixed)
    assert digest_of(tokens, []) == digest_of(mixed, [])


def test_a_digest_is_32_hexadecimal_digits():
    found = digest_of({"free", "prize"}, [])
    assert len(found) == 32
    assert bytes.fromhex(found).hex() == found


def after_the_header(line: bytes) -> bytes:
    return MAIL.replace(b"\n\n", b"\n" + line + b"\n\n", 1)


@pytest.mark.parametrize(
    "same",
    [
        after_the_header(b"X-Nbspam: spam, probability=0.998712, version=1.0"),
        after_the_header(b"X-Nbspam-Evidence: meeting noon"),
        after_the_header(b"Status: RO"),
        after_the_header(b"X-Status: AF"),
        after_the_header(
            b"Status: O\nX-Status: \nX-Keywords: later\nX-UID: 17\nContent-Length: 38"
        ),
        after_the_header(b"X-Bogosity: Ham, tests=bogofilter"),
        after_the_header(b"X-Spam-Status: No, score=0.1"),
        b"From ann@example.org Fri Mar  1 10:00:00 2024\n" + MAIL,
        MAIL.replace(b"\n", b"\r\n"),
        b"From ann@example.org Fri Mar  1 10:00:00 2024\r\n" + MAIL.replace(b"\n", b"\r\n"),
        MAIL + b"\n",
    ],
    ids="verdict evidence status x-status mutt bogofilter spamassassin From CRLF both end".split(),
)
def test_what_software_adds_on_the_way_is_no_part_of_a_message(same):
    assert same != MAIL
    assert digest(MAIL) == digest(same)


def test_a_message_out_of_an_mbox_is_the_one_that_was_put_in(tmp_path):
    body = MAIL + b"From here on it is another line.\n"
    quoted = body.replace(b"\nFrom here", b"\n>From here")
    box = tmp_path / "box"
    line = b"From ann@example.org Fri Mar  1 10:00:00 2024\n"
    box.write_bytes(line + quoted + b"\n" + line + MAIL + b"\n")
    with box.open("rb") as stream:
        found = [digest(raw) for raw in mbox.messages(stream, 1 << 20)]
    assert [digest(body), digest(MAIL)] == found


@pytest.mark.parametrize(
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


def test_the_message_id_is_not_mistaken_for_a_token():
    headers = [("message-id", "free")]
    assert digest_of({"prize"}, headers) != digest_of({"free", "prize"}, [])
    assert digest_of(set(), headers) != digest_of({"free"}, [])


def test_of_two_message_ids_the_first_counts():
    one, two = ("message-id", "<one>"), ("message-id", "<two>")
    assert digest_of({"a"}, [one, two]) == digest_of({"a"}, [one])
    assert digest_of({"a"}, [one, two]) != digest_of({"a"}, [two])


def test_half_of_a_surrogate_pair_has_a_digest():
    assert len(digest_of({"\ud800"}, [("message-id", "\udfff")])) == 32
