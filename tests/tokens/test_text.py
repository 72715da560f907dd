from golden_tables import golden_table
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading.message import parse
from nbspam.tokens.kinds import KINDS
from nbspam.tokens.text import (
    SHORT,
    Memo,
    link_tokens,
    of_other_kinds,
    short_text_tokens,
    text_tokens,
    typed_tokens,
    unspelled,
    words_of,
)
from nbspam.tokens.tokenized import message_tokens


def kind(tokens, prefix):
    """Return the values of the tokens of a kind."""
    return {token.removeprefix(prefix) for token in tokens if token.startswith(prefix)}


def tokens_of_link(link):
    tokens: set[str] = set()
    link_tokens(link, tokens)
    return tokens


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


@each(
    "text, runs",
    [
        ("now!", "!"), ("now!! really?! now!!!!!!", "!! ?! !!!"),
        ("wait... *** $$$", "... *** $$$"), ("a.b, c; d - e", ""),
    ],
)  # fmt: skip
def test_punctuation_runs(text, runs):
    assert set(runs.split()) == kind(text_tokens(text), "punct:")


@each(
    "text, much",
    [
        ("no shouting, I say", set()), ("FREE", {"1"}), ("FREE PRIZE", {"2"}),
        ("FREE PRIZE FOR YOU NOW", {"3"}), ("ЭТО СПАМ", {"2"}), ("BUY " * 100, {"5"}),
        ("McDonald iPhone", set()), *[(text, set()) for text in ("żółw", "你好世界", "नमस्ते")],
    ],
)  # fmt: skip
def test_words_of_a_short_text_in_capitals_are_counted_roughly(text, much):
    assert much == kind(short_text_tokens(text), "caps:")
    assert not kind(text_tokens(text), "caps:")


# Links


def test_a_links_host_parents_and_path():
    assert tokens_of_link("http://www.shop.example.com/free/deal-123?id=9") == {
        *("link:", "path:free", "path:deal", "path:id"),
        *("host:www.shop.example.com", "host:shop.example.com", "host:example.com", "host:com"),
    }
    hosts = kind(tokens_of_link("http://bank.example@evil.test/"), "host:")
    assert hosts == {"evil.test", "test"}  # and not the user before the host


ODD = {"link:user", "link:port", "link:escaped", "host:ip"}


@each(
    "link, token",
    [
        ("http://bank.example@evil.example/", "link:user"),
        ("http://evil.example:8080/", "link:port"),
        ("http://evil.example/%66%72ee", "link:escaped"),
        ("http://10.1.2.3/x", "host:ip"), ("http://10.1.2.3/x", "host:10.1"),
        ("www.example.org", "host:example.org"), ("https://evil.example?free", "path:free"),
    ],
)  # fmt: skip
def test_what_is_odd_about_a_link(link, token):
    assert token in tokens_of_link(link)
    assert tokens_of_link(link) & ODD <= {token, "host:ip"}


@each("link", ["http://a.example/x", "https://a.example:443/x", "http://a.b:80"])
def test_what_is_usual_about_a_link_is_not_told(link):
    assert not tokens_of_link(link) & ODD


@each("link", ["http:///", "http://@", "http://:", "http://.."])
def test_a_link_to_nowhere_is_a_link(link):
    assert "link:" in tokens_of_link(link)
    assert kind(tokens_of_link(link), "host:") == set()


def test_a_link_is_no_words_of_the_text_and_a_host_has_a_bounded_number_of_parents():
    tokens = set(text_tokens("See HTTPS://Shop.Example/Deal?x=1 (or www.example.org) now"))
    words = {token for token in tokens if ":" not in token and " " not in token}
    assert words == {"see", "http", "or", "now"}
    assert {"host:shop.example", "path:deal", "host:example.org"} <= tokens
    tokens = tokens_of_link("http://" + "a." * 200 + "example/")
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


@each(
    "typed, tokens",
    [
        ("free", ["free"]), ("FREE", ["free"]), ("v1agra", ["viagra"]),
        ("v.i.a.g.r.a", ["viagra"]), ("fr\u200bee", ["free"]), ("2024", ["0000"]),
        ("claim now", ["claim now"]), ("claim it now", ["claim it", "it now"]),
        ("subject:Claim NOW", ["subject:claim now"]), ("Subject:free", ["subject:free"]),
        ("host:Example.org", ["host:example.org"]), ("case:FREE", ["case:FREE"]),
        ("punct:!!!", ["punct:!!!"]), ("!!!", ["!!!"]), ("re:free", ["re free"]),
    ],
)  # fmt: skip
def test_a_word_as_the_tokenizer_writes_it(typed, tokens):
    assert typed_tokens(typed) == tokens


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
