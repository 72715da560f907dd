"""Homes with and without a model, and the two programs that several tests run."""

import pytest
from home import SAMPLE, Home, need, recipes
from mails import kept


@pytest.fixture
def recipe():
    return recipes().__getitem__


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """Return a model of the sample mail and of what a user has kept; not to be changed."""
    home = Home(tmp_path_factory.mktemp("recipes") / "home")
    home.put(".", *kept(wanted=True))
    home.put(".Junk", *kept(wanted=False))
    ham = ("--ham", SAMPLE / "ham.mbox", "--ham", home.maildir)
    spam = ("--spam", SAMPLE / "spam.mbox", "--spam", home.maildir / ".Junk")
    assert home.nbspam("train", *ham, *spam).code == 0
    return home.model


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


@pytest.fixture
def trained(home, model):
    home.add_model(model)
    return home


@pytest.fixture
def procmail():
    need("procmail")

    def run(home, rules, message):
        file = home.write(".procmailrc", rules)
        # As a mail server's delivery program procmail takes HOME from the user database; the
        # assignment puts this home there.
        return home.run("procmail", f"HOME={home.path}", file, stdin=message)

    return run


@pytest.fixture
def nightly(recipe):
    def run(home):
        *times, command = recipe("cron").rstrip("\n").split(maxsplit=5)
        assert len(times) == 5
        assert "%" not in command  # to cron, a new line
        return home.run("/bin/sh", "-c", command)

    return run
