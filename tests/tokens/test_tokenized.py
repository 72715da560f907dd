import copy
import pickle
from collections import Counter
from itertools import pairwise

from any_mail import mails
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading import mail as mbox
from nbspam.reading.message import Message, parse, parse_text
from nbspam.tokens.text import SHORT_TEXT_LENGTH, undo_letter_spacing, words_of
from nbspam.tokens.tokenized import (
    TokenizedMessage,
    TokenizerOutputs,
    digest_of,
    message_tokens,
    tokenize,
)

# From process to process


@given(
    (mails() | st.binary(max_size=80)).map(parse) | st.text().map(parse_text),
    st.booleans(),
    st.sampled_from([None, "", "ham"]),
)
def test_any_message_is_the_same_in_another_process(parsed, digest, label):
    message = tokenize(parsed, "mail", label, digest=digest)
    for other in (pickle.loads(pickle.dumps(message)), copy.deepcopy(message)):
        assert type(other) is TokenizedMessage
        assert type(other.tokens) is list
        assert tuple(message) == tuple(other)


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


WANTED = TokenizerOutputs(times=True)


def times_of(message):
    return dict(tokenize(message, outputs=WANTED).extras.times)


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
    times = of_text("ab " * SHORT_TEXT_LENGTH)
    assert times["ab"] == SHORT_TEXT_LENGTH
    # Of the first 400 characters, and a blank at each end: as often as a word begins among them.
    assert times["tri:_ab"] == SHORT_TEXT_LENGTH // 3


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
    found = tokenize(parse_text(text), outputs=WANTED)
    words = words_of(undo_letter_spacing(text.lower().replace("’", "'"))[0])
    for expected in (Counter(words), Counter(map(" ".join, pairwise(words)))):
        assert {token: found.extras.times.get(token, 1) for token in expected} == expected
    of_words = set(found.tokens) & set(words)
    assert sum(found.extras.times.get(word, 1) for word in of_words) == len(words)


@each("text", ["", "win", "win win", "免费免费 http://a.example"])
@each("outputs", [TokenizerOutputs(), TokenizerOutputs(traits=True)])
def test_times_that_are_not_wanted_are_not_taken(text, outputs):
    assert tokenize(parse_text(text), outputs=outputs).extras.times == {}


MAIL = b"""\
From: Ann <ann@example.org>
To: ben@example.com
Subject: the meeting on Friday
Message-ID: <one@example.org>
Received: from mx.example.org by mail.example.com; Fri, 1 Mar 2024 10:00:00 +0000

Hello Ben,
shall we meet at noon?
"""


WITHOUT_ID = MAIL.replace(b"Message-ID: <one@example.org>\n", b"")


def digest(raw):
    return tokenize(parse(raw), digest=True).digest


@given(st.lists(st.text()))
def test_a_digest_is_32_hexadecimal_digits(tokens):
    found = digest_of(tokens, [])
    assert bytes.fromhex(found).hex() == found
    assert len(found) == 32


@each("mail", [MAIL, WITHOUT_ID])
def test_a_message_out_of_an_mbox_is_the_one_that_was_put_in(tmp_path, mail):
    body = mail + b"From here on it is another line.\n"
    quoted = body.replace(b"\nFrom here", b"\n>From here")
    box = tmp_path / "box"
    line = b"From ann@example.org Fri Mar  1 10:00:00 2024\n"
    box.write_bytes(line + quoted + b"\n" + line + mail + b"\n")
    with box.open("rb") as stream:
        found = [digest(raw) for raw in mbox.split_mbox(stream, 1 << 20)]
    assert [digest(body), digest(mail)] == found
    assert digest(quoted) == digest(body)  # a copy whose quotes nobody took away


@each(
    "other",
    [
        MAIL.replace(b"<one@", b"<two@"),
        MAIL.replace(b"Message-ID: <one@example.org>\n", b""),
        MAIL.replace(b"Friday", b"Monday"),
        MAIL.replace(b"Subject:", b"Date: Fri, 1 Mar 2024 09:58:01 +0000\nSubject:"),
        MAIL.replace(b"Message-ID: <one@example.org>\n", b"").replace(b"noon", b"eight"),
    ],
)
def test_another_message_has_another_digest(other):
    assert digest(MAIL) != digest(other)


DATED = MAIL.replace(b"Subject:", b"Date: Fri, 1 Mar 2024 09:58:01 +0000\nSubject:")


@each(
    "copy",
    [
        DATED + b"-- \nlist mailing list\nlist@example.org\n",
        DATED.replace(b"Subject: ", b"Subject: [list] "),
        DATED.replace(b"09:58:01 +0000", b"10:58:01 +0100"),
        DATED.replace(b"Subject:", b"Thread-Topic: a\nContent-Language: en-US\nSubject:"),
        b"Received: from mail by desk with IMAP (fetchmail-6.4.37)\n" + DATED,
        DATED.replace(b"From: Ann <ann@example.org>", b"From: Ann via list <list@example.org>"),
        DATED.replace(b"\n\n", b"\nContent-Transfer-Encoding: base64\n\n", 1).partition(b"Hello")[0]
        + b"SGVsbG8gQmVuLApzaGFsbCB3ZSBtZWV0IGF0IG5vb24/Cg==\n",
    ],
)
def test_a_copy_that_another_program_gave_has_the_same_digest(copy):
    assert digest(copy) == digest(DATED)


NUMBERED = (
    "Subject: offer number {}\n\nhello",
    "Subject: offer\n\nnumber {} of our offers",
    "Subject: offer\nContent-Type: text/html\n\n<html><body>number <b>{}</b> of our offers</body>",
    f"{'our offer of today is a fine one, ' * 20} number {{}}",
)


@each("form", NUMBERED)
def test_texts_that_differ_in_a_number_are_several_messages(form):
    raws = [form.format(i).encode() for i in range(1, 7)]
    assert len({tuple(tokenize(parse(raw)).tokens) for raw in raws}) == 1
    assert len(set(map(digest, raws))) == 6
    numbered = [MAIL.replace(b"noon?", b"%d?" % i) for i in range(1, 7)]
    assert len(set(map(digest, numbered))) == 1  # a Message-ID says which message it is


@each("line", [b"Message-ID:", b"Message-ID: <>", b"Message-ID: < >"])
def test_an_empty_message_id_is_none(line):
    mail = MAIL.replace(b"Message-ID: <one@example.org>", line)
    assert digest(mail) != digest(mail.replace(b"Friday", b"friday"))
    full = mail.replace(line, line + b"\nMessage-ID: <one@example.org>")
    assert digest(full) == digest(full.replace(b"Friday", b"friday"))


def test_a_text_is_the_same_message_wherever_it_stands():
    text = "WINNER!  Claim your £ 1,000 prize,\u00a0now: http://prize.example/win"
    raw = text.encode()
    marked = b"X-Nbspam: spam, probability=0.998712, version=1.0\n\n" + raw
    found = tokenize(parse_text(text), digest=True).digest
    for same in (raw, raw + b"\n", raw + b"\r\n", b"\n" + raw, marked):
        assert digest(same) == found


def test_a_text_is_known_however_it_is_encoded():
    head = b"Subject: %s\nContent-Type: text/plain; charset=%s\nContent-Transfer-Encoding: %s\n\n"
    eight = head % ("caf\u00e9 1".encode(), b"utf-8", b"8bit") + "caf\u00e9 at 1".encode()
    quoted = (
        head % (b"=?utf-8?q?caf=C3=A9_1?=", b"utf-8", b"quoted-printable") + b"caf=C3=A9 at=\n 1"
    )
    texts = [part.text for part in parse(quoted).parts]
    assert texts == [part.text for part in parse(eight).parts]
    one, other = (digest_of((), parse(raw).headers, texts=texts) for raw in (eight, quoted))
    assert one == other


def test_the_first_message_id_counts_and_is_not_mistaken_for_a_token():
    headers = [("message-id", "free")]
    assert digest_of({"prize"}, headers) != digest_of(["free", "prize"], [])
    assert digest_of(set(), headers) != digest_of({"free"}, [])
    one, two = ("message-id", "<one>"), ("message-id", "<two>")
    assert digest_of({"a"}, [one, two]) == digest_of({"a"}, [one])
    assert digest_of({"a"}, [one, two]) != digest_of({"a"}, [two])
    assert len(digest_of({"\ud800"}, [("message-id", "\udfff")])) == 32
