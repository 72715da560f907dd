from collections import Counter
from itertools import pairwise

from any_mail import mails
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading.message import parse, parse_text
from nbspam.tokens.text import SHORT, unspelled, words_of
from nbspam.tokens.tokenized import Wanted, message_tokens, tokenize

WANTED = Wanted(times=True)


def times_of(message):
    return dict(tokenize(message, wanted=WANTED).numbers.times)


def of_text(text):
    return times_of(parse_text(text))


def of_mail(body, content_type="text/plain"):
    return times_of(parse(f"From: a@b.example\nContent-Type: {content_type}\n\n{body}".encode()))


def some(times, *prefixes):
    """Return the times of the tokens of some kinds; "" stands for words, " " for pairs of them."""

    def kind(token):
        name, colon, _ = token.partition(":")
        return name + colon if colon else " " * (" " in token)

    return {token: n for token, n in times.items() if kind(token) in prefixes}


def test_words_bigrams_and_numbers_of_one_shape():
    times = of_mail("win a prize, win a car, win")
    assert some(times, "", " ") == {"win": 3, "a": 2, "win a": 2}
    assert some(of_mail("12 34 567 89 10"), "", " ") == {"00": 4, "00 00": 2}
    assert of_text("free prize") == of_text("") == {}  # what occurs once is absent


def test_trigrams_written_words_and_signs_of_a_short_text_alone():
    times = of_text("Win Win WIN $$")
    assert some(times, "tri:") == {"tri:_wi": 3, "tri:win": 3, "tri:in_": 3, "tri:n_w": 2}
    assert some(times, "case:", "sign:") == {"case:Win": 2, "sign:$": 2}
    assert some(of_mail("Win Win WIN $$"), "tri:", "case:", "sign:") == {}
    times = of_text("ab " * SHORT)
    assert times["ab"] == SHORT
    # Of the first 400 characters, and a blank at each end: as often as a word begins among them.
    assert times["tri:_ab"] == SHORT // 3


@each(
    "body, content_type, prefixes, expected",
    [
        ("now!!! free!!!! yes! no! -- ----", "text/plain", ["punct:"],
         {"punct:!!!": 2, "punct:!": 2}),
        ("http://a.example/pay http://b.a.example/pay/pay www.c.example", "text/plain",
         ["link:", "host:", "path:", ""],
         {"link:": 3, "host:a.example": 2, "host:example": 3, "http": 3, "path:pay": 2}),
        ('<a href="http://a.example/">x</a><a href="HTTP://A.EXAMPLE/">y</a><img src="cid:1">',
         "text/html", ["link:", "host:"], {"link:": 2, "host:a.example": 2, "host:example": 2}),
    ],
)  # fmt: skip
def test_runs_of_punctuation_and_links(body, content_type, prefixes, expected):
    assert some(of_mail(body, content_type), *prefixes) == expected


def test_the_parts_of_a_mail_are_added_and_header_fields_count_once():
    body = "--b\n\nfree\n--b\nContent-Type: text/html\n\n<p>free\n--b--\n"
    assert of_mail(body, "multipart/mixed; boundary=b") == {"free": 2}
    raw = b"From: a@b.example\nSubject: win win win\nReceived: by mx mx mx\n\nFREE FREE FREE\n"
    assert times_of(parse(raw)) == {"free": 3, "free free": 2}


# Any message


REPEATED = (st.text() | st.text("aA1 !$'’-_.,é免\u200b")).map(lambda text: parse_text(text * 3))


@given((mails() | st.binary(max_size=80)).map(parse) | REPEATED)
def test_what_is_repeated_in_any_message_is_among_its_tokens(message):
    times = times_of(message)
    assert times.keys() <= message_tokens(message)
    assert all(type(n) is int and n > 1 for n in times.values())


TEXTS = st.text("abAB12 !$'’-.,éß免费ы", max_size=120)


@given(TEXTS)
def test_words_add_up_to_all_words_and_bigrams_to_all_pairs(text):
    found = tokenize(parse_text(text), wanted=WANTED)
    words = words_of(unspelled(text.lower().replace("’", "'"))[0])
    for expected in (Counter(words), Counter(map(" ".join, pairwise(words)))):
        assert {token: found.numbers.times.get(token, 1) for token in expected} == expected
    of_words = set(found.tokens) & set(words)
    assert sum(found.numbers.times.get(word, 1) for word in of_words) == len(words)


@each("text", ["", "win", "win win", "免费免费 http://a.example"])
@each("wanted", [Wanted(), Wanted(traits=True)])
def test_times_that_are_not_wanted_are_not_taken(text, wanted):
    assert tokenize(parse_text(text), wanted=wanted).numbers.times == {}
