import pytest
from one_case import each

from nbspam.errors import SourceError
from nbspam.reading.pairs import pair_messages
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips

MAIL = b"Subject: hello\n\nthe body\n"


def test_text_and_mail():
    raws = list(pair_messages(iter([("Spam", "win now"), ["ham", MAIL]]), Skips(strict=True)))
    assert raws == [RawMessage("pair:0", "spam", "win now"), RawMessage("pair:1", "ham", MAIL)]
    assert raws[1].message().header("subject") == "hello"


def test_no_pairs():
    assert list(pair_messages([], Skips())) == []


def test_pair_without_a_label_is_skipped_and_named():
    skips = Skips()
    raws = list(pair_messages([("\x00 ", "one"), ("ham", "two")], skips))
    assert raws == [RawMessage("pair:1", "ham", "two")]
    assert skips.named == ["pair:0: the label has no printable character"]


@each("pair", ["ab", b"ab", ("ham",), ("ham", "x", "y"), None, 7])
def test_what_is_not_a_pair_is_an_error(pair):
    with pytest.raises(
        SourceError, match=r"^pair:1: is not a pair; give \(label, text or bytes\)$"
    ):
        list(pair_messages([("ham", "x"), pair], Skips()))


@each("pair, types", [((1, "x"), "int and str"), (("ham", None), "str and NoneType")])
def test_pair_of_other_types_is_an_error(pair, types):
    with pytest.raises(
        SourceError, match=rf"^pair:0: is a pair of {types}; give a label, and the message"
    ):
        list(pair_messages([pair], Skips()))
