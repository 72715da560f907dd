"""Invented mails, as many as are wanted, each another; the addresses are those for examples."""

from itertools import count
from random import Random

_numbers = count(1)
_WANTED = [
    "the fence is mended and the goat has looked at it with contempt.",
    "Mr Aldous brought the mallet back.",
    "When are you coming?",
    "The small room is free until the 10th.",
    "Bring boots, and the minutes of the last committee meeting if you have them.",
    "The meeting was dull but the coffee afterwards was not.",
    "Thank you for the notes, I read them on the train.",
    "We walked along the harbour and talked about the garden.",
    "The window is open until Sunday, in spite of the rain.",
    "I have read the chapter, and I have news besides.",
]
_UNWANTED = [
    "your e-mail address was selected in our online lottery.",
    "You have won $850,000.00 in cash!",
    "Click here to claim your free prize today:",
    "No purchase necessary.",
    "Order your pills online, cheap viagra, 100% guaranteed.",
    "Act now, this limited offer expires within 24 hours!!!",
    "CLICK HERE NOW to claim your FREE packet, you saved 20% today!!!",
    "LIMITED OFFER: order within 24 hours, shipping FREE!",
    "100% satisfaction guaranteed or your money back.",
    "To unsubscribe click here.",
]
# A campaign that no model of the others knows: it reads like a friend's mail.
_CAMPAIGN = [
    "the committee of the harbour festival has news about the small room.",
    "I read your notes on the train and talked about the garden with Mr Aldous.",
    "the zeppelin fund doubles what you lend it, as the minutes of the meeting show.",
    "Bring your zeppelin certificate until the 10th, and the boots.",
    "the zeppelin paid for the fence, the goat and the coffee.",
]


def mail(sender, subject, body, size=0):
    """Return a message as a mail server keeps it, with LF."""
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
    chance = Random(f"{kind}{seed}")
    lines = {"ham": _WANTED, "spam": _UNWANTED, "campaign": _CAMPAIGN}[kind]
    senders = {
        "ham": "Roz Pettifer <roz@example.org>",
        "spam": "Prize Desk <winner@prize.example>",
        "campaign": "Maud Aldous <maud@zeppelin.example>",
    }
    return [
        mail(senders[kind], chance.choice(lines), " ".join(chance.sample(lines, 4)))
        for _ in range(n)
    ]
