"""Tables; and what looks like many messages, which is said, and read as one all the same."""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import sys
import zipfile
from ast import literal_eval
from pathlib import Path

import pandas as pd
import pytest
from golden_tables import golden_table
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.errors import SourceError, TableError
from nbspam.reading.rows import content_of
from nbspam.reading.source import (
    Input,
    ReadingOptions,
    Skips,
    TableOptions,
)
from nbspam.reading.sources import read_labelled, read_messages
from nbspam.reading.tables import read_table
from nbspam.reading.whole_tables import LIMITS

Rows = list[tuple[str | None, str]]
ROWS: Rows = [
    ("ham", "see you at nine"),
    ("spam", "you have won, claim “it” now"),
    ("ham", "naïve question; why?"),
]


def read(path, skips=None, require_labels=True, **options):
    table = ReadingOptions(TableOptions(**options))
    source = Input(str(path), table, skips or Skips(strict=True), require_labels=require_labels)
    return list(read_table(content_of(source, None)))


def rows(path, skips=None, require_labels=True, **options):
    found = []
    for raw in read(path, skips, require_labels, **options):
        assert isinstance(raw.content, str)
        found.append((raw.label, raw.content))
    return found


def told(path, **options):
    said = []
    table = ReadingOptions(TableOptions(**options), on_note=said.append)
    source = Input(str(path), table, Skips(), require_labels=True)
    list(read_table(content_of(source, None)))
    return list(map(str, said))


def file(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def written(cells, **dialect):
    out = io.StringIO()
    csv.writer(out, **dialect).writerows(cells)
    return out.getvalue()


def parquet(cells):
    out = io.BytesIO()
    pd.DataFrame(cells, columns=["label", "text"]).to_parquet(out)
    return out.getvalue()


# Formats

FORMATS: dict[str, bytes] = {
    "a.tsv": "".join(f"{label}\t{text}\n" for label, text in ROWS).encode(),
    "header.tsv": ("label\ttext\n" + "".join(f"{a}\t{b}\n" for a, b in ROWS)).encode(),
    "a.csv": written(ROWS).encode(),
    "header.csv": written([("text", "label"), *((b, a) for a, b in ROWS)]).encode(),
    "a.jsonl": "".join(json.dumps({"label": a, "text": b}) + "\n" for a, b in ROWS).encode(),
    "a.ndjson": "".join(
        json.dumps({"text": b, "n": 1, "label": a}, ensure_ascii=False) + "\n" for a, b in ROWS
    ).encode(),
    "a.parquet": parquet(ROWS),
}


@each(
    "suffix, pack",
    [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)],
)
@each("name", FORMATS)
def test_each_format_plain_and_packed(name, suffix, pack, tmp_path):
    assert rows(file(tmp_path, name + suffix, pack(FORMATS[name]))) == ROWS


@each("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@each("text", ["see you at nine", "увидимся в девять", "Ь,Р Р"])
@each("name", ["a.tsv", "a.csv", "nameless"])
def test_wide_encodings_when_not_told(name, text, encoding, tmp_path):
    delimiter = "," if name == "a.csv" else "\t"
    table = "".join(f'{label}{delimiter}"{text} {i}"\n' for i, label in enumerate(["ham"] * 9))
    path = file(tmp_path, name, table.encode(encoding))
    kind = encoding.upper()
    assert told(path) == [
        f"{path}: is not UTF-8, and is read as {kind}; name another encoding (--encoding)"
    ]
    assert rows(path) == rows(path, encoding=encoding)
    assert len(rows(path)) == 9


def test_parquet_by_its_first_bytes_and_with_numbers_nothing_and_booleans(tmp_path):
    nameless = file(tmp_path, "nameless", FORMATS["a.parquet"])
    assert rows(nameless) == ROWS
    found = read_labelled(str(nameless), ReadingOptions(), Skips(strict=True))
    assert [(raw.label, raw.content) for raw in found] == ROWS
    frame = pd.DataFrame({"spam": [True, False, True], "text": ["a", "b", None]})
    frame.to_parquet(tmp_path / "a.parquet")
    skips = Skips()
    assert rows(tmp_path / "a.parquet", skips) == [("spam", "a"), ("ham", "b")]
    assert skips.named == [f"{tmp_path}/a.parquet:3: the row has no text"]
    with pytest.raises(TableError, match=r"a\.parquet: not a Parquet file .*; check it"):
        rows(file(tmp_path, "a.parquet", b"PAR1 and then no more"))


def test_excel_workbooks_by_their_name_and_no_other_file(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "a.xlsx"
    pd.DataFrame(ROWS, columns=["label", "text"]).to_excel(path, index=False)
    assert [raw.source for raw in read(path)] == [f"{path}:{i}" for i in (2, 3, 4)]
    assert rows(path) == ROWS
    pd.DataFrame([(1, "x", "NA"), (0, None, "see you")]).to_excel(path, index=False, header=False)
    assert rows(path) == [("1", "NA"), ("0", "see you")]
    packed = file(tmp_path, "b.xlsx.gz", gzip.compress(path.read_bytes()))
    assert rows(packed) == rows(path)
    book = openpyxl.Workbook()
    for row, cells in (
        (1, ("ham", "see you")),
        (1 << 20, ("spam", "win")),
        (3, ("ham", "at nine")),
    ):
        book.active.cell(row, 1, cells[0])
        book.active.cell(row, 2, cells[1])
    book.active.cell(3, 16_384, "far to the right")
    book.save(path)
    assert [raw.source for raw in read(path)] == [f"{path}:{i}" for i in (1, 3, 1 << 20)]
    told = r"b\.xlsx: not an Excel workbook .*; check it$"
    with pytest.raises(TableError, match=told):
        rows(file(tmp_path, "b.xlsx", path.read_bytes()[:-30]))


CONVERT = "MiB, unpacked; convert it to JSON lines, which are read one by one$"


def test_a_workbook_that_unpacks_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(LIMITS, "xlsx", 1 << 16)
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", bytes(1 << 17))
    with pytest.raises(TableError, match=f"is larger than 0 {CONVERT}"):
        rows(tmp_path / "a.xlsx")


# TSV and CSV

QUOTED = [
    ("ham", 'she said "hello"'),
    ("spam", "one line\nand one more"),
    ("ham", "a tab\there"),
    ("ham", '"all of it"'),
]


@each(
    "table, quoting", [(QUOTED, csv.QUOTE_ALL), (QUOTED, csv.QUOTE_MINIMAL), (ROWS, csv.QUOTE_ALL)]
)
@each("name, delimiter", [("a.tsv", "\t"), ("a.csv", ",")])
@each("line_end", ["\n", "\r\n"])
def test_quoted_tables(table, name, quoting, delimiter, line_end, tmp_path):
    text = written(table, quoting=quoting, delimiter=delimiter, lineterminator=line_end)
    assert rows(file(tmp_path, name, text)) == table


@each(
    "case, name, content, expected, skipped, options",
    golden_table("reading/tables.table", 6, "as they are written"),
)
def test_tables_as_they_are_written(case, name, content, expected, skipped, options, tmp_path):
    """What is expected is rows, or the sentence that ends with the remedy."""
    path = file(tmp_path, name, content.replace("…", "[" * 100_000).encode("latin-1"))
    options, skips = literal_eval(options or "{}"), Skips()
    if expected.startswith("["):
        assert rows(path, skips, **options) == literal_eval(expected), case
        named = [one.removeprefix(f"{path}:") for one in skips.named]
        named = [re.sub(r"(is not JSON) \(.*", r"\1", one) for one in named]  # Python's reasons
        assert named == skipped.split("|") * bool(skipped), case
    else:
        with pytest.raises(TableError) as error:
            rows(path, **options)
        assert str(error.value) == f"{path}: {expected}", case


def test_quote_that_never_closes_costs_its_own_row_only(tmp_path):
    skips = Skips()
    lines = [f"ham,text {n}\n" for n in range(5_000)]
    lines[10] = 'spam,"oops\n'
    found = rows(file(tmp_path, "a.csv", "label,text\n" + "".join(lines)), skips)
    assert (len(found), skips.count) == (4_999, 1)
    path = file(tmp_path, "a.csv", 'label,text\nham,"one\ntwo\nthree"\nspam,four\n')
    assert [raw.source for raw in read(path)] == [f"{path}:2", f"{path}:5"]  # where it begins


# Columns


# Bad rows and empty tables


def test_strict_stops_at_a_bad_row_where_labels_are_needed(tmp_path):
    path = file(tmp_path, "a.tsv", "ham\tone\nspam\n\n\ttwo\nham\tthree\n")
    told = r"a\.tsv:2: the row has no text; .*leave out --strict to skip it$"
    with pytest.raises(SourceError, match=told):
        rows(path)
    for empty in ("", "  ", '""', '" "'):  # is classified, and not learned
        path = file(tmp_path, "a.csv", f"label,text\nham,one\nham,{empty}\nspam,two\n")
        assert len(rows(path, require_labels=False)) == 3
        with pytest.raises(SourceError, match=r"a\.csv:3: the row has no text; fix it"):
            rows(path)


def test_texts_that_are_all_the_same_are_told(tmp_path):
    lines = [f"{'ham' if i % 3 else 'spam'},2024-01-01,see you {i}" for i in range(30)]
    path = file(tmp_path, "a.csv", "\n".join(["label,date,text", *lines]))
    assert told(path) == []
    assert told(path, text_column="date") == [
        f"{path}: the texts in column 'date' are all the same; name another if it is wrong"
        " (--text-column)"
    ]
    path = file(tmp_path, "b.csv", "\n".join(["label,date,text", *lines[:9]]))
    assert told(path, text_column="date") == []  # they are too few


# Properties

CELLS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"], include_characters="\n\t"),
    min_size=1,
    max_size=30,
).filter(str.strip)
TABLE = st.lists(st.tuples(st.sampled_from(["ham", "spam"]), CELLS), min_size=1, max_size=8)


@given(TABLE, st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]))
def test_csv_comes_back_as_it_was_written(tmp_path_factory, table, quoting):
    text = written([("label", "text"), *table], quoting=quoting)
    path = file(tmp_path_factory.mktemp("csv"), "a.csv", text)
    assert table == rows(path)


@given(TABLE)
def test_unquoted_tsv_comes_back_as_it_was_written(tmp_path_factory, table):
    table = [(label, " ".join((text or "").split())) for label, text in table]
    lines = "".join(f"{label}\t{text}\n" for label, text in table)
    path = file(tmp_path_factory.mktemp("tsv"), "a.tsv", "label\ttext\n" + lines)
    assert table == rows(path)


@each("name, begins", [("a.parquet.gz", b"PAR1"), ("a.json.gz", b"[ ")])
def test_a_file_that_unpacks_beyond_the_limit_is_refused(name, begins, tmp_path, monkeypatch):
    monkeypatch.setitem(LIMITS, name.split(".")[1], 1 << 20)
    packed = gzip.compress(begins + b" " * (2 << 20))
    assert len(packed) < 10_000
    with pytest.raises(TableError, match=f"is larger than 1 {CONVERT}"):
        rows(file(tmp_path, name, packed))


FROM = b"From a@example.org Mon Nov 20 10:00:00 2023\n"
MAIL = b"Subject: hello\n\nthe body\n"
SAMPLES = Path(__file__).parents[2] / "sample_data"


def looks(section):
    """Return the contents of a section by their names."""
    for name, content in golden_table("reading/tables.table", 2, section):
        yield name, content.encode("latin-1").replace(b"<FROM>", FROM).replace(b"<MAIL>", MAIL)


MANY = dict(looks("many")) | {"cut": b"ham\tsee you\nspam\twin\nham\tlater\n" * 5_000}
ONE = dict(looks("one")) | {"a very long cell": b'label,"' + b"x" * 300_000 + b"\nham,y\n"}


def read_one(content, monkeypatch, **options):
    told = []

    class Input:
        closed = False
        isatty = bool
        buffer = io.BytesIO(content)

    monkeypatch.setattr(sys, "stdin", Input)
    (raw,) = read_messages("-", ReadingOptions(on_note=told.append, **options), Skips())
    assert raw.content == content
    return [str(one.values.get("format")) for one in told], list(map(str, told))


@each("case", MANY)
def test_what_looks_like_many_messages_is_said_unless_one_was_asked_for(case, monkeypatch):
    formats, (sentence,) = read_one(MANY[case], monkeypatch)
    assert formats == [case.partition(" ")[0].strip(",") if case != "cut" else "tsv"]
    assert sentence.startswith("standard input looks like ")
    assert "; it was read as one message; " in sentence
    assert read_one(MANY[case], monkeypatch, input_format="message") == ([], [])


PIECES = [
    b"\r", b"\n", b"\r\n", b"\0", b'"', b"\t", b",", b";", b"|", b"[", b"{", b"\xff", b" ", b"ham",
    b"spam", b"label", b"text", b"a", b"/", b".", b"1", b'{"text": 1}', b"PAR1", FROM,
]  # fmt: skip
