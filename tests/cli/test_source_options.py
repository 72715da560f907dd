"""Sources, from the shell's side: names and pipes."""

import contextlib
import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nbspam.cli.learning_options import Sources
from nbspam.reading.source import ReadingOptions, Skips
from nbspam.reading.sources import read_messages

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


def test_sources_are_read_alike_with_labels_and_of_any_kind(tmp_path):
    """What is read of sources inside one another is in tests/golden/cli/sessions/sources.txt."""
    for name in ("a", "Junk/b", "Junk/old/c"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"Subject: {name}\n\ntext of {name}\n")
    options, skips = ReadingOptions(on_note=lambda what: None), Skips()
    sources = Sources((), (str(tmp_path / "Junk"),), (str(tmp_path),), ())
    raws = list(sources.messages(options, skips))
    assert [raw.label for raw in raws] == ["spam", "spam", "ham"]
    assert list(sources.messages(options, skips, read_messages)) == raws


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
