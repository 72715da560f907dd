import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from nbspam.reading.message import parse, parse_text
from nbspam.tokens.tokenized import TokenizerOutputs, printable, tokenize

WANTED = TokenizerOutputs(excerpt=100)


def excerpt(raw, outputs=WANTED):
    message = parse_text(raw) if isinstance(raw, str) else parse(raw)
    return tokenize(message, outputs=outputs).excerpt


def test_there_is_none_unless_it_is_wanted():
    assert tokenize(parse_text("free prize")).excerpt is None
    assert tokenize(parse_text("free prize"), outputs=TokenizerOutputs(traits=True)).excerpt is None


def test_a_mail_has_its_subject_its_sender_and_its_visible_text():
    found = excerpt(
        b"Subject: =?utf-8?q?Pr=C3=AFze?=\nFrom: Desk <a@b.example>\nContent-Type: text/html\n\n"
        b"<p>fr<!-- x -->ee &amp; easy<p style='display:none'>hidden"
    )
    assert (found.subject, found.sender) == ("Prïze", "Desk <a@b.example>")
    assert "free & easy" in found.text
    assert "hidden" not in found.text
    found = excerpt(
        b"Subject: x\nContent-Type: multipart/alternative; boundary=b\n\n"
        b"--b\n\nfree prize today\n--b\nContent-Type: text/html\n\n<b>free</b> prize today\n--b--\n"
    )
    assert found.text == "free prize today"  # a page that repeats the plain text is not shown again
    found = excerpt("word " * 100)
    assert (len(found.text), found.characters, found.rest) == (100, 499, 399)


def test_the_tokens_are_the_same_with_an_excerpt_and_without():
    text = parse_text("Win a free prize http://shop.example/now")
    with_it = tokenize(text, digest=True, outputs=WANTED)
    assert with_it._replace(excerpt=None) == tokenize(text, digest=True)


@given(st.text(max_size=60))
@example("\x1b[2J\x1b]0;title\x07 \u202egnp.exe \u2066x\u2069 \x9b31m \ud800 a\u2028b\r\nc")
def test_nothing_in_it_commands_a_terminal_or_turns_the_text_round(text):
    for shown in (printable(text), excerpt(text).text):
        assert shown.replace("\n", "").isprintable()
        assert not {unicodedata.category(c) for c in shown.replace("\n", "")} & {
            *("Cc", "Cf", "Cs", "Zl", "Zp")
        }
        assert printable(shown) == shown


def test_the_fields_of_a_header_are_as_harmless():
    found = excerpt(
        b"Subject: =?utf-8?b?G1sySg==?= =?utf-8?q?=E2=80=AEabc=0Ax?=\n"
        b"From: \x1b[31mred <a@b.example>\n\ntext"
    )
    assert found.subject.isprintable()
    assert found.sender.isprintable()
