import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from one_case import each

from nbspam.errors import SourceError, TableError
from nbspam.reading.frames import frame_messages, is_data_frame
from nbspam.reading.message import RawMessage
from nbspam.reading.source import Skips, TableOptions

MAIL = b"Subject: hello\n\nthe body\n"


def read(frame, skips=None, needs_labels=True, **options):
    raws = frame_messages(frame, TableOptions(**options), skips or Skips(strict=True), needs_labels)
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
    frame = pd.DataFrame([["ham", "one", "more"]], columns=["label", "text", "text"])
    assert read(frame) == [("row:0", "ham", "one")]  # columns of one name
    labels = {"label": ["ham"] * 500 + ["spam"], "text": ["x"] * 501}
    assert read(pd.DataFrame(labels))[-1] == ("row:500", "spam", "x")


@each("index", [["b", "a"], [5, 5]])
def test_rows_are_numbered_whatever_the_index(index):
    frame = pd.DataFrame({"label": ["ham", "spam"], "text": ["one", "two"]}, index=index)
    assert [source for source, _, _ in read(frame)] == ["row:0", "row:1"]


@each("spam", [[True, False], np.array([True, False]), [1, 0], ["yes", "no"]])
def test_column_called_spam_says_yes_or_no(spam):
    frame = pd.DataFrame({"spam": spam, "text": ["win", "hello"]})
    assert [label for _, label, _ in read(frame)] == ["spam", "ham"]


def test_category_string_and_bytes_columns():
    frame = pd.DataFrame({"label": ["ham", "spam"], "text": ["one", None]})
    frame = frame.astype({"label": "category", "text": "string"})
    skips = Skips()
    assert read(frame, skips) == [("row:0", "ham", "one")]
    assert skips.named == ["row:1: the row has no text"]
    assert len(read(frame, needs_labels=False)) == 2
    frame = pd.DataFrame({"a": ["ham", "spam", "ham"], "b": [MAIL, MAIL, MAIL]})
    raws = list(frame_messages(frame, TableOptions(), Skips(strict=True), needs_labels=True))
    assert raws[1] == RawMessage("row:1", "spam", MAIL)
    assert raws[1].message().header("subject") == "hello"


@each("missing", [None, np.nan, pd.NA, pd.NaT, " "])
def test_row_without_a_label_is_skipped_and_named(missing):
    frame = pd.DataFrame({"label": ["ham", missing, "spam"], "text": ["one", "two", "three"]})
    skips = Skips()
    assert [source for source, _, _ in read(frame, skips)] == ["row:0", "row:2"]
    assert skips.named == ["row:1: the row has no label"]
    assert [label for _, label, _ in read(frame, needs_labels=False)] == ["ham", None, "spam"]


def test_strict_stops_at_a_row_without_a_label():
    with pytest.raises(SourceError, match=r"^row:0: the row has no label; fix it, or read without"):
        read(pd.DataFrame({"label": ["", "ham"], "text": ["one", "two"]}))


def test_a_frame_without_labels_rows_or_columns():
    frame = pd.DataFrame({"text": ["hello", "win"]})
    with pytest.raises(TableError, match=r"^the data frame: no column among 'text' looks like a"):
        read(frame)
    assert read(frame, needs_labels=False) == [("row:0", None, "hello"), ("row:1", None, "win")]
    assert read(pd.DataFrame({"label": [], "text": []})) == []
    with pytest.raises(TableError, match=r"^the data frame: it has no columns; give one with"):
        read(pd.DataFrame())


def test_data_frame_is_recognised_without_loading_pandas():
    assert is_data_frame(pd.DataFrame())
    for other in ("a.csv", b"x", [("ham", "x")], {"label": ["ham"]}, None, pd.Series(["x"])):
        assert not is_data_frame(other)
    code = (
        "import sys; from nbspam.reading.frames import is_data_frame; is_data_frame([]);"
        "sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
