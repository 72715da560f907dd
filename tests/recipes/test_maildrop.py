import mails
import pytest
from home import BROKEN, bare, need, verdict


@pytest.fixture
def deliver(recipe):
    """Return a function that hands a message to maildrop."""
    need("maildrop")

    def run(home, message, text=None):
        # maildrop takes HOME from the user database; the first line puts this home there.
        text = f'HOME="{home.path}"\n{text or recipe("maildrop-filter")}'
        rules = home.write(".mailfilter", text)
        return home.run("maildrop", rules, stdin=message)

    return run


def test_spam_goes_to_junk_and_ham_to_the_inbox(trained, deliver):
    for message in (mails.SPAM, mails.HAM, mails.ODD):
        assert deliver(trained, message) == (0, b"", "")
    assert [bare(found) for found in trained.mails(".Junk")] == [mails.SPAM]
    assert [bare(found) for found in trained.mails()] == [mails.HAM, mails.ODD]
    assert [verdict(found) for found in trained.mails()] == ["ham", "ham"]


def test_without_a_model_the_mail_stays_queued(home, deliver):
    ended = deliver(home, mails.HAM)
    assert ended.code == 75
    assert str(home.model) in ended.err
    assert home.everything() == []


def test_on_error_deliver_puts_it_into_the_inbox_as_it_was(home, deliver, recipe):
    text = recipe("maildrop-filter").replace("classify -p", "classify -p --on-error deliver")
    assert deliver(home, mails.SPAM, text).code == 0
    assert home.mails() == [mails.SPAM]


def test_a_program_that_does_not_run_leaves_the_mail_in_the_queue(trained, deliver):
    for how in BROKEN:
        trained.break_program(how)
        for message in (mails.SPAM, mails.HAM + b"x" * 300_000):
            assert deliver(trained, message).code == 75, how
        assert trained.everything() == []
