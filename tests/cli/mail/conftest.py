"""A user with an account at Dovecot, and a model."""

import contextlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import junk_mails
import pytest
from imap_servers import PASSWORD, Mailbox, address_without, program, running_dovecot
from local_mail import LocalMailbox

from nbspam import train

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def dovecot():
    with running_dovecot() as server:
        yield server


@pytest.fixture(scope="session")
def trained_model(tmp_path_factory):
    """Return a model of mail that the tests do not deliver; not to be changed."""
    path = tmp_path_factory.mktemp("mailbox") / "model.json"
    labels = ("ham", "spam")
    rows = [(label, mail) for label in labels for mail in junk_mails.many(label, 150)]
    train(rows).save(path)
    return path


class Home:
    def __init__(self, path, monkeypatch, run):
        self.path, self.run = path, run
        self.config = path / "config.toml"
        self.model = path / "model.json"
        self.environment = {
            "HOME": str(path),
            "NBSPAM_CONFIG": str(self.config),
            "NBSPAM_MODEL": str(self.model),
            "XDG_STATE_HOME": str(path / "state"),
        }
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)
        (path / "password").write_text(f"{PASSWORD}\n")
        (path / "password").chmod(0o600)

    def write(self, user, server, **values):
        values = {
            "host": "localhost",
            "port": server.port,
            "user": user,
            "ca-file": str(server.certificate),
            "password-file": "password",
            **values,
        }
        lines = [f"{key} = {json.dumps(v)}" for key, v in values.items() if v is not None]
        self.config.write_text("\n".join(["[mail.home]", *lines, ""]))
        self.config.chmod(0o600)

    def state(self):
        return json.loads(self.memory().read_text())

    def memory(self):
        paths = (self.path / "state" / "nbspam" / "mail").glob("*.json")
        [path] = [path for path in paths if not path.name.endswith(".uids.json")]
        return path

    def mail(self, command, *arguments):
        done = self.run("mail", command, *arguments)
        assert done.code == 0, done
        return done

    def start(self, *arguments):
        return subprocess.Popen(
            program(*arguments),
            cwd=ROOT,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def learned(self):
        found = json.loads(self.model.read_text())
        numbers = dict(zip(found["classes"], found["messages"], strict=True))
        return numbers["ham"], numbers["spam"]


@pytest.fixture
def home(tmp_path, monkeypatch, trained_model, nbspam):
    path = tmp_path / "home"
    path.mkdir()
    shutil.copy(trained_model, path / "model.json")
    return Home(path, monkeypatch, nbspam)


@pytest.fixture
def account(dovecot, home):
    made = []

    def make(values=None, lacking=(), **fields):
        host = address_without(lacking) if lacking else "localhost"
        mailbox = Mailbox(dovecot, host, **fields)
        made.append(mailbox)
        home.write(mailbox.user, dovecot, host=host, **(values or {}))
        return mailbox

    yield make
    for mailbox in made:
        with contextlib.suppress(Exception):
            mailbox.client.logout()


@pytest.fixture
def mailbox(account):
    return account()


@pytest.fixture
def local(home):
    home.config.write_text("")
    return LocalMailbox(home.path / "mail")


@pytest.fixture(
    params=["server", pytest.param("Maildir", marks=pytest.mark.long), "folder of Maildirs"]
)
def anywhere(request, home):
    """Return an account of a server, and Maildirs, which all behave in the same way."""
    if request.param == "server":
        return request.getfixturevalue("account")()
    mailbox = LocalMailbox(home.path / "mail", request.param == "Maildir")
    home.config.write_text('[mail.home]\nmaildir = "mail"\n')
    return mailbox
