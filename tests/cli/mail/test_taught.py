"""What was taught as ham stays where it is, whatever its verdict."""

import json

import pytest
from junk_mails import many

import nbspam
from nbspam.filter import open_filter
from nbspam.names import TAUGHT_AS_HAM
from nbspam.reading.message import RawMessage, parse
from nbspam.reading.source import Skips
from nbspam.scoring.verdict import CutOffs
from nbspam.scoring.version import classify_messages
from nbspam.tokens.tokenized import tokenize
from nbspam.workers import Executor, Processes

_LOW = ("--spam-cutoff", "0")  # what is known at all is spam, whatever one more lesson changes
# As what each message of a campaign was learned, and whether it counts as ham.
ROWS = [
    ([], False),
    (["spam"], False),
    (["ham"], True),
    (["ham", "spam"], True),
    (["lists"], True),
    (["lists", "ham", "spam"], True),
]


@pytest.mark.parametrize("classes", [("ham", "spam"), ("ham", "lists", "spam")])
def test_spam_that_other_classes_learned_as_often_has_a_reason(classes, tmp_path):
    others = {label: many("ham", 40, label) for label in classes[:-1]} | {"spam": many("spam", 80)}
    learned = [(label, mail) for label, mails in others.items() for mail in mails]
    rows = [row for row in ROWS if set(row[0]) <= set(classes)]
    taught = dict(zip(many("spam", len(rows), 7), rows, strict=True))
    learned += [(label, mail) for mail, (labels, _) in taught.items() for label in labels]
    nbspam.train(learned).save(tmp_path / "model.json")
    mails = [*many("spam", 60, 8), *taught, *others["ham"][:2]]
    raws = [RawMessage(f"x:{i}", None, mail) for i, mail in enumerate(mails)]
    where = Processes(2, serial_seconds=1e-9, start_method="fork") if classes[2:] else Executor()
    with open_filter(tmp_path / "model.json", lambda _: CutOffs(0.5, 0.5)) as spam_filter:
        version = spam_filter.version
        found = list(classify_messages(raws, Skips(), where, version, find_taught=True))
        verdicts = [
            version.classify(tokenize(parse(mail), outputs=version.outputs)) for mail in mails
        ]
    assert [verdict.verdict for verdict in verdicts] == ["spam"] * (60 + len(rows)) + ["ham"] * 2
    is_ham = [False] * 60 + [is_ham for _, is_ham in rows] + [False] * 2
    for each, verdict, raw, taught_ham in zip(found, verdicts, raws, is_ham, strict=True):
        reason = TAUGHT_AS_HAM if taught_ham else None
        assert each.verdict == verdict._replace(source=raw.source, reason=reason)
        assert (each.source, each.size) == (raw.source, len(raw.content))


def teach(home, mail):
    (home.path / "taught.eml").write_bytes(mail)
    assert home.run("train", "--update", "-q", "--ham", home.path / "taught.eml").code == 0


def test_what_was_moved_back_and_learned_stays_when_nothing_else_is_remembered(home, mailbox):
    """As on another machine, or without the file of what was done."""
    spam = many("spam", 3)
    mailbox.put(*spam)
    home.mail("filter")
    mailbox.move("Junk", "INBOX", spam[1])
    home.mail("filter")  # notices it
    ham, bad = home.learned()
    home.mail("learn")
    assert home.learned() == (ham + 1, bad)
    [path] = (home.path / "state").rglob("*.json")
    path.unlink()

    start = f"{mailbox.user}@localhost: INBOX: classified 1 message,"
    line, summary = home.mail("filter", *_LOW, "--all", "--dry-run").out.splitlines()
    assert line.split("\t")[0::4] == ["spam", "taught as ham"]
    would = "0 would be moved to Junk, 0 unsure, 1 would be kept (taught as ham)"
    assert summary == f"{start} {would}"
    found = json.loads(home.mail("filter", *_LOW, "--all", "--format", "json").out)
    keys = "verdict", "reason", "action", "done"
    assert [found[key] for key in keys] == ["spam", "taught as ham", "kept", True]
    done = home.mail("filter", *_LOW, "--all")
    assert done.out == f"{start} 0 moved to Junk, 0 unsure, 1 kept (taught as ham)\n"
    assert mailbox.mails() == [spam[1]]
    done = home.mail("filter", *_LOW, "--all", "--move-taught")
    assert done.out == f"{start} 1 moved to Junk, 0 unsure\n"
    assert sorted(mailbox.mails("Junk")) == sorted(spam)


def test_spam_with_the_identity_of_a_taught_mail_is_moved(home, mailbox):
    """Message-ID, Date and Subject of a mail to a public list can be copied."""
    [known], [spam] = many("ham", 1, "list"), many("spam", 1)
    identity = b"Message-ID: <1@list.example>\nDate: Sat, 28 Nov 2026 10:11:12 +0000\n"
    identity += b"Subject: the minutes\n"
    spam, known = (identity + m.replace(b"\nSubject: ", b"\nX-Old: ", 1) for m in (spam, known))
    footer = b"\nunsubscribe at lists.example\n"
    teach(home, known)
    mailbox.put(spam, known + footer)
    done = home.mail("filter", *_LOW)
    assert done.out.endswith(" 1 moved to Junk, 0 unsure, 1 kept (taught as ham)\n")
    assert mailbox.mails("Junk") == [spam]


def test_what_was_taught_is_not_marked_either_unless_asked_for(home, mailbox):
    spam = many("spam", 2)
    teach(home, spam[0])
    mailbox.put(*spam)
    done = home.mail("filter", *_LOW, "--mark")
    assert done.out.endswith(" 1 marked spam, 0 unsure, 1 kept (taught as ham)\n")
    assert [flags for _, flags, _ in mailbox.all()] == [frozenset(), frozenset([b"$Junk"])]
    home.mail("filter", *_LOW, "--all")
    assert mailbox.mails() == spam[:1]
    home.mail("filter", *_LOW, "--all", "--move-taught")
    assert sorted(mailbox.mails("Junk")) == sorted(spam)


def test_a_message_larger_than_what_is_fetched_is_known_again(home, mailbox, monkeypatch):
    monkeypatch.setattr("nbspam.mailbox.connection.BYTES_LIMIT", 5000)
    spam = [each + b"Lorem ipsum dolor sit amet. \n" * 500 for each in many("spam", 2)]
    mailbox.put(spam[0], flags=[b"\\Seen"])
    mailbox.put(spam[1])
    home.mail("learn")
    home.mail("filter", *_LOW, "--all")
    assert mailbox.mails() == spam[:1]
    assert mailbox.mails("Junk") == spam[1:]


@pytest.mark.parametrize("quiet", [False, True])
def test_spam_that_was_read_and_left_is_named_before_and_when_it_is_learned(home, anywhere, quiet):
    spam = many("spam", 4)
    anywhere.put(*many("ham", 2), *spam, flags=[b"\\Seen"])
    home.mail("filter")
    before, state = home.model.read_bytes(), home.state()
    options = ["-q"] * quiet
    found = home.mail("learn", "--dry-run", *options).err
    assert "4 of 6 new messages look like spam and would be learned as ham" in found
    assert (home.model.read_bytes(), home.state()) == (before, state)
    done = home.mail("learn", *options)
    assert "4 of 6 new messages look like spam and were learned as ham" in done.err
    assert ("and 1 more; if that is a mistake: move them into Junk" in done.err) != quiet
    assert home.mail("learn", *options).err == ""
