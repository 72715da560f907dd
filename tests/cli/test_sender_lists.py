"""Allowed and blocked senders in every command, as a config file has them."""

import json

import pytest
from junk_mails import many
from one_case import each

import nbspam as library
from nbspam.reading.senders import SenderLists

CONFIG = """
allow = ["@prize.example", "file:allowed"]
block = ["roz@example.org", "*@*.shop.example"]
auth-host = "mx.example.net"
"""
PROOF = b"Authentication-Results: mx.example.net; dkim=pass header.d=prize.example\n"
HAM, SPAM = many("ham", 1, 3)[0], many("spam", 1, 3)[0]  # of Roz, and of the prize desk
PROVEN = PROOF + SPAM
OTHER = SPAM.replace(b"winner@prize", b"winner@other")
VERDICTS = [
    *((HAM, "spam", "blocked sender"), (SPAM, "spam", None), (PROVEN, "ham", "allowed sender")),
    *((OTHER, "spam", None), (PROOF + OTHER, "spam", None)),
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("senders") / "model.json"
    rows = [(label, mail) for label in ("ham", "spam") for mail in many(label, 60)]
    library.train(rows).save(path)
    return path


@pytest.fixture
def listed(own_home, trained, monkeypatch):
    """Return a folder with messages, whose user has lists."""
    folder = own_home / ".config" / "nbspam"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(CONFIG)
    (folder / "allowed").write_text("# nobody\n")
    monkeypatch.setenv("NBSPAM_MODEL", str(trained))
    for number, (mail, *_) in enumerate(VERDICTS):
        (own_home / f"{number}.eml").write_bytes(mail)
    return own_home


def test_the_verdict_and_the_reason_of_one_message(nbspam, listed):
    for mail, verdict, reason in VERDICTS:
        code = {"spam": 0, "ham": 1}[verdict]
        line = nbspam("classify", stdin=mail).out
        assert line.split("\t")[0] == verdict
        assert line.rstrip("\n").split("\t")[3:] == [reason] * bool(reason)
        found = json.loads(nbspam("classify", "--format", "json", stdin=mail).out)
        assert (found["verdict"], found.get("reason")) == (verdict, reason)
        assert nbspam("classify", "--exit-code", stdin=mail).code == code
        value = nbspam("classify", "--format", "header", stdin=mail).out
        why = f"reason={reason.replace(' ', '-')}, " if reason else ""
        assert value.startswith(f"{verdict}, probability={found['probability']:.6f}, {why}version=")
        passed = nbspam("classify", "-p", "--subject-tag", "[SPAM]", stdin=mail)
        assert f"X-Nbspam: {value}" in passed.out
        assert ("[SPAM]" in passed.out) == (verdict == "spam")


@each("content", [None, b"\xff", b"nobody\n", b"@a.org\n" * (1 + (16 << 20) // 7)])
def test_a_mail_passes_unchanged_with_a_list_that_cannot_be_used(nbspam, listed, content):
    path = listed / ".config" / "nbspam" / "allowed"
    path.unlink() if content is None else path.write_bytes(content)
    for options in ([], ["--allow", f"file:{path}"], ["--allow", "file:~nobody-here/allowed"]):
        done = nbspam("classify", "-p", *options, stdin=VERDICTS[0][0])
        assert (done.code, done.out.encode()) == (75, VERDICTS[0][0])
        assert done.err.startswith("nbspam: ")
        assert len(done.err.splitlines()) == 1
        assert "internal" not in done.err


def test_the_probability_stays_that_of_the_words(nbspam, listed, trained):
    with library.open(trained) as alone:
        for mail, *_ in VERDICTS:
            found = json.loads(nbspam("classify", "--format", "json", stdin=mail).out)
            assert found["probability"] == round(alone.classify(mail).probability, 12)
            assert alone.classify(mail).reason is None


def test_a_folder_of_mail_and_lists_that_are_typed(nbspam, listed):
    names = sorted(listed.glob("*.eml"))
    lines = nbspam("classify", *names).out.splitlines()
    assert [line.split("\t")[0] for line in lines] == [verdict for _, verdict, _ in VERDICTS]
    # What is typed takes the place of the file's.
    typed = "--allow", "roz@example.org", "--trust-from", "--block", "@prize.example"
    lines = nbspam("classify", *typed, *names).out.splitlines()
    assert [line.split("\t")[3:] for line in lines] == [
        *(["allowed sender"], ["blocked sender"], ["blocked sender"], [], []),
    ]


def test_explain_says_which_list_decides_and_why_one_does_not(nbspam, listed):
    said = [nbspam("explain", listed / f"{i}.eml").out for i in range(3)]
    assert "spam (blocked sender): the evidence favours ham" in " ".join(said[0].split())
    assert "roz@example.org is on the list of blocked senders; this decides" in said[0]
    assert "does not count: it has no Authentication-Results of mx.example.net" in (
        " ".join(said[1].split())
    )
    assert "ham (allowed sender): " in said[2]
    found = json.loads(nbspam("explain", listed / "2.eml", "--format", "json").out)
    assert found["reason"] == "allowed sender"
    assert found["sentences"][0].startswith("winner@prize.example is on the list of allowed")


def test_eval_and_learning_have_no_lists(nbspam, listed, tmp_path):
    ham, spam = tmp_path / "ham.eml", tmp_path / "spam.eml"
    ham.write_bytes(HAM)
    spam.write_bytes(PROVEN)
    found = json.loads(nbspam("eval", "--format", "json", "--ham", ham, "--spam", spam).out)
    assert found["errors"] == 0
    assert nbspam("train", "--update", "--ham", ham, "-m", tmp_path / "new.json").code == 0
    found = json.loads(nbspam("classify", "-m", tmp_path / "new.json", "--format", "json", ham).out)
    assert (found["verdict"], found["reason"]) == ("spam", "blocked sender")  # of one class alone
    assert found["probability"] == 0.5


@each("allowed, other", [(True, "ham"), (True, "inbox"), (False, "ham")])
def test_three_classes(allowed, other):
    """Spam of an allowed sender is ham, or without that class what is most probable."""
    classes = [other, "promo", "spam"]
    rows = [
        (label, f"Subject: {label}\n\n{label} {label} {i}".encode())
        for i in range(20)
        for label in classes
    ]
    rows += [("promo", f"Subject: spam\n\nspam {i}".encode()) for i in range(9)]
    lists = {"allow" if allowed else "block": ["@example.org"], "trust_from": True}
    spam_filter = library.train(rows)
    spam_filter.version.senders = SenderLists(**lists)
    for label in classes:
        mail = f"From: a@example.org\nSubject: {label}\n\n{label} {label}".encode()
        verdict = spam_filter.classify(mail)
        if not allowed:
            assert verdict[0] == "spam"
        else:
            assert verdict.probabilities["promo"] > verdict.probabilities[other] or label == other
            instead = "ham" if other == "ham" else "promo"
            assert verdict.verdict == (instead if label == "spam" else label)


def test_without_a_spam_class_the_lists_change_nothing():
    rows = [(label, f"Subject: {label}\n\n{label}".encode()) for label in ("a", "b", "c")] * 20
    spam_filter = library.train(rows)
    spam_filter.version.senders = SenderLists((), ["@example.org"])
    verdict = spam_filter.classify(b"From: a@example.org\nSubject: a\n\na")
    assert (verdict.verdict, verdict.reason) == ("a", None)
