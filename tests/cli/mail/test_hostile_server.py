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

from nbspam.mailbox import bounded
from nbspam.mailbox.account import Account, Secret
from nbspam.mailbox.connection import Connection
from nbspam.mailbox.moves import select_again

pytest.importorskip("imapclient")


def endless(piece, pause=0.0):
    def say(client):
        while True:
            client.sendall(piece)
            time.sleep(pause)

    return say


LIES = [({key: said.encode("latin-1")}, why) for key, said, why in golden_table("imap/lies.txt", 3)]
LIES += [
    ({"LIST": b"x" * 2_000_000 + b"\r\n"}, "the connection was lost (abort)"),
    ({"UID_SEARCH": endless(b"* SEARCH 1\r\n" * 9999)}, "sent more than was requested"),
    ({"UID_SEARCH": endless(b"1" * 9999)}, "sent more than was requested"),
    ({"NOOP|LOGIN": endless(b"* OK here\r\n" * 9999)}, "sent more than was requested"),
]


@pytest.mark.few(2)
@pytest.mark.parametrize("answers, said", LIES)
def test_an_answer_that_cannot_be_is_one_sentence(home, answers, said):
    (home.path / "password").write_text("x\n")
    with Scripted(**answers) as server:
        place = SimpleNamespace(port=server.port, certificate="")
        home.write("hal", place, **{"host": "127.0.0.1", "tls": "none", "ca-file": None})
        done = home.run("mail", "filter", "-q")
    assert (done.code, done.err.count("\n")) == (75, 1), done
    assert said in done.err
    assert "; run it again" in done.err
    assert not any("MOVE" in line or "STORE" in line for line in server.asked)


@pytest.mark.long
@each("piece, silences", [(b"x", 0.05), (b"* OK Still here\r\n", 0.05), (b"x", 0)])
def test_an_answer_that_drips_ends(monkeypatch, piece, silences):
    with (
        Scripted(UID_SEARCH=endless(piece, 0.02)) as server,
        Connection(server.account()) as client,
    ):
        client.select("INBOX", readonly=True)
        monkeypatch.setattr(bounded, "_SILENCES", silences)  # of 5 s
        monkeypatch.setattr(bounded, "_SLOWEST", 1 << 40)
        started = time.monotonic()
        with pytest.raises(
            bounded.UnavailableError, match="one answer of the server took more than"
        ):
            client.search(["ALL"])
        assert time.monotonic() - started < 3


def test_a_greeting_that_drips_ends(monkeypatch):
    monkeypatch.setattr(bounded, "_SILENCES", 0.05)
    late = pytest.raises(bounded.UnavailableError, match="took more than")
    with Scripted(GREETING=endless(b"*", 0.02)) as server, late:
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
        client = bounded.connected(account)
        assert client.capabilities() == (b"IMAP4REV1",)
        client.shutdown()
        thread.join(5)


def test_there_is_room_for_the_uids_of_a_large_folder_and_for_no_number_that_is_announced():
    uids = list(range(4_000_000_000, 4_000_500_000))
    for exists, is_long in ((len(uids), True), (1, False), (4_294_967_295, True)):
        examine = b"* %d EXISTS\r\n* OK [UIDNEXT 4294967295] ok\r\n" % exists
        said = b"* SEARCH %b\r\n" % " ".join(map(str, uids)).encode()
        server = Scripted(EXAMINE=examine, UID_SEARCH=said)
        with server, Connection(server.account()) as client:
            client.select("INBOX", readonly=True)
            if is_long:
                assert client.search(["UNSEEN"]) == uids
            server.answers[b"UID SEARCH"] = endless(b"1" * 99_999)
            with pytest.raises(bounded.UnavailableError, match="sent more than was requested"):
                client.search(["UNSEEN"])


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
        with pytest.raises(bounded.UnavailableError, match="have just been renumbered"):
            select_again(client, folder._replace(uidvalidity=2), readonly=False)


def test_an_old_server_states_no_next_uid_and_its_last_message_may_go():
    server = Scripted(EXAMINE=b"* 1 EXISTS\r\n* OK [UIDVALIDITY 1] ok\r\n")
    with server, Connection(server.account()) as client:
        folder = client.select("INBOX", readonly=True)
    assert folder.uidnext == 2
    assert [folder.continues(*before) for before in ((1, 9), (1, 1), (2, 1))] == [True, True, False]
