import copy
import pickle
from pathlib import Path

from any_mail import mails
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading.message import Message, parse, parse_text
from nbspam.tokens.tokenized import TokenizedMessage, digest_of, message_tokens, tokenize

SAMPLE = Path(__file__).parents[2] / "sample_data"


def again(message):
    return pickle.loads(pickle.dumps(message))


def assert_equal(expected, actual):
    assert type(actual) is TokenizedMessage
    assert type(actual.tokens) is list
    assert tuple(expected) == tuple(actual)


# From process to process


@each("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@each("tokens", [[], ["a"], ["£0", "claim now", "tri:_é_", "免费"]])
@each("label", [None, "", "spam"])
def test_a_message_is_the_same_in_another_process(tokens, label, protocol):
    message = TokenizedMessage("mail:1", label, tokens, "0" * 32, 17)
    assert_equal(message, pickle.loads(pickle.dumps(message, protocol)))
    assert_equal(message, copy.deepcopy(message))


@given((mails() | st.binary(max_size=80)).map(parse) | st.text().map(parse_text), st.booleans())
def test_any_message_is_the_same_in_another_process(parsed, digest):
    message = tokenize(parsed, "mail", "ham", digest=digest)
    assert_equal(message, again(message))


def test_the_sample_mails_are_the_same_in_another_process():
    paths = [path for path in sorted(SAMPLE.rglob("*")) if path.is_file()]
    assert len(paths) > 20
    for path in paths:
        message = tokenize(parse(path.read_bytes()), str(path), digest=True)
        assert_equal(message, again(message))


# Tokenizing


def test_tokens_come_each_once_and_in_order_and_source_and_label_are_kept():
    text = parse_text("win a prize, win a PRIZE")
    message = tokenize(text)
    assert message.tokens == list(message_tokens(text))
    assert len(set(message.tokens)) == len(message.tokens)
    assert (message.source, message.label, message.digest, message.size) == ("-", None, "", 0)
    message = tokenize(parse_text("win"), "rows.tsv:3", "spam")
    assert (message.source, message.label) == ("rows.tsv:3", "spam")
    assert tokenize(Message([], [])).tokens == tokenize(parse_text("")).tokens == []


@each("raw", [b"", b"Message-ID: <1@example.org>\n\nwin\n", b"no mail"])
def test_the_digest_is_that_of_the_tokens_and_the_message_id(raw):
    parsed = parse(raw)
    texts = [part.text for part in parsed.parts]
    expected = digest_of(message_tokens(parsed), parsed.headers, texts=texts)
    assert tokenize(parsed, digest=True).digest == expected
    assert tokenize(parsed).digest == ""
