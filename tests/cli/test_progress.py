import gzip
import io
import re

import pytest
from one_case import each

from nbspam.cli.progress import parts_shown, progress, shown_passes, size_of
from nbspam.tokens.tokenized import TokenizedMessage

MESSAGES = [TokenizedMessage(f"x:{i}", "ham", ["a", "text"], size=6) for i in range(5)]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def drawn_on(monkeypatch):
    """Return a function that makes a stream standard error, and returns it."""
    monkeypatch.setenv("TERM", "xterm")

    def draw(stream):
        monkeypatch.setattr("sys.stderr", stream)
        return stream

    return draw


@each("quiet, stream", [(False, io.StringIO()), (False, None), (True, Terminal())])
def test_nothing_is_shown_where_nobody_looks(drawn_on, quiet, stream):
    drawn_on(stream)
    with progress(quiet, sources=[]) as shown:
        assert list(shown(iter(MESSAGES))) == MESSAGES
    stages(quiet)
    assert stream is None or stream.getvalue() == ""


def test_nothing_is_shown_without_rich(drawn_on, monkeypatch):
    terminal = drawn_on(Terminal())
    monkeypatch.setattr("nbspam.cli.progress.find_spec", lambda name: None)
    with progress(quiet=False, sources=[], redrawn=-1) as shown:
        assert list(shown(MESSAGES)) == MESSAGES
    assert terminal.getvalue() == ""


def test_a_terminal_is_shown_the_rate_and_the_time_left(drawn_on, tmp_path):
    terminal = drawn_on(Terminal())
    source = tmp_path / "x"
    source.write_text("a text" * 10)
    with progress(quiet=False, sources=[str(source)], redrawn=-1) as shown:
        assert list(shown(MESSAGES)) == MESSAGES
    for text in ("1 message ", "5 messages", "/s", "0:0"):
        assert text in terminal.getvalue()


def test_the_size_is_that_of_all_files_and_none_where_it_cannot_be_known(tmp_path):
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    for name, content in (("folder/a", b"12345"), ("folder/inner/b", b"123"), ("c", b"12")):
        (tmp_path / name).write_bytes(content)
    assert size_of([str(tmp_path / "folder"), str(tmp_path / "c")]) == 10
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"x"))
    for source in ("-", str(tmp_path / "none"), str(tmp_path / "x.gz")):
        assert size_of([source]) is None


# After the messages are read


def stages(quiet=False):
    """Go through stages; every one is drawn."""
    with shown_passes(quiet) as passes:
        passes.begin("training", 0)
        shown = parts_shown(passes, lambda i, part: f"fold {i + 1} of 3: {part}")
        assert list(shown(["one", "two", "three"])) == ["one", "two", "three"]


@each("no_color", ["", "1"])
def test_a_terminal_is_shown_what_is_done_in_colours_unless_none_are_wanted(
    drawn_on, monkeypatch, no_color
):
    monkeypatch.setenv("NO_COLOR", no_color)
    terminal = drawn_on(Terminal())
    stages()
    for text in ("training", "fold 1 of 3: one", "fold 3 of 3: three", "0:0"):
        assert text in terminal.getvalue()
    assert bool(re.search(r"\x1b\[[\d;]*[349]\d[\d;]*m", terminal.getvalue())) == (not no_color)
