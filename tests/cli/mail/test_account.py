"""An account: its address, its password, how nbspam logs in, and what a config file says of it."""

import base64

import pytest
from golden_tables import golden_table
from hypothesis import given
from hypothesis import strategies as st
from imap_servers import PASSWORD, Scripted
from one_case import each

from nbspam.cli.accounts import mail_places
from nbspam.errors import AccountError, UnavailableError
from nbspam.mailbox.account import (
    Account,
    FolderAddress,
    Secret,
    from_file,
    parse_address,
    secret_from_command,
)
from nbspam.mailbox.connection import Connection, resolve_folder

# Addresses


def test_parts():
    for text, *parts in golden_table("imap/addresses.txt", 6):
        assert ["-" if each is None else str(each) for each in parse_address(text)] == parts


def test_what_is_none_is_one_sentence():
    for text, problem in golden_table("imap/addresses.txt", 2, "problems"):
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
    secret = secret_from_command("printf 'swörd fish\\nurl: x\\n'", "password-command", "hal@mx")
    assert (secret.value, secret.is_token) == ("swörd fish", False)
    assert secret_from_command("echo token", "token-command", "hal@mx").is_token


def test_a_command_that_gives_none():
    problems = {
        "exit 3": "the password-command failed with exit code 3; run it by hand",
        "echo swordfish; exit 1": "failed with exit code 1",
        "no-such-program-anywhere": "failed with exit code 127",
        "true": "gave no password",
        "echo": "gave no password",
        "printf '\\377'": "gave something that cannot be a password",
        "printf 'a\\rb'": "gave something that cannot be a password",
    }
    for command, problem in problems.items():
        with pytest.raises(AccountError, match=problem) as raised:
            secret_from_command(command, "password-command", "hal@mx")
        assert "swordfish" not in str(raised.value)


def test_a_command_that_waits_is_ended(monkeypatch):
    monkeypatch.setattr("nbspam.mailbox.account._COMMAND_SECONDS", 0.2)
    with pytest.raises(AccountError, match="has not ended"):
        secret_from_command("exec sleep 20", "password-command", "hal@mx")


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


# Logging in


def logged_in(capability, *who, answer=b"", **more):
    """Return what a server with these capabilities is asked after they were asked for."""
    said = f"* CAPABILITY IMAP4rev1 {capability}\r\n".encode()
    with Scripted(CAPABILITY=said, LOGGED_IN=answer) as server:
        with Connection(server.account(*who, **more)):
            pass
        return [line for line in server.asked if line not in ("CAPABILITY", "LOGOUT")]


def test_a_password_goes_as_plain_or_as_login_where_there_is_nothing_else():
    said = logged_in("AUTH=PLAIN LOGINDISABLED", 'pä"ss \\wörd', "hal tamsin")
    assert said == ["AUTHENTICATE PLAIN", '\0hal tamsin\0pä"ss \\wörd']
    assert logged_in("", 'pass"word') == ['LOGIN hal "pass\\"word"']


@each(
    "user, password, capability", [("hal", "pä", ""), ("a b", "x", ""), ("a", "x", "LOGINDISABLED")]
)
def test_what_login_cannot_send_is_not_sent(user, password, capability):
    with pytest.raises(
        AccountError, match="the only way to log in with this user and password"
    ) as raised:
        logged_in(capability, password, user)
    assert "pä" not in str(raised.value)


def test_a_token_goes_as_xoauth2_or_oauthbearer():
    said = logged_in("AUTH=PLAIN AUTH=XOAUTH2 AUTH=OAUTHBEARER", "ya29", is_token=True)
    assert said == ["AUTHENTICATE XOAUTH2", "user=hal\1auth=Bearer ya29\1\1"]
    said = logged_in("AUTH=OAUTHBEARER", "ya29", is_token=True)
    assert said == ["AUTHENTICATE OAUTHBEARER", "n,a=hal,\1auth=Bearer ya29\1\1"]


ENCODED = base64.b64encode(b"\0hal\0swordfish")


@each("is_token, command", [(False, "password-command"), (True, "token-command")])
def test_a_refusal_never_quotes_the_secret(is_token, command):
    for said in (b"swordfish is wrong", b"bad " + ENCODED, b"[AUTHENTICATIONFAILED] no"):
        with pytest.raises(AccountError, match="refused the") as raised:
            answer = b"TAG NO %b\r\n" % said
            logged_in("AUTH=PLAIN AUTH=XOAUTH2", "swordfish", is_token=is_token, answer=answer)
        assert "swordfish" not in str(raised.value)
        assert ENCODED.decode() not in str(raised.value)
    assert "([AUTHENTICATIONFAILED] no)" in str(raised.value)
    assert command in str(raised.value)


def test_a_server_that_cannot_log_in_anybody_now_is_away():
    with pytest.raises(UnavailableError, match="now"):
        logged_in("AUTH=PLAIN", answer=b"TAG NO [UNAVAILABLE] try later\r\n")


def test_a_folder_whose_name_is_written_wrongly_hides_no_other():
    names = ["INBOX", "a&b", "&AOQ-", "&2D0-", "0123", "123"]
    listed = "".join(f'* LIST (\\HasNoChildren) "." "{name}"\r\n' for name in names).encode()
    with Scripted(LIST=listed) as server, Connection(server.account()) as connection:
        found = [folder.name for folder in connection.folders()]
        assert resolve_folder("a\u0308", connection.folders()) == "ä"
    assert found == ["INBOX", "ä", "0123", "123"]


# Accounts of the config file


HOME = '[mail.home]\nhost = "mail.example.org"\nuser = "hal"\n'


def test_what_an_account_says_and_its_defaults(home):
    home.config.write_text(
        HOME + 'port = 1143\ntls = "starttls"\nca-file = "ca.pem"\ntimeout = 9\n'
        'folders = ["INBOX", "Lists"]\nham = ["Archive"]\njunk = "Spam"\n'
        'password-file = "password"\n[mail.work]\nhost = "mx"\nuser = "h"\n'
        'token-command = "echo token"\n'
    )
    one, work = mail_places(())
    assert one[3:11] == (
        *(1143, "starttls", str(home.path / "ca.pem"), 9, "home"),
        *(("INBOX", "Lists"), "Spam", ("Archive",)),
    )
    assert (one.name, one.secret().value) == ("hal@mail.example.org", PASSWORD)
    assert (work.server, work.secret().is_token) == ("mx:993", True)
    assert work[3:11] == (None, "implicit", None, 60, "work", ("INBOX",), None, ("INBOX",))
    assert work[11:] == (None, False, ())
    assert [each.label for each in mail_places(["work", "home"])] == ["work", "home"]


def test_an_account_by_its_address(home):
    home.config.write_text(HOME)
    names = "hal@mail.example.org", "hal@Mail.Example.Org/Lists", "roz@mail.example.org"
    found = mail_places([f"imaps://{name}" for name in names])
    assert [(each.user, each.label, each.folders) for each in found] == [
        ("hal", "home", ("INBOX",)),
        ("hal", "home", ("Lists",)),
        ("roz", "imaps://roz@mail.example.org", ("INBOX",)),
    ]


def test_a_password_is_asked_for_at_a_terminal_alone(home, monkeypatch):
    home.config.write_text("")
    [account] = mail_places(["imaps://somebody@mail.example.org/x"])
    with pytest.raises(AccountError, match="no terminal to ask for it"):
        account.secret()
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    asked = []
    monkeypatch.setattr("getpass.getpass", lambda prompt: asked.append(prompt) or "swordfish")
    assert account.secret().value == account.secret().value == "swordfish"
    assert asked == ["password of somebody@mail.example.org: "]
