"""What `train` and the others that change a model do beyond a session: locks, pipes, processes."""

import fcntl
import os
import stat
import subprocess
import sys
import time

import pytest
from one_case import each

from nbspam.cli.train import ClassSizes, expectation
from nbspam.errors import TrainingError
from nbspam.evaluation.metrics import count_verdicts, left_out_rates
from nbspam.learning.update import PendingMessages
from nbspam.names import rare_classes
from nbspam.serving.teaching import LearnRequest, apply_requests
from nbspam.store import writing
from nbspam.store.writing import QUIET_WAIT
from nbspam.tokens.tokenized import TokenizedMessage

SPAM = b"Subject: prize\n\nwin a free prize\n"
TEACH = ("train", "--update", "--spam", "-", "-m")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
@each("command, message", [(TEACH, b"Subject: a\n\nb\n"), (("forget", "-m"), SPAM)])
def test_a_folder_that_is_read_only_is_told(nbspam, model, command, message, assert_sentence):
    nbspam(*TEACH, model, stdin=SPAM)
    before = model.read_bytes()
    model.parent.chmod(0o500)
    try:
        assert_sentence(nbspam(*command, model, stdin=message), model, "Permission denied")
    finally:
        model.parent.chmod(0o700)
    assert before == model.read_bytes()


@each(
    "sizes, small",
    [
        ({"ham": 4_000, "spam": 700, "hma": 1}, ["hma"]),
        ({"ham": 4_000, "spam": 700, "hma": 5, "spma": 2}, ["hma", "spma"]),
        *(({"ham": 4_000, "spam": 700, "hma": 6}, []), ({"ham": 40, "spam": 20, "promo": 3}, [])),
        *(({"ham": 4_000, "spam": 3}, []), ({"ham": 4_000, "spam": 3, "promo": 3}, []), ({}, [])),
    ],
)
def test_which_classes_are_so_small_that_they_may_be_mistakes(sizes, small):
    assert rare_classes(sizes) == small


@each("right", [29, 57, 58])
def test_a_beginner_is_told_the_whole_number_of_messages(right):
    """100 times .29 is less than 29 in floating point."""
    counts = count_verdicts({("a", "a"): right, ("a", "b"): 100 - right}, None)
    (found,) = expectation(left_out_rates(counts, counts), 3)
    assert found == f"{right} in 100 new messages would be classified correctly"


def test_sources_of_many_messages_are_kept():
    sizes, pending, ham = ClassSizes(), PendingMessages(), 2_500
    pending.add(
        sizes(
            TokenizedMessage(
                f"t\udcff/{i}", ("ham", "spam")[i >= ham], [], f"{i % ham:016x}{0:016x}"
            )
            for i in range(ham + 3)
        )
    )
    with pytest.raises(TrainingError, match=r"^3 messages are in two") as error:
        sizes.report_shared(*pending.shared(), quiet=True, strict=True)
    named = "; ".join(f"t\udcff/{i} as ham and t\udcff/{i + ham} as spam" for i in range(3))
    assert f"({named})" in str(error.value)
    assert sizes.n_shared == 3


# Every command that changes a model keeps its mode, waits for its lock, and says that it waits

COMMANDS = """train --replace messages.tsv
train --update --spam more
train --update -q more.tsv
forget messages.tsv
forget -q messages.tsv
model set --spam-cutoff 0.8
model prune --min-count 2""".splitlines()


@pytest.fixture
def shared(model, tmp_path, monkeypatch):
    """Return a model that everybody may read, beside what the commands need."""
    for name, text in (
        ("more", "claim a free prize now\n"),
        ("more.tsv", "ham\tclaim a free prize now\n"),
    ):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NBSPAM_MODEL", "model.json")
    model.chmod(0o644)
    return model


def test_every_command_keeps_the_mode_and_the_server_too(nbspam, shared):
    whole = shared.read_bytes()

    for command in (*COMMANDS, "the server"):
        before = shared.stat().st_ino
        if command == "the server":
            requests = [LearnRequest(SPAM, is_spam=True)]
            assert apply_requests(shared, requests, QUIET_WAIT) == ["learned"]
        else:
            assert nbspam(*command.split()).code == 0, command
        after = shared.stat()
        assert after.st_ino != before, f"{command} has written nothing"
        assert stat.S_IMODE(after.st_mode) == 0o644, command
        shared.write_bytes(whole)
    pruned = shared.with_name("pruned.json")  # a new name has its own
    assert nbspam("model", "prune", "--min-count", "2", "-o", pruned).code == 0
    assert stat.S_IMODE(pruned.stat().st_mode) == 0o600


@pytest.mark.long
def test_a_lock_that_stays_held(nbspam, shared, monkeypatch, assert_sentence):
    before, acquired = shared.read_bytes(), writing._acquired

    def soon(path, lock, wait):
        return acquired(path, lock, wait._replace(limit=0.05))

    monkeypatch.setattr(writing, "_acquired", soon)
    for command in COMMANDS:
        with shared.with_name(".model.json.lock").open("r+") as holder:
            fcntl.flock(holder, fcntl.LOCK_EX)
            found = nbspam(*command.split())
        assert_sentence(found, "model.json", "its lock", "nothing was changed", code=75)
        assert shared.read_bytes() == before, command


@pytest.mark.few(1)
@pytest.mark.parametrize("quiet", [False, True])
def test_a_wait_is_told_and_then_it_is_learned(shared, quiet):
    before = shared.read_bytes()
    learn = ["train", "--update", *(["-q"] if quiet else []), "--spam", "more"]
    with shared.with_name(".model.json.lock").open("r+") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with subprocess.Popen(
            [sys.executable, "-m", "nbspam", *learn],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            said = time.sleep(3) if quiet else process.stderr.readline()
            fcntl.flock(holder, fcntl.LOCK_UN)
            assert process.stderr.read() == ""
    assert process.returncode == 0
    assert shared.read_bytes() != before
    waiting = f"nbspam: {shared}: waiting for its lock {shared.parent}/.model.json"
    assert quiet or said.startswith(waiting)


@each(
    "marks, says",
    [
        (
            ("inbox", "junk"),
            "each of 'header:inbox' (in 50 of 50 ham, in 0 of 50 spam), 'header:junk' (in 0 of 50"
            " ham, in 50 of 50 spam) alone tells ham from spam: they are not used,",
        ),
        (
            ("", "junk one two three"),
            "'header:three' (in 0 of 50 ham, in 50 of 50 spam), 1 more alone tells ham from spam",
        ),
        (("same", "same"), ""),
    ],
)
def test_words_that_alone_tell_the_classes_are_named(nbspam, tmp_path, marks, says):
    for name, mark in zip(("ham", "spam"), marks, strict=True):
        for number in range(50):
            mail = tmp_path / "mails" / name / str(number)
            mail.parent.mkdir(parents=True, exist_ok=True)
            mail.write_text(f"Errors-To: x-errors {mark}\nMessage-ID: <{number}>\n\nhello {name}\n")
    source = tmp_path / "model.json", tmp_path / "mails"
    found = nbspam("train", "--replace", "-m", *source)
    assert found.code == 0
    assert says in found.err
    assert ("alone" in found.err) is bool(says)
    assert nbspam("train", "-q", "--replace", "-m", *source).err == ""


@each(
    "command", ["train -m new.json", "train --update -m new.json", "train --update -m model.json"]
)
@each("sources", ["--ham in.mbox", "--ham - --input-format mbox", "--ham new --spam in.mbox"])
@each("status", ["", "Status: O\n"])
def test_that_nothing_was_read_is_said(nbspam, model, monkeypatch, command, sources, status):
    """An mbox without Status lines, or with none of a read message; a Maildir of new mail."""
    monkeypatch.chdir(model.parent)
    for name in ("cur", "new"):
        model.with_name("new").joinpath(name).mkdir(parents=True, exist_ok=True)
    mail = f"From: a@example.org\n{status}Subject: x\n\nlunch\n"
    model.with_name("new").joinpath("new", "1").write_text(mail)
    mbox = f"From a@example.org Mon Nov 23 10:00:00 2026\n{mail}\n".encode()
    model.with_name("in.mbox").write_bytes(mbox)
    arguments = *command.split(), *sources.split()
    said = "no message is marked as read by its owner, so none was learned; leave out --seen to"
    assert said in nbspam(*arguments, "--seen", stdin=mbox).err
    assert said not in nbspam(*arguments, "--seen", "-q", stdin=mbox).err
    assert said not in nbspam(*arguments, stdin=mbox).err
    model.with_name("new.json").unlink(missing_ok=True)
