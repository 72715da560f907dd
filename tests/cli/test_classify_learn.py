"""`nbspam classify --learn`, and its short lines."""

import fcntl
import json
import os
import subprocess
import sys
import time

import pytest
from many_cases import in_turn

import nbspam.cli.classify as classify_module
from nbspam.cli import self_training
from nbspam.learning.self_training import FEWEST

SPAM = b"From: a@example.org\nMessage-ID: <1@a>\nSubject: prize\n\nwin a free prize now, claim it\n"
HAM = (
    b"From: b@example.org\nMessage-ID: <2@b>\nSubject: lunch\n\nlunch at noon, the meeting notes\n"
)
UNSURE = b"From: c@example.org\nMessage-ID: <3@c>\nSubject: hm\n\nzebra quagga okapi\n"
SPAM_WORDS = "free prize win cash claim now winner today".split()
HAM_WORDS = "lunch noon meeting notes see you train desk".split()


def mail(number, words):
    text = " ".join(words[(number + i) % len(words)] for i in range(5))
    return f"From: x{number % 7}@example.org\nSubject: {text}\n\n{text} and {number}\n"


N = FEWEST + 10


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a model that has learned enough to learn by itself; not to be changed."""
    folder = tmp_path_factory.mktemp("trained")
    for label, words in (("spam", SPAM_WORDS), ("ham", HAM_WORDS)):
        (folder / "mail" / label).mkdir(parents=True)
        for n in range(N):
            (folder / "mail" / label / f"{n:03}").write_text(mail(n, words))
    path = folder / "model.json"
    command = [sys.executable, "-m", "nbspam", "train", "-q", folder / "mail", "-m", path]
    subprocess.run(command, check=True)
    return path


@pytest.fixture
def model(trained, tmp_path):
    """Return a copy of that model."""
    path = tmp_path / "model.json"
    path.write_bytes(trained.read_bytes())
    path.with_name(".model.json.lock").touch()
    return path


def messages(model):
    fields = json.loads(model.read_bytes())
    return dict(zip(fields["classes"], fields["messages"], strict=True))


def counts(model):
    fields = json.loads(model.read_bytes())
    return {key: fields[key] for key in ("messages", "tokens", "learned")}


@pytest.mark.parametrize("options", [(), ("--exit-code",), ("-p",)])
def test_what_is_sure_is_learned_once(nbspam, model, options):
    for _ in range(3):
        for mail in (SPAM, HAM, UNSURE):
            assert nbspam("classify", "--learn", "-m", model, *options, stdin=mail).err == ""
    assert messages(model) == {"ham": N + 1, "spam": N + 1}
    assert nbspam("model", "check", "-m", model).code == 0


def test_it_is_learned_as_training_learns_it(nbspam, model, tmp_path):
    other = tmp_path / "other.json"
    other.write_bytes(model.read_bytes())
    nbspam("classify", "-p", "--learn", "-m", model, stdin=SPAM)
    nbspam("train", "--update", "--spam", "-", "-m", other, stdin=SPAM)
    assert model.read_bytes() == other.read_bytes()


def test_without_it_nothing_is_learned(nbspam, model):
    before = model.read_bytes()
    for options in ((), ("-p",), ("--exit-code",)):
        nbspam("classify", "-m", model, *options, stdin=SPAM)
    assert model.read_bytes() == before


def test_the_verdict_is_that_of_the_model_before(nbspam, model):
    plain = nbspam("classify", "-m", model, stdin=SPAM).out
    assert nbspam("classify", "--learn", "-m", model, stdin=SPAM).out == plain


def test_what_the_user_has_taught_stays(nbspam, model, tmp_path):
    nbspam("train", "--update", "--ham", "-", "-m", model, stdin=SPAM)
    (tmp_path / "more").mkdir()
    for n in range(150):
        (tmp_path / "more" / str(n)).write_bytes(SPAM.replace(b"<1@a>", b"<%d@more>" % n))
    nbspam("train", "--update", "-q", "--spam", tmp_path / "more", "-m", model)
    before = model.read_bytes()
    options = ("--spam-cutoff", "0.5", "--learn-from", "0.5", "-m", model)
    found = nbspam("classify", "--learn", *options, stdin=SPAM)
    assert found.out.startswith("spam")  # it is judged so all the same
    assert model.read_bytes() == before


@pytest.mark.parametrize("tag", [(), ("--subject-tag", "[SPAM]"), ("--header", "X-My-Verdict")])
def test_a_correction_moves_what_was_learned(nbspam, model, tag):
    passed = nbspam("classify", "-p", "--learn", "-m", model, *tag, stdin=SPAM).out
    assert messages(model) == {"ham": N, "spam": N + 1}
    # The user finds it in the Junk folder, with the verdict in its header.
    found = nbspam(
        *("train", "--update", "--ham", "-", "--format", "json", "-m", model),
        stdin=passed.encode(),
    )
    assert json.loads(found.out)["moved"] == 1
    assert messages(model) == {"ham": N + 1, "spam": N}
    nbspam("classify", "--learn", "-m", model, stdin=passed.encode())
    assert messages(model) == {"ham": N + 1, "spam": N}
    assert nbspam("model", "check", "-m", model).code == 0


def test_what_was_learned_is_forgotten(nbspam, model):
    before = counts(model)
    nbspam("classify", "--learn", "-m", model, stdin=SPAM)
    assert counts(model) != before
    nbspam("forget", "-m", model, stdin=SPAM)
    assert counts(model) == before


def test_the_bound(nbspam, model):
    probability = float(nbspam("classify", "--terse", "-m", model, stdin=HAM).out.split()[1])
    before = model.read_bytes()
    above = 1 - probability + 1e-4
    assert above <= 1
    nbspam("classify", "--learn", "--learn-from", above, "-m", model, stdin=HAM)
    assert model.read_bytes() == before
    nbspam("classify", "--learn", "--learn-from", 1 - probability - 1e-4, "-m", model, stdin=HAM)
    assert messages(model) == {"ham": N + 1, "spam": N}


@in_turn("bound", ["0.4", "1.1", "nan", "much"])
def test_senseless_bounds(nbspam, model, bound):
    before = model.read_bytes()
    found = nbspam("classify", "--learn", "--learn-from", bound, "-m", model, stdin=HAM)
    assert (found.code, found.out) == (2, "")
    assert "--learn-from" in found.err
    assert model.read_bytes() == before


def test_a_bound_without_it(nbspam, model, assert_sentence):
    found = nbspam("classify", "--learn-from", "0.99", "-m", model, stdin=HAM)
    assert_sentence(found, "--learn", code=2)


def test_many_messages_each_once(nbspam, model, tmp_path):
    (tmp_path / "new.mbox").write_bytes(
        b"".join(b"From x Mon Jan  1 00:00:00 2024\n" + m + b"\n" for m in (SPAM, HAM, SPAM))
    )
    found = nbspam("classify", "--learn", "-m", model, tmp_path / "new.mbox")
    assert [line.split()[0] for line in found.out.splitlines()] == ["spam", "ham", "spam"]
    assert messages(model) == {"ham": N + 1, "spam": N + 1}


def test_a_small_model_learns_nothing_and_fills_no_log(nbspam, table, make_model):
    model = make_model(table)
    before = model.read_bytes()
    for options in ((), ("-p",), ("--exit-code",)):
        plain = nbspam("classify", "-m", model, *options, stdin=SPAM)
        assert nbspam("classify", "--learn", "-m", model, *options, stdin=SPAM) == plain
        assert plain.err == ""
    assert model.read_bytes() == before


def test_model_info_says_that_it_learns_nothing(nbspam, table, make_model, model):
    said = "has learned 18 ham and 12 spam, so classify --learn learns nothing; teach it 500"
    printed = nbspam("model", "info", "-m", make_model(table, name="small.json")).out
    assert said in " ".join(printed.split())
    assert "--learn" not in nbspam("model", "info", "-m", model).out


def test_three_classes(nbspam, three_classes, make_model):
    three_classes.write_text(three_classes.read_text() * 63)
    model = make_model(three_classes, "--no-ledger")
    text = b"shoes on sale, new shoes in the shop this week"
    sure = nbspam("classify", "--format", "json", "-m", model, stdin=text).out
    probability = json.loads(sure)["probabilities"]["promo"]
    before = messages(model)
    nbspam("classify", "--learn", "--learn-from", probability - 1e-9, "-m", model, stdin=text)
    assert messages(model) == before | {"promo": before["promo"] + 1}


# In the mail path


@pytest.fixture
def held(model):
    """Hold the model's lock."""
    with (model.parent / ".model.json.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield model


@pytest.mark.parametrize(("options", "code"), [(("-p",), 0), (("--exit-code",), 0)])
def test_a_held_lock_delays_mail_by_no_more_than_the_bound(
    nbspam, held, monkeypatch, options, code
):
    monkeypatch.setattr(self_training, "MAIL_LIMIT", 0.3)
    plain = nbspam("classify", "-m", held, *options, stdin=SPAM)
    before, started = held.read_bytes(), time.monotonic()
    found = nbspam("classify", "--learn", "-m", held, *options, stdin=SPAM)
    assert time.monotonic() - started < 3
    assert (found.code, found.out) == (code, plain.out) == (plain.code, plain.out)
    assert found.err.startswith("nbspam: nothing was learned: ")
    assert found.err.count("\n") == 1
    assert held.read_bytes() == before


def test_without_a_promise_a_held_lock_is_an_error(nbspam, held, monkeypatch):
    from nbspam.cli import notes
    from nbspam.store.lock import LockWait

    monkeypatch.setattr(self_training, "lock_wait", lambda quiet: LockWait(limit=0.2))
    assert notes
    found = nbspam("classify", "--learn", "-m", held, stdin=SPAM)
    assert (found.code, found.out.split("\t")[0]) == (75, "spam")
    assert "its lock" in found.err


def test_the_message_is_out_before_the_lock_is_asked_for(model):
    with (model.parent / ".model.json.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = [sys.executable, "-m", "nbspam", "classify", "-p", "--learn", "-m", str(model)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process.stdin.write(SPAM)
        process.stdin.close()
        out = b""
        while not out.endswith(b"claim it\n"):
            part = os.read(process.stdout.fileno(), 1 << 16)
            assert part
            out += part
        assert process.poll() is None  # it waits for the lock
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert process.wait(60) == 0
        assert process.stderr.read() == b""
        process.stdout.close()
        process.stderr.close()
    assert b"\nX-Nbspam: spam" in out
    assert messages(model) == {"ham": N, "spam": N + 1}


@in_turn("error", [OSError(28, "No space left"), MemoryError, KeyboardInterrupt])
@in_turn("options", [("-p",), ("-p", "--exit-code"), ("--exit-code",)])
def test_whatever_fails_the_verdict_stands(nbspam, model, monkeypatch, error, options):
    def fail(*_, **__):
        raise error

    plain = nbspam("classify", "-m", model, *options, stdin=HAM)
    monkeypatch.setattr("nbspam.learning.update.write_atomically", fail)
    before = model.read_bytes()
    found = nbspam("classify", "--learn", "-m", model, *options, stdin=HAM)
    assert (found.code, found.out) == (plain.code, plain.out)
    assert found.err.count("\n") == 1
    assert "nothing was learned" in found.err
    assert model.read_bytes() == before


def test_a_damaged_file_of_learning_does_not_keep_the_message(nbspam, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "nbspam.cli.self_training", None)
    plain = nbspam("classify", "-p", "-m", model, stdin=SPAM)
    found = nbspam("classify", "-p", "--learn", "-m", model, stdin=SPAM)
    assert (found.code, found.out) == (0, plain.out)
    assert "not learned" in found.err


def test_a_model_that_goes_meanwhile_is_not_begun_anew(nbspam, model, monkeypatch):
    judge = classify_module.Filter.judge

    def remove(self, message):
        model.unlink(missing_ok=True)
        return judge(self, message)

    monkeypatch.setattr(classify_module.Filter, "judge", remove)
    found = nbspam("classify", "-p", "--learn", "-m", model, stdin=SPAM)
    assert found.code == 0
    assert "nothing was learned" in found.err
    assert not model.exists()


@pytest.mark.long
@pytest.mark.parametrize("deliveries", [2, 7])
def test_learners_at_once_lose_nothing(model, deliveries):
    """Deliveries and a user who teaches, all at the same time."""
    command = [sys.executable, "-m", "nbspam"]
    processes = []
    for n in range(deliveries + 1):
        text = SPAM.replace(b"<1@a>", b"<%d@many>" % n)
        learn = ["classify", "-p", "--learn", "-m", str(model)]
        if n == deliveries:  # another text: of the same, the next verdicts would be less sure
            text = HAM.replace(b"<2@b>", b"<new@b>")
            learn = ["train", "--update", "--ham", "-", "-m", str(model)]
        process = subprocess.Popen(
            [*command, *learn],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        process.stdin.write(text)
        process.stdin.close()
        processes.append(process)
    for process in processes:
        assert process.wait(120) == 0
        assert process.stderr.read() == b""
        process.stderr.close()
    assert messages(model) == {"ham": N + 1, "spam": N + deliveries}


# Short lines


def test_a_short_line_for_one_message(nbspam, model):
    for mail, cut_off, letter in ((SPAM, 0.9, "S"), (HAM, 0.9, "H"), (SPAM, 1, "U")):
        options = ("--spam-cutoff", cut_off, "-m", model)
        long = nbspam("classify", "--format", "json", *options, stdin=mail).out
        expected = f"{letter} {json.loads(long)['probability']:.6f}\n"
        assert nbspam("classify", "--terse", *options, stdin=mail).out == expected


def test_short_lines_name_the_source_of_several(nbspam, model, tmp_path):
    table = tmp_path / "two lines.txt"
    table.write_text("win a free prize now\nlunch at noon\n")
    found = nbspam("classify", "--terse", "--lines", "-m", model, table).out.splitlines()
    assert [line.split(" ", 2)[2] for line in found] == [f"{table}:1", f"{table}:2"]


def test_short_lines_of_a_spam_class_by_another_name(nbspam, table, make_model):
    table.write_text(table.read_text().replace("spam\t", "aaa\t"))
    model = make_model(table, "--spam-label", "aaa")
    found = nbspam("classify", "--terse", "-m", model, "--ham-cost", "1", stdin=b"free prize")
    assert found.out.startswith("S ")


def test_what_short_lines_cannot_be(nbspam, model, three_classes, make_model, assert_sentence):
    assert_sentence(
        nbspam("classify", "--terse", "--format", "json", "-m", model, stdin=SPAM),
        "--terse",
        code=2,
    )
    three = make_model(three_classes, name="three.json")
    assert_sentence(
        nbspam("classify", "--terse", "-m", three, stdin=SPAM), "3 classes", "json", code=2
    )
    found = nbspam("classify", "--terse", "-p", "-m", model, stdin=SPAM)
    assert (found.code, found.out) == (75, SPAM.decode())
