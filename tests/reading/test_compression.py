import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from one_case import each

from nbspam.reading.compression import bare_suffix, open_bytes

CONTENT = b"the same words, packed or not\n" * 10_000
Pack = Callable[[bytes], bytes]


def read(path):
    with open_bytes(path) as stream:
        return stream.read()


@each("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_content_is_what_was_packed_whatever_the_name_and_archives_in_a_row_are_one_file(
    pack, tmp_path
):
    path = tmp_path / "mail"
    path.write_bytes(pack(CONTENT))
    assert read(path) == CONTENT
    path.write_bytes(pack(b"one\n") + pack(b"two\n"))
    assert read(path) == b"one\ntwo\n"


@each("pack", [gzip.compress, bz2.compress, lzma.compress])
@each("at", [12, 30, -10, None])
def test_archive_with_wrong_bytes_or_cut_short_is_an_oserror_that_says_so(pack, at, tmp_path):
    data = bytearray(pack(CONTENT))
    if at is None:
        del data[-20:]
    else:
        data[at] ^= 0xFF
        data[at + 1] ^= 0xFF
    path = tmp_path / "mail"
    path.write_bytes(data)
    with pytest.raises(OSError, match="damaged archive") as caught:
        read(path)
    assert caught.value.strerror


def test_files_shorter_than_a_mark_are_read_as_they_are(tmp_path):
    path = tmp_path / "mail"
    for content in (b"", b"\x1f", b"\x1f\x8b", b"BZ", b"\xfd7zXZ"):
        path.write_bytes(content)
        assert read(path) == content


def test_bare_suffix():
    names = ["mail.CSV.gz", "a.b/mail.tsv", "mail.jsonl.XZ", "mail.bz2", "mail"]
    expected = [".csv", ".tsv", ".jsonl", "", ""]
    assert [bare_suffix(Path(name)) for name in names] == expected
