"""Runs that are killed: every message is in exactly one folder, and the next run goes on."""

import os
import signal
import time
from contextlib import ExitStack, suppress
from random import Random

import pytest
from imap_servers import Proxy
from junk_mails import many
from local_mail import everywhere, folders_of, unmoved

from nbspam.mailbox.connection import Connection

MOMENTS = int(os.environ.get("NBSPAM_TEST_KILLS", "2"))  # 50 were tried
_WAYS = {"MOVE": (), "COPY": ("MOVE",)}


class Killer:
    """Runs nbspam over a proxy, and kills it after so many answers of the server."""

    def __init__(self, home, mailbox):
        self._home, self._process, self._left = home, None, 0
        self.proxy = Proxy(mailbox.server.plain, self._count, host=mailbox.host)
        # One address for all runs: by it they know what was done.
        home.write(
            mailbox.user, mailbox.server, host=mailbox.host, port=self.proxy.port, tls="none"
        )

    def run(self, moment, *arguments):
        self._left = moment
        self._process = self._home.start(*arguments)
        self._process.communicate(timeout=300)
        is_killed = self._process.returncode == -signal.SIGKILL
        self._process = None
        time.sleep(0.05)  # the server may still be at the last command
        return is_killed

    def _count(self, _):
        self._left -= 1
        if self._left <= 0 and self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()


@pytest.fixture
def killer(home, account):
    with ExitStack() as stack:

        def make(way):
            mailbox = account(lacking=_WAYS[way])
            found = Killer(home, mailbox)
            stack.enter_context(found.proxy)
            return mailbox, found

        yield make


@pytest.mark.long
@pytest.mark.parametrize("way", ["MOVE", pytest.param("COPY", marks=pytest.mark.long)])
def test_kill_at_random_moments(home, killer, way):
    mailbox, killed = killer(way)
    chance, expected, kills = Random(way), {}, 0
    for number in range(MOMENTS):
        ham, spam = many("ham", 6, number), many("spam", 6, number)
        mailbox.put(*ham, *spam)
        expected |= dict.fromkeys(ham, "INBOX") | dict.fromkeys(spam, "Junk")
        if number % 4 == 3:
            mailbox.flag("Junk", [b"\\Seen"])
        before = everywhere(mailbox, b"\\Deleted")
        learning = ["--learn"] if number % 2 else []
        kills += killed.run(chance.randint(2, 22), "mail", "filter", *learning)
        if way == "MOVE":  # by COPY a message is in both, until the next run
            assert unmoved(everywhere(mailbox, b"\\Deleted")) == unmoved(before)
        home.mail("filter", "-q")
        found = everywhere(mailbox, b"\\Deleted")
        assert folders_of(found) == expected
        assert unmoved(found) == unmoved(before)
        assert not [1 for _, flags, _ in mailbox.all() if b"\\Deleted" in flags]
    assert kills >= MOMENTS // 2
    print(f"{way}: killed {kills} of {MOMENTS}")
    home.mail("learn", "-q")
    learned = home.learned()
    home.mail("learn", "-q")
    assert home.learned() == learned


def test_kill_while_it_learns(home, killer):
    """Whatever was cut off, each message is learned once in the end."""
    mailbox, killed = killer("MOVE")
    before, chance, kills = home.learned(), Random(1), 0
    for number in range(MOMENTS):
        mailbox.put(*many("ham", 5, number), flags=[b"\\Seen"])
        mailbox.put(*many("spam", 5, number), folder="Junk")
        found = [mailbox.all(folder) for folder in ("INBOX", "Junk")]
        kills += killed.run(chance.randint(2, 20), "mail", "learn")
        assert [mailbox.all(folder) for folder in ("INBOX", "Junk")] == found
    print(f"learn: killed {kills} of {MOMENTS}")
    home.mail("learn")
    assert home.learned() == (before[0] + 5 * MOMENTS, before[1] + 5 * MOMENTS)


@pytest.mark.few(4)
@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize("after", ["journal", "copy", "flag", "expunge"])
def test_an_end_at_each_step_of_a_move(home, account, monkeypatch, way, after):
    """Two of the messages have the same bytes: neither is lost."""
    mailbox = account(lacking=_WAYS[way])
    ham, spam = many("ham", 2), many("spam", 3)
    spam.append(spam[0])
    mailbox.put(*ham, *spam)

    class Killed(BaseException):
        pass

    def dies(name, first):
        real = getattr(Connection, name)

        def method(self, *arguments):
            if first:
                raise Killed
            real(self, *arguments)
            raise Killed

        monkeypatch.setattr(Connection, name, method)

    step = {"journal": "copy" if way == "COPY" else "move", "copy": "copy", "flag": "add_flag"}
    dies(step.get(after, "expunge"), after == "journal")
    with suppress(Killed):
        home.run("mail", "filter", "-j1")
    monkeypatch.undo()
    for name, value in home.environment.items():
        monkeypatch.setenv(name, value)
    home.mail("filter")
    assert mailbox.mails() == ham
    assert sorted(mailbox.mails("Junk")) == sorted(spam)
    assert home.mail("filter") == (0, "", "")
    assert home.state()["pending"] is None
    assert len(home.state()["junked"]) == 3
