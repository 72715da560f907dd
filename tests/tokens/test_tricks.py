"""The tricks of `benchmarks/tricks.py`: all is read, and hidden ham does not count for ham."""

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
