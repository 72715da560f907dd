"""However a source is cut, its pieces have the messages of the whole, with the same names."""

import gzip
import json

import pandas
import pytest
from cluster_training import messages
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.errors import Remedy
from nbspam.reading.cutting import Cutter, MissingFileError
from nbspam.reading.message import RawMessage
from nbspam.reading.source import ReadingNote, ReadingOptions, Skipped, Skips, Spelling

FROM = b"From a@b.example Thu Jan  1 00:00:00 2026\n"
MAIL_LINES = st.sampled_from([b"text", b"", b"From me to you", b">From here", FROM[:-1], b"a: b"])
MAILS = st.lists(st.lists(MAIL_LINES, max_size=6).map(b"\n".join), min_size=1, max_size=8)
LINES = st.sampled_from(["ham\ttext", "spam\tfree", "", "no label", 'ham\t"quoted', "ham\t\xe9"])


def check(asked, size, options=None):
    """Compare the pieces with the whole; return the pieces."""
    options, skips, other = options or ReadingOptions(), Skips(), Skips()
    pieces = list(Cutter(options, size).pieces(*asked))
    found = []
    for piece in pieces:
        for raw in [piece] if isinstance(piece, RawMessage | ReadingNote) else piece.read():
            if isinstance(raw, ReadingNote):
                other.take(raw)
            else:
                found.append(raw)
    assert found == list(messages(*asked, options, skips))
    assert (other.count, other.named) == (skips.count, skips.named)
    return pieces


@given(MAILS, st.integers(1, 200))
def test_an_mbox(tmp_path_factory, mails, size):
    path = tmp_path_factory.mktemp("mbox") / "a.mbox"
    path.write_bytes(b"".join(FROM + b"Subject: x\n\n" + mail + b"\n\n" for mail in mails))
    check((str(path), "ham", False), size)


@given(st.lists(LINES, max_size=12), st.integers(1, 60), st.booleans())
def test_a_table(tmp_path_factory, lines, size, ends):
    path = tmp_path_factory.mktemp("table") / "a.tsv"
    path.write_text("\n".join([*["ham\tone", "spam\ttwo"] * 9, *lines]) + "\n" * ends, "latin-1")
    check((str(path), None, True), size)


def test_a_table_is_cut_but_not_one_with_quoted_line_ends(tmp_path):
    plain, quoted = tmp_path / "a.csv", tmp_path / "b.csv"
    plain.write_text("label,text\n" + "ham,see you\nspam,win,now\n" * 50)
    quoted.write_text("label,text\n" + 'ham,"see\nyou"\nspam,win\n' * 50)
    assert len(check((str(plain), None, True), 100)) > 5
    rows = check((str(quoted), None, True), 100)
    assert {*map(type, rows)} == {RawMessage, Spelling}


@each("name", ["a.tsv.gz", "a.json", "a.parquet", "utf16.tsv", "cr.csv"])
def test_what_cannot_be_cut_is_read_here(tmp_path, name):
    path = tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(b"ham\tone\nspam\ttwo\n" * 50))
    elif name.endswith(".parquet"):
        pandas.DataFrame({"text": ["x", "y"] * 50, "spam": [0, 1] * 50}).to_parquet(path)
    elif name.endswith(".json"):
        path.write_text(json.dumps([{"label": "ham", "text": "x"}, {"label": "spam", "text": "y"}]))
    elif name == "cr.csv":
        path.write_bytes(b"ham,one\rspam,two\r" * 50)
    else:
        path.write_text("ham\tone\nspam\ttwo\n" * 50, "utf-16")
    rows = check((str(path), None, True), 100)
    assert {*map(type, rows)} == {RawMessage, Spelling}


def test_lines_and_folders_are_cut(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"line {i}\n\n" for i in range(99)))
    options = ReadingOptions(input_format="lines")
    assert len(check((str(path), "ham", False), 100, options)) > 5
    folder = tmp_path / "mails" / "ham"
    folder.mkdir(parents=True)
    for i in range(600):
        (folder / f"{i}.eml").write_text(f"Subject: {i}\n\nx\n")
    assert len(check((str(folder), "ham", False), 1)) == 5
    (folder.parent / "README").write_text("of no class: told, with what to do about it")
    (folder / "link").symlink_to("/etc/passwd")
    found = check((str(folder.parent), None, True), 1)
    remedies = [skipped.remedy for skipped in found if isinstance(skipped, Skipped)]
    assert remedies == [Remedy.GIVE_OUTSIDE_LABEL, Remedy.ALLOW_OUTSIDE]


def test_a_machine_without_the_file_says_so(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("ham\tone\nspam\ttwo\n" * 50)
    pieces = list(Cutter(ReadingOptions(), 100).pieces(str(path)))
    path.write_text("ham\tone\n")
    with pytest.raises(MissingFileError, match="is a different file"):
        list(pieces[0].read())
    path.unlink()
    with pytest.raises(MissingFileError, match="cannot be found"):
        list(pieces[-1].read())
