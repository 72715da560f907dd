"""Messages and folders on which a server fails: they are left out, named, and tried again later."""

import re
from random import Random

import pytest
from failing_proxies import CLOSE, FailingProxy, names
from junk_mails import many

from nbspam.mailbox.memory import next_run, note_refused

REFUSED = b"NO The requested message could not be converted"


def fails_on(uid, pattern, how):
    return lambda command: how if re.search(pattern, command) and names(command, uid) else None


@pytest.fixture
def behind(home, mailbox):
    """Return what puts a proxy between nbspam and the server."""
    proxies = []

    def start(fails, **values):
        proxy = FailingProxy(mailbox.server.plain, fails)
        proxies.append(proxy)
        home.write(mailbox.user, mailbox.server, port=proxy.port, tls="none", **values)
        return proxy

    yield start
    for proxy in proxies:
        proxy.__exit__()


FAILURES = [
    (rb"BODY\.PEEK\[\]", REFUSED),
    (rb"BODY\.PEEK\[\]", CLOSE),
    (rb"RFC822\.SIZE", REFUSED),
    (rb"MOVE", REFUSED),
    (rb"MOVE", CLOSE),
]


@pytest.mark.few(3)
@pytest.mark.parametrize("pattern, how", FAILURES)
def test_one_message_keeps_no_other_from_being_filtered(home, mailbox, behind, pattern, how):
    spam, ham = many("spam", 6), many("ham", 3)
    mailbox.put(*spam, *ham)
    proxy = behind(fails_on(3, pattern, how))
    done = home.mail("filter", "-q")
    assert done.err.count("\n") == 1
    assert "left out INBOX, UID 3 (" in done.err
    assert re.search("winner@prize.example>?: [A-Z]", done.err)
    assert done.err.endswith("; it is tried again in a later run\n")
    assert sorted(mailbox.mails("Junk")) == sorted(spam[:2] + spam[3:])
    assert mailbox.mails() == [spam[2], *ham]
    asked = len(proxy.asked)
    assert home.mail("filter", "-q") == home.mail("filter", "-q") == (0, "", "")
    assert not any(names(c.encode(), 3) for c in proxy.asked[asked:])
    proxy.fails = lambda _: None
    home.mail("filter", "-q")
    assert sorted(mailbox.mails("Junk")) == sorted(spam)


def test_a_refused_message_waits_twice_as_long_each_time(home):
    later, tries = {}, []
    note_refused(later, {7}, {7})
    for run in range(1, 50):
        if 7 not in next_run(later):
            tries.append(run)
            note_refused(later, {7}, {7})
    assert tries == [3, 9, 21, 45]
    note_refused(later, {7}, set())
    assert later == {}


def test_a_folder_that_cannot_be_opened_keeps_no_other_from_being_learned(home, mailbox, behind):
    ham, spam = home.learned()
    mailbox.client.create_folder("Broken")
    mailbox.put(*many("ham", 2), flags=[b"\\Seen"])
    mailbox.put(*many("spam", 2), folder="Junk")
    behind(lambda c: b"NO broken" if b"Broken" in c else None, ham=["*"], folders=["*"])
    done = home.mail("learn", "-q")
    assert "left out Broken: the server refused the command (broken)" in done.err
    assert home.learned() == (ham + 2, spam + 2)
    mailbox.put(*many("spam", 1))
    assert "left out Broken" in home.mail("filter", "-q").err
    assert len(mailbox.mails("Junk")) == 3


def test_learning_goes_on_without_a_message_and_learns_it_later(home, mailbox, behind):
    ham, spam = home.learned()
    mailbox.put(*many("ham", 4), flags=[b"\\Seen"])
    mailbox.put(*many("spam", 4), folder="Junk")
    proxy = behind(fails_on(2, rb"BODY\.PEEK\[\]", REFUSED))
    assert "left out" in home.mail("learn", "-q").err
    assert home.learned() == (ham + 3, spam + 3)
    proxy.fails = lambda _: None
    for _ in range(4):
        home.mail("learn", "-q")
    assert home.learned() == (ham + 4, spam + 4)


def test_training_from_a_folder_skips_and_names_a_message(home, mailbox, behind):
    mailbox.put(*many("ham", 4))
    proxy = behind(fails_on(2, rb"BODY\.PEEK\[\]", CLOSE))
    address = f"imaps://{mailbox.user}@localhost:{proxy.port}/INBOX"
    ham, spam = home.learned()
    done = home.run("train", "--update", "--ham", address)
    assert done.code == 0, done
    assert "INBOX, UID 2 (" in done.err
    assert home.learned() == (ham + 3, spam)


def test_if_nothing_works_the_exit_code_says_so(home, mailbox, behind):
    mailbox.put(*many("spam", 3))
    behind(lambda c: REFUSED if b"BODY.PEEK" in c else None)
    for _ in range(2):  # the state stays as it was
        done = home.run("mail", "filter", "-q")
        assert done.code == 1
        assert "could not be converted" in done.err.splitlines()[-1]


@pytest.mark.parametrize("how", [REFUSED, CLOSE])
def test_learning_does_without_a_search_for_keywords(home, mailbox, behind, how):
    ham, spam = home.learned()
    mailbox.put(*many("spam", 3), folder="Junk", flags=[b"$Junk"])
    proxy = behind(lambda c: how if b"SEARCH" in c and b"KEYWORD" in c else None)
    home.mail("learn", "-q")
    assert home.learned() == (ham, spam + 3)
    assert any("KEYWORD" in command for command in proxy.asked)


@pytest.mark.long
@pytest.mark.parametrize("how", [REFUSED, CLOSE])
def test_a_server_that_fails_on_every_tenth_command(home, mailbox, behind, how):
    """Every message is filtered once and none is lost, over as many runs as it takes."""
    spam, ham = many("spam", 100), many("ham", 100)
    mailbox.put(*[mail for pair in zip(spam, ham, strict=True) for mail in pair])
    chance = Random(7)
    behind(lambda _: how if chance.random() < 0.1 else None)
    judged = 0
    for _ in range(400):
        done = home.run("mail", "filter", "-j1", "--format", "json")
        judged += sum('"action": "moved"' in line for line in done.out.splitlines())
        assert "Traceback" not in done.err
        assert len(mailbox.mails()) + len(mailbox.mails("Junk")) == 200
        if len(mailbox.mails("Junk")) == 100:
            break
    assert sorted(mailbox.mails("Junk")) == sorted(spam)
    assert sorted(mailbox.mails()) == sorted(ham)
    assert judged <= 100
