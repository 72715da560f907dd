"""`nbspam mail` with Maildirs: what a server does not have."""

import errno
import gzip
import json
import math
import os
import shutil
import signal
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

import pytest
import zstandard
from junk_mails import many
from local_mail import everywhere, folders_of, unmoved
from one_case import each

from nbspam.mailbox.maildir import Maildir, MaildirFolders


@pytest.mark.parametrize("moments", [3, pytest.param(12, marks=pytest.mark.long)])
def test_kill_at_random_moments_loses_and_doubles_nothing(home, local, moments):
    """Nor does a second run that begins at once, nor is anything learned twice."""
    chance, expected, kills = Random(7), {}, 0
    for number in range(moments):
        ham, spam = many("ham", 30, number), many("spam", 30, number)
        local.put(*ham, *spam)
        expected |= dict.fromkeys(ham, "INBOX") | dict.fromkeys(spam, "Junk")
        before = everywhere(local)
        process = home.start("mail", "filter", "-j1", str(local.top))
        limit = time.monotonic() + chance.uniform(0.1, 1)
        while time.monotonic() < limit and len(local.files("Junk")) < 30 * number + 3:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
        assert unmoved(everywhere(local)) == unmoved(before)
        home.mail("filter", "-q", str(local.top))
        assert folders_of(everywhere(local)) == expected
    assert kills
    local.flag("Junk", [b"\\Seen"])
    local.flag("INBOX", [b"\\Seen"])
    before = home.learned()
    for _ in range(2):
        home.mail("learn", "-q", str(local.top))
        assert home.learned() == (before[0] + 30 * moments, before[1] + 30 * moments)


@pytest.mark.parametrize("is_moved", [False, True])
def test_an_end_before_and_after_a_move(home, local, monkeypatch, is_moved):
    """Two of the messages have the same bytes: neither is lost, and nbspam knows what it moved."""
    spam = many("spam", 3)
    local.put(*spam, spam[0])
    real = MaildirFolders.move

    def dies(self, uids, folder, keyword):
        if is_moved:
            real(self, uids[:2], folder, keyword)
        raise KeyboardInterrupt

    monkeypatch.setattr(MaildirFolders, "move", dies)
    with suppress(KeyboardInterrupt):
        home.run("mail", "filter", "-j1", local.top)
    monkeypatch.setattr(MaildirFolders, "move", real)
    home.mail("filter", local.top)
    assert sorted(local.mails("Junk")) == sorted([*spam, spam[0]])
    before = home.learned()
    assert "not learning from 4 messages" in home.mail("learn", local.top).out
    assert home.learned() == before


@each("pack", [bytes, partial(gzip.compress, mtime=0), zstandard.compress])
def test_what_is_compressed_is_filtered_and_what_is_no_message_is_never_moved(home, local, pack):
    """And the same is said and learned of a mail whether it is compressed or not."""
    shutil.rmtree(local.top)
    for folder in ("INBOX", "Junk", "Trash"):
        local.create(folder)
    spam, ham = many("spam", 3, seed=5), many("ham", 2, seed=5)
    noise = [b"CRYPTED\x03\x07" + Random(1).randbytes(900), Random(2).randbytes(900)]
    local.put(*map(pack, [*spam, *ham]), *noise)
    done = home.run("mail", "filter", "--all", local.top)
    assert sorted(local.mails("Junk")) == sorted(map(pack, spam))
    assert len(local.mails()) == 4
    assert "is encrypted by Dovecot (mail_crypt); read it over IMAP, or export it" in done.err
    assert "is not text" in done.err
    local.flag("INBOX", [b"\\Seen"])
    local.flag("Junk", [b"\\Seen"])
    before = home.learned()
    done = home.run("mail", "learn", local.top)
    assert "mail_crypt" in done.err
    assert home.learned() == (before[0] + 2, before[1] + 3)
    places = ("--ham", local.path("INBOX"), "--spam", local.path("Junk"))
    assert "learned 0 new" in home.run("train", "--update", *places).out


@each(
    "here, there, before, after",
    [
        ("0 Important\n", "0 $Forwarded\n", "Sa", "S"),
        ("0 Important\n3 Work\n", "1 work\n2 Important\n", "FSad", "FScb"),
        ("0 Important\n", None, "Sa", "S"),
        (None, "0 Important\n", "Sa", "S"),
        (None, None, "Sa", "Sa"),
        ("x\n99 Odd\n0 Far\n", "0 Odd\n40 Far\n\xff", "Sab", "S"),
    ],
)
def test_a_keyword_is_the_same_in_another_folder(home, local, here, there, before, after):
    """Dovecot gives keywords letters, in each folder others."""
    shutil.rmtree(local.top)
    for folder, text in (("INBOX", here), ("Junk", there), ("Trash", None)):
        local.create(folder)
        (local.path(folder) / "dovecot-keywords").unlink(missing_ok=True)
        if text is not None:
            (local.path(folder) / "dovecot-keywords").write_text(text, "latin-1")
    for separator, spam in zip(":;", many("spam", 2, seed=6), strict=True):
        path = local.path("INBOX") / "cur" / f"7.host,S=7{separator}2,{before}"
        path.write_bytes(spam)
        home.mail("filter", "--all", local.top)
        [moved] = local.files("Junk")
        assert moved.name.endswith(f"{separator}2,{after}")
        moved.unlink()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_one_sentence(home, local):
    local.put(*many("spam", 1))
    (local.path("Junk") / "new").chmod(0o500)
    done = home.run("mail", "filter", local.top)
    assert (done.code, done.err.count("\n")) == (1, 3)  # the note of a first run, too
    assert "classified 1 message, 0 moved to Junk, 0 unsure, 1 left where it is" in done.out
    assert "Permission denied; correct its owner and permissions" in done.err
    assert len(local.mails()) == 1


def test_a_folder_for_spam_on_another_disk_is_one_sentence(home, local, monkeypatch):
    local.put(*many("spam", 1))

    def rename(self, target):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(type(local.top), "rename", rename)
    done = home.run("mail", "filter", "-q", local.top)
    assert (done.code, done.err.count("\n")) == (1, 2)
    assert (
        "on another disk, and a file cannot be moved there in one step; name the folder" in done.err
    )
    assert len(local.mails()) == 1


@each("folder, name", [("Спам", "&BCEEPwQwBDw-"), ("A & B", "A &- B"), ("Fotos", "Fotos")])
def test_a_folder_is_named_as_people_read_it(home, local, folder, name):
    """Or as it is on the disk."""
    local.create(name)
    for junk in (folder, name):
        spam = many("spam", 1)
        local.put(*spam)
        home.mail("filter", "--all", local.top, "--junk", junk)
        assert local.mails(name) == spam
        local.files(name)[0].unlink()
    assert (
        f"there is no folder 'Nix {folder}'"
        in home.run("mail", "filter", local.top, "--junk", f"Nix {folder}").err
    )


def test_of_two_folders_with_one_name_the_second_is_named(home, local):
    local.put(*many("ham", 1))
    for part in ("cur", "new"):
        (local.top / "Junk" / part).mkdir(parents=True)
        (local.top / ".Junk" / part).mkdir(parents=True, exist_ok=True)
    done = home.run("mail", "filter", "--all", local.top)
    assert f"left out {local.top}/Junk: has the same name as {local.top}/.Junk" in done.err


def test_a_damaged_archive_has_its_own_remedy(home, local):
    local.put(*many("ham", 2))
    (local.top / "new" / "damaged").write_bytes(gzip.compress(many("spam", 1)[0])[:200])
    done = home.run("mail", "filter", "--all", local.top)
    assert "end-of-stream marker was reached, so get a whole copy" in done.err


NEWER = '{"version": 7}'


@each(
    "keys, value",
    [
        (("folders", "INBOX", 1), "x"),
        (("folders", "INBOX", 2), None),
        (("junked", "0", 2), []),
        (("learned", "Junk", 1), 5),
        (("learned", "Junk", 2), []),
        (("moved_back_uids", "INBOX"), [math.inf]),
        (("pending", 0), {}),
        (("INBOX", 0), math.inf),
        (("INBOX", 1), 1),
        (("INBOX", 2, "a"), None),
    ],
)
def test_a_damaged_file_of_what_is_remembered_is_one_sentence(home, local, keys, value):
    if not list((home.path / "state").rglob("*.json")):
        local.put(*many("ham", 2))
        home.mail("filter", local.top)
        home.mail("learn", local.top)
    path = home.memory().with_suffix(".uids.json" if keys[0] == "INBOX" else ".json")
    whole = path.read_text()
    found = place = json.loads(whole)
    if keys[0] != "INBOX":
        found["pending"] = ["INBOX", 1, "Junk", 1, 1, False, {}]
        found["junked"]["0"] = [0.5, 1, 1, False, True]
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    for text in (json.dumps(found), "[" * 100_000, "", "[]", "\0", '{"version": 5}', NEWER):
        path.write_text(text)
        done = home.run("mail", "filter", local.top)
        assert (done.code, done.err.count("\n")) == (1, 1), done
        assert done.err.startswith(f"nbspam: {path}: ")
        is_newer = text == NEWER and keys[0] != "INBOX"
        assert ("another version of nbspam" if is_newer else "is damaged; remove it") in done.err
    path.write_text(whole)


def test_a_folder_is_listed_as_often_for_many_batches_as_for_one(home, local, monkeypatch):
    """Otherwise the time grows with the square: 20,000 messages once took 94 s."""
    listed, real = [], os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: listed.append(path) or real(path))
    times = []
    for together in (100, 1):
        monkeypatch.setattr("nbspam.mailbox.sorting._MIN_BATCH", together)
        local.put(*many("spam", 30), *many("ham", 30))
        listed.clear()
        assert "30 moved to Junk" in home.mail("filter", local.top).out
        times.append(len(listed))
    assert times[1] <= times[0] < 15


@pytest.fixture
def folders(local):
    local.put(*many("ham", 3))
    return MaildirFolders(Maildir(str(local.top)), remember=False)


def test_what_is_no_file_and_what_is_gone_is_left_out(folders, local):
    os.mkfifo(local.top / "new" / "fifo")
    folders.select("INBOX")
    uids = folders.search(("UNSEEN",))
    assert len(uids) == 4
    messages = folders.messages(uids)
    assert [next(messages).uid, next(messages).uid] == [1, 2]
    local.files("INBOX")[2].rename(local.top / "cur" / "elsewhere")
    assert list(messages) == []


def test_a_file_renamed_while_a_folder_is_listed_keeps_its_number(folders, local, monkeypatch):
    assert folders.select("INBOX").uidnext == 4
    first, second, third = local.files("INBOX")
    real, todo = os.listdir, [first, second]

    def listdir(folder):  # the first is missed, and then has a flag; the second is listed twice
        if todo and folder == first.parent:
            for path in todo:
                path.rename(f"{path}:2,S")
            todo.clear()
            return [second.name, f"{second.name}:2,S", third.name]
        return real(folder)

    monkeypatch.setattr(os, "listdir", listdir)
    folder = folders.select("INBOX")
    assert (folder.uidnext, folder.messages) == (4, 3)
    assert folders.search(("SEEN",)) == [1, 2]


def test_a_flag_that_is_set_at_the_moment_of_a_move_does_not_keep_it(folders, local, monkeypatch):
    folders.select("INBOX")
    first, second, _ = local.files("INBOX")
    real, todo = Path.rename, [first]

    def rename(path, target):
        if todo:
            real(todo.pop(), f"{first}:2,S")
            second.unlink()  # and another is gone
        return real(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    assert folders.move(folders.search(("UNDELETED",)), "Junk") == [1, 3]
    assert len(local.files("Junk")) == 2
    assert local.files("INBOX") == []
