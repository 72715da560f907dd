import pickle

import pytest
from one_case import each

from nbspam.errors import Remedy, SourceError
from nbspam.reading.source import NAMED_LIMIT, Skips


def test_what_was_skipped_is_counted_and_named():
    skips = Skips()
    assert skips.report() == []
    skips("b.eml", "cannot be read")
    one = ["skipped 1 item that could not be read:", "  b.eml: cannot be read"]
    assert skips.report() == one
    skips("a.tsv:3", "the row has no text")
    assert skips.count == 2
    assert skips.report() == [
        "skipped 2 items that could not be read:",
        "  b.eml: cannot be read",
        "  a.tsv:3: the row has no text",
    ]
    for number in range(998):
        skips(f"a.tsv:{number}", "bad")
    assert skips.count == 1000
    assert len(skips.report()) == NAMED_LIMIT + 2
    assert skips.report()[-1] == f"  … and {1000 - NAMED_LIMIT} more"


def test_strict_stops_at_the_first_and_no_name_commands_a_terminal_or_breaks_its_line():
    told = r"^a\.tsv:3: the row has no text; fix it, or read without strict to"
    with pytest.raises(SourceError, match=told):
        Skips(strict=True)("a.tsv:3", "the row has no text")
    skips = Skips()
    skips("a\nb\x1b[2J\x85", "cannot be read")
    assert skips.named == ["a\ufffdb\ufffd[2J\ufffd: cannot be read"]
    with pytest.raises(SourceError, match=r"^a.b: cannot be read; fix it"):
        Skips(strict=True)("a\nb", "cannot be read")


@each("count", [0, 1, NAMED_LIMIT - 1, NAMED_LIMIT, NAMED_LIMIT + 1, 40])
def test_two_halves_merged_equal_the_whole(count):
    for cut in {0, count // 3, count // 2, count}:
        whole, first, second = Skips(), Skips(), Skips()
        for number in range(count):
            for skips in (whole, first if number < cut else second):
                skips(f"a.tsv:{number}", "bad")
        first.merge(pickle.loads(pickle.dumps(second)))  # as from another process
        assert (first.count, first.named) == (whole.count, whole.named)
        assert first.report() == whole.report()
    strict = Skips(strict=True)
    strict.merge(whole)  # is no error
    assert strict.named == whole.named


def test_remedy_is_in_the_words_of_whoever_reports():
    skips = Skips()
    skips.note("ham.txt", "the file is in no folder of a class", Remedy.GIVE_OUTSIDE_LABEL)
    assert skips.report({Remedy.GIVE_OUTSIDE_LABEL: "give it with --ham"})[1:] == [
        "  ham.txt: the file is in no folder of a class; give it with --ham"
    ]
    assert skips.report()[1:] == [f"  {skips.named[0]}"]
    assert skips.named[0].endswith(f"; {Remedy.GIVE_OUTSIDE_LABEL.value}")
