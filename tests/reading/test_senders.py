"""Lists of senders: what they name, what proves a sender, and what a forger could try."""

import pickle
import re
import time
from unicodedata import category

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from one_case import each

from nbspam.errors import OptionError, one_line
from nbspam.names import ALLOWED_SENDER, BLOCKED_SENDER
from nbspam.reading.message import parse
from nbspam.reading.senders import SenderLists, authentication_results, sender_lists, sentence_on

HOST = "mx.example.net"
DMARC = f"Authentication-Results: {HOST}; dmarc=pass header.from=example.org\n"
RECEIVED = "Received: from a by mx.example.net\n"
FROM = "From: Boss <boss@example.org>\n"
ALLOW = SenderLists(["boss@example.org"], (), [HOST])
TRUSTING = SenderLists(["boss@example.org"], (), (), trust_from=True)


def listed(header, lists=ALLOW):
    raw = header if isinstance(header, bytes) else header.encode("utf-8", "surrogateescape")
    return lists.find_sender(parse(raw + b"Subject: x\n\nbody\n"))


def reason(header, lists=ALLOW):
    found = listed(header, lists)
    return found and found.reason


# Which senders a list names


@each(
    "entry, names, others",
    [
        ("boss@example.org", "boss@example.org BOSS@Example.ORG", "bos@example.org"),
        ("Boss@Example.Org", "boss@example.org", "boss@mail.example.org boss@example.org.evil.org"),
        ("@example.org", "a@example.org", "a@mail.example.org a@anexample.org a@example.orgs"),
        ("*@example.org", "a@example.org", "a@b.example.org"),
        ("mailto:boss@example.org", "boss@example.org", "bos@example.org"),
        ("*@*.example.org", "a@b.example.org a@b.c.example.org", "a@example.org a@bexample.org"),
        ("news-?@example.org", "news-1@example.org", "news-@example.org news-12@example.org"),
        ("news*@*", "news@a.org newsletter@b.org", "anews@a.org"),
        ("*@example.*", "a@example.org", "example.org@evil.com"),
        ("a.b+c@example.org", "a.b+c@example.org", "aXb+c@example.org"),
        ("@straße.de", "a@straße.de a@xn--strae-oqa.de", "a@strasse.de"),
        ("@MÜNCHEN.de", "a@münchen.de a@XN--mnchen-3ya.DE", "a@munchen.de"),
        ("müller@example.org", "MÜLLER@example.org mu\u0308ller@example.org", "muller@example.org"),
    ],
)
def test_an_entry_names(entry, names, others):
    lists = SenderLists((), [entry])
    for address in names.split():
        assert reason(f"From: {address}\n", lists) == BLOCKED_SENDER, address
    for address in others.split():
        assert listed(f"From: {address}\n", lists) is None, address


KINDS = ["boss@example.org"], ["@example.org", "b*@example.org"], ["*@*.org", "boss@*"]


@each("allow", [(rank, entry) for rank, entries in enumerate(KINDS) for entry in entries])
@each("block", [(rank, entry) for rank, entries in enumerate(KINDS) for entry in entries])
def test_the_closer_entry_wins_and_of_equals_the_blocking_one(allow, block):
    lists = SenderLists([allow[1]], [block[1]], [f"{HOST.upper()} "])
    wins = ALLOWED_SENDER if allow[0] < block[0] else BLOCKED_SENDER
    assert reason(DMARC + FROM, lists) == wins
    assert reason(FROM, lists) == BLOCKED_SENDER  # the allowed one is not proven


def test_the_lists_of_a_user_come_before_those_of_all():
    common = SenderLists(["@example.org"], ["spam@example.org", "@evil.org"], [HOST])
    own = SenderLists(["@evil.org"], ["boss@example.org"], [HOST], common=common)
    assert reason(DMARC + FROM, own) == BLOCKED_SENDER
    assert reason(DMARC + "From: ann@example.org\n", own) == ALLOWED_SENDER
    assert reason("From: a@evil.org\n", own) == BLOCKED_SENDER  # the user's entry is not proven
    own = SenderLists(["@other.org"], (), [HOST], common=common)
    assert "no Authentication-Results" in listed("From: a@other.org\n", own).doubt
    own = SenderLists(["@evil.org"], ["boss@example.org"], [HOST], common=common)
    assert reason(DMARC.replace("example.org", "evil.org") + "From: a@evil.org\n", own) == (
        ALLOWED_SENDER
    )


def test_a_file_of_entries(tmp_path):
    path = tmp_path / "list"
    path.write_text("\ufeff# who\n\n@example.org  # all of them\r\n a#b@example.com\n", "utf-8")
    lists = SenderLists((), [f"file:{path}", "x@y.org"])
    for address in ("a@example.org", "a#b@example.com", "x@y.org"):
        assert reason(f"From: {address}\n", lists) == BLOCKED_SENDER
    assert pickle.loads(pickle.dumps(lists)).find_sender(parse(b"From: x@y.org\n\n"))
    path.write_text("@a.org\nboss\n")
    with pytest.raises(OptionError, match=f"{path}:2: 'boss' is not a sender; write boss@ex"):
        SenderLists([f"file:{path}"])
    too_long = b"@a.org\n" * (1 + (16 << 20) // 7)
    for content, why in ((None, "No such file"), (b"\xff", "not UTF-8"), (too_long, "16,777,216")):
        path.unlink() if content is None else path.write_bytes(content)
        with pytest.raises(OptionError, match=f"block: {path} cannot be read \\(.*{why}"):
            SenderLists((), [f"file:{path}"])
    for name, why in (("~nobody-here/x", "home directory"), ("a\0b", "null")):
        with pytest.raises(OptionError, match=f"block: {one_line(name)} cannot be read \\(.*{why}"):
            SenderLists((), [f"file:{name}"])


@each(
    "entry",
    [
        *("", "boss", "example.org", "@", "a@", "Boss <a@b.org>", "a b@c.org", "a@b.org,c@d.org"),
        *("/etc/list", "a@b c.org", '"a"@b.org', "a@b..org", "a@.org", "a@b\0.org"),
    ],
)
def test_what_is_no_entry(entry):
    with pytest.raises(OptionError, match="is not a sender; write"):
        SenderLists([entry], (), [HOST])


def test_allowed_senders_without_a_proof_are_refused_and_empty_lists_are_none():
    assert sender_lists((), (), [HOST], True) is None
    assert sender_lists((), ["@a.org"], (), False)
    with pytest.raises(
        OptionError, match=r"need a proof, because anybody can write.* \(--trust-from"
    ):
        sender_lists(["@a.org"], (), (), False)


# From


@each(
    "field",
    [
        *("boss@example.org", "BOSS@EXAMPLE.ORG", "<boss@example.org>", '"boss"@example.org'),
        *('"B, (o)" <boss@example.org>', "(a (b) \\) c) Boss (d)\n <boss@example.org> (e)"),
        *("=?utf-8?q?B=C3=B6ss?= <boss@example.org>", "Böss X. <boss@example.org>"),
        '"evil@example.com" <boss@example.org>',
    ],
)
def test_from_of_one_mailbox_is_read(field):
    assert reason(f"{DMARC}From: {field}\n") == ALLOWED_SENDER
    assert reason(f"From: {field}\n", TRUSTING) == ALLOWED_SENDER
    assert reason(f"From: {field}\n") is None


NOT_THE_BOSS = [
    *('"boss@example.org" <x@evil.org>', "boss@example.org <x@evil.org>", "x@evil.org"),
    *("=?utf-8?q?boss=40example=2Eorg?= <x@evil.org>", "=?utf-8?q?boss=40example=2Eorg?="),
    *("x@evil.org (boss@example.org)", "(<boss@example.org>) x@evil.org", ""),
    *('"<boss@example.org>" <x@evil.org>', "<boss@example.org> <x@evil.org>"),
    *("boss@example.org, x@evil.org", "x@evil.org, boss@example.org", "G: boss@example.org;"),
    *("boss@example.org@evil.org", '"boss@example.org"@evil.org', "boss@example.org.evil.org"),
    *(
        "<@evil.org:boss@example.org>",
        "boss @example.org",
        "boss@example.org.",
        "boss@ example.org",
    ),
    *("boss(x)@example.org", "<boss@example.org", '"boss@example.org', "(boss@example.org"),
    *("boss@example.org\0", "bo\0ss@example.org", "boss@exаmple.org", "boss@example。org"),
    *("boss@example.org\rX: y", "boss@exam\rple.org", "boss@example.org;", "boss@example.org>"),
    "boss@" + "a." * 200 + "example.org",
]


@each("field", NOT_THE_BOSS)
@each("lists", [ALLOW, TRUSTING])
def test_from_of_another_or_of_nobody_is_not_the_boss(field, lists):
    for header in (f"{DMARC}From: {field}\n", f"{DMARC}From:\n {field}\n"):
        assert reason(header, lists) != ALLOWED_SENDER


@each(
    "header",
    [
        *(FROM * 2, FROM + "From: x@evil.org\n", "From: x@evil.org\n" + FROM, ""),
        *("From : boss@example.org\n", "no field\n" + FROM + "Content-Type: text/plain\n"),
        *("Sender: boss@example.org\n", FROM + " \nX: y\n", "\n" + FROM, "X\0: y\n" + FROM),
        *(FROM + "X: y\0\n", FROM + "X: y\rFrom: x@evil.org\n"),
        FROM + "no field\nFrom: x@evil.org\nContent-Type: text/plain\n",
        FROM + "X: " + "y" * 70_000 + "\nFrom: x@evil.org\n",
    ],
)
def test_a_header_that_programs_may_read_differently_proves_nothing(header):
    assert reason(DMARC + header, TRUSTING) != ALLOWED_SENDER
    assert reason("From hal Mon Nov 23 10:00:00 2026\n" + DMARC + FROM) == ALLOWED_SENDER
    assert reason((DMARC + FROM).replace("\n", "\r\n") + "X: y\r\n") == ALLOWED_SENDER


def test_a_blocked_sender_is_found_among_several_and_in_a_malformed_field():
    lists = SenderLists((), ["@evil.org"])
    found = [field for field in NOT_THE_BOSS if reason(f"From: {field}\n", lists)]
    assert len(found) > 8
    assert reason("From: a@b.org\nFrom: Evil <x@evil.org\n", lists) == BLOCKED_SENDER
    assert reason('From: "x@evil.org" <a@b.org>\n', lists) is None


PARTS = st.sampled_from(
    [
        *("boss@example.org", "@", "<", ">", '"', "(", ")", ",", ";", ":", "\\", ".", " ", "\n "),
        *("\0", "=?utf-8?q?", "?=", "é", "\udcff", "evil.org", "x", "\r", "[1.2.3.4]", "\u3002"),
        *("İ", "K"),
    ]
)


def test_a_list_that_another_user_may_replace_is_not_a_link(tmp_path):
    (tmp_path / "secret").write_text("no sender\n")
    (tmp_path / "allow").symlink_to("secret")
    with pytest.raises(OptionError, match=r"allow cannot be read"):
        SenderLists([f"file:{tmp_path / 'allow'}"], follow_links=False)


LISTS = SenderLists(["boss@example.org"], ["*@*.evil.org"], [HOST])


@given(st.lists(PARTS, max_size=12).map("".join) | st.text(max_size=60), st.booleans())
@example("boss@example.org", True)
def test_no_from_raises(value, is_trusted):
    lists = SenderLists(["@example.org"], ["*@*"], (), is_trusted)
    found = listed(f"From: {value}\n", lists)
    if found:
        assert not {*map(category, sentence_on(found))} & {"Cc", "Zl", "Zp"}
    authentication_results(value)


LONG = [
    '"',
    "a.",
    "a.a@",
    "(",
    "()",
    'a "',
    "x@y ",
    "<",
    "\\",
    "a=b ",
    ";",
    'a="',
    "é",
    "xn--é.",
    "a@",
]


LONG.append(", ".join(["x@" + "".join(map(chr, range(0x4E00, 0x4E00 + 240)))] * 60))
LONG.append("a@" + "".join(map(chr, range(0x4E00, 0x4E00 + 15_000))))


MANY = [f"u{i}@d{i}.example" for i in range(20_000)], [f"*@*.d{i}.org" for i in range(20_000)]


@pytest.mark.parametrize("entries", MANY, ids=["addresses", "domains"])
def test_a_long_list_takes_no_longer(entries):
    """A mail of many addresses of many labels: .02 s; 1.2 s if each pattern was tried."""
    lists = SenderLists((), entries)
    addresses = ", ".join(f"a{i}@{'b.' * 120}com" for i in range(60))
    started = time.process_time()
    assert reason(f"From: {addresses}\n", lists) is None
    assert reason("From: u7@d7.example, a@b.d7.org\n", lists) == BLOCKED_SENDER
    assert time.process_time() - started < 0.5


@each("part", LONG)
def test_many_long_fields_are_read_in_time(part):
    value = part * (16_000 // len(part))
    started = time.process_time()
    assert reason(f"From: {value}\n" * 3, LISTS) != ALLOWED_SENDER
    for start in (f"{HOST}; ", "", f"{HOST}; dkim=pass "):
        authentication_results(start + value)
    assert time.process_time() - started < 1  # .05 s; in square time it takes 10


# Authentication-Results: the field, and whether it proves that a mail is of example.org

PROOFS = [
    (f"{HOST}; dmarc=pass header.from=example.org", True),
    (f"{HOST} 1; dmarc=pass (p=none dis=none) header.from=Example.ORG", True),
    (f'"{HOST}"; dmarc=pass header.from=example.org', True),
    (
        "(a) MX.Example.Net (b (c)) 1 (d);\n\tdmarc = pass (e; f) header.from = example.org (g)",
        True,
    ),
    (f"{HOST}; dmarc/1=pass header.from=example.org", True),
    (f"{HOST}; spf=fail smtp.mailfrom=a@evil.org; dmarc=pass header.from=example.org;", True),
    (f'{HOST}; dmarc=pass reason="a; b \\" c" header.from=example.org', True),
    (f"{HOST}; dkim=pass (2048-bit key) header.d=example.org header.b=A/b+c=", True),
    (f"{HOST}; dkim=pass header.i=@mail.example.org header.s=s", False),
    (f"{HOST}; dkim=pass header.i=@example.org header.s=s", True),
    (f"{HOST}; dkim=fail header.d=example.org; dkim=pass header.d=example.org", True),
    (f'{HOST}; dkim=PASS Header.D="example.org"', True),
    (f"{HOST}; dmarc=none header.from=example.org; dkim=pass header.d=example.org", True),
    (f"{HOST}; spf=pass (a@b.org is fine) smtp.mailfrom=bounce+1=2@example.org", True),
    (f"{HOST}; spf=pass smtp.mailfrom=example.org; dkim=none", True),
    (f'{HOST}; spf=pass smtp.mailfrom="a b"@example.org', True),
    # Another server, or another version.
    ("mx.evil.org; dmarc=pass header.from=example.org", False),
    (f"{HOST}.evil.org; dmarc=pass header.from=example.org", False),
    (f"x{HOST}; dmarc=pass header.from=example.org", False),
    (f"{HOST} 2; dmarc=pass header.from=example.org", False),
    (f"({HOST}; dmarc=pass header.from=example.org) mx.evil.org; none", False),
    (f"mx.evil.org ({HOST}); dmarc=pass header.from=example.org", False),
    (f"; {HOST}; dmarc=pass header.from=example.org", False),
    ("dmarc=pass header.from=example.org", False),
    # Another domain.
    (f"{HOST}; dmarc=pass header.from=evil.org", False),
    (f"{HOST}; dmarc=pass header.from=example.org.evil.org", False),
    (f"{HOST}; dmarc=pass header.from=mail.example.org", False),
    (f"{HOST}; dmarc=pass", False),
    (f"{HOST}; dkim=pass header.d=evil.org header.i=@example.org", False),
    (f"{HOST}; dkim=pass header.d=org", False),
    (f"{HOST}; dkim=pass header.d=ample.org", False),
    (f"{HOST}; dkim=pass header.d=mail.example.org", False),
    (f"{HOST}; spf=pass smtp.helo=example.org", False),
    (f"{HOST}; spf=pass smtp.mailfrom=example.org@evil.org", False),
    (f'{HOST}; spf=pass smtp.mailfrom="x@example.org"@evil.org', False),
    (f"{HOST}; arc=pass header.d=example.org; x-dmarc=pass header.from=example.org", False),
    # No pass.
    (f"{HOST}; none", False),
    (HOST, False),
    (f"{HOST}; dmarc=fail header.from=example.org", False),
    (f"{HOST}; dmarc=fail header.from=example.org; dkim=pass header.d=example.org", False),
    (f"{HOST}; dkim=pass header.d=example.org; dmarc=fail =; none", False),
    (f"{HOST}; dmarc=bestguesspass header.from=example.org", False),
    (f"{HOST}; spf=softfail smtp.mailfrom=example.org; dkim=temperror header.d=example.org", False),
    # Malformed, or what a sender made the server quote.
    (f"{HOST}; dmarc=pass header.from=example.org (", False),
    (f'{HOST}; dmarc=pass header.from=example.org "', False),
    (f"{HOST}; dmarc=pass header.from=evil.org header.from=example.org", False),
    (f"{HOST}; dmarc=pass junk header.from=example.org", False),
    (f"{HOST}; dmarc=pass header.from=example.org junk", False),
    (f"{HOST} dmarc=pass header.from=example.org", False),
    (f'{HOST}; spf=fail smtp.mailfrom="; dmarc=pass header.from=example.org"@evil.org', False),
    (f"{HOST}; spf=fail (; dmarc=pass header.from=example.org) smtp.mailfrom=a@evil.org", False),
    (f'{HOST}; spf=fail (a "b); dmarc=pass header.from=example.org;" c) smtp.helo=x', False),
    (f'{HOST}; spf=fail (a "b); dmarc=pass header.from=example.org; x (c" d)', False),
    (f'{HOST}; spf=fail reason="\\"; dmarc=pass header.from=example.org" smtp.helo=x', False),
    (f"{HOST}; dmarc/2=pass header.from=example.org", False),
    ("", False),
]
# What servers write, though RFC 8601 has not all of its characters.
PROOFS += [
    (f"{HOST}; {results}", True)
    for results in (
        "spf=pass (o.org: a@b.org is ok) smtp.mailfrom=a@b.org;dmarc=pass(p=REJECT)"
        " header.from=example.org; dara=pass header.i=@c.org;",
        "dkim=pass header.i=@example.org header.s=2 header.b=Xyz/a+b=; arc=none (no signatures)",
        "dkim=pass (1024-bit key; unprotected) header.d=example.org header.a=rsa-sha256 x-bits=1;"
        " iprev=pass smtp.remote-ip=2001:db8::1; x-ptr=pass smtp.helo=a.org policy.ptr=a.org",
        "spf=none smtp.mailfrom=<>; dmarc=pass action=none header.from=example.org;compauth=pass",
        "spf=pass smtp.mailfrom=SRS0=ab=cd=example.org=a@example.org smtp.helo=a.org",
        'dkim=fail reason="bad \\"; sum" header.d=b.org; dmarc=pass header.from=example.org',
        "dmarc=pass header.from=example.org; dmarc=pass (again) header.from=example.org",
        "dmarc=none; dkim=pass header.d=example.org; spf=none smtp.helo=example.org",
    )
]
PASS = "dmarc=pass header.from=example.org"
# What a sender made a server write: a HELO, an address, a reason, copied as it came.
HOSTILE = [
    f"spf=fail smtp.helo=x; {PASS}",
    f"spf=fail smtp.helo=x;{PASS}",
    "spf=fail smtp.helo=x;dmarc=pass(a)header.from=example.org",
    f"spf=fail smtp.mailfrom=a@evil.org smtp.helo=x; {PASS}; iprev=pass policy.iprev=y",
    "spf=none smtp.helo=x; dkim=pass header.d=example.org",
    "spf=none smtp.helo=x; spf=pass smtp.mailfrom=example.org",
    "spf=pass smtp.helo=evil.org smtp.mailfrom=example.org",
    "spf=pass smtp.helo=evil.org(a)smtp.mailfrom=example.org",
    'spf=pass smtp.helo="evil.org" smtp.mailfrom=example.org',
    f"SPF=fail SMTP.HELO=x; {PASS}",
    f"spf=fail smtp.helo={PASS}",
    f'spf=fail smtp.helo="x; {PASS}"',
    f'spf=fail smtp.helo=x"; {PASS}; a="b',
    f'spf=fail smtp.helo="x" y; {PASS}',
    f"spf=fail (helo x; {PASS}) smtp.mailfrom=a@evil.org",
    f"spf=fail (helo (x; {PASS}) y) smtp.mailfrom=a@evil.org",
    f"spf=fail (helo \\); {PASS} \\() smtp.mailfrom=a@evil.org",
    f"spf=fail (helo x); {PASS}; y) smtp.mailfrom=a@evil.org",
    f"spf=fail reason=helo x; {PASS}",
    f"spf=fail reason=x y; {PASS}; iprev=pass policy.iprev=z",
    f'spf=fail reason="x; {PASS}" smtp.mailfrom=a@evil.org',
    f'spf=fail reason="x"; {PASS}" smtp.mailfrom=a@evil.org',
    f'spf=fail reason="x\\"; {PASS}; y=\\"" smtp.mailfrom=a@evil.org',
    f"spf=fail smtp.mailfrom=a; {PASS}; x=@evil.org",
    f"spf=fail smtp.mailfrom=a; {PASS} x@evil.org",
    f'spf=fail smtp.mailfrom="a"; {PASS} "b"@evil.org',
    f"spf=fail smtp.mailfrom=a\\; {PASS}",
    f"dmarc=none header.from=evil.org; spf=fail smtp.mailfrom=x; {PASS}",
    f"dmarc=pass header.from=evil.org; spf=fail smtp.mailfrom=x; {PASS}",
    f"dmarc=none; {PASS}",
    "spf=fail smtp.mailfrom=a@evil.org; spf=pass smtp.mailfrom=example.org",
    f"spf=fail smtp.mailfrom=a@evil.org policy.x=y {PASS}",
    f"=; {PASS}",
    f"none x; {PASS}",
    f"dkim=pass=x; {PASS}",
    f"dkim; {PASS}",
]
PROOFS += [(f"{HOST}; {results}", False) for results in HOSTILE]


@each("value, is_proof", PROOFS)
def test_what_proves_a_sender(value, is_proof):
    found = listed(f"Authentication-Results: {value}\n{FROM}")
    assert found.reason == (ALLOWED_SENDER if is_proof else None)
    assert (found.doubt == "") == is_proof
    # A server above the domain of From vouches for it, none below.
    sender = SenderLists(["@sub.example.org"], (), [HOST])
    if "dmarc" not in value and is_proof:
        header = f"Authentication-Results: {value}\nFrom: a@sub.example.org\n"
        assert reason(header, sender) == ALLOWED_SENDER


RAW = st.sampled_from(
    [
        *(
            f"; {PASS}",
            f" {PASS}",
            "; dkim=pass header.d=example.org",
            " smtp.mailfrom=example.org",
        ),
        *(
            "; spf=pass smtp.mailfrom=example.org",
            "x",
            " ",
            ";",
            "=",
            "@",
            '"',
            "(",
            ")",
            "\\",
            "/1",
        ),
        *("; none", "dmarc", "=pass", " header.from=example.org", "\t", "é", ".evil.org", "\n "),
    ]
)


@given(st.lists(RAW, max_size=8).map("".join))
@example(f"x; {PASS}")
def test_whatever_a_client_says_is_no_result(text):
    """Raw after smtp.helo=, or in quotes or a comment as a server should write it."""
    quoted = re.sub(r'(["\\])', r"\\\1", text)
    comment = re.sub(r"([()\\])", r"\\\1", text)
    for results in (
        f"spf=pass smtp.mailfrom=a@evil.org smtp.helo={text}",
        f'spf=fail reason="{quoted}" smtp.mailfrom=a@evil.org',
        f'spf=fail smtp.helo="{quoted}"; dkim=none',
        f'spf=fail smtp.mailfrom="{quoted}"@evil.org',
        f"spf=fail ({comment}) smtp.mailfrom=a@evil.org",
    ):
        assert reason(f"Authentication-Results: {HOST}; {results}\n{FROM}") is None


OTHER = "Authentication-Results: mx.evil.org; dmarc=pass header.from=example.org\n"
FAIL = f"Authentication-Results: {HOST}; dmarc=fail header.from=example.org\n"
SPF = f"Authentication-Results: {HOST}; spf=none smtp.mailfrom=evil.org\n"


@each(
    "header, is_proof",
    [
        (DMARC + RECEIVED + FROM, True),
        (RECEIVED + DMARC + FROM, True),
        (RECEIVED + SPF + "X: y\n" + DMARC + FROM, True),
        (OTHER + DMARC + FROM, True),
        (FROM + DMARC, True),
        (SPF + RECEIVED + DMARC + FROM, False),  # below what this server has received
        (FAIL + DMARC + FROM, False),
        (DMARC + FAIL + FROM, False),
        (DMARC + DMARC.replace("=example", "=evil") + FROM, False),  # one of them is not so
        (SPF.replace("none", "fail reason=a b") + DMARC + FROM, False),  # malformed: hides what?
        (DMARC + SPF.replace("none", "fail (") + FROM, False),
        (OTHER.replace("pass", "pass (") + DMARC + FROM, True),
        (OTHER + FROM, False),
        (FROM + "no field\n" + DMARC + "Content-Type: text/plain\n", False),
        (FROM + "X: y\r" + DMARC, False),
        (FROM + DMARC.replace("-Results:", "-Results :"), False),
        (FROM + "X-" + DMARC, False),
        (FROM + "ARC-" + DMARC, False),
        (FROM + "X:\n " + DMARC, False),
        (FROM + "\n" + DMARC, False),
    ],
)
def test_only_the_server_s_own_fields_at_the_top_count(header, is_proof):
    assert reason(header) == (ALLOWED_SENDER if is_proof else None)


def test_of_a_report_the_outer_header_proves_the_sender():
    original = DMARC + FROM + "Subject: x\n\nbody\n"
    report = (
        "X-Spam-Status: Yes\nFrom: x@evil.org\nContent-Type: multipart/mixed; boundary=b\n\n"
        "--b\nContent-Type: text/plain\n\nreport\n--b\n"
        "Content-Type: message/rfc822; x-spam-type=original\n\n" + original + "\n--b--\n"
    )
    assert parse(report.encode()).header("from") == "x@evil.org"
    for lists in (ALLOW, TRUSTING):
        assert lists.find_sender(parse(report.encode())) is None


@each(
    "header, lists, said",
    [
        (DMARC + FROM, ALLOW, "list of allowed senders; this decides"),
        (FROM, SenderLists((), ["@example.org"]), "blocked senders (@example.org); this decides"),
        (FROM, ALLOW, f"count: it has no Authentication-Results of {HOST}"),
        (SPF + FROM, ALLOW, f"{HOST} reports no pass of DMARC, DKIM or SPF for example.org"),
        (FROM, SenderLists(["@example.org"]), "no auth-host is set"),
        (FROM * 2, ALLOW, "malformed, or has not exactly one sender in From"),
    ],
)
def test_what_is_said_of_a_sender(header, lists, said):
    sentence = sentence_on(listed(header, lists))
    assert sentence.startswith("boss@example.org is on the list of ")
    assert said in sentence
