"""Cron's line at night, and a day in the life: procmail delivers, the user sorts, cron learns."""

import mailbox
import operator
import os
import subprocess
from contextlib import closing

import mails
import pytest
from home import SAMPLE, bare, need, need_name_spaces
from waiting import cron_takes, wait_until


def test_cron_takes_the_line(recipe, home):
    assert cron_takes(home.write("crontab", recipe("cron")))
    # and it would have told of an error
    assert not cron_takes(home.write("crontab", recipe("cron").replace("15 3", "15 33")))


def test_only_what_the_user_has_read_is_learned_and_only_once(trained, nightly):
    ham, spam = trained.learned()
    known = trained.model.read_bytes()
    assert nightly(trained) == (0, b"", "")  # empty folders are no error
    assert known == trained.model.read_bytes()
    trained.put(".", *mails.LOUD_HAM[:1])
    trained.put(".Junk", *mails.CHATTY_SPAM[:1])
    trained.put(".", *mails.LOUD_HAM[1:], flags="")
    trained.put(".Junk", *mails.CHATTY_SPAM[1:], flags="F")
    (trained.maildir / "new" / "1700000001.1.host").write_bytes(mails.HAM)
    code, out, err = nightly(trained)
    assert (code, out, err.count("new messages looks like")) == (0, b"", 2)  # cron mails that
    assert (ham + 1, spam + 1) == trained.learned()
    known = trained.model.read_bytes()
    assert nightly(trained) == (0, b"", "")
    assert known == trained.model.read_bytes()


def test_the_first_night_makes_the_model_in_silence_and_a_failure_is_one_sentence(home, nightly):
    home.put(".", mails.HAM, mails.ODD)
    home.put(".Junk", mails.SPAM)
    assert nightly(home) == (0, b"", "")
    assert home.learned() == (2, 1)
    home.model.write_text("no model")
    ended = nightly(home)
    assert (ended.code, ended.out) == (1, b"")
    assert ended.err.startswith(f"nbspam: {home.model}: ")
    assert ended.err.count("\n") == 1
    assert home.model.read_text() == "no model"


@pytest.mark.long
def test_cron_itself_runs_the_line(home, recipe):
    """A real cron, with a table of its own in the place of the system's: a minute at most."""
    need("cron")
    need_name_spaces("--mount")
    home.put(".", mails.HAM)
    home.put(".Junk", mails.SPAM)
    line = recipe("cron").replace("15 3 * * *", "* * * * *")
    assert line != recipe("cron")
    # cron takes HOME from the user database; the line before puts this home there
    home.write("crontabs/root", f"HOME={home.path}\n{line}", 0o600)
    for name in ("run", "none"):
        (home.path / name).mkdir()
    hide = {"crontabs": "/var/spool/cron/crontabs", "run": "/run", "none": "/etc/cron.d"}
    setup = [f"mount --bind {home.path}/{own} {place}" for own, place in hide.items()]
    setup.append("mount --bind /dev/null /etc/crontab")
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-ec", "\n".join([*setup, "exec cron -f"])],
        stdin=subprocess.DEVNULL,
        env=dict(os.environ) | {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    ) as cron:
        try:
            wait_until(lambda: home.model.exists() or cron.poll() is not None, 75)
        finally:
            cron.terminate()
    assert home.learned() == (1, 1)


# A day in the life


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
    new = [path for path in home.files(folder) if b"\nX-Nbspam: " in path.read_bytes()]
    return [path for path in new if bare(path.read_bytes()) in messages]


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
    code, out, err = nightly(home)
    assert (code, out) == (0, b"")
    assert all("new messages look" in line for line in err.splitlines())
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
    # read and left in the inbox: ham, as far as anyone can tell
    assert nightly(home) == (0, b"", "")
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
