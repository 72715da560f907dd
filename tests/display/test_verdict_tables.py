"""What a table of verdicts is like, in each format."""

import csv
import datetime
import io
import json
import math
import os
import re
from pathlib import Path

import pytest
from one_case import each

from nbspam.display.tables import TableWriter, added_names, open_output, table_format
from nbspam.errors import ModelError, OptionError, TableError
from nbspam.reading.columns import VERDICT_COLUMNS

ADDED = {"verdict": "spam", "probability": 0.75, "log_odds": -1.5, "reason": None}
TEXTS = ("id", "text")


def written(form, *rows, names=TEXTS, added=ADDED, **options):
    """Return the bytes of a table with these rows."""
    file = io.BytesIO()
    writer = TableWriter(file, form, **options)
    for row in rows:
        writer.add("a.csv:1", names, row, added)
    writer.close()
    return file.getvalue()


def cells_of(data, form="csv"):
    text = io.StringIO(data.decode(), newline="")
    return list(csv.reader(text, delimiter="\t" if form == "tsv" else ","))


@each("form", ["csv", "tsv"])
def test_no_cell_of_a_table_is_a_formula_and_numbers_stay(form):
    formulas = "=1+1|+cmd|-2+3|@SUM(1)|\t=1|\r=1|\n=1|=-1|- milk".split("|")
    kept = [*"|a=b|'|-1|-1.5|-1,5|+1.5e3|-inf|-12 %|+44 7911|-".split("|"), -1, -0.5, None]
    rows = [[value, "="] for value in formulas + kept]
    header, *found = cells_of(written(form, *rows, names=("=a", "b")), form)
    assert header == ["'=a", "b", *ADDED]
    assert [row[0] for row in found[: len(formulas)]] == [f"'{value}" for value in formulas]
    assert [row[0] for row in found[len(formulas) :]] == ["" if v is None else str(v) for v in kept]
    assert {row[1] for row in found} == {"'="}
    left = cells_of(written(form, *rows, names=("=a", "b"), keep_formulas=True), form)
    assert [row[0] for row in left[: 1 + len(formulas)]] == ["=a", *formulas]


NESTED = {"id": 7, "text": "a\r\nb\ud800", "more": {"x": [1, None]}, "is": True}


def test_json_lines_have_the_objects_that_were_read_and_tables_a_cell_for_each_field():
    [line] = written("jsonl", NESTED, names=(*TEXTS, "more", "is")).splitlines()
    assert json.loads(line) == {**NESTED, **ADDED}
    assert json.loads(written("json", NESTED, {"text": "é"})) == [
        {**NESTED, **ADDED},
        {"text": "é", **ADDED},
    ]
    assert json.loads(written("json")) == []
    odd = {"id": math.nan, "text": "a", "more": {"x": [1.5, math.inf, 2**60, "NaN"]}}
    [line] = written("jsonl", odd).splitlines()  # JSON has no such numbers
    assert json.loads(line, parse_constant=pytest.fail) == {
        "id": None,
        "text": "a",
        "more": {"x": [1.5, None, 2**60, "NaN"]},
        **ADDED,
    }
    header, row = cells_of(written("csv", NESTED, names=(*TEXTS, "more", "is", "more.x")))
    assert header == ["id", "text", "more", "is", "more.x", *ADDED]
    cells = ["7", "a\r\nb\\ud800", '{"x": [1, null]}', "True", "[1, null]"]
    assert row == [*cells, "spam", "0.75", "-1.5", ""]


@each("form", ["csv", "tsv", "jsonl", "json"])
def test_nothing_commands_a_terminal(form, monkeypatch):
    text = "\x1b[2J\x9b2J\r\u202e é\nb"
    assert "\x9b2J" in written(form, ["1", text]).decode()
    terminal = type("Terminal", (io.BytesIO,), {"isatty": lambda _: True})
    with monkeypatch.context() as patch:
        patch.setattr(io, "BytesIO", terminal)
        shown = written(form, ["1", text]).decode()
    assert all(c.isprintable() or c in "\t\n" for c in shown)
    assert "\\u202e é" in shown
    assert shown.count("\n") == written(form, ["1", "a\nb"]).count(b"\n")


def test_names_that_a_table_has_are_numbered():
    assert added_names(["verdict", "log_odds_2"]) == [f"{name}_3" for name in VERDICT_COLUMNS]
    said = []
    [line] = written(
        "jsonl", ["a", "b"], names=("verdict", "verdict"), on_note=said.append
    ).splitlines()
    numbered = {f"{name}_3": value for name, value in ADDED.items()}
    assert json.loads(line) == {"verdict": "a", "verdict_2": "b", **numbered}
    assert len(said) == 1
    assert ": has the column 'verdict', so the verdicts are in 'verdict_3', " in said[0]


@each("form", ["csv", "parquet", "xlsx"])
def test_tables_of_other_columns_are_refused_where_a_file_has_one_header(form):
    writer = TableWriter(io.BytesIO(), form)
    writer.add("a.csv:1", ("a", "b"), ["1", "2"], ADDED)
    writer.add("b.csv:1", ("a", "b")[:2], ["1"], ADDED)
    with pytest.raises(
        TableError, match=r"^c\.csv:1: has other columns than the sources before it; "
    ):
        writer.add("c.csv:1", ("a",), ["1"], ADDED)
    with pytest.raises(
        TableError, match=r"^d:9: has the field 'c', which the first objects lack; "
    ):
        writer.add("d:9", ("a", "b"), {"a": 1, "c": 2}, ADDED)


def test_no_field_of_a_late_object_is_lost():
    writer = TableWriter(io.BytesIO(), "jsonl")
    writer.add("a:1", ("a",), {"a": 1}, ADDED)
    writer.add("a:2", ("b",), {"a": 1, "late": 2}, ADDED)
    with pytest.raises(TableError, match=r"^a:3: has the field 'verdict', which the first"):
        writer.add("a:3", ("b",), {"verdict": 2}, ADDED)


DAY = datetime.datetime(2026, 1, 2, 3, 4, 5)
VALUES = ["=1+1", "#N/A", "a\x00\ufffe", 3, 1 << 60, True, None, DAY]
VALUES += [DAY.replace(tzinfo=datetime.UTC), [1]]


def test_a_workbook_has_texts_as_texts_and_numbers_as_numbers():
    openpyxl = pytest.importorskip("openpyxl")
    data = written("xlsx", *([value] for value in VALUES), names=("a",))
    header, *rows = openpyxl.load_workbook(io.BytesIO(data)).active.iter_rows()
    assert [cell.value for cell in header] == ["a", *ADDED]
    assert [(row[0].value, row[0].data_type) for row in rows] == [
        *(("=1+1", "s"), ("#N/A", "s"), ("a\ufffd\ufffd", "s"), (3, "n"), (str(1 << 60), "s")),
        *((True, "b"), (None, "n"), (DAY, "d"), ("2026-01-02 03:04:05+00:00", "s"), ("[1]", "s")),
    ]
    assert [cell.value for cell in rows[0][1:]] == ["spam", 0.75, -1.5, None]


def test_what_a_sheet_cannot_hold_is_refused(monkeypatch):
    pytest.importorskip("openpyxl")
    with pytest.raises(
        TableError, match="has 40,000 characters in a cell, and Excel holds 32,767; "
    ):
        written("xlsx", ["a" * 40_000], names=("a",))
    monkeypatch.setattr("nbspam.display.tables._MAX_ROWS", 1)
    with pytest.raises(
        TableError, match=r"has 2 rows, and Excel holds 1; write \.csv or \.parquet"
    ):
        written("xlsx", ["a"], ["b"], names=("a",))


def test_parquet_keeps_types_and_mixed_columns_are_texts():
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [[1, DAY, [1], "a"], [None, None, None, 2], [1 << 60, DAY, [], None]]
    data = written("parquet", *rows, names=("n", "when", "list", "mixed"))
    found = parquet.read_table(io.BytesIO(data)).to_pydict()
    assert found["n"] == [1, None, 1 << 60]
    assert found["when"] == [DAY, None, DAY]
    assert found["list"] == [[1], None, []]
    assert str(parquet.read_schema(io.BytesIO(data)).field("reason").type) in (
        "string",
        "large_string",
    )
    assert found["mixed"] == ["a", "2", None]
    assert found["probability"] == [0.75] * 3


@each("name", ["a", "a.txt", "a.csv.gz", ".csv"])
def test_other_endings_are_refused(tmp_path, name):
    start = re.escape(str(tmp_path / name))
    with pytest.raises(OptionError, match=rf"^{start}: .* ends in \.csv, .* or \.xlsx$"):
        table_format(tmp_path / name)


def test_a_file_is_replaced_when_the_new_one_is_whole(tmp_path):
    path, link = tmp_path / "a.csv", tmp_path / "link.csv"
    path.write_text("old")
    link.symlink_to(path)
    with pytest.raises(KeyboardInterrupt), open_output(link) as file:
        file.write(b"new")
        assert path.read_text() == "old"
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    with open_output(link) as file:
        file.write(b"new")
    assert (path.read_text(), link.is_symlink(), len([*tmp_path.iterdir()])) == ("new", True, 2)
    with (
        pytest.raises(ModelError, match="cannot be written"),
        open_output(tmp_path / "no" / "a.csv"),
    ):
        pass
    device = Path(os.devnull)
    with open_output(device) as file:
        file.write(b"new")
    assert not device.is_file()
