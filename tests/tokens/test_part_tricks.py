"""The tricks of `benchmarks/parts.py` on a small model, and honest mail of the same forms."""

import random

import pytest
from one_case import each
from parts import UNSEEN
from tricks import Spam, multipart

import nbspam

FIELDS = "From: {0}@{0}.example\nSubject: {1}\nMessage-ID: <{1}@{0}.example>\nMIME-Version: 1.0\n"
SYLLABLES = "ba de fi go ku la me ni po ru sa te vi zo".split()


def vocabulary(seed, n=300):
    """Return invented words."""
    chance = random.Random(seed)
    return ["".join(chance.choices(SYLLABLES, k=4)) for _ in range(n)]


HAM, SPAM = vocabulary(1), vocabulary(2)
COMMON = vocabulary(3, 100)


def text(own, chance, n=80):
    return " ".join(chance.choice(own if chance.random() < 0.5 else COMMON) for _ in range(n))


def mail(name, own, number):
    body = text(own, random.Random(f"{name}{number}"))
    return (FIELDS.format("list", f"x{number}") + "\n" + body + "\n").encode()


@pytest.fixture(scope="module")
def model():
    examples = [("ham", mail("ham", HAM, i)) for i in range(60)]
    return nbspam.train(examples + [("spam", mail("spam", SPAM, i)) for i in range(60)])


def verdict(model, body):
    head = FIELDS.format("list", "y1").replace("MIME-Version: 1.0\n", "")
    return model.classify((head + body.fields + "\n").encode() + body.body)


LONG = sorted(name for name in UNSEEN if any(sign in name for sign in ("KiB", "MiB", ",000")))


def played(name):
    chance = random.Random(5)
    shown = text(SPAM, chance, 300)
    hams = [text(HAM, chance, 500) for _ in range(50)]
    return UNSEEN[name](Spam(shown, f"<p>{shown}</p>"), hams, chance)


@each("name", sorted(set(UNSEEN) - set(LONG)))
def test_ham_that_a_reader_may_not_see_makes_no_spam_ham(name, model):
    assert verdict(model, played(name)).verdict == "spam"


@pytest.mark.few(2)
@pytest.mark.parametrize("name", LONG)
def test_a_large_mail_is_not_ham_for_what_was_not_read(name, model):
    assert verdict(model, played(name)).verdict != "ham"


def honest():
    """Return honest mails of many parts: a kind of multipart and its parts."""
    chance = random.Random(7)
    said, more = text(HAM, chance), text(HAM, chance)
    plain = f"Content-Type: text/plain\n\n{said}\n".encode()
    page = f"Content-Type: text/html\n\n<p>{said}</p>\n".encode()
    stub = b"Content-Type: text/plain\n\nYour program shows no HTML: http://list.example/view\n"
    calendar = f"Content-Type: text/calendar\n\nBEGIN:VEVENT\nSUMMARY:{more}\nEND:VEVENT\n".encode()
    status = b"Content-Type: message/delivery-status\n\nAction: failed\nStatus: 5.1.1\n"
    message = f"Content-Type: message/rfc822\n\nSubject: in\n\n{more}\n".encode()
    log = b"Content-Disposition: attachment; filename=a.log\n\n" + b"error at line 17\n" * 190_000
    image = b"Content-Type: image/png\nContent-ID: <i>\n\n"
    related = multipart("related", [page, image], "r")
    inner = related.fields.replace("MIME-Version: 1.0\n", "").encode() + b"\n" + related.body
    return {
        "a page and its text": ("alternative", [plain, page]),
        "a page and a stub": ("alternative", [stub, page]),
        "a text cut off": ("alternative", [plain[: len(plain) // 2], page]),
        "a page with pictures": ("alternative", [stub, inner]),
        "an invitation": ("alternative", [plain, page, calendar]),
        "an invitation without a page": ("mixed", [plain, calendar]),
        "a delivery report": ("report", [plain, status, message]),
        "a forwarded mail": ("mixed", [plain, message]),
        "a log file": ("mixed", [plain, log]),
        "a digest": ("mixed", [plain, multipart("digest", [b"\n" + message], "d").body]),
    }


@each("name", sorted(honest()))
def test_honest_mail_of_many_parts_stays_ham(name, model):
    found = verdict(model, multipart(*honest()[name]))
    assert (found.verdict, found.reason) == ("ham", None)


def test_an_honest_mail_too_large_to_read_is_unsure_and_not_spam(model):
    said = text(HAM, random.Random(8))
    found = model.classify(
        (FIELDS.format("list", "z") + "\n" + said + "\n" + said * 6_000).encode()
    )
    assert (found.verdict, found.reason) == ("unsure", "too large to read whole")
    assert found.probability < 0.5
