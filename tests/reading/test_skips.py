import pytest

from nbspam.errors import SourceError
from nbspam.reading.skips import NAMED_LIMIT, Skips


def test_nothing_skipped_nothing_reported() -> None:
    assert Skips().report() == []


def test_what_was_skipped_is_counted_and_named() -> None:
    skips = Skips()
    skips("a.tsv:3", "the row has no text")
    skips("b.eml", "cannot be read")
    assert skips.count == 2
    assert skips.report() == [
        "skipped 2 that could not be read:",
        "  a.tsv:3: the row has no text",
        "  b.eml: cannot be read",
    ]


def test_only_the_first_are_named() -> None:
    skips = Skips()
    for number in range(1000):
        skips(f"a.tsv:{number}", "bad")
    assert skips.count == 1000
    assert len(skips.report()) == NAMED_LIMIT + 2
    assert skips.report()[-1] == f"  … and {1000 - NAMED_LIMIT} more"


def test_strict_stops_at_the_first() -> None:
    skips = Skips(strict=True)
    with pytest.raises(SourceError, match=r"^a\.tsv:3: the row has no text; .*--strict"):
        skips("a.tsv:3", "the row has no text")


def test_what_is_skipped_cannot_command_a_terminal_or_break_its_line() -> None:
    skips = Skips()
    skips("a\nb\x1b[2J\x85", "cannot be read")
    assert skips.named == ["a\ufffdb\ufffd[2J\ufffd: cannot be read"]
    with pytest.raises(SourceError, match=r"^a.b: cannot be read; mend it"):
        Skips(strict=True)("a\nb", "cannot be read")
