"""Texts and their letters; golden/tokens has tables of texts and what they mean."""

from unittest.mock import patch

from golden_tables import golden_table
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.tokens import text as plain_text
from nbspam.tokens.disguises import western_bytes
from nbspam.tokens.text import (
    SHORT_TEXT_LENGTH,
    Memo,
    link_tokens,
    readable,
    repeated_text_tokens,
    short_text_tokens,
    text_tokens,
    words_of,
    written_numbers,
)  # fmt: skip


def kind(tokens, prefix):
    """Return the values of the tokens of a kind."""
    return {token.removeprefix(prefix) for token in tokens if token.startswith(prefix)}


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


def test_tokens_with_digits_are_found_as_they_are_written():
    found = written_numbers(
        "Call 09061701461 or 08700 621170, win £900 at http://x1.example/22 now"
    )
    expected = {"00000000000": "09061701461", "call 00000000000": "call 09061701461"}
    assert expected.items() <= found.items()
    assert (found["£000"], found["00000 000000"]) == ("£900", "08700 621170")
    assert "00" not in found  # of the link, which is no word
    assert "win" not in found


@given(st.text(alphabet="a1٣é’_-$£%, İ7", max_size=40))
def test_a_written_number_has_its_tokens_form(text):
    """But for digits in place of letters (`a1a`), which are undone and so are no token."""
    tokens = text_tokens(text)
    for token, written in written_numbers(text).items():
        assert token not in tokens or token in text_tokens(written)


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
    assert 160 * 2 < SHORT_TEXT_LENGTH < 1000  # longer than an SMS, and shorter than a mail


def test_a_text_is_cut_once_for_its_tokens_and_for_how_often_they_occur():
    text, _ = readable("Claim your prize, claim it: www.example.org")
    with patch.object(plain_text, "words_of", wraps=words_of) as asked:
        tokens = text_tokens(text)
        assert set(repeated_text_tokens(text)) == set(tokens)
    assert asked.call_count == 1
    assert text.western is western_bytes(text)


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
