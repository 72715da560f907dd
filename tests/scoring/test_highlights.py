import pytest
from golden_tables import golden_table
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.scoring.explanation import Word
from nbspam.scoring.highlights import (
    excerpt_json,
    highlight,
    without_highlights,
    words_as_written,
)
from nbspam.tokens.headers import header_tokens
from nbspam.tokens.text import short_text_tokens, text_tokens
from nbspam.tokens.tokenized import Excerpt


def text(value, subject="", sender=""):
    return Excerpt(subject, sender, value, len(value))


def shown(runs):
    signs = {0: "", 1: "+", 2: "++", -1: "-", -2: "--"}
    return [(run.text, signs[run.emphasis]) for run in runs if not run.text.isspace()]


def test_a_word_has_its_share_and_half_of_its_bigrams():
    found = highlight(text("win a prize"), {"win": 1.0, "a prize": 0.6, "prize": -0.1})
    nats = {run.text: run.nats for run in found.text}
    assert nats == pytest.approx({"win": 1.0, " ": 0.0, "a": 0.3, "prize": 0.2})


def test_numbers_are_shown_as_the_message_has_them():
    words = [Word(token, 1.0, (0, 1), 1.0) for token in ("00", "subject:000", "tri:000", "0000")]
    excerpt = without_highlights(text("win 25 x", subject="only 250", sender="a1 <a@b.example>"))
    shown = [word.token for word in words_as_written(excerpt, words)]
    assert shown == ["25", "subject:250", "tri:000", "0000"]


def test_a_token_that_stands_twice_is_shared_between_its_places():
    found = highlight(text("free free"), {"free": 1.0})
    assert [run.nats for run in found.text] == pytest.approx([0.5, 0.0, 0.5])


def test_the_fields_have_their_own_tokens():
    found = highlight(
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
    found = highlight(text(" ".join(words)), dict(zip(words, shares, strict=True)))
    assert shown(found.text) == list(zip(words, emphases, strict=True))
    assert highlight(text(""), {}).text == ()


def test_words_of_one_emphasis_are_joined_with_the_blank_between_them():
    shares = {"free": 1.0, "prize": 3.0, "lunch": -1.0}
    found = highlight(text("a prize prize, and lunch free prize"), shares).merge_runs()
    words = ["a ", "prize prize", ", and ", "lunch", " ", "free prize"]
    assert [run.text for run in found.text if run.text] == words


@given(st.text(max_size=60), st.dictionaries(st.sampled_from("abc"), st.floats(-3, 3)))
def test_no_character_is_lost_and_the_shares_add_up(value, shares):
    found = highlight(text(value), shares)
    for one in (found, found.merge_runs(), found.merge_runs(1)):
        assert "".join(run.text for run in one.text) == value
    whole = sum(run.nats for run in found.text)
    assert whole == pytest.approx(sum(run.nats for run in found.merge_runs().text))


@each("value, token, pieces", golden_table("tokens/words.table", 3, "places"))
def test_a_token_stands_where_a_reader_sees_it(value, token, pieces):
    shares = dict.fromkeys([token, "tri:not there"] if token[:4] == "tri:" else [token], 1.0)
    found = highlight(text(value), shares)
    assert [run.text for run in found.text if run.nats] == pieces.split()


WORDS = st.lists(st.sampled_from("Free free, v1agra £1,000 50% a's tea: v.i.a.g.r.a".split()))


@given(WORDS)
def test_every_token_of_a_text_is_of_one_word_or_of_two(words):
    value = " ".join(words)
    for token in {*text_tokens(value), *short_text_tokens(value)}:
        if not token.startswith("trick:"):
            found = highlight(text(value), {token: 1.0, "tri:": 0.0})
            assert sum(run.nats for run in found.text) == pytest.approx(1.0), token


def test_words_and_hosts_of_the_sender_have_places():
    sender = "Prize Desk <win@mail.shop.example>"
    tokens = [t for t in header_tokens([("from", sender)]) if t.startswith(("from:", "sender:"))]
    for token in tokens:
        found = highlight(text("", sender=sender), {token: 1.0})
        assert sum(run.nats for run in found.sender) == pytest.approx(1.0), token
    found = highlight(text("", sender=sender), {"from:@shop.example": 1.0})
    assert [run.text for run in found.sender if run.nats] == ["win@mail.shop.example"]


def test_json_has_the_places_of_what_is_highlighted():
    shares = {"free": 1.0, "prize": 1.0}
    fields = excerpt_json(highlight(text("a free prize", subject="hello"), shares))
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
        highlight(text(sign * 5_000), {"free": 1.0})
