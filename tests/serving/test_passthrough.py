"""VerdictHeader go into a message and come out of it; nothing else changes, byte for byte."""

import re
import time

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from one_case import each
from servers import golden

from nbspam import __version__
from nbspam.reading.marks import MARK, PLACE_LIMIT, TAG_LIMIT, may_be_mark, may_be_tag, remove_marks
from nbspam.reading.message import parse
from nbspam.serving.passthrough import (
    VerdictHeader,
    add_fields,
    evidence_value,
    remove_own_fields,
    verdict_value,
)
from nbspam.tokens.tokenized import message_tokens

VERDICT = verdict_value("spam", 0.998712)
PLAIN, TAGGING = VerdictHeader("X-Nbspam", VERDICT), VerdictHeader("X-Nbspam", VERDICT, "[SPAM]")
LINE = b"X-Nbspam: " + VERDICT.encode()
FROM = b"From a@example.org Mon Jan  1 10:00:00 2024\n"


def filled(wanted):
    for letter, line in ((b"M", LINE), (b"T", b"X-Nbspam-Tag: [SPAM]")):
        wanted = re.sub(rb"(?:(?<=[\r\n])|\A)%s(?=[\r\n]|\Z)" % letter, line, wanted)
    return wanted


def passed(raw, marks=PLAIN):
    return add_fields(remove_own_fields(raw, marks.name), marks)


@each("case, came, wanted", golden("marks.tsv"))
def test_where_the_header_goes_and_that_it_is_the_same_message(case, came, wanted):
    once = passed(came)
    assert filled(wanted) == once
    assert once == passed(once)
    for marks in ALL_MARKS:
        assert tokens(remove_own_fields(came, marks.name)) == tokens(passed(came, marks))


def test_the_verdict_is_as_promised():
    assert re.fullmatch(r"spam, probability=0\.998712, version=\S+", VERDICT)
    assert VERDICT.endswith(f"version={__version__}")


@pytest.mark.long
def test_a_header_that_goes_on_is_marked_at_its_beginning():
    """Where the place behind it is not looked for, and may be within a line that was cut."""
    mark = LINE + b"\r\n"
    for long in (b"X-Long: " + b"a" * PLACE_LIMIT, b"a: b\r\n" * (PLACE_LIMIT // 6 + 1)):
        raw = b"Subject: x\r\n" + long
        for message in (raw, raw + b"\r\n\r\nbody"):
            assert passed(message) == mark + message
            assert passed(FROM + message) == FROM + LINE + b"\n" + message
            assert passed(b"\xef\xbb\xbf" + message) == b"\xef\xbb\xbf" + mark + message
            assert passed(b"junk\n" + message) == LINE + b"\njunk\n" + message
    short = b"X-A: " + b"a" * (PLACE_LIMIT - 7) + b"\n"
    assert passed(short + b"\nbody") == short + LINE + b"\n\nbody"


@pytest.mark.few(1)
@pytest.mark.parametrize("marks", [VerdictHeader("X-Own-Name", VERDICT, "[SPAM]"), PLAIN])
def test_a_mark_is_removed_wherever_it_is_in_a_long_header(marks):
    """Who reads marks reads the whole header: none forged may be left behind ours."""
    filler = b"a: b\n" * (PLACE_LIMIT // 5 + 1)  # longer than the place is looked for
    came = b"Subject: win\n" + filler + b"Subject: [SPAM] again\n" + filler
    forged = b"X-Nbspam: ham\nx-nbspam-tag: x\n\ty\nX-OWN-NAME : ham\n"
    raw = came + forged + b"\nbody"
    clean = remove_own_fields(raw, marks.name)
    assert clean in (came + b"\nbody", came + b"X-OWN-NAME : ham\n\nbody")
    once = passed(raw, marks)
    assert remove_own_fields(once, marks.name) == clean
    assert passed(once, marks) == once
    assert parse(once, (marks.name, MARK)) == parse(raw, (marks.name, MARK))


SHAPES = {
    "fields": b"a:\n",
    "fields, CRLF": b"a:\r\n",
    "one line": b"a",
    "blanks": b" ",
    "CRs": b"\r",
    "CRs as line ends": b"a:\r",
    "a CR first in each line": b"\n\ra",
    "continuations": b"\n ",
    "our own header": b"X-Nbspam: ham\n",
    "our own name": b"X-Nbspam",
    "our own header, continued": b"X-Nbspam:\n x\n",
    "verdicts": b"X-Q: a, probability=0.500000, version=1\n",
    "beginnings of verdicts": b"X-Q: a, probability=",
    "tags": b"X-Nbspam-Tag: x\nSubject: x y\n",
    "Subjects": b"Subject: x\n",
    "junk": b"abc\n",
}


TAGGED = b"Subject: a\nX-Nbspam-Tag: b\n"


@pytest.mark.parametrize("kib", [256, pytest.param(8192, marks=pytest.mark.long)])
def test_marking_takes_no_time_whatever_the_header(kib):
    """16 MiB of fields took 4 s of each; it is now 0.3 s at most, and grows with the size."""

    def spent(shape, first, size):
        raw = first + shape * (size // len(shape))
        start = time.process_time()
        clean = remove_own_fields(raw, "X-Nbspam")
        add_fields(clean, TAGGING)
        return time.process_time() - start

    tagged = [name for name in SHAPES if name.startswith(("our own", "tags", "Subj"))]
    for name, first in [(name, b"") for name in SHAPES] + [(name, TAGGED) for name in tagged]:
        quarter, whole = (
            min(spent(SHAPES[name], first, size) for _ in range(2))
            for size in (kib << 8, kib << 10)
        )
        # What is searched of a header has a limit, so a MiB takes nearly as long as eight.
        assert whole < 0.3 + kib / 11_000, (name, first)
        assert whole < 8 * quarter + max(0.02, kib / 80_000), (name, first)


# Properties


def tokens(raw):
    return message_tokens(parse(raw))


EVIDENCE = evidence_value("X-Nbspam", [("free", 2.31), ("meeting at", -1.2), ("x" * 70, 0.1)] * 3)
ALL_MARKS = [
    PLAIN,
    VerdictHeader("X-Nbspam", VERDICT, evidence=EVIDENCE),
    VerdictHeader("X-Nbspam", VERDICT, "[SPAM]", EVIDENCE),
    VerdictHeader("X-Own-Name", VERDICT, "[SPAM]", EVIDENCE),
    VerdictHeader("Verdict", verdict_value("größe, x", 0), "*** SPAM ***"),
]
LINES = [
    b"", b"Subject: win", b"Subject:", b"subject:  x", b"From: a@example.org", b"Reminder: x",
    b"X-Nbspam: ham", b"x-nbspam-tag: [SPAM]", b"X-Nbspam-Evidence: a", b" continued", b"\t",
    b"junk",
    b"From 9 on", FROM[:-1], b">From x", b"\xef\xbb\xbf", b"Subject: [SPAM] a", b"Subject: [SPAM]",
    LINE, b"Verdict: spam, probability=0.123456, version=1", b"\xff\xfe", b"X-A\0: b", b"a\rb",
]  # fmt: skip
ENDS = [b"\n", b"\r\n", b"\r", b"\r\r\n", b""]
MESSAGES = st.binary(max_size=200) | st.lists(
    st.tuples(st.sampled_from(LINES), st.sampled_from(ENDS)) | st.tuples(st.binary(max_size=5)),
    max_size=10,
).map(lambda pieces: b"".join(b"".join(piece) for piece in pieces))


@given(MESSAGES, st.sampled_from(ALL_MARKS))
@example(b"\xef\xbb\xbfX-Nbspam:\n\nX-Nbspam:", PLAIN)
@example(b"X-Nbspam:\n\xef\xbb\xbfX-Nbspam:\n", PLAIN)
def test_what_is_not_a_mark_stays_byte_for_byte(raw, marks):
    clean = remove_own_fields(raw, marks.name)
    out = add_fields(clean, marks)
    again = remove_own_fields(out, marks.name)
    # What may be left of the marks: an empty line where there was no header, a missing line end.
    assert again in {
        clean,
        *(end + clean for end in ENDS),
        *(clean + end for end in ENDS),
        *(_after_from(clean, end) for end in ENDS),
    }
    assert out == add_fields(again, marks)
    assert out.count(marks.verdict.encode()) == 1 + clean.count(marks.verdict.encode())


def _after_from(clean, end):
    """Return a text with the empty line after its From line, the end of which may be new too."""
    line, middle, rest = clean.partition(b"\n") if b"\n" in clean else clean.partition(b"\r")
    return line + (middle or end) + end + rest


@given(MESSAGES, st.sampled_from(ALL_MARKS))
def test_any_marked_message_has_the_same_tokens(raw, marks):
    clean = remove_own_fields(raw, marks.name)
    # A text with NULs is read as UTF-16, unless it has a header, which it gets with a mark.
    assume(b"\0" not in clean or parse(clean).headers)
    found = tokens(add_fields(clean, marks))
    # The empty line before a text without a header may be ours; that it is not cannot be told.
    assert found in (
        tokens(clean),
        tokens(re.sub(rb"\A((?:>?From [^\r\n]*)?)\r*\n", rb"\1", clean)),
    )


@given(MESSAGES)
@example(b"X-Nbspam: q\nSubject: a\rX-Nbspam: ham\r\rbody")
def test_nothing_forged_is_left(raw):
    out = passed(raw)
    head = re.split(rb"(?m)^(?:\r*\n|\r+\Z)", out)[0]
    assert len(re.findall(rb"(?im)^x-nbspam(?:-tag|-evidence)?[ \t]*:", head)) == 1 or (
        b"\n" not in out
        and len(re.findall(rb"(?im)^x-nbspam[ \t]*:", out.replace(b"\r", b"\n").split(b"\n\n")[0]))
        == 1
    )


# The tag


@each("came, wanted", golden("tags.tsv"))
def test_the_tag_goes_before_the_subject(came, wanted):
    out = passed(came, TAGGING)
    assert filled(wanted) == out
    assert out == passed(out, TAGGING)
    again = remove_own_fields(out, "X-Nbspam").removeprefix(b"" if b":" in came else b"\n")
    assert remove_own_fields(came, "X-Nbspam") == again


def test_what_is_no_tag_of_ours_stays_and_hides_nothing():
    raw = b"Subject: [SPAM] win\n\nb"
    assert raw == remove_own_fields(raw, "X-Nbspam")
    assert tokens(raw) == tokens(b"Subject: win\n\nb")  # a filter's, which is not what was sent
    for tag in (b"x" * (TAG_LIMIT + 1), b"caf\xe9", b"", b"a\n b"):
        subject = b"Subject: " + tag.replace(b"\n", b"") + b" win\n\nb"
        assert subject == remove_own_fields(b"X-Nbspam-Tag: " + tag + b"\n" + subject, "X-Nbspam")


def test_good_tags_and_names_and_bad_ones():
    good = ["[SPAM]", "x", "*** junk, 99 % ***", "x" * TAG_LIMIT]
    bad = ["", " a", "a ", "a\nb", "a\tb", "é", "\x7f", "x" * 31, "a\n"]
    assert [tag for tag in good + bad if may_be_tag(tag)] == good
    good = ["X-Nbspam", "x-bogosity", "Verdict", "X_!", "X" * 60]
    bad = ["", "a b", "a:", "é", "X" * 61, "a\n", "\0"]
    bad += ["Subject", "FROM", "Content-Type", "Resent-Date"]
    assert [name for name in good + bad if may_be_mark(name)] == good


def test_with_another_name_our_own_is_removed_too_and_another_filters_stays():
    raw = b"To: a\nX-Nbspam: ham\nX-Nbspam-Tag: x\nx-own: ham\nX-Own-Evidence: y\n\nb"
    assert passed(raw, VerdictHeader("X-Own", "v")) == b"To: a\nX-Own: v\n\nb"
    raw = b"X-Spam-Status: Yes\nX-Bogosity: Spam\n\nb"
    assert raw == remove_own_fields(raw, "X-Nbspam")


# What the tokenizer makes of marks


PLAIN_MAIL = b"To: a@example.org\nSubject: win\n\nb\n"


def test_a_verdict_is_known_by_its_value_under_any_name_but_those_with_a_meaning():
    for verdict in (VERDICT, verdict_value("unsure", 0.0006, "too few known words")):
        out = passed(PLAIN_MAIL, VerdictHeader("X-Mine", verdict, "[S]", EVIDENCE))
        assert remove_marks(out) == PLAIN_MAIL
        assert tokens(PLAIN_MAIL) == tokens(out)
    for name in ("Subject", "From", "Content-Type", "Received"):
        raw = f"{name}: ham, probability=0.500000, version=1\n{name}: win\n\nb".encode()
        assert raw == remove_marks(raw)


def test_a_message_with_line_ends_changed_later_is_the_same():
    out = passed(PLAIN_MAIL, ALL_MARKS[2])
    assert tokens(PLAIN_MAIL) == tokens(out.replace(b"\n", b"\r\n"))
    assert tokens(PLAIN_MAIL) == tokens(out.replace(b"\n\n", b"\nX-Status: R\n\n", 1))


# Values


def test_any_class_makes_a_valid_header():
    classes = {
        "spam": "spam",
        "not spam": "not spam",
        "größe": "gr%C3%B6%C3%9Fe",
        "a, b": "a%2C b",
        "50%": "50%25",
        "a\r\nX-Forged: b": "a%0D%0AX-Forged: b",
        "\ud800": "?",
        " ": "%20",
        "\x7f\0": "%7F%00",
    }
    for name, wanted in classes.items():
        assert verdict_value(name, 0.5).startswith(f"{wanted}, probability=0.500000, version=")
    assert len(verdict_value("ä" * 10_000, 1)) < 300


def test_reason_and_evidence_are_as_promised():
    found = verdict_value("unsure", 0.0006, "too few known words")
    assert found.startswith("unsure, probability=0.000600, reason=too-few-known-words, version=")
    found = evidence_value("X-Nbspam", [("free", 2.314), ("meeting", -1.2)])
    assert found == '"free" +2.31, "meeting" -1.20'
    assert evidence_value("X-Nbspam", []) == "none"


@given(st.lists(st.tuples(st.text(max_size=90), st.floats(-99, 99))), st.integers(1, 60))
def test_evidence_cannot_leave_its_header(words, length):
    name = "X" * length
    message = add_fields(
        b"To: a\n\nb", VerdictHeader(name, VERDICT, evidence=evidence_value(name, words))
    )
    header, _, body = message.partition(b"\n\n")
    assert body == b"b"
    first, *folded = header.decode("ascii").split("\n")[1:-1]
    assert first.startswith(f"{name}-Evidence:")
    assert all(re.fullmatch(' "[ -~]+', line) for line in folded)
    assert max(map(len, [first, *folded])) < 78
    assert len(re.findall(r'(?:^|, ?)\s*"', "".join([first.partition(":")[2], *folded]))) >= bool(
        words
    )


HEADERLESS = st.one_of(
    st.binary(max_size=200),
    st.builds(
        lambda before, text, encoding: before + text.encode(encoding, "replace"),
        st.sampled_from(
            [b"", b"\n", b"\r\n", b"\n\n", b"\xff\xfe", b"\n\xff\xfe", b"\xef\xbb\xbf", b"\x00"]
        ),
        st.text(max_size=80),
        st.sampled_from(["utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"]),
    ),
)


@given(HEADERLESS, st.sampled_from(["X-Nbspam", "X-Mine"]))
def test_a_message_is_the_same_message_with_its_marks_and_without(raw, name):
    """Whatever it is: judged again, it must get the score that it had."""
    marks = VerdictHeader(name, verdict_value("ham", 0.25))
    once = add_fields(remove_own_fields(raw, name), marks)
    expected = parse(raw, (name, MARK))
    assert parse(once, (name, MARK)) == expected
    assert parse(add_fields(remove_own_fields(once, name), marks), (name, MARK)) == expected


def test_many_verdicts_and_headers_take_no_time():
    raw = b"".join(b"X-%d: a, probability=0.500000, version=1\n" % i for i in range(100_000))
    assert len(remove_marks(raw + b"\nb")) < len(raw)
    block = b"".join(b"X-%d: y\n" % i for i in range(10_000))
    assert block + LINE + b"\n\nbody" == passed(block + b"\nbody")
