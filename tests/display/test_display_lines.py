import re
from pathlib import Path

from excerpts import hostile_excerpt
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from rich.cells import cell_len

from nbspam.display.lines import (
    HARD_SPACE,
    cell_width,
    excerpt_lines,
    fold_sentence,
    fold_text,
    pad_cells,
    shorten,
    truncated,
)
from nbspam.scoring.highlights import highlight
from nbspam.tokens.tokenized import Excerpt, printable

GOLDEN = Path(__file__).parents[1] / "golden" / "display" / "hostile-80.txt"


def texts(excerpt, width=80, most=8, signs=True):
    lines = excerpt_lines(excerpt, width, most, signs=signs)
    return ["".join(piece.text for piece in line) for line in lines]


def excerpt(text, **shares):
    return highlight(Excerpt("", "", text, len(text)), shares)


def test_signs_stand_around_what_decided_and_without_them_the_emphasis_is_in_the_pieces():
    found = excerpt("a free prize, and lunch", free=1.0, prize=1.0, lunch=-1.0)
    assert texts(found) == ["  a [+free prize+], and [-lunch-]"]
    assert texts(found, signs=False) == ["  a free prize, and lunch"]
    found = excerpt("a free lunch", free=2.0, lunch=-1.9)
    (line,) = excerpt_lines(found, 80, 8, signs=False)
    assert line == [("  ", 0), ("a ", 0), ("free", 2), (" ", 0), ("lunch", -1)]


def test_the_golden_excerpt_has_subject_and_sender_before_the_text():
    expected = GOLDEN.read_text(encoding="utf-8")
    assert "".join(f"{line}\n" for line in texts(hostile_excerpt())) == expected
    assert re.match(r"  Subject: .*\[\+", expected)
    assert "\n  From: " in expected


@each("width", [20, 33, 80, 120])
@each("signs", [True, False])
def test_no_line_is_too_wide_and_nothing_commands_the_terminal(width, signs):
    for line in texts(hostile_excerpt(), width, 50, signs):
        assert cell_width(line) <= width
        assert line.isprintable()


def test_a_long_text_ends_with_how_much_is_left_out_and_a_hard_space_is_not_broken():
    lines = texts(excerpt("word " * 100), 40, 2)
    assert len(lines) == 3
    assert lines[-1].endswith("characters more)")
    assert list(fold_text(f"one{HARD_SPACE}two three", 9)) == ["one two", "three"]


@given(st.text(max_size=100), st.integers(4, 40), st.integers(0, 2))
def test_folded_text_loses_nothing_but_blanks(text, width, indent):
    text = printable(text)
    lines = list(fold_text("ab"[:indent] + text, width, indent))
    assert "".join("".join(lines).split()) == "ab"[:indent] * bool(text) + "".join(text.split())
    assert all(cell_width(line) <= width for line in lines)


@given(
    st.lists(st.text("abc/ö天", min_size=1, max_size=30), min_size=1, max_size=20),
    st.integers(5, 80),
)
def test_a_sentence_is_folded_between_whole_words(words, width):
    first, *rest = fold_sentence(" ".join(words), width)
    assert all(line[:2] == "  " and line[2] != " " for line in rest)
    assert " ".join([first, *(line[2:] for line in rest)]) == " ".join(words)
    assert all(cell_width(line) <= width or " " not in line.strip() for line in (first, *rest))


# Cells


@each(
    "text, cells",
    [
        ("free", 4), ("免費", 4), ("🚀", 2), ("cafe\u0301", 4), ("naïve", 5), ("हिन्दी", 5),
        ("한국", 4), ("ﾊﾝｶｸ", 4),
    ],
)  # fmt: skip
def test_the_cells_of_a_text(text, cells):
    assert cell_width(text) == cells


@each("text", ["free", "免費送", "naïve é", "привет", "한국어", "مرحبا", "£5 – ok"])
def test_they_are_as_many_as_rich_counts(text):
    assert cell_width(text) == cell_len(text)


@given(st.text(max_size=30), st.integers(1, 20))
def test_a_shortened_text_fits(text, width):
    found = shorten(text, width)
    assert cell_width(found) <= width
    assert found == text or found.endswith("…")
    assert cell_width(pad_cells(found, width)) == width
    assert text.startswith(truncated(text, width))
