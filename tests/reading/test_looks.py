"""What was given as one message and looks like many is said, and read as one all the same."""

import io
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading.source import INPUT_FORMATS, ReadingOptions, Skips
from nbspam.reading.sources import any_kind
from nbspam.reading.tables import looks_like

FROM = b"From a@example.org Mon Nov 20 10:00:00 2023\n"
MAIL = b"Subject: hello\n\nthe body\n"
HERE = str(Path(__file__)).encode()
SAMPLES = Path(__file__).parents[2] / "sample_data"

MANY = {
    "tsv": b"ham\tsee you\nspam\twin\nham\tlater\n",
    "tsv with a header": b"label\ttext\nham\tsee you\nspam\twin\n",
    "csv": b"label,text\nham,see you\nspam,win\n",
    "csv by its labels": b"1,see you\n0,win\n1,later\n0,now\n1,a\n0,b\n1,c\n0,d\n",
    "csv with semicolons": b"spam;win\nham;see, you\nham;x, y, z\n",
    "jsonl": b'{"text": "a"}\n{"text": "b"}\n',
    "json": b'[{"text": "a"},\n{"text": "b"}]',
    "json by columns": b'{"text": {"0": "a", "1": "b"}}',
    "parquet": b"PAR1\x15\x00\n\x00",
    "mbox": FROM + MAIL + b"\n" + FROM + MAIL,
    "files": HERE + b"\n" + HERE + b"\n",
    "files0": HERE + b"\0" + HERE,
    "files0, of one": HERE + b"\0",
    "csv with a bare CR": b'label,text\nham,"see\ryou"\nspam,win\n',
    "cut": b"ham\tsee you\nspam\twin\nham\tlater\n" * 5_000,
}
ONE = {
    "mail": MAIL,
    "a mail in an mbox": FROM + MAIL,
    "a mail that quotes": FROM + MAIL + b"\nFrom here on it is text\n",
    "a mail with a table": MAIL + MANY["tsv"],
    "a mail with a table of files": MAIL + MANY["files"],
    "text": b"WINNER! Claim your prize\n",
    "lines": b"hello\nsee you, at nine\nbye, bye\n",
    "lines, each with a comma": b"Dear Ann,\nthe meeting, you know,\nis at nine, bye\n",
    "a poem": b"one, two\nthree, four\nfive, six\nseven, eight\n",
    "nothing": b"",
    "blank": b"\n\n\n",
    "a path that is none": b"/no/such/file\n/nor/this\n",
    "brackets": b"{hello}\n[you]\n",
    "NULs": b"\0\0\0",
    "a bare CR": b"a\rb\nc\n",
    "a bare CR between commas": b"a,b\rc\nd,e\n",
    "a quote that is never closed": b'a,"b\nc,d\n',
    "a very long cell": b'label,"' + b"x" * 300_000 + b"\nham,y\n",
}


def read(content, monkeypatch, **options):
    told = []

    class Input:
        closed = False
        buffer = io.BytesIO(content)

    monkeypatch.setattr(sys, "stdin", Input)
    (raw,) = any_kind("-", ReadingOptions(tell=told.append, **options), Skips())
    assert raw.content == content
    return [str(one.values.get("format")) for one in told], list(map(str, told))


@each("case", MANY)
def test_what_looks_like_many_messages_is_said_unless_one_was_asked_for(case, monkeypatch):
    formats, (sentence,) = read(MANY[case], monkeypatch)
    assert formats == [case.partition(" ")[0].strip(",") if case != "cut" else "tsv"]
    assert sentence.startswith("standard input looks like ")
    assert "; it was read as one message; " in sentence
    assert read(MANY[case], monkeypatch, input_format="message") == ([], [])


@each("case", ONE)
def test_what_looks_like_one_message(case, monkeypatch):
    assert read(ONE[case], monkeypatch) == ([], [])


@each("path", sorted([*(SAMPLES / "mail").rglob("*.eml"), *(SAMPLES / "odd").glob("*.eml")]))
def test_no_mail_looks_like_many(path, monkeypatch):
    assert read(path.read_bytes(), monkeypatch) == ([], [])


PIECES = [
    b"\r", b"\n", b"\r\n", b"\0", b'"', b"\t", b",", b";", b"|", b"[", b"{", b"\xff", b" ", b"ham",
    b"spam", b"label", b"text", b"a", b"/", b".", b"1", b'{"text": 1}', b"PAR1", FROM,
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=60).map(b"".join))
def test_any_bytes_look_like_something_or_nothing(content):
    look = looks_like(content)
    assert look is None or look.form in INPUT_FORMATS
