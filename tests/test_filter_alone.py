"""A mail filter needs click alone: what it does where no other package is installed."""

import json
import os
import pty
import select
import socket
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "sample_data"
MAIL = b"Subject: prize\n\nwin a free cash prize today\n"


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Return the environment of a Python that finds nbspam and click, and nothing else."""
    packages = tmp_path_factory.mktemp("packages")
    for path in (ROOT / "nbspam", ROOT / "nbspam_main.py", Path(click.__file__).parent):
        (packages / path.name).symlink_to(path)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NBSPAM_")}
    return kept | {"PYTHONPATH": str(packages), "HOME": str(packages)}


@pytest.fixture(scope="module")
def command(environment):
    """Return a function that runs nbspam; `-S` leaves out the folder of installed packages."""

    def run(*arguments, message=MAIL):
        return subprocess.run(
            [sys.executable, "-S", "-m", "nbspam", *map(str, arguments)],
            input=message,
            capture_output=True,
            timeout=60,
            check=False,
            env=environment,
        )

    return run


def succeeded(done):
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr.decode()
    return done.stdout.decode()


@pytest.fixture(scope="module")
def trained(command, tmp_path_factory):
    """Return a model made here, one class after the other; not to be changed."""
    folder = tmp_path_factory.mktemp("alone")
    rows = [row.split("\t") for row in (SAMPLE / "sms.tsv").read_text().splitlines()]
    learn = ("train", "--update", "-m", folder / "model.json", "--lines")
    for label in ("ham", "spam"):
        lines = folder / f"{label}.txt"
        lines.write_text("".join(f"{text}\n" for own, text in rows if own == label))
        succeeded(command(*learn, f"--{label}", lines))
    return folder / "model.json"


@pytest.fixture
def model(trained, tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(trained.read_bytes())
    return path


def test_no_other_package_is_found(environment):
    code = (
        "import sys\nfor name in sys.argv[1:]:\n try: __import__(name)\n except ImportError: pass\n"
        "print(*set(sys.modules) & {*sys.argv[1:]})"
    )
    command = [sys.executable, "-S", "-c", code, "click", "numpy", "scipy", "pandas", "rich"]
    assert subprocess.check_output(command, env=environment, text=True).split() == ["click"]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["mail/ham.mbox", "sms.tsv", "odd"])
def test_many_messages_are_classified(command, model, name):
    done = command("classify", "-m", model, SAMPLE / name)
    verdicts = [line.split("\t")[0] for line in succeeded(done).splitlines()]
    assert set(verdicts) <= {"spam", "ham", "unsure"}
    assert len(verdicts) > 9


def test_one_message_is_classified_and_passed_on(command, model):
    assert succeeded(command("classify", "--spam-cutoff", "0.6", "-m", model)).startswith("spam\t")
    careful = ("--spam-cutoff", "0.9999", "-m", model)
    passed = succeeded(command("classify", "-p", "--evidence", "3", *careful))
    assert passed.startswith("Subject: prize\nX-Nbspam-Evidence: ")
    assert "\nX-Nbspam: unsure, " in passed
    assert passed.endswith(MAIL.decode().partition("\n")[2])
    assert command("classify", "--exit-code", *careful).returncode == 2  # unsure


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "arguments",
    [
        *("explain", "model info", "explain --format json", "explain --words"),
        *("model info --format json", "model check", "model set --ham-cutoff 0.4"),
        *("model prune --min-count 2", "model export"),
    ],
)
def test_models_are_explained_and_changed(command, model, arguments):
    assert succeeded(command(*arguments.split(), "-m", model))


@pytest.mark.long
def test_models_are_merged_exported_and_imported(command, model, tmp_path):
    merged, words, imported = (tmp_path / name for name in ("merged.json", "words", "new.json"))
    succeeded(command("model", "merge", model, model, "--allow-overlap", "-o", merged))
    succeeded(command("model", "export", "-m", merged, "-o", words))
    succeeded(command("model", "import", words, "-m", imported))
    assert succeeded(command("classify", "-m", imported)).startswith(("spam", "unsure"))


def test_messages_are_learned_moved_and_forgotten(command, model):
    def messages():
        return json.loads(model.read_bytes())["messages"]

    ham, spam = messages()
    for label in ("ham", "spam"):
        succeeded(command("train", "--update", f"--{label}", "-", "-m", model))
    assert messages() == [ham, spam + 1]
    succeeded(command("forget", "-m", model))
    assert messages() == [ham, spam]


def test_a_model_begins_with_one_message(command, tmp_path):
    path = tmp_path / "new.json"
    succeeded(command("train", "--update", "--spam", "-", "-m", path))
    assert succeeded(command("classify", "-m", path)).startswith("unsure\t")


def test_it_serves(environment, model, tmp_path):
    path = tmp_path / "socket"
    command = [sys.executable, "-S", "-m", "nbspam", "serve", "--tell", "-m", model]
    command += ["--socket", path]
    size = f"Content-length: {len(MAIL)}\r\n\r\n".encode()
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr.readline() == f"nbspam: serving {model} on {path}\n".encode()
            for head in (
                b"CHECK SPAMC/1.5",
                b"TELL SPAMC/1.5\r\nMessage-class: spam\r\nSet: local",
            ):
                with socket.socket(socket.AF_UNIX) as client:
                    client.settimeout(60)
                    client.connect(str(path))
                    client.sendall(head + b"\r\n" + size + MAIL)
                    assert client.recv(1000).startswith(b"SPAMD/1.1 0 EX_OK\r\n")
        finally:
            process.terminate()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "arguments",
    ["train --replace -m NEW", "eval -m MODEL", "eval --folds 5", "eval --compare all"],
)
def test_what_needs_more_says_what(command, model, tmp_path, arguments):
    known = {"NEW": tmp_path / "new.json", "MODEL": model}
    done = command(*(known.get(each, each) for each in arguments.split()), SAMPLE / "sms.tsv")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == (
        "nbspam: numpy is not installed; eval needs it, and train without --update; install it"
        " with: pip install numpy scipy rich\n"
    )
    assert not (tmp_path / "new.json").exists()


def test_a_parquet_table_says_what_it_needs(command, model, tmp_path):
    path = tmp_path / "table.parquet"
    path.write_bytes(b"PAR1")
    done = command("classify", "-m", model, path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert "needs pandas and pyarrow; install them with: " in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


@pytest.mark.long  # tests/cli/test_progress.py has it without a process
def test_progress_is_not_shown_without_rich(environment, model, tmp_path):
    """On a terminal many messages draw a bar, if they can."""
    table = tmp_path / "many.tsv"
    table.write_text("ham\tlunch at noon, see you there\n" * 9000)
    main, other = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-S", "-m", "nbspam", "classify", "-m", model, table],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=other,
    ) as process:
        assert process.wait(60) == 0
    os.close(other)
    shown, end = b"", time.monotonic() + 5
    while time.monotonic() < end and select.select([main], [], [], 0)[0]:
        try:
            shown += os.read(main, 1 << 16)
        except OSError:
            break
    os.close(main)
    assert b"Traceback" not in shown
    assert b"messages" not in shown.replace(b"messages of each class", b"")
