"""A keyword on what is moved, where the server or Dovecot's Maildir has one (`keywords = true`)."""

import pytest
from junk_mails import many
from one_case import each

MARKS = b"$Junk", b"$junk", "d"  # the last is the letter of a Maildir in tests, in its Junk


@pytest.fixture
def keyworded(home, anywhere):
    home.config.write_text(f"{home.config.read_text()}keywords = true\n")
    return anywhere


def marked(mailbox, folder):
    return [mail for mail, flags, _ in mailbox.all(folder) if {*MARKS} & {*flags}]


def test_what_is_moved_gets_the_keyword_and_nothing_else_does(home, keyworded):
    spam, ham = many("spam", 4), many("ham", 2)
    keyworded.put(*spam[:2], *ham)
    keyworded.put(*spam[2:], flags=[b"\\Seen", b"\\Flagged"])
    assert home.mail("filter", "--all", "--dry-run").err == ""
    assert marked(keyworded, "INBOX") == []
    assert home.mail("filter", "--all").err.count("\n") == 0
    assert sorted(marked(keyworded, "Junk")) == sorted(keyworded.mails("Junk")) == sorted(spam)
    assert sorted(keyworded.mails()) == sorted(ham)
    flagged = [flags for mail, flags, _ in keyworded.all("Junk") if mail in spam[2:]]
    assert all({b"\\Seen", b"\\Flagged"} <= flags or {*"FS"} <= flags for flags in flagged)
    seen = [flags for mail, flags, _ in keyworded.all("Junk") if mail in spam[:2]]
    assert not any(flags & {b"\\Seen", "S"} for flags in seen)


def test_the_keyword_of_nbspam_teaches_nothing_and_a_message_moved_back_is_ham(home, keyworded):
    spam = many("spam", 3)
    keyworded.put(*spam)
    home.mail("filter")
    before = ham, caught = home.learned()
    assert "not learning from 3 messages that nbspam moved" in home.mail("learn").out
    assert home.learned() == before
    keyworded.move("Junk", "INBOX", spam[0])
    home.mail("filter")  # which knows then that it was moved back
    for _ in range(2):  # whatever the keyword says
        home.mail("filter", "--learn")
        home.mail("learn")
        assert keyworded.mails() == [spam[0]]
        assert home.learned() == (ham + 1, caught)
    keyworded.move("Junk", "INBOX", spam[1])
    keyworded.flag("INBOX", [b"\\Seen"])
    for _ in range(2):  # without a run of the filter between
        home.mail("learn")
        assert home.learned() == (ham + 2, caught)
    keyworded.flag("Junk", [b"\\Seen"])
    for _ in range(2):
        home.mail("learn")
        assert home.learned() == (ham + 2, caught + 1)


@each(
    "text, letter",
    [
        ("0 Work\n3 $Junk\n", "d"),
        ("0 junk\n", "a"),
        ("1 Junk\n2 $JUNK\n", "c"),
        ("0 Work\n", ""),
        ("0 \n", ""),
        ("26 $Junk\n", ""),
        (None, ""),
    ],
)
def test_in_a_maildir_only_dovecot_gives_a_keyword_its_letter(home, local, text, letter):
    home.config.write_text(f'[mail.home]\nmaildir = "{local.top}"\nkeywords = true\n')
    for folder in ("INBOX", "Junk"):
        for path in local.files(folder):
            path.unlink()
    listed = local.path("Junk") / "dovecot-keywords"
    listed.unlink(missing_ok=True)
    if text is not None:
        listed.write_text(text)
    local.put(*many("spam", 1))
    done = home.mail("filter", "--all")
    [path] = local.files("Junk")
    part = "cur" if letter else "new"
    assert (path.parent.name, path.name.partition(":2,")[2]) == (part, letter)
    assert ("spam is moved without a keyword: there is no $Junk or Junk" in done.err) == (
        not letter
    )
    assert listed.exists() == (text is not None)
    local.put(*many("spam", 1))
    assert home.mail("filter", "-q").err == ""


@pytest.mark.parametrize("lacking", [("MOVE",), ("MOVE", "UIDPLUS")])
def test_a_server_that_cannot_move_copies_the_keyword(home, account, lacking):
    mailbox = account({"keywords": True}, lacking)
    spam = many("spam", 2)
    mailbox.put(*spam)
    home.mail("filter")
    assert sorted(marked(mailbox, "Junk")) == sorted(spam)


def test_a_server_that_stores_no_keyword_gets_the_move_alone(home, account, monkeypatch):
    mailbox = account({"keywords": True})
    spam = many("spam", 2)
    mailbox.put(*spam)

    monkeypatch.setattr("nbspam.mailbox.connection.Connection.junk_keyword", lambda *_: "")
    done = home.mail("filter")
    assert "INBOX: spam is moved without a keyword" in done.err
    assert marked(mailbox, "Junk") == []
    assert sorted(mailbox.mails("Junk")) == sorted(spam)


@each("value", ['"yes"', "1", "[]"])
def test_a_wrong_value(home, value):
    home.config.write_text(f'[mail.home]\nmaildir = "x"\nkeywords = {value}\n')
    assert "[mail.home] keywords: must be true or false" in home.run("mail", "filter").err
