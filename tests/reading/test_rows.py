"""Lines and rows."""

import csv
import io

import pytest
from one_case import each

from nbspam.reading.rows import (
    CELL_LIMIT,
    decoded_lines,
    file_content,
    layout_of,
    read_lines,
    rows_of,
)
from nbspam.reading.source import Skips


@pytest.fixture(autouse=True)
def field_size_limit():
    """The csv module has one limit for all."""
    before = csv.field_size_limit()
    yield
    csv.field_size_limit(before)


def rows(path, skips, cell_limit=CELL_LIMIT):
    content = file_content(path)
    layout = layout_of(content, None, cell_limit)
    lines = decoded_lines(str(path), content.whole, None, skips)
    return list(rows_of(str(path), lines, layout, skips, cell_limit))


@each("long", ["x" * 200, '"' + "x" * 200 + '"'])
def test_cell_beyond_the_limit_is_skipped(long, tmp_path):
    skips = Skips()
    path = tmp_path / "a.csv"
    path.write_text(f"label,text\nham,one\nspam,{long}\nham,two\n")
    assert rows(path, skips, cell_limit=100) == [
        (1, ["label", "text"]),
        (2, ["ham", "one"]),
        (4, ["ham", "two"]),
    ]
    assert skips.named == [f"{path}:3: the row is not CSV (field larger than field limit (100))"]


def test_tsv_with_a_cell_beyond_the_limit_is_not_quoted(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('ham\t"one\t1"\nspam\t"' + "x\t" * 100 + '"\n')
    assert rows(path, Skips())[0] == (1, ["ham", "one\t1"])
    assert rows(path, Skips(), cell_limit=100)[0] == (1, ["ham", '"one', '1"'])


def test_lines_of_text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\n\n  \ncaf\xe9\ttwo\nthree")
    expected = [(1, "one"), (4, "café\ttwo"), (5, "three")]
    assert expected == list(read_lines(str(path), lambda: path.open("rb"), None, Skips()))


@each("length", [99, 100, 101, 250])
def test_huge_line_is_cut(length, monkeypatch):
    monkeypatch.setattr("nbspam.reading.rows._LINE_LIMIT", 100)
    stream = io.BufferedReader(io.BytesIO(b"x" * length + b"\ny\n"))
    texts = [text for _, text in read_lines("-", lambda: stream, None, Skips())]
    assert max(map(len, texts)) <= 100
    assert "".join(texts) == "x" * length + "y"
