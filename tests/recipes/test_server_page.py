"""docs/mail-server.md from start to end, as far as it can be tried without a system's services.

Postfix with the milter is tried in test_postfix.py.
"""

import re
import shlex
import subprocess
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise, product

import mails
import pytest
from home import need, recipes
from imap_servers import free_port, need_dovecot
from test_dovecot import Dovecot
from waiting import running, wait_until


class Site:
    """The site's folders, and the page's blocks with these in place of the system's."""

    def __init__(self, home):
        self.home, self.top, self.port = home, home.path / "site", free_port()
        self.top.mkdir(parents=True)
        self.socket = self.top / "nbspam.sock"

    def text(self, name):
        own = {
            "/var/lib": self.top,
            "/var/backups": self.top,
            "/run/nbspam.sock": self.socket,
            "/home/hal": self.home.path,
            "127.0.0.1:9783": f"127.0.0.1:{self.port}",
            " -o nbspam -g nbspam": "",
            "chown nbspam:": "chown $(id -un):",
        }
        text = recipes()[name]
        for place, path in own.items():
            text = text.replace(place, str(path))
        return text

    def run(self, name, stdin=b""):
        done = self.home.shell(self.text(name), stdin)
        assert done.code == 0, done
        return done.out.decode()

    @contextmanager
    def serving(self, *options):
        """Run the server as the unit does."""
        line = re.findall("ExecStart=nbspam (.+)", self.text("server-unit"))[0]
        options = [
            "--socket",
            self.socket,
            *options,
            *shlex.split(line.replace("syslog", "stderr"))[1:],
        ]
        process = subprocess.Popen(
            [str(part) for part in (self.home.program, "serve", *options)],
            env=self.home.environment,
            stderr=subprocess.DEVNULL,
        )
        try:
            ping = partial(self.home.run, "spamc", "-U", self.socket, "-K")
            wait_until(lambda: ping().code == 0)
            yield
        finally:
            process.terminate()
            process.wait(20)


@pytest.fixture
def site(home):
    need("spamc", "curl")
    pytest.importorskip("prometheus_client")
    home.put(".", *mails.kept(wanted=True))
    home.put(".Junk", *mails.kept(wanted=False))
    return Site(home)


def test_the_server_is_installed_and_upgraded_without_an_extra():
    for name, options in (("server-install", ""), ("server-upgrade", "--upgrade ")):
        assert f"/opt/nbspam/bin/pip install {options}.\n" in recipes()[name]


@pytest.mark.long
def test_a_site_with_a_model_for_each_user(site):
    site.run("server-model")
    site.home.write("message.eml", mails.SPAM.decode())
    learn = site.home.write("nbspam-learn", site.text("server-learn"), 0o755)
    with site.serving():
        ping, score = site.run("server-check").splitlines()
        assert ping.startswith("SPAMD/")
        assert float(score.partition("/")[0]) > 5
        users = site.top / "nbspam" / "users"
        site.home.environment["USER"] = "hal@example.org"
        lessons = [
            ("train --update --spam", mails.CHATTY_SPAM[0], (0, 1)),
            ("train --update --spam", mails.CHATTY_SPAM[0], (0, 1)),  # again
            ("train --update --ham", mails.CHATTY_SPAM[0], (1, 0)),
            ("nothing Papierkorb", mails.CHATTY_SPAM[1], (1, 0)),
            ("forget --spam", mails.CHATTY_SPAM[0], (0, 0)),
        ]
        for words, message, learned in lessons:
            done = site.home.run(learn, *words.split(), stdin=message)
            assert (done.code, done.out) == (0, b""), done
            site.home.model = users / "hal.json"
            assert site.home.learned() == learned
        look = site.run("server-look").splitlines()
        assert len(look) == 3
        assert str(users / "hal.json") in look[2]
        assert "nbspam_judged_messages_total" in site.run("server-metrics")
    done = site.home.run(learn, "train", "--update", "--spam", stdin=mails.HAM)
    assert done.code == 75  # without the server Dovecot logs that nothing was learned
    command = recipes()["server-backup"].split(maxsplit=5)[5]
    for place in ("/var/lib", "/var/backups"):
        command = command.replace(place, str(site.top))
    assert site.home.shell(command).code == 0
    assert b"nbspam/users/hal.json" in site.home.run("tar", "tzf", site.top / "nbspam.tar.gz").out


class DovecotOfPage(Dovecot):
    """Dovecot with the page's scripts in place of the recipes'."""

    def __init__(self, top, texts, settings=()):
        super().__init__(top)
        self.write("sieve/deliver.sieve", texts["deliver.sieve"])
        self.write("bin/nbspam-learn", texts["nbspam-learn"]).chmod(0o755)
        text = self.settings.read_text()
        for old, new in settings:
            assert old in text
            text = text.replace(old, new)
        self.settings.write_text(text)


CALLS = '#!/bin/sh\ncat > /dev/null\necho "$@" >> {}\n'
PREFIX = (("separator = /", "separator = .\n  prefix = INBOX."),)


@pytest.mark.long
@pytest.mark.parametrize("prefix, settings", [("", ()), ("INBOX.", PREFIX)])
def test_moves_teach_whatever_the_folders_are_called(model, prefix, settings):
    """Outlook's, Gmail's and German names, with and without a prefix."""
    need_dovecot("sievec", part="lmtp")
    texts = {"deliver.sieve": recipes()["server-deliver.sieve"], "nbspam-learn": CALLS}
    with running(partial(DovecotOfPage, texts=texts, settings=settings)) as server:
        home = server.add_user()
        calls = home.write("calls", "", 0o666)
        server.write("bin/nbspam-learn", CALLS.format(calls)).chmod(0o755)
        server.give()
        client = server.login()
        gmail = "[Gmail]/" if not prefix else "[Gmail]."
        junks = ("Junk", "Junk Email", "Spam", f"{gmail}Spam")
        trashes = ("Papierkorb", "Deleted Items", "Gel&APY-schte Elemente", f"{gmail}Trash", "Bin")
        for folder in ("Done", *junks, *trashes):
            client.create(f'"{prefix}{folder}"')
        for junk, trash in product(junks, trashes):
            calls.write_text("")
            server.deliver(b"X-Spam-Flag: NO\n" + mails.HAM)
            for source, target in pairwise(("INBOX", junk, trash, "INBOX", junk, "INBOX", "Done")):
                names = [
                    name if name == "INBOX" else f'"{prefix}{name}"' for name in (source, target)
                ]
                assert server.move(*names) == 1, names
            lines = calls.read_text().splitlines()
            assert [line.split()[-1] for line in lines if "nothing" not in line] == [
                *("--spam", "--spam", "--ham")
            ], (junk, trash, lines)
            assert lines[1].startswith("nothing ")
        server.deliver(b"X-Spam-Flag: YES\n" + mails.SPAM)
        assert len(home.mails(".Junk")) == 1
        with suppress(OSError):
            client.logout()
