"""Mail of other classes than spam and ham, which goes to folders of its own."""

import json
from contextlib import suppress

import pytest
from junk_mails import many
from one_case import each

import nbspam
from nbspam.mailbox.connection import Connection
from nbspam.mailbox.maildir import MaildirFolders

FOLDERS = 'class-folders = { Campaign = "Trash" }\n'  # a folder that every place has


@pytest.fixture
def classes(home, anywhere):
    rows = [(label, mail) for label in ("ham", "spam", "campaign") for mail in many(label, 60)]
    home.model.unlink()
    nbspam.train(rows).save(home.model)
    home.config.write_text(home.config.read_text() + FOLDERS)
    return anywhere


def test_each_class_is_moved_to_its_folder_and_stays_where_the_user_moves_it(home, classes):
    mails = {label: many(label, 3, seed=5) for label in ("ham", "spam", "campaign")}
    classes.put(*(mail for three in zip(*mails.values(), strict=True) for mail in three))
    said = home.mail("filter", "--dry-run").out.splitlines()[-1]
    assert ": classified 9 messages, 3 would be moved to Junk, 0 unsure" in said
    assert said.endswith(", 3 campaign would be moved to Trash")
    assert len(classes.mails()) == 9
    done = home.mail("filter", "--format", "json")
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [(o["verdict"], o["action"]) for o in found] == [
        *[("ham", "kept"), ("spam", "moved"), ("campaign", "moved")] * 3
    ]
    places = {"ham": "INBOX", "spam": "Junk", "campaign": "Trash"}
    assert all(sorted(classes.mails(places[k])) == sorted(mails[k]) for k in mails)
    state = home.state()
    assert (len(state["junked"]), len(state["moved_back"]), state["pending"]) == (3, 3, None)
    classes.move("Trash", "INBOX", mails["campaign"][0])
    assert "campaign" not in home.mail("filter", "--all").out
    assert mails["campaign"][0] in classes.mails()
    # What the user moves to Junk is learned at once, though nbspam moved it before.
    classes.move("Trash", "Junk", mails["campaign"][1])
    assert "learned 1 new message" in home.mail("learn").out


def test_a_move_to_a_class_folder_that_was_killed_is_finished_as_such(home, classes, monkeypatch):
    mails = many("campaign", 2, seed=5)
    classes.put(*mails)

    class Killed(BaseException):
        pass

    for mailbox in (MaildirFolders, Connection):

        def dies(self, *arguments, real=mailbox.move):
            real(self, *arguments)
            raise Killed

        monkeypatch.setattr(mailbox, "move", dies)
    with suppress(Killed):
        home.run("mail", "filter", "-j1")
    assert home.state()["pending"] is not None
    monkeypatch.undo()
    for name, value in home.environment.items():
        monkeypatch.setenv(name, value)
    home.mail("filter")
    assert sorted(classes.mails("Trash")) == sorted(mails)
    state = home.state()
    assert (state["pending"], state["junked"], len(state["moved_back"])) == (None, {}, 2)


def test_with_marks_nothing_is_moved(home, account):
    mailbox = account()
    rows = [(label, mail) for label in ("ham", "spam", "campaign") for mail in many(label, 60)]
    home.model.unlink()
    nbspam.train(rows).save(home.model)
    home.config.write_text(home.config.read_text() + FOLDERS)
    mailbox.put(*many("campaign", 2, seed=5), *many("spam", 1, seed=5))
    home.mail("filter", "--mark")
    assert len(mailbox.mails()) == 3


@each(
    "value, said",
    [
        ('{ promo = "Trash" }', "the classes other than spam are campaign, ham, and their mail"),
        ('{ spam = "Trash" }', "the classes other than spam are campaign, ham"),
        ('{ campaign = "Junk" }', "is moved neither to Junk nor to a folder that is filtered"),
        ('{ campaign = "INBOX" }', "nor to a folder that is filtered; correct it"),
        ('{ campaign = "Promotions" }', "there is no folder 'Promotions'; "),
        ("{ campaign = 5 }", "must be classes and folders; write class-folders = {"),
        ('{ campaign = "" }', "must be classes and folders"),
        ('["Trash"]', "must be classes and folders"),
    ],
)
def test_a_wrong_folder(home, local, value, said):
    rows = [(label, mail) for label in ("ham", "spam", "campaign") for mail in many(label, 9)]
    home.model.unlink(missing_ok=True)
    nbspam.train(rows).save(home.model)
    home.config.write_text(f'[mail.home]\nmaildir = "{local.top}"\nclass-folders = {value}\n')
    done = home.run("mail", "filter")
    assert done.code in (1, 2)
    assert "class-folders" in done.err or "Promotions" in done.err
    assert said in done.err
