"""What `train` and the others that change a model do beyond a session: locks, pipes, processes."""

import fcntl
import os
import stat
import subprocess
import sys
import time

import pytest
from one_case import each
from one_server import write_mailboxes

from nbspam.cli.learning_options import LabelTally
from nbspam.errors import TrainingError
from nbspam.evaluation.estimate import Estimate
from nbspam.evaluation.messages import SuspectLabels
from nbspam.evaluation.metrics import count_verdicts, left_out_rates
from nbspam.filter import open_filter
from nbspam.learning.update import PendingMessages
from nbspam.names import rare_classes
from nbspam.reading.message import parse
from nbspam.serving.teaching import Lesson, TeachResult, apply_lessons
from nbspam.store.writing import QUIET_WAIT
from nbspam.tokens.tokenized import TokenizedMessage, tokenize

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
    rates, texts = left_out_rates(counts, counts), dict.fromkeys("abc", 40)
    (found,) = Estimate(rates, SuspectLabels(), [], texts).beginner_estimate(None)
    assert found == f"{right} in 100 new messages would be classified correctly"


@each(
    "marked, ham, texts, missed, lines",
    [
        (0, 150, 150, 5, ["fewer than 2 in 100 leg", "90 in 100 spam"]),
        (0, 2000, 2000, 0, ["fewer than 1 in 100 leg", "more than 94 in 100 spam"]),
        (0, 2000, 20, 0, ["fewer than 12 in 100 leg", "more than 94 in 100 spam"]),  # copies
        (30, 1000, 1000, 1, ["fewer than 5 in 100 leg", "98 in 100 spam"]),
    ],
)
def test_the_ham_that_may_be_lost_is_an_upper_bound(marked, ham, texts, missed, lines):
    called = {("ham", "spam"): marked, ("ham", "ham"): ham - marked}
    called |= {("spam", "unsure"): missed, ("spam", "spam"): 50 - missed}
    counts = count_verdicts(called, "spam")
    rates, n_texts = left_out_rates(counts, counts), {"ham": texts, "spam": 50}
    found = Estimate(rates, SuspectLabels(), [], n_texts).beginner_estimate("spam")
    assert [line.startswith(part) for line, part in zip(found, lines, strict=True)] == [True, True]


def test_sources_of_many_messages_are_kept():
    sizes, pending, ham = LabelTally(), PendingMessages(), 2_500
    pending.add(
        sizes(
            TokenizedMessage(
                f"t\udcff/{i}", ("ham", "spam")[i >= ham], [], f"{i % ham:016x}{0:016x}"
            )
            for i in range(ham + 3)
        )
    )
    with pytest.raises(TrainingError, match=r"^3 messages are in two") as error:
        sizes.note_shared_messages(*pending.messages_in_two_classes(), quiet=True, strict=True)
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
            with open_filter(shared) as spam_filter:
                outputs = spam_filter.version.outputs
                lesson = Lesson(True, tokenize(parse(SPAM), digest=True, outputs=outputs))
                done = apply_lessons(spam_filter, [lesson], QUIET_WAIT)
            assert done == [TeachResult("learned")]
        else:
            assert nbspam(*command.split()).code == 0, command
        after = shared.stat()
        assert after.st_ino != before, f"{command} has written nothing"
        assert stat.S_IMODE(after.st_mode) == 0o644, command
        shared.write_bytes(whole)
    pruned = shared.with_name("pruned.json")  # a new name has its own
    assert nbspam("model", "prune", "--min-count", "2", "-o", pruned).code == 0
    assert stat.S_IMODE(pruned.stat().st_mode) == 0o600


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
    assert quiet or waiting in said


@each(
    "marks, says",
    [
        (
            ("inbox", "junk"),
            "each of 'header:inbox' (in 50 of 50 ham, in 0 of 50 spam), 'header:junk' (in 0 of 50"
            " ham, in 50 of 50 spam) separates ham from spam by itself: they are not used,",
        ),
        (
            ("", "junk one two three"),
            "'header:three' (in 0 of 50 ham, in 50 of 50 spam), 1 more separates ham from spam",
        ),
        (("same", "same"), ""),
    ],
)
def test_words_that_alone_tell_the_classes_are_named(nbspam, tmp_path, marks, says):
    for name, mark in zip(("ham", "spam"), marks, strict=True):
        for number in range(50):
            mail = tmp_path / "mails" / name / str(number)
            mail.parent.mkdir(parents=True, exist_ok=True)
            mail.write_text(
                f"Errors-To: x-errors {mark}\nMessage-ID: <{name}{number}>\n\nhello {name}\n"
            )
    source = tmp_path / "model.json", tmp_path / "mails"
    found = nbspam("train", "--replace", "-m", *source)
    assert found.code == 0
    assert says in found.err
    assert ("by itself" in found.err) is bool(says)
    assert nbspam("train", "-q", "--replace", "-m", *source).err == ""


@pytest.mark.parametrize("command", ["train", "eval"])
def test_copies_of_mails_are_left_out_and_counted(nbspam, tmp_path, command):
    """Two folders of one account hold the same mail; the same text may come often."""
    texts = {"ham": "see you at lunch", "spam": "win a free prize"}
    ham, spam = write_mailboxes(tmp_path, texts, 12)
    model = ("-m", tmp_path / "model.json") * (command == "train")
    folds = ("--folds", "2") * (command == "eval")
    again = tmp_path / "again.mbox"
    again.write_bytes(ham.read_bytes())
    options = ("--ham", ham, "--ham", again, "--spam", spam)
    done = nbspam(command, *model, *folds, *options)
    assert "nbspam: 12 copies of mails that were read before are left out\n" in done.err
    assert "24 messages" in done.out
    replace = ("--replace",) * (command == "train")
    assert nbspam(command, *model, *folds, *replace, "-q", *options).err == ""
    if command == "eval":  # of mail as it comes each is judged
        assert "35 messages" in nbspam("eval", "--online", *options).out


def test_the_model_is_saved_though_nobody_reads_the_output(tmp_path, table):
    model = tmp_path / "new.json"
    command = [sys.executable, "-m", "nbspam", "train", "-m", model, table]
    for more in ([], ["--update"]):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([*command, *more], stdout=write, stderr=subprocess.PIPE, check=False)
        os.close(write)
        assert (done.returncode, done.stderr) == (0, b"")
    assert model.exists()


NOBODY = """
import os, pwd, sys
def unknown(*args): raise KeyError("no passwd entry")
pwd.getpwuid = pwd.getpwnam = unknown
for name in ("HOME", "XDG_DATA_HOME", "NBSPAM_MODEL"):
    os.environ.pop(name, None)
sys.argv[0] = "nbspam"
from nbspam.__main__ import main
main()
"""


@each(
    "command, code, said",
    [
        ("train -q -m new.json {table}", 0, b""),
        ("eval -q --folds 2 {table}", 0, b""),
        (
            "train {table}",
            2,
            b"no home folder for the model; set NBSPAM_MODEL, or name the model with --model",
        ),
        (
            "eval {table}",
            2,
            b"no home folder for the model; set NBSPAM_MODEL, or name the model with --model",
        ),
    ],
)
def test_a_user_without_a_home_names_the_model_where_one_is_needed(
    command, code, said, tmp_path, table
):
    arguments = command.format(table=table).split()
    program = [sys.executable, "-c", NOBODY, *arguments]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
