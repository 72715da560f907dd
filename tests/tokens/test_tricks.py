"""The tricks of `benchmarks/tricks.py`: all is read, and hidden ham does not count for ham."""

import base64
import random

import pytest
from one_case import each
from tricks import ENCODINGS, HIDDEN, LARGE, NONE, PARTS, PLAIN_HTML, PLAIN_TEXT, SHOWN, WORDS, Spam

from nbspam.reading.message import parse
from nbspam.tokens.tokenized import message_tokens

HEAD = "Received: from a by b\nFrom: someone@a.example\nSubject: hello\n"
SPAM = Spam(
    "Congratulations winner, collect your million pounds prize today before midnight",
    "<p>Congratulations <b>winner</b>, collect your million pounds prize<br>today before midnight",
)
WORDS_OF_SPAM = set("congratulations winner collect your million pounds prize today".split())
HAM = [f"committee{i} minutes{i} agenda{i} attached{i} regards{i}" for i in range(500)]
# Spellings that are other words to us; what they cost is measured (docs/research/benchmarks.md).
RESPELLED = {"accents", "two letters swapped", "a letter doubled", "s p a c e d", "leet"}
RESPELLED |= {"<td> within words"}  # a cell outside of a table does not part a word


def tokens(trick, texts=None, hidden=None):
    body = trick(SPAM, HAM, random.Random(1))
    return message_tokens(parse((HEAD + body.fields + "\n").encode() + body.body), texts, hidden)


READ = {**NONE, **ENCODINGS, **PARTS, **LARGE, **WORDS, **SHOWN}


@each("name", sorted(set(READ) - RESPELLED))
def test_every_word_that_a_reader_sees_is_read(name):
    assert tokens(READ[name]) >= WORDS_OF_SPAM


def test_the_plain_pages_are_in_plain_sight():
    for name in (PLAIN_HTML, PLAIN_TEXT):
        hidden = set()
        tokens(SHOWN[name], hidden=hidden)
        assert hidden == set()


@each("name", sorted(HIDDEN))
def test_hidden_words_count_for_spam_only(name):
    hidden = set()
    found = tokens(HIDDEN[name], hidden=hidden)
    assert found - hidden >= WORDS_OF_SPAM
    assert not [token for token in found - hidden if token.startswith(("committee", "agenda"))]


@pytest.mark.long
@each("name", sorted(LARGE))
def test_much_that_shows_nothing_does_not_crowd_out_the_text(name):
    assert "midnight" in tokens(LARGE[name])  # the last word of the spam


# What programs disagree about is read, and counts for spam only.
_MIXED = "Content-Type: multipart/mixed; boundary=b\n\n"
_PARTS = _MIXED + "{}--b\nContent-Type: text/plain\n\nagenda\n--b--\n{}"
_OTHER = "--c\n\nwinner prize\n--c--\n"
_BASE64 = base64.b64encode(b"winner prize").decode()
_ENCODING = "Content-Transfer-Encoding: "
_ALTERNATING = "wInNeR pRiZe"
_RANDOM = base64.b64encode(bytes(range(120))).decode()


@each(
    "mail",
    [
        _PARTS.format(_OTHER, ""),
        _PARTS.format("", _OTHER),
        _PARTS.format("", "--b\n\nwinner prize\n"),
        "Content-Type: text/plain\n\n<html><winner x><!-- prize -->agenda",
        f"Content-Type: text/plain\n\n{_RANDOM}\n{_ALTERNATING}\n",
        "Subject: agenda\n\nx\n".replace("agenda", "winner prize\nSubject: agenda"),
        _PARTS.format("", "").replace(
            "text/plain\n\n", "application/x-y; name=a.EML\n\nSubject: winner\n\nprize "
        ),
        _PARTS.format("", "").replace(
            "text/plain\n\n", "application/x-y; name=a.txt\n\nwinner prize "
        ),
        _PARTS.format("", "").replace(
            "text/plain\n\n", "image/svg+xml; name=a\n\n<svg>winner <b>prize "
        ),
        _PARTS.format("", "").replace(
            "text/plain\n\n", "message/global\n\nSubject: winner\n\nprize "
        ),
    ],
)
def test_what_programs_disagree_about_counts_for_spam_only(mail):
    hidden = set()
    found = message_tokens(parse(f"From: a@a.example\n{mail}".encode()), None, hidden)
    for word in ("winner", "prize"):
        assert {word, f"subject:{word}"} & hidden & found


@each(
    "mail",
    [
        f"{_ENCODING}(quoted-printable) base64\n\n{_BASE64}",
        f"{_ENCODING}quoted-printable\n{_ENCODING}base64\n\n{_BASE64}",
        'Content-Type: "multipart/mixed"; boundary=b\n\n--b\nContent-Transfer-Encoding: base64\n\n'
        + _BASE64,
        "Content-Type: txt/plain\n\nwinner prize",
        "Content-Type: application/octet-stream\n\nwinner prize",
        "Content-Type: text/calendar\n\nDESCRIPTION:a\\nwinner\\Nprize",
        "Content-Type: text/html\n\n" + "&nbsp;".join("winner") + " " + "&hairsp;".join("prize"),
    ],
)
def test_words_are_read_whatever_the_header_claims(mail):
    found = message_tokens(parse(f"From: a@a.example\n{mail}\n".encode()))
    assert {"winner", "prize"} <= found
