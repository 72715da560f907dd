import pytest
from golden_tables import golden_table
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.scoring.highlights import excerpt_json, highlighted, without_highlights
from nbspam.tokens.headers import header_tokens
from nbspam.tokens.text import short_text_tokens, text_tokens
from nbspam.tokens.tokenized import Excerpt


def text(value, subject="", sender=""):
    return Excerpt(subject, sender, value, len(value))


def shown(runs):
    signs = {0: "", 1: "+", 2: "++", -1: "-", -2: "--"}
    return [(run.text, signs[run.emphasis]) for run in runs if not run.text.isspace()]


def test_a_word_has_its_share_and_half_of_its_bigrams():
    found = highlighted(text("win a prize"), {"win": 1.0, "a prize": 0.6, "prize": -0.1})
    nats = {run.text: run.nats for run in found.text}
    assert nats == pytest.approx({"win": 1.0, " ": 0.0, "a": 0.3, "prize": 0.2})


def test_a_token_that_stands_twice_is_shared_between_its_places():
    found = highlighted(text("free free"), {"free": 1.0})
    assert [run.nats for run in found.text] == pytest.approx([0.5, 0.0, 0.5])


def test_the_fields_have_their_own_tokens():
    found = highlighted(
        text("prize", subject="prize", sender="Prize <a@shop.example>"),
        {"subject:prize": 1.0, "prize": -1.0, "from:@shop.example": 1.0},
    )
    assert [run.emphasis > 0 for run in found.subject] == [True]
    assert [run.emphasis < 0 for run in found.text] == [True]
    assert [run.text for run in found.sender if run.emphasis > 0] == ["a@shop.example"]


@each(
    "shares, emphases",
    [
        ((3.0, -0.2, 0.1, 0), ["++", "", "", ""]),
        ((3.0, -1.6, 1.4, 0), ["++", "-", "", ""]),  # 1.4 is less than 3 / 2
        ((3.0, 1.5, -1.5, 0), ["++", "+", "-", ""]),
        ((3.0, 1.0, 1.0, 1.0), ["++", "+", "+", "+"]),  # 3 is just half of all
        ((1.0, 0.9, 0.8, 0.7), ["++", "+", "+", "+"]),  # the first is 29 % of all
        ((1.0, 1.0, 1.0, 1.0), ["++", "++", "++", "++"]),
        ((0, 0, 0, 0), ["", "", "", ""]),
    ],
)
def test_what_is_weak_beside_the_rest_is_not_highlighted(shares, emphases):
    words = "prize lunch table chair".split()
    found = highlighted(text(" ".join(words)), dict(zip(words, shares, strict=True)))
    assert shown(found.text) == list(zip(words, emphases, strict=True))
    assert highlighted(text(""), {}).text == ()


def test_words_of_one_emphasis_are_joined_with_the_blank_between_them():
    shares = {"free": 1.0, "prize": 3.0, "lunch": -1.0}
    found = highlighted(text("a prize prize, and lunch free prize"), shares).joined()
    words = ["a ", "prize prize", ", and ", "lunch", " ", "free prize"]
    assert [run.text for run in found.text if run.text] == words


@given(st.text(max_size=60), st.dictionaries(st.sampled_from("abc"), st.floats(-3, 3)))
def test_no_character_is_lost_and_the_shares_add_up(value, shares):
    found = highlighted(text(value), shares)
    for one in (found, found.joined(), found.joined(1)):
        assert "".join(run.text for run in one.text) == value
    whole = sum(run.nats for run in found.text)
    assert whole == pytest.approx(sum(run.nats for run in found.joined().text))


@each("value, token, pieces", golden_table("tokens/words.table", 3, "places"))
def test_a_token_stands_where_a_reader_sees_it(value, token, pieces):
    shares = dict.fromkeys([token, "tri:not there"] if token[:4] == "tri:" else [token], 1.0)
    found = highlighted(text(value), shares)
    assert [run.text for run in found.text if run.nats] == pieces.split()


WORDS = st.lists(st.sampled_from("Free free, v1agra £1,000 50% a's tea: v.i.a.g.r.a".split()))


@given(WORDS)
def test_every_token_of_a_text_is_of_one_word_or_of_two(words):
    value = " ".join(words)
    for token in {*text_tokens(value), *short_text_tokens(value)}:
        if not token.startswith("trick:"):
            found = highlighted(text(value), {token: 1.0, "tri:": 0.0})
            assert sum(run.nats for run in found.text) == pytest.approx(1.0), token


def test_words_and_hosts_of_the_sender_have_places():
    sender = "Prize Desk <win@mail.shop.example>"
    tokens = [t for t in header_tokens([("from", sender)]) if t.startswith(("from:", "sender:"))]
    for token in tokens:
        found = highlighted(text("", sender=sender), {token: 1.0})
        assert sum(run.nats for run in found.sender) == pytest.approx(1.0), token
    found = highlighted(text("", sender=sender), {"from:@shop.example": 1.0})
    assert [run.text for run in found.sender if run.nats] == ["win@mail.shop.example"]


def test_json_has_the_places_of_what_is_highlighted():
    shares = {"free": 1.0, "prize": 1.0}
    fields = excerpt_json(highlighted(text("a free prize", subject="hello"), shares))
    assert fields == {
        "subject": "hello",
        "from": "",
        "text": "a free prize",
        "characters_left_out": 0,
        "highlights": {"subject": [], "from": [], "text": [[2, 12, pytest.approx(2.0)]]},
    }
    assert excerpt_json(without_highlights(text("a free prize")))["highlights"]["text"] == []


def test_a_text_of_signs_takes_no_time():
    for sign in ("$", "a!", "$a", "%", "a.", "_"):
        highlighted(text(sign * 5_000), {"free": 1.0})
