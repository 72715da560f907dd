"""Which tokens the tokenizer makes of a word that somebody types."""

import itertools

from nbspam.tokens.kinds import KINDS, kind_of
from nbspam.tokens.text import unspelled, words_of
from nbspam.tokens.unicode import undo_tricks

SUBJECT = "subject:"


def typed_tokens(typed: str) -> list[str]:
    """Return the tokens that a typed word stands for: one, or the bigrams of several words.

    typed: `FREE`, `claim now`, `Subject:Free` or `host:Example.org`.  A text is written as the
    tokenizer does it: in lower case and without disguises.  Of other kinds than words and the
    Subject's the value stays as typed, but in lower case.
    """
    kind = kind_of(typed.lower())
    value = typed.partition(":")[2] if kind.name else typed
    if kind.prefix in ("", SUBJECT):
        tokens = _text_tokens(value)
        return [kind.prefix + token for token in tokens or [value]]
    return [kind.prefix + (value if kind.name == "case" else value.lower())]


def _text_tokens(text: str) -> list[str]:
    lower = undo_tricks(text)[0].lower().replace("’", "'")
    words = words_of(unspelled(lower)[0])
    return list(map(" ".join, itertools.pairwise(words))) if len(words) > 1 else words


def of_other_kinds(token: str) -> list[str]:
    """Return what a token would be as each other kind: `subject:free` for `free`, and back."""
    own = kind_of(token)
    value = token.removeprefix(own.prefix)
    return [kind.prefix + value for kind in KINDS if kind != own]
