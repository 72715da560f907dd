"""The mails of tests/golden/recipes: usual ones, and two kinds that a model misjudges."""

from random import Random

from junk_mails import TEXTS, mail


def _variants(sender, body, variants):
    return [mail(sender, subject, body.format(*parts)) for subject, *parts in variants]


SPAM, HAM, ODD = (mail(**TEXTS[name]) for name in ("SPAM", "HAM", "ODD"))
CHATTY_SPAM, LOUD_HAM = (_variants(**TEXTS[name]) for name in ("CHATTY_SPAM", "LOUD_HAM"))


def kept(wanted: bool, n: int = 120) -> list[bytes]:
    """Return the mails of a year that a user has kept: enough for verdicts that are sure."""
    chance, mails = Random(wanted), []
    lines = TEXTS["KEPT"]["wanted" if wanted else "unwanted"]
    for i in range(n):
        line, text = chance.choice(lines), " ".join(chance.sample(lines, 5))
        name = ("Roz Pettifer", "Ilse", "Maud Aldous")[i % 3]
        if wanted:
            sender = f"{name} <{name.split()[0].lower()}@example.org>"
            mails.append(mail(sender, f"Re: {line}", f"Hal,\n\n{text}\n\nLove,\n{name}"))
        else:
            sender = f"Prize Desk {i} <winner{i}@prize.example>"
            link = f"http://198.51.100.{i}/claim?id=hal"
            mails.append(mail(sender, line, f"Dear winner,\n\n{text}\n\n{link}"))
    return mails
