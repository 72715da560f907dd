import mails
from home import BROKEN, SAMPLE, bare, verdict


def test_spam_goes_to_junk_and_ham_to_the_inbox(trained, procmail, recipe):
    for message in (mails.SPAM, mails.HAM, mails.ODD):
        assert procmail(trained, recipe("procmail-filter"), message) == (0, b"", "")
    # the empty line is procmail's, after any filter
    assert [bare(found) for found in trained.mails(".Junk")] == [mails.SPAM + b"\n"]
    assert [bare(found) for found in trained.mails()] == [mails.HAM + b"\n", mails.ODD + b"\n"]
    assert [verdict(found) for found in trained.mails()] == ["ham", "ham"]


def test_mail_that_may_be_spam_goes_to_the_inbox(home, procmail, recipe):
    """A model of few mails is not sure of this one."""
    sources = ("--ham", SAMPLE / "ham", "--spam", SAMPLE / "spam.mbox")
    assert home.nbspam("train", *sources).code == 0
    for name in ("procmail-filter", "procmail-condition"):
        assert procmail(home, recipe(name), mails.LOUD_HAM[1]) == (0, b"", "")
    assert home.mails(".Junk") == []
    filtered, sorted_only = home.mails()
    assert (verdict(filtered), bare(filtered)) == ("unsure", mails.LOUD_HAM[1] + b"\n")
    assert sorted_only == mails.LOUD_HAM[1]


def test_with_r_the_mail_is_the_same_to_the_last_byte(trained, procmail, recipe):
    text = recipe("procmail-filter").replace(":0fw\n", ":0fwr\n")
    assert text != recipe("procmail-filter")
    for message in (mails.SPAM, mails.HAM, mails.ODD, mails.ODD.rstrip()):
        assert procmail(trained, text, message).code == 0
    assert [bare(found) for found in trained.mails(".Junk")] == [mails.SPAM]
    expected = [mails.HAM, mails.ODD, mails.ODD.rstrip()]
    assert expected == [bare(found) for found in trained.mails()]


def test_a_forged_header_does_not_help(trained, procmail, recipe):
    forged = mails.SPAM.replace(b"Subject:", b"X-Nbspam: ham, probability=0.0\nSubject:")
    assert procmail(trained, recipe("procmail-filter"), forged).code == 0
    assert [bare(found) for found in trained.mails(".Junk")] == [mails.SPAM + b"\n"]
    assert trained.mails() == []


def test_without_a_model_the_mail_stays_queued(home, procmail, recipe):
    ended = procmail(home, recipe("procmail-filter"), mails.HAM)
    assert ended.code == 75
    assert str(home.model) in ended.err
    assert home.everything() == []


def test_without_the_lines_of_e_the_mail_is_delivered_as_it_was(home, procmail, recipe):
    text = recipe("procmail-filter").replace(":0e\n{ EXITCODE=75 HOST }\n", "")
    assert text != recipe("procmail-filter")
    assert procmail(home, text, mails.SPAM).code == 0
    assert home.mails() == [mails.SPAM]


def test_a_condition_sorts_without_a_header(trained, procmail, recipe):
    for message in (mails.SPAM, mails.HAM, mails.ODD):
        assert procmail(trained, recipe("procmail-condition"), message) == (0, b"", "")
    assert trained.mails(".Junk") == [mails.SPAM]
    assert trained.mails() == [mails.HAM, mails.ODD]


def test_a_condition_takes_an_error_for_ham(home, procmail, recipe):
    ended = procmail(home, recipe("procmail-condition"), mails.SPAM)
    assert ended.code == 0
    assert str(home.model) in ended.err
    assert home.mails() == [mails.SPAM]


def test_a_program_that_does_not_run_leaves_the_mail_in_the_queue(trained, procmail, recipe):
    for how in BROKEN:
        trained.break_program(how)
        for message in (mails.SPAM, mails.HAM + b"x" * 300_000):
            assert procmail(trained, recipe("procmail-filter"), message).code == 75, how
        assert trained.everything() == []


def test_a_condition_takes_a_program_that_does_not_run_for_ham(trained, procmail, recipe):
    for n, how in enumerate(BROKEN, 1):
        trained.break_program(how)
        assert procmail(trained, recipe("procmail-condition"), mails.SPAM).code == 0, how
        assert trained.mails() == [mails.SPAM] * n
