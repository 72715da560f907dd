"""Mboxes; and links, within a folder followed, out of it on request, to where they are never."""

import io
import mailbox
from email.message import EmailMessage
from pathlib import Path

import pytest
from golden_tables import golden_table
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading import mail as mbox
from nbspam.reading.source import ReadingOptions, Skips
from nbspam.reading.sources import read_labelled, read_unlabelled

FROM = b"From a@example.org Mon Nov 20 10:00:00 2023\n"
SAMPLE = Path(__file__).parents[2] / "sample_data" / "mail" / "spam.mbox"


def read(box, limit=1 << 20):
    return [message.rstrip(b"\r\n") for message in mbox.split_mbox(io.BytesIO(box), limit)]


ONE, TWO = b"Subject: 1\n\none", b"Subject: 2\n\ntwo"


@each(
    "box, expected",
    [
        (FROM + ONE + b"\n\n" + FROM + TWO + b"\n\n", [ONE, TWO]),
        (FROM + ONE + b"\n", [ONE]),
        *((box, []) for box in (b"", b"\n", b"\r\n\r\n")),
        (FROM + b"Subject: 1\n\n" + FROM + b"Subject: 2\n\n", [b"Subject: 1", b"Subject: 2"]),
        (FROM + ONE + b"\n" + FROM + TWO, [ONE + b"\n" + FROM + TWO]),  # no blank line before it
    ],
)
def test_messages_without_their_separators(box, expected):
    assert read(box) == expected


@each("written, expected", golden_table("reading/mboxes.table", 2, "quoted lines"))
def test_quoted_from_lines(written, expected):
    box = FROM + b"Subject: 1\n\n" + written.encode()
    assert read(box) == [b"Subject: 1\n\n" + expected.encode()]


@each("line", golden_table("reading/mboxes.table", 1, "no separators"))
def test_from_lines_in_a_body_that_separate_nothing(line):
    mail = b"Subject: 1\n\nhello\n\n%b\nmore words" % line.encode()
    assert read(FROM + mail) == [mail]


@each("line", golden_table("reading/mboxes.table", 1, "separators"))
@each("line_end", [b"\n", b"\r\n"])
def test_separators_of_other_writers(line, line_end):
    box = b"%b\n%b\n\n%b\n%b" % (line.encode(), ONE, line.encode(), TWO)
    assert mbox.is_mbox(box.replace(b"\n", line_end))
    assert read(box.replace(b"\n", line_end)) == [m.replace(b"\n", line_end) for m in (ONE, TWO)]


@each("chunk", [1, 2, 3, 7, 50, 64, 100, 1000, 2001, 5000])
@each("line_end", [b"\n", b"\r\n"])
def test_chunk_size_makes_no_difference(chunk, line_end, monkeypatch):
    messages = [
        b"Subject: %d\n\n%b\n\nFrom here on\n>From there" % (i, b"word " * (i * i * 7 % 900))
        for i in range(12)
    ]
    box = b"".join(FROM + message + b"\n\n" for message in messages).replace(b"\n", line_end)
    expected = [m.replace(b">From", b"From").replace(b"\n", line_end) for m in messages]
    monkeypatch.setattr(mbox, "_CHUNK", chunk)
    assert expected == read(box)


@each("chunk", [100, 1 << 20])
def test_huge_message_is_cut_and_the_next_is_whole(chunk, monkeypatch):
    monkeypatch.setattr(mbox, "_CHUNK", chunk)
    huge = b"Subject: 1\n\n" + b"x" * 30_000
    assert read(FROM + huge + b"\n\n" + FROM + TWO, limit=5_000) == [huge[:5_000], TWO]
    assert read(FROM + huge, limit=5_000) == [huge[:5_000]]


LINES = st.lists(
    st.sampled_from(["hello", "", "From me", "From a Mon Nov 20 10:00:00 2023", ">From x", "A: b"]),
    max_size=12,
)


@given(st.lists(LINES, min_size=1, max_size=4))
def test_mbox_written_by_the_standard_library(tmp_path_factory, bodies):
    path = tmp_path_factory.mktemp("mbox") / "box"
    box = mailbox.mbox(path)
    for lines in bodies:
        mail = EmailMessage()
        mail["Subject"] = "x"
        mail.set_content("\n".join(lines) + "\n")
        written = mailbox.mboxMessage(mail)
        written.set_from("a@example.org", (2023, 11, 20, 10, 0, 0, 0, 324, 0))
        box.add(written)
    box.flush()
    expected = []
    for message in box:
        # mboxo, as it writes, does not tell a quoted line from one that began so.
        text = message.as_bytes().replace(b"\n>From ", b"\nFrom ")
        expected.append(text.rstrip(b"\n"))
    box.close()
    assert expected == read(path.read_bytes())


@each("sample, expected", golden_table("reading/mboxes.table", 2, "beginnings"))
def test_is_mbox(sample, expected):
    assert mbox.is_mbox(sample.encode()) == (expected == "True")


def test_16_mb_of_near_separators_take_no_more_than_linear_time():
    line = b"From a Mon Nov 20 " + b"x" * 400 + b"\n\n"
    assert len(read(FROM + b"Subject: 1\n\n" + line * 20_000, 1 << 24)) == 1


@pytest.fixture
def top(tmp_path):
    top = tmp_path.resolve()
    for name in ("mail/ham/1a", "mail/spam/2", "mails/3", "other/4", "secret"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(f"Subject: {name}\n\ntext\n")
    return top


def found_in(reads, *arguments, outside=False):
    skips = Skips()
    options = ReadingOptions(outside=outside)
    found = [raw.source for raw in reads(*arguments, options, skips)]
    return found, [line.partition(": ")[2] for line in skips.named]


@each("name, target, n, reason, n_outside, why", golden_table("reading/mboxes.table", 6, "links"))
def test_links(top, name, target, n, reason, n_outside, why):
    link = top / "mail" / "ham" / name
    link.symlink_to(target.format(top=top))
    try:
        for outside, more, said in ((False, n, reason), (True, n_outside, why)):
            found, reasons = found_in(read_labelled, str(top / "mail"), outside=outside)
            assert len(found) == 2 + int(more), found
            assert reasons == [said.format(top=top)] * bool(said)
    finally:
        link.unlink()


@each("target, outside, n", [("{top}/other", False, 1), ("{top}/other", True, 2), ("..", True, 1)])
def test_a_class_folder_and_a_part_of_a_maildir_that_are_links(top, target, outside, n):
    link = top / "mail" / "extra"
    link.symlink_to(target.format(top=top))
    found, reasons = found_in(read_labelled, str(top / "mail"), outside=outside)
    assert (len(found), len(reasons)) == (1 + n, 2 - n)
    link.unlink()
    box = top / "box"
    (box / "new").mkdir(parents=True, exist_ok=True)
    (box / "cur").symlink_to(target.format(top=top))
    found, reasons = found_in(read_unlabelled, str(box), "ham", outside=outside)
    assert (len(found), len(reasons)) == (n - 1, 2 - n)
    (box / "cur").unlink()


def test_a_folder_that_is_given_by_a_link_is_read(top):
    (top / "link").symlink_to(top / "other")
    assert found_in(read_unlabelled, str(top / "link"), "ham") == ([str(top / "link" / "4")], [])


def test_a_mail_is_read_though_its_name_starts_like_that_of_a_file_of_spark(tmp_path):
    for name in ("_metadata", "_SUCCESS", "_SUCCESS at last.eml"):
        (tmp_path / name).write_bytes(ONE)
    found = read_unlabelled(str(tmp_path), "ham", ReadingOptions(), Skips())
    assert [Path(raw.source).name for raw in found] == ["_SUCCESS at last.eml"]
