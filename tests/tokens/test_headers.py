import itertools

from one_case import each

from nbspam.tokens.headers import channel_tokens, header_tokens
from nbspam.tokens.kinds import FIELDS, HEADER, HOST, TEXT, channel_of


def tokens_of(name, value):
    """Return the tokens of a field, but for the header channel's (test_header_channel.py)."""
    found = header_tokens([(name, value)])
    channel = channel_tokens([(name, value)]) - {"limit:header"}
    assert channel == {token for token in found if channel_of(token) in (HEADER, HOST)}
    return found - channel


def test_the_subject_is_text():
    assert tokens_of("subject", "WIN a free prize!!") == {
        *("subject:win", "subject:a", "subject:free", "subject:prize"),
        *("subject:win a", "subject:a free", "subject:free prize", "subject:punct:!!"),
    }
    found = tokens_of("subject", "WIN received: by: =?utf-8?q?=D0=B5=D1=82?=")
    assert {channel_of(token) for token in found} == {TEXT}


@each(
    "subject, expected",
    [
        ("=?UTF-8?B?0L/RgNC40LI=?= =?utf-8?q?=D0=B5=D1=82?= caf=?",
         {"mime:encoded-subject", "subject:привет"}),
        ("=?iso-8859-1?Q?Gr=FC=DFe?=", {"mime:encoded-subject", "subject:grüße"}),
        *((word, {"subject:free"}) for word in ("fr\u200bee", "ｆｒｅｅ", "frее", "𝐟𝐫𝐞𝐞")),
    ],
)  # fmt: skip
def test_an_encoded_subject_is_decoded_and_marked_and_tricks_in_it_are_undone(subject, expected):
    assert expected <= tokens_of("subject", subject)


def test_an_addresss_words_and_domains():
    found = tokens_of("from", '"Prize Desk" <win@mail.example.com>')
    assert {"from:prize", "from:desk", "from:win"} <= found
    assert {"from:@mail.example.com", "from:@example.com", "from:@com"} <= found
    assert "from:jürgen" in tokens_of("from", "=?utf-8?q?J=C3=BCrgen?= <j@example.org>")


@each(
    "name, prefix",
    [
        ("from", "from:"), ("to", "to:"), ("cc", "to:"), ("reply-to", "reply-to:"),
        ("x-mailer", "mailer:"), ("user-agent", "mailer:"),
    ],
)  # fmt: skip
def test_fields_of_sender_and_mailer_have_their_prefix(name, prefix):
    found = tokens_of(name, "Some Words")
    assert {f"{prefix}some", f"{prefix}words"} <= found
    assert all(token.startswith(prefix) for token in found)
    assert {channel_of(token) for token in found} == {FIELDS}


@each("name", ["received", "date", "x-spam-status", "x-nbspam", "list-id", "x-foo", "status"])
def test_other_fields_have_tokens_in_the_header_channel_alone(name):
    assert tokens_of(name, "Yes, by relay 10 Jan <a@b.example>") == set()


def test_fields_of_one_name_are_read_together_and_empty_ones_not():
    found = header_tokens([("to", "alice"), ("x-foo", "bar"), ("to", ""), ("cc", "bob")])
    assert {"to:alice", "to:bob"} <= found
    assert header_tokens([]) == header_tokens([("subject", ""), ("to", "")]) == {"by:-"}


def test_ten_thousand_fields_or_a_huge_one_give_a_bounded_number_of_tokens():
    headers = [(f"x-{i}", f"word{'abcdefghij'[i % 10]} a{i}b") for i in range(10_000)]
    assert len(header_tokens(headers)) < 2_000
    assert len(header_tokens([("to", f"alice{i}") for i in range(10_000)])) < 2_000
    letters = "abcdefghijklmnopqrst", "aeiouy" * 5, "xyzuvw"
    value = " ".join(map("".join, itertools.product(*letters)))
    for name in ("subject", "from", "received"):
        assert "limit:header" not in tokens_of(name, value[:3_000])
        found = tokens_of(name, value * 100)
        assert len(found) < 5_000
        assert "limit:header" in found
