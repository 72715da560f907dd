"""JSON as pandas writes it, and what users of the library have in memory."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from golden_tables import golden_table
from one_case import each

from nbspam.errors import SourceError, TableError
from nbspam.reading.message import RawMessage
from nbspam.reading.program import frame_messages, is_data_frame, pair_messages
from nbspam.reading.source import ReadingOptions, Skips, TableOptions
from nbspam.reading.sources import read_labelled

ROWS = [("ham", "see you"), ("spam", "win “cash” now"), ("ham", "why, naïve?"), ("spam", "buy it")]
FRAME = pd.DataFrame(ROWS, columns=["label", "text"])


def rows(path, encoding=None, **columns):
    options = ReadingOptions(TableOptions(**columns, encoding=encoding))
    return [
        (raw.label, raw.content) for raw in read_labelled(str(path), options, Skips(strict=True))
    ]


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
    first = next(read_labelled(str(path), ReadingOptions(), Skips()))
    assert first.source == f"{path}:1"
    path.write_text('{"label": "ham", "text": "one row"}\n')
    assert rows(path) == [("ham", "one row")]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"label": ["ham", "spam"], "text": ["see you", "win"]}))
    assert rows(path) == [("ham", "see you"), ("spam", "win")]


@each("content, sentence", golden_table("reading/tables.table", 2, "no tables"))
def test_what_is_no_table(content, sentence, tmp_path):
    path = tmp_path / "a.json"
    path.write_text(content.replace("…", "[" * 100_000))
    with pytest.raises(TableError) as error:
        list(read_labelled(str(path), ReadingOptions(), Skips()))
    assert str(error.value).startswith(f"{path}: ")
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


MAIL = b"Subject: hello\n\nthe body\n"


def read(frame, skips=None, require_labels=True, **options):
    raws = frame_messages(
        frame, ReadingOptions(TableOptions(**options)), skips or Skips(strict=True), require_labels
    )
    return [tuple(raw) for raw in raws]


def test_columns_by_name_by_content_and_as_the_user_names_them():
    frame = pd.DataFrame({"id": [7, 8], "Text": ["one", "two"], "label": ["ham", "SPAM "]})
    assert read(frame) == [("row:0", "ham", "one"), ("row:1", "spam", "two")]
    frame = pd.DataFrame({1: ["one", "two", "three"], 2: ["ham", "spam", "ham"]})
    found = [row[1:] for row in read(frame)]
    assert found == [("ham", "one"), ("spam", "two"), ("ham", "three")]
    frame = pd.DataFrame({"text": ["x"], "label": ["y"], "real": ["ham"], "words": ["hello"]})
    assert read(frame, text_column="Words", label_column="real") == [("row:0", "ham", "hello")]
    told = r"^the data frame: there is no column 'no'; name one of 'text', 'label', "
    with pytest.raises(TableError, match=told):
        read(frame, text_column="no")
    mails = [{"body": "see you", "id": 7}, {"body": "win", "id": 8}]
    frame = pd.DataFrame({"message": mails, "label": ["ham", "spam"]})
    with pytest.raises(
        TableError, match=r"has objects or lists; name one of 'message\.body', 'mes"
    ):
        read(frame)
    assert [row[2] for row in read(frame, text_column="message.body")] == ["see you", "win"]
    frame = pd.DataFrame([["ham", "one", "more"]], columns=["label", "text", "text"])
    assert read(frame) == [("row:0", "ham", "one")]  # columns of one name
    labels = {"label": ["ham"] * 500 + ["spam"], "text": ["x"] * 501}
    assert read(pd.DataFrame(labels))[-1] == ("row:500", "spam", "x")


def test_category_string_and_bytes_columns():
    frame = pd.DataFrame({"label": ["ham", "spam"], "text": ["one", None]})
    frame = frame.astype({"label": "category", "text": "string"})
    skips = Skips()
    assert read(frame, skips) == [("row:0", "ham", "one")]
    assert skips.named == ["row:1: the row has no text"]
    assert len(read(frame, require_labels=False)) == 2
    frame = pd.DataFrame({"a": ["ham", "spam", "ham"], "b": [MAIL, MAIL, MAIL]})
    raws = list(frame_messages(frame, ReadingOptions(), Skips(strict=True), require_labels=True))
    assert raws[1] == RawMessage("row:1", "spam", MAIL)
    assert raws[1].message().header("subject") == "hello"


@each("missing", [None, np.nan, pd.NA, pd.NaT, " "])
def test_row_without_a_label_is_skipped_and_named(missing):
    frame = pd.DataFrame({"label": ["ham", missing, "spam"], "text": ["one", "two", "three"]})
    skips = Skips()
    assert [source for source, _, _ in read(frame, skips)] == ["row:0", "row:2"]
    assert skips.named == ["row:1: the row has no label"]
    assert [label for _, label, _ in read(frame, require_labels=False)] == ["ham", None, "spam"]


def test_a_frame_without_labels_rows_or_columns():
    frame = pd.DataFrame({"text": ["hello", "win"]})
    with pytest.raises(TableError, match=r"^the data frame: no column among 'text' looks like a"):
        read(frame)
    assert read(frame, require_labels=False) == [("row:0", None, "hello"), ("row:1", None, "win")]
    assert read(pd.DataFrame({"label": [], "text": []})) == []
    with pytest.raises(TableError, match=r"^the data frame: it has no columns; give one with"):
        read(pd.DataFrame())


def test_data_frame_is_recognised_without_loading_pandas():
    assert is_data_frame(pd.DataFrame())
    for other in ("a.csv", b"x", [("ham", "x")], {"label": ["ham"]}, None, pd.Series(["x"])):
        assert not is_data_frame(other)
    code = (
        "import sys; from nbspam.reading.program import is_data_frame; is_data_frame([]);"
        "sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_text_and_mail():
    pairs = [("Spam", "win now"), ["ham", MAIL], ("\x00 ", "one"), (None, "two"), (np.nan, "x")]
    skips = Skips()
    raws = list(pair_messages(iter(pairs), skips))
    assert raws == [RawMessage("pair:0", "spam", "win now"), RawMessage("pair:1", "ham", MAIL)]
    assert raws[1].message().header("subject") == "hello"
    told = "it has no label, or none of printable characters"
    assert skips.named == [f"pair:{i}: {told}" for i in (2, 3, 4)]
    labels = [1, 0, True, False, np.bool_(True), np.int64(0), 1.0]
    raws = pair_messages([(label, "x") for label in labels], Skips())
    assert [raw.label for raw in raws] == list("1010101")
    assert list(pair_messages([], Skips())) == []


NO_PAIR = "is not a pair; give (label, text or bytes)"
OTHERS = "; give a label, and the message"


@each(
    "pair, sentence",
    [
        *((pair, NO_PAIR) for pair in ("ab", b"ab", ("ham",), ("ham", "x", "y"), None, 7)),
        ((b"ham", "x"), f"is a pair of bytes and str{OTHERS}"),
        ((1.5, "x"), f"is a pair of float and str{OTHERS}"),
        ((["ham", "spam"], "x"), f"is a pair of list and str{OTHERS}"),
        (("ham", None), f"is a pair of str and NoneType{OTHERS}"),
    ],
)
def test_what_is_not_a_pair_is_an_error(pair, sentence):
    with pytest.raises(SourceError, match=rf"^pair:1: {re.escape(sentence)}"):
        list(pair_messages([("ham", "x"), pair], Skips()))
