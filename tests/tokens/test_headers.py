import pytest

from nbspam.tokens.headers import header_tokens
from nbspam.tokens.kinds import HEADER, is_header, prefix


def tokens_of(name, value):
    return header_tokens([(name, value)])


def test_the_subject_is_text():
    assert tokens_of("subject", "WIN a free prize!!") == {
        *("subject:win", "subject:a", "subject:free", "subject:prize"),
        *("subject:win a", "subject:a free", "subject:free prize"),
        *("subject:punct:!!", "subject:caps:1"),
    }


def test_an_encoded_subject_is_decoded_and_marked():
    found = tokens_of("subject", "=?UTF-8?B?0L/RgNC40LI=?= =?utf-8?q?=D0=B5=D1=82?= caf=?")
    assert {"mime:encoded-subject", "subject:привет"} <= found


def test_an_encoded_subject_in_another_charset():
    assert "subject:grüße" in tokens_of("subject", "=?iso-8859-1?Q?Gr=FC=DFe?=")


@pytest.mark.parametrize("word", ["fr\u200bee", "ｆｒｅｅ", "frее", "𝐟𝐫𝐞𝐞"])
def test_tricks_in_the_subject_are_undone(word):
    assert "subject:free" in tokens_of("subject", word)


def test_an_addresss_words_and_domains():
    found = tokens_of("from", '"Prize Desk" <win@mail.example.com>')
    assert {"from:prize", "from:desk", "from:win"} <= found
    assert {"from:@mail.example.com", "from:@example.com", "from:@com"} <= found


def test_an_encoded_name_is_decoded():
    assert "from:jürgen" in tokens_of("from", "=?utf-8?q?J=C3=BCrgen?= <j@example.org>")


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("from", "from:"),
        ("to", "to:"),
        ("cc", "to:"),
        ("reply-to", "reply-to:"),
        ("x-mailer", "mailer:"),
        ("user-agent", "mailer:"),
        ("content-type", "content:"),
        ("content-transfer-encoding", "content:"),
    ],
)
def test_fields_of_sender_and_mailer_have_their_prefix(name, prefix):
    found = tokens_of(name, "Some Words")
    assert {f"{prefix}some", f"{prefix}words"} <= found
    assert all(token.startswith(prefix) for token in found)


NEVER = """
X-Spam-Status X-Spam-Flag X-Spam-Level X-Spam-Score X-Spam-Checker-Version X-Spam X-Spam-Anything
X-Bogosity X-Nbspam X-CRM114-Status X-DSPAM-Result X-Rspamd-Score X-Rspamd-Queue-Id
Authentication-Results ARC-Authentication-Results ARC-Seal ARC-Message-Signature Received-SPF
DKIM-Signature X-Virus-Scanned X-Barracuda-Spam-Score X-Proofpoint-Spam-Details
X-MailScanner-SpamCheck X-MS-Exchange-Organization-SCL X-Forefront-Antispam-Report
X-Microsoft-Antispam X-Ham-Report X-Junk-Score
Status X-Status X-Keywords X-UID X-Mozilla-Status X-Mozilla-Status2 X-Mozilla-Keys X-Gmail-Labels
Content-Length Lines X-IMAPbase X-Evolution
List-Id List-Post List-Help List-Subscribe List-Unsubscribe List-Archive List-Owner Precedence
""".split()


@pytest.mark.parametrize("name", NEVER)
def test_verdicts_and_the_readers_own_software_are_never_tokens(name):
    assert tokens_of(name.lower(), "Yes, score=9.9 spam <a@b.example>") == set()


@pytest.mark.parametrize("name", ["received", "date", "x-originating-ip", "x-foo", "x-campaign"])
def test_other_fields_are_traces_of_where_a_mail_was_collected(name):
    found = tokens_of(name, "By Relay 10 Jan")
    assert {
        f"{prefix(HEADER)}{name}:",
        f"{prefix(HEADER)}{name}:relay",
        f"{prefix(HEADER)}{name}:jan",
    } <= found
    assert all(is_header(token) for token in found)


def test_no_field_but_the_others_gives_traces():
    known = "subject from to cc reply-to x-mailer user-agent content-type".split()
    found = header_tokens([(name, "trace: trace:x received") for name in known])
    assert not [token for token in found if is_header(token)]


def test_a_trace_field_has_a_name_of_bounded_length():
    assert max(map(len, tokens_of("x-" + "a" * 10_000, "word"))) < 100


def test_ten_thousand_fields_give_a_bounded_number_of_tokens():
    headers = [(f"x-{i}", f"word{'abcdefghij'[i % 10]} a{i}b") for i in range(10_000)]
    assert len(header_tokens(headers)) < 2_000


def test_a_huge_field_gives_a_bounded_number_of_tokens():
    value = " ".join(
        f"{a}{b}{c}" for a in "abcdefghijklmnopqrst" for b in "aeiouy" * 5 for c in "xyzuvw"
    )
    for name in ("subject", "from", "received"):
        assert len(tokens_of(name, value * 100)) < 5_000


def test_no_headers_no_tokens():
    assert header_tokens([]) == set()
    assert header_tokens([("subject", ""), ("to", "")]) == set()
