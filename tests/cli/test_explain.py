"""`nbspam explain`: sums, widths and colours, pages, and the table of words."""

import re

import pytest
from harmless_pages import assert_harmless
from one_case import each
from running import ROOT, on_a_terminal
from small_models import with_learned

from nbspam.cli.explain import _strongest, table_lines, words_and_sums
from nbspam.display.lines import cell_width, class_heads
from nbspam.learning.settings import TrainingSettings, empty_metadata
from nbspam.scoring.explanation import Explanation, Word
from nbspam.scoring.verdict import Score


def sum_shown(text):
    """Return the sum that the text shows, and what its last column adds up to."""
    column = [
        float(match[1])
        for line in text.splitlines()
        if (match := re.search(r"([+-]\d+\.\d+)(?:  [+-]*)?$", line)) and "sum" not in line
    ]
    return float(re.search(r"^sum.*?([+-]\d+\.\d+)", text, re.MULTILINE)[1]), sum(column)


@each(
    "options, traits",
    [
        ("", 7),
        ("--prior 0.1", 7),
        ("--scoring sum", 0),
        ("--scoring sum --prior .9", 0),
        ("--traits kernel --scoring sum", 10),
        ("--traits gaussian", 7),
    ],
)
def test_the_sum_printed_is_the_log_odds(nbspam, as_json, table, make_model, options, traits):
    path = make_model(table, "--replace", *options.split())
    for text in (b"win a free prize now for lunch", b"call 0900 555 123 NOW", b"xylophone", b""):
        found = as_json("explain", "-m", path, stdin=text)
        names = [word["token"] for word in found["words"] if word["token"].startswith("trait:")]
        assert len(names) == traits
        assert text[:4] != b"call" or not traits or "trait:digit-run=4" in names
        total, added = sum_shown(nbspam("explain", "-m", path, "--top", "1000", stdin=text).out)
        assert total == pytest.approx(found["log_odds"], abs=0.0006)
        assert added == pytest.approx(total, abs=0.03)
        sum_of_all = sum(w["share"] for w in found["words"]) + sum(found["constants"].values())
        assert sum_of_all == pytest.approx(found["log_odds"], abs=1e-9 * (len(found["words"]) + 9))


@each("side", [1, -1])
@each("of_trigrams, is_most", [(0.9, False), (1.0, False), (1.1, True)])
def test_it_is_said_when_trigrams_contribute_most(side, of_trigrams, is_most):
    shares = {"free": 1.0, "tri:fre": of_trigrams}
    words = tuple(Word(token, 1.0, (1, 1), side * share) for token, share in shares.items())
    found = Explanation(Score(0.0, 0.5, ()), "spam", "ham", {}, words, 0, None, None)
    said = _strongest(found, side)
    assert ("its character trigrams contribute most of it" in said) == is_most


def test_pieces_of_the_opening_are_added_up_in_a_line_of_their_own():
    shares = {"free": 1.0, "open:dear": 0.5, "open:!,": -0.2, "tri:fre": 0.1}
    words = tuple(Word(token, 1.0, (1, 1), share) for token, share in shares.items())
    found = Explanation(Score(0.0, 0.5, ()), "spam", "ham", {}, words, 0, None, None)
    shown, sums = words_and_sums(found, 20, fragments=False)
    assert [word.token for word in shown] == ["free"]
    assert dict(sums) == {
        "opening: 2 pieces (--fragments shows them)": pytest.approx(0.3),
        "1 character trigram (--fragments shows them)": 0.1,
        "sum (log-odds)": pytest.approx(1.4),
    }
    shown, sums = words_and_sums(found, 20, fragments=True)
    assert [word.token for word in shown] == list(shares)
    assert [name for name, _ in sums] == ["sum (log-odds)"]


# Colours and widths


def test_colours_are_of_a_terminal_alone(model, tmp_path):
    (tmp_path / "m.txt").write_text("win a free prize now")
    arguments = ("explain", "-m", model, tmp_path / "m.txt")
    coloured = on_a_terminal(*arguments, COLUMNS="80")
    assert ("\x1b[31m" in coloured, "[+" in coloured) == (True, False)
    plain = on_a_terminal(*arguments, COLUMNS="80", NO_COLOR="1")
    assert ("\x1b" in plain, "prize+]" in plain) == (False, True)
    assert "\x1b" in on_a_terminal("explain", "-m", model, "--words")
    assert "\x1b" not in on_a_terminal("explain", "-m", model, "--words", NO_COLOR="1")


# A mail that would command a terminal or a page

HOSTILE = (
    b"Subject: =?utf-8?q?free_prize_=3Cscript=3Ealert=281=29=3C/script=3E_=E2=80=AEgpj?=\n"
    b'From: "\x1b[31m<img src=x onerror=alert(1)>" <win@shop.example>\n'
    b"Content-Type: text/plain; charset=utf-8\n\n"
    b"\x1b[2J\x1b]0;owned\x07\x9b31m Claim your free prize\xe2\x80\xae \xe5\x85\x8d\xe8\xb2\xbb\n"
    b"</div><script src=//evil.example/x.js></script> see you at lunch, today\n"
)


@each("form", ["text", "html", "json"])
def test_a_hostile_mail_commands_nothing(nbspam, model, form):
    found = nbspam("explain", "-m", model, "--format", form, stdin=HOSTILE)
    assert (found.code, found.err) == (0, "")
    assert all(line.isprintable() for line in found.out.splitlines())
    if form == "html":
        assert "<script src=//evil.example/x.js>" in assert_harmless(found.out).text


# The table of words

GOLDEN = ROOT / "tests" / "golden" / "display"
SUMS = [
    ("1,234 more words (--top shows them)", 0.125),
    ("calibration: any message", -1.5),
    ("sum: the log-odds", 2.0),
]


def metadata(*classes, messages=(2500, 500)):
    names = classes or ("ham", "spam")
    made = empty_metadata(names, "spam" if "spam" in names else None, TrainingSettings())
    return with_learned(made, messages=messages)


def rows(n_classes=2):
    counts = (3, 1112, 7, 8, 9)[:n_classes]
    return [
        Word("free", 4.2, counts, 0.9),
        Word("免費 🚀", 3.1, counts, 0.4),
        Word("cafe\u0301", -1.0, counts, -0.25),
        Word("host:" + "a-very-long-name." * 4 + "example", 2.0, counts, 0.1),
    ]


def plain(lines):
    return [
        line.replace("\x1b[31m", "").replace("\x1b[32m", "").replace("\x1b[0m", "")
        for line in lines
    ]


@each("width", [80, 120])
def test_the_golden_tables(width):
    lines = plain(table_lines(rows(), SUMS, class_heads(metadata()), width))
    expected = (GOLDEN / f"words-{width}.txt").read_text(encoding="utf-8")
    assert "".join(f"{line.rstrip()}\n" for line in lines) == expected


@each("width", [40, 60, 80, 120, 200])
@each("n", [2, 3, 5])
def test_no_line_is_wider_than_the_terminal(width, n):
    names = ("ham", "spam", "a-class-with-a-very-long-name", "免費送免費送免費送", "x")[:n]
    lines = plain(
        table_lines(rows(n), SUMS, class_heads(metadata(*names, messages=(2500,) * n)), width)
    )
    assert max(map(cell_width, lines)) <= width
