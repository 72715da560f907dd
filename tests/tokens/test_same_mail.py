"""A mail is the same mail whatever its software wrote into it after it arrived."""

import re

from any_mail import NEVER
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.learning.settings import TrainingSettings
from nbspam.reading.message import parse
from nbspam.tokens.headers import CHANNEL_FIELDS, subject_of
from nbspam.tokens.tokenized import tokenize

MAIL = b"""\
Return-Path: <bounce@shop.example>
Received: from mail.shop.example (mail.shop.example [192.0.2.71])
\tby mx2.example.com (Postfix) with ESMTPS id 4F2A81C0D3
\tfor <bob@example.com>; Wed, 3 Jan 2024 07:01:02 -0500 (EST)
Received: by mail.shop.example id 7; Wed, 3 Jan 2024 07:01:00 -0500 (EST)
Message-ID: <20240103.c81@web7.shop.example>
From: The Shop <news@shop.example>
To: Bob <bob@example.com>, Some Other Reader <reader@example.com>
Subject: Your order of the year
Date: Wed, 3 Jan 2024 12:00:58 +0000
List-Unsubscribe: <https://shop.example/u/9f3c2a>
X-Mailer: Shop Mailer 2.0
MIME-Version: 1.0
Content-Type: multipart/alternative; boundary="cut here"

--cut here
Content-Type: text/plain; charset=utf-8

Hello Bob,

From today on all is cheap!!
>From our shop, as Ann wrote.
--cut here
Content-Type: text/html; charset=utf-8

<p>Hello Bob,
From today on <b>all</b> is cheap!!
>From our shop, as Ann wrote.</p>
--cut here--
"""
WITHOUT_ID = MAIL.replace(b"Message-ID: <20240103.c81@web7.shop.example>\n", b"")
# Program: what it writes; on top if it says so, else at the end of the header.
FIELDS = {
    "mbsync": "X-TUID: q5PkhCZSgYoB",
    "offlineimap": "X-OfflineIMAP: 1733-1234-INBOX\nX-OfflineIMAP-x01234-1: 1700000000-0123-v8",
    "an IMAP server's mbox": "X-IMAP: 1700000000 17\nX-IMAPbase: 1700000000 17 Junk\nX-UID: 17\n"
    "Status: RO\nX-Status: AF\nX-Keywords: Junk NonJunk\nContent-Length: 38\nLines: 3",
    "Thunderbird": "^X-Account-Key: account3\nX-UIDL: 0123\nX-Mozilla-Status: 0009\n"
    "X-Mozilla-Status2: 00000000\nX-Mozilla-Keys: junk $label1",
    "Gmail": "^Delivered-To: bob@gmail.example\nX-Received: by 2002:a05:6402 with SMTP id a1\n"
    "X-GM-THRID: 123\nX-GM-MSGID: 124\nX-GM-LABELS: Spam\nX-Gmail-Labels: Spam,Unread\n"
    "X-Gm-Message-State: AOJu0Y\nX-Google-Smtp-Source: AGHT\nX-Gmail-Received: 0123abc",
    "KMail": "X-KMail-EncryptionState: N\nX-KMail-SignatureState: N\nX-KMail-MDN-Sent: \n"
    "X-KMail-Filtered: 17\nX-Length: 2113",
    "Evolution": "X-Evolution: 00000017-0010\nX-Evolution-Source: imap://bob@example.com/",
    "Apple Mail": "X-Apple-UUID: 01-23\nX-Apple-Mail-Remote-Attachments: YES\n"
    "X-Uniform-Type-Identifier: com.apple.mail-draft\nX-Universally-Unique-Identifier: 0123",
    "Exchange": "X-MS-Exchange-Organization-SCL: 9\nX-MS-Exchange-Organization-AuthAs: Anonymous\n"
    "X-MS-Exchange-CrossTenant-id: 01\nX-Forefront-Antispam-Report: SFV:SPM\nX-Auto-Junk: 1",
    "Outlook": "X-Microsoft-Exchange-Diagnostics: 1;x\nThread-Index: AdVm\nX-OlkEid: 00",
    "getmail": "^Delivered-To: bob\n"
    "X-getmail-retrieved-from-mailbox: Junk\nX-getmail-filter-classifier: spam",
    "a mail server's delivery": "^Delivered-To: bob@example.com\nX-Original-To: bob@example.com\n"
    "X-Delivered-To: bob\nEnvelope-To: bob@example.com\nX-Envelope-From: a@b.example\n"
    "X-Envelope-To: bob\nDelivery-Date: Wed, 3 Jan 2024 07:01:03 -0500\nX-Apparently-To: bob",
    "sorting": "X-Folder: Junk\nX-Mailbox: junk\nX-Label: later\nX-Filed-By: x",
    "a list archiver": "Archived-At: <https://list.example/1>\nX-Archived-At: x\nX-MHonArc-ID: 7\n"
    "X-Gmane-NNTP-Posting-Host: x\nX-Hypermail-Id: 3\nX-Pipermail-Part: 1\nX-List-Archived: yes",
    "a virus scanner": "X-Virus-Scanned: clamav at mx2.example.com\nX-Virus-Status: Clean\n"
    "X-Antivirus: Avast (VPS 240103-0)\nX-Antivirus-Status: Clean\nX-Scanned-By: MIMEDefang 2.8\n"
    "X-KLMS-AntiVirus: Kaspersky\nX-ESET-AS: R=OK\nX-Drweb-SpamState: yes\nX-Sophos-Scan: no",
    "other filters": "X-UI-Filterresults: junk:10;V03\nX-Mox-Reason: x\nX-CMAE-Analysis: v=2.4\n"
    "X-TM-AS-Result: Yes-17\nX-Bsfilter-Flag: Yes\nX-Bsfilter-Probability: 0.99\n"
    "X-hMailServer-Reason-Score: 7\nX-KLMS-AntiSpam-Status: spam\nX-KSMG-AntiSpam-Rate: 80\n"
    "X-Spamd-Bar: +++++\nX-Rspamd-Action: reject\nX-Bogosity: Spam\nX-Next-Filter: junk",
    "nbspam": "X-Nbspam: spam, probability=0.998712, version=1.0\nX-Nbspam-Evidence: cheap",
    "the next one nobody thought of": "X-Brand-New-Store: junk\nBrand-New-Field: spam\nX-A: b",
    **{name: f"{name}: Yes, spam" for name in NEVER},
}  # fmt: skip


def with_fields(text):
    """Return what writes the fields into a mail."""
    fields = text.removeprefix("^").encode() + b"\n"
    if text.startswith("^"):
        return lambda mail: fields + mail
    return lambda mail: mail.replace(b"\n\n", b"\n" + fields + b"\n", 1)


def with_subject(subject, *fields):
    def touch(mail):
        tagged = mail.replace(b"Subject: Your order of the year", b"Subject: " + subject.encode())
        return with_fields("\n".join(fields))(tagged) if fields else tagged

    return touch


def unfolded(mail):
    head, end, body = mail.partition(b"\n\n")
    return re.sub(rb"\n[ \t]+", b" ", head) + end + body


def refolded(mail):
    """Return a mail whose header is folded at every blank that is not the first of its field."""
    head, end, body = unfolded(mail).partition(b"\n\n")
    return re.sub(rb"(?<!:) ", b"\n\t", head) + end + body


def reordered(mail):
    """Return a mail whose header fields are in another order, but for the Received lines."""
    head, end, body = mail.partition(b"\n\n")
    fields = re.split(rb"\n(?![ \t])", head)
    others = [field for field in fields if not field.startswith(b"Received")]
    traces = [field for field in fields if field.startswith(b"Received")]
    return b"\n".join(others[::-1] + traces) + end + body


def quoted(mail):
    head, end, body = mail.partition(b"\n\n")
    return head + end + re.sub(rb"^(?=>*From )", b">", body, flags=re.MULTILINE)


TAGS = (
    """
[SPAM]|***SPAM***|***** SPAM *****|*****SPAM(12.3)*****|[SPAM: 9.1]|{Spam?}|*SPAM*|SPAM:|[Spam?]
[JUNK]|*** JUNK MAIL ***|[!! SPAM]|[?? Probable Spam]|[Norton AntiSpam]|{Virus?}|[BULK]|#SPAM#
[SUSPECTED SPAM]|--SPAM--|(spam)|[SPAM] [BULK]|_SPAM_|<spam>|***Spam*** [SPAM]|[Phishing]
""".strip()
    .replace("\n", "|")
    .split("|")
)
SUBJECT = "Your order of the year"
TOUCHES = {name: with_fields(text) for name, text in FIELDS.items()} | {
    "CRLF": lambda mail: mail.replace(b"\n", b"\r\n"),
    "CR CR LF": lambda mail: mail.replace(b"\n", b"\r\r\n"),
    "a final newline more": lambda mail: mail + b"\n",
    "a final newline less": lambda mail: mail.removesuffix(b"\n"),
    "an mbox": lambda mail: b"From ann@example.org Fri Mar  1 10:00:00 2024\n" + quoted(mail),
    "an mbox twice": lambda mail: quoted(quoted(mail)),
    "blanks at the ends of lines": lambda mail: mail.replace(b"cheap!!", b"cheap!! \t\n"),
    "nbspam's tag": with_subject(
        f"[Any] {SUBJECT}",
        "X-Nbspam: spam, probability=0.998712, version=1.0\nX-Nbspam-Tag: [Any]",
    ),
    "unfolded": unfolded,
    "refolded": refolded,
    "reordered": reordered,
    **{tag: with_subject(f"{tag} {SUBJECT}") for tag in TAGS},
    **{
        f"{field}: and a tag of any words": with_subject(f"[Ugly] {SUBJECT}", f"{field}: {SUBJECT}")
        for field in ("Old-Subject", "X-Spam-Prev-Subject", "X-ASG-Orig-Subj")
    },
}
WANTED = TrainingSettings().outputs


def touched_by_all(mail):
    for touch in (*map(with_fields, FIELDS.values()), TOUCHES["[SPAM] [BULK]"], quoted, refolded):
        mail = touch(mail)
    return TOUCHES["CRLF"](TOUCHES["reordered"](mail))


def tokenized(raw, label=None):
    return tokenize(parse(raw), "mail", label, digest=True, outputs=WANTED)


@each("mail", [MAIL, WITHOUT_ID])
@each("touch", [*TOUCHES.values(), touched_by_all])
def test_a_mail_touched_by_any_program_is_the_same(touch, mail):
    touched = touch(mail)
    assert touched != mail
    one, other = tokenized(mail), tokenized(touched)
    assert one.tokens == other.tokens
    assert (one.digest, one.extras) == (other.digest, other.extras)


NAME = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":"), min_size=1
)
VALUE = st.text(st.characters(min_codepoint=32, max_codepoint=126)) | st.just("junk by x.example")


@given(
    st.lists(st.tuples(NAME.map("X-{}".format) | NAME, VALUE)),
    st.randoms(use_true_random=False),
    st.sampled_from([MAIL, WITHOUT_ID]),
)
def test_fields_of_any_name_other_folds_and_another_order_change_nothing(added, chance, mail):
    head, end, body = unfolded(mail).partition(b"\n\n")
    fields = head.split(b"\n")
    traces = [field for field in fields if field.startswith(b"Received")]
    fields += [
        f"{n}: {v}".encode() for n, v in added if n.lower() not in CHANNEL_FIELDS | KEPT_APART
    ]
    chance.shuffle(fields)
    order = iter(traces)
    fields = [next(order) if field.startswith(b"Received: ") else field for field in fields]
    folded = [
        re.sub(rb"(?<=\S)(?<!:) (?=\S)", lambda _: chance.choice([b" ", b"\n\t", b"\n "]), field)
        for field in fields
    ]
    one, other = tokenized(mail), tokenized(b"\n".join(folded) + end + body)
    assert one[2:4] == other[2:4]
    assert one.extras == other.extras


# The other Subject is read for the sake of the tag before it.
KEPT_APART = dict.fromkeys(["old-subject", "x-old-subject", "original-subject", "x-asg-orig-subj"])


@each(
    "subject, old",
    [
        ("Re: [SPAM] cheap pills", ""),
        ("[spam-l] cheap pills", ""),
        ("Spam filters compared", ""),
        ("[SpamAssassin] cheap pills", ""),
        ("[the spam that came to all of us on Monday] cheap", ""),
        ("Hello", "Other words"),  # not the Subject's end
        ("cheap pills from the cheapest of all shops: hello", "hello"),  # too long to be a tag
    ],
)
def test_a_subject_of_a_senders_own_words_is_kept(subject, old):
    assert subject_of([("subject", subject), ("old-subject", old)]) == subject


@each(
    "tag",
    "(spam) <Junk> #SPAM# ==VIRUS== ~spam~ _bulk_ !spam! +++junk+++ -spam- AntiSpam: Virus:"
    " Phishing: Bulk: junk: \u017fpam: [spam] {spam} *spam*".split(),
)
def test_whatever_a_tag_begins_with_it_is_left_out(tag):
    assert subject_of([("subject", f" {tag} hello")]) == "hello"
