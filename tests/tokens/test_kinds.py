import re
from pathlib import Path
from unittest.mock import patch

from any_mail import mails
from golden_tables import golden_table
from hypothesis import example, given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading import mail as mbox
from nbspam.reading.message import Message, parse, parse_text
from nbspam.tokens import disguises, kinds
from nbspam.tokens.tokenized import TokenizerOutputs, message_tokens, tokenize

ROOT = Path(__file__).parents[2]
KIND_NAMES = {kind.name for kind in kinds.KINDS}


def named(name):
    return next(kind for kind in kinds.KINDS if kind.name == name)


@each("token, name", golden_table("tokens/kinds.table", 2))
def test_the_kind_of_a_token_its_channel_and_whether_it_is_a_fragment_or_the_host(token, name):
    assert kinds.kind_of(token) == named(name)
    assert kinds.channel_of(token) == named(name).channel
    assert kinds.is_host(token) == (name == "by")
    assert kinds.is_fragment(token) == (name in ("tri", "open"))


OF_TEXT = "link host path punct caps trick limit case sign tri subject mime attachment".split()
CHANNELS = {
    kinds.TEXT: OF_TEXT,
    kinds.FIELDS: "from to reply-to message-id mailer priority organization".split(),
    kinds.HEADER: "received return-path sender recipient header".split(),
    kinds.OPENING: ["open"],
    kinds.HOST: ["by"],
    kinds.DOMAIN: ["by-domain"],
}


def test_the_channel_of_each_kind_the_fragments_and_the_host():
    expected = {name: channel for channel, names in CHANNELS.items() for name in names}
    assert {kind.name: kind.channel for kind in kinds.KINDS} == expected | {"": kinds.TEXT}
    assert [kind for kind in kinds.KINDS if kind.is_fragment] == [
        kinds.TRIGRAM,
        kinds.OPENING_PIECE,
    ]
    assert [kind for kind in kinds.KINDS if kind.channel == kinds.HOST] == [kinds.COLLECTED_BY]


def sample_tokens():
    """Return every token of the sample data: mail, odd mails and texts."""
    sample = ROOT / "sample_data"
    messages = [parse(path.read_bytes()) for path in sorted((sample / "odd").glob("*.eml"))]
    for path in sorted((sample / "mail").glob("*.mbox")):
        with path.open("rb") as stream:
            messages += map(parse, mbox.split_mbox(stream, 1 << 20))
    for path in sorted(sample.glob("*.tsv")):
        rows = path.read_text("utf-8").splitlines()
        messages += [parse_text(row.partition("\t")[2]) for row in rows]
    return set().union(*map(message_tokens, messages))


def test_every_token_of_the_sample_data_is_of_a_known_kind():
    tokens = sample_tokens()
    assert len(tokens) > 3_000
    assert {token.partition(":")[0] for token in tokens if ":" in token} <= KIND_NAMES
    for token in tokens:
        kind, found = (
            kinds.kind_of(token),
            (kinds.channel_of(token), kinds.is_host(token), kinds.is_fragment(token)),
        )
        assert found == (kind.channel, kind.channel == kinds.HOST, kind.is_fragment)
    # The sample's mails have no Organization, and meet no limit.
    assert set(kinds.KINDS) - {kinds.kind_of(token) for token in tokens} <= {
        named("organization"),
        named("limit"),
    }


@given(mails())
def test_every_token_of_any_mail_is_of_a_known_kind(raw):
    tokens = message_tokens(parse(raw))
    assert {token.partition(":")[0] for token in tokens if ":" in token} <= KIND_NAMES


def test_the_page_on_tokens_names_every_kind_and_no_other():
    page = (ROOT / "docs" / "tokens.md").read_text("utf-8").partition("## What is read")[0]
    cells = re.findall(r"^\| ([^|]*) \|", page, flags=re.MULTILINE)
    listed = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert sorted(listed) == sorted(KIND_NAMES - {kinds.WORD.name})
    for name in ("word", "number", "bigram"):  # the kind without a prefix
        assert name in cells


def test_the_page_on_tokens_names_every_trait_its_scale_and_who_heeds_it():
    page = (ROOT / "docs" / "tokens.md").read_text("utf-8").partition("## Traits")[2]
    rows = re.findall(
        r"^\| `([^`]+)` \|[^|]*\| (\w+) \|([^|]*)\|$",
        page.partition("## Worth")[0],
        flags=re.MULTILINE,
    )
    assert [name for name, _, _ in rows] == [trait.name for trait in kinds.TRAITS]
    for (_, scale, heeded), trait in zip(rows, kinds.TRAITS, strict=True):
        assert f"({scale})" in trait.meaning
        assert (heeded.strip() == "yes") == trait.in_evidence


WANTED = TokenizerOutputs(traits=True)
NONE = dict.fromkeys(kinds.TRAIT_NAMES, 0)


def traits_of(message):
    """Return a parsed message's traits by name."""
    return dict(
        zip(kinds.TRAIT_NAMES, tokenize(message, outputs=WANTED).extras.traits, strict=True)
    )


def of_text(text):
    return traits_of(parse_text(text))


# The scales


@each("n, expected", [(0, 0), (1, 8), (3, 16), (7, 24), (1023, 80), (2, 13), (1e6, 159)])
def test_amounts_have_eight_steps_to_each_doubling(n, expected):
    assert kinds.log_scale(n) == expected


def test_shares_are_percentages_and_counts_end_at_99():
    shares = {(0, 0): 0, (3, 0): 0, (0, 9): 0, (1, 3): 33, (2, 3): 67, (9, 9): 100}
    assert {pair: kinds.percentage(*pair) for pair in shares} == shares
    assert [kinds.clipped_count(n) for n in (0, 7, 99, 100, 10**9)] == [0, 7, 99, 99, 99]


@example(13)  # shown as 12: 12.45, and then rounded
@given(st.integers(0, 10**7))
def test_an_amount_is_shown_as_about_what_it_stands_for(n):
    shown = kinds.show_amount(kinds.log_scale(n))
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
    (trait,) = [trait for trait in kinds.TRAITS if trait.name == name]
    assert trait.show(value) == expected


# Texts


def test_a_short_text_and_nothing():
    """14 characters, 12 of them visible: 7 letters, 4 digits, a sign; 3 words of 4 on average."""
    assert of_text("Call 0906 NOW!") == NONE | {
        "characters": kinds.log_scale(14),
        "words": kinds.log_scale(3),
        "word-length": kinds.log_scale(4),
        "digits": kinds.log_scale(4),
        "digit-run": 4,
        "capitals": 57,
        "signs": 8,
    }
    assert of_text("") == of_text(" \n\t ") == traits_of(Message([], [])) == NONE


@each("text, expected", golden_table("tokens/kinds.table", 2, "traits"))
def test_runs_of_digits_links_and_texts_of_other_scripts(text, expected):
    for trait in expected.split(", "):
        name, value = trait.split(" ")
        number = kinds.log_scale(float(value[1:])) if value.startswith("~") else int(value)
        assert of_text(text)[name] == number, trait


def test_long_runs_of_digits_numerals_and_blanks():
    assert of_text("7" * 150)["digit-run"] == 99
    # Upper case, but no letters: with more of them than letters, the share would have no end.
    found = of_text("Ⅷ" * 1_000 + " a")
    assert (found["capitals"], found["signs"]) == (0, 100)
    assert of_text("  \n free prize \n\n") == of_text("free prize")


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
    text = {
        "characters": kinds.log_scale(12),
        "words": kinds.log_scale(4),
        "word-length": kinds.log_scale(2.5),
    }
    form = {"links": kinds.log_scale(1), "html": 50, "hops": 2}
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
    assert (found["html"], found["links"]) == (html, kinds.log_scale(links))
    assert found["characters"] == kinds.log_scale(2)
    nothing = parse(b"From: a@b.example\nReceived: by c.example\n\n")
    assert traits_of(nothing) == NONE | {"hops": 1}


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
    with patch.object(disguises, "_western_bytes", return_value=None):
        assert of_text(text) == found


def test_the_evidence_heeds_what_the_text_is_like():
    of_the_form = {"links", "html", "hops"}
    assert {kinds.TRAIT_NAMES[i] for i in kinds.EVIDENCE_TRAITS} == set(
        kinds.TRAIT_NAMES
    ) - of_the_form
