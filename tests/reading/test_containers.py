"""All text of a mail is in a container, which is read in part at most: a limit says so."""

import pytest

from nbspam.reading.message import parse
from nbspam.tokens.tokenized import tokenize

HEAD = b"From: ann@example.org\nSubject: hello\nMIME-Version: 1.0\nContent-Type: "
PART = b"\n\nAAAA\n"


@pytest.mark.parametrize(
    "form",
    [
        b'application/ms-tnef; name="winmail.dat"',
        b'application/octet-stream; name="WINMAIL.DAT"',
        b"application/pkcs7-mime; smime-type=signed-data",
        b"application/x-pkcs7-mime; smime-type=enveloped-data",
    ],
)
def test_text_in_a_container_is_said_to_be_unread(form):
    assert "container" in parse(HEAD + form + PART).limits
    assert "limit:container" in tokenize(parse(HEAD + form + PART)).tokens


def test_a_mail_with_text_of_its_own_is_read():
    mail = (
        HEAD + b"multipart/mixed; boundary=cut\n\n--cut\n\nHello Ben\n--cut\nContent-Type: "
        b"application/ms-tnef" + PART + b"--cut--\n"
    )
    assert parse(mail).limits == frozenset()
