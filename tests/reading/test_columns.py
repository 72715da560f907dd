"""Which column has the message and which the label; what is not certain is told, or refused."""

# ruff: noqa: E501

import json
import random
import re
from pathlib import Path

import pandas as pd
import pytest
from layouts import LAYOUTS, layout, messages, other, written
from one_case import each

from nbspam.errors import TableError
from nbspam.reading.columns import (
    LABEL_NAMES,
    TEXT_NAMES,
    VERDICT_COLUMNS,
    Measure,
    column_key,
    measure,
)
from nbspam.reading.lines import MULTIBYTE_CHARSETS, SINGLE_BYTE_CHARSETS, charset_title
from nbspam.reading.source import ReadingOptions, Skips, TableOptions
from nbspam.reading.sources import read_labelled

PAIRS = [(label, " ".join(text.replace('"', "'").split())) for label, text in messages(90, 3)]


def read(path, **table):
    """Return the messages of a table, what is told but labels that may be meant, and skips."""
    told, skips = [], Skips()
    options = ReadingOptions(TableOptions(**table), on_note=told.append)
    raws = read_labelled(str(path), options, skips)
    found = [(raw.label, " ".join(raw.content.split())) for raw in raws]
    told = [str(what).removeprefix(f"{path}: ") for what in told if "labels are" not in str(what)]
    return found, told, [line.removeprefix(f"{path}:") for line in skips.named]


@each("name", LAYOUTS)
def test_a_layout_is_read_right_or_refused(name, tmp_path):
    content, suffix, expected, sure = layout(name)
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    if sure not in ("sure", "told"):
        with pytest.raises(TableError, match=f"each of 'c.', 'c.' may be the {sure}; name the"):
            read(path)
        return
    found, told, skipped = read(path)
    assert (found, skipped) == ([(label, " ".join(t.split())) for label, t in expected], [])
    assert bool(told) == (sure == "told")


def frame(kinds, names, ham="ham", spam="spam"):
    """Return a table; kinds: of its columns, as `layouts.other` has them, or a cell itself."""
    chance, columns = random.Random(1), []
    for kind in kinds.split():
        if kind in ("message", "label"):
            column = [
                text if kind == "message" else {"ham": ham, "spam": spam}[label]
                for label, text in PAIRS
            ]
        else:
            column = [kind[1:] if kind[0] == "=" else other(kind, chance, i) for i in range(90)]
        columns.append(column)
    made = pd.DataFrame(dict(enumerate(columns)))
    made.columns = names.split("|")
    return made


# Columns, their names, the cells for ham and spam, the classes these are, and which line is told.
LABELS = [
    ("platform message label", "type|text|spam", "0 1", "ham spam", ""),
    ("lang label message", "class|is_junk|text", "no yes", "ham spam", ""),
    ("category label message", "target|spam|body", "FALSE TRUE", "ham spam", ""),
    ("category message label", "category|message|is_fraud", "0 1", "0 1", ""),
    ("category message label", "category|message|flagged", "no yes", "no yes", "'flagged' (by content: no, yes)"),
    ("=sms label message", "type|scam|sms", "0 1", "0 1", ""),
    ("=email label message", "class|phishing|body", "no yes", "no yes", ""),
    ("=en message label", "label|text|seen by us", "0 1", "0 1", "'seen by us' (by content: 0, 1)"),
    ("message label", "text|is_ham", "1 0", "ham spam", ""),
    ("message label", "text|label", "0.0 1.0", "0 1", ""),
    ("message label category", "text|v|w", "x y", "x y", "'v' (by content: x, y)"),
]  # fmt: skip
TEXTS = [
    ("address message label", "mail|body text|label", ""),
    ("uuid message label", "message|wording|label", "'wording' (by content)"),
    ("phone message label", "sms|inhalt|label", ""),
    ("=text/plain message label", "content|payload|label", "'payload' (by content)"),
    ("likes message label", "comment|words|label", "'words' (by content)"),
    ("title message label", "text|reply|label", "'reply' (by content)"),
    ("url message agent label date", "Referer|Field|UA|Verdict|When", "'Field' (by content)"),
    ("heading message label", "headline|article|label", "'article' (by content)"),
    ("message agent label", "comment_content|comment_agent|class", ""),
    ("about message label", "message|text|label", "'text' (by name; 'message' reads like it, too)"),
]


@each("kinds, names, labels, classes, line", LABELS)
def test_a_column_that_says_ham_or_spam_or_yes_or_no_is_the_label(
    kinds, names, labels, classes, line, tmp_path
):
    path = tmp_path / "a.csv"
    path.write_bytes(written(frame(kinds, names, *labels.split()), "csv"))
    found, told, skipped = read(path)
    ham, spam = classes.split()
    assert found == [(spam if label == "spam" else ham, text) for label, text in PAIRS]
    told = [what for what in told if what.startswith("label")]
    assert told == (
        [f"label: column {line}; name another if it is wrong (--label-column)"] if line else []
    )
    assert skipped == []


@each("number", ["", "_2"])
def test_verdicts_that_classify_added_are_no_labels(tmp_path, number):
    path = tmp_path / "a.csv"
    rows = [
        f"{text.replace(',', '')},{label},0.{i},{i},\n" for i, (label, text) in enumerate(PAIRS)
    ]
    added = ",".join(f"{name}{number}" for name in VERDICT_COLUMNS)
    path.write_text("".join([f"message,{added}\n", *rows]))
    with pytest.raises(TableError, match="looks like a label; name the label column"):
        read(path)
    cut = [f"{line.rpartition(',')[0]}\n" for line in [f"message,{added}", *rows]]
    path.write_text("".join(cut))  # without the reasons, which are seldom there
    with pytest.raises(TableError, match="looks like a label; name the label column"):
        read(path)
    path.write_text("".join([f"message,{added.replace('log_', '')}\n", *rows]))
    assert [label for label, _ in read(path)[0]] == [label for label, _ in PAIRS]


@each("kinds, names, line", TEXTS)
def test_a_name_is_a_hint_that_the_cells_must_not_contradict(kinds, names, line, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(written(frame(kinds, names), "csv"))
    found, told, _ = read(path)
    assert found == PAIRS
    told = [what for what in told if what.startswith("text")]
    assert told == (
        [f"text: column {line}; name another if it is wrong (--text-column)"] if line else []
    )


@each(
    "kinds, names, sentence",
    [
        ("message about label", "en|de|label", "each of 'en', 'de' may be the text; name the text"),
        ("id likes label", "a|b|label", "no column among 'a', 'b', 'label' reads like messages; n"),
        (
            "url agent label",
            "a|b|label",
            "no column among 'a', 'b', 'label' reads like messages; n",
        ),
        ("message lang label", "text|a|b", "each of 'a', 'b' may be the label; name the label col"),
        (
            "message id",
            "text|nr",
            "no column among 'text', 'nr' looks like a label; name the label",
        ),
    ],
)
def test_what_nobody_can_tell_is_refused(kinds, names, sentence, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(written(frame(kinds, names, "x", "y"), "csv"))
    with pytest.raises(TableError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: {sentence}")


@each(
    "text",
    [
        "明天见，记得带伞",
        "会議は三時に始まります",
        "พรุ่งนี้เจอกันนะ",
        "see you soon",
        "увидимся в десять",
    ],
)
def test_a_text_of_any_script_is_one(text):
    found = measure([f"{text} {'!' * i}" for i in range(9)])
    assert (found.is_text, found.share_not_text) == (True, 0)


# Fields within objects

NESTED = [
    ("label", [{"text": t, "label": [v]} for v, t in PAIRS], {}, None),
    ("labels", [{"data": t, "labels": [v]} for v, t in PAIRS], {}, None),
    ("sparse", [{"id": 1, "from": "x"}] * 3 + [{"label": v, "text": t} for v, t in PAIRS], {}, None),
    ("names", [{"text": t, "label": [{"name": v}]} for v, t in PAIRS], {"label_column": "label.name"},
     "no column among 'text', 'label' looks like a label; name one of 'label.name'"),
    ("scores", [{"text": t, "cats": {"n": 1, "spam": int(v == "spam")}} for v, t in PAIRS],
     {"label_column": "cats.spam"},
     "no column among 'text', 'cats' looks like a label; name one of 'cats.n', 'cats.spam'"),
    ("body", [{"message": {"body": t, "id": i}, "label": v} for i, (v, t) in enumerate(PAIRS)],
     {"text_column": "message.body"},
     "column 'message' has objects or lists; name one of 'message.body', 'message.id'"),
    ("deep", [{"data": {"text": t}, "done": [{"result": [{"value": {"choices": [v]}}]}]} for v, t in PAIRS],
     {"text_column": "data.text", "label_column": "done.result.value.choices"},
     "no column among 'data', 'done' looks like a label; name one of 'data.text', 'done.result."),
]  # fmt: skip


@each("name, rows, options, sentence", NESTED)
@each("form", ["jsonl", "json", "parquet", "frame"])
def test_a_list_of_one_is_its_value_and_a_field_within_an_object_is_named(
    name, rows, options, sentence, form, tmp_path
):
    path = tmp_path / f"a.{form}"
    if form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif form == "json":
        path.write_text(json.dumps(rows))
    else:
        pd.DataFrame(rows).to_parquet(path)
    if sentence:
        with pytest.raises(TableError) as error:
            read(path)
        assert str(error.value).startswith(f"{path}: {sentence}"), name
    assert read(path, **options)[0] == PAIRS


def test_several_labels_of_one_message_are_none(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [{"text": text, "label": [label]} for label, text in PAIRS]
    rows += [{"text": "x", "label": ["ham", "spam"]}, {"text": ["a", "b"], "label": "ham"}]
    rows += [{"text": "y", "label": []}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found, _, skipped = read(path)
    assert found == PAIRS
    assert skipped == [
        "91: its label is an object or a list",
        "92: its text is an object or a list",
        "93: the row has no label",
    ]


# Rows


def lines_of(kinds="label message", names="label|text", **dialect):
    return written(frame(kinds, names), "csv").decode().splitlines()


def joined(header, body, size=30):
    return "\n".join(
        line for i in range(0, len(body), size) for line in (header, *body[i : i + size])
    )


HEADER, *BODY = lines_of()
SEMICOLONS = frame("label message", "label|text").to_csv(index=False, sep=";").splitlines()
FIELDS = frame("id message label", "id|text|label").to_csv(index=False).splitlines()
ROW = "its row {} names the columns ({}); if that is a message, say so (--header-row no)"
ABOVE = {
    "files joined": (joined(HEADER, BODY), [], 2),
    "in capitals": (joined(HEADER, BODY).replace(HEADER, "Label,TEXT", 2), [], 2),
    "with byte order marks": (joined(f"\ufeff{HEADER}", BODY), [], 2),
    "Excel's semicolon": ("\n".join(["sep=;", *SEMICOLONS]), [], 0),
    "Excel's semicolon, quoted": ("\r\n".join(['\ufeff"sep=;"', *SEMICOLONS]), [], 0),
    "Excel's comma": ("\n".join(["sep=,", HEADER, *BODY]), [], 0),
    "Excel's bar": ("\n".join(["SEP=|", *SEMICOLONS]).replace(";", "|"), [], 0),
    "a title": ("\n".join(["Report, March 2024", "", *SEMICOLONS]), [ROW.format(2, "label, text")], 0),
    "a padded title": ("\n".join(["All of it,,", ",,", *FIELDS]), [ROW.format(3, "id, text, label")], 0),
    "titles of as many cells": ("\n".join(["Exported by,Ann", "On,2024-01-01", HEADER, *BODY]), [ROW.format(3, "label, text")], 0),
}  # fmt: skip


@each("name", ABOVE)
def test_no_header_and_nothing_above_one_is_a_message(name, tmp_path):
    content, lines, again = ABOVE[name]
    path = tmp_path / "a.csv"
    path.write_bytes(content.encode())
    found, told, skipped = read(path)
    assert (found, told) == (PAIRS, lines)
    assert [line.partition(": ")[2] for line in skipped] == ["the header again"] * again


def test_a_header_in_another_order_stops_the_reading(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\n".join([HEADER, *BODY, "text,label", "see you,ham"]))
    with pytest.raises(TableError, match=r"a\.csv:92: names the columns in another order than"):
        read(path)


RAGGED = {
    "label last": "{i},{text},{label}",
    "in the middle": "{i},{text},{label},en",
    "label first": "{label},{text}",
    "label last, no header": "{text},{label}",
}


@each("name", RAGGED)
@each("delimiter", [",", ";", "|"])
def test_a_bare_delimiter_in_a_text_makes_no_class(name, delimiter, tmp_path):
    shape, path = RAGGED[name].replace(",", delimiter), tmp_path / "a.csv"
    pairs = [(label, text.replace(" a", f"{delimiter} a")) for label, text in PAIRS]
    rows = [shape.format(i=i, text=text, label=label) for i, (label, text) in enumerate(pairs)]
    names = shape.format(i="id", text="text", label="label").replace("en", "lang")
    path.write_text("\n".join(rows if "no header" in name else [names, *rows]))
    assert read(path)[::2] == (pairs, [])


def test_a_row_whose_label_nobody_knows_is_skipped_and_a_comma_elsewhere_found(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"Smith,{text.replace(',', '')},{label}" for label, text in PAIRS]
    rows += ["Smith, Ann,see you,ham", "see you, Smith,at nine,maybe", "see you"]
    path.write_text("\n".join(["author,text,label", *rows]))
    found, _, skipped = read(path)
    assert [label for label, _ in found] == [label for label, _ in PAIRS] + ["ham"]
    assert skipped == ["93: the row has no label", "94: the row has no text"]


def test_the_sheet_with_messages_is_read_and_the_others_are_named(tmp_path):
    path = tmp_path / "a.xlsx"
    summary = pd.DataFrame({"label": ["ham", "spam"], "n": [50, 40]})
    notes = pd.DataFrame({"note": ["what we found", "what is left to do"]})
    table, empty = frame("date message label", "date|text|label"), pd.DataFrame()
    for sheets in ([summary, table], [notes, summary, table], [empty, table], [table, summary]):
        with pd.ExcelWriter(path) as writer:
            for sheet in sheets:
                name = "Messages" if sheet is table else f"Sheet {len(sheet)} {len(sheet.columns)}"
                sheet.to_excel(writer, index=False, sheet_name=name)
        found, told, _ = read(path)
        assert found == PAIRS
        others = [s for s in sheets if s is not table and len(s)]
        assert len(told) == bool(others)
        assert all("sheet 'Messages' is read, and not 'Sheet 2 " in what for what in told)


# The manual

MANUAL = (Path(__file__).parents[2] / "docs/sources.md").read_text("utf-8")
# Where each row of its table is tested.
ROWS = {
    "a header with unknown names, or with a title above it": test_no_header_and_nothing_above_one_is_a_message,
    "Excel's `sep=;`": test_no_header_and_nothing_above_one_is_a_message,
    "R's row numbers, a column without a name": "tests/golden/reading/tables.table",
    "a label `NA`, `NaN`, `null` or `n/a`": "tests/golden/reading/tables.table",
    "the header again, where files were joined": test_a_header_in_another_order_stops_the_reading,
    "more cells than columns, as of bare commas": test_a_bare_delimiter_in_a_text_makes_no_class,
    "JSON: a key that only later objects have": test_a_list_of_one_is_its_value_and_a_field_within_an_object_is_named,
    "JSON, Parquet: a list of one": test_a_list_of_one_is_its_value_and_a_field_within_an_object_is_named,
    "JSON, Parquet: an object, a longer list": test_several_labels_of_one_message_are_none,
    **dict.fromkeys(
        (
            "quotes, invisible characters or a full stop around a label",
            "JSON: a text in pieces, as Telegram writes it",
            "pandas' index with a name",
            "Parquet of Hugging Face's datasets",
            "Parquet: bytes (Impala, older Spark)",
            "a page of HTML, a Git LFS pointer",
        ),
        "tests/reading/test_ten_kinds.py",
    ),
    "Excel: several sheets": test_the_sheet_with_messages_is_read_and_the_others_are_named,
    "a class of up to five messages beside two large ones": "tests/cli/test_train.py",
}


def test_the_manual_says_what_is_so(tmp_path):
    section = MANUAL.partition("## Columns of a table")[2].partition("\n## ")[0]
    found = re.findall(r"^\| (.*?) \| ", section, re.M)
    assert {row for row in found if row != "in the table"} == set(ROWS)
    text, label = re.findall(r"^- \*\*.*?(?=^- |^What)", section, re.M | re.S)
    assert set(re.findall(r"`(\w+)`", text)) <= {*TEXT_NAMES, "title", "author", "bio"}
    assert {column_key(name) for name in re.findall(r"`(\w+)`", label)} <= {
        *LABEL_NAMES,
        "category",
        "type",
    }
    assert Measure(1, 0.5, 0.25, 9, 0.49).is_text
    assert not any(
        Measure(1, *m).is_text for m in ((0.49, 1, 9, 0), (1, 0.24, 9, 0), (1, 1, 9, 0.5))
    )
    path = tmp_path / "comments.csv"
    path.write_bytes(written(frame("id message label", "id|wording|label"), "csv"))
    line = (
        "nbspam: comments.csv: text: column 'wording' (by content); name another if it is wrong"
        " (--text-column)"
    )
    assert line in section
    assert read(path)[1] == [line.partition("csv: ")[2]]
    charsets = MANUAL.partition("## Characters")[2].partition("\n## ")[0]
    known = {
        charset_title(codec)
        for codec in [*MULTIBYTE_CHARSETS, *(codec for codec, _ in SINGLE_BYTE_CHARSETS)]
    }
    assert {name for name in known if "Windows" not in name} <= set(
        re.findall(r"[\w-]+\w", charsets)
    )
    assert {name for name in known if "Windows" in name} == {
        f"Windows-{n}" for n in range(1250, 1257)
    }
