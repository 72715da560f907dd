"""Tables as JSON, as pandas writes them."""

import gzip
import json

import pandas as pd
import pytest
from one_case import each

from nbspam.errors import TableError
from nbspam.reading.frames import LIMITS
from nbspam.reading.source import ReadingOptions, Skips, TableOptions
from nbspam.reading.sources import any_kind, labelled

ROWS = [("ham", "see you"), ("spam", "win “cash” now"), ("ham", "why, naïve?"), ("spam", "buy it")]
FRAME = pd.DataFrame(ROWS, columns=["label", "text"])


def rows(path, encoding=None, **columns):
    options = ReadingOptions(TableOptions(**columns, encoding=encoding))
    return [(raw.label, raw.content) for raw in labelled(str(path), options, Skips(strict=True))]


@each("indent", [None, 2])
@each("frame", [FRAME, FRAME[:2], FRAME.set_index(pd.Index([9, 7, 8, 3]))])
@each("orient", ["records", "columns", "index", "split", "table", "values"])
def test_every_form_that_pandas_writes(orient, frame, indent, tmp_path):
    path = tmp_path / "a.json"
    frame.to_json(path, orient=orient, indent=indent)
    assert rows(path) == ROWS[: len(frame)]


@each("orient", ["records", "columns", "index", "split", "table"])
def test_names_that_are_not_usual(orient, tmp_path):
    path = tmp_path / "a.json"
    FRAME.rename(columns={"label": "a", "text": "b"}).to_json(path, orient=orient)
    assert rows(path) == ROWS
    assert rows(path, label_column="a", text_column="b") == ROWS


def test_json_lines_called_json_columns_as_lists_and_a_packed_document(tmp_path):
    path = tmp_path / "a.json"
    FRAME.to_json(path, orient="records", lines=True)
    assert rows(path) == ROWS
    first = next(labelled(str(path), ReadingOptions(), Skips()))
    assert first.source == f"{path}:1"
    path.write_text('{"label": "ham", "text": "one row"}\n')
    assert rows(path) == [("ham", "one row")]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"label": ["ham", "spam"], "text": ["see you", "win"]}))
    assert rows(path) == [("ham", "see you"), ("spam", "win")]


def test_encodings_and_a_packed_document(tmp_path):
    path = tmp_path / "a.json"
    content, expected = '[{"label": "ham", "text": "café"}]', [("ham", "café")]
    for encoding in ("utf-8-sig", "cp1252"):
        path.write_bytes(content.encode(encoding))
        assert rows(path) == expected
    path.write_bytes(content.encode("utf-16"))
    assert rows(path, encoding="utf-16") == expected
    with pytest.raises(TableError, match="the file is UTF-16; name the encoding utf-16"):
        rows(path)
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(content.encode()))
    assert rows(path) == expected


@each(
    "content, sentence",
    [
        ('[{"label": ', "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("3", "the JSON is not a table; give an array of objects"),
        ('["one", "two"]', "the JSON is not a table"),
        ('[{"label": "ham", "text": "x"}, 3]', "the JSON is not a table"),
        ('{"a": {"b": 1}, "c": 3}', "the JSON is not a table"),
        ('{"a": [1], "c": 3}', "the JSON is not a table"),
        ("[]", "the table is empty"),
        ("", "the table is empty"),
        ("{}", "the table is empty"),
        ('[{"words": "x"}, {"words": "y"}]', "no column among 'words' looks like a label"),
    ],
)
def test_what_is_no_table(content, sentence, tmp_path):
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(TableError) as error:
        list(labelled(str(path), ReadingOptions(), Skips()))
    assert str(error.value).startswith(f"{path}: ")
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_a_document_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(LIMITS, "json", 1000)
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b"[" + b" " * 5000 + b"]"))
    with pytest.raises(TableError, match="convert it to JSON lines, which are read one by one"):
        list(any_kind(str(path), ReadingOptions(), Skips()))
