"""The accounts of a config file: what they may say, and whose password is asked for."""

import pytest
from one_case import each

from nbspam.cli.accounts import configured_accounts, mail_accounts
from nbspam.errors import AccountError, OptionError

HOME = '[imap.home]\nhost = "mail.example.org"\nuser = "hal"\n'


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Return a function that writes a config file."""
    path = tmp_path / "config.toml"
    monkeypatch.setenv("NBSPAM_CONFIG", str(path))

    def write(text):
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        return path

    return write


def test_the_defaults_of_an_account(config):
    config(HOME)
    [found] = mail_accounts(())
    assert (found.label, found.folders, found.junk, found.ham) == (
        "home",
        ("INBOX",),
        None,
        ("INBOX",),
    )
    assert (found.user, found.server) == ("hal", "mail.example.org:993")
    assert (found.tls, found.timeout) == ("implicit", 60)


def test_all_that_an_account_may_say(config, tmp_path):
    (tmp_path / "secret").write_text("swordfish\n")
    (tmp_path / "secret").chmod(0o600)
    config(
        HOME + 'port = 1143\ntls = "starttls"\nca-file = "ca.pem"\ntimeout = 9\n'
        'folders = ["INBOX", "Lists"]\nham = ["Archive"]\njunk = "Spam"\n'
        'password-file = "secret"\n[imap.work]\nhost = "mx"\nuser = "h"\n'
        'token-command = "echo token"\n'
    )
    home, work = mail_accounts(())
    assert home.ca_file == str(tmp_path / "ca.pem")
    assert (home.folders, home.ham, home.junk) == (("INBOX", "Lists"), ("Archive",), "Spam")
    assert home.secret().value == "swordfish"
    assert work.secret().is_token
    assert [each.label for each in mail_accounts(["work", "home"])] == ["work", "home"]


@each(
    "text, problem",
    [
        ('[imap.home]\nuser = "hal"\n', r"toml:1: \[imap.home\]: the account has no host"),
        ('[imap.home]\nhost = "mx"\n', "the account has no user"),
        (HOME + 'hots = "x"\n', r"toml:4: \[imap.home\] hots: .*did you mean host\?"),
        (HOME + 'password = "swordfish"\n', "does not stand in a config file"),
        (HOME + 'tls = "yes"\n', 'must be "implicit", "starttls" or "none"'),
        (HOME + "tls = true\n", "must be text in quotes"),
        (HOME + "port = 0\n", "must be an integer from 1 to 65,535"),
        (HOME + 'port = "993"\n', "must be an integer"),
        (HOME + "timeout = true\n", "must be an integer"),
        (HOME + 'folders = "INBOX"\n', r'must be an array; write folders = \["INBOX"\]'),
        (HOME + "folders = [1]\n", "must be text in quotes"),
        (HOME + 'junk = "a\\nb"\n', "must be text in quotes, in one line"),
        (HOME + 'junk = "INBOX"\n', "which is the junk folder too"),
        (HOME + 'password-command = "a"\ntoken-command = "b"\n', "leave one of them out"),
        ('[imap]\nhost = "mx"\n', r"toml:2: \[imap\] holds tables of accounts, and host is none"),
    ],
)
def test_a_wrong_account_is_one_sentence(config, text, problem):
    config(text)
    with pytest.raises(OptionError, match=problem) as raised:
        configured_accounts()
    assert "swordfish" not in str(raised.value)


def test_an_account_by_its_name_or_address(config):
    config(HOME)
    [found] = mail_accounts(["imaps://hal@mail.example.org"])
    assert (found.label, found.folders) == ("home", ("INBOX",))
    [found] = mail_accounts(["imaps://hal@Mail.Example.Org/Lists"])
    assert (found.label, found.folders) == ("home", ("Lists",))
    [other] = mail_accounts(["imaps://roz@mail.example.org"])
    assert (other.user, other.folders) == ("roz", ("INBOX",))
    with pytest.raises(OptionError, match="did you mean home"):
        mail_accounts(["hom"])


def test_no_account_at_all(config):
    config("")
    with pytest.raises(OptionError, match="there is no account; name one as imaps://"):
        mail_accounts(())


def test_a_password_is_asked_for_at_a_terminal_alone(config, monkeypatch):
    config("")
    [account] = mail_accounts(["imaps://somebody@mail.example.org/x"])
    with pytest.raises(AccountError, match="no terminal to ask for it"):
        account.secret()
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    asked = []
    monkeypatch.setattr("getpass.getpass", lambda prompt: asked.append(prompt) or "swordfish")
    assert account.secret().value == account.secret().value == "swordfish"
    assert asked == ["password of somebody@mail.example.org: "]


def test_a_wrong_account_stops_no_other_command(home):
    (home.path / "mail.eml").write_bytes(b"free prize")
    home.config.write_text(HOME + "port = 0\n")
    home.config.chmod(0o600)
    assert home.run("classify", home.path / "mail.eml").code == 0
    done = home.run("config")
    assert done.code == 2
    assert done.err.startswith(f"nbspam: {home.config}:4: [imap.home] port: ")
    home.config.write_text(HOME)
    assert home.run("config").code == 0
