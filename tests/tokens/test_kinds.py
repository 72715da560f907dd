import re
from pathlib import Path
from unittest.mock import patch

from any_mail import mails
from hypothesis import example, given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading.message import Message, parse, parse_text
from nbspam.tokens import kinds
from nbspam.tokens.kinds import (
    COLLECTED_BY,
    FIELDS,
    HEADER,
    HOST,
    IN_EVIDENCE,
    KINDS,
    NAMES,
    TEXT,
    TRAITS,
    TRIGRAM,
    WORD,
    amount,
    channel_of,
    count,
    is_fragment,
    is_host,
    kind_of,
    share,
    shown_amount,
)
from nbspam.tokens.tokenized import Wanted, message_tokens, tokenize

ROOT = Path(__file__).parents[2]
KIND_NAMES = {kind.name for kind in KINDS}


def named(name):
    return next(kind for kind in KINDS if kind.name == name)


@each(
    "token, name",
    [
        ("free", ""), ("claim now", ""), ("£0,000", ""), ("", ""), ("免费", ""), (":", ""),
        ("tri:_fr", "tri"), ("subject:free", "subject"), ("subject:punct:!!", "subject"),
        ("from:@example.org", "from"), ("link:", "link"), ("mime:text/html", "mime"),
        ("message-id:0", "message-id"), ("received:smtp", "received"),
        ("return-path:bounce", "return-path"), ("header:x-foo:", "header"),
        ("sender:news", "sender"), ("recipient:bob", "recipient"),
        ("by:mx.example.org", "by"), ("by:-", "by"),
        ("trace:received:smtp", ""),  # of models made before version 2 of the rules
        ("nothing:known", ""),  # of a word list of others
    ],
)  # fmt: skip
def test_the_kind_of_a_token(token, name):
    assert kind_of(token) == named(name)


def test_each_kind_has_a_name_of_its_own_that_leads_back_to_it():
    assert len(KIND_NAMES) == len(KINDS)
    assert all(kind.meaning for kind in KINDS)
    assert not any(":" in name or name != name.lower() for name in KIND_NAMES)
    for kind in KINDS:
        assert kind_of(f"{kind.prefix}x") == kind
        assert channel_of(f"{kind.prefix}x") == kind.channel
    assert WORD.prefix == ""
    assert TRIGRAM.prefix == "tri:"


CHANNELS = {
    TEXT: "link host path punct caps trick limit case sign tri subject mime attachment".split(),
    FIELDS: "from to reply-to message-id mailer priority organization".split(),
    HEADER: "received return-path sender recipient header".split(),
    HOST: ["by"],
}


def test_the_channel_of_each_kind_the_fragments_and_the_host():
    expected = {name: channel for channel, names in CHANNELS.items() for name in names}
    assert {kind.name: kind.channel for kind in KINDS} == expected | {"": TEXT}
    assert [kind for kind in KINDS if kind.is_fragment] == [TRIGRAM]
    assert [kind for kind in KINDS if kind.channel == HOST] == [COLLECTED_BY]


HEADER_TOKENS = ["received:smtp", "return-path:", "header:x-foo:", "sender:a", "recipient:10.0.0.1"]
OTHERS = [
    "received",
    "subject:received:x",
    "tri:received:",
    "from:received",
    "by:received",
    "",
    "a b",
]


@each(
    "token, header, host, fragment",
    [
        *((token, True, False, False) for token in HEADER_TOKENS),
        *((token, False, token.startswith("by:"), token.startswith("tri:")) for token in OTHERS),
        *(("by:mx.example.org", False, True, False), ("by:-", False, True, False)),
        *(("by", False, False, False), ("received:by", True, False, False)),
        *(("tri:abc", False, False, True), ("tri", False, False, False)),
        ("try:a", False, False, False),
    ],
)
def test_tokens_of_the_header_channel_the_collecting_host_and_fragments(
    token, header, host, fragment
):
    assert (channel_of(token) == HEADER) == header
    assert (channel_of(token) == HOST) == is_host(token) == host
    assert is_fragment(token) == fragment


@given(st.sampled_from(KINDS), st.text(max_size=8))
def test_a_tokens_channel_and_whether_it_is_shown_follow_from_its_kind(kind, value):
    token = kind.prefix + value
    assert channel_of(token) == kind_of(token).channel
    assert is_host(token) == (kind_of(token).channel == HOST)
    assert is_fragment(token) == kind_of(token).is_fragment


def sample_tokens():
    """Return every token of the sample data: mail, odd mails and texts."""
    sample = ROOT / "sample_data"
    paths = [path for path in sorted((sample / "mail").rglob("*")) if path.is_file()]
    paths += sorted((sample / "odd").glob("*.eml"))
    messages = [parse(path.read_bytes()) for path in paths]
    rows = (sample / "sms.tsv").read_text("utf-8").splitlines()
    messages += [parse_text(row.partition("\t")[2]) for row in rows]
    return set().union(*map(message_tokens, messages))


def test_every_token_of_the_sample_data_is_of_a_known_kind():
    tokens = sample_tokens()
    assert len(tokens) > 3_000
    assert {token.partition(":")[0] for token in tokens if ":" in token} <= KIND_NAMES
    # The sample's mails have no Organization, and meet no limit.
    assert set(KINDS) - {kind_of(token) for token in tokens} <= {
        named("organization"),
        named("limit"),
    }


@given(mails())
def test_every_token_of_any_mail_is_of_a_known_kind(raw):
    tokens = message_tokens(parse(raw))
    assert {token.partition(":")[0] for token in tokens if ":" in token} <= KIND_NAMES


def test_the_page_on_tokens_names_every_kind_and_no_other():
    page = (ROOT / "docs" / "tokens.md").read_text("utf-8").partition("## Traits")[0]
    cells = re.findall(r"^\| ([^|]*) \|", page, flags=re.MULTILINE)
    listed = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert sorted(listed) == sorted(KIND_NAMES - {WORD.name})
    for name in ("word", "number", "bigram"):  # the kind without a prefix
        assert name in cells


def test_the_page_on_tokens_names_every_trait_its_scale_and_who_heeds_it():
    page = (ROOT / "docs" / "tokens.md").read_text("utf-8").partition("## Traits")[2]
    rows = re.findall(
        r"^\| `([^`]+)` \|[^|]*\| (\w+) \|([^|]*)\|$",
        page.partition("## Worth")[0],
        flags=re.MULTILINE,
    )
    assert [name for name, _, _ in rows] == [trait.name for trait in TRAITS]
    for (_, scale, heeded), trait in zip(rows, TRAITS, strict=True):
        assert f"({scale})" in trait.meaning
        assert (heeded.strip() == "yes") == trait.in_evidence


WANTED = Wanted(traits=True)
NONE = dict.fromkeys(NAMES, 0)


def traits_of(message):
    """Return a parsed message's traits by name."""
    return dict(zip(NAMES, tokenize(message, wanted=WANTED).numbers.traits, strict=True))


def of_text(text):
    return traits_of(parse_text(text))


# The scales


@each("n, expected", [(0, 0), (1, 8), (3, 16), (7, 24), (1023, 80), (2, 13), (1e6, 159)])
def test_amounts_have_eight_steps_to_each_doubling(n, expected):
    assert amount(n) == expected


def test_shares_are_percentages_and_counts_end_at_99():
    shares = {(0, 0): 0, (3, 0): 0, (0, 9): 0, (1, 3): 33, (2, 3): 67, (9, 9): 100}
    assert {pair: share(*pair) for pair in shares} == shares
    assert [count(n) for n in (0, 7, 99, 100, 10**9)] == [0, 7, 99, 99, 99]


@example(13)  # shown as 12: 12.45, and then rounded
@given(st.integers(0, 10**7))
def test_an_amount_is_shown_as_about_what_it_stands_for(n):
    shown = shown_amount(amount(n))
    half_a_step = (n + 1) * (2 ** (1 / 16) - 1)
    rounding = 0.05 if "." in shown else 0.5
    assert abs(float(shown) - n) <= half_a_step + rounding


@each(
    "name, value, expected",
    [
        ("words", 0, "0"), ("words", 16, "3"), ("words", 13, "2.1"), ("characters", 53, "98"),
        ("capitals", 57, "57 %"), ("hops", 4, "4"),
    ],
)  # fmt: skip
def test_values_are_shown_as_a_reader_expects_them(name, value, expected):
    (trait,) = [trait for trait in TRAITS if trait.name == name]
    assert trait.show(value) == expected


# Texts


def test_a_short_text_and_nothing():
    """14 characters, 12 of them visible: 7 letters, 4 digits, a sign; 3 words of 4 on average."""
    assert of_text("Call 0906 NOW!") == NONE | {
        "characters": amount(14),
        "words": amount(3),
        "word-length": amount(4),
        "digits": amount(4),
        "digit-run": 4,
        "capitals": 57,
        "signs": 8,
    }
    assert of_text("") == of_text(" \n\t ") == traits_of(Message([], [])) == NONE


@each(
    "text, expected",
    [
        ("12 345 6", {"digit-run": 3}), ("call 09061701461 now", {"digit-run": 11}),
        ("7" * 150, {"digit-run": 99}), ("one", {"digit-run": 0}), ("£1,000.50", {"digit-run": 3}),
        ("see http://a.example and www.b.example", {"links": amount(2)}),
        ("HTTPS://A.EXAMPLE", {"links": amount(1)}),
        ("http://www.a.example/", {"links": amount(1)}), ("no link: example.org", {"links": 0}),
        ("ПРИВЕТ мир!", {"words": amount(2), "capitals": 67, "signs": 10, "digits": 0}),
        ("免费 领取 100", {"words": amount(3), "capitals": 0, "signs": 0, "digits": amount(3)}),
        ("١٢٣ مرحبا", {"digits": amount(3), "digit-run": 3, "capitals": 0, "signs": 0}),
        ("ÀÉ naïve", {"capitals": 29, "word-length": amount(3.5), "signs": 0}),
        # Upper case, but no letters: with more of them than letters, the share would have no end.
        ("Ⅷ" * 1_000 + " a", {"capitals": 0, "signs": 100}),
        ("  \n free prize \n\n", of_text("free prize")),
    ],
)  # fmt: skip
def test_runs_of_digits_links_and_texts_of_other_scripts(text, expected):
    assert {name: of_text(text)[name] for name in expected} == expected


# Mails

MAIL = b"""\
Received: from mx.example.org by mail.example.com; Fri, 1 Mar 2024 10:00:00 +0000
Received: from a.example.org by mx.example.org; Fri, 1 Mar 2024 09:59:59 +0000
From: Ann <ann@example.org>
Subject: 20 PRIZES
Message-ID: <one@example.org>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b"

--b
Content-Type: text/plain

Hi Bob
--b
Content-Type: text/html

<p>Hi <a href="http://x.example/">Bob</a></p>
--b
Content-Type: application/pdf
Content-Disposition: attachment; filename="bill.pdf"

%PDF-1.4 12345
--b--
"""


def test_a_mail_of_several_parts():
    """The text of both parts; what is not text has a name and a type only."""
    text = {"characters": amount(12), "words": amount(4), "word-length": amount(2.5)}
    form = {"links": amount(1), "html": 50, "hops": 2}
    assert traits_of(parse(MAIL)) == NONE | text | form | {"capitals": 40}


@each(
    "body, html, links",
    [
        (b"<html><body><p>Hi</p></body></html>", 100, 0),
        (b'<p>Hi</p><a href="mailto:a@b.example"><img src="cid:1"></a>', 100, 2),
        (b"Hi", 100, 0),
    ],
)
def test_a_mail_of_html_alone_and_one_without_a_body(body, html, links):
    found = traits_of(parse(b"From: a@b.example\nContent-Type: text/html\n\n" + body))
    assert (found["html"], found["links"]) == (html, amount(links))
    assert found["characters"] == amount(2)
    nothing = parse(b"From: a@b.example\nReceived: by c.example\n\n")
    assert traits_of(nothing) == NONE | {"hops": 1}


def after_the_header(line):
    return MAIL.replace(b"\n\n", b"\n" + line + b"\n\n", 1)


@each(
    "same",
    [
        after_the_header(
            b"X-Nbspam: spam, probability=0.998712, version=1.0\nX-Nbspam-Tag: [SPAM]"
        ).replace(b"Subject: ", b"Subject: [SPAM] "),
        after_the_header(b"Status: RO"),
        b"From ann@example.org Fri Mar  1 10:00:00 2024\n" + MAIL,
        MAIL.replace(b"\n", b"\r\n"),
        MAIL + b"\n",
    ],
)
def test_what_software_adds_on_the_way_changes_no_number(same):
    assert same != MAIL
    both = Wanted(times=True, traits=True)
    one, other = (tokenize(parse(raw), digest=True, wanted=both) for raw in (MAIL, same))
    assert one.numbers == other.numbers
    assert one.digest == other.digest


# Any message


def assert_on_scale(found):
    assert all(type(value) is int for value in found.values())
    assert all(0 <= value < 1000 for value in found.values())
    for name in ("capitals", "signs", "html"):
        assert found[name] <= 100
    for name in ("digit-run", "hops"):
        assert found[name] <= 99


@given(mails().map(parse) | st.text().map(parse_text))
@example(parse_text("ⅧⓈ🅰 a"))
def test_any_message_has_numbers_on_the_scales(message):
    assert_on_scale(traits_of(message))


def test_the_longest_text_has_numbers_on_the_scales():
    for text in ("a" * (1 << 20), "1 " * (1 << 19), "http://" * 100_000, "!" * (1 << 20)):
        assert_on_scale(of_text(text))


WESTERN = st.text(st.characters(codec="cp1252"))


@given(WESTERN)
@example("".join(chr(i) for i in range(256)))
@example(bytes(range(256)).decode("cp1252", "ignore"))
def test_the_fast_path_counts_as_the_other_does(text):
    found = of_text(text)
    with patch.object(kinds, "western_bytes", return_value=None):
        assert of_text(text) == found


@given(mails() | WESTERN.map(str.encode))
def test_traits_are_the_same_whether_times_are_wanted_or_not(raw):
    message = parse(raw)
    both = tokenize(message, wanted=Wanted(times=True, traits=True))
    assert both.numbers.traits == tokenize(message, wanted=WANTED).numbers.traits
    assert sorted(both.tokens) == sorted(tokenize(message).tokens)


def test_the_evidence_heeds_what_the_text_is_like():
    of_the_form = {"links", "html", "hops"}
    assert {NAMES[i] for i in IN_EVIDENCE} == set(NAMES) - of_the_form
