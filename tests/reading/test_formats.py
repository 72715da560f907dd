"""Standard input and pipes in a format that the user names: nothing is read twice or waited for."""

import gzip
import io
import json
import os
import sys
import threading
import time
from contextlib import suppress

import pandas as pd
import pytest
from one_case import each

from nbspam.reading.rows import PATIENCE
from nbspam.reading.source import INPUT_FORMATS, LiveInput, ReadingOptions, Skips, TableOptions
from nbspam.reading.sources import read_labelled, read_messages, read_unlabelled

ROWS = [("ham", "see you, at nine"), ("spam", 'win a "prize" now')] * 150
FRAME = pd.DataFrame(ROWS, columns=["label", "text"])
FROM = b"From a@example.org Mon Nov 20 10:00:00 2023\n"
BOX = b"".join(FROM + b"Subject: %d\n\ntext %d\n\n" % (n, n) for n in (1, 2))


def parquet():
    out = io.BytesIO()
    FRAME.to_parquet(out)
    return out.getvalue()


TABLES = {
    "tsv": "".join(f"{a}\t{b}\n" for a, b in ROWS).encode(),
    "csv": FRAME.to_csv(index=False).encode(),
    "jsonl": FRAME.to_json(orient="records", lines=True).encode(),
    "json": FRAME.to_json().encode(),
    "parquet": parquet(),
}


@pytest.fixture
def stdin(monkeypatch):
    """Return a function that makes a pipe standard input, and returns what writes into it."""
    opened = []

    def make():
        end, begin = os.pipe()
        stream = os.fdopen(end, "rb")
        opened.extend([stream, os.fdopen(begin, "wb", 0)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
        return opened[-1]

    make.writers = []
    yield make
    for file in opened[::2]:
        file.close()  # ends a writer that still waits
    for writer in make.writers:
        writer.join()  # or it would write into what a later test opens under the same number
    for file in opened[1::2]:
        file.close()


def given(stdin, content):
    """Write a whole content into standard input, from another thread."""
    pipe = stdin()

    def write():
        with suppress(OSError):  # the reader may need no more, and the test end
            pipe.write(content)
            pipe.close()

    stdin.writers.append(threading.Thread(target=write, daemon=True))
    stdin.writers[-1].start()


def read(input_format, reader=read_messages, skips=None, **table):
    options = ReadingOptions(TableOptions(**table), input_format)
    return list(reader("-", options, skips or Skips(strict=True)))


@each("pack", [bytes, gzip.compress])
@each("name", TABLES)
@each(
    "form, reader", [("its own", read_labelled), ("its own", read_messages), (None, read_labelled)]
)
def test_tables_on_standard_input(name, form, reader, pack, stdin):
    """Where labels are needed, a table is recognised."""
    given(stdin, pack(TABLES[name]))
    raws = read(form and name, reader)
    assert [(raw.label, raw.content) for raw in raws] == ROWS
    assert all(raw.source.startswith("-:") for raw in raws)


@each("name", TABLES)
def test_a_table_is_one_message_unless_its_format_is_given(name, stdin):
    """Who sends a message must not choose how it is read."""
    for reader in (read_messages, lambda *args: read_unlabelled(args[0], "spam", *args[1:])):
        for input_format in (None, "message"):
            given(stdin, TABLES[name])
            (raw,) = read(input_format, reader)
            assert (raw.source, raw.content) == ("-", TABLES[name])


def test_a_file_is_read_in_the_format_given_but_a_folder_stays_a_folder(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(TABLES["csv"])
    raws = list(read_labelled(str(path), ReadingOptions(input_format="csv"), Skips()))
    assert [(raw.label, raw.content) for raw in raws] == ROWS
    for name in INPUT_FORMATS:
        (raw,) = read_messages(str(tmp_path), ReadingOptions(input_format=name), Skips())
        assert raw.source == str(path)


@each("quoted", [True, False])
def test_quotes_of_a_tsv_are_decided_by_its_beginning(quoted, stdin):
    """It is longer than what is looked at, and cut within a quoted cell of two lines or not."""
    frame = pd.DataFrame([("ham", 'one "two"\nthree'), ("spam", "win")] * 5_000)
    text = frame.to_csv(sep="\t", header=False, index=False)
    if not quoted:
        text = 'ham\t"opens\nham\tcloses"\nspam\t"both"\n' * 5_000
    given(stdin, text.encode())
    raws = read("tsv")
    texts = {raw.content for raw in raws}
    assert texts == ({'one "two"\nthree', "win"} if quoted else {'"opens', 'closes"', '"both"'})
    assert len(raws) == (10_000 if quoted else 15_000)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "name, lines",
    [
        ("lines", ["one", "two", "three"]),
        ("tsv", ["ham\thello you", "spam\twin now", "ham\tlater on"]),
        ("csv", ["label,text\nham,hello you", "spam,win now", "ham,later on"]),
        ("jsonl", [json.dumps({"text": word}) for word in ("one", "two", "three")]),
    ],
)
def test_messages_come_as_their_lines_do(name, lines, stdin):
    """As `tail -f` writes them: the first within the patience, the others at once."""
    pipe, live_input = stdin(), LiveInput()
    raws = read_messages(
        "-", ReadingOptions(input_format=name, live_input=live_input), Skips(strict=True)
    )
    seconds = []
    for line in lines:
        pipe.write(f"{line}\n".encode())
        started = time.monotonic()
        assert next(raws).source.startswith("-:")
        seconds.append(time.monotonic() - started)
        assert live_input.would_block()
    assert seconds[0] < PATIENCE + 10
    assert min(seconds[1:]) < PATIENCE / 2  # of the two, on a busy machine
    pipe.close()
    assert list(raws) == []
    assert not live_input.would_block()


def test_a_line_that_is_written_in_pieces_is_one(stdin, monkeypatch):
    monkeypatch.setattr("nbspam.reading.rows.PATIENCE", 0.05)
    pipe = stdin()
    raws = read_messages(
        "-", ReadingOptions(input_format="tsv", live_input=LiveInput()), Skips(strict=True)
    )

    def write():
        for piece in (b"ham\thel", b"lo you", b"\nspam\twin\n"):
            pipe.write(piece)
            time.sleep(0.1)
        pipe.close()

    stdin.writers.append(threading.Thread(target=write, daemon=True))
    stdin.writers[-1].start()
    assert [raw.content for raw in raws] == ["hello you", "win"]
