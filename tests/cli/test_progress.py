import gzip
import io
import re

from many_cases import in_turn

from nbspam.cli.progress import progress, size_of, work
from nbspam.tokens.tokenized import TokenizedMessage

MESSAGES = [TokenizedMessage(f"x:{i}", "ham", ["a", "text"], size=6) for i in range(5)]


def test_nothing_is_shown_where_nobody_looks(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    with progress(quiet=False, sources=[]) as shown:
        assert list(shown(MESSAGES)) == MESSAGES
    assert stream.getvalue() == ""


def test_no_standard_error_is_needed(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    with progress(quiet=False, sources=[]) as shown:
        assert list(shown(MESSAGES)) == MESSAGES


@in_turn("quiet", [True, False])
def test_everything_passes_through(quiet):
    with progress(quiet, []) as shown:
        assert list(shown(iter(MESSAGES))) == MESSAGES


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_is_shown_the_rate_and_the_time_left(monkeypatch, tmp_path):
    source = tmp_path / "x"
    source.write_text("a text" * 10)
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with progress(quiet=False, sources=[str(source)], redrawn=-1) as shown:
        assert list(shown(MESSAGES)) == MESSAGES
    assert "1 message " in stream.getvalue()
    assert "5 messages" in stream.getvalue()
    assert "/s" in stream.getvalue()
    assert "0:0" in stream.getvalue()


def test_the_size_is_that_of_all_files(tmp_path):
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "folder" / "a").write_bytes(b"12345")
    (tmp_path / "folder" / "inner" / "b").write_bytes(b"123")
    (tmp_path / "c").write_bytes(b"12")
    assert size_of([str(tmp_path / "folder"), str(tmp_path / "c")]) == 10


@in_turn("name", ["-", "none", "x.gz"])
def test_the_size_of_what_cannot_be_known_is_none(tmp_path, name):
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"x"))
    source = name if name == "-" else str(tmp_path / name)
    assert size_of([source]) is None


# After the messages are read


def stages(quiet=False):
    """Go through stages; what is drawn for sure is the last of each `work`."""
    with work(quiet) as at_work:
        at_work.stage("training")
    with work(quiet) as at_work:
        assert list(at_work.parts(lambda i: f"fold {i + 1} of 3")(range(3))) == [0, 1, 2]


def test_a_terminal_is_shown_what_is_done(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    stages()
    for text in ("training …", "fold 3 of 3 …"):
        assert text in stream.getvalue()


def test_what_is_done_is_shown_to_nobody_else(monkeypatch):
    stream, terminal = io.StringIO(), Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    stages()
    monkeypatch.setattr("sys.stderr", terminal)
    stages(quiet=True)
    monkeypatch.setattr("sys.stderr", None)
    stages()
    assert (stream.getvalue(), terminal.getvalue()) == ("", "")


def test_what_is_done_has_no_colours_where_none_are_wanted(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    stages()
    assert "training …" in stream.getvalue()
    assert not re.search(r"\x1b\[[\d;]*[349]\d[\d;]*m", stream.getvalue())
