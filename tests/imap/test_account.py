"""An account: its address, its password, and how nbspam logs in."""

import base64
import socket
import threading
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import AccountError, AwayError
from nbspam.imap.account import (
    Account,
    FolderAddress,
    Secret,
    from_command,
    from_file,
    parse_address,
)
from nbspam.imap.connection import Connection

# Addresses

ADDRESSES = {
    "imaps://hal@mail.example.org/INBOX": ("hal", "mail.example.org", None, "INBOX", None),
    "imaps://hal@example.org@mx:1993/a/b": ("hal@example.org", "mx", 1993, "a/b", None),
    "imaps://hal%40example.org@mx/a%20b": ("hal@example.org", "mx", None, "a b", None),
    "IMAPS://hal@[::1]:993/Entwürfe": ("hal", "::1", 993, "Entwürfe", None),
    "imaps://hal@[::1]/x": ("hal", "::1", None, "x", None),
    "imaps://hal@mx/INBOX/;UID=17": ("hal", "mx", None, "INBOX", 17),
    "imaps://hal@mx": ("hal", "mx", None, "", None),
    "imaps://hal@mx/": ("hal", "mx", None, "", None),
    "imaps://hal@mx/迷惑/100%25": ("hal", "mx", None, "迷惑/100%", None),
}
PROBLEMS = {
    "imaps://mx/INBOX": "is not the address of a folder",
    "imaps://@mx/INBOX": "is not the address of a folder",
    "imaps://hal@/INBOX": "is not the address of a folder",
    "imaps://hal:secret@mx/INBOX": "a password cannot stand in an address",
    "imaps://hal@mx:0/INBOX": "the port is not a number",
    "imaps://hal@mx:99999/INBOX": "the port is not a number",
    "imaps://hal@mx:²/INBOX": "the port is not a number",
    "imaps://hal@mx/INBOX/;UID=0": "is not the address of a message",
    "imaps://hal@mx/INBOX/;UID=x": "is not the address of a message",
    "imaps://hal@mx/%FF": "is not UTF-8",
    "imap://hal@mx/INBOX": "only imaps:// is read",
}


def test_parts():
    assert {text: parse_address(text) for text in ADDRESSES} == ADDRESSES


def test_what_is_none_is_one_sentence():
    for text, problem in PROBLEMS.items():
        with pytest.raises(AccountError, match=problem) as raised:
            parse_address(text)
        assert "secret" not in str(raised.value)
        assert "; " in str(raised.value)


texts = st.text(min_size=1, max_size=20).filter(lambda text: "\0" not in text)


@given(
    texts.filter(lambda user: ":" not in user and "/" not in user),
    st.sampled_from(["mx", "mail.example.org", "::1", "127.0.0.1"]),
    st.none() | st.integers(1, 65_535),
    texts,
    st.none() | st.integers(1, 2**32 - 1),
)
def test_the_text_of_an_address_is_read_again(user, host, port, folder, uid):
    try:
        (user + folder).encode()
    except UnicodeEncodeError:
        return
    address = FolderAddress(user, host, port, folder, uid)
    assert parse_address(address.text) == address


# Passwords


def test_a_secret_does_not_show_itself():
    secret = Secret("swordfish")
    account = Account("hal", "mx", lambda: secret)
    assert "swordfish" not in f"{secret!r}{secret}{account!r}"
    assert (account.name, account.server) == ("hal@mx", "mx:993")
    assert account._replace(tls="starttls").own_port == 143
    assert account._replace(port=77).server == "mx:77"


def test_a_password_is_the_first_line_of_a_command():
    secret = from_command("printf 'swörd fish\\nurl: x\\n'", "password-command", "hal@mx")
    assert (secret.value, secret.is_token) == ("swörd fish", False)
    assert from_command("echo token", "token-command", "hal@mx").is_token


def test_a_command_that_gives_none():
    problems = {
        "exit 3": "the password-command failed with exit code 3; run it by hand",
        "echo swordfish; exit 1": "failed with exit code 1",
        "no-such-program-anywhere": "failed with exit code 127",
        "true": "gave no password",
        "echo": "gave no password",
        "printf '\\377'": "gave what cannot be a password",
        "printf 'a\\rb'": "gave what cannot be a password",
    }
    for command, problem in problems.items():
        with pytest.raises(AccountError, match=problem) as raised:
            from_command(command, "password-command", "hal@mx")
        assert "swordfish" not in str(raised.value)


def test_a_command_that_waits_is_ended(monkeypatch):
    monkeypatch.setattr("nbspam.imap.account._PATIENCE", 0.2)
    with pytest.raises(AccountError, match="has not ended"):
        from_command("exec sleep 20", "password-command", "hal@mx")


def test_a_file_only_its_owner_can_read(tmp_path):
    path = tmp_path / "password"
    path.write_bytes(b"swordfish\r\nmore")
    path.chmod(0o600)
    assert from_file(str(path), "hal@mx").value == "swordfish"
    path.chmod(0o400)
    assert from_file(str(path), "hal@mx").value == "swordfish"
    for mode in (0o640, 0o604, 0o644):
        path.chmod(mode)
        with pytest.raises(AccountError, match="run chmod 600") as raised:
            from_file(str(path), "hal@mx")
        assert "swordfish" not in str(raised.value)
    path.unlink()
    with pytest.raises(AccountError, match="cannot be read \\(No such file"):
        from_file(str(path), "hal@mx")
    with pytest.raises(AccountError, match="cannot be read"):
        from_file(str(tmp_path), "hal@mx")


# Logging in: to a small server that takes down what it is sent


class Small:
    def __init__(self, capability, answer="OK done", folders=()):
        pytest.importorskip("imapclient", reason="imapclient is not installed")
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


def test_a_password_goes_as_plain_or_as_login_where_there_is_nothing_else():
    said = logged_in(Secret('pä"ss \\wörd'), "AUTH=PLAIN LOGINDISABLED", user="hal tamsin")
    assert said == [("PLAIN", '\0hal tamsin\0pä"ss \\wörd')]
    assert logged_in(Secret('pass"word'), "") == [("LOGIN", "hal", '"pass\\"word"')]


def test_what_login_cannot_send_is_not_sent():
    for user, password, capability in (
        *(("hal", "pässword", ""), ("hal tamsin", "x", "")),
        ("hal", "x", "LOGINDISABLED"),
    ):
        with pytest.raises(AccountError, match="no way to log in") as raised:
            logged_in(Secret(password), capability, user=user)
        assert "pässword" not in str(raised.value)


def test_a_token_goes_as_xoauth2_or_oauthbearer():
    token = Secret("ya29.token", is_token=True)
    said = logged_in(token, "AUTH=PLAIN AUTH=XOAUTH2 AUTH=OAUTHBEARER")
    assert said == [("XOAUTH2", "user=hal\1auth=Bearer ya29.token\1\1")]
    said = logged_in(token, "AUTH=OAUTHBEARER")
    assert said == [("OAUTHBEARER", "n,a=hal,\1auth=Bearer ya29.token\1\1")]


def test_a_refusal_never_quotes_the_secret():
    encoded = base64.b64encode(b"\0hal\0swordfish").decode()
    for is_token, command in ((False, "password-command"), (True, "token-command")):
        for said in ("swordfish is wrong", f"bad {encoded}", "[AUTHENTICATIONFAILED] no"):
            with pytest.raises(AccountError, match="refused the") as raised:
                logged_in(Secret("swordfish", is_token), "AUTH=PLAIN AUTH=XOAUTH2", f"NO {said}")
            assert "swordfish" not in str(raised.value)
            assert encoded not in str(raised.value)
        assert "([AUTHENTICATIONFAILED] no)" in str(raised.value)
        assert command in str(raised.value)


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
