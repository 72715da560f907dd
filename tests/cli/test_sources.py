"""Sources, from the shell's side: names, pipes, and sources inside one another."""

import bz2
import contextlib
import gzip
import json
import lzma
import os
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


# Each message is read once, as the source that is nearest to it


@pytest.fixture
def mail(tmp_path, monkeypatch):
    """Return a folder of mails with two folders in it, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "Junk/c", "Junk/old/d", "Work/e"):
        path = tmp_path / "Mail" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Subject: {name}\n\ntext of {name}\n")
    return tmp_path / "Mail"


def read(*plain, spam=(), ham=()):
    """Return the label of each message by its file, which is read once, and what was said."""
    said, skips = [], Skips()
    options = ReadingOptions(tell=lambda what: said.append(str(what)))
    sources = Sources(plain, tuple(map(str, spam)), tuple(map(str, ham)), ())
    raws = list(sources.messages(options, skips))
    assert not skips.count, skips.named
    pieces = sources.pieces(Cutter(options, 100))
    assert [raw for piece in pieces for raw in piece.read()] == raws
    if not plain:
        assert list(sources.messages_of_any_kind(options, skips)) == raws
    assert len(raws) == len({os.path.realpath(raw.source) for raw in raws})
    return {raw.source: raw.label for raw in raws}, sorted(set(said))


IN_MAIL = {"Mail/a": "ham", "Mail/b": "ham", "Mail/Work/e": "ham"}


IN_JUNK = {"Mail/Junk/c": "spam", "Mail/Junk/old/d": "spam"}


ONLY = "{}: is given as a source of its own and is read only as {}".format


def test_each_belongs_to_the_innermost_source(mail):
    found, said = read(ham=["Mail"], spam=["Mail/Junk"])
    assert (found, said) == (IN_MAIL | IN_JUNK, [ONLY("Mail/Junk", "spam")])
    found, said = read(ham=["Mail", "Mail/Junk"])
    both = IN_MAIL | dict.fromkeys(IN_JUNK, "ham")
    assert (found, said) == (both, [ONLY("Mail/Junk", "ham")])
    found, said = read(ham=["Mail", "Mail/Junk/old"], spam=["Mail/Junk"])
    assert found == IN_MAIL | IN_JUNK | {"Mail/Junk/old/d": "ham"}
    assert len(said) == 2
    found, said = read(ham=["Mail/Work"], spam=["Mail/Junk"])  # beside one another
    assert (found, said) == ({"Mail/Work/e": "ham"} | IN_JUNK, [])


def test_a_file_in_a_folder_is_read_as_its_own_class(mail):
    found, said = read(ham=["Mail"], spam=["Mail/b", "Mail/Junk"])
    assert found == IN_MAIL | IN_JUNK | {"Mail/b": "spam"}
    assert said[1] == "Mail/b: is given as a source of its own and is read only as spam"


def test_folders_are_compared_by_where_links_lead(mail, tmp_path):
    (tmp_path / "trash").symlink_to("Mail/Junk")
    found, said = read(ham=[mail], spam=["trash"])
    assert [label for name, label in found.items() if name.startswith("trash")] == ["spam"] * 2
    assert said == [f"{mail}/Junk: is given as a source of its own and is read only as spam"]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x").write_text("Subject: x\n\nx\n")
    (mail / "Work" / "link").symlink_to("../../elsewhere")
    found, said = read(ham=["Mail"], spam=["elsewhere"])
    assert found == IN_MAIL | dict.fromkeys(IN_JUNK, "ham") | {"elsewhere/x": "spam"}
    assert said == ["Mail/Work/link: is given as a source of its own and is read only as spam"]


def test_sub_folders_of_a_maildir_are_no_part_of_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("M/cur/1", "M/new/2", "M/.Junk/cur/3", "M/.Junk/new/4"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f"Subject: {name}\n\ntext\n")
    found, said = read(ham=["M"], spam=["M/.Junk"])
    assert list(found.values()) == ["spam", "spam", "ham", "ham"]
    assert said == []
    found, said = read(ham=["M"], spam=["M/new/2"])
    assert found == {"M/cur/1": "ham", "M/new/2": "spam"}
    assert len(said) == 1


def test_a_folder_of_classes_has_not_what_is_given_with_a_label(mail):
    found, said = read("Mail", ham=["Mail/a", "Mail/b"], spam=["Mail/Junk"])
    assert found == {"Mail/a": "ham", "Mail/b": "ham", "Mail/Work/e": "Work"} | IN_JUNK
    assert len(said) == 3


def test_the_command_learns_each_message_once(nbspam, mail, tmp_path):
    command = "train", "--ham", "Mail", "--spam", "Mail/Junk", "-m", tmp_path / "m.json"
    found = nbspam(*command, "--format", "json")
    assert json.loads(found.out)["messages"] == {"ham": 3, "spam": 2}
    assert found.err == (
        "nbspam: Mail/Junk: is given as a source of its own and is read only as spam\n"
    )
    assert nbspam(*command, "--update", "-q").err == ""
