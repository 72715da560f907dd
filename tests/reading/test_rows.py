"""Lines and rows; a header with unknown names is no message, a short first message no header."""

import csv
import io

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from one_case import each

from nbspam.errors import SourceError
from nbspam.reading.rows import (
    decoded_lines,
    file_content,
    filled,
    is_header_row,
    layout_of,
    rows_of,
)  # fmt: skip
from nbspam.reading.source import ReadingOptions, Skips, TableOptions
from nbspam.reading.sources import labelled


@pytest.fixture(autouse=True)
def field_size_limit():
    """The csv module has one limit for all."""
    before = csv.field_size_limit()
    yield
    csv.field_size_limit(before)


def rows_in(path, skips):
    content = file_content(path)
    lines = decoded_lines(str(path), content.whole, None, skips)
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


def test_tsv_with_a_cell_beyond_the_limit_is_not_quoted(tmp_path, monkeypatch):
    path = tmp_path / "a.tsv"
    path.write_text('ham\t"one\t1"\nspam\t"' + "x\t" * 100 + '"\n')
    assert rows_in(path, Skips())[0] == (1, ["ham", "one\t1"])
    monkeypatch.setattr("nbspam.reading.rows.CELL_LIMIT", 100)
    assert rows_in(path, Skips())[0] == (1, ["ham", '"one', '1"'])


def lines(opened):
    return list(filled(decoded_lines("-", opened, None, Skips())))


def test_lines_of_text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\n\n  \ncaf\xe9\ttwo\nthree")
    expected = [(1, "one"), (4, "café\ttwo"), (5, "three")]
    assert expected == lines(lambda: path.open("rb"))


@each("length", [99, 100, 101, 250])
def test_huge_line_is_cut(length, monkeypatch):
    monkeypatch.setattr("nbspam.reading.rows._LINE_LIMIT", 100)
    stream = io.BufferedReader(io.BytesIO(b"x" * length + b"\ny\n"))
    texts = [text for _, text in lines(lambda: stream)]
    assert max(map(len, texts)) <= 100
    assert "".join(texts) == "x" * length + "y"


# Whether the first row names the columns

TEXTS = ["see you at nine", "win a prize, now!", "Ok", "the meeting is moved", "claim your cash"]


def rows(*classes, texts=TEXTS, n=20):
    return [(classes[i % len(classes)], texts[i % len(texts)]) for i in range(n)]


def numbered(table):
    return [(str(i), *row) for i, row in enumerate(table)]


HEADERS = {
    "numbers": (("y", "x"), rows("0", "1")),
    "numbers, sorted": (("y", "x"), rows("0")),
    "three numbers": (("y", "x"), rows("0", "1", "2")),
    "few rows": (("y", "x"), rows("0", "1", n=2)),
    "words": (("outcome", "body_text"), rows("ham", "spam")),
    "words, sorted": (("outcome", "body_text"), rows("ham")),
    "other classes": (("kategorie", "kurztext"), rows("gut", "schlecht")),
    "another script": (("метка", "сообщение"), rows("спам", "нет")),
    "with an id": (("id", "outcome", "txt"), numbered(rows("ham", "spam"))),
    "without labels": (("nr", "txt"), [(str(i), TEXTS[i % 5]) for i in range(30)]),
    "Kaggle's empty columns": (("c1", "c2", "", ""), [(*r, "", "") for r in rows("ham", "spam")]),
    "text first": (("txt", "y"), [(b, a) for a, b in rows("0", "1")]),
    "an index": (("", "outcome", "body_text"), numbered(rows("ham", "spam"))),
    "an index, sorted": (
        ("", "outcome", "body_text"),
        [(str(i), "junk", f"see you at {i}") for i in range(20)],
    ),
    "an index and letters": (("", "a", "b"), numbered(rows("ham", "spam"))),
    "a shuffled index": (("", "a", "b"), numbered(rows("0", "1"))[::-3]),
    "an index and texts alone": (("", "txt"), [(str(i), f"see you at {i}") for i in range(30)]),
    "no names": (("0", "1"), rows("ham", "spam")),
    "no names over numbers": (("0", "1"), rows("0", "1")),
    "an index and no names": (("", "0", "1"), numbered(rows("ham", "spam"))),
    "an index and no names over numbers": (("", "0", "1"), numbered(rows("0", "1"))),
    "an index and a series": (("", "0"), [(str(i), TEXTS[i % 5]) for i in range(30)]),
    "of several words": (("opinion", "text body"), rows("fine", "junk")),
    "of several words, beside others": (
        ("From", "What they wrote", "My opinion"),
        [(f"b{'o' * (i % 9)}b", b, a) for i, (a, b) in enumerate(rows("fine", "junk"))],
    ),
    "of several words over answers": (("Decision", "What they wrote"), rows("0", "1")),
    "of several words over yes and no": (("Is it junk?", "What they wrote"), rows("Yes", "No")),
    "of several words over one": (("Verdict of reviewer", "What they wrote"), rows("ham", "spam")),
    "over dates": (
        ("When", "From", "Message text", "Spam or ham"),
        [(f"May {i}", "bob", b, a) for i, (a, b) in enumerate(rows("ham", "spam", n=4))],
    ),
    "over dates, without labels": (
        ("When", "From", "What they wrote"),
        [(f"May {i}", f"b{'o' * i}b", f"see you all at the {i}" * 2) for i in range(30)],
    ),
    "spam over numbers": (
        ("Datum", "Nachricht (Text)", "Spam"),
        [(f"{i % 3}. Mai", b, a) for i, (a, b) in enumerate(rows("1", "0"))],
    ),
    "with a mistake among the labels": (("y", "x"), [*rows("ham", "spam"), ("hma", "see you")]),
}
MESSAGES = {
    "uci": (("ham", "Go until jurong point"), rows("ham", "spam")),
    "a short first message": (("ham", "Ok"), rows("ham", "spam")),
    "the same in few rows": (("ham", "Ok"), rows("ham", "spam", n=2)),
    "of other classes": (("good", "Ok"), rows("good", "junk")),
    "of numbers": (("0", "Ok"), rows("0", "1")),
    "the first class once, sorted": (("good", "Ok"), rows("junk")),
    "the first number once, sorted": (("0", "Ok"), rows("1")),
    "ham once, sorted": (("ham", "Ok"), rows("spam")),
    "in capitals": (("HAM", "Ok"), rows("spam")),
    "a third class with a message of words": (("promo", "big sale"), rows("ham", "spam")),
    "a third class with a link": (("promo", "http://a.example/x"), rows("ham", "spam")),
    "a third class of words, with a number": (("not sure", "call 911"), rows("ham", "spam")),
    "a third class of words, with a sign": (("not sure", "big sale!"), rows("ham", "spam")),
    "a third class of words, in few rows": (("not sure", "big sale"), rows("ham", "spam", n=19)),
    "a third class of words, sorted": (("not sure", "big sale"), rows("ham")),
    "one of four classes": (("not sure", "big sale"), rows("ham", "spam", "promo")),
    "of several words beside such": (("not sure", "big sale"), rows("no spam", "some spam")),
    "a class once, beside answers": (("ham", "big sale"), rows("yes", "no")),
    "an answer of another kind": (("no", "big sale"), rows("0", "1")),
    "the first answer once, sorted": (("no", "big sale"), rows("yes")),
    "texts that are all words": (("a", "b"), rows("0", "1", texts=["Ok", "yes", "no", "why"])),
    "a third class, with a date": (
        ("May 1", "big sale", "promo"),
        [(f"May {i}", b, a) for i, (a, b) in enumerate(rows("ham", "spam"))],
    ),
    "one column": (("x",), [(text,) for text in TEXTS]),
    "nothing below": (("y", "x"), []),
    "one row below": (("y", "x"), rows("0", n=1)),
    "a name twice": (("x", "x"), rows("0", "1")),
    "an empty name": (("", "x"), rows("0", "1")),
    "an id left out": (("", "ham", "Ok"), numbered(rows("ham", "spam"))),
    "an id left out, of other classes": (("", "good", "Ok"), numbered(rows("good", "junk"))),
    "an id left out before a text": (("", "ham", "see you"), numbered(rows("ham", "spam"))),
    "numbers that no one counted": (("1", "2"), rows("0", "1")),
    "numbers over words": (("0", "1"), rows("0", "1", texts=["Ok", "yes", "no", "why"])),
    "labels that do not repeat": (("y", "x"), [("ab", "see you"), ("cd", "at nine")]),
}


def test_a_header_of_unknown_names_is_one_and_a_first_message_is_none():
    assert [case for case in HEADERS if not is_header_row(*HEADERS[case])] == []
    assert [case for case in MESSAGES if is_header_row(*MESSAGES[case])] == []


LABELS = st.sampled_from([("ham", "spam"), ("0", "1"), ("good", "bad"), ("a", "b", "c")])


@given(LABELS, st.lists(st.text(min_size=1, max_size=30), min_size=8, max_size=40), st.data())
def test_no_row_of_a_class_that_repeats_is_a_header(classes, texts, data):
    """Whatever the texts are, even bare words; but for `0,1`, as pandas counts columns."""
    table = [(classes[i % len(classes)], text) for i, text in enumerate(texts)]
    first = data.draw(st.integers(0, len(table) - 1))
    others = table[:first] + table[first + 1 :]
    assume(table[first] != ("0", "1"))
    assert not is_header_row(table[first], others)


LINES = "ham{0}see you soon\nspam{0}win a prize\nham{0}at nine\nspam{0}buy now\n"
COMMAS = LINES.format(",")
WRITTEN = {
    "a.csv": "outcome,body_text\n" + COMMAS,
    "b.csv": "outcome;body_text\n" + LINES.format(";"),
    "c.tsv": "outcome\tbody_text\n" + LINES.format("\t"),
    "d": "y\tx\n" + LINES.format("\t") + "ham\tlater on\n" * 8,
    "e.csv": "id,outcome,txt\n1,ham,see you soon\n2,spam,win a prize\n3,ham,at nine\n4,spam,buy\n",
    "pandas.csv": ",outcome,body_text\n0,ham,see you soon\n1,spam,win a prize\n2,ham,at nine\n",
    "counted.csv": "0,1\n" + COMMAS,
}


def read(path, header_row=None):
    told: list[SourceError] = []
    options = ReadingOptions(TableOptions(header_row=header_row), tell=told.append)
    raws = list(labelled(str(path), options, Skips(strict=True)))
    return {raw.label for raw in raws}, [raw.source for raw in raws], list(map(str, told))


@each("header", ["Is spam,Text", "spam?,Message Text", "JUNK;message", "text;Spam ?"])
@each("answers", ["1 0", "TRUE FALSE", "Yes no", "junk fine"])
def test_a_column_called_spam_however_it_is_written_answers_yes_or_no(header, answers, tmp_path):
    path = tmp_path / "a.csv"
    yes, no = answers.split()
    rows = [f"{yes},buy now", f"{no},see you"] * 4
    if header.startswith("text"):
        rows = [",".join(reversed(row.split(","))) for row in rows]
    path.write_text("\n".join([header.replace(";", ","), *rows]))
    assert read(path)[::2] == ({"ham", "spam"}, [])


@each("name", WRITTEN)
def test_it_is_no_message_and_the_user_is_told(name, tmp_path):
    path = tmp_path / name
    path.write_text(WRITTEN[name])
    classes, sources, told = read(path)
    assert classes == {"ham", "spam"}
    assert sources[0] == f"{path}:2"
    (sentence,) = told
    names = WRITTEN[name].split("\n")[0].replace(";", ",").replace("\t", ",").split(",")
    header = ", ".join(filter(None, names))
    assert sentence.startswith(f"{path}: its first row names the columns ({header}); ")


def test_a_usual_name_needs_no_note_and_the_user_may_say_otherwise(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("label;SMS\nham;see you\nspam;win a prize\n")
    assert read(path) == ({"ham", "spam"}, [f"{path}:2", f"{path}:3"], [])
    path = tmp_path / "a.tsv"
    path.write_text(WRITTEN["d"])
    assert read(path, header_row=False)[0] == {"ham", "spam", "y"}
    path = tmp_path / "a.csv"
    path.write_text("good,Ok\njunk,win\njunk,buy\njunk,cash\n")
    assert read(path)[0] == {"good", "junk"}
    assert read(path, header_row=True)[0] == {"junk"}
    assert read(path, header_row=True)[2] == []
