"""A real Dovecot with TLS on a loopback port, run by an ordinary user, for the tests of IMAP."""

import base64
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from string import Template

import pytest
from waiting import running

from nbspam.mailbox.account import Account, Secret

DOVECOT = "/usr/sbin/dovecot"
PASSWORD = 'pä"ss\\wörd {x}'
# Extensions that the server lacks; the n-th of them on the address 127.0.0.n.
LACKING = [
    (),
    ("MOVE",),
    ("UIDPLUS",),
    ("IDLE",),
    ("SPECIAL-USE",),
    ("MOVE", "UIDPLUS"),
    ("MOVE", "UIDPLUS", "IDLE", "SPECIAL-USE", "LITERAL+", "SASL-IR", "ENABLE", "CONDSTORE"),
]
_SETTINGS = Path(__file__).parents[1] / "golden" / "imap" / "dovecot.conf"  # a string.Template


def address_without(lacking):
    """Return the address at which the server lacks these extensions."""
    return f"127.0.0.{1 + LACKING.index(tuple(lacking))}"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def _ordinary():
    """Return a command that runs another as an ordinary user: Dovecot handles no mail of root's."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]


class StartedDovecot:
    """A Dovecot with the settings in its folder, run by an ordinary user."""

    def begin(self, ordinary):
        self.process = subprocess.Popen(
            [*ordinary, DOVECOT, "-F", "-c", self.top / "dovecot.conf"],
            env={"PATH": "/usr/bin:/bin"},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def answers(self):
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True

    def stop(self):
        self.process.terminate()

    def log(self):
        return written(self.top / "log")


class Dovecot(StartedDovecot):
    """A server; each user of it has a home, and settings, of their own."""

    def __init__(self, top):
        self.top = top
        self.port, self.plain = free_port(), free_port()
        self._number = count(1)
        asked = [
            subprocess.run([*_ordinary(), "id", flag], capture_output=True, check=True, text=True)
            for flag in ("-un", "-gn", "-u", "-g")
        ]
        user, group, self._uid, self._gid = (each.stdout.strip() for each in asked)
        self.settings = top / "dovecot.conf"
        own = {"top": top, "user": user, "group": group, "port": self.port, "plain": self.plain}
        self.settings.write_text(Template(_SETTINGS.read_text()).substitute(own))
        (top / "users").mkdir()
        self.certificate = top / "cert.pem"
        addresses = [f"IP:{address_without(names)}" for names in LACKING]
        names = ",".join(["DNS:localhost", *addresses])
        subprocess.run(
            [
                *"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes".split(),
                *("-keyout", top / "key.pem", "-out", self.certificate, "-days", "2"),
                *("-subj", "/CN=localhost", "-addext", f"subjectAltName={names}"),
            ],
            capture_output=True,
            check=True,
        )
        self._give()

    def add_user(self, **fields):
        """Return the name of a new user; fields: settings of Dovecot for this user alone."""
        name = f"hal{next(self._number)}"
        home = self.top / name
        home.mkdir()
        extra = " ".join(f"userdb_{key}={value}" for key, value in fields.items())
        line = f"{name}:{PASSWORD}:{self._uid}:{self._gid}::{home}::{extra}\n"
        (self.top / "users" / name).write_text(line)
        self._give()
        return name

    def _give(self):
        """Make the ordinary user the owner of all that is ours."""
        if os.geteuid() == 0:
            for path in (self.top, *self.top.glob("*"), *self.top.glob("users/*")):
                with suppress(OSError):
                    shutil.chown(path, "nobody", "nogroup")

    def start(self):
        self.begin(_ordinary())


def written(path):
    return path.read_text() if path.exists() else ""


def need_dovecot(*programs, part="imap"):
    """Skip the test where there is none of the version that the settings are of."""
    for program in (DOVECOT, *programs):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    if not Path("/usr/lib/dovecot", part).exists():
        pytest.skip(f"/usr/lib/dovecot/{part} is not installed")
    version = subprocess.run([DOVECOT, "--version"], capture_output=True, check=True).stdout
    if not version.startswith(b"2.3."):
        pytest.skip(f"the settings are those of Dovecot 2.3, and this is {version.decode()}")


@contextmanager
def running_dovecot():
    """Yield a running Dovecot; skips the test where there is none."""
    pytest.importorskip("imapclient", reason="imapclient is not installed")
    need_dovecot("openssl", "setpriv")
    with running(Dovecot) as server:
        yield server


class Mailbox:
    """What a user sees of an account with another program."""

    def __init__(self, server, host="localhost", **fields):
        self.server, self.host = server, host
        self.user = server.add_user(**fields)
        self.client = self.connect()

    def connect(self):
        from imapclient import IMAPClient

        context = ssl.create_default_context(cafile=self.server.certificate)
        client = IMAPClient(self.host, self.server.port, ssl_context=context, timeout=60)
        client.sasl_login("PLAIN", lambda _: f"\0{self.user}\0{PASSWORD}".encode())
        return client

    def address(self, number):
        """Return what nbspam calls a message of the inbox."""
        return f"imaps://{self.user}@localhost:{self.server.port}/INBOX/;UID={number}"

    @property
    def name(self):
        return f"{self.user}@localhost"

    def put(self, *messages, folder="INBOX", flags=(), date=None):
        for message in messages:
            self.client.append(folder, message.replace(b"\n", b"\r\n"), flags, date)

    def all(self, folder="INBOX"):
        """Return of each message its bytes, flags and date, in the order of the UIDs."""
        self.client.select_folder(folder, readonly=True)
        uids = self.client.search("ALL")
        found = {}
        for start in range(0, len(uids), 200):
            items = ["FLAGS", "INTERNALDATE", "BODY.PEEK[]"]
            found |= self.client.fetch(uids[start : start + 200], items)
        return [
            (
                each[b"BODY[]"].replace(b"\r\n", b"\n"),
                frozenset(flag for flag in each[b"FLAGS"] if flag != b"\\Recent"),
                each[b"INTERNALDATE"],
            )
            for _, each in sorted(found.items())
        ]

    def mails(self, folder="INBOX", gone=b"\\Deleted"):
        return [mail for mail, flags, _ in self.all(folder) if gone not in flags]

    def uids(self, folder="INBOX", criteria="ALL"):
        self.client.select_folder(folder, readonly=True)
        return self.client.search(criteria)

    def flag(self, folder, flags, criteria="ALL", gone=()):
        self.client.select_folder(folder)
        self.client.add_flags(self.client.search(criteria), flags)
        self.client.remove_flags(self.client.search(criteria), gone)

    def move(self, source, target, *messages):
        """Move these messages as a mail program does; all if none is named."""
        self.client.select_folder(source)
        uids = self.client.search("ALL")
        if messages:
            found = self.client.fetch(uids, ["BODY.PEEK[]"])
            wanted = {message.replace(b"\n", b"\r\n") for message in messages}
            uids = [uid for uid in uids if found[uid][b"BODY[]"] in wanted]
            assert len(uids) == len(messages)
        self.client.move(uids, target)


# Of a server with one message: a command -> what is said before it is done; the first that fits.
ANSWERS = {
    b"CAPABILITY": b"* CAPABILITY IMAP4rev1 MOVE UIDPLUS\r\n",
    b"AUTHENTICATE": b"+ \r\n",
    b"LIST": b'* LIST () "/" INBOX\r\n* LIST (\\Junk) "/" Junk\r\n',
    b"STATUS": b"* STATUS Junk (UIDVALIDITY 1 UIDNEXT 1)\r\n",
    b"(SELECT|EXAMINE)": b"* FLAGS (\\Seen)\r\n* 1 EXISTS\r\n* OK [UIDVALIDITY 1] ok\r\n"
    b"* OK [UIDNEXT 2] ok\r\n* OK [PERMANENTFLAGS (\\*)] ok\r\n",
    b"UID SEARCH": b"* SEARCH 1\r\n",
    b"UID FETCH .*RFC822.SIZE": b"* 1 FETCH (UID 1 RFC822.SIZE 50)\r\n",
    b"UID FETCH": b"* 1 FETCH (UID 1 FLAGS () BODY[] {50}\r\n%b)\r\n" % (b"free prize" * 5),
}


class Scripted:
    """A server on loopback that says what it was told to, and takes down what it was asked."""

    def __init__(self, **others):
        """others: by a command's name, other answers.

        Bytes, said before it is done, or in its place if they have TAG or ask for more; or a
        function of the socket.  LOGGED_IN is the answer to a login.
        """
        self.answers = {key.replace("_", " ").encode(): value for key, value in others.items()}
        self.asked = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._socket.close()

    def _serve(self):
        with suppress(OSError):
            while True:
                self._talk(self._socket.accept()[0])

    def _talk(self, client):
        with suppress(OSError), client, client.makefile("rb") as lines:
            if greet := self.answers.get(b"GREETING"):
                greet(client)
            client.sendall(b"* OK hello\r\n")
            for line in lines:
                if b" " in line:
                    tag, _, command = line.strip().partition(b" ")
                    self.asked.append(command.decode())
                else:  # what proves who it is
                    command = b"LOGGED IN"
                    self.asked.append(base64.b64decode(line).decode("utf-8", "replace"))
                rules = [*self.answers.items(), *ANSWERS.items()]
                said = next((said for key, said in rules if re.match(key, command)), b"")
                if callable(said):
                    said(client)
                elif b"TAG" in said or said.startswith(b"+"):
                    client.sendall(said.replace(b"TAG", tag))
                else:
                    client.sendall(said + tag + b" OK done\r\n")

    def account(self, secret="x", user="hal", is_token=False):
        secret = Secret(secret, is_token)
        return Account(user, "127.0.0.1", lambda: secret, self.port, tls="none", timeout=5)


class Proxy:
    """A server between a client without TLS and Dovecot: it listens in, and cuts."""

    def __init__(self, port, cut=None, host="localhost"):
        """cut: called with all that the server has said; where to cut it, or None."""
        self.said = []  # by the client, line by line
        self.cuts = 0
        self._target, self._cut = (host, port), cut
        self._socket = socket.create_server((host, 0))
        self.port = self._socket.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            for pair in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source, target, is_client):
        seen = b""
        with suppress(OSError):
            while piece := source.recv(1 << 16):
                if is_client:
                    self.said += piece.decode("utf-8", "replace").splitlines()
                elif self._cut is not None:
                    seen += piece
                    at = self._cut(seen)
                    if at is not None:
                        self.cuts += 1
                        target.sendall(piece[: max(0, at - (len(seen) - len(piece)))])
                        break
                target.sendall(piece)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def program(*arguments):
    """Return the command that runs nbspam of this source tree."""
    return [sys.executable, "-m", "nbspam", *map(str, arguments)]
