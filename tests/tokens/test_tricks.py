"""The tricks of `benchmarks/tricks.py`: what a reader sees is read, what he does not see is not."""

import random

import pytest
from one_case import each
from tricks import ENCODINGS, HIDDEN, NONE, STRUCTURES, WORDS, Spam

from nbspam.reading.message import parse
from nbspam.tokens.text import VisibleText
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


def tokens(trick, texts=None, perhaps=None):
    body = trick(SPAM, HAM, random.Random(1))
    return message_tokens(parse((HEAD + body.fields + "\n").encode() + body.body), texts, perhaps)


SHOWN = {**NONE, **ENCODINGS, **STRUCTURES, **WORDS}
NOT_SHOWN = {"uuencoded in the text"}  # no mail program shows it decoded


@each("name", sorted(set(SHOWN) - RESPELLED - NOT_SHOWN))
def test_what_a_reader_sees_is_read(name):
    assert tokens(SHOWN[name]) >= WORDS_OF_SPAM


@each("name", sorted(HIDDEN))
def test_what_a_reader_does_not_see_is_not_read(name):
    perhaps = set()
    found = tokens(HIDDEN[name], perhaps=perhaps)
    assert found >= WORDS_OF_SPAM
    assert not [token for token in found - perhaps if token.startswith(("committee", "agenda"))]


VALUES = {f"an attribute's value{more}" for more in ("", " with a > in it")}
UNMARKED = VALUES | {"a comment", "an unknown attribute", "<title>", "<select>"}
UNMARKED |= {name for name in HIDDEN if "attach" in name}


@each("name", sorted(set(HIDDEN) - UNMARKED))
def test_hiding_leaves_a_token(name):
    assert [token for token in tokens(HIDDEN[name]) if token.startswith("trick:")]


@pytest.mark.long
@each("name", sorted(name for name in STRUCTURES if "700 KiB" in name))
def test_what_shows_nothing_does_not_count_toward_the_limit_of_text(name):
    texts: list[VisibleText] = []
    tokens(STRUCTURES[name], texts)
    assert "".join(text.text for text in texts).split()[-1] == "midnight"
