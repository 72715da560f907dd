from junk_mails import many


def test_spam_is_moved_and_nothing_else_changes(home, mailbox):
    ham, spam = many("ham", 5), many("spam", 4)
    mailbox.put(*ham[:3], *spam, *ham[3:])
    before = {mail: rest for mail, *rest in mailbox.all()}
    done = home.imap("filter")
    print(done)
    assert mailbox.mails() == ham
    assert mailbox.mails("Junk") == spam
    assert before == {mail: rest for box in ("INBOX", "Junk") for mail, *rest in mailbox.all(box)}
