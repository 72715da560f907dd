import pytest

from nbspam.errors import AccountError
from nbspam.imap.account import Account, Secret, from_command, from_file


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
