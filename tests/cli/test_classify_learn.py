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
from nbspam.store.lock import LockWait

SPAM = b"From: a@example.org\nMessage-ID: <1@a>\nSubject: prize\n\nwin a free prize now, claim it\n"
HAM = (
    b"From: b@example.org\nMessage-ID: <2@b>\nSubject: lunch\n\nlunch at noon, the meeting notes\n"
)
UNSURE = b"From: c@example.org\nMessage-ID: <3@c>\nSubject: hm\n\nzebra quagga okapi\n"
WORDS = {
    "spam": "free prize win cash claim now winner today".split(),
    "ham": "lunch noon meeting notes see you train desk".split(),
}
PROGRAM = [sys.executable, "-m", "nbspam"]
N = FEWEST + 10


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a model that has learned enough to learn by itself; not to be changed."""
    folder = tmp_path_factory.mktemp("trained")
    for label, words in WORDS.items():
        (folder / "mail" / label).mkdir(parents=True)
        for n in range(N):
            text = " ".join(words[(n + i) % len(words)] for i in range(5))
            mail = f"From: x{n % 7}@example.org\nSubject: {text}\n\n{text} and {n}\n"
            (folder / "mail" / label / f"{n:03}").write_text(mail)
    path = folder / "model.json"
    subprocess.run([*PROGRAM, "train", "-q", folder / "mail", "-m", path], check=True)
    return path


@pytest.fixture
def model(trained, tmp_path):
    """Return a copy of that model."""
    path = tmp_path / "model.json"
    path.write_bytes(trained.read_bytes())
    path.with_name(".model.json.lock").touch()
    return path


@pytest.fixture
def small(table, make_model):
    """Return a model that has learned too little to learn by itself."""
    return make_model(table, name="small.json")


@pytest.fixture
def learning(nbspam, model):
    """Return a function that classifies a message and learns it."""

    def run(message, *options):
        return nbspam("classify", "--learn", "-m", model, *options, stdin=message)

    return run


def messages(model):
    fields = json.loads(model.read_bytes())
    return dict(zip(fields["classes"], fields["messages"], strict=True))


def counts(model):
    fields = json.loads(model.read_bytes())
    return {key: fields[key] for key in ("messages", "tokens", "learned")}


@in_turn("options", [(), ("--exit-code",), ("-p",)])
def test_what_is_sure_is_learned_once_and_without_the_option_nothing(
    nbspam, trained, model, learning, options
):
    model.write_bytes(trained.read_bytes())
    plain = nbspam("classify", "-m", model, *options, stdin=SPAM)
    assert model.read_bytes() == trained.read_bytes()
    assert learning(SPAM, *options) == plain  # the verdict is that of the model before
    for mail in (SPAM, HAM, UNSURE) * 2:
        assert learning(mail, *options).err == ""
    assert messages(model) == {"ham": N + 1, "spam": N + 1}
    assert nbspam("model", "check", "-m", model).code == 0


def test_it_is_learned_as_training_learns_it_and_forgotten(nbspam, model, learning, tmp_path):
    other = tmp_path / "other.json"
    other.write_bytes(model.read_bytes())
    before = counts(model)
    learning(SPAM, "-p")
    nbspam("train", "--update", "--spam", "-", "-m", other, stdin=SPAM)
    assert model.read_bytes() == other.read_bytes()
    nbspam("forget", "-m", model, stdin=SPAM)
    assert counts(model) == before


def test_what_the_user_has_taught_stays(nbspam, model, learning, tmp_path):
    nbspam("train", "--update", "--ham", "-", "-m", model, stdin=SPAM)
    (tmp_path / "more").mkdir()
    for n in range(150):
        (tmp_path / "more" / str(n)).write_bytes(SPAM.replace(b"<1@a>", b"<%d@more>" % n))
    nbspam("train", "--update", "-q", "--spam", tmp_path / "more", "-m", model)
    before = model.read_bytes()
    found = learning(SPAM, "--spam-cutoff", "0.5", "--learn-from", "0.5")
    assert found.out.startswith("spam")  # it is judged so all the same
    assert model.read_bytes() == before


@in_turn("tag", [(), ("--subject-tag", "[SPAM]"), ("--header", "X-My-Verdict")])
def test_a_correction_moves_what_was_learned(nbspam, as_json, trained, model, learning, tag):
    model.write_bytes(trained.read_bytes())
    passed = learning(SPAM, "-p", *tag).out.encode()
    assert messages(model) == {"ham": N, "spam": N + 1}
    # The user finds it in the Junk folder, with the verdict in its header.
    correction = ("train", "--update", "--ham", "-", "-m", model)
    assert as_json(*correction, stdin=passed)["moved"] == 1
    assert messages(model) == {"ham": N + 1, "spam": N}
    learning(passed)
    assert messages(model) == {"ham": N + 1, "spam": N}
    assert nbspam("model", "check", "-m", model).code == 0


def test_the_bound(nbspam, model, learning):
    probability = float(nbspam("classify", "--terse", "-m", model, stdin=HAM).out.split()[1])
    before = model.read_bytes()
    above = 1 - probability + 1e-4
    assert above <= 1
    learning(HAM, "--learn-from", above)
    assert model.read_bytes() == before
    learning(HAM, "--learn-from", 1 - probability - 1e-4)
    assert messages(model) == {"ham": N + 1, "spam": N}


def test_many_messages_each_once(nbspam, model, tmp_path):
    (tmp_path / "new.mbox").write_bytes(
        b"".join(b"From x Mon Jan  1 00:00:00 2024\n" + m + b"\n" for m in (SPAM, HAM, SPAM))
    )
    found = nbspam("classify", "--learn", "-m", model, tmp_path / "new.mbox")
    assert [line.split()[0] for line in found.out.splitlines()] == ["spam", "ham", "spam"]
    assert messages(model) == {"ham": N + 1, "spam": N + 1}


def test_a_small_model_learns_nothing_and_says_so_in_model_info_alone(nbspam, small, model):
    before = small.read_bytes()
    for options in ((), ("-p",), ("--exit-code",)):
        plain = nbspam("classify", "-m", small, *options, stdin=SPAM)
        assert nbspam("classify", "--learn", "-m", small, *options, stdin=SPAM) == plain
        assert plain.err == ""
    assert small.read_bytes() == before
    said = "has learned 18 ham and 12 spam, so classify --learn learns nothing; teach it 500"
    assert said in " ".join(nbspam("model", "info", "-m", small).out.split())
    assert "--learn" not in nbspam("model", "info", "-m", model).out


def test_three_classes(nbspam, as_json, three_classes, make_model, monkeypatch):
    monkeypatch.setattr("nbspam.learning.self_training.FEWEST", 5)
    model = make_model(three_classes, "--no-ledger")
    text = b"shoes on sale, new shoes in the shop this week"
    probability = as_json("classify", "-m", model, stdin=text)["probabilities"]["promo"]
    before = messages(model)
    nbspam("classify", "--learn", "--learn-from", probability - 1e-9, "-m", model, stdin=text)
    assert messages(model) == before | {"promo": before["promo"] + 1}


# In the mail path


@pytest.fixture
def lock(model):
    """Hold the model's lock."""
    with (model.parent / ".model.json.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


@pytest.mark.usefixtures("lock")
@in_turn("options", [("-p",), ("--exit-code",)])
def test_a_held_lock_delays_mail_by_no_more_than_the_bound(
    nbspam, model, learning, monkeypatch, options
):
    monkeypatch.setattr(self_training, "MAIL_LIMIT", 0.1)
    plain = nbspam("classify", "-m", model, *options, stdin=SPAM)
    before, started = model.read_bytes(), time.monotonic()
    found = learning(SPAM, *options)
    assert time.monotonic() - started < 5
    assert (found.code, found.out) == (0, plain.out) == (plain.code, plain.out)
    assert found.err.startswith("nbspam: nothing was learned: ")
    assert found.err.count("\n") == 1
    assert model.read_bytes() == before


@pytest.mark.usefixtures("lock")
def test_without_a_promise_a_held_lock_is_an_error(learning, monkeypatch):
    monkeypatch.setattr(self_training, "lock_wait", lambda quiet: LockWait(limit=0.1))
    found = learning(SPAM)
    assert (found.code, found.out.split("\t")[0]) == (75, "spam")
    assert "its lock" in found.err


def test_the_message_is_out_before_the_lock_is_asked_for(model, lock):
    command = [*PROGRAM, "classify", "-p", "--learn", "-m", str(model)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, **pipes) as process:
        process.stdin.write(SPAM)
        process.stdin.close()
        out = b""
        while not out.endswith(b"claim it\n"):
            part = os.read(process.stdout.fileno(), 1 << 16)
            assert part
            out += part
        assert process.poll() is None  # it waits for the lock
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert (process.wait(60), process.stderr.read()) == (0, b"")
    assert b"\nX-Nbspam: spam" in out
    assert messages(model) == {"ham": N, "spam": N + 1}


@in_turn("error", [OSError(28, "No space left"), MemoryError, KeyboardInterrupt])
@in_turn("options", [("-p",), ("-p", "--exit-code"), ("--exit-code",)])
def test_whatever_fails_the_verdict_stands(nbspam, model, learning, monkeypatch, error, options):
    def fail(*_, **__):
        raise error

    plain = nbspam("classify", "-m", model, *options, stdin=HAM)
    monkeypatch.setattr("nbspam.learning.update.write_atomically", fail)
    before = model.read_bytes()
    found = learning(HAM, *options)
    assert (found.code, found.out) == (plain.code, plain.out)
    assert (found.err.count("\n"), "nothing was learned" in found.err) == (1, True)
    assert model.read_bytes() == before


def test_a_damaged_file_of_learning_does_not_keep_the_message(nbspam, model, learning, monkeypatch):
    monkeypatch.setitem(sys.modules, "nbspam.cli.self_training", None)
    plain = nbspam("classify", "-p", "-m", model, stdin=SPAM)
    found = learning(SPAM, "-p")
    assert (found.code, found.out) == (0, plain.out)
    assert "not learned" in found.err


def test_a_model_that_goes_meanwhile_is_not_begun_anew(model, learning, monkeypatch):
    judge = classify_module.Filter.judge

    def remove(self, message):
        model.unlink(missing_ok=True)
        return judge(self, message)

    monkeypatch.setattr(classify_module.Filter, "judge", remove)
    found = learning(SPAM, "-p")
    assert (found.code, "nothing was learned" in found.err) == (0, True)
    assert not model.exists()


@pytest.mark.long
@pytest.mark.parametrize("deliveries", [2, 7])
def test_learners_at_once_lose_nothing(model, deliveries):
    """Deliveries and a user who teaches, all at the same time."""
    processes = []
    for n in range(deliveries + 1):
        text = SPAM.replace(b"<1@a>", b"<%d@many>" % n)
        learn = ["classify", "-p", "--learn", "-m", str(model)]
        if n == deliveries:  # another text: of the same, the next verdicts would be less sure
            text = HAM.replace(b"<2@b>", b"<new@b>")
            learn = ["train", "--update", "--ham", "-", "-m", str(model)]
        process = subprocess.Popen(
            [*PROGRAM, *learn],
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


def test_a_short_line_for_each_message(nbspam, as_json, model, tmp_path):
    for mail, cut_off, letter in ((SPAM, 0.9, "S"), (HAM, 0.9, "H"), (SPAM, 1, "U")):
        options = ("classify", "--spam-cutoff", cut_off, "-m", model)
        expected = f"{letter} {as_json(*options, stdin=mail)['probability']:.6f}\n"
        assert nbspam(*options, "--terse", stdin=mail).out == expected
    lines = tmp_path / "two lines.txt"
    lines.write_text("win a free prize now\nlunch at noon\n")
    found = nbspam("classify", "--terse", "--lines", "-m", model, lines).out.splitlines()
    assert [line.split(" ", 2)[2] for line in found] == [f"{lines}:1", f"{lines}:2"]
    found = nbspam("classify", "--terse", "-p", "-m", model, stdin=SPAM)
    assert (found.code, found.out) == (75, SPAM.decode())


def test_short_lines_of_a_spam_class_by_another_name(nbspam, table, make_model):
    table.write_text(table.read_text().replace("spam\t", "aaa\t"))
    model = make_model(table, "--spam-label", "aaa", name="other.json")
    found = nbspam("classify", "--terse", "-m", model, "--ham-cost", "1", stdin=b"free prize")
    assert found.out.startswith("S ")
