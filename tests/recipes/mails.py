"""Invented mails for the recipes' tests: usual ones, and two kinds that a model misjudges.

Nobody in them is real; all names are under the domains reserved for examples.
"""

from itertools import count
from random import Random

_numbers = count(1)


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


SPAM = mail(
    "Prize Desk <winner@prize.example>",
    "You have WON a cash prize - claim within 24 hours",
    "Dear winner,\n\nyour e-mail address was selected in our online lottery. You have won\n"
    "$850,000.00 in cash! Click here to claim your free prize today:\n\n"
    "http://198.51.100.77/claim?id=hal\n\n"
    "No purchase necessary. Order your pills online, cheap viagra, 100% guaranteed.\n"
    "Act now, this limited offer expires within 24 hours!!!",
)

HAM = mail(
    "Roz Pettifer <roz@example.org>",
    "Re: the goat and the fence",
    "Hal,\n\nthe fence is mended and the goat has looked at it with contempt. Mr Aldous\n"
    "brought the mallet back. When are you coming? The small room is free until the\n"
    "10th. Bring boots, and the minutes of the last committee meeting if you have them.\n\n"
    "Love,\nRoz",
)

# What mail software must hand through unharmed: 8-bit, a `From ` line in the body, odd spacing.
ODD = mail(
    "Ilse <ilse@example.org>",
    "Fotos vom Fest",
    "Hallo Hal,\n\nFrom the garden, k\u00fcnstlich beleuchtet: \u201eschau\u201c  \t \n"
    ".\n..\n>From here on it rained.\n\n\n-- \nIlse",
)

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
    "Lunch on Thursday, then, with the twins.",
    "The kitchen is painted at last.",
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
    "THANK YOU for your order, dear customer!",
    "To unsubscribe click here.",
    "Total $48.00, claim it before it expires!",
]


def kept(wanted: bool, n: int = 120) -> list[bytes]:
    """Return the mails of a year that a user has kept: enough for verdicts that are sure."""
    chance = Random(wanted)
    lines = _WANTED if wanted else _UNWANTED
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


# Spam in the tone of a friend: the words of ham, so a model of the kept mail lets it through.
CHATTY_SPAM = [
    mail(
        "Maren <maren@trading.example>",
        subject,
        f"Hi Hal,\n\nhope you are well and that the garden came through the rain. {story}\n"
        "My broker friend keeps the bitcoin wallet for our little circle and the dividend\n"
        "lands in it each Friday. Send him the deposit and your passport scan, and you are\n"
        "in the circle by the weekend. It has doubled twice since the spring, and nobody with a\n"
        f"deposit there will ever have to ask a bank for anything. {end}\n\n"
        "See you on Thursday,\nMaren",
    )
    for subject, story, end in [
        (
            "Re: the weekend",
            "I told you over lunch how I paid for the kitchen.",
            "Ask Roz if you like.",
        ),
        (
            "lunch, and that thing",
            "The meeting was dull but the coffee afterwards was not.",
            "Bring the notes.",
        ),
        (
            "the minutes from Tuesday",
            "Thank you for the minutes, I read them on the train.",
            "I have a spare place.",
        ),
        (
            "are you coming on Thursday?",
            "We walked along the harbour and talked about money.",
            "It took me a fortnight.",
        ),
        (
            "the room upstairs",
            "The small room is painted at last and I owe no one for it.",
            "The window is open until Sunday.",
        ),
        (
            "book club",
            "I have read the chapter, and I have news besides.",
            "The twins are in it too.",
        ),
    ]
]

# Wanted mail in the tone of spam: what Hal bought, with prices, links and thanks in capitals.
LOUD_HAM = [
    mail(
        "Seedling Market <orders@seedlings.example>",
        subject,
        f"Dear customer,\n\nTHANK YOU for your order! {line}\n\n"
        "CLICK HERE TO TRACK YOUR PARCEL NOW: http://198.51.100.20/track?order=4411\n\n"
        f"Total ${price}, shipping FREE, you saved 20% today!!!\n\n"
        "LIMITED OFFER: order within 24 hours and claim a FREE packet of seed worth $5.\n"
        "100% satisfaction guaranteed or your money back. Act now, click here to order.\n\n"
        "To unsubscribe click here.",
    )
    for subject, line, price in [
        (
            "Your order is confirmed - FREE shipping!",
            "Twelve hornbeam saplings are on their way to you.",
            "48.00",
        ),
        (
            "Great news: your parcel ships today!",
            "Your quince tree left our nursery this morning.",
            "31.50",
        ),
        (
            "Order 4413: 20% off applied, thank you!",
            "Two bags of compost and a trowel were sent to you.",
            "27.90",
        ),
        (
            "Your order is on its way - track it now!",
            "Six hazel saplings were handed to the carrier.",
            "22.00",
        ),
    ]
]
