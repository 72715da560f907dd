"""Lines and rows; a header with unknown names is no message, a short first message no header."""

import csv
import io

import pytest
from golden_tables import golden_table
from one_case import each

from nbspam.errors import SourceError
from nbspam.reading.header_rows import is_header_row
from nbspam.reading.lines import Decoding, decode_lines, nonblank_lines
from nbspam.reading.rows import content_of, layout_of, rows_of
from nbspam.reading.source import Input, ReadingOptions, Skips, TableOptions
from nbspam.reading.sources import read_labelled


@pytest.fixture(autouse=True)
def field_size_limit():
    """The csv module has one limit for all."""
    before = csv.field_size_limit()
    yield
    csv.field_size_limit(before)


def rows_in(path, skips):
    content = content_of(Input(str(path), ReadingOptions(), skips), None)
    lines = decode_lines(str(path), content.whole, Decoding(), skips)
    return list(rows_of(str(path), lines, layout_of(content), skips))


@each("long", ["x" * 200, '"' + "x" * 200 + '"'])
def test_cell_beyond_the_limit_is_skipped(long, tmp_path, monkeypatch):
    monkeypatch.setattr("nbspam.reading.rows.CELL_LIMIT", 100)
    skips = Skips()
    path = tmp_path / "a.csv"
    path.write_text(f"label,text\nham,one\nspam,{long}\nham,two\n")
    assert rows_in(path, skips) == [
        (1, ["label", "text"]),
        (2, ["ham", "one"]),
        (4, ["ham", "two"]),
    ]
    assert skips.named == [f"{path}:3: the row is not CSV (field larger than field limit (100))"]


def lines(opened):
    return list(nonblank_lines(decode_lines("-", opened, Decoding(), Skips())))


@each("length", [99, 100, 101, 250])
def test_huge_line_is_cut(length, monkeypatch):
    monkeypatch.setattr("nbspam.reading.lines._LINE_LIMIT", 100)
    stream = io.BufferedReader(io.BytesIO(b"x" * length + b"\ny\n"))
    texts = [text for _, text in lines(lambda: stream)]
    assert max(map(len, texts)) <= 100
    assert "".join(texts) == "x" * length + "y"


# Whether the first row names the columns

TEXTS = ["see you at nine", "win a prize, now!", "Ok", "the meeting is moved", "claim your cash"]


WORDS = ["Ok", "yes", "no", "why"]


def rows_of_shape(classes, shape, n):
    for i in range(n):
        texts = {"text": TEXTS[i % 5], "word": WORDS[i % 4], "label": classes[i % len(classes)]}
        others = {"who": f"b{'o' * (i % 9)}b", "anyone": f"b{'o' * i}b", "day": i % 3, "i": i}
        yield shape.format(**texts, **others).split("|")


def first_rows(section):
    """Return the cases: what each shows, a first row, and the rows below it."""
    for case, first, labels, shape, n in golden_table("reading/tables.table", 5, section):
        below = rows_of_shape(labels.split("|"), shape, int(n or 20))
        yield case, first.split("|"), list(below)


LABELLED = list(rows_of_shape(["ham", "spam"], "{label}|{text}", 20))
INDEXED = list(rows_of_shape(["0", "1"], "{i}|{label}|{text}", 20))
HEADERS = [
    *first_rows("headers"),
    ("a shuffled index", ("", "a", "b"), INDEXED[::-3]),
    ("with a mistake among the labels", ("y", "x"), [*LABELLED, ("hma", "see you")]),
]
MESSAGES = [
    *first_rows("messages"),
    ("one column", ("x",), [(text,) for text in TEXTS]),
    ("nothing below", ("y", "x"), []),
    ("labels that do not repeat", ("y", "x"), [("ab", "see you"), ("cd", "at nine")]),
]


def test_a_header_of_unknown_names_is_one_and_a_first_message_is_none():
    assert [case for case, first, below in HEADERS if not is_header_row(first, below)] == []
    assert [case for case, first, below in MESSAGES if is_header_row(first, below)] == []


WRITTEN = dict(golden_table("reading/tables.table", 2, "headers that are told"))


def read(path, header_row=None):
    told: list[SourceError] = []
    options = ReadingOptions(TableOptions(header_row=header_row), on_note=told.append)
    raws = list(read_labelled(str(path), options, Skips(strict=True)))
    return {raw.label for raw in raws}, [raw.source for raw in raws], list(map(str, told))


@each("name", WRITTEN)
def test_it_is_no_message_and_the_user_is_told(name, tmp_path):
    path = tmp_path / name
    path.write_text(WRITTEN[name])
    classes, sources, told = read(path)
    assert classes == {"ham", "spam"}
    assert sources[0] == f"{path}:2"
    sentence, *others = told
    assert all(": text: column " in other for other in others)
    names = WRITTEN[name].split("\n")[0].replace(";", ",").replace("\t", ",").split(",")
    header = ", ".join(filter(None, names))
    assert sentence.startswith(f"{path}: its first row names the columns ({header}); ")
