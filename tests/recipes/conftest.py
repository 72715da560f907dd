"""Homes with and without a model, and the two programs that several tests run."""

import pytest
from home import SAMPLE, Home, need
from mails import kept
from page import recipes


@pytest.fixture
def recipe():
    """Return a function that gives a recipe's text by its name."""
    return recipes().__getitem__


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """Return a model of the sample mail and of what a user has kept; not to be changed."""
    home = Home(tmp_path_factory.mktemp("recipes") / "home")
    home.put(".", *kept(wanted=True))
    home.put(".Junk", *kept(wanted=False))
    ham = ("--ham", SAMPLE / "ham", "--ham", home.maildir)
    spam = ("--spam", SAMPLE / "spam.mbox", "--spam", home.maildir / ".Junk")
    assert home.nbspam("train", *ham, *spam).code == 0
    return home.model


@pytest.fixture
def home(tmp_path):
    """Return a home without a model."""
    return Home(tmp_path / "home")


@pytest.fixture
def trained(home, model):
    """Return a home with that model."""
    home.add_model(model)
    return home


@pytest.fixture
def procmail():
    """Return a function that hands a message to procmail as a mail server does."""
    need("procmail")

    def run(home, rules, message):
        file = home.write(".procmailrc", rules)
        # As a mail server's delivery program procmail takes HOME from the user database; the
        # assignment puts this home there.
        return home.run("procmail", f"HOME={home.path}", file, stdin=message)

    return run


@pytest.fixture
def nightly(recipe):
    """Return a function that runs the crontab's line as cron does."""

    def run(home):
        *times, command = recipe("cron").rstrip("\n").split(maxsplit=5)
        assert len(times) == 5
        assert "%" not in command  # to cron, a new line
        return home.run("/bin/sh", "-c", command)

    return run
