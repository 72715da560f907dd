"""Letters that are not what they seem: golden/tokens/unicode.table has texts and what they mean."""

import re

from golden_tables import golden_table
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.tokens import text as unicode
from nbspam.tokens.text import undo_tricks

INVISIBLE = (
    "\u00ad\u034f\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
    "\x00\x08\x1b\x7f\x90\u3164\uffa0\ufe0f\U000e0061\U000e0105"
)


@each("text, seen, tricks", golden_table("tokens/unicode.table", 3))
def test_tricks_are_undone_and_marked_and_honest_texts_left_alone(text, seen, tricks):
    assert undo_tricks(text) == (seen, {f"trick:{trick}" for trick in tricks.split()})


@each("sign", INVISIBLE)
def test_what_is_invisible_in_a_word_is_removed_and_marked(sign):
    assert undo_tricks(f"fr{sign}ee prize") == ("free prize", {"trick:invisible"})
    assert undo_tricks(f"пр{sign}из") == ("приз", {"trick:invisible"})


@each("sign", [*INVISIBLE, *"\u202a\u202e\u2066\u2069\ufe0f"])
def test_what_is_invisible_outside_of_words_is_removed_and_no_trick(sign):
    assert undo_tricks(f"{sign}free {sign} prize{sign}") == ("free  prize", set())
    assert undo_tricks(sign * 50) == undo_tricks("") == ("", set())


@given(st.text(st.characters()) | st.text(st.characters(categories=["Cs", "Ll"])))
def test_any_text_can_be_written_afterwards_and_tricks_undone_stay_undone(text):
    once, tricks = undo_tricks(text)
    once.encode("utf-8")
    assert all(trick.startswith("trick:") for trick in tricks)
    twice, tricks = undo_tricks(once)
    assert tricks <= {"trick:look-alike", "trick:styled-letters"}
    assert len(twice) <= 20 * max(1, len(text))


@given(st.text(alphabet="abcdefg hijk.!0123456789\n"))
def test_ascii_is_left_alone(text):
    assert undo_tricks(text) == (text, set())


SETS = [unicode.MARKS, unicode.UNSPACED, unicode._INVISIBLES, unicode._COMPATIBLES, unicode._ALIKE]


@each("ranges", SETS)
def test_a_text_may_have_just_the_characters_of_a_set_s_pattern(ranges):
    assert set(ranges[1::3]) == {"-"}
    everything = "".join(map(chr, [*range(0x32000), *range(0xE0000, 0xE0200)]))
    of_pattern = set(re.findall(f"[{ranges}]", everything))
    assert unicode.strange_characters("".join(of_pattern)) == of_pattern
    # Those at the ends of the ranges, and every 211th; no other plane has any.
    ends = {chr(ord(c) + i) for c in ranges if "\0" < c < chr(0x10FFFF) for i in (-1, 0, 1)}
    some = ends | set(everything[::211])
    assert {c for c in some if unicode.may_have({c}, ranges)} == of_pattern & some
    assert unicode.may_have(of_pattern, ranges)
    assert not unicode.may_have(set(), ranges)
