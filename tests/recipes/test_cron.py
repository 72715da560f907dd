import json
import os
import subprocess
import time
from pathlib import Path

import mails
import pytest
from conftest import need


@pytest.fixture
def nightly(recipe):
    """Return a function that runs the crontab's line as cron does."""

    def run(home):
        *times, command = recipe("cron").rstrip("\n").split(maxsplit=5)
        assert len(times) == 5
        assert "%" not in command  # to cron, a new line
        return home.run("/bin/sh", "-c", command)

    return run


def put(home, folder, *messages, flags="S"):
    for message in messages:
        number = len(home.files(folder))
        (home.maildir / folder / "cur" / f"1700000000.{number}.host:2,{flags}").write_bytes(message)


def learned(home):
    found = json.loads(home.model.read_text())
    return dict(zip(found["classes"], found["messages"], strict=True))


def test_cron_takes_the_line(recipe, home):
    need("crontab")
    table = home.write("crontab", recipe("cron"))
    checked = home.run("crontab", "-n", table)
    if "invalid option" in checked.err:
        pytest.skip("this crontab has no -n to check a file with")
    assert checked.code == 0, checked.err
    # and it would have told of an error
    table.write_text(recipe("cron").replace("15 3", "15 33"))
    assert home.run("crontab", "-n", table).code != 0


def test_the_first_night_makes_the_model_in_silence(home, nightly):
    put(home, ".", mails.HAM, mails.ODD)
    put(home, ".Junk", mails.SPAM)
    assert (0, b"", "") == nightly(home)
    assert {"ham": 2, "spam": 1} == learned(home)


def test_only_what_the_user_has_read_is_learned(trained, nightly):
    before = learned(trained)
    put(trained, ".", *mails.LOUD_HAM[:1])
    put(trained, ".Junk", *mails.CHATTY_SPAM[:1])
    put(trained, ".", *mails.LOUD_HAM[1:], flags="")
    put(trained, ".Junk", *mails.CHATTY_SPAM[1:], flags="F")
    (trained.maildir / "new" / "1700000001.1.host").write_bytes(mails.HAM)
    assert (0, b"", "") == nightly(trained)
    assert {"ham": before["ham"] + 1, "spam": before["spam"] + 1} == learned(trained)


def test_the_second_night_changes_nothing(trained, nightly):
    put(trained, ".", *mails.LOUD_HAM)
    put(trained, ".Junk", *mails.CHATTY_SPAM)
    assert (0, b"", "") == nightly(trained)
    known = trained.model.read_bytes()
    assert (0, b"", "") == nightly(trained)
    assert known == trained.model.read_bytes()


def test_empty_folders_are_no_error(trained, nightly):
    known = trained.model.read_bytes()
    assert (0, b"", "") == nightly(trained)
    assert known == trained.model.read_bytes()


def test_a_failure_is_one_sentence_for_cron_to_mail(home, nightly):
    put(home, ".", mails.HAM)
    home.model.parent.mkdir(parents=True)
    home.model.write_text("no model")
    ended = nightly(home)
    assert (1, b"") == (ended.code, ended.out)
    assert ended.err.startswith(f"nbspam: {home.model}: ")
    assert ended.err.count("\n") == 1
    assert home.model.read_text() == "no model"


@pytest.mark.long
def test_cron_itself_runs_the_line(home, recipe):
    """A real cron, with a table of its own in the place of the system's: a minute at most."""
    need("cron", "unshare")
    if os.geteuid() != 0:
        pytest.skip("cron starts as root only")
    own = ["unshare", "--mount", "true"]
    if subprocess.run(own, check=False, capture_output=True).returncode != 0:
        pytest.skip("no name spaces of our own may be made here")
    put(home, ".", mails.HAM)
    put(home, ".Junk", mails.SPAM)
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
            until = time.monotonic() + 75
            while not home.model.exists() and time.monotonic() < until:
                assert cron.poll() is None
                time.sleep(0.2)
        finally:
            cron.terminate()
    assert Path(home.model).exists()
    assert {"ham": 1, "spam": 1} == learned(home)
