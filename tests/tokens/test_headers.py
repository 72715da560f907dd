import itertools
import string

from any_mail import NEVER
from golden_tables import golden_table
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.tokens import headers as headers_module
from nbspam.tokens.headers import collecting_host, domain_of, fields_of, header_tokens
from nbspam.tokens.kinds import DOMAIN, FIELDS, HEADER, HOST, TEXT, channel_of, kind_of


def channel_tokens(headers):
    return headers_module.channel_tokens(fields_of(headers))


def tokens_of(name, value):
    """Return the tokens of a field, but for the header channel's (below)."""
    found = header_tokens([(name, value)])
    channel = channel_tokens([(name, value)]) - {"limit:header"}
    assert channel == {token for token in found if channel_of(token) in (HEADER, HOST, DOMAIN)}
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


@each("name", ["received", "date", "x-spam-status", "x-nbspam", "list-id", "x-loop", "status"])
def test_other_fields_have_tokens_in_the_header_channel_alone(name):
    assert tokens_of(name, "Yes, by relay 10 Jan <a@b.example>") == set()


def test_fields_of_one_name_are_read_together_and_empty_ones_not():
    found = header_tokens([("to", "alice"), ("errors-to", "bar"), ("to", ""), ("cc", "bob")])
    assert {"to:alice", "to:bob"} <= found
    assert header_tokens([]) == header_tokens([("subject", ""), ("to", "")]) == {"by:-"}


def test_ten_thousand_fields_or_a_huge_one_give_a_bounded_number_of_tokens():
    headers = [("errors-to", f"word{'abcdefghij'[i % 10]} a{i}b") for i in range(10_000)]
    assert len(header_tokens(headers)) < 2_000
    assert len(header_tokens([("to", f"alice{i}") for i in range(10_000)])) < 2_000
    letters = "abcdefghijklmnopqrst", "aeiouy" * 5, "xyzuvw"
    value = " ".join(map("".join, itertools.product(*letters)))
    for name in ("subject", "from", "received", "errors-to", "list-id"):
        assert "limit:header" not in tokens_of(name, value[:3_000])
        found = header_tokens([(name, value * 100)])
        assert len(found) < 5_000
        assert "limit:header" in found


LONG = "abc " + "x" * 30 + " " + "y" * 31


def channel_words(name, value):
    """Return the tokens of one field, without that of the collecting host."""
    return {t for t in channel_tokens([(name, value)]) if channel_of(t) == HEADER}


def pieces_of(value):
    """Return what a value is cut into."""
    return {token.removeprefix("received:") for token in channel_words("received", value)}


# What is cut


@each("value, pieces", [*golden_table("tokens/received.table", 2), ("ab " + LONG, LONG[:34])])
def test_pieces_begin_with_a_letter_and_keep_dots_hyphens_and_digits(value, pieces):
    assert pieces_of(value) - {"by"} == set(pieces.split())


@each("before", ["[", "(HELO x) [", "=", "<", "x@"])
def test_an_address_is_cut_whole_and_as_its_two_nets(before):
    nets = {"192.0.2.71", "192.0.2", "192.0"}
    assert pieces_of(f"{before}192.0.2.71]") - {"helo"} == nets


NUMBERS = ["1.2.3", "1.2.3.4.5", "127", "10.0.0.x", "3.141", "1-2-3-4"]
IDS = ["4F2A81C0D3", "B81C40D3E5", "m2si1234567wrb", "n7S12345x", "20240103070102", "h9c81720fb4"]


@each("value", [*NUMBERS, *IDS, "0A1b2C"])
def test_other_numbers_and_queue_ids_are_not_tokens(value):
    assert pieces_of(value) == pieces_of(f"id {value}") == set()


@each("name", ["message-id", "in-reply-to", "references", "resent-message-id"])
def test_of_an_id_the_hosts_alone_are_tokens(name):
    value = "<hkfzqtn.abc@Web7.example.org> <qqqq@mail.example.com> noise"
    hosts = {"header:web7.example.org", "header:mail.example.com"}
    assert channel_words(name, value) == {f"header:{name}:", *hosts}
    assert channel_words(name, "<no-host-at-all>") == {f"header:{name}:"}
    twice = [(name, "id@mail.example.com"), (name, "no-host-at-all")]
    assert channel_tokens(twice) - {"by:-"} == {f"header:{name}:", "header:mail.example.com"}


DAYS = "Mon Tue Wed Thu Fri Sat Sun".split()
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
ZONES = "EST EDT CST CDT MST MDT PST PDT GMT UTC BST CET CEST JST".split()


@each("word", [*DAYS, *MONTHS, *ZONES, "(CEST)", "GMT;"])
def test_days_months_and_zones_are_not_tokens(word):
    assert pieces_of(f"{word}, 03 2024 07:01:02 -0500 relay {word.upper()}") == {"relay"}


# Fields


@each(
    "name, prefix",
    [
        ("received", "received:"), ("return-path", "return-path:"), ("from", "sender:"),
        ("to", "recipient:"), ("cc", "recipient:"),
    ],
)  # fmt: skip
def test_five_fields_have_a_prefix_of_their_own_and_no_name_token(name, prefix):
    found = channel_words(name, "Anna <anna@lists.example.org>")
    assert found == {f"{prefix}anna", f"{prefix}lists.example.org"}


@each(
    "name",
    "list-id list-unsubscribe precedence x-mailer user-agent reply-to sender mime-version"
    " content-type errors-to organization resent-from".split(),
)
def test_every_other_field_has_its_words_and_its_name(name):
    assert channel_words(name, "Some Words") == {f"header:{name}:", "header:some", "header:words"}


def test_an_empty_value_the_subject_and_the_date_have_no_tokens():
    for name in ("errors-to", "list-id", "message-id", "received", "to"):
        assert channel_words(name, "") == set()
    for name in ("subject", "date"):
        assert channel_words(name, "Wed, some words relay.example") == set()


@each("name", NEVER)
def test_verdicts_and_what_is_written_after_arrival_are_never_tokens(name):
    headers = [(name.lower(), "Yes, score=9.9 spam by evil.example <a@b.example> 192.0.2.7")]
    assert header_tokens(headers) == {"by:-"}


ANY_VALUE = st.text(st.sampled_from(string.ascii_letters + string.digits + ' .-_@<>[]();:="'))
FIELD_NAMES = st.sampled_from(
    "received return-path from to cc subject date message-id references errors-to list-id".split()
)
FIELD = st.tuples(FIELD_NAMES, st.text() | ANY_VALUE | st.just("from a by b.example; x"))


@given(st.lists(FIELD, max_size=8))
def test_each_token_is_a_piece_an_address_or_a_fields_name(headers):
    found = channel_tokens(headers)
    assert len([token for token in found if channel_of(token) == HOST]) == 1
    for token in found:
        assert channel_of(token) in (HEADER, HOST, DOMAIN)
        assert token.isascii()
        assert token.isprintable()
        assert " " not in token
        if channel_of(token) == HEADER:
            piece = token.removeprefix(kind_of(token).prefix)
            name, colon, _ = piece.partition(":")
            assert 1 <= len(piece) <= 31
            assert (colon and (name, True) in [(n, bool(v)) for n, v in headers]) or (
                piece[0].isalpha() or piece.replace(".", "").isdecimal()
            )


@given(st.lists(FIELD, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_the_fields_matters_for_the_topmost_received_alone(headers, chance):
    tops = [value for name, value in headers if name == "received"]
    others = [(name, value) for name, value in headers if name != "received"]
    chance.shuffle(others)
    shuffled = [("received", value) for value in tops] + others
    assert channel_tokens(shuffled) == channel_tokens(headers)


# The collecting host


@each(
    "value, host",
    [
        *golden_table("tokens/collecting_host.table", 2),
        ("x " * 600 + "by mx.example.org", "-"),  # farther on than one looks
        ("by " + "a" * 300, "a" * 80),
    ],
)
def test_the_host_that_took_the_mail_in(value, host):
    headers = [("subject", "by evil.example"), ("received", value)]
    assert collecting_host(value) == host
    found = channel_tokens(headers)
    assert f"by:{host}" in found
    domains = [token for token in found if channel_of(token) == DOMAIN]
    assert domains == ([] if host == "-" else [f"by-domain:{domain_of(host)}"])


@each(
    "host, domain",
    [
        ("mx1.mail.example.org", "example.org"),
        ("mx.example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("mx.web.de", "web.de"),
        ("mailhost", "mailhost"),
        ("192.0", "192.0"),
        ("2001:db8", "2001:db8"),
        ("a..b", ".b"),
    ],
)
def test_the_domain_of_a_host(host, domain):
    assert domain_of(host) == domain


@each("greeting", ["by", "BY", "by.example", "a(by", "(by", "by)", "[by]", "x)by"])
def test_no_greeting_of_one_word_names_it(greeting):
    """The sender chooses the name after `from`, and that in the comment of some servers."""
    value = f"from {greeting} (HELO {greeting}) (evil.example [192.0.2.1]) by mx.example.org; 3 Jan"
    assert collecting_host(value) == "mx.example.org"


def test_the_topmost_received_line_alone_names_it_and_without_it_is_not_known():
    """A sender may write as many more as they like, but only below."""
    below = ("received", "from x by forged.example; 3 Jan")
    for top, host in (("from a by mx.example.org", "mx.example.org"), ("from a", "-"), ("", "-")):
        found = channel_tokens([("errors-to", "by y.example"), ("received", top), below, below])
        assert {token for token in found if channel_of(token) == HOST} == {f"by:{host}"}
    assert collecting_host("") == "-"
    assert channel_tokens([("from", "a@example.org by b.example")]) >= {"by:-"}
    assert channel_tokens([("x-received", "by mx.example.org with SMTP")]) == {"by:-"}


# Bounds


def test_a_list_of_recipients_does_not_crowd_out_the_relays():
    others = [("to", ", ".join(f"a{chr(97 + i % 26)}{chr(97 + i // 26)}x" for i in range(676)))]
    relays = [
        ("received", "from relay.example by mx.example"),
        ("from", "anna"),
        ("errors-to", "bar"),
    ]
    for headers in (others * 20 + relays, relays + others * 20):
        found = channel_tokens(headers)
        assert {"received:relay.example", "sender:anna", "header:errors-to:", "header:bar"} <= found
