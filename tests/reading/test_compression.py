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
packed = pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])


def read(path):
    with open_bytes(path) as stream:
        return stream.read()


@each("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_content_is_what_was_packed_whatever_the_name(pack, tmp_path):
    path = tmp_path / "mail"
    path.write_bytes(pack(CONTENT))
    assert read(path) == CONTENT


def test_archives_in_a_row_are_one_file(tmp_path):
    path = tmp_path / "mail.gz"
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    assert read(path) == b"one\ntwo\n"


@packed
def test_archive_cut_short_is_an_oserror_that_says_so(pack, tmp_path):
    path = tmp_path / "mail"
    path.write_bytes(pack(CONTENT)[:-20])
    with pytest.raises(OSError, match="damaged archive"):
        read(path)


@packed
@each("at", [12, 30, -10])
def test_archive_with_wrong_bytes_is_an_oserror_that_says_so(pack, at, tmp_path):
    data = bytearray(pack(CONTENT))
    data[at] ^= 0xFF
    data[at + 1] ^= 0xFF
    path = tmp_path / "mail"
    path.write_bytes(data)
    with pytest.raises(OSError, match="damaged archive") as caught:
        read(path)
    assert caught.value.strerror


@each("content", [b"", b"\x1f", b"\x1f\x8b", b"BZ", b"\xfd7zXZ"])
def test_files_shorter_than_a_mark_are_read_as_they_are(content, tmp_path):
    path = tmp_path / "mail"
    path.write_bytes(content)
    assert read(path) == content


@each(
    "name, expected",
    [
        ("mail.CSV.gz", ".csv"),
        ("a.b/mail.tsv", ".tsv"),
        ("mail.jsonl.XZ", ".jsonl"),
        ("mail.bz2", ""),
        ("mail", ""),
    ],
)
def test_bare_suffix(name, expected):
    assert expected == bare_suffix(Path(name))
