import json
import time
from pathlib import Path

import pytest
from any_mail import mails
from golden_tables import golden_table
from hypothesis import given, settings
from hypothesis import strategies as st
from one_case import each

from nbspam.reading.message import Message, parse, parse_text
from nbspam.reading.mime import Part
from nbspam.store.lookup import token_key
from nbspam.tokens.kinds import TEXT, channel_of
from nbspam.tokens.tokenized import LIMITS, MAX_TAGS, message_tokens, tokenize

REPOSITORY = Path(__file__).parents[2]
GOLDEN = REPOSITORY / "tests" / "golden" / "tokens"
CASES = sorted([*GOLDEN.glob("*.eml"), *GOLDEN.glob("*.txt")])
LONGEST = 200


def tokens_of_text(text):
    return message_tokens(parse_text(text))


def tokens_of_mail(body, content_type="text/plain", **headers):
    fields = {"From": "a@b.example", "Content-Type": f"{content_type}; charset=utf-8"} | headers
    head = "".join(f"{name.replace('_', '-')}: {value}\n" for name, value in fields.items())
    return message_tokens(parse(f"{head}\n{body}".encode("utf-8", "surrogatepass")))


def of_kinds(tokens, *prefixes):
    return {token for token in tokens if token.startswith(prefixes)}


# Golden cases: a .txt is a text as a table's row holds it, a .eml a mail


@each("case", CASES)
def test_golden_tokens(case):
    wanted = case.with_suffix(".tokens").read_text("utf-8").splitlines()
    if case.suffix == ".txt":
        message = parse_text(case.read_text("utf-8").rstrip("\n"))
    else:
        message = parse(case.read_bytes())
    assert wanted == sorted(message_tokens(message))


def test_every_golden_file_has_its_fellow():
    assert len(CASES) >= 10
    expected = sorted(path.stem for path in GOLDEN.glob("*.tokens"))
    assert expected == sorted(case.stem for case in CASES)


# What a message's parts bring


def test_a_text_without_headers_has_the_tokens_of_short_texts_and_a_mail_has_none_of_them():
    of_both = {"win", "now", "win now"}
    found = tokens_of_text("Win NOW!")
    assert of_both | {"case:Win", "case:NOW", "sign:!", "tri:win"} <= found
    assert not of_kinds(found, "mime:")
    assert {channel_of(token) for token in found} == {TEXT}
    found = tokens_of_mail("Win NOW!", Subject="Win NOW!")
    assert of_both | {"subject:win", "mime:text/plain"} <= found
    assert not of_kinds(found, "case:", "sign:", "tri:")
    assert tokens_of_text("Reminder: call me") == message_tokens(parse(b"Reminder: call me"))


def test_html_is_read_as_html_whatever_its_type_and_long_texts_have_triples_at_their_beginning():
    found = tokens_of_text("word " * 200 + "xylophone")
    assert {"xylophone", "tri:wor"} <= found
    assert "tri:xyl" not in found
    source = '<html><p>fr<!-- x -->ee</p><a href="http://evil.example/deal">here</a></html>'
    for content_type in ("text/html", "text/plain"):
        found = tokens_of_mail(source, content_type)
        assert {"free", "here", "host:evil.example", "path:deal"} <= found
        hidden = set()
        raw = f"Subject: a\nContent-Type: {content_type}\n\n{source}".encode()
        found = message_tokens(parse(raw), None, hidden)
        assert not (found - hidden) & {"html", "href", "x", "http"}
        # Some programs show the tags in a plain text.
        assert ("href" in hidden) == (content_type == "text/plain")
    assert {"b", "bold"} <= tokens_of_mail("<b>bold moves", "text/plain")


@each("target, token", golden_table("tokens/html.table", 2, "schemes"))
def test_links_of_every_scheme_and_to_nowhere_else(target, token):
    found = tokens_of_mail(f'<a href="{target}">x</a>', "text/html")
    if token:
        assert token in found
    else:
        assert not of_kinds(found, "link:", "host:", "path:")


def test_tricks_are_undone_in_text_and_html_before_words_are_taken():
    for content_type in ("text/plain", "text/html"):
        found = tokens_of_mail("fr\u200bee ｖｉａｇｒａ pаypal", content_type)
        assert {"free", "viagra", "paypal"} <= found
        assert {"trick:invisible", "trick:full-width", "trick:look-alike"} <= found
    found = tokens_of_mail("&#1092;ree &#102;ast fr&#8203;ee fr&shy;ee", "text/html")
    assert {"fast", "free", "trick:invisible"} <= found


def of_parts(*parts, limits=()):
    return message_tokens(Message([("from", "a")], list(parts), frozenset(limits)))


def test_all_parts_and_the_names_and_types_of_attachments_count():
    found = of_parts(
        Part("text/plain", "first"),
        Part("text/html", "<p>second", True),
        Part("application/zip", "", filename="Invoice 2024.PDF.zip"),
        Part("image/png", "", filename="logo"),
    )
    assert {"first", "second"} <= found
    assert {"mime:text/plain", "mime:application/zip", "mime:image/png"} <= found
    assert {"attachment:.zip", "attachment:invoice", "attachment:0000", "attachment:pdf"} <= found
    assert "attachment:logo" in found
    assert message_tokens(Message([], [])) == set()
    assert message_tokens(Message([], [Part("text/plain", "")])) == set()


# Properties

# Rows of a JSON table may hold half characters; headers and parts are decoded from bytes.
ANY_TEXT = st.text(st.characters()) | st.text(st.characters(categories=["Cs", "Cc", "Lo", "Po"]))
DECODED = st.text() | st.text(st.characters(categories=["Cc", "Lo", "Po", "Lu"]))
SOUP = st.text(st.sampled_from("<>/!-\"'=&#;:@.%?$ aе\u200b0９\u0e01好\U0001f600htpw\n"))


def assert_good(tokens):
    for token in tokens:
        assert token
        assert len(token) <= LONGEST, token
        assert token.isprintable() or not any(
            c < " " or "\x7f" <= c <= "\x9f" or c in "\u2028\u2029" or "\ud800" <= c <= "\udfff"
            for c in token
        ), ascii(token)


@given(ANY_TEXT | SOUP)
def test_any_text_has_good_tokens(text):
    assert_good(tokens_of_text(text))
    assert_good(tokens_of_text(f"<html><a href=http://{text}.x/{text}>{text}"))


@given(st.binary() | SOUP.map(str.encode), st.sampled_from(["text/plain", "text/html", "x/y"]))
def test_any_bytes_have_good_tokens(data, content_type):
    assert_good(message_tokens(parse(data)))
    head = f"From: a@b.example\nContent-Type: {content_type}\n\n".encode()
    assert_good(message_tokens(parse(head + data)))


@given(mails())
def test_any_mail_has_good_tokens_that_a_model_can_hold(raw):
    found = message_tokens(parse(raw))
    assert_good(found)
    for token in found:
        assert type(token) is str
        assert token == json.loads(token_key(token).encode())


@given(DECODED | SOUP, DECODED | SOUP)
def test_any_headers_have_good_tokens(one, two):
    names = "subject from content-type x-mailer received x-odd".split()
    headers = [(name, value) for name in names for value in (one, two)]
    parts = [Part("text/plain", "", filename=one), Part(f"text/{one.lower()}", two)]
    assert_good(message_tokens(Message(headers, parts)))


@each(
    "text",
    [
        "ring \x1b[2J now", "http://a\x1b[31m.example/", "http://a\x9b.example/ " + "x " * 400,
        "<html><a href='http://\ud800.example/'>x", "a\x00b", "a\x85b\u2028c",
    ],
)  # fmt: skip
def test_no_token_can_command_a_terminal_or_fail_to_be_written(text):
    assert_good(tokens_of_text(text))
    assert_good(message_tokens(parse(b"From: a\nContent-Type: text/\x1bcx\n\nhi")))


# Limits, and texts that are there to mislead


def many_words(n, first=0):
    letters = "bcdfghklmnprstvw"  # for the digits of a number in base 16
    return " ".join(
        "word" + "".join(letters[int(digit, 16)] for digit in f"{i:x}")
        for i in range(first, first + n)
    )


def test_of_too_many_tokens_the_first_and_the_last_are_kept():
    found = tokens_of_mail(many_words(20_000))
    assert len(found) == 20_001
    assert "limit:tokens" in found
    assert found >= set(many_words(9_000).split())
    assert "limit:tokens" not in tokens_of_mail(many_words(9_000))


@each("limits", [set(), {"text"}, {"parts", "depth"}])
def test_each_limit_that_was_met_is_a_token(limits):
    assert of_kinds(of_parts(limits=limits), "limit:") == {f"limit:{name}" for name in limits}


def test_of_text_that_is_in_doubt_the_tokens_are_known_that_nothing_else_has():
    page = "<p>hello you<p title='you there'>"
    perhaps = set()
    message = Message([], [Part("text/html", page, True)])
    found = message_tokens(message, possibly_hidden=perhaps)
    assert tokenize(message).extras.possibly_hidden == perhaps
    assert {"hello", "you", "there", "you there"} <= found
    words = {token for token in perhaps if ":" not in token}
    assert words == {"there", "you there"}


SIZE = 500_000  # bytes


@pytest.mark.long
@settings(max_examples=8)
@given(mails(), st.data())
def test_four_times_the_mail_takes_about_four_times_as_long(raw, data):
    """Repeat a piece of any mail: of its header, of a part with its boundary, of its text."""
    at = data.draw(st.integers(0, len(raw)))
    unit = raw[at : at + data.draw(st.integers(1, 200))] or b"x"

    def seconds(size):
        start = time.process_time()
        message_tokens(parse(raw[:at] + unit * (size // len(unit)) + raw[at:]))
        return time.process_time() - start

    times = ((seconds(SIZE // 4), seconds(SIZE)) for _ in range(3))  # a square would be 16 times
    assert any(many < max(0.5, 12 * few) for few, many in times)


def test_behind_many_tags_of_a_page_words_count_for_spam_only_and_the_mail_was_not_read_whole():
    page = "<p>first" + "<b>w" * MAX_TAGS + "<p title='x'>last"
    message = parse(b"Subject: x\nContent-Type: text/html\n\n" + page.encode())
    found = tokenize(message)
    assert "limit:tags" in LIMITS & set(found.tokens)
    assert "last" in found.extras.possibly_hidden
    assert "first" not in found.extras.possibly_hidden
    fewer = tokenize(message._replace(parts=[message.parts[0]._replace(text="<p>first" * 99)]))
    assert LIMITS.isdisjoint(fewer.tokens)
