"""Disguises of words; golden/tokens has tables of texts and what they mean."""

import base64
import binascii
import random
import re
import unicodedata
from unittest.mock import patch

from golden_tables import golden_table
from hypothesis import example, given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading.message import parse_text
from nbspam.tokens import disguises
from nbspam.tokens.disguises import (
    COMPATIBLES,
    INVISIBLES,
    LOOK_ALIKE_RANGES,
    any_in_ranges,
    remove_encoded,
    strange_characters,
    undo_letter_spacing,
    undo_tricks,
    western_bytes,
)
from nbspam.tokens.text import MARKS, UNSPACED, text_tokens
from nbspam.tokens.tokenized import TokenizerOutputs, tokenize


def in_cp1252(text):
    try:
        return text.encode("cp1252")
    except UnicodeEncodeError:
        return None


def test_western_bytes_are_windows_1252_by_either_way():
    for character in map(chr, range(0x2200)):
        for text in (character, f"é{character}", f"”{character}"):
            assert western_bytes(text) == in_cp1252(text), ascii(text)


# Disguised words


@each("text, meant, trick", golden_table("tokens/unspelled.table", 3))
def test_words_in_disguise_are_read_as_meant_and_those_spelled_out_marked(text, meant, trick):
    assert undo_letter_spacing(text) == (meant, bool(trick))
    assert ("trick:spelled" in text_tokens(text)) == bool(trick)


@given(st.text(alphabet="ab01 ._-é免"))
def test_what_is_meant_is_no_longer(text):
    meant, _ = undo_letter_spacing(text)
    assert len(meant) <= len(text)
    assert sum(map(str.isspace, meant)) <= sum(map(str.isspace, text))


# The Western form and the general one

PIECES = "v i 1 0 a4b š0k a÷0b ½ ² _ Dell™ © . ' - £5 €0.5 10,5% ! ?? www.a.de/x é ƒ1a … Ÿ9".split()
WESTERN_TEXT = st.text(st.characters(codec="cp1252"), max_size=60) | st.builds(
    "".join, st.lists(st.sampled_from([*PIECES, *" .*|~-\n\t"]), max_size=20)
)


def everything_of(text):
    message = tokenize(parse_text(text), outputs=TokenizerOutputs(times=True, traits=True))
    return message.tokens, message.extras


@given(WESTERN_TEXT)
@example("(v.i.a.g.r.a) " + bytes(range(256)).decode("cp1252", "ignore"))
def test_both_forms_give_the_same_tokens_times_and_traits(western):
    found = everything_of(western + "x" * 400)
    with patch.object(disguises, "_western_bytes", return_value=None):
        assert everything_of(western + "x" * 400) == found


@given(WESTERN_TEXT)
@example("Dell™ (v.i.a.g.r.a) š0k")
def test_an_emoji_changes_the_tokens_of_no_other_word(western):
    with_emoji = f"{western} \U0001f600"
    assert western_bytes(with_emoji) is None
    assert text_tokens(undo_tricks(with_emoji)[0]) == text_tokens(undo_tricks(western)[0])


# Letters that are not what they seem

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


def test_text_that_is_shown_backwards_is_read_as_it_is_shown():
    assert (
        undo_tricks("buy \u202eargaiv\u202c now\n\u202eerom\nless")[0]
        == "buy viagra now\nmore\nless"
    )
    assert undo_tricks("\u202e") == ("", set())


@each("sign", [*INVISIBLE, *"\u202a\u202d\u2066\u2069\ufe0f"])
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


SETS = [MARKS, UNSPACED, INVISIBLES, COMPATIBLES, LOOK_ALIKE_RANGES]


@each("ranges", SETS)
def test_a_text_may_have_just_the_characters_of_a_set_s_pattern(ranges):
    assert set(ranges[1::3]) == {"-"}
    everything = "".join(map(chr, [*range(0x32000), *range(0xE0000, 0xE1100)]))
    of_pattern = set(re.findall(f"[{ranges}]", everything))
    assert strange_characters("".join(of_pattern)) == of_pattern
    # Those at the ends of the ranges, and every 211th; no other plane has any.
    ends = {chr(ord(c) + i) for c in ranges if "\0" < c < chr(0x10FFFF) for i in (-1, 0, 1)}
    some = ends | set(everything[::211])
    assert {c for c in some if any_in_ranges({c}, ranges)} == of_pattern & some
    assert any_in_ranges(of_pattern, ranges)
    assert not any_in_ranges(set(), ranges)


def test_what_unicode_calls_ignorable_is_invisible():
    everything = "".join(map(chr, [*range(0xA0, 0x20000), *range(0xE0000, 0xE1100)]))
    invisible = set(re.findall(f"[{INVISIBLES}]", everything))
    assert {unicodedata.category(c) for c in invisible} == {"Cf", "Cn", "Lo", "Mn"}
    # Format characters that are shown: signs of numbers, annotations, joins of hieroglyphs.
    shown = set(
        re.findall(
            "[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\ufff9-\ufffb\U000110bd\U000110cd"
            "\U00013430-\U0001343f]",
            everything,
        )
    )
    assert {c for c in everything if unicodedata.category(c) == "Cf"} - shown <= invisible
    selectors = [*range(0x180B, 0x180E), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]
    assert {*map(chr, selectors), *"\u115f\u1160\u3164\uffa0"} <= invisible


# Encoded data

BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
BINHEX = b"!\"#$%&'()*+,-012345689@ABCDEFGHIJKLMNPQRSTUVXYZ[`abcdefhijklmpqr"
XX = b"+-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def lines(data, size):
    return b"\n".join(data[i : i + size] for i in range(0, len(data), size))


def uu(data, backtick=False):
    pieces = (data[i : i + 45] for i in range(0, len(data), 45))
    return b"".join(binascii.b2a_uu(piece, backtick=backtick) for piece in pieces)


ENCODERS = {
    "uuencode": lambda b: b"begin 644 a.jpg\n" + uu(b) + b"`\nend",
    "uuencode without blanks": lambda b: b"begin 644 a.jpg\n" + uu(b, True) + b"`\nend",
    "base64": base64.encodebytes,
    "a PGP signature": lambda b: (
        b"-----BEGIN PGP SIGNATURE-----\n\n%b=cB1b\n-----END PGP-----" % base64.encodebytes(b)
    ),
    "xxencode": lambda b: base64.encodebytes(b).translate(bytes.maketrans(BASE64, XX)),
    "BinHex": lambda b: base64.encodebytes(b).translate(bytes.maketrans(BASE64, BINHEX)),
    "Ascii85": lambda b: base64.a85encode(b, wrapcol=72),
    "Ascii85 in short lines": lambda b: base64.a85encode(b, wrapcol=24),
    "base85": lambda b: lines(base64.b85encode(b), 76),
    "base85 in one line": base64.b85encode,
}


@each("name", ENCODERS)
@each("before, after", [("Claim your prize now:\n\n", "\n\nIt is free!\n"), ("é 免费 ", " 😀")])
def test_of_encoded_data_hardly_a_piece_is_left(name, before, after):
    for seed, size in ((1, 30_000), (2, 1_000), (3, 100)):
        data = random.Random(seed).randbytes(size)
        block = ENCODERS[name](data).decode("ascii")
        left = remove_encoded(f"{before}{block}{after}")
        assert left.startswith(before.split(" ")[0])
        assert left.endswith(after.split(" ")[-1])
        assert len(left) < len(before + after) + 100 + 0.02 * size, left


WORDY = [
    "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen ist ein langes Wort. " * 3,
    "中文没有空格所以这是一个很长的没有空格的句子它不应该被删除ABC和DEF和GH。" * 3,
    "2003年10月15日10時20分30秒のABCとDEFとGHIとJKとLMとNOとPQとRSとTU" * 2,
    "ภาษาไทยเขียนติดกันโดยไม่มีช่องว่างระหว่างคำ" * 3,
    "https://www.example.org/a/B7x9Qw2Zr5Tt1Yy8/Xc3Vb6Nm0Ll4Kk?id=aB3dE5fG7hJ9&k=Zz1Yy2Xx3Ww4Vv5",
    "www.example.org/B7x9Qw2Zr5Tt1Yy8Xc3Vb6Nm0Ll4Kk0aB3dE5fG7hJ9Zz1Yy2Xx3Ww4Vv5",
    "f=FCr=20die=20gro=DFe=20Z=E4hlung=20der=20K=FChe=20und=20Pferde=2E=20Viele=20Gr=FC=DFe",
    "v-i-a-g-r-a-a-n-d-c-i-a-l-i-s-a-n-d-v-a-l-i-u-m-a-r-e-c-h-e-a-p-h-e-r-e-n-o-w",
    "r u ok 2 c me b4 u go 2 it? c u l8r m8, b@ 10 or @ 11! " * 3,
    "for(i=0;i<n;i++){a[i]=b[i]+c[j];x[j]=a[i]*b[j];}",
    "getElementsByTagNameAndClassAndId(document.body.firstChild.nextSibling).forEach(show);",
    "|/-\\_/^\\__/\\_|o_O|=====<>=====|/\\/\\|~~~~~~|XX|::::|vv|^^|##|@@|&&|%%|$$|!!|??|..",
    "*" * 70 + " SALE " + "*" * 70 + "\n" + "=-" * 40 + "\n" + "_" * 60,
    "3,141592653589793,2.718281828459045,1.414213562373095,1.732050807568877,0.577215",
    "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 6. Re1 b5 7. Bb3 d6 8. c3 O-O",
    "The sum is 5 (B7x9Qw2Zr5Tt1Yy8Xc3Vb6), I am at it, so we go on.",
]


@each("text", WORDY)
def test_what_people_and_programs_write_stays(text):
    assert remove_encoded(text) == text
    for wrong in ("cp1252", "latin-1"):
        mistaken = text.encode("gb18030").decode(wrong, "replace")
        assert remove_encoded(mistaken) == mistaken


def test_a_chinese_text_read_in_a_wrong_charset_stays():
    text = "這是一封沒有指定字元集的信件所以程式會用錯誤的方式讀取它的內容請不要刪除" * 3
    mistaken = text.encode("big5").decode("latin-1")
    assert remove_encoded(mistaken) == mistaken


@given(st.text(st.characters(codec="utf-8"), max_size=300), st.binary(min_size=60, max_size=300))
def test_without_encoded_data_a_text_is_a_part_of_it(text, data):
    mixed = f"{text} {base64.b85encode(data).decode()} {text}"
    left = remove_encoded(mixed)
    rest = iter(mixed)
    assert all(character in rest for character in left)
