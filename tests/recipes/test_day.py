"""A day in the life: mail comes by procmail, the user sorts it, cron's line learns from that at night."""

import json
import mailbox
from contextlib import closing

import mails
import pytest
from conftest import SAMPLE, bare, need


@pytest.fixture
def deliver(recipe):
    """Return a function that hands messages to procmail."""
    need("procmail")

    def run(home, messages):
        rules = home.write(".procmailrc", recipe("procmail-filter"))
        for message in messages:
            ended = home.run("procmail", f"HOME={home.path}", rules, stdin=message)
            assert (0, b"", "") == ended

    return run


@pytest.fixture
def nightly(recipe):
    """Return a function that runs the crontab's line as cron does."""

    def run(home):
        command = recipe("cron").split(maxsplit=5)[5]
        assert (0, b"", "") == home.run("/bin/sh", "-c", command)
        return home.model.read_bytes()

    return run


@pytest.fixture
def settled(home, recipe):
    """Return a home with sorted mail that was read, and the model that the first training made."""
    with closing(mailbox.mbox(SAMPLE / "spam.mbox", create=False)) as junk:
        for number, message in enumerate(junk):
            path = home.maildir / ".Junk" / "cur" / f"1600000000.{number}.host:2,S"
            path.write_bytes(message.as_bytes())
    for path in (SAMPLE / "ham").glob("[cn]*/*"):
        (home.maildir / "cur" / f"{path.name}:2,S").write_bytes(path.read_bytes())
    home.environment["PATH"] = f"{home.program.parent}:/usr/bin:/bin"
    first = home.run("/bin/sh", "-c", recipe("first-training"))
    assert first.code == 0, first.err
    return home


def read(home, path, folder="."):
    """Do what a mail program does when the user reads a message, and then perhaps moves it."""
    name = path.name.partition(":")[0]
    return path.rename(home.maildir / folder / "cur" / f"{name}:2,S")


def find(home, folder, messages):
    """Return the files of some of the messages in a folder."""
    wanted = [message + b"\n" for message in messages]
    new = [path for path in home.files(folder) if b"\nX-Nbspam: " in path.read_bytes()]
    return [path for path in new if bare(path.read_bytes()) in wanted]


def probability(home, message):
    judged = home.nbspam("classify", "--format", "json", stdin=message)
    return json.loads(judged.out)["probability"]


def learned(home):
    found = json.loads(home.model.read_text())
    return dict(zip(found["classes"], found["messages"], strict=True))


def misjudged(home, spam, ham):
    return len(find(home, ".", spam)) + len(find(home, ".Junk", ham))


def test_a_day_in_the_life(settled, deliver, nightly):
    home = settled
    before = learned(home)
    today_spam, later_spam = mails.CHATTY_SPAM[:3], mails.CHATTY_SPAM[3:]
    today_ham, later_ham = mails.LOUD_HAM[:2], mails.LOUD_HAM[2:]

    # the day's mail: the usual is judged rightly, five mails of two new kinds are not
    deliver(home, [mails.HAM, *today_spam, mails.SPAM, *today_ham, mails.ODD])
    assert len(find(home, ".", [mails.HAM, mails.ODD])) == 2
    assert len(find(home, ".Junk", [mails.SPAM])) == 1
    assert misjudged(home, today_spam, today_ham) == 5
    expected = {message: probability(home, message) for message in (*later_spam, *later_ham)}

    # the user reads the inbox, and moves the five
    for path in find(home, ".", [mails.HAM, mails.ODD]):
        read(home, path)
    for path in find(home, ".", today_spam):
        read(home, path, ".Junk")
    for path in find(home, ".Junk", today_ham):
        read(home, path)
    count = len(home.everything())

    # at night the line learns what was read: two usual and two moved ham, three moved spam
    nightly(home)
    assert {"ham": before["ham"] + 4, "spam": before["spam"] + 3} == learned(home)
    assert len(home.everything()) == count

    # the next mails of these kinds are judged better: each of them, and rightly
    deliver(home, [*later_spam, *later_ham])
    assert misjudged(home, later_spam, later_ham) == 0
    assert all(probability(home, message) > expected[message] for message in later_spam)
    assert all(probability(home, message) < expected[message] for message in later_ham)
    deliver(home, [mails.SPAM, mails.HAM])
    assert len(find(home, ".", [mails.HAM])) == 2
    assert len(find(home, ".Junk", [mails.SPAM])) == 2

    # the same line again, and nothing changes: the new mail is unread
    known = home.model.read_bytes()
    assert known == nightly(home)
    assert known == nightly(home)


def test_what_is_moved_a_day_late_is_learned_anew(settled, deliver, nightly):
    home = settled
    before = learned(home)
    deliver(home, mails.CHATTY_SPAM[:3])
    late = [read(home, path) for path in find(home, ".", mails.CHATTY_SPAM[:3])]
    nightly(home)  # read and left in the inbox: ham, as far as anyone can tell
    assert {"ham": before["ham"] + 3, "spam": before["spam"]} == learned(home)
    fooled = probability(home, mails.CHATTY_SPAM[3])

    for path in late:
        read(home, path, ".Junk")
    known = nightly(home)
    assert {"ham": before["ham"], "spam": before["spam"] + 3} == learned(home)
    assert probability(home, mails.CHATTY_SPAM[3]) > fooled
    assert known == nightly(home)
