"""A real mutt on a terminal of its own, with its keys pressed."""

import os
import re
import select
import subprocess
import time

import mails
import pytest
from home import need


@pytest.fixture
def mutt(recipe):
    """Return a function that opens the Maildir in mutt, presses keys and gives what it showed."""
    need("mutt", "setsid")

    def run(home, *keys, folder=".", more=""):
        rules = home.write(".muttrc", recipe("mutt-macros") + more + "\n")
        terminal, end = os.openpty()
        environment = home.environment | {
            "PATH": f"{home.program.parent}:/usr/bin:/bin",
            "TERM": "xterm",
            "LC_ALL": "C.UTF-8",
        }
        command = ["setsid", "-c", "mutt", "-n", "-F", str(rules)]
        with subprocess.Popen(
            [*command, "-f", str(home.maildir / folder)],
            stdin=end,
            stdout=end,
            stderr=end,
            env=environment,
            cwd=home.path,
        ) as program:
            os.close(end)
            screen, waiting = b"", list(keys)
            try:
                until = time.monotonic() + 30
                while program.poll() is None and time.monotonic() < until:
                    if select.select([terminal], [], [], 0.05)[0]:
                        try:
                            screen += os.read(terminal, 65536)
                        except OSError:  # mutt has closed its end
                            break
                    elif waiting and re.search(waiting[0][0], screen, re.S):
                        os.write(terminal, waiting.pop(0)[1])
                assert not waiting, (waiting, screen)
                assert program.wait(5) == 0, screen
            finally:
                program.kill()
                os.close(terminal)
        return screen

    return run


# what mutt shows -> the keys then pressed
OPEN = rb"Mutt: .*Msgs:1"
SAVED = rb"Mutt: .*Del:1"


def by_mutt(message):
    """Return a message without what mutt writes into it when it saves one."""
    header, _, body = message.partition(b"\n\n")
    lines = [
        line
        for line in header.split(b"\n")
        if not re.match(rb"(Status|Content-Length|Lines): ", line)
    ]
    return b"\n".join(lines) + b"\n\n" + body


def test_a_key_learns_spam_and_saves_it_in_junk(trained, mutt, nightly):
    trained.put(".", mails.CHATTY_SPAM[0])
    ham, spam = trained.learned()
    screen = mutt(trained, (OPEN, b"S"), (SAVED, b"qy"))
    assert (ham, spam + 1) == trained.learned()
    assert [mails.CHATTY_SPAM[0]] == [by_mutt(saved) for saved in trained.mails(".Junk")]
    assert trained.mails() == []
    assert b"Press any key" not in screen

    # what mutt wrote into it makes it no other message: the nightly line knows it
    (saved,) = trained.files(".Junk")
    assert saved.name.endswith("S")
    known = trained.model.read_bytes()
    assert nightly(trained) == (0, b"", "")
    assert known == trained.model.read_bytes()


def test_a_key_learns_each_of_several_tagged_messages(trained, mutt):
    spam = mails.CHATTY_SPAM[:3]
    trained.put(".", *spam)
    before = trained.learned()
    tag = (rb"Mutt: .*Msgs:3", b"T~A\rS")
    mutt(trained, tag, (rb"Del", b"qy"), more="set auto_tag")
    assert (before[0], before[1] + 3) == trained.learned()
    assert sorted(map(by_mutt, trained.mails(".Junk"))) == sorted(spam)


@pytest.mark.long
def test_a_key_learns_ham_and_saves_it_in_the_inbox(trained, mutt):
    trained.put(".Junk", mails.LOUD_HAM[0])
    ham, spam = trained.learned()
    mutt(trained, (OPEN, b"H"), (SAVED, b"qy"), folder=".Junk")
    assert (ham + 1, spam) == trained.learned()
    assert [mails.LOUD_HAM[0]] == [by_mutt(saved) for saved in trained.mails()]
    assert trained.mails(".Junk") == []


def test_a_failure_is_shown_until_a_key_is_pressed_and_the_mail_is_saved(home, mutt):
    home.put(".", mails.SPAM)
    home.model.parent.mkdir(parents=True)
    home.model.write_text("no model")
    mutt(home, (OPEN, b"S"), (rb"nbspam: .*Press any key", b" "), (SAVED, b"qy"))
    assert [by_mutt(saved) for saved in home.mails(".Junk")] == [mails.SPAM]
    assert home.model.read_text() == "no model"
