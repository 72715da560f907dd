import csv

import pytest
from one_case import each

from nbspam.reading.rows import CELL_LIMIT, decoded_lines, file_content, layout_of, rows_of
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
