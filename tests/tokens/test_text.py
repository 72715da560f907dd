"""Texts and their letters; golden/tokens has tables of texts and what they mean."""

import re

from golden_tables import golden_table
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading.message import parse
from nbspam.tokens.kinds import KINDS
from nbspam.tokens.text import (
    ALIKE,
    COMPATIBLES,
    INVISIBLES,
    MARKS,
    SHORT,
    UNSPACED,
    Memo,
    link_tokens,
    may_have,
    of_other_kinds,
    short_text_tokens,
    strange_characters,
    text_tokens,
    typed_tokens,
    undo_tricks,
    unspelled,
    western_bytes,
    words_of,
)  # fmt: skip
from nbspam.tokens.tokenized import message_tokens


def kind(tokens, prefix):
    """Return the values of the tokens of a kind."""
    return {token.removeprefix(prefix) for token in tokens if token.startswith(prefix)}


def in_cp1252(text):
    try:
        return text.encode("cp1252")
    except UnicodeEncodeError:
        return None


def test_western_bytes_are_windows_1252_by_either_way():
    for character in map(chr, range(0x2200)):
        for text in (character, f"é{character}", f"”{character}"):
            assert western_bytes(text) == in_cp1252(text), ascii(text)


# Words


@each("text, words", golden_table("tokens/words.table", 2))
def test_words_of_many_scripts_pairs_of_characters_and_numbers(text, words):
    assert words.split() == words_of(text)


@each("text", ["$1,000.50 off", "at 10:30", "50% of it", "v1agra 4u", "1st", "$5abc"])
def test_numbers_are_the_same_beside_a_word_of_another_script(text):
    for other in ("мир", "é"):
        assert [*words_of(text), other] == words_of(f"{text} {other}")


@given(st.lists(st.from_regex(r"[a-z]{1,12}|[0-9]{1,10}|[a-z]{1,5}'[a-z]", fullmatch=True)))
def test_words_do_not_depend_on_what_else_stands_in_the_text(words):
    text = " ".join(words)
    for other in ("é", "д", "cafe\u0301", "“x”"):
        assert [*words_of(text), *words_of(other)] == words_of(f"{text} {other}")


@each("letter", ["a", "é", "д"])
def test_long_words_and_numbers_are_dropped(letter):
    assert [letter * 30] == words_of(letter * 30)
    assert words_of(letter * 31) == []
    assert words_of(f"see {letter * 400} there") == ["see", "there"]
    for rest in ("", " é"):
        assert words_of("7" * 30 + rest)[0] == "0" * 30
        assert "0" not in "".join(words_of("7" * 31 + rest))


# Texts


def test_words_and_pairs_of_neighbours_and_what_a_short_text_has_besides():
    words = {"claim", "your", "prize"}
    assert set(text_tokens("Claim your prize")) == words | {"claim your", "your prize"}
    assert set(short_text_tokens("Win £5 NOW!")) == {
        *("case:Win", "case:NOW"),
        *("sign:£", "sign:!", "caps:1"),
        *("tri:_wi", "tri:win", "tri:in_", "tri:n_£", "tri:_£5", "tri:£5_", "tri:5_n"),
        *("tri:_no", "tri:now", "tri:ow!", "tri:w!_"),
    }
    for text in ("", "   ", "\n\t"):
        assert len(short_text_tokens(text)) <= 1
    assert 160 * 2 < SHORT < 1000  # longer than an SMS, and shorter than a mail


@given(st.text(alphabet="ab01é:д!.,'- "))
def test_no_word_holds_a_colon(text):
    assert not [word for word in words_of(f"punct:! {text} 10:30") if ":" in word]


@each("text, runs", golden_table("tokens/words.table", 2, "punctuation"))
def test_punctuation_runs(text, runs):
    assert set(runs.split()) == kind(text_tokens(text), "punct:")


@each("text, much", golden_table("tokens/words.table", 2, "capitals"))
def test_words_of_a_short_text_in_capitals_are_counted_roughly(text, much):
    assert set(much.split()) == kind(short_text_tokens(text), "caps:")
    assert not kind(text_tokens(text), "caps:")


# Links


def test_a_links_host_parents_and_path():
    assert link_tokens("http://www.shop.example.com/free/deal-123?id=9") == {
        *("link:", "path:free", "path:deal", "path:id"),
        *("host:www.shop.example.com", "host:shop.example.com", "host:example.com", "host:com"),
    }
    hosts = kind(link_tokens("http://bank.example@evil.test/"), "host:")
    assert hosts == {"evil.test", "test"}  # and not the user before the host


ODD = {"link:user", "link:port", "link:escaped", "host:ip"}


@each("link, token", golden_table("tokens/words.table", 2, "odd links"))
def test_what_is_odd_about_a_link(link, token):
    assert token in link_tokens(link)
    assert link_tokens(link) & ODD <= {token, "host:ip"}


@each("link", ["http://a.example/x", "https://a.example:443/x", "http://a.b:80"])
def test_what_is_usual_about_a_link_is_not_told(link):
    assert not link_tokens(link) & ODD


@each("link", ["http:///", "http://@", "http://:", "http://.."])
def test_a_link_to_nowhere_is_a_link(link):
    assert "link:" in link_tokens(link)
    assert kind(link_tokens(link), "host:") == set()


def test_a_link_is_no_words_of_the_text_and_a_host_has_a_bounded_number_of_parents():
    tokens = set(text_tokens("See HTTPS://Shop.Example/Deal?x=1 (or www.example.org) now"))
    words = {token for token in tokens if ":" not in token and " " not in token}
    assert words == {"see", "http", "or", "now"}
    assert {"host:shop.example", "path:deal", "host:example.org"} <= tokens
    tokens = link_tokens("http://" + "a." * 200 + "example/")
    assert len(kind(tokens, "host:")) <= 7
    assert max(map(len, tokens)) <= 100


# Disguised words


@each("text, meant, trick", golden_table("tokens/unspelled.table", 3))
def test_words_in_disguise_are_read_as_meant_and_those_spelled_out_marked(text, meant, trick):
    assert unspelled(text) == (meant, bool(trick))
    assert ("trick:spelled" in text_tokens(text)) == bool(trick)


@given(st.text(alphabet="ab01 ._-é免"))
def test_what_is_meant_is_no_longer(text):
    meant, _ = unspelled(text)
    assert len(meant) <= len(text)
    assert sum(map(str.isspace, meant)) <= sum(map(str.isspace, text))


def test_of_a_long_host_the_last_80_characters_are_its_token():
    host = f"{'a' * 50}.{'b' * 50}.example"
    assert f"host:{host[-80:]}" in text_tokens(f"http://{host}/x")
    assert f"host:{'b' * 50}.example" in text_tokens(f"http://{host}/x")


def counted(limit):
    """Return a memo of upper case, and the list of what it had to work out."""
    asked = []

    def upper(key):
        asked.append(key)
        return key.upper()

    return Memo(upper, limit), asked


def test_what_is_known_is_not_worked_out_again_but_a_full_memo_forgets():
    memo, asked = counted(10)
    assert list(map(memo.__getitem__, ["a", "b", "a"])) == ["A", "B", "A"]
    assert asked == ["a", "b"]
    memo, asked = counted(2)
    for key in ("a", "b", "c", "a"):
        assert memo[key] == key.upper()
        assert len(memo) <= 2
    assert asked == ["a", "b", "c", "a"]
    memo, _ = counted(10)
    assert memo["x" * 100_000] == "X" * 100_000
    assert not memo  # a long key is not kept


@given(st.lists(st.text(max_size=3)), st.integers(1, 5))
def test_a_memo_gives_what_its_function_gives(keys, limit):
    memo, _ = counted(limit)
    assert [key.upper() for key in keys] == [memo[key] for key in keys]


@each("typed, tokens", golden_table("tokens/words.table", 2, "typed"))
def test_a_word_as_the_tokenizer_writes_it(typed, tokens):
    assert typed_tokens(typed) == tokens.split(", ")


@each("text", ["FREE", "v1agra", "don’t", "naïve", "£100", "f-r-e-e", "日本"])
def test_a_text_of_that_word_has_that_token(text):
    found = message_tokens(parse(f"Subject: {text}\nFrom: a@example.org\n\n{text}\n".encode()))
    assert set(typed_tokens(text)) <= found
    assert set(typed_tokens(f"subject:{text}")) <= found


def test_other_kinds():
    assert "subject:free" in of_other_kinds("free")
    assert "free" in of_other_kinds("subject:free")
    assert "from:free" in of_other_kinds("subject:free")
    assert "free" not in of_other_kinds("free")
    assert len(of_other_kinds("free")) == len(KINDS) - 1


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


SETS = [MARKS, UNSPACED, INVISIBLES, COMPATIBLES, ALIKE]


@each("ranges", SETS)
def test_a_text_may_have_just_the_characters_of_a_set_s_pattern(ranges):
    assert set(ranges[1::3]) == {"-"}
    everything = "".join(map(chr, [*range(0x32000), *range(0xE0000, 0xE0200)]))
    of_pattern = set(re.findall(f"[{ranges}]", everything))
    assert strange_characters("".join(of_pattern)) == of_pattern
    # Those at the ends of the ranges, and every 211th; no other plane has any.
    ends = {chr(ord(c) + i) for c in ranges if "\0" < c < chr(0x10FFFF) for i in (-1, 0, 1)}
    some = ends | set(everything[::211])
    assert {c for c in some if may_have({c}, ranges)} == of_pattern & some
    assert may_have(of_pattern, ranges)
    assert not may_have(set(), ranges)
