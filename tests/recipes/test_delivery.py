"""procmail and maildrop."""

import email
from email.message import EmailMessage

import mails
import pytest
from home import BROKEN, SAMPLE, bare, need, verdict

THREE = mails.SPAM, mails.HAM, mails.ODD


@pytest.fixture
def maildrop():
    need("maildrop")

    def run(home, rules, message):
        # maildrop takes HOME from the user database; the first line puts this home there.
        file = home.write(".mailfilter", f'HOME="{home.path}"\n{rules}')
        return home.run("maildrop", file, stdin=message)

    return run


@pytest.fixture(params=["procmail", "maildrop"])
def agent(request, recipe):
    """Return who delivers, the recipe, and what is added to a message that is filtered."""
    # the empty line is procmail's, after any filter
    end = b"\n" if request.param == "procmail" else b""
    names = {"procmail": "procmail-filter", "maildrop": "maildrop-filter"}
    return request.getfixturevalue(request.param), recipe(names[request.param]), end


def test_spam_goes_to_junk_and_ham_to_the_inbox(trained, agent):
    deliver, rules, end = agent
    forged = mails.SPAM.replace(b"Subject:", b"X-Nbspam: ham, probability=0.0\nSubject:")
    for message in (*THREE, forged):  # a forged header does not help
        assert deliver(trained, rules, message) == (0, b"", "")
    assert [bare(found) for found in trained.mails(".Junk")] == [mails.SPAM + end] * 2
    assert [bare(found) for found in trained.mails()] == [mails.HAM + end, mails.ODD + end]
    assert [verdict(found) for found in trained.mails()] == ["ham", "ham"]


def test_without_a_model_or_a_program_the_mail_stays_queued(trained, agent):
    deliver, rules, _ = agent
    trained.model.unlink()
    ended = deliver(trained, rules, mails.HAM)
    assert ended.code == 75
    assert str(trained.model) in ended.err
    for how, message in zip(BROKEN, [mails.SPAM, mails.HAM + b"x" * 300_000] * 3, strict=True):
        trained.break_program(how)
        assert deliver(trained, rules, message).code == 75, how
    assert trained.everything() == []


def test_mails_that_are_forwarded_to_an_address_are_learned(trained, procmail, recipe):
    """And not the mail around them, which goes to the inbox if there is none in it."""
    before = trained.learned()
    first = recipe("teach-by-mail")
    rules = recipe("procmail-filter").replace(":0fw", f"{first}\n:0fw")
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "hal@x.example", "hal+junk-7k2x@x.example", "Fwd"
    mail.set_content("Learn these")
    nothing = mail.as_bytes()
    for message in mails.CHATTY_SPAM[:2]:
        mail.add_attachment(email.message_from_bytes(message))
    for _ in range(2):  # each is learned once
        assert procmail(trained, rules, mail.as_bytes()) == (0, b"", "")
        assert trained.learned() == (before[0], before[1] + 2)
    assert trained.everything() == []
    known = trained.nbspam("train", "--update", "--spam", "-", stdin=mails.CHATTY_SPAM[0])
    assert (known.code, trained.learned()) == (0, (before[0], before[1] + 2))
    assert "no message is attached" in procmail(trained, rules, nothing).err
    assert len(trained.everything()) == 1


def test_a_sender_that_is_never_spam_is_sorted_before_the_filter(trained, procmail, recipe):
    first = recipe("never-spam")
    rules = recipe("procmail-filter").replace(":0fw", f"{first}\n:0fw")
    known = mails.mail("Roz <roz@example.org>", "Claim your prize", "Dear winner, claim it now")
    for message in (known, mails.SPAM):
        assert procmail(trained, rules, message) == (0, b"", "")
    assert trained.mails() == [known]
    assert [bare(found) for found in trained.mails(".Junk")] == [mails.SPAM + b"\n"]


@pytest.mark.parametrize(
    ("who", "name", "old", "new"),
    [
        ("procmail", "procmail-filter", ":0e\n{ EXITCODE=75 HOST }\n", ""),
        ("maildrop", "maildrop-filter", "classify -p", "classify -p --on-error deliver"),
    ],
)
def test_on_request_what_is_not_judged_is_delivered_as_it_was(
    home, recipe, request, who, name, old, new
):
    text = recipe(name).replace(old, new)
    assert text != recipe(name)
    assert request.getfixturevalue(who)(home, text, mails.SPAM).code == 0
    assert home.mails() == [mails.SPAM]


def test_mail_that_may_be_spam_goes_to_the_inbox(home, procmail, recipe):
    """A model of few mails is not sure of this one."""
    sources = ("--ham", SAMPLE / "ham.mbox", "--spam", SAMPLE / "spam.mbox")
    assert home.nbspam("train", *sources).code == 0
    for name in ("procmail-filter", "procmail-condition"):
        assert procmail(home, recipe(name), mails.LOUD_HAM[1]) == (0, b"", "")
    assert home.mails(".Junk") == []
    filtered, sorted_only = home.mails()
    assert (verdict(filtered), bare(filtered)) == ("unsure", mails.LOUD_HAM[1] + b"\n")
    assert sorted_only == mails.LOUD_HAM[1]


@pytest.mark.long
def test_with_r_the_mail_is_the_same_to_the_last_byte(trained, procmail, recipe):
    text = recipe("procmail-filter").replace(":0fw\n", ":0fwr\n")
    assert text != recipe("procmail-filter")
    for message in (*THREE, mails.ODD.rstrip()):
        assert procmail(trained, text, message).code == 0
    assert [bare(found) for found in trained.mails(".Junk")] == [mails.SPAM]
    expected = [mails.HAM, mails.ODD, mails.ODD.rstrip()]
    assert expected == [bare(found) for found in trained.mails()]


def test_a_condition_sorts_without_a_header_and_takes_an_error_for_ham(trained, procmail, recipe):
    rules = recipe("procmail-condition")
    for message in THREE:
        assert procmail(trained, rules, message) == (0, b"", "")
    assert trained.mails(".Junk") == [mails.SPAM]
    trained.model.unlink()
    ended = procmail(trained, rules, mails.SPAM)
    assert ended.code == 0
    assert str(trained.model) in ended.err
    for how in BROKEN:
        trained.break_program(how)
        assert procmail(trained, rules, mails.SPAM).code == 0, how
    assert trained.mails() == [mails.HAM, mails.ODD, *[mails.SPAM] * (1 + len(BROKEN))]
