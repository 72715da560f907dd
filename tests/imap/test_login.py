"""How nbspam logs in: to a small server that takes down what it is sent."""

import base64
import socket
import threading
from contextlib import closing

import pytest

from nbspam.errors import AccountError, AwayError
from nbspam.imap.account import Account, Secret
from nbspam.imap.connection import Connection

pytest.importorskip("imapclient", reason="imapclient is not installed")


class Small:
    """A server that knows the login, and no more."""

    def __init__(self, capability, answer="OK done", folders=()):
        self.said = []
        self._folders = folders
        self._capability, self._answer = capability, answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        client, _ = self._socket.accept()
        with client, client.makefile("rwb", buffering=0) as stream:
            stream.write(f"* OK [CAPABILITY IMAP4rev1 {self._capability}] hello\r\n".encode())
            while line := stream.readline():
                tag, command, *words = line.decode().split()
                if command == "CAPABILITY":
                    stream.write(f"* CAPABILITY IMAP4rev1 {self._capability}\r\n".encode())
                elif command == "AUTHENTICATE":
                    stream.write(b"+ \r\n")
                    sent = base64.b64decode(stream.readline()).decode()
                    self.said.append((words[0], sent))
                elif command == "LIST":
                    for name in self._folders:
                        stream.write(b'* LIST (\\HasNoChildren) "." "%b"\r\n' % name)
                elif command == "LOGIN":
                    self.said.append(("LOGIN", *words))
                answer = self._answer if command in ("AUTHENTICATE", "LOGIN") else "OK done"
                stream.write(f"{tag} {answer}\r\n".encode())

    def close(self):
        self._socket.close()
        self._thread.join(5)


def logged_in(secret, capability, answer="OK done", user="hal"):
    with closing(Small(capability, answer)) as server:
        account = Account(user, "localhost", lambda: secret, server.port, "none")
        with Connection(account):
            pass
    return server.said


def test_a_password_goes_as_plain():
    said = logged_in(Secret('pä"ss \\wörd'), "AUTH=PLAIN LOGINDISABLED", user="hal tamsin")
    assert said == [("PLAIN", '\0hal tamsin\0pä"ss \\wörd')]


def test_or_as_login_where_there_is_nothing_else():
    assert logged_in(Secret('pass"word'), "") == [("LOGIN", "hal", '"pass\\"word"')]


@pytest.mark.parametrize(
    ("user", "password", "capability"),
    [("hal", "pässword", ""), ("hal tamsin", "x", ""), ("hal", "x", "LOGINDISABLED")],
)
def test_what_login_cannot_send_is_not_sent(user, password, capability):
    with pytest.raises(AccountError, match="no way to log in") as raised:
        logged_in(Secret(password), capability, user=user)
    assert "pässword" not in str(raised.value)


def test_a_token_goes_as_xoauth2_or_oauthbearer():
    token = Secret("ya29.token", is_token=True)
    said = logged_in(token, "AUTH=PLAIN AUTH=XOAUTH2 AUTH=OAUTHBEARER")
    assert said == [("XOAUTH2", "user=hal\1auth=Bearer ya29.token\1\1")]
    said = logged_in(token, "AUTH=OAUTHBEARER")
    assert said == [("OAUTHBEARER", "n,a=hal,\1auth=Bearer ya29.token\1\1")]


@pytest.mark.parametrize("is_token", [False, True])
def test_a_refusal_never_quotes_the_secret(is_token):
    encoded = base64.b64encode(b"\0hal\0swordfish").decode()
    for said in ("swordfish is wrong", f"bad {encoded}", "[AUTHENTICATIONFAILED] no"):
        with pytest.raises(AccountError, match="refused the") as raised:
            logged_in(Secret("swordfish", is_token), "AUTH=PLAIN AUTH=XOAUTH2", f"NO {said}")
        assert "swordfish" not in str(raised.value)
        assert encoded not in str(raised.value)
    assert "([AUTHENTICATIONFAILED] no)" in str(raised.value)
    assert ("token-command" if is_token else "password-command") in str(raised.value)


def test_a_server_that_cannot_log_in_anybody_now_is_away():
    with pytest.raises(AwayError, match="now"):
        logged_in(Secret("x"), "AUTH=PLAIN", "NO [UNAVAILABLE] try later")


def test_a_folder_whose_name_is_written_wrongly_hides_no_other():
    names = [b"INBOX", b"a&b", b"&AOQ-", b"&2D0-", b"0123", b"123"]
    with closing(Small("AUTH=PLAIN", folders=names)) as server:
        account = Account("hal", "localhost", lambda: Secret("x"), server.port, "none")
        with Connection(account) as connection:
            found = [folder.name for folder in connection.folders()]
            assert connection.named("a\u0308") == "ä"
    assert found == ["INBOX", "ä", "0123", "123"]
