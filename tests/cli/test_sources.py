"""Sources, from the shell's side: names, pipes, and sources inside one another."""

import bz2
import contextlib
import gzip
import lzma
import subprocess
import sys
import time

import pytest

from nbspam.cli.learning_options import Sources
from nbspam.reading.cutting import Cutter
from nbspam.reading.source import Skips
from nbspam.reading.sources import ReadingOptions

MAIL = b"From: a@example.org\nSubject: prize\n\nwin a free prize now\n"


@pytest.mark.few(1)
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_name_that_is_not_unicode_is_printed_all_the_same(program, model, tmp_path, form):
    (tmp_path / "mails").mkdir()
    with open(bytes(tmp_path / "mails") + b"/\xff\xfe.eml", "wb") as file:  # noqa: PTH123
        file.write(MAIL)
    found = program("classify", "-m", model, "--format", form, tmp_path / "mails")
    assert (found.code, found.err) == (0, "")


@pytest.mark.few(1)
@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress])
def test_a_compressed_message_on_standard_input_is_read_as_it_is(program, nbspam, model, compress):
    text = b"win a free prize now"
    found = program("classify", "-m", model, input=compress(text))
    assert found == nbspam("classify", "-m", model, stdin=text)


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


@pytest.mark.long
def test_a_table_of_many_rows_is_the_same_through_a_pipe(program, sms_model, sample):
    """Several processes, whose messages a pause must not hold back or put out of order."""
    rows = (sample / "sms.tsv").read_text() * 10
    options = ("-m", sms_model, "--input-format", "tsv", "-j", "2")
    lines = program("classify", *options, input=rows.encode()).out.splitlines()
    assert [line.split("\t")[2] for line in lines] == [f"-:{n}" for n in range(1, 3_041)]


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
    assert list(sources.messages_of_any_kind(options, skips)) == raws
