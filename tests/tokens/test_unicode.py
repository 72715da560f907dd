import re

from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.tokens import unicode
from nbspam.tokens.unicode import undo_tricks

INVISIBLE = (
    "\u00ad\u034f\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
    "\x00\x08\x1b\x7f\x90\u3164\uffa0\ufe0f\U000e0061\U000e0105"
)


@each("sign", INVISIBLE)
def test_what_is_invisible_in_a_word_is_removed_and_marked(sign):
    assert undo_tricks(f"fr{sign}ee prize") == ("free prize", {"trick:invisible"})
    assert undo_tricks(f"пр{sign}из") == ("приз", {"trick:invisible"})


@each("sign", [*INVISIBLE, *"\u202a\u202e\u2066\u2069\ufe0f"])
def test_what_is_invisible_outside_of_words_is_removed_and_no_trick(sign):
    assert undo_tricks(f"{sign}free {sign} prize{sign}") == ("free  prize", set())


@each(
    "text, seen",
    [
        ("می\u200cخواهم", "میخواهم"),  # Persian: a non-joiner within a word is how it is spelled
        ("क्\u200dष", "क्ष"),
        ("\U0001f469\u200d\U0001f467", "\U0001f469\U0001f467"),  # a family
        ("\u2764\ufe0f", "\u2764"),
        ("cafe\u0301", "café"),
        ("\U0001f1e9\U0001f1ea \U0001f1eb\U0001f1f7", "\U0001f1e9\U0001f1ea \U0001f1eb\U0001f1f7"),
        ("שלום\u200f!", "שלום!"),
    ],
)
def test_joiners_where_scripts_and_emoji_need_them_are_no_trick(text, seen):
    assert undo_tricks(text) == (seen, set())


@each(
    "text, seen, trick",
    [
        ("ｆｒｅｅ ｐｒｉｚｅ", "free prize", "full-width"),
        ("Ｆree", "Free", "full-width"),
        ("𝐟𝐫𝐞𝐞", "free", "styled-letters"),
        ("𝓯𝓻𝓮𝓮 𝔣𝔯𝔢𝔢 𝕗𝕣𝕖𝕖 𝚏𝚛𝚎𝚎", "free free free free", "styled-letters"),
        ("Ⓕⓡⓔⓔ", "Free", "styled-letters"),
        ("frее", "free", "look-alike"),  # Cyrillic е
        ("рaypal", "paypal", "look-alike"),  # Cyrillic р
        ("PАYPАL", "PAYPAL", "look-alike"),  # Cyrillic А
        ("viαgra", "viagra", "look-alike"),  # Greek alpha
        ("ɑmazon", "amazon", "look-alike"),
        ("ᴠɪᴀɢʀᴀ", "viagra", "styled-letters"),  # small capitals
        ("\U0001f175\U0001f181\U0001f174\U0001f174", "free", "styled-letters"),  # in black squares
        ("\U0001f1eb\U0001f1f7\U0001f1ea\U0001f1ea", "free", "styled-letters"),  # of flags
        ("f\u0335r\u0335e\u0335e", "free", "marks"),  # struck through
        ("f\u0316\u0317\u0318ree", "free", "marks"),
    ],
)
def test_letters_that_are_not_what_they_seem_are_undone_and_marked(text, seen, trick):
    assert undo_tricks(text) == (seen, {f"trick:{trick}"})


@each(
    "text",
    [
        "free prize", "привет, как дела", "ВНИМАНИЕ СКИДКА", "καλημέρα κόσμε", "Windows для дома",
        "дома Windows", "а b", "naïve café größe", "你好 世界", "한국어",
        "\U0001f600 €100 “quoted” — don’t", "",
    ],
)  # fmt: skip
def test_honest_texts_are_left_alone(text):
    assert undo_tricks(text) == (text, set())


def test_ligatures_are_opened_and_no_trick():
    assert undo_tricks("ﬁne ﬂow") == ("fine flow", set())


def test_a_pure_word_beside_a_mixed_one_is_left_alone():
    assert undo_tricks("frее Россия") == ("free Россия", {"trick:look-alike"})


def test_several_tricks_are_each_marked():
    text, tricks = undo_tricks("f\u200bree ｆｒｅｅ 𝐟𝐫𝐞𝐞 frее")
    assert text == "free free free free"
    assert tricks == {
        "trick:invisible",
        "trick:full-width",
        "trick:styled-letters",
        "trick:look-alike",
    }


@each("text", ["\u200b", "\u200b" * 50, "\ufeff", "\u00ad\u200d"])
def test_a_text_of_nothing_to_see_is_empty(text):
    assert undo_tricks(text) == ("", set())


@given(st.text(st.characters()) | st.text(st.characters(categories=["Cs", "Ll"])))
def test_any_text_can_be_written_afterwards(text):
    seen, tricks = undo_tricks(text)
    seen.encode("utf-8")
    assert all(trick.startswith("trick:") for trick in tricks)


@given(st.text())
def test_tricks_undone_stay_undone(text):
    once, _ = undo_tricks(text)
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
    everything = "".join(map(chr, range(0x110000)))
    of_pattern = set(re.findall(f"[{ranges}]", everything))
    assert unicode.strange_characters("".join(of_pattern)) == of_pattern
    # Those at the ends of the ranges, and every 67th.
    ends = {chr(ord(c) + i) for c in ranges if "\0" < c < chr(0x10FFFF) for i in (-1, 0, 1)}
    some = ends | set(everything[::67])
    assert {c for c in some if unicode.may_have({c}, ranges)} == of_pattern & some
    assert unicode.may_have(of_pattern, ranges)
    assert not unicode.may_have(set(), ranges)
