import unicodedata

from golden_tables import golden_table
from hypothesis import example, given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading.message import parse, parse_text
from nbspam.tokens.excerpt import printable, sender_places, text_places
from nbspam.tokens.headers import header_tokens
from nbspam.tokens.text import short_text_tokens, text_tokens, word_places, words_of
from nbspam.tokens.tokenized import Wanted, tokenize

WANTED = Wanted(excerpt=100)


def excerpt(raw, wanted=WANTED):
    message = parse_text(raw) if isinstance(raw, str) else parse(raw)
    return tokenize(message, wanted=wanted).excerpt


def test_there_is_none_unless_it_is_wanted():
    assert tokenize(parse_text("free prize")).excerpt is None
    assert tokenize(parse_text("free prize"), wanted=Wanted(traits=True)).excerpt is None


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
    with_it = tokenize(text, digest=True, wanted=WANTED)
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


TEXTS = st.text(
    alphabet=st.one_of(
        st.sampled_from(list("aAbé 0149_.-'’$£!?*\n免費ไทकिا\u0301İ@/:w")), st.characters()
    ),
    max_size=80,
)
# A trick stands nowhere.
NOWHERE = "trick:"


def found(text, is_short=False):
    return list(text_places(text, is_short))


@given(TEXTS)
@example("x" * 40 + " free 免費送ไทยnow")
def test_the_words_with_places_are_the_words(text):
    lower = text.lower()
    places = list(word_places(lower))
    assert [word for word, _ in places] == words_of(lower)


@given(TEXTS)
@example("see https://user@shop.example/win/now?x or www.shop.example!")
@example("v.i.a.g.r.a and v1agra, via_gra 50%")
def test_every_token_of_a_text_has_a_place_inside_it(text):
    text = printable(text)
    places = found(text)
    assert all(0 <= start < end <= len(text) for _, start, end in places)
    tokens = {token for token in text_tokens(text) if not token.startswith(NOWHERE)}
    if len(text.lower()) == len(text):  # a dotted capital I is two letters there, and one here
        assert tokens <= {place.token for place in places}


@given(TEXTS)
@example("Free Prize\n\nCALL now £5!")
def test_every_token_of_a_short_text_has_a_place(text):
    text = printable(text)
    if len(text.lower()) == len(text):
        assert set(short_text_tokens(text)) <= {
            place.token for place in found(text, is_short=True)
        } | {
            "tri:__"  # of an empty text
        }


@each("text, token, pieces", golden_table("tokens/words.table", 3, "places"))
def test_a_token_stands_where_a_reader_sees_it(text, token, pieces):
    places = [place for place in found(text, token[:4] == "tri:") if place.token == token]
    assert [text[place.start : place.end] for place in places] == pieces.split()


def test_words_and_hosts_of_the_sender_have_places():
    sender = "Prize Desk <win@mail.shop.example>"
    places = list(sender_places(sender))
    tokens = header_tokens([("from", sender)])
    own = {t for t in tokens if t.startswith(("from:", "sender:"))}
    assert own
    assert own <= {place.token for place in places}
    (host,) = {(s, e) for t, s, e in places if t == "from:@shop.example"}
    assert sender[slice(*host)] == "shop.example"
