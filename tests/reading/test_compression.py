"""Files by their first bytes: archives, bounded, and formats that are refused, but not as mail."""

import bz2
import gc
import gzip
import io
import lzma
import pickle
import re
import sys
import tarfile
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import pytest
from golden_tables import golden_table
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.errors import SourceError
from nbspam.reading.compression import (
    FORMATS,
    DerivedStream,
    bare_suffix,
    foreign_format,
    open_bytes,
)
from nbspam.reading.source import ReadingOptions, Skips
from nbspam.reading.sources import read_labelled, read_messages, read_unlabelled
from nbspam.serving import spamd

CONTENT = b"the same words, packed or not\n" * 10_000


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


ZEROS = bytes(32 << 20)


def test_of_one_message_no_more_is_unpacked_than_is_read(monkeypatch):
    unpacked, real = [], DerivedStream.readinto

    def counted(self, buffer):
        unpacked.append(real(self, buffer))
        return unpacked[-1]

    monkeypatch.setattr(DerivedStream, "readinto", counted)

    class Kept(io.BytesIO):
        def close(self):
            """Stay open, to be looked at."""

    packed = Kept(gzip.compress(ZEROS, 1))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(packed)))
    monkeypatch.setattr("nbspam.reading.source.BYTES_LIMIT", 1 << 16)
    [raw] = read_messages("-", ReadingOptions(), Skips())
    assert len(raw.content) == 1 << 16
    assert packed.read() == b""  # whoever writes it may end
    assert sum(unpacked) <= 1 << 18


@each(
    "unpack",
    [
        lambda data: spamd.decompress(data, 1000),
        lambda data: spamd.Request("CHECK", body=data, compressed=True).beginning(1000)[1000:],
    ],
)
def test_zlib_of_a_client_takes_no_more_memory_than_a_message(unpack):
    data = zlib.compress(ZEROS, 1)
    tracemalloc.start()
    try:
        assert not unpack(data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


READ = {
    "labelled": lambda path: read_labelled(path, ReadingOptions(), Skips()),
    "unlabelled": lambda path: read_unlabelled(path, "spam", ReadingOptions(), Skips()),
    "any kind": lambda path: read_messages(path, ReadingOptions(), Skips()),
    "csv": lambda path: read_messages(path, ReadingOptions(input_format="csv"), Skips()),
}


def made(what):
    """Return the bytes of a foreign file."""
    kind, *names = what.split(" ")
    file = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(file, "w") as archive:
            for name in names:
                archive.writestr(name, "text")
    elif kind == "tar":
        with tarfile.open(fileobj=file, mode="w") as archive:
            archive.addfile(tarfile.TarInfo("ham/1"), io.BytesIO())
        return gzip.compress(file.getvalue()) if names else file.getvalue()
    elif kind == "pickle":
        return pickle.dumps({"a": 1}, *map(int, names))
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1<0>"
    text = what.encode("latin-1").replace(b"<OLE>", ole).replace(b"<0>", bytes(100))
    return file.getvalue() or text


FILES = {
    name: (made(what), said)
    for name, what, said in golden_table("reading/sources.table", 3, "foreign files")
}


@each("name", FILES)
@each("how", READ)
def test_it_is_refused_with_what_it_is(name, how, tmp_path):
    content, said = FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SourceError, match=rf"^{re.escape(f'{path}: {said}')}$"):
        list(READ[how](str(path)))


def test_every_format_is_looked_for():
    for offset, beginning, _ in FORMATS:
        assert foreign_format(bytes(offset) + beginning, "")


@given(st.text(min_size=1, max_size=60))
def test_text_is_no_such_format(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("text") / "a"
    path.write_text(f"Subject: {text}", encoding="utf-8", errors="replace")
    assert len(list(READ["any kind"](str(path)))) == 1


@each("name", FILES)
def test_as_a_message_it_is_judged_all_the_same_and_in_a_folder_if_it_is_text(name, tmp_path):
    folder = tmp_path / "mail"
    folder.mkdir()
    path = folder / name
    path.write_bytes(FILES[name][0])
    as_message = ReadingOptions(input_format="message")
    for source, options in ((path, as_message), (folder, ReadingOptions())):
        try:
            [raw] = read_messages(str(source), options, Skips(strict=True))
            message = raw.message()
        except SourceError as error:
            assert source == folder
            assert str(error).startswith(f"{path}: {FILES[name][1]}")
        else:
            assert source == path or message.parts[0].text


def test_a_damaged_archive_leaves_no_open_file(tmp_path, monkeypatch):
    pytest.importorskip("lz4.block")
    path = tmp_path / "mail"
    path.write_bytes(b"Dovecot-LZ4\r\x2a\x9b\xc5\xff\xff\xff\xff")
    failures = []
    monkeypatch.setattr(sys, "unraisablehook", failures.append)
    with pytest.raises(SourceError, match=r"damaged archive: blocks of 4,294,967,295"):
        list(read_messages(str(path), ReadingOptions(), Skips()))
    gc.collect()
    assert not failures
