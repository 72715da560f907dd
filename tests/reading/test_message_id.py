"""The Message-ID that logs are searched for, whatever mail it is in."""

from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading.message import HEAD, Identity, RawMessage, identity, message_id


@each(
    "raw, found",
    [
        (b"Subject: a\nMessage-ID: <1@example.org>\n\nbody\n", "<1@example.org>"),
        (b"message-id:<1@example.org>\r\nSubject: a\r\n\r\nbody\r\n", "<1@example.org>"),
        (b"Message-ID:\r\n <1@example.org>\r\n\r\n", "<1@example.org>"),  # as Outlook folds it
        (b"Message-ID: <1\n\t@example.org>\n\n", "<1@example.org>"),
        (b"MESSAGE-ID : <1@example.org>", "<1@example.org>"),
        (b"From a@b Mon Nov 17 10:00:00 2026\nMessage-ID: <1@x>\n\n", "<1@x>"),
        (b"Message-ID: <1@x>\nMessage-ID: <2@x>\n\n", "<1@x>"),
        (b"Message-ID: <1@x>\rSubject: a\r\r", "<1@x>"),  # lines of an old Macintosh
        (b"Message-ID: \xe9\x00\n\n", "\xe9\x00"),
        (b"Subject: a\n\nMessage-ID: <of a forwarded mail@x>\n", ""),
        (b"Subject: a\r\n\r\nMessage-ID: <of a forwarded mail@x>\r\n", ""),
        (b"Subject: a\n Message-ID: <folded@x>\n\n", ""),
        (b"X-Message-ID: <1@x>\n\n", ""),
        (b"Message-ID:\n\n <1@x>", ""),
        (b"", ""),
        (b"win a prize", ""),
    ],
)
def test_message_id(raw, found):
    assert message_id(raw) == found
    assert message_id(bytearray(raw)) == found


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
