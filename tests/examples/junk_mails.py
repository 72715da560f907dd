"""Invented mails, as many as are wanted, each another; the addresses are those for examples.

Their sentences are in tests/golden/recipes/mails.toml.
"""

import tomllib
from itertools import count
from pathlib import Path
from random import Random

TEXTS = tomllib.loads(
    (Path(__file__).parents[1] / "golden" / "recipes" / "mails.toml").read_text("utf-8")
)
_UNWANTED = TEXTS["KEPT"]["unwanted"]
_KINDS = {
    "ham": ("Roz Pettifer <roz@example.org>", TEXTS["KEPT"]["wanted"][:10]),
    "spam": ("Prize Desk <winner@prize.example>", [*_UNWANTED[:9], _UNWANTED[10]]),
    "campaign": ("Maud Aldous <maud@zeppelin.example>", TEXTS["CAMPAIGN"]["lines"]),
}
_numbers = count(1)


def mail(sender, subject, body, size=0):
    """Return a message as a mail server keeps it, with LF and without a `From ` line."""
    number = next(_numbers)
    padding = "".join(f"{i:09d}\n" for i in range(size // 10))
    return (
        f"Received: from mx.example.net (mx.example.net [192.0.2.7])\n"
        f"\tby mail.example.org with ESMTP id 4T{number:06d}; Mon, 20 Nov 2023 10:00:00 +0000\n"
        f"Message-ID: <{number}.imap@example.net>\n"
        f"Date: Mon, 20 Nov 2023 10:00:00 +0000\n"
        f"From: {sender}\n"
        f"To: Hal Tamsin <hal@example.org>\n"
        f"Subject: {subject}\n"
        f"\n{body}\n{padding}"
    ).encode()


def many(kind, n, seed=0):
    """Return n mails of a kind: ham, spam, or campaign."""
    chance, (sender, lines) = Random(f"{kind}{seed}"), _KINDS[kind]
    return [mail(sender, chance.choice(lines), " ".join(chance.sample(lines, 4))) for _ in range(n)]
