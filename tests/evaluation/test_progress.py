import io

import pytest

from nbspam.evaluation.progress import progress


def test_no_progress_is_shown_where_nobody_looks(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    with progress(quiet=False) as shown:
        assert list(shown([1, 2, 3])) == [1, 2, 3]
    assert stream.getvalue() == ""


def test_progress_needs_no_standard_error(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    with progress(quiet=False) as shown:
        assert list(shown([1, 2])) == [1, 2]


@pytest.mark.parametrize("quiet", [True, False])
def test_progress_passes_everything_on(quiet):
    with progress(quiet) as shown:
        assert list(shown(iter("abc"))) == ["a", "b", "c"]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal_is_shown(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with progress(quiet=False) as shown:
        assert list(shown(range(5))) == [0, 1, 2, 3, 4]
    assert "messages" in stream.getvalue()
