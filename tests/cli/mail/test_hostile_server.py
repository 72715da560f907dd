"""Servers that lie, drip or flood, and what must hold whatever they say: one sentence each."""

import socket
import ssl
import threading
import time
from types import SimpleNamespace

import pytest
from golden_tables import golden_table
from imap_servers import Scripted
from one_case import each

from nbspam.errors import UnavailableError
from nbspam.mailbox import account as accounts
from nbspam.mailbox import login
from nbspam.mailbox.account import Account, Secret
from nbspam.mailbox.connection import Connection, select_again

pytest.importorskip("imapclient")


def endless(piece, pause=0.0):
    def say(client):
        while True:
            client.sendall(piece)
            time.sleep(pause)

    return say


LIES = [({key: said.encode("latin-1")}, why) for key, said, why in golden_table("imap/lies.txt", 3)]


@pytest.mark.few(2)
@pytest.mark.parametrize("answers, said", LIES)
def test_an_answer_that_cannot_be_is_one_sentence(home, answers, said):
    (home.path / "password").write_text("x\n")
    with Scripted(**answers) as server:
        place = SimpleNamespace(port=server.port, certificate="")
        home.write("hal", place, **{"host": "127.0.0.1", "tls": "none", "ca-file": None})
        done = home.run("mail", "filter", "-q")
    assert done.code in (1, 75), done
    assert said in done.err.splitlines()[-1]
    assert done.err.count("\n") <= 2
    assert not any("MOVE" in line or "STORE" in line for line in server.asked)


@pytest.mark.long
@each("piece", [b"x", b"* OK Still here\r\n"])
def test_an_answer_that_drips_ends(monkeypatch, piece):
    monkeypatch.setattr(accounts, "RUN_LIMIT", 0.5)
    started = time.monotonic()
    with Scripted(UID_SEARCH=endless(piece, 0.02)) as server:
        late = pytest.raises(accounts.TimeLimitError, match="was stopped after")
        with late, accounts.time_limit("hal"), Connection(server.account()) as client:
            client.select("INBOX", readonly=True)
            client.search(["ALL"])
    assert time.monotonic() - started < 3


def test_a_greeting_that_drips_ends(monkeypatch):
    monkeypatch.setattr(accounts, "RUN_LIMIT", 0.3)
    late = pytest.raises(accounts.TimeLimitError)
    with Scripted(GREETING=endless(b"*", 0.02)) as server, late, accounts.time_limit("hal"):
        Connection(server.account())


def test_what_comes_before_tls_is_no_answer(dovecot):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(dovecot.certificate, dovecot.top / "key.pem")
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            plain = listening.accept()[0]
            plain.sendall(b"* OK hello\r\n")
            while b"STARTTLS" not in (line := plain.recv(1000)):
                tag = line.split()[0]
                plain.sendall(b"* CAPABILITY IMAP4rev1 STARTTLS\r\n%b OK done\r\n" % tag)
            tag = line.split()[0]
            next_one = b"%b%d" % (tag[:4], int(tag[4:]) + 1)
            evil = b"* CAPABILITY IMAP4rev1 EVIL\r\n%b OK done\r\n" % next_one
            plain.sendall(b"%b OK done\r\n%b" % (tag, evil))
            with context.wrap_socket(plain, server_side=True) as client:
                while tag := client.recv(1000).partition(b" ")[0]:
                    client.sendall(b"* CAPABILITY IMAP4rev1\r\n%b OK done\r\n" % tag)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port, ca_file = listening.getsockname()[1], str(dovecot.certificate)
        account = Account("hal", "localhost", lambda: Secret("x"), port, "starttls", ca_file)
        client = login.connect(account)
        assert client.capabilities() == (b"IMAP4REV1",)
        client.shutdown()
        thread.join(5)


def test_there_is_room_for_the_uids_of_a_large_folder():
    uids = list(range(4_000_000_000, 4_000_500_000))
    said = b"* SEARCH %b\r\n" % " ".join(map(str, uids)).encode()
    with Scripted(UID_SEARCH=said) as server, Connection(server.account()) as client:
        client.select("INBOX", readonly=True)
        assert client.search(["UNSEEN"]) == uids


def test_a_server_that_names_no_next_uid_with_select_is_asked_for_it():
    select = b"* 3 EXISTS\r\n* OK [UIDVALIDITY 7] ok\r\n"
    answers = {"(SELECT|EXAMINE)": select, "STATUS": b"* STATUS INBOX (UIDNEXT 4)\r\n"}
    with Scripted(**answers) as server, Connection(server.account()) as client:
        assert client.select("INBOX", readonly=True)[:4] == ("INBOX", 7, 4, 3)


def test_what_is_announced_with_the_answer_to_idle_is_not_waited_for():
    idle = b"+ idle\r\n* 2 EXISTS\r\nTAG OK done\r\n"
    server = Scripted(CAPABILITY=b"* CAPABILITY IMAP4rev1 IDLE\r\n", IDLE=idle)
    with server, Connection(server.account()) as client:
        client.wait(lambda *_: pytest.fail("it waits"), 5)


def test_uids_that_were_not_asked_for_are_none():
    server = Scripted(UID_SEARCH=b"* SEARCH 7 8 9\r\n")
    with server, Connection(server.account()) as client:
        assert client.existing([8, 10]) == [8]


def test_a_folder_with_new_uids_is_not_opened_again():
    with Scripted() as server, Connection(server.account()) as client:
        folder = client.select("INBOX", readonly=True)
        select_again(client, folder, readonly=False)
        with pytest.raises(UnavailableError, match="have just been renumbered"):
            select_again(client, folder._replace(uidvalidity=2), readonly=False)
