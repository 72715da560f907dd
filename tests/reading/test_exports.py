"""What exports of mail programs hold beside mail, Gmail's labels, and other forms of mboxes."""

import pytest
from one_case import each

from nbspam.errors import SourceError
from nbspam.reading.source import ReadingOptions, Skips
from nbspam.reading.sources import read_unlabelled

MAIL = b"""\
Received: from mail.example.org by mx.example.net; Tue, 25 Nov 2025 10:00:00 +0000
From: Ann <ann@example.org>
Subject: minutes %d

Hello Hal, the minutes are in the folder.
"""
TABLE = b'{"ID": "q8Zr", "Subject": "minutes"}'


def read(path, label="ham", seen=False):
    skips = Skips()
    found = list(read_unlabelled(str(path), label, ReadingOptions(seen=seen), skips))
    return [raw.source for raw in found], skips.named


@each(
    "files",
    [
        {"1.metadata.json": TABLE, "labels.json": TABLE},  # Proton
        {"1.meta": TABLE},  # Gmvault
        {"index.html": b"<html><body>minutes</body></html>", "index.csv": b"Subject,From\n"},
        {"mbsyncstate": b"FarUidValidity 1\n\n1 1 S\n", "README": b"These are mails.\n"},
    ],
)
@each("ending", [".eml", ""])
def test_files_that_an_export_puts_next_to_messages_are_left_out(tmp_path, files, ending):
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    folder.mkdir()
    for i in range(3):
        (folder / f"{i}{ending}").write_bytes(MAIL % i)
    wanted = {str(path) for path in folder.iterdir()}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    found, named = read(folder)
    if ending:
        assert ({*found}, len(named)) == (wanted, len(files))
    assert wanted <= {*found}
    (folder / "4.json").write_bytes(MAIL % 4)  # a mail, whatever its name
    assert str(folder / "4.json") in read(folder)[0]


def test_texts_in_a_folder_are_messages(tmp_path):
    for i in range(3):
        (tmp_path / f"{i}.html").write_text("<p>free prize</p>")
    assert len(read(tmp_path)[0]) == 3


LABELLED = b"X-GM-THRID: 17\nX-Gmail-Labels: %s\n" + MAIL


@each(
    "labels, label, is_read",
    [
        (b"Archived,Opened", "ham", True),
        (b"Spam,Unread", "ham", False),
        (b"Spam,Unread", "spam", True),
        (b"Inbox,Opened", "spam", False),
        (b"=?UTF-8?Q?Papierkorb,Ge=C3=B6ffnet?=", "ham", False),
        (b"Inbox,\n Papelera", "ham", False),
        (b"Spam", "promo", True),
    ],
)
def test_gmails_labels_are_heard(tmp_path, labels, label, is_read):
    box = tmp_path / "All mail Including Spam and Trash.mbox"
    box.write_bytes(b"From 17@xxx Tue Nov 25 10:00:00 +0000 2025\n" + LABELLED % (labels, 1))
    found, named = read(box, label)
    assert (len(found), len(named)) == (int(is_read), int(not is_read))


def test_labels_that_a_sender_wrote_are_not_heard(tmp_path):
    box = tmp_path / "box"
    mail = MAIL.replace(b"Subject", b"X-Gmail-Labels: Spam\nSubject") % 1
    box.write_bytes(b"From a@b Tue Nov 25 10:00:00 2025\n" + mail)
    assert len(read(box)[0]) == 1


def test_unread_mail_of_a_takeout_is_not_seen(tmp_path):
    box = tmp_path / "box"
    line = b"From 17@xxx Tue Nov 25 10:00:00 +0000 2025\n"
    mails = [line + LABELLED % (labels, 1) for labels in (b"Inbox,Opened", b"Inbox,Unread")]
    box.write_bytes(b"\n".join(mails))
    assert len(read(box, seen=True)[0]) == 1


LINE = b"From ann@example.org Tue Nov 25 10:00:00 2025\n"
BOX = b"".join(LINE + MAIL % i for i in range(3))


@pytest.mark.parametrize(
    "content, said",
    [
        (BOX, "no blank line separates its messages; convert it with formail"),
        (BOX.replace(b"\n", b"\r"), "its lines end with CR"),
        (b"*mbx*\r\n17640648000000000003\r\n" + b" " * 2000, "UW-IMAP's mbx format"),
        (b".MSG_COUNT 12 34 20240101\nprize 1 2 20240101\nx 1 0 20240101\n", "switching.md"),
        (b"v\t3\tdb_version # this must be the first line!!!\n", "switching.md"),
        (b"free 10 2 20240101\nlunch 0 9 20240101\n", "switching.md"),
        (b"0.987         10          2 1700000000  free\n", "switching.md"),
        (b"21,34\nprize,3,4\nhello,5,0\n", "switching.md"),
    ],
)
def test_what_cannot_be_split_or_is_no_mail_is_refused(tmp_path, content, said):
    (tmp_path / "box").write_bytes(content)
    with pytest.raises(SourceError, match=said):
        read(tmp_path / "box")


def test_the_first_message_of_uw_imap_is_no_mail(tmp_path):
    internal = (
        LINE + b"From: Mail System Internal Data <MAILER-DAEMON@mx>\nX-IMAP: 17640648 3\n"
        b"Subject: DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA\n\nThis text is internal.\n\n"
    )
    (tmp_path / "box").write_bytes(internal + LINE + MAIL % 1)
    assert read(tmp_path / "box")[0] == [f"{tmp_path / 'box'}:2"]
