"""`nbspam mail learn`, and a week in the life of an account."""

import time

import pytest
from imap_servers import Mailbox
from junk_mails import many

from nbspam.mailbox import memory


def test_a_week_in_the_life(home, anywhere):
    """Mail comes, is filtered, the user moves five; it is learned, and the next week is better."""
    ham, spam, campaign = many("ham", 12), many("spam", 8), many("campaign", 20)
    anywhere.put(*ham, *spam, *campaign[:5])
    home.mail("filter")
    assert anywhere.mails() == [*ham, *campaign[:5]]  # five are missed
    assert anywhere.mails("Junk") == spam

    for _ in range(2):  # what nbspam moved teaches nothing, nor what was not read
        before = home.learned()
        done = home.mail("learn")
        assert home.learned() == before
        assert "not learning from 8 messages that nbspam moved; open them in Junk" in done.out

    anywhere.flag("INBOX", [b"\\Seen"])
    home.mail("learn")  # the campaign was read and is taken for ham
    assert home.learned() == (before[0] + 17, before[1])
    anywhere.move("INBOX", "Junk", *campaign[:5])
    done = home.mail("learn")
    assert home.learned() == (before[0] + 12, before[1] + 5)
    assert "moved 5 to another class" in done.out

    anywhere.put(*campaign[5:])
    home.mail("filter")
    caught = [each for each in campaign[5:] if each in anywhere.mails("Junk")]
    assert len(caught) >= 11

    # the same again changes nothing
    home.mail("learn")
    model, state = home.model.read_bytes(), home.state()
    found = [anywhere.all(folder) for folder in ("INBOX", "Junk")]
    for _ in range(2):
        home.mail("filter", "--learn", "-q")
        home.mail("learn", "-q")
    assert home.model.read_bytes() == model
    assert home.state() == state
    assert [anywhere.all(folder) for folder in ("INBOX", "Junk")] == found

    # what the user has seen in Junk counts
    anywhere.flag("Junk", [b"\\Seen"])
    home.mail("learn")
    ham_learned, spam_learned = home.learned()
    assert spam_learned == before[1] + 5 + 8 + len(caught)
    # and what is moved out of it is moved in the model
    anywhere.move("Junk", "INBOX", spam[0])
    home.mail("filter", "--learn")
    assert spam[0] in anywhere.mails()
    assert home.learned() == (ham_learned + 1, spam_learned - 1)


def test_after_some_days_unseen_spam_is_trusted(home, anywhere, monkeypatch):
    spam = many("spam", 3)
    anywhere.put(*spam)
    home.mail("filter")
    _, before = home.learned()
    home.mail("learn", "--trust-after", "7d")
    assert home.learned()[1] == before
    later = time.time() + 8 * 86_400
    monkeypatch.setattr("time.time", lambda: later)
    home.mail("learn")
    assert home.learned()[1] == before
    home.mail("learn", "--trust-after", "7d")
    assert home.learned()[1] == before + 3


def test_what_was_read_before_it_was_moved_was_not_seen_in_junk(home, mailbox):
    mailbox.put(*many("ham", 1))
    home.mail("filter")
    mailbox.put(*many("spam", 2), flags=[b"\\Seen"])
    home.mail("filter")
    _, before = home.learned()
    home.mail("learn")
    assert home.learned()[1] == before
    mailbox.client.select_folder("Junk")
    mailbox.client.remove_flags(mailbox.client.search("ALL"), [b"\\Seen"])
    home.mail("learn")
    assert home.learned()[1] == before


def test_new_uids_of_junk_teach_nothing_that_waits(home, mailbox):
    mailbox.put(*many("spam", 3))
    home.mail("filter")
    home.mail("learn")
    before = home.learned()
    mailbox.client.rename_folder("Junk", "Old")
    mailbox.client.create_folder("Junk")
    mailbox.put(*many("spam", 1), folder="Junk")  # has the UID of one that waited
    mailbox.move("Old", "Junk")
    mailbox.client.delete_folder("Old")
    home.mail("learn")
    assert home.learned() == (before[0], before[1] + 1)


def test_the_first_learning_trains_a_model(home, anywhere):
    home.model.unlink()
    anywhere.put(*many("ham", 30), flags=[b"\\Seen"])
    campaign = many("campaign", 12)
    anywhere.put(*many("spam", 30), *campaign[:6], folder="Junk")
    assert "learned 66 messages (ham: 30, spam: 36)" in home.mail("learn").out
    assert '"elsewhere": 1.8,' in home.model.read_text()  # mail from elsewhere is doubted
    assert "already known" not in home.mail("learn").out
    assert home.learned() == (30, 36)
    # and filtering learns before it judges
    more = many("ham", 1)
    anywhere.put(*more, flags=[b"\\Seen"])
    anywhere.put(*campaign[6:])
    home.mail("filter", "--learn")
    assert home.learned() == (31, 36)
    assert len([each for each in campaign[6:] if each in anywhere.mails("Junk")]) >= 4


def test_what_is_remembered_is_bounded_and_holds_nothing_of_the_mail(home, anywhere, monkeypatch):
    monkeypatch.setattr(memory, "_MAX_DIGESTS", 5)
    anywhere.put(*many("spam", 8), *many("ham", 8))
    home.mail("filter", "--learn")
    assert len(home.state()["classified"]) == len(home.state()["junked"]) == 5
    path = home.memory()
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    for word in ("prize", "example", "lottery", "fence", "Roz"):
        assert word not in text


def test_twenty_thousand_digests_are_remembered_the_newest(tmp_path):
    saved = memory.Memory(tmp_path / "state.json")
    digests = [memory.identity_of(b"%d" % i) for i in range(20_001)]
    saved.classified = dict.fromkeys(digests)
    saved.save()
    assert list(memory.Memory(saved.path).classified) == digests[1:]
    assert saved.path.stat().st_size < 1_000_000


def test_two_accounts_in_turn(home, dovecot, account):
    one = account()
    first = home.config.read_text()
    two = Mailbox(dovecot)
    home.write(two.user, dovecot)
    second = home.config.read_text().replace("[mail.home]", "[mail.work]")
    home.config.write_text(first.replace(one.user, "nobody-there") + second)
    two.put(*many("spam", 1))
    done = home.run("mail", "filter", "-q")
    assert done.code == 1  # the first account's password is wrong
    assert "nobody-there@localhost: the server refused the login" in done.err
    assert len(two.mails("Junk")) == 1
    assert home.run("mail", "filter", "-q", "work") == (0, "", "")
    assert "did you mean work?" in home.run("mail", "filter", "wrk").err
    two.client.logout()


def test_an_empty_message_teaches_nothing_and_is_not_read_again(home, anywhere):
    anywhere.put(*many("ham", 1))
    home.mail("filter")
    anywhere.put(b"\r\n", *many("spam", 1), folder="Junk")
    before = home.learned()
    home.mail("learn")
    assert home.learned() == (before[0], before[1] + 1)
    home.mail("learn")
    assert home.learned() == (before[0], before[1] + 1)


KEYWORDS = [(b"$Junk", b"$NotJunk"), (b"Junk", b"NonJunk")]


@pytest.mark.parametrize("keyword", [b"Junk", b"\\Flagged"])
def test_a_move_out_of_junk_counts_at_once_and_beats_a_keyword(home, anywhere, keyword):
    """While the message is unread too, and without a word, though it looks like spam."""
    ham, spam = home.learned()
    anywhere.put(*many("spam", 2), folder="Junk", flags=[keyword])
    home.mail("learn")
    assert home.learned() == (ham, spam + 2)
    anywhere.move("Junk", "INBOX")
    assert home.mail("learn").err == ""
    assert home.learned() == (ham + 2, spam)
    state = home.state()
    home.mail("learn")
    assert (home.learned(), home.state()) == ((ham + 2, spam), state)


def test_a_correction_is_learned_without_a_word(home, anywhere):
    ham, spam = home.learned()
    anywhere.put(*many("spam", 2))
    home.mail("filter")
    anywhere.move("Junk", "INBOX")
    assert home.mail("learn", "-q") == (0, "", "")
    assert home.learned() == (ham + 2, spam)


def test_what_is_taken_out_of_junk_to_be_deleted_is_not_ham(home, account):
    mailbox = account({"ham": ["*"]}, lacking=("SPECIAL-USE",))
    ham, spam = home.learned()
    mailbox.put(*many("spam", 3), folder="Junk")
    home.mail("learn")
    for trash in ("Deleted Items", "Gelöschte Objekte", "Old/Bin".replace("/", ".")):
        mailbox.client.create_folder(trash)
        mailbox.move("Junk", trash)
        mailbox.flag(trash, [b"\\Seen"])
        home.mail("learn")
        assert home.learned() == (ham, spam + 3)
        mailbox.move(trash, "Junk")


@pytest.mark.few(3)
@pytest.mark.parametrize("junk, not_junk", KEYWORDS)
def test_keywords_say_more_than_the_folder(home, anywhere, junk, not_junk):
    """What was not read too; and what was learned by the folder, or by a keyword, is moved."""
    anywhere.put(*many("spam", 2), flags=[junk])
    anywhere.put(*many("ham", 3), folder="Junk", flags=[not_junk])
    ham, spam = home.learned()
    home.mail("learn")
    assert home.learned() == (ham + 3, spam + 2)
    assert "already known" not in home.mail("learn").out
    for folder, of_folder, others in (("INBOX", not_junk, junk), ("Junk", junk, not_junk)):
        anywhere.flag(folder, [of_folder], gone=[others])
    assert "moved 5 to another class" in home.mail("learn").out
    assert home.learned() == (ham + 2, spam + 3)
    anywhere.flag("INBOX", [junk], gone=[not_junk])
    anywhere.flag("Junk", [not_junk])  # with the other one: the correction counts
    home.mail("learn")
    assert home.learned() == (ham + 3, spam + 2)
    anywhere.flag("INBOX", [b"\\Seen"], gone=[junk])
    anywhere.flag("Junk", [], gone=[junk, not_junk])
    home.mail("learn")
    assert home.learned() == (ham + 2, spam + 3)
    state = home.state()
    home.mail("learn")
    assert home.state() == state


def test_a_keyword_confirms_what_nbspam_moved(home, anywhere):
    anywhere.put(*many("spam", 2))
    home.mail("filter")
    ham, spam = home.learned()
    home.mail("learn")
    assert home.learned() == (ham, spam)
    anywhere.flag("Junk", [b"Junk"])
    home.mail("learn")
    assert home.learned() == (ham, spam + 2)
    anywhere.flag("Junk", [b"\\Deleted", b"NonJunk"])  # it is as if it were gone
    home.mail("learn")
    assert home.learned() == (ham, spam + 2)


def test_what_nbspam_marked_teaches_nothing_until_the_user_corrects_it(home, mailbox):
    mailbox.put(*many("spam", 2), *many("ham", 2))
    home.mail("filter", "--mark")
    assert len(mailbox.uids(criteria="KEYWORD $Junk")) == 2
    before = ham, spam = home.learned()
    mailbox.flag("INBOX", [b"\\Seen"], "KEYWORD $Junk")
    for _ in range(2):
        home.mail("learn")
        assert home.learned() == before
    mailbox.flag("INBOX", [b"NonJunk"], "KEYWORD $Junk")
    home.mail("learn")
    assert home.learned() == (ham + 2, spam)


def test_what_was_read_and_may_be_spam_teaches_nothing_but_by_hand(home, anywhere):
    """Another filter may have left it there; above the spam cut-off, the user moved it back."""
    messages = many("spam", 3)
    before = ham, spam = home.learned()
    home.run("model", "set", "--spam-cutoff", "1", "--ham-cutoff", "0.5")
    anywhere.put(*messages[:2], flags=[b"\\Seen"])
    assert "2 messages that you have read may be spam" in home.mail("learn", "--dry-run").err
    assert "were not learned as ham" in home.mail("learn").err
    for _ in range(2):  # said once, also after the message was filtered
        assert home.mail("learn").err == ""
        assert home.learned() == before
        home.mail("filter", "--all")
    anywhere.flag("INBOX", [b"NonJunk"])
    home.mail("learn")
    assert home.learned() == (ham + 2, spam)
    home.run("model", "set", "--spam-cutoff", "0.9")
    anywhere.put(messages[2], flags=[b"\\Seen"])
    home.mail("learn")
    assert home.learned() == (ham + 3, spam)


def test_what_nbspam_left_and_calls_spam_now_teaches_nothing(home, anywhere):
    before, [message] = home.learned(), many("spam", 1)
    home.run("model", "set", "--spam-cutoff", "1", "--ham-cutoff", "0.5")
    anywhere.put(message)
    home.mail("filter")
    home.run("model", "set", "--spam-cutoff", "0.9")
    anywhere.flag("INBOX", [b"\\Seen"])
    home.mail("learn")
    assert home.learned() == before
    anywhere.move("INBOX", "Junk", message)
    home.mail("learn")
    assert home.learned() == (before[0], before[1] + 1)


def test_train_seen_presumes_the_same(home, local):
    """It cannot know who moved a message, so it learns what is above the spam cut-off."""
    command = "train", "--update", "--seen", "--ham", str(local.top)
    ham, spam = home.learned()
    local.put(*many("spam", 2), *many("ham", 2), flags=[b"\\Seen"])
    home.run("model", "set", "--spam-cutoff", "1", "--ham-cutoff", "0.5")
    done = home.run(*command)
    assert "2 messages that you have read may be spam and were not learned as ham" in done.err
    assert home.run(*command, "-q").err == ""
    assert home.learned() == (ham + 2, spam)
    home.run("model", "set", "--spam-cutoff", "0.9")
    assert "2 of 2 new messages look like spam and were learned" in home.run(*command).err
    assert home.learned() == (ham + 4, spam)


def test_another_model_learns_from_the_beginning(home, anywhere):
    home.model.unlink()
    anywhere.put(*many("ham", 3), flags=[b"\\Seen"])
    anywhere.put(*many("spam", 4), folder="Junk")
    home.mail("learn")
    home.model.unlink()
    home.mail("learn")
    assert home.learned() == (3, 4)
