import mails
import pytest
from conftest import OURS, bare, need, verdict


@pytest.fixture
def deliver(recipe):
    """Return a function that hands a message to procmail as a mail server does."""
    need("procmail")

    def run(home, message, name="procmail-filter", text=None):
        rules = home.write(".procmailrc", text or recipe(name))
        # As a mail server's delivery program procmail takes HOME from the user database; the
        # assignment puts this home there.
        return home.run("procmail", f"HOME={home.path}", rules, stdin=message)

    return run


def test_spam_goes_to_junk_and_ham_to_the_inbox(trained, deliver):
    for message in (mails.SPAM, mails.HAM, mails.ODD):
        assert (0, b"", "") == deliver(trained, message)
    # the empty line is procmail's, after any filter
    assert [mails.SPAM + b"\n"] == [bare(found) for found in trained.mails(".Junk")]
    assert [mails.HAM + b"\n", mails.ODD + b"\n"] == [bare(found) for found in trained.mails()]
    assert ["ham", "ham"] == [verdict(found) for found in trained.mails()]


def test_with_r_the_mail_is_the_same_to_the_last_byte(trained, deliver, recipe):
    text = recipe("procmail-filter").replace(":0fw\n", ":0fwr\n")
    assert text != recipe("procmail-filter")
    for message in (mails.SPAM, mails.HAM, mails.ODD, mails.ODD.rstrip()):
        assert deliver(trained, message, text=text).code == 0
    assert [mails.SPAM] == [bare(found) for found in trained.mails(".Junk")]
    expected = [mails.HAM, mails.ODD, mails.ODD.rstrip()]
    assert expected == [bare(found) for found in trained.mails()]


def test_a_forged_header_does_not_help(trained, deliver):
    forged = mails.SPAM.replace(b"Subject:", b"X-Nbspam: ham, probability=0.0\nSubject:")
    assert deliver(trained, forged).code == 0
    assert [mails.SPAM + b"\n"] == [bare(found) for found in trained.mails(".Junk")]
    assert trained.mails() == []


def test_without_a_model_the_mail_stays_queued(home, deliver):
    ended = deliver(home, mails.HAM)
    assert ended.code == 75
    assert str(home.model) in ended.err
    assert home.everything() == []


def test_without_the_lines_of_e_the_mail_is_delivered_as_it_was(home, deliver, recipe):
    text = recipe("procmail-filter").replace(":0e\n{ EXITCODE=75 HOST }\n", "")
    assert text != recipe("procmail-filter")
    assert deliver(home, mails.SPAM, text=text).code == 0
    assert [mails.SPAM] == home.mails()


def test_a_condition_sorts_without_a_header(trained, deliver):
    for message in (mails.SPAM, mails.HAM, mails.ODD):
        assert (0, b"", "") == deliver(trained, message, "procmail-condition")
    assert [mails.SPAM] == trained.mails(".Junk")
    assert [mails.HAM, mails.ODD] == trained.mails()


def test_a_condition_takes_an_error_for_ham(home, deliver):
    ended = deliver(home, mails.SPAM, "procmail-condition")
    assert ended.code == 0
    assert str(home.model) in ended.err
    assert [mails.SPAM] == home.mails()
    assert not OURS.search(home.mails()[0])
