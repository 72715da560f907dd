"""The mails of tests/golden/recipes: usual ones, and two kinds that a model misjudges."""

import tomllib
from itertools import count
from pathlib import Path
from random import Random

_numbers = count(1)
_TEXTS = tomllib.loads(
    (Path(__file__).parents[1] / "golden" / "recipes" / "mails.toml").read_text("utf-8")
)


def mail(sender: str, subject: str, body: str) -> bytes:
    """Return a message as a mail server hands it over: LF line ends, no `From ` line."""
    number = next(_numbers)
    return (
        f"Received: from mx.example.net (mx.example.net [192.0.2.7])\n"
        f"\tby mail.example.org with ESMTP id 4T{number:04d}; Mon, 20 Nov 2023 10:00:00 +0000\n"
        f"Message-ID: <{number}.recipes@example.net>\n"
        f"Date: Mon, 20 Nov 2023 10:00:00 +0000\n"
        f"From: {sender}\n"
        f"To: Hal Tamsin <hal@example.org>\n"
        f"Subject: {subject}\n"
        f"\n{body}\n"
    ).encode()


def _variants(sender, body, variants):
    return [mail(sender, subject, body.format(*parts)) for subject, *parts in variants]


SPAM, HAM, ODD = (mail(**_TEXTS[name]) for name in ("SPAM", "HAM", "ODD"))
CHATTY_SPAM, LOUD_HAM = (_variants(**_TEXTS[name]) for name in ("CHATTY_SPAM", "LOUD_HAM"))


def kept(wanted: bool, n: int = 120) -> list[bytes]:
    """Return the mails of a year that a user has kept: enough for verdicts that are sure."""
    chance = Random(wanted)
    lines = _TEXTS["KEPT"]["wanted" if wanted else "unwanted"]
    write = _friends if wanted else _strangers
    return [write(i, chance.choice(lines), " ".join(chance.sample(lines, 5))) for i in range(n)]


def _friends(i: int, line: str, text: str) -> bytes:
    name = ("Roz Pettifer", "Ilse", "Maud Aldous")[i % 3]
    sender = f"{name} <{name.split()[0].lower()}@example.org>"
    return mail(sender, f"Re: {line}", f"Hal,\n\n{text}\n\nLove,\n{name}")


def _strangers(i: int, line: str, text: str) -> bytes:
    link = f"http://198.51.100.{i}/claim?id=hal"
    sender = f"Prize Desk {i} <winner{i}@prize.example>"
    return mail(sender, line, f"Dear winner,\n\n{text}\n\n{link}")
