"""How a mail begins: the tokens of the opening."""

import pytest
from any_mail import mails
from hypothesis import example, given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading.message import parse, parse_text
from nbspam.tokens import disguises
from nbspam.tokens.text import opening_tokens
from nbspam.tokens.tokenized import message_tokens

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def of(text):
    return [token.removeprefix("open:") for token in opening_tokens([text])]


def of_message(message):
    return {t.removeprefix("open:") for t in message_tokens(message) if t.startswith("open:")}


@each(
    "text, expected",
    [
        ("Dear  friend,\n\nhi", ["dear", "frien", "hi", "!,"]),
        ("WIN £1,000!!! (free)", ["win", "£0,00", "(free", "!£0,000!!!", "!()"]),
        ("call 0906-123 on 7/8", ["call", "0000-", "on", "0/0", "!0000-000", "!0/0"]),
        ("a b a, b a", ["a", "b", "a,", "!,"]),
        ("привет, мир!", ["приве", "мир!", "!,", "!!"]),
        ("免费发票 now", ["免费", "费发", "发票", "now"]),
        ("**************** x", ["*****", "x", "!************"]),
        ("", []),
    ],
)
def test_pieces_cut_at_5_and_what_is_left_without_letters_cut_at_12(text, expected):
    assert of(text) == expected


def test_the_beginning_is_of_500_characters_and_signs_are_of_12000():
    found = of(" ".join(["word"] * 200) + " later, " + "x " * 6_000 + "end;")
    assert found == ["word", "!,"]
    assert of("a" * 498 + " bcd ef") == ["aaaaa", "b"]


def test_the_subject_comes_first_and_then_the_text_in_plain_sight():
    page = (
        b"Subject: Hello, Bob\nContent-Type: text/html\n\n<p>Prize &amp; more</p>"
        b"<p style='display:none'>meeting; notes</p><p title='lunch/tea'></p>"
    )
    assert of_message(parse(page)) == {"hello", "bob", "prize", "&", "more", "!,", "!&"}
    attached = (
        b"Subject: a\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\none\n--b\n"
        b"Content-Disposition: attachment\nContent-Type: text/plain\n\nother\n--b--\n"
    )
    assert of_message(parse(attached)) == {"a", "one"}


def test_a_text_without_headers_has_an_opening_where_trigrams_are_not_of_all_of_it():
    assert of_message(parse_text("a" * 399 + "!")) == set()
    assert of_message(parse_text("a" * 399 + " !")) == {"aaaaa", "!", "!!"}


@given(TEXT)
@example("".join(chr(i) for i in range(256)))
def test_a_token_is_short_printable_and_whole(text):
    for token in of(text):
        assert 0 < len(token) <= 13
        assert not any(character.isspace() for character in token)


@given(st.text(st.characters(codec="cp1252", exclude_characters="\x81\x8d\x8f\x90\x9d")))
@example(" ".join(bytes(range(256)).decode("cp1252", "ignore")))
def test_the_fast_path_is_as_the_other(text):
    found = of(text)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(disguises, "_western_bytes", lambda _: None)
        assert of(text) == found


@given(mails())
def test_any_mail_has_an_opening_of_whole_lines(raw):
    assert not any("\n" in piece for piece in of_message(parse(raw)))


def test_a_long_text_takes_no_time():
    for text in ("a" * 500_000, "! " * 250_000, "é" * 500_000, "免" * 500_000):
        assert len(of(text)) <= 700
