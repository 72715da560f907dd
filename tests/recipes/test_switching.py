"""Leaving bogofilter: its folders train a model, and the same procmail file works on."""

import mailbox
from contextlib import closing
from pathlib import Path

import mails
import pytest
from home import GOLDEN, SAMPLE, bare, changes, need, recipes

# Procmail files as bogofilter's users have them.
FILTER, CONDITION = (
    (GOLDEN / f"bogofilter-{kind}.procmailrc").read_text() for kind in ("filter", "condition")
)


def switched(rules, *whats):
    for what in whats:
        old, new = changes()[what]
        assert rules.count(old) == 1
        rules = rules.replace(old, new)
    return rules


@pytest.fixture
def deliver(procmail):
    def run(home, rules, *messages):
        for message in messages:
            assert procmail(home, rules, message) == (0, b"", "")

    return run


@pytest.fixture
def bogofilter(home):
    need("bogofilter", "bogoutil", "procmail")
    for flag, label in (("-s", "spam"), ("-n", "ham")):
        with closing(mailbox.mbox(SAMPLE / f"{label}.mbox", create=False)) as box:
            messages = [message.as_bytes() for message in box]
        # of the sample mail alone it calls this spam unsure
        for message in [*messages, mails.SPAM] if label == "spam" else messages:
            assert home.run("bogofilter", flag, stdin=message).code == 0
    return home


@pytest.fixture
def trained(bogofilter):
    mail = [part for label in ("ham", "spam") for part in (f"--{label}", SAMPLE / f"{label}.mbox")]
    bogofilter.nbspam("train", *mail)
    return bogofilter


@pytest.mark.long
def test_the_procmail_file_works_with_bogofilter(bogofilter, deliver):
    deliver(bogofilter, FILTER, mails.SPAM, mails.HAM)
    assert [found.split(b"X-Bogosity: ")[1][:4] for found in bogofilter.mails(".Junk")] == [b"Spam"]
    assert len(bogofilter.mails()) == 1


@pytest.mark.long
def test_a_condition_works_with_both(trained, deliver):
    for rules in (CONDITION, switched(CONDITION, "a condition (of `:0HB`)")):
        deliver(trained, rules, mails.SPAM, mails.HAM)
    assert trained.mails(".Junk") == [mails.SPAM] * 2
    assert trained.mails() == [mails.HAM] * 2


@pytest.mark.long
def test_the_rules_work_with_nbspam_and_the_commands_of_the_table_too(trained, deliver, recipe):
    [filtering, *_] = recipe("procmail-filter").partition("\n\n:0\n* VERDICT ?? ^^spam")
    _, _, sorting = switched(FILTER, "the header in a rule").partition("EXITCODE=75 HOST }")
    rules = f"{filtering}\n{sorting}"
    deliver(trained, rules, mails.SPAM, mails.HAM, mails.ODD)
    assert [bare(found) for found in trained.mails(".Junk")] == [mails.SPAM]
    assert [bare(found) for found in trained.mails()] == [mails.HAM, mails.ODD]

    def run(what, message):
        assert trained.shell(changes()[what][1], stdin=message) == (0, b"", "")
        return trained.learned()

    ham, spam = trained.learned()
    assert run("learn a spam", mails.CHATTY_SPAM[0]) == (ham, spam + 1)
    assert run("unlearn a spam", mails.CHATTY_SPAM[0]) == (ham, spam)
    trained.nbspam("train", "--update", "--ham", "-", stdin=mails.CHATTY_SPAM[0])
    assert trained.learned() == (ham + 1, spam)
    assert run("a spam that was learned as ham", mails.CHATTY_SPAM[0]) == (ham, spam + 1)


# Every recipe of the page, and every command of its table, is run by a test


def test_every_recipe_and_every_command_of_the_table_is_run():
    here = Path(__file__)
    tests = "".join(path.read_text() for path in here.parent.glob("*.py"))
    # A picture, settings of programs that only root can start, and of one that Debian 12 lacks.
    unrun = {"server-picture", "server-milter", "server-main.cf", "dovecot-2.4.conf"}
    assert {name for name in recipes() if f'"{name}"' not in tests} <= unrun
    assert [what for what in changes() if f'"{what}"' not in here.read_text()] == []
