"""Every message gets a verdict, in bounded time and memory: the whole program, on the worst mail.

Each bound is a ratio to a plain mail of 16 MB, measured in the same run; time is CPU time, so that
other work on the machine does not count.
"""

import base64
import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from nbspam.reading.message import BYTES_LIMIT

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="Linux alone tells a process's peak memory"
)

MB = 1 << 20
MOST_TIMES = 10  # as long as the plain mail; the slowest, of nothing but different words, takes 4
MOST_MEMORY = 8 * BYTES_LIMIT  # beside the program itself; MIME 20 deep copies what is in it
HEAD = b"From: a@example.org\nSubject: a case\n"
PLAIN = HEAD + b"\n" + b"some words in a line of mail\n" * (16 * MB // 29)
# rusage's peak would be that of the process that forked.
MEASURED = """
import sys
from nbspam.__main__ import run
try:
    sys.exit(run())
finally:
    sys.stdout.flush()
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(peak.split()[1], file=sys.stderr)
"""


def repeated(unit: bytes, size: int = 100 * MB) -> bytes:
    return unit * (size // len(unit))


def encoded(encoding: str, body: bytes) -> bytes:
    return HEAD + f"Content-Transfer-Encoding: {encoding}\n\n".encode() + body


def typed(content_type: str, body: bytes) -> bytes:
    return HEAD + f"Content-Type: {content_type}\n\n".encode() + body


def multipart(parts: bytes) -> bytes:
    return typed("multipart/mixed; boundary=b", parts)


def nested(depth: int) -> bytes:
    levels = (
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (i, i) for i in range(depth)
    )
    return HEAD + b"".join(levels) + b"\n"


WORDS = b"some words in a line of mail\n"
LETTERS = b"abcdefghijklmnopqr"
CHARSETS = b"utf-7 utf-16 utf-32 gb2312 hz iso-2022-jp klingon idna zlib big5".split()
IN_A_CHARSET = b"--b\nContent-Type: text/plain; charset=%s\n\n\xff\xfe\xe4\0\x1b$B+2AA-\n"
ENCODED_NAME = b'--b\nContent-Disposition: x; filename="%s"\n\n'
HIDDEN = b"<html><style>a</style>" + b"<p style='display:none'><a href=\"x" * 20_000
UTF_8 = "text/plain; charset=utf-8"
CASES = {
    "500 KB of different words": lambda: (  # the slowest
        HEAD + b"\n" + b" ".join(map(bytes, itertools.product(LETTERS, repeat=4)))
    ),
    "empty": lambda: b"",
    "a NUL": lambda: b"\0",
    "100 MB of words": lambda: HEAD + b"\n" + repeated(WORDS),
    "100 MB on one line": lambda: HEAD + b"\n" + repeated(b"x"),
    "100 MB of NULs": lambda: HEAD + b"\n" + bytes(100 * MB),
    "100 MB of bare CRs": lambda: HEAD + b"\n" + repeated(b"a b\r"),
    "100 MB of base64": lambda: encoded("base64", repeated(base64.encodebytes(b"free " * 99))),
    "100 MB of base64 that is none": lambda: encoded("base64", repeated(b"d29yZA =!?\n")),
    "100 MB of quoted-printable": lambda: encoded("quoted-printable", repeated(b"=E4 a=\n")),
    "100 MB of UTF-16": lambda: b"\xff\xfe" + repeated("Subject: a\n\nwörd ".encode("utf-16-le")),
    "100 MB of HTML": lambda: typed("text/html", repeated(b"<p>some <b>words</b> here\n")),
    "100 MB of header": lambda: HEAD + b"X-A: " + repeated(b"x"),
    "10,000 headers": lambda: b"".join(b"X-Many-%d: value\n" % i for i in range(10_000)) + b"\nx",
    "100,000 times the same header": lambda: HEAD + b"Received: from a by b\n" * 100_000 + b"\nx",
    "parts full of headers in no charset": lambda: multipart(
        (b"--b\n" + b"a:\xe4\n" * 50_000 + b"\n") * 60
    ),
    "MIME 1,000 deep": lambda: nested(1_000) + b"at the bottom\n",
    "MIME 19 deep, 16 MB at the bottom": lambda: nested(19) + repeated(b"free words\n", 16 * MB),
    "messages 1,000 deep": lambda: typed("message/rfc822", b"") * 1_000,
    "10,000 parts": lambda: multipart(b"--b\n\npart\n" * 10_000),
    "a part in each charset": lambda: multipart(b"".join(IN_A_CHARSET % c for c in CHARSETS)),
    "a charset of its own in each word": lambda: multipart(
        (ENCODED_NAME % b"".join(b"=?x%d?q?=E4?= " % i for i in range(15_000))) * 40
    ),
    "HTML that never closes": lambda: typed("text/html", HIDDEN),
    "HTML 100,000 deep": lambda: typed("text/html", b"<div><span>free" * 100_000),
    "a comment that never closes": lambda: typed("text/html", b"<!-- " * 100_000),
    "Chinese": lambda: typed(UTF_8, "漢字仮名交じり文".encode() * 20_000),
    "Unicode tricks": lambda: typed(UTF_8, "fr\u200bee ｆｒｅｅ frее 𝐟𝐫𝐞𝐞 ".encode() * 20_000),
    "a word of two scripts without end": lambda: typed(UTF_8, b"F" * 500_000 + "а".encode()),
}


def classified(mail: bytes, model: Path) -> tuple[str, float, int]:
    """Return what classify prints of a mail, and its seconds of CPU and bytes at the peak."""
    with tempfile.TemporaryFile() as file:
        file.write(mail)
        file.seek(0)
        before = os.times()
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, "classify", "-m", str(model)],
            stdin=file,
            capture_output=True,
            timeout=60,
            check=False,
        )
        after = os.times()
    *talk, peak = done.stderr.decode().splitlines()
    assert (done.returncode, talk) == (0, [])
    seconds = after.children_user + after.children_system
    seconds -= before.children_user + before.children_system
    return done.stdout.decode(), seconds, int(peak) << 10


@pytest.fixture(scope="module")
def plain(sms_model):
    """Return what a plain mail of 16 MB takes, and the memory of an empty one."""
    return classified(PLAIN, sms_model)[1], classified(b"", sms_model)[2]


def assert_verdict(out):
    verdict, probability, source, *_ = out.rstrip("\n").split("\t")
    assert (verdict in ("spam", "ham", "unsure"), source) == (True, "-")
    assert 0 <= float(probability) <= 1


@pytest.mark.few(1)
@pytest.mark.parametrize("name", CASES)
def test_every_mail_gets_a_verdict_in_bounded_time_and_memory(name, sms_model, plain):
    usual, program = plain
    out, seconds, memory = classified(CASES[name](), sms_model)
    assert_verdict(out)
    assert seconds <= MOST_TIMES * usual
    assert memory <= program + MOST_MEMORY


@pytest.mark.few(1)
@pytest.mark.parametrize("unit", [b"word", b"free\n", "ع".encode(), b"i'", b"<b>w</b>"])
def test_half_a_megabyte_of_one_word_takes_little_memory(unit, sms_model):
    for kind in (UTF_8, "text/html"):
        memory = classified(typed(kind, repeated(unit, MB // 2)), sms_model)[2]
        assert memory <= 100 * MB


SMALL = (
    *("empty", "a NUL", "a part in each charset", "messages 1,000 deep", "HTML that never closes"),
    *("10,000 headers", "MIME 1,000 deep", "Chinese", "Unicode tricks"),
)


SOME_OR_ALL = pytest.mark.parametrize("names", [SMALL[:5], SMALL], ids=["some", "all"])


@pytest.mark.few(1)
@SOME_OR_ALL
def test_bad_mail_can_be_learned_and_what_cannot_is_skipped_counted_and_named(
    nbspam, tmp_path, assert_sentence, names
):
    spam, ham, path = (tmp_path / name for name in ("spam", "ham", "model.json"))
    for folder in (spam, ham):
        folder.mkdir()
        (folder / "damaged.gz").write_bytes(b"\x1f\x8b\x08 is no archive")
    for i, name in enumerate(names):
        (spam / f"{i}.eml").write_bytes(CASES[name]())
        (ham / f"{i}.eml").write_bytes(HEAD + b"\nlunch at noon %d\n" % i)
    found = nbspam("train", "--strict", "--spam", spam, "--ham", ham, "-m", path)
    assert_sentence(found, "damaged.gz", "--strict")
    assert not path.exists()
    found = nbspam("train", "--spam", spam, "--ham", ham, "-m", path)
    assert found.code == 0
    for part in ("skipped 3", spam / "damaged.gz", ham / "damaged.gz"):
        assert str(part) in found.err
    assert nbspam("model", "check", "-m", path).code == 0
    found = nbspam("classify", spam / "3.eml", "-m", path)
    assert (found.code, found.out.split("\t")[0], found.err) == (0, "spam", "")
