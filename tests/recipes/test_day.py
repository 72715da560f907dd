"""A day in the life: procmail delivers, the user sorts, cron's line learns from that at night."""

import mailbox
import operator
from contextlib import closing

import mails
import pytest
from home import SAMPLE, bare


@pytest.fixture
def deliver(procmail, recipe):
    def run(home, messages):
        for message in messages:
            assert procmail(home, recipe("procmail-filter"), message) == (0, b"", "")

    return run


@pytest.fixture
def settled(home, recipe):
    for folder, label in ((".Junk", "spam"), (".", "ham")):
        with closing(mailbox.mbox(SAMPLE / f"{label}.mbox", create=False)) as box:
            sample = [message.as_bytes() for message in box]
        home.put(folder, *sample, *mails.kept(wanted=label == "ham"))
    first = home.shell(recipe("first-training"))
    assert first.code == 0, first.err
    return home


def read(home, path, folder="."):
    """Do what a mail program does when the user reads a message, and then perhaps moves it."""
    name = path.name.partition(":")[0]
    return path.rename(home.maildir / folder / "cur" / f"{name}:2,S")


def find(home, folder, messages):
    wanted = [message + b"\n" for message in messages]
    new = [path for path in home.files(folder) if b"\nX-Nbspam: " in path.read_bytes()]
    return [path for path in new if bare(path.read_bytes()) in wanted]


def misjudged(home, spam, ham):
    return len(find(home, ".", spam)) + len(find(home, ".Junk", ham))


@pytest.mark.long
def test_a_day_in_the_life(settled, deliver, nightly):
    home = settled
    ham, spam = home.learned()
    today_spam, later_spam = mails.CHATTY_SPAM[:4], mails.CHATTY_SPAM[4:]
    today_ham, later_ham = mails.LOUD_HAM[:2], mails.LOUD_HAM[2:]

    # the day's mail: the usual is judged rightly, six mails of two new kinds are not
    deliver(home, [mails.HAM, *today_spam, mails.SPAM, *today_ham, mails.ODD])
    assert len(find(home, ".", [mails.HAM, mails.ODD])) == 2
    assert len(find(home, ".Junk", [mails.SPAM])) == 1
    assert misjudged(home, today_spam, today_ham) == 6
    spam_before, ham_before = home.probabilities(later_spam), home.probabilities(later_ham)

    # the user reads the inbox, and moves the six
    for path in find(home, ".", [mails.HAM, mails.ODD]):
        read(home, path)
    for path in find(home, ".", today_spam):
        read(home, path, ".Junk")
    for path in find(home, ".Junk", today_ham):
        read(home, path)
    count = len(home.everything())

    # at night the line learns what was read: two usual and two moved ham, four moved spam
    assert nightly(home) == (0, b"", "")
    assert (ham + 4, spam + 4) == home.learned()
    assert len(home.everything()) == count

    # the next mails of these kinds are judged better: each of them, and rightly
    deliver(home, [*later_spam, *later_ham])
    assert misjudged(home, later_spam, later_ham) == 0
    spam_after, ham_after = home.probabilities(later_spam), home.probabilities(later_ham)
    assert all(map(operator.gt, spam_after, spam_before))
    assert all(map(operator.lt, ham_after, ham_before))
    deliver(home, [mails.SPAM, mails.HAM])
    assert len(find(home, ".", [mails.HAM])) == 2
    assert len(find(home, ".Junk", [mails.SPAM])) == 2

    # the same line again, and nothing changes: the new mail is unread
    known = home.model.read_bytes()
    for _ in range(2):
        assert nightly(home) == (0, b"", "")
        assert known == home.model.read_bytes()


@pytest.mark.long
def test_what_is_moved_a_day_late_is_learned_anew(settled, deliver, nightly):
    home = settled
    ham, spam = home.learned()
    deliver(home, mails.CHATTY_SPAM[:3])
    late = [read(home, path) for path in find(home, ".", mails.CHATTY_SPAM[:3])]
    assert nightly(home) == (
        0,
        b"",
        "",
    )  # read and left in the inbox: ham, as far as anyone can tell
    assert (ham + 3, spam) == home.learned()
    fooled = home.probabilities(mails.CHATTY_SPAM[3:4])

    for path in late:
        read(home, path, ".Junk")
    assert nightly(home) == (0, b"", "")
    known = home.model.read_bytes()
    assert (ham, spam + 3) == home.learned()
    assert home.probabilities(mails.CHATTY_SPAM[3:4]) > fooled
    assert nightly(home) == (0, b"", "")
    assert known == home.model.read_bytes()
