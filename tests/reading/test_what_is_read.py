"""The table "What is read" of docs/sources.md is true: each row has cases that show it."""

import bz2
import gzip
import io
import json
import lzma
import re
import sys
from contextlib import suppress
from pathlib import Path
from random import Random

import lz4.block
import lz4.frame
import pytest
import zstandard
from one_case import each

from nbspam.errors import SourceError
from nbspam.library import train
from nbspam.reading.message import parse, parse_text, problem_of
from nbspam.reading.source import ReadingOptions, Skips
from nbspam.reading.sources import read_messages, read_unlabelled
from nbspam.tokens.tokenized import tokenize
from nbspam.workers import Executor, tokenize_messages

ROOT = Path(__file__).parents[2]


def mail(n, body="Dear Hal,\n\nthe chairs are in the garden, and the cake is here."):
    return (
        b"Return-Path: <ann@example.org>\nFrom: Ann <ann@example.org>\nTo: hal@example.net\n"
        b"Subject: Chairs %d\nMessage-ID: <%d@example.org>\n\n%b\n" % (n, n, body.encode())
    )


M, M2, M3 = map(mail, (1, 2, 3))
FROM = b"From ann@example.org Tue Nov 25 10:00:00 2025\n"
NOISE = Random(1).randbytes(3_000)
BOX = FROM + M + b"\n" + FROM + M2 + b"\n"
SMSES = b"""<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>
<!--File Created By SMS Backup & Restore-->
<smses count="3">
  <sms protocol="0" address="+44" type="1" body="See you at &quot;noon&quot; &#55357;&#56832;" />
  <sms protocol="0" address="+44" type="1" body='say "hi"' read="1" />
  <mms date="1"><parts><part seq="0" ct="image/png" data="AAAA" />
    <part seq="1" ct="text/plain" text="Bring the cake" /></parts></mms>
</smses>
"""
SHORT = ['See you at "noon" \U0001f600', 'say "hi"', "Bring the cake"]
TELEGRAM = json.dumps({"messages": [{"type": "message", "text": text} for text in SHORT]}).encode()
ANDROID = """31/12/2024, 21:41 - Messages and calls are end-to-end encrypted.
31/12/2024, 21:41 - Ann: See you at "noon" \U0001f600
01/01/2025, 08:00 - Hal Tamsin: say "hi"
01/01/2025, 08:01 - +44 7700 900000: Bring the cake
"""
IPHONE = ANDROID.replace("\n0", "\n[0").replace("\n3", "\n\u200e[3").replace("31/", "[31/", 1)
IPHONE = re.sub(r"(\d\d:\d\d) - ", "\\1:05\u202fPM] ", IPHONE)


def dovecot_lz4(data):
    """Return data as Dovecot's zlib_save = lz4 writes it; checked against Dovecot 2.3.19."""
    packed = lz4.block.compress(data, store_size=False)
    sizes = (1 << 16).to_bytes(4, "big"), len(packed).to_bytes(4, "big")
    return b"Dovecot-LZ4\r\x2a\x9b\xc5" + b"".join(sizes) + packed


def dbox(data):
    head = b"2 M1e C6b07063d\n\x01\x02N          %016x\n" % len(data)
    return head + data + b"\n\x01\x03\nGabc\nR6b07063d\n\n"


def report(data, kind, name=b"X-Spam-Flag", extra=b""):
    """Return a report of a spam filter on a mail."""
    return (
        b"From: x@example.net\nSubject: *****SPAM*****\n%b: YES\nMIME-Version: 1.0\n"
        b'Content-Type: multipart/mixed; boundary="--=_6B"\n\nThis is in MIME format.\n\n----=_6B\n'
        b"Content-Type: text/plain\nContent-Disposition: inline\n\nContent analysis details: 9.9\n"
        b"\n----=_6B\nContent-Type: %b; x-spam-type=original\n"
        b"Content-Disposition: attachment\n%b\n%b\n----=_6B--\n" % (name, kind, extra, data)
    )


def forwarded(*mails, kind=b"message/rfc822", extra=b""):
    parts = (b"--=_f\nContent-Type: %b\n%b\n%b\n" % (kind, extra, each) for each in mails)
    return (
        b"From: hal@example.net\nSubject: Fwd\nMIME-Version: 1.0\n"
        b'Content-Type: multipart/mixed; boundary="=_f"\n\n--=_f\n\nPlease learn it.\n%b--=_f--\n'
        % b"".join(parts)
    )


def emlx(data):
    plist = b'<?xml version="1.0"?>\n<!DOCTYPE plist PUBLIC "x" "y">\n<plist/>\n'
    return b"%-10d\n%b%b" % (len(data), data, plist)


def stray(line, at=3):
    lines = M.split(b"\n")
    return b"\n".join([*lines[:at], line, *lines[at:]])


def maildir(*names, content=M):
    return {f"cur/{i}{name}": content for i, name in enumerate(names)} | {"tmp/9": M3, "new/.x": M3}


def cl2(*mails, end=b"\n"):
    """Return an mboxcl2: nothing in it is quoted."""
    box = b""
    for message in mails:
        header, _, body = message.replace(b"\n", end).partition(end + end)
        length = b"Content-Length: %d" % len(body)
        box += end.join([FROM.rstrip(), header, length, b"", body, b""])
    return box


QUOTING = mail(
    4, "She wrote:\n\nFrom ann@example.org Tue Nov 25 10:00:00 2025\nSubject: old\n\nbye"
)
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + NOISE
SEEN = {"seen": True}
READ, SKIPPED, REFUSED, UNSURE = "read", "skipped", "refused", "unsure"


def one(*contents):
    """Return files of one mail each, all of the same mail."""
    return [(READ, {"a.eml": content}, "a.eml", {}, [M]) for content in contents]


def packed(*functions):
    """Return a file, a Maildir and an mbox, each compressed."""
    cases = []
    for function in functions:
        cases += one(function(M))
        files = maildir(",S=700:2,S", content=function(M))
        cases += [(READ, files, "", {}, [M]), (READ, {"b": function(BOX)}, "b", {}, [M, M2])]
    return cases


def skipped(said, *contents, name="a"):
    return [(SKIPPED, {name: content, "b": M}, "", {}, said) for content in contents]


def refused(said, name, content):
    """Return cases of what is skipped in a folder and refused alone."""
    return [*skipped(said, content, name=name), (REFUSED, {name: content}, name, {}, said)]


XML = b"<?xml version='1.0'?><all><sms><body>see you</body></sms></all>"
LINES = b"".join(b"say hi to %d friends\n" % i for i in range(20))
CASES = {
    "a mail, with any line ends": one(
        *(M.replace(b"\n", end) for end in (b"\n", b"\r\n", b"\r", b"\r\r\n")),
        b"\xef\xbb\xbf" + M.replace(b"\n", b"\r\n"),
        M.decode().encode("utf-16"),
    ),
    "a mail behind `From ` and `>From ` lines": one(
        FROM + b">" + FROM + M,
        FROM + FROM + M,
        FROM + b">>" + FROM + b">" + FROM + M,
        b">" + FROM + M,
        b"\n\n" + M,
        b" \n\n" + FROM + M,
        b"\r\n" + M.replace(b"\n", b"\r\n"),
        b"---- Original message ----\n" + M,
        b"\toff\nX\n" + M,
        b"==> 1.eml <==\n" + FROM + M,
        stray(b"Microsoft Mail Internet Headers Version 2.0", 1),
        stray(b">" + FROM.rstrip(), 2),
        stray(b"this line is none", 4),
        stray(b"=", 4),
    ),
    "a mail in SpamAssassin's": [
        (READ, {"a": wrapped}, "a", {"attached": True}, [M])
        for wrapped in (
            report(M, b"message/rfc822"),
            report(M, b"text/plain"),
            FROM + report(M, b"text/plain", extra=b"Content-Transfer-Encoding: 8bit\n"),
        )
    ],
    "mails forwarded as attachments": [
        (READ, {"a": forwarded(M, M2)}, "a", {"attached": True}, [M, M2]),
        (READ, {"a/1": forwarded(M), "a/2": forwarded(M2)}, "a", {"attached": True}, [M, M2]),
        (
            READ,
            {
                "a": forwarded(
                    M,
                    kind=b'application/octet-stream; name="x.eml"',
                    extra=b"Content-Transfer-Encoding: 7bit\n",
                )
            },
            "a",
            {"attached": True},
            [M],
        ),
        (SKIPPED, {"a": M, "b": forwarded(M)}, "", {"attached": True}, "no message is attached"),
    ],
    "gzip, bzip2, xz": packed(gzip.compress, bz2.compress, lzma.compress),
    "zstd, lz4": packed(zstandard.compress, lz4.frame.compress, dovecot_lz4),
    "an archive that is damaged": [
        *skipped("damaged archive", gzip.compress(NOISE)[:500], bz2.compress(NOISE)[:500]),
        *skipped("compressed with compress", b"\x1f\x9d\x90" + NOISE),
        *skipped("compressed with lzip", b"LZIP\x01" + NOISE),
    ],
    "Maildir": [
        (READ, maildir(":2,S", ":2,") | {"new/3": M}, "", {}, [M] * 3),
        (READ, {"cur/1": M, "new/2": M2, "tmp/3": M3}, "", {}, [M, M2]),
    ],
    "Maildir with `--seen`": [
        (READ, maildir(sep + flags, ":2,", ":2,ST", ";2,F"), "", SEEN, [M])
        for sep in (":2,", ";2,", "!2,", "-2,", "_2,", "+2,", "\uf03a2,", ",S=700,W=720:2,")
        for flags in ("S", "FRS", "Sa", "S,S=700", "S.gz")
    ]
    + [(READ, {"cur/1:2,S": M, "new/2:2,S": M2, "new/3": M3}, "", SEEN, [M])],
    "Thunderbird's maildir": [
        (READ, {"cur/1600.eml": M, "tmp/1601.eml": M2}, "", {}, [M]),
        (READ, {"Mail/x/cur/1600.eml": M, "Mail/x/tmp/1601.eml": M2}, "Mail", {}, [M]),
    ],
    "Thunderbird's maildir, or a plain folder, with `--seen`": [
        (REFUSED, {"cur/1600.eml": M, "tmp/1601.eml": M2}, "", SEEN, "which messages were read"),
        (REFUSED, {"1": M, "2": M2}, "", SEEN, "which messages were read"),
        (REFUSED, {"a/cur/1:2,S": M, "a/new/2": M, "b/2": M2}, "", SEEN, "which messages were"),
        (READ, {"1": M}, "1", SEEN, [M]),
    ],
    "MH folder": [
        (READ, {"1": M, "2": M2, ",3": M3, ".mh_sequences": b"unseen: 1\n"}, "", {}, [M, M2]),
        (READ, {"1": M, "2": M2, "3": M3, ".mh_sequences": b"unseen: 1 3-9\n"}, "", SEEN, [M2]),
        (READ, {"1": M, "2": M2, ".mh_sequences": b"cur: 1\n"}, "", SEEN, [M, M2]),
    ],
    "mbox of any kind": [
        (READ, {"a": BOX}, "a", {}, [M, M2]),
        (READ, {"a": b"\xef\xbb\xbf" + BOX}, "a", {}, [M, M2]),
        (READ, {"a": FROM + QUOTING.replace(b"\nFrom ", b"\n>From ")}, "a", {}, [QUOTING]),
        (READ, {"a": cl2(M, QUOTING, M2)}, "a", {}, [M, QUOTING, M2]),
        (READ, {"a": cl2(M, QUOTING, M2, end=b"\r\n")}, "a", {}, [M, QUOTING, M2]),
        (READ, {"a": cl2(M).replace(b"Length: ", b"Length: 9") + BOX}, "a", {}, [M, M, M2]),
    ],
    "folder of Thunderbird's mboxes": [
        (READ, {"Junk": BOX, "Junk.msf": b"// <!-- <mdb:mork:z -->", "x": M3}, "", {}, [M, M2, M3]),
        (READ, {"Junk.mbox/mbox": BOX, "Junk.mbox/table_of_contents": NOISE}, "", {}, [M, M2]),
        (READ, {"Mail/All mail.mbox": BOX}, "Mail", {}, [M, M2]),
        (READ, {"Mail/All mail.mbox.gz": gzip.compress(BOX)}, "Mail", {}, [M, M2]),
    ],
    "another mbox in a folder": [(READ, {"1": FROM + M}, "", {}, [M])],
    "Apple Mail's `.emlx`": [
        *one(emlx(M)),
        (
            READ,
            {
                "Data/Messages/1.emlx": emlx(M),
                "Data/Messages/2.partial.emlx": emlx(M2),
                "Data/Attachments/2/2/notes.txt": b"some notes",
            },
            "",
            {},
            [M, M2],
        ),
    ],
    "SMS Backup": [(READ, {"sms.xml": SMSES}, "sms.xml", {}, SHORT)],
    "Telegram": [
        (READ, {"result.json": TELEGRAM}, "result.json", {}, SHORT),
    ],
    "a table or mbox in an archive": [
        (
            REFUSED,
            {"a.csv.gz": gzip.compress(b"x" * (70 << 20))},
            "a.csv.gz",
            {},
            "unpack it first",
        ),
    ],
    "WhatsApp": [
        (READ, {"chat.txt": ANDROID.encode()}, "chat.txt", {}, SHORT),
        (READ, {"_chat.txt": IPHONE.encode()}, "_chat.txt", {}, SHORT),
        (
            READ,
            {"_chat.txt": IPHONE.replace("say ", "say\n").encode()},
            "_chat.txt",
            {},
            [SHORT[0], 'say\n"hi"', SHORT[2]],
        ),
    ],
    "other XML": [
        (REFUSED, {"a.xml": XML}, "a.xml", {}, "save it as a table"),
        (REFUSED, {"a.xls": XML}, "a.xls", {}, "save it as CSV"),
    ],
    "a text of 20 lines": [(READ, {"a.txt": LINES}, "a.txt", {}, [LINES.decode()])],
    "Outlook's `.msg`": refused("msgconvert", "a.msg", OLE),
    "Outlook's `.pst`": refused("readpst", "a.pst", b"!BDN" + NOISE),
    "Outlook for Mac's": [
        *refused("convert it to mbox", "a.dbx", b"\xcf\xad\x12\xfe" + NOISE),
        *refused("convert it to mbox", "a.olm", b"PK\x03\x04" + NOISE),
    ],
    "mail encrypted": refused(
        "IMAP, or export it with doveadm fetch", "1:2,S", b"CRYPTED\x03\x07\2" + NOISE
    ),
    "Dovecot's dbox": skipped("IMAP, or export it with doveadm fetch", dbox(M), dbox(M) * 2),
    "indexes and caches": [
        case
        for name, content in {
            "dovecot.index.cache": b"\x08\x04" + NOISE,
            "dovecot-uidlist": b"3 V1600000000 N3 G4f2a\n1 :1600.M1P2.host,S=700\n",
            "cyrus.cache": NOISE,
            "Inbox.msf": b"// <!-- <mdb:mork:z v=1.4/> -->\n< <(a=c)> (B8=Custom1) >",
            "cmds": b"mv 00001.7848dde101aa985090474a91ec93fcf0 1\n",
            "context": b"Current-Folder: inbox\n",
        }.items()
        for case in skipped("is a mail program's own file", content, name=name)
    ],
    "pictures, PDF": [
        *refused("picture", "a.png", b"\x89PNG\r\n\x1a\n" + NOISE),
        *refused("PDF", "a.pdf", b"%PDF-1.7\n" + NOISE),
        *refused("SQLite", "a.db", b"SQLite format 3\0" + NOISE),
    ],
    "random bytes": [
        *(skipped("is not text", Random(n).randbytes(n))[0] for n in (200, 3_000, 100_000)),
        (UNSURE, {"a": NOISE}, "a", {}, "is not text"),
    ],
}
PAGE = (ROOT / "docs/sources.md").read_text("utf-8")
LINES = PAGE.partition("## What is read")[2].partition("\n## ")[0].splitlines()
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in LINES if line[:2] == "| "][1:]


@pytest.fixture(scope="module")
def spam_filter():
    spam = [("spam", b"Subject: w\n\nwin %d" % n) for n in range(20)]
    return train([("ham", mail(n)) for n in range(20)] + spam)


def read(path, options, skips, classifies=False):
    """Return the tokens of the messages of a source."""
    options = ReadingOptions(**options, require_content=not classifies)
    raws = (
        read_messages(path, options, skips)
        if classifies
        else read_unlabelled(path, "ham", options, skips)
    )
    return [m.tokens for m in tokenize_messages(raws, skips, Executor(), skip_empty=not classifies)]


def test_an_odd_line_before_the_text_is_read_with_it(tmp_path):
    (tmp_path / "a.eml").write_bytes(stray(b"=", 5))  # no word; the opening counts signs
    [tokens] = read(str(tmp_path / "a.eml"), {}, Skips())
    assert set(tokens) ^ set(tokenize(parse(M)).tokens) == {"open:=", "open:!="}


@pytest.mark.parametrize("source", CASES)
def test_each_row_of_the_table_is_true(source, tmp_path, spam_filter):
    what, remedy = next(row[1:] for row in ROWS if row[0].startswith(source))
    for number, (outcome, files, name, options, expected) in enumerate(CASES[source]):
        top = tmp_path / str(number)
        for file, content in files.items():
            (top / file).parent.mkdir(parents=True, exist_ok=True)
            (top / file).write_bytes(content)
        assert outcome in what, (number, files)
        path, skips = str(top / name), Skips()
        if outcome == REFUSED:
            with pytest.raises(SourceError, match=expected):
                read(path, options, skips)
            continue
        if outcome == UNSURE:
            [tokens] = read(path, options, skips, classifies=True)
            assert (tokens, skips.count) == ([], 0)
            assert spam_filter.classify(files[name]).verdict == "unsure"
            continue
        found = read(path, options, skips)
        if outcome == READ:
            parsed = (parse_text(m) if isinstance(m, str) else parse(m) for m in expected)
            wanted = [tokenize(message).tokens for message in parsed]
            assert sorted(found) == sorted(wanted), (number, list(files))
        else:
            assert len(found) == 1, (number, files)
            [said] = skips.named
            assert expected in said
            with pytest.raises(SourceError):
                read(path, options, Skips(strict=True))
        for word in re.findall(r"doveadm fetch|msgconvert|readpst", remedy):
            assert outcome != SKIPPED or word in skips.named[0]


def test_the_table_has_no_row_without_a_case():
    assert [row[0] for row in ROWS if not row[0].startswith(tuple(CASES))] == []


# What the table does not show


@each("module, pack", [("zstandard", zstandard.compress), ("lz4", dovecot_lz4)])
def test_without_its_module_an_archive_is_skipped_with_what_to_install(module, pack, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        for name in ("compression.zstd", "zstandard", "lz4", "lz4.block", "lz4.frame"):
            patch.setitem(sys.modules, name, None)
        (tmp_path / "1").write_bytes(pack(M * 20 + NOISE))
        skips = Skips()
        assert read(str(tmp_path), {}, skips) == []
        assert f"needs {module}; install it with: " in skips.named[0]
        assert parse(pack(M * 20 + NOISE)).problem


def test_a_message_that_is_renamed_while_a_folder_is_read_is_found(tmp_path):
    for part in ("cur", "new", "tmp"):
        (tmp_path / part).mkdir()
    (tmp_path / "new" / "1.host,S=700").write_bytes(M)
    (tmp_path / "cur" / "2.host;2,S").write_bytes(M2)
    raws = list(read_unlabelled(str(tmp_path), "ham", ReadingOptions(), Skips(strict=True)))
    (tmp_path / "new" / "1.host,S=700").rename(tmp_path / "cur" / "1.host,S=700:2,S")
    (tmp_path / "cur" / "2.host;2,S").rename(tmp_path / "cur" / "2.host;2,FS")
    assert [raw.message().header("subject") for raw in raws] == ["Chairs 2", "Chairs 1"]
    (tmp_path / "cur" / "2.host;2,FS").unlink()
    with pytest.raises(SourceError, match="cannot be read"):
        raws[0].message()


@each(
    "text",
    [
        "hello\0",
        "a\tb\r\n\x0c\x1b[1m",
        "win \x02\x02 now",
        "GIF89a is a format",
        "%PDF-1.7 is another",
        "PK\x03\x04 and so on, win a prize",
        "Rar!\x1a\x07 win a prize, a long text without any other",
        "12\nSubject: not of Apple\n\nwin",
        "2 M1e C6b07063d\nis how it begins",
        "BZh is short for something",
        "Hi Bob\nTo: be or not to be",
        "/a/list/of/files/one\0/a/list/of/files/two\0" * 100,
    ],
)
def test_who_writes_a_text_does_not_choose_that_it_is_none(text):
    assert problem_of(text.encode(), "") == ""
    assert parse(text.encode()).parts[0].text.strip()


def test_a_header_is_not_looked_for_in_a_text():
    """Where the blank line is missing, what follows is text, though it looks like a field."""
    message = parse(b"Subject: x\nDear Bob\nhow are you\nTo: be or not to be\n\nbye\n")
    assert message.parts[0].text.startswith("Dear Bob")
    assert not parse(b"see you\nDate: at noon\nbye\n").headers


@each("kind", [b"message/rfc822", b"text/plain"])
@each("by", [b"with SpamAssassin", b"by amavisd.attacker.example", b"(amavisd-new) with LMTP"])
def test_of_a_report_all_is_read_whoever_claims_to_have_written_it(kind, by):
    received = b"Received: from localhost %b; Fri, 1 Mar 2024 10:00:00 +0000\n" % by
    message = parse(received + report(M, kind))
    assert message.header("subject") == "*****SPAM*****"
    texts = [part.text for part in message.parts]
    assert "analysis details" in texts[0]
    assert M.partition(b"\n\n")[2].decode().strip() in texts[-1]
    assert message.parts[-1].is_possibly_hidden or message.parts[-1].is_attached


def test_nothing_is_attached_on_standard_input(monkeypatch):
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(M)))
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(SourceError, match=r"^-: no message is attached; forward it"):
        list(read_unlabelled("-", "spam", ReadingOptions(attached=True), Skips()))


@each("learns", ["train", "learn"])
def test_what_is_no_message_is_never_learned_from_a_program(learns, spam_filter):
    with suppress(SourceError):
        if learns == "train":
            with pytest.warns(UserWarning, match=r"1 of 3 messages were skipped \(pair:0: is not"):
                learned = train([("ham", NOISE), ("ham", M), ("spam", M2)]).metadata.learned
            assert list(learned.messages) == [1, 1]
        else:
            spam_filter.learn([("spam", NOISE)])
            pytest.fail("it was learned")
