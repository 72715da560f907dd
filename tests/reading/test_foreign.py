"""A file that is certainly no mail, text or table is refused as a source; a message never is."""

import gzip
import io
import pickle
import sqlite3
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.errors import SourceError
from nbspam.reading.compression import FORMATS, foreign_format
from nbspam.reading.source import ReadingOptions, Skips
from nbspam.reading.sources import any_kind, labelled, unlabelled

READ = {
    "labelled": lambda path: labelled(path, ReadingOptions(), Skips()),
    "unlabelled": lambda path: unlabelled(path, "spam", ReadingOptions(), Skips()),
    "any kind": lambda path: any_kind(path, ReadingOptions(), Skips()),
    "csv": lambda path: any_kind(path, ReadingOptions(input_format="csv"), Skips()),
}


def zipped(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "text")
    return file.getvalue()


def tarred():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("ham/1"), io.BytesIO())
    return file.getvalue()


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100)
FILES = {
    "a": (zipped("[Content_Types].xml", "xl/workbook.xml"), "is an Excel workbook; save it"),
    "c.csv": (zipped("xl/workbook.xml"), "is an Excel workbook; save it as CSV"),
    "d.xls": (OLE, "is an Excel workbook; save it as CSV"),
    "e": (OLE + "Workbook".encode("utf-16-le"), "is an Excel workbook; save it as CSV"),
    "f.msg": (OLE, "is a message as Outlook saves it; save it as .eml"),
    "g.doc": (OLE, "is a document of an office program"),
    "h.docx": (zipped("word/document.xml"), "is a document of an office program; save it as text"),
    "i.ods": (
        zipped("mimetype-application/vnd.oasis.opendocument.spreadsheet"),
        "is a document of an office program",
    ),
    "j.zip": (zipped("ham/1"), "is a zip archive; unpack it"),
    "k.zip": (zipped(), "is an empty zip archive"),
    "l.pst": (b"!BDN" + bytes(100), "is an Outlook mailbox; convert it to mbox"),
    "m.pkl": (pickle.dumps({"a": 1}), "is a Python pickle; save its table as CSV"),
    "n.pkl": (pickle.dumps({"a": 1}, 2), "is a Python pickle"),
    "o.tar": (tarred(), "is a tar archive; unpack it"),
    "p.tar.gz": (gzip.compress(tarred()), "is a tar archive; unpack it"),
    "q.pdf": (b"%PDF-1.7\n", "is a PDF"),
    "r.png": (b"\x89PNG\r\n\x1a\n" + bytes(9), "is a picture"),
    "s.db": (bytes(12) + b"\x61\x15\x06\0" + bytes(99), "with nbspam model import"),
}


@each("name", FILES)
@each("how", READ)
def test_it_is_refused_with_what_it_is(name, how, tmp_path):
    content, said = FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SourceError) as raised:
        list(READ[how](str(path)))
    sentence = str(raised.value)
    assert sentence.startswith(f"{path}: is ")
    assert said in sentence
    assert ";" in sentence


def test_every_format_is_looked_for_and_a_database_is_one(tmp_path):
    for beginning, _, _, offset in FORMATS:
        assert foreign_format(bytes(offset) + beginning, "")
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("create table t (label, text)")
    connection.close()
    with pytest.raises(SourceError, match="is an SQLite database; export the table as CSV"):
        list(READ["any kind"](str(tmp_path / "a.db")))


@given(st.text(min_size=1, max_size=60))
def test_text_is_no_such_format(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("text") / "a"
    path.write_text(f"Subject: {text}", encoding="utf-8", errors="replace")
    assert len(list(READ["any kind"](str(path)))) == 1


@each("name", FILES)
def test_as_a_message_it_is_judged_all_the_same(name, tmp_path):
    folder = tmp_path / "mail"
    folder.mkdir()
    path = folder / name
    path.write_bytes(FILES[name][0])
    as_message = ReadingOptions(input_format="message")
    for source, options in ((path, as_message), (folder, ReadingOptions())):
        [raw] = any_kind(str(source), options, Skips(strict=True))
        raw.message()
