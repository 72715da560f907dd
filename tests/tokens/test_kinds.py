import re
from pathlib import Path

from any_mail import mails
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading.message import parse, parse_text
from nbspam.tokens.kinds import (
    COLLECTED_BY,
    FIELDS,
    HEADER,
    HOST,
    KINDS,
    TEXT,
    TRAITS,
    TRIGRAM,
    WORD,
    channel_of,
    is_fragment,
    is_host,
    kind_of,
)
from nbspam.tokens.tokenized import message_tokens

ROOT = Path(__file__).parents[2]
NAMES = {kind.name for kind in KINDS}


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
    assert len(NAMES) == len(KINDS)
    assert all(kind.meaning for kind in KINDS)
    assert not any(":" in name or name != name.lower() for name in NAMES)
    for kind in KINDS:
        assert kind_of(f"{kind.prefix}x") == kind
        assert channel_of(f"{kind.prefix}x") == kind.channel
    assert WORD.prefix == ""
    assert TRIGRAM.prefix == "tri:"


CHANNELS = {
    TEXT: "link host path punct trick limit case sign tri subject mime attachment".split(),
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
    assert {token.partition(":")[0] for token in tokens if ":" in token} <= NAMES
    # The sample's mails have no Organization, and meet no limit.
    assert set(KINDS) - {kind_of(token) for token in tokens} <= {
        named("organization"),
        named("limit"),
    }


@given(mails())
def test_every_token_of_any_mail_is_of_a_known_kind(raw):
    tokens = message_tokens(parse(raw))
    assert {token.partition(":")[0] for token in tokens if ":" in token} <= NAMES


def test_the_page_on_tokens_names_every_kind_and_no_other():
    page = (ROOT / "docs" / "tokens.md").read_text("utf-8").partition("## Traits")[0]
    cells = re.findall(r"^\| ([^|]*) \|", page, flags=re.MULTILINE)
    listed = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert sorted(listed) == sorted(NAMES - {WORD.name})
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
