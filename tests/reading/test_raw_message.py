import gzip
import io

import pytest
from one_case import each

from nbspam.errors import SourceError
from nbspam.labels import normal_label
from nbspam.reading.message import BYTES_LIMIT, RawMessage
from nbspam.reading.source import one_message

MAIL = b"Subject: hello\n\nthe body\n"


def test_bytes_are_a_mail_and_text_is_text():
    assert RawMessage("-", None, MAIL).message().header("subject") == "hello"
    message = RawMessage("a.tsv:1", "ham", MAIL.decode()).message()
    assert message.headers == []
    assert message.parts[0].text == MAIL.decode()


@each("content", [MAIL, gzip.compress(MAIL)])
def test_path_is_a_file_with_a_mail(content, tmp_path):
    path = tmp_path / "mail"
    path.write_bytes(content)
    assert RawMessage(str(path), None, path).message() == RawMessage("-", None, MAIL).message()


def test_file_that_is_gone_and_a_damaged_archive_are_named(tmp_path):
    path = tmp_path / "gone.eml"
    with pytest.raises(SourceError, match=r"gone\.eml: cannot be read \(No such file.*\); check"):
        RawMessage(str(path), None, path).message()
    path = tmp_path / "mail.gz"
    path.write_bytes(gzip.compress(MAIL)[:-6] + b"\x00\x00\x00\x00\x00\x00")
    with pytest.raises(SourceError, match=r"mail\.gz: cannot be read \(damaged archive: .+\); "):
        RawMessage(str(path), None, path).message()


def test_huge_archives_and_streams_are_read_in_part(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(MAIL + b"x" * (3 * BYTES_LIMIT), 1))
    assert RawMessage(str(path), None, path).message().header("subject") == "hello"
    stream = io.BytesIO(b"x" * 3_000_000)
    raw = one_message("-", stream, "spam", limit=100)
    assert raw == RawMessage("-", "spam", b"x" * 100)
    assert stream.read() == b""


def test_normal_label():
    labels = {"Spam": "spam", " HAM ": "ham", "Promo": "Promo", " 1": "1", "": ""}
    assert {label: normal_label(label) for label in labels} == labels
