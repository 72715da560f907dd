"""docs/mail.md and docs/json.md: their recipes and tables are true."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from junk_mails import many
from waiting import cron_takes

from nbspam.cli import accounts

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "mail.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", PAGE, re.M | re.S))
UNITS = ["nbspam-mail.service", "nbspam-mail.timer", "nbspam-mail-watch.service"]


def test_the_page_has_the_recipes_and_its_account_is_one(tmp_path, monkeypatch):
    assert set(BLOCKS) == {"account", "cron", *UNITS}
    path = tmp_path / "config.toml"
    path.write_text(BLOCKS["account"])
    monkeypatch.setenv("NBSPAM_CONFIG", str(path))
    found = accounts.configured_places()["home"]
    assert (found.name, found.ham) == ("hal@mail.example.org", ("INBOX", "Archive"))


def test_the_table_has_all_keys_of_an_account():
    table = PAGE[PAGE.index("## Accounts") : PAGE.index("## What it does")]
    named = set(re.findall(r"`([a-z-]+)`", "".join(re.findall(r"^\| (`.*?) \|", table, re.M))))
    assert named == set(accounts.KEYS)


def test_cron_takes_its_line(tmp_path):
    (tmp_path / "crontab").write_text(BLOCKS["cron"])
    assert cron_takes(tmp_path / "crontab")


def test_systemd_takes_the_units(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    program = tmp_path / "nbspam"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for name in UNITS:
        (tmp_path / name).write_text(BLOCKS[name].replace("=nbspam ", f"={program} "))
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", *(tmp_path / unit for unit in UNITS)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)},
    )
    own = str(tmp_path), *UNITS
    wrong = [line for line in done.stderr.splitlines() if any(name in line for name in own)]
    assert wrong == [], done.stderr


def test_the_recipes_run(home, mailbox):
    commands = re.findall(r"nbspam (mail .*)", BLOCKS["cron"])
    commands += [re.search(r"nbspam (mail .*)", BLOCKS[UNITS[i]])[1] for i in (0, 2)]
    spam = many("spam", 2)
    mailbox.put(*spam)
    for command in commands:
        if "watch" not in command:
            assert home.mail(*command.split()[1:]).code == 0
    assert mailbox.mails("Junk") == spam
    assert sum("watch home --learn" in command for command in commands) == 1


def test_the_json_has_the_keys_that_are_documented(home, mailbox):
    text = (DOCS / "json.md").read_text(encoding="utf-8")
    mailbox.put(*many("ham", 1))
    for command in ("filter", "learn"):
        section = re.search(rf"^## mail {command}\n(.*?)(?=^## |\Z)", text, re.M | re.S)[1]
        rows = re.findall(r"^\| (`.*?) \|", section, re.M)
        documented = {key for row in rows for key in re.findall(r"`(\w+)`", row)}
        [line] = home.mail(command, "--format", "json").out.splitlines()
        assert set(json.loads(line)) == documented - {"probabilities", "reason"}


def test_the_first_steps(home, mailbox):
    """As a newcomer types them; the password is the account's."""
    home.model.unlink()
    mailbox.put(*many("ham", 110), flags=[b"\\Seen"])
    mailbox.put(*many("spam", 110), folder="Junk", flags=[b"\\Seen"])
    spam, ham = many("spam", 3, 9), many("ham", 3, 9)
    mailbox.put(*spam, *ham)
    text = PAGE[PAGE.index("## First steps") : PAGE.index("## Accounts")]
    lines = re.findall(r"^    nbspam (.*)", text, re.M)
    assert len(lines) == 3
    for line in lines:
        own = line.replace("hal@mail.example.org", f"{mailbox.user}@localhost")
        done = home.run(*own.split())
        assert done.code == 0, done
    assert set(spam) <= set(mailbox.mails("Junk"))
    assert set(ham) <= set(mailbox.mails())
