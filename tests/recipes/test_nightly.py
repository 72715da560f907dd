"""The first training, and cron's line at night."""

import os
import subprocess

import mails
import pytest
from home import need, need_name_spaces
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


def test_the_first_training_learns_all_folders(home, recipe):
    home.put(".", mails.HAM, mails.ODD)
    home.put(".Junk", mails.SPAM)
    first = home.shell(recipe("first-training"))
    assert (first.code, home.learned()) == (0, (2, 1)), first


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
