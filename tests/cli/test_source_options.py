"""Sources, from the shell's side: names and pipes; and the log of what comes from them."""

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nbspam.cli import tracing  # noqa: F401 (so that it has the function that works)
from nbspam.cli.learning_options import Sources
from nbspam.reading.cutting import Cutter
from nbspam.reading.source import ReadingOptions, Skips
from nbspam.reading.sources import any_kind
from nbspam.serving import log

sys.path.append(str(Path(__file__).parents[1] / "serving"))
from logs import log_daemon

MAIL = b"From: a@example.org\nSubject: prize\n\nwin a free prize now\n"


def test_long_work_shows_progress_on_a_terminal_and_only_there(
    nbspam, model, tmp_path, monkeypatch
):
    """Where the verdicts go elsewhere; they are the same with it."""
    source = tmp_path / "many.tsv"
    long = "lunch at noon " * 1_000  # so that the file is not one of a few messages
    source.write_text("".join(f"ham\t{long}{i}\n" for i in range(20)), encoding="utf-8")
    assert source.stat().st_size > 1 << 18
    quiet = nbspam("classify", source, "-m", model)
    assert quiet.err == ""
    used = []

    @contextlib.contextmanager
    def progress(silent, sources):
        used.append((silent, list(sources)))
        yield iter

    monkeypatch.setattr("nbspam.cli.progress.progress", progress)
    assert nbspam("classify", source, "-m", model) == quiet
    assert used == [(False, [str(source)])]


@pytest.mark.few(1)
@pytest.mark.parametrize("option, line", [("lines", "win a prize"), ("tsv", "ham\twin a prize")])
def test_each_line_is_answered_at_once(sms_model, option, line):
    """As of `tail -f`: more lines than are done before processes are started, too."""
    command = [sys.executable, "-m", "nbspam", "classify", "-m", str(sms_model), "-j", "2"]
    command += ["--input-format", option, "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
    with subprocess.Popen(command, **pipes) as run, contextlib.closing(run.stdin):
        for n in range(1, 9):
            run.stdin.write(f"{line}\n".encode())
            started = time.monotonic()
            assert run.stdout.readline().endswith(f"\t-:{n}\n".encode())
            assert time.monotonic() - started < 20  # it would wait for ever


def test_sources_are_read_alike_whole_in_pieces_and_of_any_kind(tmp_path):
    """What is read of sources inside one another is in tests/golden/cli/sessions/sources.txt."""
    for name in ("a", "Junk/b", "Junk/old/c"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"Subject: {name}\n\ntext of {name}\n")
    options, skips = ReadingOptions(tell=lambda what: None), Skips()
    sources = Sources((), (str(tmp_path / "Junk"),), (str(tmp_path),), ())
    raws = list(sources.messages(options, skips))
    assert [raw.label for raw in raws] == ["spam", "spam", "ham"]
    assert [raw for piece in sources.pieces(Cutter(options, 100)) for raw in piece.read()] == raws
    assert list(sources.messages(options, skips, any_kind)) == raws


# `--log` of classify, train and forget: a line for each message; the mail does not notice it

LETTER = b"Subject: secret\nFrom: a@example.com\nMessage-ID: <1@example.org>\n\nfree prize now\n"
MARKED = re.compile(rb"X-Nbspam: .*\n")
KNOWN = {"message-id": "<1@example.org>", "bytes": str(len(LETTER))}
LOG = ("--log", "syslog", "-m")


@pytest.fixture
def syslog(tmp_path, monkeypatch):
    """Return a syslog that the commands of this process write to."""
    monkeypatch.setenv("LOGNAME", "hal")
    with log_daemon(tmp_path / "syslog") as found:
        monkeypatch.setattr(log, "SYSLOG_SOCKET", found.path)
        yield found


def test_a_message_that_passes(nbspam, model, syslog):
    """Of the mail nothing is logged but its Message-ID and size."""
    found = nbspam("classify", "-p", *LOG, model, stdin=LETTER)
    assert (found.code, found.err) == (0, "")
    verdict = re.search(r"^X-Nbspam: (\w+),", found.out, re.MULTILINE)[1]
    [entry] = syslog.entries()
    assert f"probability={entry.pop('probability')}, " in found.out
    assert 0 < float(entry.pop("milliseconds")) < 60_000
    assert entry == {"action": "classify", **KNOWN, "verdict": verdict, "user": "hal"}
    for command in (["classify", "-p"], ["train", "--update", "--spam", "-"], ["forget"]):
        nbspam(*command, *LOG, model, stdin=LETTER)
    packets = b"".join(syslog.packets())
    assert packets.count(b"<1@example.org>") == 3
    assert not any(part in packets for part in (b"secret", b"example.com", b"free", b"prize"))


def test_a_log_that_is_not_there_changes_nothing(nbspam, model, tmp_path, monkeypatch):
    monkeypatch.setattr(log, "SYSLOG_SOCKET", str(tmp_path / "none"))
    without = nbspam("classify", "-p", "-m", model, stdin=LETTER)
    found = nbspam("classify", "-p", *LOG, model, stdin=LETTER)
    assert (found.code, found.out) == (without.code, without.out)
    assert found.err == (
        f"nbspam: {tmp_path}/none: 1 log line could not be written (No such file or directory);"
        " start that service, or log elsewhere\n"
    )
    found = nbspam("classify", "-p", *LOG, tmp_path / "gone", stdin=LETTER)
    assert (found.code, found.out) == (75, LETTER.decode())
    assert found.err.count("\n") == 1  # of the model alone


def assert_marked(found, said):
    assert found.code == 0
    assert MARKED.sub(b"", found.out.encode()) == LETTER
    assert said in found.err


@pytest.mark.long  # it waits for the log: 0.5 s each time
def test_a_log_that_is_not_read_changes_nothing(nbspam, model, syslog):
    syslog.fill()
    started = time.monotonic()
    found = nbspam("classify", "-p", *LOG, model, stdin=LETTER)
    assert_marked(found, "1 log line could not be written")
    train = ("train", "--update", "--spam", "-", *LOG, model)
    assert nbspam(*train, stdin=LETTER).code == 0
    assert time.monotonic() - started < 10
    syslog.packets()
    nbspam(*train, stdin=LETTER)
    assert [entry["result"] for entry in syslog.entries()] == ["unchanged"]


def test_an_error_in_the_log_itself_changes_nothing(nbspam, model, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log.Entry, "line", fail)
    found = nbspam("classify", "-p", "--log", "stderr", "-m", model, stdin=LETTER)
    assert_marked(found, "No space left on device")


def test_standard_error_that_nobody_reads_delays_no_mail(model):
    """It is full before the message comes: without a bound nbspam would wait for ever."""
    read, write = os.pipe()
    with os.fdopen(read, "rb"), os.fdopen(write, "wb") as stderr:
        os.set_blocking(write, False)
        with pytest.raises(BlockingIOError):
            while True:
                os.write(write, b"x" * 4096)
        os.set_blocking(write, True)
        command = [sys.executable, "-m", "nbspam", "classify", "-p", "--log", "stderr", "-m", model]
        streams = {"stdout": subprocess.PIPE, "stderr": stderr}
        done = subprocess.run(command, input=LETTER, **streams, timeout=60)
    assert (done.returncode, MARKED.sub(b"", done.stdout)) == (0, LETTER)


def test_a_line_costs_no_slow_module(model):
    command = [sys.executable, "-X", "importtime", "-m", "nbspam", "classify", "-p", "-m", model]

    def loaded(*more):
        found = subprocess.run([*command, *more], input=LETTER, capture_output=True, check=True)
        lines = found.stderr.decode().splitlines()
        return {line.rpartition("|")[2].strip() for line in lines if "import time:" in line}

    assert loaded("--log", "syslog") - loaded() - {"select"} == {
        "_socket",
        "nbspam.cli.tracing",
        "nbspam.serving.log",
    }


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        ("--ham MD/.Junk MD/.Work --spam MD/.Junk", "MD/.Junk: is given with two labels"),
        ("--spam MD/.Junk/ --label ham=MD/.Junk", "MD/.Junk: is given with two labels"),
        ("--ham MD/. MD/.. MD/.Work --spam MD/.Junk", "a shell made this of a pattern"),
        ("--ham MD/.Work/ MD/../ --spam MD/.Junk", "MD/../: a shell made this of a pattern"),
    ],
)
def test_a_pattern_that_the_shell_has_expanded_is_refused(
    nbspam, tmp_path, monkeypatch, assert_sentence, sources, said
):
    """It would have learned the junk folder as ham, in dash all that is beside the Maildir."""
    monkeypatch.chdir(tmp_path)
    for name in ("Junk", "Work"):
        (tmp_path / "MD" / f".{name}").mkdir(parents=True)
        (tmp_path / "MD" / f".{name}" / "1.eml").write_bytes(MAIL + name.encode())
    for command in ("train -m new.json", "eval --folds 2"):
        assert_sentence(nbspam(*command.split(), *sources.split()), said, code=2)
    assert not Path("new.json").exists()
    for right in ("--ham MD/.* --spam MD/.Junk", "--spam MD/.Junk --ham MD/../MD/.Work"):
        assert nbspam("train", "-m", "new.json", "--replace", *right.split()).code == 0
    monkeypatch.chdir(tmp_path / "MD" / ".Work")
    assert nbspam("train", "-m", "new.json", "--ham", ".", "--spam", "../.Junk").code == 0


def test_an_index_and_a_link_to_it_name_other_files(nbspam, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a/mail", "b/mail"):
        Path(name).mkdir(parents=True)
        for i in (1, 2):
            Path(name, str(i)).write_bytes(MAIL + f"{name} {i}".encode())
    Path("a/index").write_text("ham mail/1\nspam mail/2\n")
    Path("b/index").symlink_to("../a/index")
    for sources in (["a/index", "b/index"], ["b/index", "a/index"]):
        result = nbspam("train", "--replace", "-m", "m.json", *sources, "--format", "json")
        assert json.loads(result.out)["messages"] == {"ham": 2, "spam": 2}


@pytest.mark.parametrize(
    ("sources", "twice"),
    [
        ("sms.tsv", "sms.tsv ./sms.tsv"),
        ("--ham MD --spam sms", "--ham MD ./MD MD/1.eml --spam sms"),
        ("--ham MD --spam sms", "--ham 'MD/*' 'M[D]' --spam sms"),
    ],
)
def test_a_source_that_is_named_twice_is_read_once(nbspam, tmp_path, monkeypatch, sources, twice):
    monkeypatch.chdir(tmp_path)
    Path("sms.tsv").write_text("ham\tsee you\nspam\twin now\n")
    Path("sms").write_bytes(b"win now")
    Path("MD").mkdir()
    Path("MD", "1.eml").write_bytes(MAIL)
    for words in (sources, twice):
        result = nbspam("train", "-m", f"{len(words)}.json", *shlex.split(words))
        assert (result.code, result.err) == (0, "")
    assert Path(f"{len(sources)}.json").read_bytes() == Path(f"{len(twice)}.json").read_bytes()
