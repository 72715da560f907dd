"""procmail and maildrop."""

import email
import subprocess
import textwrap
from email.message import EmailMessage

import mails
import pytest
from home import (
    FAULTS,
    GOLDEN,
    ROOT,
    SAMPLE,
    bare,
    changes,
    forged,
    need,
    recipes,
    unmarked,
    verdict,
)
from junk_mails import TEXTS, mail
from waiting import wait_until

THREE = mails.SPAM, mails.HAM, mails.ODD
BIG = mail(**TEXTS["SPAM"], size=300_000)  # more than a pipe holds


@pytest.fixture
def maildrop():
    need("maildrop")

    def run(home, rules, message):
        # maildrop takes HOME from the user database; the first line puts this home there.
        file = home.write(".mailfilter", f'HOME="{home.path}"\n{rules}')
        return home.run("maildrop", file, stdin=message)

    return run


@pytest.fixture(params=["procmail", "maildrop"])
def agent(request, recipe):
    """Return who delivers, and the recipe."""
    names = {"procmail": "procmail-filter", "maildrop": "maildrop-filter"}
    return request.getfixturevalue(request.param), recipe(names[request.param])


def test_spam_goes_to_junk_and_ham_to_the_inbox(trained, agent):
    deliver, rules = agent
    for message in (*THREE, mails.ODD.rstrip(), forged(mails.HAM)):
        assert deliver(trained, rules, message) == (0, b"", "")
    assert [bare(found) for found in trained.mails(".Junk")] == [mails.SPAM]
    inbox = trained.mails()
    assert [verdict(found) for found in inbox] == ["ham"] * 4
    end = b"\n" if "xfilter" in rules else b""  # maildrop's, for any message that lacks it
    expected = [mails.HAM, mails.ODD, mails.ODD.rstrip() + end, mails.HAM]
    assert [unmarked(found) for found in inbox] == expected


def test_the_help_has_the_recipe(home, recipe):
    rules = recipe("procmail-filter")
    assert textwrap.indent(rules, "    ") in home.nbspam("classify", "--help-all").out.decode()


def test_mails_that_are_forwarded_to_an_address_are_learned(trained, procmail, recipe):
    """And not the mail around them, which goes to the inbox if there is none in it."""
    before = trained.learned()
    first = recipe("teach-by-mail")
    rules = recipe("procmail-filter").replace("VERDICT=", f"{first}\nVERDICT=")
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "hal@x.example", "hal+junk-7k2x@x.example", "Fwd"
    mail.set_content("Learn these")
    nothing = mail.as_bytes()
    for message in mails.CHATTY_SPAM[:2]:
        mail.add_attachment(email.message_from_bytes(message))
    note = "nbspam: 2 of 2 new messages look like ham and were learned as spam\n"
    for said in (note, ""):  # each is learned once
        assert procmail(trained, rules, mail.as_bytes()) == (0, b"", said)
        assert trained.learned() == (before[0], before[1] + 2)
    assert trained.everything() == []
    known = trained.nbspam("train", "--update", "--spam", "-", stdin=mails.CHATTY_SPAM[0])
    assert (known.code, trained.learned()) == (0, (before[0], before[1] + 2))
    assert "no message is attached" in procmail(trained, rules, nothing).err
    assert len(trained.everything()) == 1


def test_an_allowed_sender_whom_the_server_knows_is_never_spam(trained, procmail, recipe):
    folder = trained.path / ".config" / "nbspam"
    folder.mkdir(parents=True)
    page = (ROOT / "docs" / "config.md").read_text("utf-8")
    (folder / "config.toml").write_text(page.partition("```toml senders\n")[2].partition("```")[0])
    (folder / "allowed-senders").write_text("roz@example.org   # a friend\n")
    spam = mails.TEXTS["SPAM"]
    forged = mails.mail("Roz <roz@example.org>", spam["subject"], spam["body"])
    field = b"Authentication-Results: mx.example.net; dkim=pass header.d=example.org\n"
    blocked = mails.HAM.replace(b"\nFrom: ", b"\nFrom: ads@my.shop.example\nX-From: ", 1)
    for message in (field + forged, forged, blocked):
        assert procmail(trained, recipe("procmail-filter"), message) == (0, b"", "")
    assert [bare(found) for found in trained.mails()] == [field + forged]
    assert [bare(found) for found in trained.mails(".Junk")] == [forged, blocked]


def test_mail_that_may_be_spam_goes_to_the_inbox(home, procmail, recipe):
    """A model of few mails is not sure of this one."""
    sources = ("--ham", SAMPLE / "ham.mbox", "--spam", SAMPLE / "spam.mbox")
    assert home.nbspam("train", *sources).code == 0
    assert procmail(home, recipe("procmail-filter"), mails.LOUD_HAM[1]) == (0, b"", "")
    assert home.mails(".Junk") == []
    [found] = home.mails()
    assert (verdict(found), bare(found)) == ("unsure", mails.LOUD_HAM[1])


@pytest.mark.long
def test_spamc_sorts_as_long_as_there_is_a_server(trained, procmail, recipe):
    need("spamc")
    socket = trained.path / "socket"
    rules = recipe("spamc").replace("/run/nbspam.sock", str(socket))
    command = [trained.program, "serve", "-q", "-m", trained.model, "--socket", socket]
    with subprocess.Popen(command) as server:
        wait_until(socket.exists)
        for message in (mails.SPAM, forged(mails.HAM)):
            assert procmail(trained, rules, message) == (0, b"", "")
        server.terminate()
    assert procmail(trained, rules, forged(mails.SPAM)).code == 0
    assert trained.mails(".Junk") == [mails.SPAM]
    assert trained.mails() == [forged(mails.HAM), forged(mails.SPAM)]


# Each recipe with each fault, as it is and as its page says it may be

FILTER, MAILDROP, SPAMC = map(recipes().get, ("procmail-filter", "maildrop-filter", "spamc"))
CONDITION = (GOLDEN / "bogofilter-condition.procmailrc").read_text()
QUEUED, INBOX = (75, 0), (0, 1)  # the exit code, and how many are in the inbox
WAYS = {
    "procmail": (FILTER, QUEUED),
    "procmail, no queue": (FILTER.replace("{ EXITCODE=75 HOST }", "$DEFAULT"), INBOX),
    "procmail, a condition": (CONDITION.replace(*changes()["a condition (of `:0HB`)"]), INBOX),
    "procmail, spamc": (SPAMC.replace("/usr/bin/spamc", "$HOME/.local/bin/nbspam"), INBOX),
    "maildrop": (MAILDROP, QUEUED),
    "maildrop, no queue": (MAILDROP.replace("EXITCODE=75", 'to "$HOME/Maildir"'), INBOX),
}


@pytest.mark.few(9)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("way", WAYS)
def test_with_a_broken_nbspam_the_mail_is_whole_and_not_junk(trained, request, way, fault):
    rules, expected = WAYS[way]
    assert "nbspam" in rules
    deliver = request.getfixturevalue(way.partition(",")[0])
    trained.break_program(fault)
    for message in (mails.SPAM, BIG):
        ended = deliver(trained, rules, forged(message))
        assert trained.mails(".Junk") == []
        assert (ended.code, len(trained.mails())) == expected, ended
        for path in trained.files():
            assert unmarked(path.read_bytes()) == message
            path.unlink()
