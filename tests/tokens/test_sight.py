"""Which tokens of a message count for spam only, since a reader may not see them."""

from one_case import each

from nbspam.reading.message import Message
from nbspam.reading.mime import Part
from nbspam.tokens.sight import STUB_WORDS
from nbspam.tokens.tokenized import LIMITS, TOKENS_LIMIT, message_tokens

LETTERS = "bcdfghklmnprstvw"  # for the digits of a number in base 16


def words(name, n):
    """Return so many different words that begin with a name."""
    endings = ("".join(LETTERS[int(digit, 16)] for digit in f"{i:x}") for i in range(n))
    return " ".join(f"{name}{ending}" for ending in endings)


def in_sight(*parts):
    """Return the tokens of parts, and those that may not be in plain sight."""
    doubtful: set[str] = set()
    tokens = message_tokens(Message([("from", "a")], list(parts)), possibly_hidden=doubtful)
    assert doubtful <= tokens
    return tokens, doubtful


def plain(text, version=None, **fields):
    return Part("text/plain", text, version=version and (0, version), **fields)


def page(text, version=None, **fields):
    return Part("text/html", f"<p>{text}", True, version=version and (0, version), **fields)


SHARED, MANY = words("shared", 60), words("own", STUB_WORDS + 5)
FEW, HAM = words("few", STUB_WORDS - 5), words("ham", 50)
IMAGE = Part("image/png", "", version=(0, 9))
CALENDAR = Part("text/calendar", HAM, is_attached=True, version=(0, 9))


@each(
    "parts, seen, doubtful",
    [
        # Whatever the order, what not all versions have.
        ([plain(f"{SHARED} {MANY}", 1), page(f"{SHARED} {HAM}", 2)], SHARED, f"{MANY} {HAM}"),
        ([page(f"{SHARED} {MANY}", 1), plain(f"{SHARED} {HAM}", 2)], SHARED, f"{MANY} {HAM}"),
        ([page(MANY, 1), page(HAM, 2)], "", f"{MANY} {HAM}"),
        ([plain(MANY, 1), plain(HAM, 2)], "", f"{MANY} {HAM}"),
        # A stub and a text that is cut off say nothing of their own.
        ([plain(FEW, 1), page(HAM, 2)], HAM, FEW),
        ([plain(SHARED, 1), page(f"{SHARED} {HAM}", 2)], f"{SHARED} {HAM}", ""),
        ([page(FEW, 1), plain(HAM, 2)], "", f"{FEW} {HAM}"),
        ([page(FEW, 1), page(HAM, 2)], "", f"{FEW} {HAM}"),
        ([plain(" \\n", 1), page(HAM, 2)], HAM, ""),
        ([page(HAM, 1), plain(" ", 2)], HAM, ""),
        # A picture may be shown in place of the text; a calendar is no version of it.
        ([plain(HAM, 1), IMAGE], "", HAM),
        ([plain(SHARED, 1), page(SHARED, 2), CALENDAR], SHARED, HAM),
        # A version of several parts; one with a part that may not be seen.
        ([plain(f"{MANY} {HAM}", 1), page(MANY, 2), page(HAM, 2)], f"{MANY} {HAM}", ""),
        ([plain(HAM, 1), page(MANY, 2, is_possibly_hidden=True)], "", f"{MANY} {HAM}"),
        # No alternatives.
        ([plain(MANY), plain(HAM, is_possibly_hidden=True)], MANY, HAM),
        ([plain(MANY), plain(HAM, is_attached=True)], MANY, HAM),
        ([plain(HAM), plain(HAM, is_attached=True)], HAM, ""),
    ],
)
def test_words_that_a_reader_may_not_see_are_in_doubt(parts, seen, doubtful):
    tokens, in_doubt = in_sight(*parts)
    assert tokens >= {*seen.split(), *doubtful.split()}
    assert in_doubt.isdisjoint(seen.split())
    assert in_doubt >= set(doubtful.split())


def test_the_opening_of_versions_that_differ_is_in_doubt():
    tokens, in_doubt = in_sight(plain(f"hello {MANY}", 1), page(f"buy now {HAM}", 2))
    assert {"open:hello", "open:buy"} <= in_doubt
    tokens, in_doubt = in_sight(plain(f"hello {FEW}", 1), page(f"buy now {HAM}", 2))
    assert "open:buy" in tokens - in_doubt
    assert "open:hello" not in tokens


def test_links_tricks_and_names_of_parts_in_doubt_are_in_doubt():
    link = '<a href="http://a.example/b">c</a>'
    _, in_doubt = in_sight(
        plain("hi"), page(link, is_possibly_hidden=True, filename="minutes.html")
    )
    assert {"host:a.example", "attachment:minutes", "mime:text/html"} <= in_doubt
    # The name of an attachment is shown.
    tokens, in_doubt = in_sight(plain("hi"), page(link, is_attached=True, filename="minutes.html"))
    assert "host:a.example" in in_doubt
    assert {"attachment:minutes", "mime:text/html"} <= tokens - in_doubt


def test_attachments_give_way_to_other_tokens_and_exceed_no_limit():
    many = words("a", TOKENS_LIMIT)
    tokens, in_doubt = in_sight(plain(SHARED), plain(many, is_attached=True), plain(HAM))
    assert LIMITS.isdisjoint(tokens)
    assert len(tokens) == TOKENS_LIMIT
    assert {*SHARED.split(), *HAM.split()} <= tokens - in_doubt
    tokens, in_doubt = in_sight(plain(SHARED), plain(many, is_possibly_hidden=True), plain(HAM))
    assert "limit:tokens" in tokens
    assert len(tokens) == TOKENS_LIMIT + 1
