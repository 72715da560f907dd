"""Many processes at one model, and writers that are stopped in the middle."""

import itertools
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress

import learners
import pytest

from nbspam.store.lookup import read_model

DRIVER = [sys.executable, learners.__file__]
PROGRAM = [sys.executable, "-m", "nbspam"]


def start(*arguments, **options):
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(list(map(str, arguments)), **(pipes | options))


def finish(*processes, message=None):
    """Return what they printed; on a busy machine some wait for long, and say so."""
    printed = []
    for process in processes:
        out, err = process.communicate(message, timeout=300)
        notes = "waiting for its lock", "looks like", "look like"
        said = [s for s in err.decode().splitlines() if not any(note in s for note in notes)]
        assert (process.returncode, said) == (0, [])
        printed.append(out.decode())
    return printed


@contextmanager
def readers(model, number):
    """Classify in other processes as long as the block lasts; each must have, without an error."""
    processes = [start(*DRIVER, "classify", model, stdin=subprocess.PIPE) for _ in range(number)]
    for process in processes:
        assert process.stdout.readline() == b"begins\n"
    yield
    for out in finish(*processes):
        done, seen = map(int, out.split())
        assert done > 0
        assert seen > 0


def content(model):
    fields = json.loads(model.read_text())
    return {key: list(fields[key].items()) for key in ("tokens", "learned")} | {
        "messages": dict(zip(fields["classes"], fields["messages"], strict=True))
    }


def teaching(model, label="spam"):
    return ("train", "--update", f"--{label}", "-", "-m", model)


@pytest.fixture
def assert_learned(nbspam, tmp_path):
    """Return a function that checks a model: it is as if it had been trained on all at once."""

    def check(model, numbers):
        for number in numbers:
            folder = tmp_path / "all" / learners.label_of(number)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number:05}").write_bytes(learners.mail(number))
        trained = tmp_path / "trained.json"
        assert nbspam("train", "-q", tmp_path / "all", "-m", trained).code == 0
        assert content(trained) == content(model)
        found = nbspam("model", "check", "-m", model)
        assert (found.code, found.err) == (0, "")

    return check


@pytest.fixture
def begun(nbspam, tmp_path):
    """Return a model of the first six messages."""
    model = tmp_path / "model.json"
    for number in range(6):
        learn = teaching(model, learners.label_of(number))
        assert nbspam(*learn, stdin=learners.mail(number)) == (0, "", "")
    return model


SHORT_AND_LONG = pytest.mark.parametrize(
    ("writers", "each", "classifiers"),
    [(2, 4, 1), pytest.param(8, 12, 3, marks=pytest.mark.long)],
    ids=["short", "long"],
)


@SHORT_AND_LONG
@pytest.mark.few(1)
@pytest.mark.parametrize("there", [True, False], ids=["added", "made"])
def test_writers_at_once_lose_nothing_and_count_nothing_twice(
    tmp_path, begun, assert_learned, writers, each, classifiers, there
):
    """Each message is given to two of the writers; readers never see half a model."""
    model = begun if there else tmp_path / "new.json"
    with readers(model, classifiers):
        running = []
        for i in range(writers):
            own, next_one = i * each, (i + 1) % writers * each
            parts = (own, own + each, next_one, next_one + each)
            running.append(start(*DRIVER, "learn", model, *parts))
        finish(*running)
    assert_learned(model, range(max(6, writers * each)))
    left = {path.name for path in tmp_path.iterdir() if path.name.startswith(f".{model.name}")}
    assert left == {f".{model.name}.lock"}


@pytest.mark.long
@SHORT_AND_LONG
def test_learning_and_forgetting_at_once_lose_nothing(
    begun, assert_learned, writers, each, classifiers
):
    finish(start(*DRIVER, "learn", begun, 1_000, 1_000 + each))
    with readers(begun, classifiers):
        running = [start(*DRIVER, "forget", begun, 1_000, 1_000 + each)]
        running += [
            start(*DRIVER, "learn", begun, i * each, (i + 1) * each) for i in range(writers - 1)
        ]
        finish(*running)
    assert_learned(begun, range(max(6, (writers - 1) * each)))


@pytest.mark.few(1)
@pytest.mark.parametrize("writers", [2, 16])
def test_programs_at_once_make_one_model(tmp_path, assert_learned, writers):
    """As a mail reader's macro does it: a process a message, and no model yet."""
    model, numbers = tmp_path / "model.json", range(writers)
    commands = [teaching(model, learners.label_of(number)) for number in numbers]
    running = [start(*PROGRAM, *command, stdin=subprocess.PIPE) for command in commands]
    for number, process in zip(numbers, running, strict=True):
        assert finish(process, message=learners.mail(number)) == [""]
    assert_learned(model, numbers)


@pytest.mark.long
@pytest.mark.parametrize("sources", [2, 8])
def test_whole_trainings_at_once_make_one_model(tmp_path, assert_learned, sources):
    """Of those that find no model one makes it, and the others add to it."""
    model = tmp_path / "model.json"
    for number in range(6 * sources):
        folder = tmp_path / f"part{number // 6}" / learners.label_of(number)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}").write_bytes(learners.mail(number))
    command = [*PROGRAM, "train", "-q", "--update", "-m", model]
    finish(*[start(*command, tmp_path / f"part{i}") for i in range(sources)])
    assert_learned(model, range(6 * sources))


# Stopped in the middle


@pytest.mark.parametrize(
    "times", [6, pytest.param(60, marks=pytest.mark.long)], ids=["short", "long"]
)
def test_a_writer_killed_at_any_moment_leaves_a_whole_model(nbspam, begun, times):
    (found,) = finish(start(*DRIVER, "killed", begun, times, 7))
    assert 0 <= int(found) <= times
    if times >= 60:
        assert int(found) > 0  # else it was never killed while it wrote
    assert nbspam("model", "check", "-m", begun).code == 0
    assert sum(read_model(begun).metadata.learned.messages) >= max(6, times)


# Runs nbspam and stops it with a signal at a step of the save.
STOPPED = """
import os, pathlib, signal, sys
number, step = getattr(signal, sys.argv[1]), sys.argv[2]
def stop(function, after=False):
    def stopped(*arguments, **options):
        if after:
            function(*arguments, **options)
        os.kill(os.getpid(), number)
        return function(*arguments, **options)
    return stopped
if step == "open":
    real = os.open
    os.open = lambda path, *more, **options: (
        stop(real) if str(path).endswith(".new") else real)(path, *more, **options)
elif step == "write":
    from nbspam.store import model_file as splicing
    splicing.write_blocks = stop(splicing.write_blocks, after=True)
elif step == "fsync":
    os.fsync = stop(os.fsync)
elif step == "rename":
    pathlib.Path.replace = stop(pathlib.Path.replace)
elif step == "renamed":
    from nbspam.store import writing as replacing
    replacing._sync_folder = stop(replacing._sync_folder)
sys.argv = ["nbspam", *sys.argv[3:]]
from nbspam.__main__ import run
sys.exit(run())
"""
STEPS = ["open", "write", "fsync", "rename", "renamed"]
SIGNALS = ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"]
PAIRS = list(zip([*SIGNALS, "SIGKILL"], STEPS, strict=True))  # each signal and each step once


@pytest.mark.few(len(PAIRS))
@pytest.mark.parametrize(
    "name, step",
    [*PAIRS, *(pair for pair in itertools.product(SIGNALS, STEPS) if pair not in PAIRS)],
)
def test_a_writer_stopped_at_any_step_leaves_the_old_model_or_the_new(nbspam, begun, name, step):
    before, learn = begun.read_bytes(), teaching(begun)
    command = (sys.executable, "-c", STOPPED, name, step, *learn)
    process = start(*command, stdin=subprocess.PIPE)
    out, err = process.communicate(learners.mail(99), timeout=60)
    left = begun.with_name(f".{begun.name}.new")
    if name == "SIGINT":
        assert (process.returncode, out) == (130, b"")
        assert err.strip().startswith(b"nbspam: interrupted")
        assert err.strip().count(b"\n") == 0
    else:
        assert (process.returncode, out, err) == (-getattr(signal, name), b"", b"")
    assert name != "SIGINT" or not left.exists()  # what a killed one leaves the next one removes
    if step != "renamed":
        assert before == begun.read_bytes()
    assert nbspam("model", "check", "-m", begun).code == 0
    for _ in range(2):
        assert nbspam(*learn, stdin=learners.mail(99)) == (0, "", "")
    assert sum(read_model(begun).metadata.learned.messages) == 7
    assert not left.exists()


def test_a_writer_of_a_first_model_that_is_stopped_leaves_no_model(nbspam, tmp_path):
    command = (
        sys.executable,
        "-c",
        STOPPED,
        "SIGTERM",
        "fsync",
        *teaching(tmp_path / "model.json"),
    )
    process = start(*command, stdin=subprocess.PIPE)
    process.communicate(learners.mail(99), timeout=60)
    assert process.returncode == -signal.SIGTERM
    hidden = {".model.json.lock", ".model.json.new"}
    assert {path.name for path in tmp_path.iterdir()} == hidden
    assert nbspam(*teaching(tmp_path / "model.json"), stdin=learners.mail(99)).code == 0
    assert {path.name for path in tmp_path.iterdir()} == {".model.json.lock", "model.json"}


# No room, no permission


@pytest.fixture
def small_disk(tmp_path):
    """Return a small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a disk")
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "nbspam-test", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def model(small_disk, begun):
    """Return a model on the small disk."""
    model = small_disk / "model.json"
    model.write_bytes(begun.read_bytes())
    return model


def fill(folder):
    with (folder / "filler").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 512)


def test_a_full_disk_leaves_the_old_model(nbspam, small_disk, model, assert_sentence):
    fill(small_disk)
    before = model.read_bytes()
    for command, number in ((teaching(model), 99), (("forget", "-m", model), 3)):
        found = nbspam(*command, stdin=learners.mail(number))
        assert_sentence(found, model, "No space left", "unchanged")
    assert before == model.read_bytes()
    names = {path.name for path in small_disk.iterdir()}
    assert names <= {"model.json", "filler", ".model.json.lock"}
    found = nbspam("classify", "--passthrough", "-m", model, stdin=learners.mail(99))
    assert found.code == 0
    assert learners.mail(99).partition(b"\n\n")[2].decode() in found.out
    (small_disk / "filler").unlink()
    assert nbspam(*teaching(model), stdin=learners.mail(99)) == (0, "", "")
    assert sum(read_model(model).metadata.learned.messages) == 7


def test_a_disk_too_full_for_the_first_model_has_none(nbspam, small_disk, assert_sentence):
    fill(small_disk)
    model = small_disk / "model.json"
    assert_sentence(nbspam(*teaching(model), stdin=learners.mail(99)), model, "No space left")
    assert not model.exists()


@pytest.mark.parametrize("locked_before", [False, True])
def test_a_read_only_disk_leaves_the_old_model(
    nbspam, small_disk, model, assert_sentence, locked_before
):
    if locked_before:
        (small_disk / ".model.json.lock").touch()
    before = model.read_bytes()
    remount = ["mount", "-o", "remount,ro", str(small_disk)]
    subprocess.run(remount, check=True, capture_output=True)
    for command, number in ((teaching(model), 99), (("forget", "-m", model), 3)):
        found = nbspam(*command, stdin=learners.mail(number))
        assert_sentence(found, model, "Read-only file system")
    assert before == model.read_bytes()
    assert nbspam("classify", "-m", model, stdin=learners.mail(99)).code == 0
