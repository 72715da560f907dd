"""Messages with tokens of every channel, and models learned from them."""

import random

from hypothesis import strategies as st
from small_models import labelled_tokens

TEXTS = ["a", "b", "c", "d", "e", "f"]
FIELDS = ["from:a", "to:b"]
HEADERS = ["received:a", "received:b", "header:c"]
OPENINGS = ["open:a", "open:b", "open:!,"]
HOSTS = ["by:mx", "by:mail", "by:-"]
TOKENS = (*TEXTS, *FIELDS, *HEADERS, *OPENINGS, *HOSTS)
EVERY_CHANNEL = st.sampled_from(TOKENS)


def labelled_mails(classes=None, **bounds):
    """Draw a list of (label, tokens), the tokens of any channel."""
    return labelled_tokens(tokens=EVERY_CHANNEL, classes=classes, **bounds)


def many_mails(n=60, seed=0, classes=("ham", "spam"), hosts="one", longest=40):
    """Return n mails, each with tokens of every channel and one collecting host.

    hosts: "one" took all mails in, "own": each class has one of its own, "mixed": some of both.
    """
    chance = random.Random(seed)
    mails = []
    for i in range(n):
        k = i % len(classes)
        host = {
            "one": "mx",
            "own": classes[k],
            "mixed": classes[k] if chance.random() < 0.5 else "mx",
        }[hosts]
        tokens = {f"by:{host}"}
        for prefix in ("", "", "from:", "received:", "open:"):
            for _ in range(chance.randint(1, longest)):
                # Some tokens of a class of its own, most of all classes, many of one mail alone.
                own = chance.random() < 0.2
                word = f"{classes[k]}{chance.randrange(9)}" if own else f"w{chance.randrange(150)}"
                tokens.add(prefix + word)
        mails.append((classes[k], tokens))
    return mails
