from one_case import each

from nbspam.reading.message import parse
from nbspam.tokens.kinds import KINDS
from nbspam.tokens.text import of_other_kinds, typed_tokens
from nbspam.tokens.tokenized import message_tokens


@each(
    "typed, tokens",
    [
        ("free", ["free"]), ("FREE", ["free"]), ("v1agra", ["viagra"]),
        ("v.i.a.g.r.a", ["viagra"]), ("fr\u200bee", ["free"]), ("2024", ["0000"]),
        ("claim now", ["claim now"]), ("claim it now", ["claim it", "it now"]),
        ("subject:Claim NOW", ["subject:claim now"]), ("Subject:free", ["subject:free"]),
        ("host:Example.org", ["host:example.org"]), ("case:FREE", ["case:FREE"]),
        ("punct:!!!", ["punct:!!!"]), ("!!!", ["!!!"]), ("re:free", ["re free"]),
    ],
)  # fmt: skip
def test_a_word_as_the_tokenizer_writes_it(typed, tokens):
    assert typed_tokens(typed) == tokens


@each("text", ["FREE", "v1agra", "don’t", "naïve", "£100", "f-r-e-e", "日本"])
def test_a_text_of_that_word_has_that_token(text):
    found = message_tokens(parse(f"Subject: {text}\nFrom: a@example.org\n\n{text}\n".encode()))
    assert set(typed_tokens(text)) <= found
    assert set(typed_tokens(f"subject:{text}")) <= found


def test_other_kinds():
    assert "subject:free" in of_other_kinds("free")
    assert "free" in of_other_kinds("subject:free")
    assert "from:free" in of_other_kinds("subject:free")
    assert "free" not in of_other_kinds("free")
    assert len(of_other_kinds("free")) == len(KINDS) - 1
