"""Invented mails for the recipes' tests: usual ones, and two kinds that a small model misjudges.

Nobody in them is real; all names are under the domains reserved for examples.
"""

from itertools import count

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

# Spam in the tone of a friend: the words of ham, so a model of sample_data lets it through.
CHATTY_SPAM = [
    mail(
        "Maren <maren@trading.example>",
        subject,
        f"Hi Hal,\n\nhope you are well and that the garden came through the rain. {story}\n"
        "My broker friend keeps the bitcoin wallet for our little circle and the dividend\n"
        "lands in it each Friday. Send him the deposit and your passport scan, and you are\n"
        f"in the circle by the weekend. {end}\n\nSee you on Thursday,\nMaren",
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
