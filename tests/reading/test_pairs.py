import re

import pytest
from one_case import each

from nbspam.errors import SourceError
from nbspam.reading.frames import pair_messages
from nbspam.reading.message import RawMessage
from nbspam.reading.source import Skips

MAIL = b"Subject: hello\n\nthe body\n"


def test_text_and_mail():
    pairs = [("Spam", "win now"), ["ham", MAIL], ("\x00 ", "one")]
    skips = Skips()
    raws = list(pair_messages(iter(pairs), skips))
    assert raws == [RawMessage("pair:0", "spam", "win now"), RawMessage("pair:1", "ham", MAIL)]
    assert raws[1].message().header("subject") == "hello"
    assert skips.named == ["pair:2: the label has no printable character"]
    assert list(pair_messages([], Skips())) == []


NO_PAIR = "is not a pair; give (label, text or bytes)"
OTHERS = "; give a label, and the message"


@each(
    "pair, sentence",
    [
        *((pair, NO_PAIR) for pair in ("ab", b"ab", ("ham",), ("ham", "x", "y"), None, 7)),
        ((1, "x"), f"is a pair of int and str{OTHERS}"),
        (("ham", None), f"is a pair of str and NoneType{OTHERS}"),
    ],
)
def test_what_is_not_a_pair_is_an_error(pair, sentence):
    with pytest.raises(SourceError, match=rf"^pair:1: {re.escape(sentence)}"):
        list(pair_messages([("ham", "x"), pair], Skips()))
