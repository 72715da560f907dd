"""`nbspam mail filter` against Dovecot: what is moved, and that nothing else changes."""

import json
import os
from datetime import datetime

import pytest
from imap_servers import LACKING, PASSWORD, Proxy
from junk_mails import mail, many
from local_mail import everywhere, unmoved

from nbspam.errors import AccountError
from nbspam.mailbox.sorting import MailFilter

ODD = (
    b"From: Ilse <ilse@example.org>\nSubject: Fotos\nMessage-ID: <odd@example.org>\n\n"
    + "künstlich beleuchtet: „schau“  \t \n.\n..\n>From here on it rained.\n\n".encode()
)


def test_the_mail_of_a_blocked_sender_is_moved_and_that_of_an_allowed_one_stays(home, anywhere):
    """If the host of this place says who sent it, whatever another place's host says."""
    proof = b"Authentication-Results: %s; dkim=pass header.d=prize.example\n"
    ham, spam = many("ham", 4), many("spam", 6)
    allowed = [proof % b"mx.home" + mail for mail in spam[:2]]
    forged = [proof % b"mx.work" + mail for mail in spam[2:4]]
    blocked = [mail.replace(b"roz@", b"ann@") for mail in ham[:2]]
    anywhere.put(*allowed, *forged, *blocked, *spam[4:], *ham[2:])
    lists = 'allow = ["@prize.example"]\nblock = ["ann@example.org"]\nauth-host = "mx.work"\n'
    home.config.write_text(f'{lists}{home.config.read_text()}auth-host = "mx.home"\n')
    for options in (["--dry-run", "-j1"], ["--format", "json"]):
        done = home.mail("filter", "--all", *options)
    outcomes = [json.loads(line) for line in done.out.splitlines()]
    assert [o.get("reason") for o in outcomes] == [
        *(["allowed sender"] * 2 + [None] * 2 + ["blocked sender"] * 2 + [None] * 4)
    ]
    assert sorted(anywhere.mails("Junk")) == sorted([*forged, *blocked, *spam[4:]])
    assert sorted(anywhere.mails()) == sorted([*allowed, *ham[2:]])


def test_spam_is_moved_and_nothing_else_changes_and_by_a_dry_run_nothing_at_all(home, anywhere):
    ham, spam = [*many("ham", 5), ODD], many("spam", 4)
    anywhere.put(*ham[:3], *spam[:2], date=datetime(2023, 11, 20, 10, 0, 0))
    anywhere.put(*spam[2:], flags=[b"\\Flagged", b"$Forwarded"])
    anywhere.put(*ham[3:])
    before = everywhere(anywhere)
    lines = home.mail("filter", "--dry-run").out.splitlines()
    verdicts = ["ham"] * 3 + ["spam"] * 4 + ["ham"] * 3
    assert [line.partition("\t")[0] for line in lines[:-1]] == verdicts
    assert lines[3].endswith(f"\t{anywhere.address(4)}")
    assert lines[-1].endswith("classified 10 messages, 4 would be moved to Junk, 0 unsure")
    assert everywhere(anywhere) == before
    assert not list((home.path / "state").rglob("*.json"))
    done = home.mail("filter")
    assert done.out == (
        f"{anywhere.name}: INBOX: classified 10 messages, 4 moved to Junk, 0 unsure\n"
    )
    assert "the first run classifies only unread mail" in done.err
    assert anywhere.mails() == ham
    assert sorted(anywhere.mails("Junk")) == sorted(spam)
    assert unmoved(everywhere(anywhere)) == unmoved(before)
    assert home.mail("filter") == (0, "", "")


def test_the_first_run_leaves_mail_that_was_read_or_deleted_and_all_takes_it(home, mailbox):
    old, new, deleted = many("spam", 2), many("spam", 2), many("spam", 1)
    mailbox.put(*old, flags=[b"\\Seen"])
    mailbox.put(*new)
    mailbox.put(*deleted, flags=[b"\\Deleted"])
    home.mail("filter")
    assert mailbox.mails() == old
    more = many("spam", 1)
    mailbox.put(*more, flags=[b"\\Seen"])  # read before nbspam has run
    home.mail("filter")
    assert mailbox.mails() == old
    assert mailbox.mails("Junk") == [*new, *more]
    home.mail("filter", "--all")
    assert sorted(mailbox.mails("Junk")) == sorted([*new, *more, *old])
    assert [(mail_, flags) for mail_, flags, _ in mailbox.all()] == [
        (deleted[0], frozenset([b"\\Deleted"]))
    ]


def test_marks_in_place_of_moving_and_a_keyword_for_what_is_unsure(home, mailbox):
    ham, spam = many("ham", 2), many("spam", 2)
    odd = mail("Someone <x@example.com>", "Zwrrk", "Vlunt grobbel snaf quix drell murp.")
    mailbox.put(*ham, *spam, odd)
    done = home.run("mail", "filter", "--mark", "--unsure-keyword", "a b")
    assert (done.code, "is not an IMAP keyword" in done.err) == (2, True)
    home.mail("filter", "--mark", "--unsure-keyword", "Unsure")
    flags = [flags for _, flags, _ in mailbox.all()]
    assert list(map(set, flags)) == [set()] * 2 + [{b"$Junk"}] * 2 + [{b"Unsure"}]
    assert mailbox.mails("Junk") == []
    # what was read of it later is not learned as ham
    mailbox.flag("INBOX", [b"\\Seen"])
    before = home.learned()
    home.mail("learn")
    assert home.learned() == (before[0] + 3, before[1])


def test_what_the_user_moves_back_stays(home, anywhere):
    spam = many("spam", 3)
    anywhere.put(*spam)
    home.mail("filter")
    anywhere.move("Junk", "INBOX", spam[1])
    home.mail("filter")
    home.mail("filter", "--all")
    assert anywhere.mails() == [spam[1]]
    # and it teaches, though it was not read
    ham, bad = home.learned()
    home.mail("learn")
    assert home.learned() == (ham + 1, bad)


def test_a_message_like_one_in_junk_is_judged(home, anywhere):
    """The same bytes again are no message that was moved back: the first is still in Junk."""
    spam = many("spam", 1)
    anywhere.put(*spam, *spam)
    home.mail("filter")
    assert anywhere.mails("Junk") == spam * 2
    anywhere.put(*spam)
    home.mail("filter")
    assert anywhere.mails("Junk") == spam * 3
    assert anywhere.mails() == []


def test_what_was_put_off_is_for_the_next_run_if_this_one_ends_early(home, anywhere, monkeypatch):
    """The same bytes again, before a message that was classified already."""
    spam, ham = many("spam", 1), many("ham", 2)
    anywhere.put(*spam)
    home.mail("filter")
    anywhere.put(ham[0], *spam, ham[1])

    def end(_):
        raise AccountError("the server has gone; try again")

    with monkeypatch.context() as patched:
        patched.setattr(MailFilter, "_deferred_to_classify", end)
        assert "has gone" in home.run("mail", "filter").err
    assert anywhere.mails("Junk") == spam
    assert "classified 2 messages, 1 moved" in home.mail("filter").out
    assert anywhere.mails("Junk") == spam * 2


def test_several_folders_and_an_object_of_json_for_each_message(home, account):
    mailbox = account(
        {"folders": ["INBOX", "Lists/Cycling"]}, mail_location="maildir:~/M:LAYOUT=fs"
    )
    mailbox.client.create_folder("Lists/Cycling")
    spam, ham = many("spam", 2), many("ham", 1)
    mailbox.put(*ham, spam[0])
    mailbox.put(spam[1], folder="Lists/Cycling")
    done = home.mail("filter", "--format", "json", "-q")
    keys = "account", "folder", "uid", "verdict", "action", "done"
    found = [tuple(map(json.loads(line).get, keys)) for line in done.out.splitlines()]
    assert found == [
        ("home", "INBOX", 1, "ham", "kept", True),
        ("home", "INBOX", 2, "spam", "moved", True),
        ("home", "Lists/Cycling", 1, "spam", "moved", True),
    ]
    assert mailbox.mails("Junk") == spam


@pytest.mark.few(2)
@pytest.mark.parametrize("lacking", LACKING[:0:-1], ids="-".join)
def test_a_server_that_lacks_extensions(home, account, lacking):
    mailbox = account({"junk": "Junk"}, lacking)
    assert not mailbox.client.has_capability(lacking[0])
    ham, spam = many("ham", 3), many("spam", 3)
    mailbox.put(*ham, *spam)
    mailbox.put(*many("ham", 1), flags=[b"\\Deleted"])  # by the user: not ours to remove
    before = {m: rest for m, *rest in mailbox.all()}
    done = home.mail("filter")
    assert mailbox.mails() == ham
    assert mailbox.mails("Junk") == spam
    assert {m: rest for m, *rest in mailbox.all("Junk")} == {m: before[m] for m in spam}
    left = [flags for _, flags, _ in mailbox.all()]
    if {"MOVE", "UIDPLUS"} <= set(lacking):
        assert "3 copied to Junk and marked \\Deleted here" in done.out
        assert left.count(frozenset([b"\\Deleted"])) == 4
    else:
        assert "3 moved to Junk" in done.out
        assert left.count(frozenset([b"\\Deleted"])) == 1
    assert home.mail("filter") == (0, "", "")
    assert mailbox.mails("Junk") == spam


def test_junk_is_found_by_its_special_use_alone(home, account):
    mailbox = account()
    mailbox.client.create_folder("Spam")
    mailbox.put(*many("spam", 1))
    home.mail("filter")
    assert len(mailbox.mails("Junk")) == 1
    mailbox.put(*many("spam", 1))
    home.mail("filter", "--junk", "Spam")
    assert len(mailbox.mails("Spam")) == 1


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("folder", "separator"),
    [("Entwürfe/Müll & Ä", "."), ("迷惑メール", "/"), ('a "b" \\c', "."), ("Спам/100%", "/")],
)
def test_folder_names_in_other_scripts_and_separators(home, account, folder, separator):
    layout = "maildir:~/M" + (":LAYOUT=fs" if separator == "/" else "")
    own = folder.replace("/", separator)
    mailbox = account({"folders": [f"{folder}/in"]}, mail_location=layout)
    for name in (own, f"{own}{separator}in"):
        mailbox.client.create_folder(name)
    spam, ham = many("spam", 1), many("ham", 1)
    mailbox.put(*spam, *ham, folder=f"{own}{separator}in")
    home.mail("filter", "--junk", folder)
    assert mailbox.mails(own) == spam
    assert mailbox.mails(f"{own}{separator}in") == ham
    # as a source, too
    account_ = f"imaps://{mailbox.user}@localhost:{mailbox.server.port}"
    done = home.run("classify", f"{account_}/{folder.replace('%', '%25')}")
    assert done.code == 0, done
    assert done.out.startswith("spam\t")
    name = done.out.rstrip("\n").rpartition("\t")[2]
    assert home.run("classify", name).out == done.out
    assert home.run("explain", name).code == 0


def test_new_uids_judge_no_mail_twice(home, mailbox):
    ham = many("ham", 2)
    campaign = many("campaign", 2)
    read = many("ham", 2)
    mailbox.put(*ham, *campaign, *read)
    home.mail("filter", "--spam-cutoff", "1")
    mailbox.move("INBOX", "Trash", *read)  # so that the new UIDs are below those that were judged
    assert mailbox.mails() == [*ham, *campaign]
    before = mailbox.client.folder_status("INBOX", ["UIDVALIDITY"])
    renumber(mailbox)
    assert mailbox.client.folder_status("INBOX", ["UIDVALIDITY"]) != before
    new = many("spam", 1)
    mailbox.put(*new)
    done = home.mail("filter", "--spam-cutoff", "0", "--ham-cutoff", "0")
    assert "classified 1 message" in done.out
    assert mailbox.mails() == [*ham, *campaign]
    assert mailbox.mails("Junk") == new


def renumber(mailbox):
    """Give all messages of the inbox new UIDs, as after a server has been set up anew."""
    mailbox.client.logout()
    folder = mailbox.server.top / mailbox.user / "Maildir"
    for path in folder.iterdir():
        if path.name.startswith(("dovecot-uid", "dovecot.index")):
            path.unlink()
    number = 1_900_000_000
    (folder / "dovecot-uidlist").write_text(f"3 V{number} N1 G{'0' * 24}{number:08x}\n")
    status = folder.stat()
    os.chown(folder / "dovecot-uidlist", status.st_uid, status.st_gid)
    mailbox.client = mailbox.connect()


def test_nothing_is_fetched_without_peek(home, mailbox):
    mailbox.put(*many("ham", 3), *many("spam", 3))
    with Proxy(mailbox.server.plain) as proxy:
        home.write(mailbox.user, mailbox.server, port=proxy.port, tls="none")
        home.mail("filter", "--learn", "--unsure-keyword", "Unsure")
        mailbox.flag("INBOX", [b"\\Seen"])
        home.mail("learn")
        home.run("classify", f"imaps://{mailbox.user}@localhost/INBOX")
    fetched = [line for line in proxy.said if " FETCH " in line]
    assert len(fetched) >= 6
    assert all("BODY[" not in line and "RFC822 " not in line for line in fetched)
    assert not any("RFC822)" in line or "RFC822.TEXT" in line for line in fetched)
    assert not any(line.split()[1:2] == ["EXPUNGE"] or " CLOSE" in line for line in proxy.said)
    assert PASSWORD not in "\n".join(proxy.said)  # it goes in base64 alone


@pytest.mark.parametrize("n", [40, pytest.param(500, marks=pytest.mark.long)])
def test_two_machines_and_a_person_who_work_on_it_at_once(home, mailbox, monkeypatch, n):
    """Each with a memory of its own; a thousand messages are judged on several cores."""
    ham, spam = many("ham", n), many("spam", n)
    mailbox.put(*[each for pair in zip(ham, spam, strict=True) for each in pair])
    first = home.start("mail", "filter", *["-j1"][n > 40 :])
    monkeypatch.setitem(home.environment, "XDG_STATE_HOME", str(home.path / "other"))
    second = home.start("mail", "filter", "-j1")
    for _ in range(n // 25):
        mailbox.client.select_folder("INBOX")
        uids = mailbox.client.search(["FROM", "roz@example.org"] if n > 40 else "ALL")
        mailbox.client.move(uids[-5:], "Trash")
        mailbox.client.add_flags(uids[:3], [b"\\Flagged"])
    for process in (first, second):
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
    places = [(mail, name) for name in ("INBOX", "Junk", "Trash") for mail, *_ in mailbox.all(name)]
    assert {mail for mail, _ in places} == {*ham, *spam}
    assert {name for mail, name in places if mail in ham} <= {"INBOX", "Trash"}
    assert {name for mail, name in places if mail in spam} <= {"Junk", "Trash"}
    # Dovecot may copy a batch twice if two clients move it at the same moment (docs/mail.md).
    assert len([mail for mail, _ in places if mail in ham]) == n
    assert len(places) <= 3 * n


@pytest.mark.long
def test_two_runs_on_one_machine_follow_each_other(home, mailbox):
    mailbox.put(*many("spam", 40), *many("ham", 40))
    processes = [home.start("mail", "filter", "-j1") for _ in range(2)]
    outs = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outs
    assert sorted(out.decode().count("classified 80 messages") for out, _ in outs) == [0, 1]
    assert len(mailbox.mails("Junk")) == 40


def test_a_mark_above_the_next_uid_is_begun_again_and_said(home, anywhere):
    """Of a mailbox restored with its UIDVALIDITY; what was learned is learned again, once."""
    anywhere.put(*many("ham", 2), flags=[b"\\Seen"])
    home.mail("filter", "--learn")
    learned, state = home.learned(), home.state()
    state["folders"]["INBOX"][1] = 90
    state["learned"]["INBOX"][1] = [1, 2, 3, 4, 90]
    home.memory().write_text(json.dumps(state))
    anywhere.put(*many("spam", 1))
    anywhere.put(*many("campaign", 1), flags=[b"\\Seen"])
    done = home.mail("filter", "--learn", "-q")
    assert "INBOX: its messages have lower numbers than before" in done.err
    assert len(anywhere.mails("Junk")) == 1
    assert home.learned() == (learned[0] + 1, learned[1])
    assert home.mail("filter", "--learn", "-q").err == ""
