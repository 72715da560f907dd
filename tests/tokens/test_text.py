from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.tokens.text import (
    SHORT,
    link_tokens,
    short_text_tokens,
    text_tokens,
    unspelled,
    words_of,
)


def kind(tokens, prefix):
    """Return the values of the tokens of a kind."""
    return {token.removeprefix(prefix) for token in tokens if token.startswith(prefix)}


def tokens_of_link(link):
    tokens: set[str] = set()
    link_tokens(link, tokens)
    return tokens


# Words


@each(
    "text, words",
    [
        ("free prize", ["free", "prize"]),
        ("don't e-mail me", ["don't", "e-mail", "me"]),
        ("'quoted' -dashed-", ["quoted", "dashed"]),
        ("snake_case", ["snake", "case"]),
        ("naïve façade", ["naïve", "façade"]),
        ("cafe\u0301 au lait", ["cafe\u0301", "au", "lait"]),
        ("größe straße", ["größe", "straße"]),
        ("привет, мир!", ["привет", "мир"]),
        ("καλημέρα κόσμε", ["καλημέρα", "κόσμε"]),
        ("مرحبا بالعالم", ["مرحبا", "بالعالم"]),
        ("مُحَمَّد", ["مُحَمَّد"]),
        ("שלום עולם", ["שלום", "עולם"]),
        ("नमस्ते हिन्दी दुनिया", ["नमस्ते", "हिन्दी", "दुनिया"]),
        ("বাংলা தமிழ் తెలుగు", ["বাংলা", "தமிழ்", "తెలుగు"]),
        ("한국어 텍스트", ["한국어", "텍스트"]),
        ("გამარჯობა", ["გამარჯობა"]),
        ("", []),
        (" \n\t.,;", []),
    ],
)
def test_words_of_many_scripts(text, words):
    assert words == words_of(text)


@each(
    "text, pairs",
    [
        ("你好世界", ["你好", "好世", "世界"]), ("你好，世界。", ["你好", "世界"]), ("好", ["好"]),
        ("こんにちは", ["こん", "んに", "にち", "ちは"]), ("カタカナ", ["カタ", "タカ", "カナ"]),
        ("免费free奖品", ["免费", "free", "奖品"]), ("ກຂ", ["ກຂ"]),
    ],
)  # fmt: skip
def test_what_is_written_without_spaces_is_cut_into_character_pairs(text, pairs):
    assert pairs == words_of(text)


def test_thai_is_cut_into_character_pairs_with_its_signs():
    words = words_of("สวัสดี")
    assert {len(word) for word in words} == {2}
    assert len(words) == 5


@each(
    "text, words",
    [
        ("1234", ["0000"]),
        ("call 07712 345678", ["call", "00000", "000000"]),
        ("b2b 4u 1st", ["b0b", "0u", "0st"]),
        ("$1,000.50", ["$0,000.00"]),
        ("£500 €20 ¥9 ₹5", ["£000", "€00", "¥0", "₹0"]),
        ("50% 12.5%", ["00%", "00.0%"]),
        ("10:30 1.2.3", ["00", "00", "0.0.0"]),
        ("2024-05-06", ["0000", "00", "00"]),
        ("v1agra", ["v0agra"]),
    ],
)
def test_digits_are_folded_and_money_and_percent_are_words(text, words):
    assert words == words_of(text)


@each("text", ["$1,000.50 off", "at 10:30", "50% of it", "v1agra 4u", "1st"])
def test_numbers_are_the_same_beside_a_word_of_another_script(text):
    assert [*words_of(text), "мир"] == words_of(f"{text} мир")


@given(st.lists(st.from_regex(r"[a-z]{1,12}|[0-9]{1,10}|[a-z]{1,5}'[a-z]", fullmatch=True)))
def test_words_do_not_depend_on_what_else_stands_in_the_text(words):
    text = " ".join(words)
    for other in ("é", "д", "cafe\u0301", "“x”"):
        assert [*words_of(text), *words_of(other)] == words_of(f"{text} {other}")


def test_money_with_letters_behind_it_does_not_depend_on_what_else_stands_in_the_text():
    assert [*words_of("$5abc"), "é"] == words_of("$5abc é")


@each("letter", ["a", "é", "д"])
def test_long_words_are_dropped(letter):
    assert [letter * 30] == words_of(letter * 30)
    assert words_of(letter * 31) == []
    assert words_of(f"see {letter * 400} there") == ["see", "there"]


@each("rest", ["", " é"])
def test_numbers_as_long_as_no_word_are_dropped(rest):
    assert words_of("7" * 30 + rest)[0] == "0" * 30
    assert "0" not in "".join(words_of("7" * 31 + rest))


# Texts


def test_words_and_pairs_of_neighbours():
    assert text_tokens("Claim your prize") == {
        *("claim", "your", "prize"),
        *("claim your", "your prize"),
    }


@given(st.text(alphabet="ab01é:д!.,'- "))
def test_no_word_holds_a_colon(text):
    assert not [word for word in words_of(f"punct:! {text} 10:30") if ":" in word]


@each(
    "text, runs",
    [
        ("now!", {"!"}),
        ("now!! really?! now!!!!!!", {"!!", "?!", "!!!"}),
        ("wait... *** $$$", {"...", "***", "$$$"}),
        ("a.b, c; d - e", set()),
    ],
)
def test_punctuation_runs(text, runs):
    assert runs == kind(text_tokens(text), "punct:")


@each(
    "text, much",
    [
        ("no shouting, I say", set()), ("FREE", {"1"}), ("FREE PRIZE", {"2"}),
        ("FREE PRIZE FOR YOU NOW", {"3"}), ("ЭТО СПАМ", {"2"}), ("BUY " * 1000, {"5"}),
        ("McDonald iPhone", set()),
    ],
)  # fmt: skip
def test_words_in_capitals_are_counted_roughly(text, much):
    assert much == kind(text_tokens(text), "caps:")


@each("text", ["привет мир", "żółw łódź", "καλημέρα", "你好世界", "مرحبا", "नमस्ते", "한국어"])
def test_small_letters_and_scripts_without_capitals_are_no_capitals(text):
    assert kind(text_tokens(text), "caps:") == set()


# Links


def test_a_links_host_parents_and_path():
    assert tokens_of_link("http://www.shop.example.com/free/deal-123?id=9") == {
        "link:",
        "host:www.shop.example.com",
        "host:shop.example.com",
        "host:example.com",
        "host:com",
        "path:free",
        "path:deal",
        "path:id",
    }


@each(
    "link, token",
    [
        ("http://bank.example@evil.example/", "link:user"),
        ("http://evil.example:8080/", "link:port"),
        ("http://evil.example/%66%72ee", "link:escaped"),
        ("http://10.1.2.3/x", "host:ip"),
        ("http://10.1.2.3/x", "host:10.1"),
        ("www.example.org", "host:example.org"),
        ("https://evil.example?free", "path:free"),
    ],
)
def test_what_is_odd_about_a_link(link, token):
    assert token in tokens_of_link(link)


@each("link", ["http://a.example/x", "https://a.example:443/x", "http://a.b:80"])
def test_what_is_usual_about_a_link_is_not_told(link):
    assert not tokens_of_link(link) & {"link:user", "link:port", "link:escaped", "host:ip"}


def test_the_user_before_the_host_is_not_the_host():
    hosts = kind(tokens_of_link("http://bank.example@evil.test/"), "host:")
    assert hosts == {"evil.test", "test"}


@each("link", ["http:///", "http://@", "http://:", "http://.."])
def test_a_link_to_nowhere_is_a_link(link):
    assert "link:" in tokens_of_link(link)
    assert kind(tokens_of_link(link), "host:") == set()


def test_a_link_is_no_words_of_the_text():
    tokens = text_tokens("See HTTPS://Shop.Example/Deal?x=1 (or www.example.org) now")
    words = {token for token in tokens if ":" not in token and " " not in token}
    assert words == {"see", "http", "or", "now"}
    assert {"host:shop.example", "path:deal", "host:example.org"} <= tokens


def test_a_host_has_a_bounded_number_of_parents():
    tokens = tokens_of_link("http://" + "a." * 200 + "example/")
    assert len(kind(tokens, "host:")) <= 7
    assert max(map(len, tokens)) <= 100


# Short texts


def test_a_short_text_has_its_words_as_written_its_signs_and_triples():
    assert short_text_tokens("Win £5 NOW!") == {
        *("case:Win", "case:NOW"),
        *("sign:£", "sign:!"),
        *("tri:_wi", "tri:win", "tri:in_", "tri:n_£", "tri:_£5", "tri:£5_", "tri:5_n"),
        *("tri:_no", "tri:now", "tri:ow!", "tri:w!_"),
    }


@each("text", ["", "   ", "\n\t"])
def test_a_short_text_of_nothing_has_next_to_nothing(text):
    assert len(short_text_tokens(text)) <= 1


def test_short_is_longer_than_an_sms_and_shorter_than_a_mail():
    assert 160 * 2 < SHORT < 1000


# Disguised words


@each(
    "text, meant",
    [
        ("v.i.a.g.r.a now", "viagra now"),
        ("buy v-i-a-g-r-a, c*i*a*l*i*s", "buy viagra, cialis"),
        ("f r e e", "free"),
        ("the f r e e  g i f t\nb u y", "the free  gift\nb u y"),
        ("с.к.и.д.к.а", "скидка"),
        ("u.s.a. and u.k.", "u.s.a. and u.k."),
        ("a.b-c.d", "a.b-c.d"),
        ("a - b - c - d", "a - b - c - d"),
        ("1 2 3 4 5", "1 2 3 4 5"),
    ],
)
def test_words_spelled_letter_by_letter_are_joined(text, meant):
    assert unspelled(text) == (meant, text != meant)
    assert ("trick:spelled" in text_tokens(text)) == (text != meant)


@each(
    "text, meant",
    [
        ("v1agra g00d m0ney", "viagra good money"),
        ("v1agra скидка", "viagra скидка"),
        ("mp3 4you l8r b2b 10th x86", "mp3 4you l8r b2b 10th x86"),
        ("cli_ck snake__case _a_", "click snake__case _a_"),
        ("a1a1a1", "aiaia1"),
    ],
)
def test_digits_and_underscores_within_words_are_read_as_meant(text, meant):
    assert unspelled(text) == (meant, False)


@given(st.text(alphabet="ab01 ._-é免"))
def test_what_is_meant_is_no_longer(text):
    meant, _ = unspelled(text)
    assert len(meant) <= len(text)
    assert sum(map(str.isspace, meant)) <= sum(map(str.isspace, text))
