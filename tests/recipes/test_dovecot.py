"""A real Dovecot on a loopback port, with its own settings and folders, run by an ordinary user."""

import imaplib
import operator
import os
import shutil
import smtplib
import sys
from contextlib import suppress
from itertools import count, cycle
from string import Template

import mails
import pytest
from home import (
    FAULTS,
    GOLDEN,
    Home,
    bare,
    forged,
    learn_mail_with,
    need,
    received_line,
    recipes,
    sent,
    verdict,
)
from imap_servers import StartedDovecot, free_port, need_dovecot
from junk_mails import TEXTS, mail
from waiting import running, wait_until

# What a system's own settings would say: the folders, one user, and no TLS.
SETTINGS = (GOLDEN / "dovecot.conf").read_text()
MBSYNC = Template((GOLDEN / "mbsyncrc").read_text())


def become_ordinary(home):
    """Return a command that runs another as an ordinary user: Dovecot handles no mail of root's.

    Root becomes `nobody`, or, where nobody may not enter the folder that Python is in, the one who
    is called `daemon` in a name space of users of its own.  Skips the test if neither can.
    """
    ways = [[]]
    if os.geteuid() == 0:
        own = ["unshare", "--user", "--map-user=daemon", "--map-group=daemon"]
        ways = [["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"], own]
    for way in ways:
        if home.run(*way, home.program, "--version").code == 0:
            return way
    return pytest.skip(f"no user but root may run {sys.executable}")


class Dovecot(StartedDovecot):
    def __init__(self, top):
        self.top = top
        self.users = count(1)
        self.ordinary = become_ordinary(self.add_user())
        user, group, uid, gid = (
            self.run("id", flag).out.decode().strip() for flag in ("-un", "-gn", "-u", "-g")
        )
        self.port = free_port()
        self.settings = top / "dovecot.conf"
        own = {"user": user, "group": group, "uid": uid, "gid": gid}
        self.settings.write_text(Template(SETTINGS).substitute(own, top=top, port=self.port))
        texts = recipes()
        for name in ("deliver.sieve", "learn-spam.sieve", "learn-ham.sieve"):
            self.write(f"sieve/{name}", texts[name])
        for name in ("nbspam-verdict", "nbspam-learn"):
            self.write(f"bin/{name}", texts[name]).chmod(0o755)
        places = {"/etc/dovecot/sieve": "sieve", "/usr/local/lib/nbspam": "bin"}
        settings = texts["dovecot.conf"]
        for place, folder in places.items():
            settings = settings.replace(place, str(top / folder))
        self.write("nbspam.conf", settings)

    def add_user(self):
        self.user = f"hal{next(self.users)}"
        self.home = Home(self.top / self.user)
        return self.home

    def write(self, name, text):
        path = self.top / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def give(self):
        if "setpriv" in self.ordinary:
            for path in (self.top, *self.top.rglob("*")):
                with suppress(FileNotFoundError):  # a lock that Dovecot has released
                    shutil.chown(path, "nobody", "nogroup")

    def run(self, *command, stdin=b""):
        return self.home.run(*self.ordinary, *command, stdin=stdin)

    def compile(self):
        for script in (self.top / "sieve").glob("*.sieve"):
            ended = self.run("sievec", "-c", self.settings, script)
            assert (ended.code, ended.err) == (0, "")

    def start(self):
        self.give()
        self.compile()
        self.begin(self.ordinary)

    def deliver(self, message):
        with smtplib.LMTP(str(self.top / "run" / "lmtp")) as server:
            server.sendmail("sender@example.net", [self.user], message.replace(b"\n", b"\r\n"))

    def login(self):
        client = imaplib.IMAP4("127.0.0.1", self.port, timeout=30)
        client.login(self.user, "any")
        return client

    def move(self, source, target):
        """Move all messages from one mailbox to another by IMAP; return how many."""
        client = self.login()
        status, (number,) = client.select(source)
        assert status == "OK"
        assert client.uid("MOVE", "1:*", target)[0] == "OK"
        client.logout()
        return int(number)


@pytest.fixture(scope="module")
def dovecot(model):
    need_dovecot("sievec", part="lmtp")
    need_dovecot(part="modules/sieve/lib90_sieve_extprograms_plugin.so")
    with running(Dovecot) as server:
        yield server


@pytest.fixture
def server(dovecot, model):
    dovecot.add_user().add_model(model)
    dovecot.give()
    return dovecot


def test_spam_goes_to_junk_and_ham_to_the_inbox(server):
    for message in (mails.SPAM, mails.HAM, mails.ODD):
        server.deliver(message)
    home = server.home
    assert [bare(sent(found)) for found in home.mails(".Junk")] == [mails.SPAM]
    assert [bare(sent(found)) for found in home.mails()] == [mails.HAM, mails.ODD]
    assert [verdict(found) for found in home.mails()] == ["ham", "ham"]


@pytest.mark.long
def test_mail_that_dovecot_received_is_not_doubted(server, tmp_path):
    server.deliver(mails.HAM)
    learn_mail_with(received_line(server.home.mails()[0]), tmp_path, server.home.model)
    server.give()
    server.deliver(mails.SPAM)
    assert [bare(sent(found)) for found in server.home.mails(".Junk")] == [mails.SPAM]


@pytest.mark.long
def test_dovecot_lda_sorts_as_lmtp_does(server):
    for message in (mails.SPAM, mails.HAM):
        ended = server.run("/usr/lib/dovecot/dovecot-lda", "-c", server.settings, stdin=message)
        assert (ended.code, ended.err) == (0, "")
    assert [bare(found) for found in server.home.mails(".Junk")] == [mails.SPAM]
    assert [bare(found) for found in server.home.mails()] == [mails.HAM]


@pytest.mark.few(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_with_a_broken_nbspam_the_mail_goes_to_the_inbox(server, fault):
    server.home.break_program(fault)
    server.give()
    both = mails.SPAM, mail(**TEXTS["SPAM"], size=300_000)  # the second is more than a pipe holds
    for message in both:
        server.deliver(forged(message))
    assert [sent(found) for found in server.home.mails()] == [*both]
    assert len(server.home.everything()) == 2
    if fault == "without a model":
        wait_until(lambda: "model not found" in server.log(), said=server.log)


def test_a_move_teaches_and_the_way_to_trash_does_not(server):
    ham, spam = server.home.learned()
    for message in mails.CHATTY_SPAM[:2]:
        server.deliver(message)
    assert len(server.home.mails()) == 2  # misjudged

    assert server.move("INBOX", "Junk") == 2
    assert (ham, spam + 2) == server.home.learned()
    assert server.move("Junk", "INBOX") == 2
    assert (ham + 2, spam) == server.home.learned()
    assert server.move("INBOX", "Junk") == 2
    assert (ham, spam + 2) == server.home.learned()

    known = server.home.model.read_bytes()
    assert server.move("Junk", "Trash") == 2
    assert known == server.home.model.read_bytes()


@pytest.mark.long
def test_the_nightly_line_knows_what_a_move_taught(server, recipe):
    server.deliver(mails.CHATTY_SPAM[0])
    server.move("INBOX", "Junk")
    client = server.login()
    client.select("Junk")
    assert client.uid("STORE", "1:*", "+FLAGS", r"(\Seen)")[0] == "OK"
    client.logout()
    assert [path.name[-1] for path in server.home.files(".Junk")] == ["S"]

    # Dovecot hands mail to scripts with CRLF and keeps it with LF: it must be the same message
    known = server.home.model.read_bytes()
    assert server.run("sh", "-c", recipe("cron").split(maxsplit=5)[5]) == (0, b"", "")
    assert known == server.home.model.read_bytes()


@pytest.mark.long
def test_a_move_is_done_though_nothing_can_be_learned(server):
    server.deliver(mails.HAM)
    server.home.model.write_text("no model")
    assert server.move("INBOX", "Junk") == 1
    assert [bare(sent(found)) for found in server.home.mails(".Junk")] == [mails.HAM]
    assert server.home.mails() == []
    wait_until(lambda: "is not an nbspam model" in server.log(), said=server.log)
    assert server.home.model.read_text() == "no model"


@pytest.fixture
def mbsync(server):
    """Return a home that mbsync keeps like the server's, and how to do so.

    It returns how many ham and spam more the server's model has than at first.
    """
    need("mbsync")
    away = Home(server.top / f"{server.user}-away")
    settings = MBSYNC.substitute(path=away.path, port=server.port, user=server.user)
    command = ("mbsync", "-qac", away.write(".mbsyncrc", settings))
    first = server.home.learned()

    def synchronize():
        server.give()
        ended = away.run(*server.ordinary, *command)
        assert ended == (0, b"", ""), ended
        return tuple(map(operator.sub, server.home.learned(), first))

    return away, synchronize


def move(home, source, target, *messages):
    """Move files as mbsync demands: the number that it gave does not go with them."""
    texts = [message.partition(b"\n\n")[2] for message in messages]
    for path in home.files(source):
        if path.read_bytes().partition(b"\n\n")[2] in texts:
            name = path.name.partition(",U=")[0]
            path.rename(home.maildir / target / "cur" / f"{name}:2,S")


@pytest.mark.long
def test_mbsync_teaches_what_the_user_moved_and_not_what_a_filter_filed(server, mbsync):
    away, synchronize = mbsync
    for message in (*mails.CHATTY_SPAM[:2], mails.SPAM):  # two misjudged, one filed by Sieve
        server.deliver(message)
    assert synchronize() == (0, 0)
    move(away, ".", ".Junk", *mails.CHATTY_SPAM[:2])
    move(away, ".Junk", ".", mails.SPAM)
    assert synchronize() == (1, 2)

    away.put(".Junk", forged(mails.CHATTY_SPAM[2]))  # as another filter here would
    away.put(".", mails.ODD)
    assert synchronize() == (1, 2)
    away.put(".Junk", mails.CHATTY_SPAM[3])  # from the user's other account
    assert synchronize() == (1, 3)


@pytest.mark.long
def test_what_mbsync_brings_back_is_unlearned(server, mbsync):
    away, synchronize = mbsync
    for message in (mails.CHATTY_SPAM[0], mails.SPAM):
        server.deliver(message)
    assert synchronize() == (0, 0)
    move(away, ".", ".Junk", mails.CHATTY_SPAM[0])
    move(away, ".Junk", ".", mails.SPAM)
    assert synchronize() == (1, 1)
    move(away, ".Junk", ".", mails.CHATTY_SPAM[0])
    move(away, ".", ".Junk", mails.SPAM)
    assert synchronize() == (0, 0)


# Programs that fetch mail from the server


def fetchmail(server, home, text):
    text = text.replace("imap.example.org", f"127.0.0.1 port {server.port}")
    text = text.replace(" ssl ", " sslproto '' ")
    settings = home.write(".fetchmailrc", text)
    return ("fetchmail", "-f", settings, "--pidfile", home.path / "pid", "--nodetach")


def getmail(server, home, text):
    text = text.replace("SSLRetriever", "Retriever").replace("imap.example.org", "127.0.0.1")
    text = text.replace("[destination]", f"port = {server.port}\n\n[destination]")
    path, *arguments = text.partition("path = ")[2].partition("\n")[0].split()
    text = text.replace(f"{path} {' '.join(arguments)}", f"{path}\narguments = {tuple(arguments)}")
    (home.path / "getmail").mkdir(exist_ok=True)
    return ("getmail", "--getmaildir", home.path / "getmail", "-r", home.write("getmailrc", text))


def fdm(server, home, text):
    text = text.replace("imaps server", "imap server").replace("%h", str(home.path))
    text = text.replace('"imap.example.org"', f'"127.0.0.1" port {server.port}')
    text = text.replace("~/.local", f"{home.path}/.local")
    settings = home.write(".fdm.conf", f'set lock-file "{home.path}/lock"\n{text}')
    return ("fdm", "-f", settings, "fetch")


# Each fault with one program: these see nothing of it but procmail's exit code.
@pytest.mark.few(1)
@pytest.mark.parametrize("program, fault", [*zip(cycle([fetchmail, getmail, fdm]), FAULTS)])
def test_with_a_broken_nbspam_the_mail_stays_on_the_server(server, model, recipe, program, fault):
    need(program.__name__, "procmail")
    client, away = server.login(), Home(server.top / f"{server.user}-away")
    away.add_model(model)
    client.append("INBOX", None, None, forged(mails.SPAM).replace(b"\n", b"\r\n"))
    # the server, which has no TLS, the user and the user's home are this test's
    rules = away.write(".procmailrc", recipe("procmail-filter"))
    text = recipe(program.__name__).replace("hal", server.user).replace("secret", "any")
    text = text.replace("/usr/bin/procmail", f"/usr/bin/procmail HOME={away.path} {rules}")
    command = program(server, away, text)
    away.break_program(fault)
    server.give()
    away.run(*server.ordinary, *command)
    assert away.everything() == []
    assert client.select("INBOX") == ("OK", [b"1"])

    away.mend_program()
    ended = away.run(*server.ordinary, *command)
    assert ended.code == 0, ended
    [found] = away.mails(".Junk")
    own = b"X-getmail-retrieved-from-mailbox: INBOX\n"
    assert sent(bare(found)).replace(own, b"") == mails.SPAM
    assert away.mails() == []
    assert client.select("INBOX") == ("OK", [b"0"])
    client.logout()
