"""Links in folders: within it they are followed, out of it on request, to where they are never."""

import pytest
from one_case import each

from nbspam.errors import SourceError
from nbspam.reading.source import Skips
from nbspam.reading.sources import ReadingOptions, labelled, unlabelled

OUT = "the link leads out of {top}/mail; copy the file there, or give it as a source of its own"
UP = "the link leads to a folder that it is in"
AGAIN = "the link leads to a folder that was read already"
# A link in mail/ham, where it leads to -> what is read by it, and why it is not, without `outside`
# and with it.
LINKS = [
    ("1", "../spam/2", (1, ""), (1, "")),
    ("d", "../spam", (1, ""), (1, "")),
    ("d", "{top}/mail/spam", (1, ""), (1, "")),
    ("f", "{top}/secret", (0, OUT), (1, "")),
    ("f", "../../secret", (0, OUT), (1, "")),
    ("d", "{top}/other", (0, OUT), (1, "")),
    ("d", "{top}/mails", (0, OUT), (1, "")),  # a name that begins like the folder's
    ("d", ".", (0, AGAIN), (0, AGAIN)),
    ("d", "..", (0, UP), (0, UP)),
    ("d", "../..", (0, UP), (0, UP)),
    ("d", "/", (0, UP), (0, UP)),
    ("f", "f", (0, "the link leads nowhere"), (0, "the link leads nowhere")),
    ("f", "{top}/none", (0, "the link leads nowhere"), (0, "the link leads nowhere")),
]


@pytest.fixture
def top(tmp_path):
    top = tmp_path.resolve()
    for name in ("mail/ham/1a", "mail/spam/2", "mails/3", "other/4", "secret"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(f"Subject: {name}\n\ntext\n")
    return top


def read(reads, *arguments, outside=False, strict=False):
    skips = Skips(strict)
    options = ReadingOptions(outside=outside)
    found = [raw.source for raw in reads(*arguments, options, skips)]
    return found, [line.partition(": ")[2] for line in skips.named]


@each("name, target, without, with_it", LINKS)
def test_links(top, name, target, without, with_it):
    link = top / "mail" / "ham" / name
    link.symlink_to(target.format(top=top))
    try:
        for outside, (n, reason) in ((False, without), (True, with_it)):
            found, reasons = read(labelled, str(top / "mail"), outside=outside)
            assert len(found) == 2 + n, found
            assert reasons == [reason.format(top=top)] * bool(reason)
    finally:
        link.unlink()


@each("target, outside, n", [("{top}/other", False, 1), ("{top}/other", True, 2), ("..", True, 1)])
def test_a_class_folder_and_a_part_of_a_maildir_that_are_links(top, target, outside, n):
    link = top / "mail" / "extra"
    link.symlink_to(target.format(top=top))
    found, reasons = read(labelled, str(top / "mail"), outside=outside)
    assert (len(found), len(reasons)) == (1 + n, 2 - n)
    link.unlink()
    box = top / "box"
    (box / "new").mkdir(parents=True, exist_ok=True)
    (box / "cur").symlink_to(target.format(top=top))
    found, reasons = read(unlabelled, str(box), "ham", outside=outside)
    assert (len(found), len(reasons)) == (n - 1, 2 - n)
    (box / "cur").unlink()


def test_it_is_an_error_where_nothing_may_be_skipped(top):
    (top / "mail" / "ham" / "f").symlink_to("/etc/passwd")
    with pytest.raises(SourceError, match=r"/ham/f: the link leads out of .*; copy the file there"):
        read(labelled, str(top / "mail"), strict=True)


def test_a_folder_that_is_given_by_a_link_is_read(top):
    (top / "link").symlink_to(top / "other")
    assert read(unlabelled, str(top / "link"), "ham") == ([str(top / "link" / "4")], [])
