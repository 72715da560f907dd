"""The MIME tree, and what is read of long texts."""

import base64
import itertools
import time

import pytest
from golden_tables import golden_table
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading.message import SOURCE_LIMIT, fitted, is_html, parse, sample
from nbspam.tokens.html import page_of

PAGE = b"<html><body>a page to read</body></html>"
CODED = b"Content-Type: text/html\nContent-Transfer-Encoding: base64\n\n" + base64.encodebytes(PAGE)


def mixed(*parts):
    inside = b"".join(b"--b\n" + part + b"\n" for part in parts)
    return b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n" + inside + b"--b--\n"


def texts(raw):
    return [part.text for part in parse(raw).parts if part.text.strip()]


@each("raw", golden_table("reading/pages.table", 1, "whatever the header claims"))
def test_a_page_is_read_whatever_the_header_claims(raw):
    assert texts(raw.encode().replace(b"<CODED>", CODED)) == [PAGE.decode()]


@each("depth", [25, 200, 900])
def test_a_page_is_read_at_any_depth(depth):
    raw = CODED
    for i in range(depth):
        raw = b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n%b" % (i, i, raw)
    assert texts(b"Subject: x\n" + raw) == [PAGE.decode()]


def test_a_page_too_deep_is_read_without_its_tree_and_messages_too_deep_are_text():
    raw = CODED
    for i in range(1_500):
        raw = b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n%b" % (i, i, raw)
    message = parse(b"Subject: x\n" + raw)
    assert [part.text for part in message.parts] == [PAGE.decode()]
    assert message.limits == {"depth"}
    raw = b"Subject: in\nContent-Type: message/rfc822\n\n" * 1_500 + b"at the bottom\n"
    message = parse(raw)
    assert "at the bottom" in message.parts[-1].text
    assert message.limits == {"depth", "parts"}


def test_of_too_many_parts_the_first_and_the_last_texts_are_read():
    parts = [b"\npart %d\n" % i for i in range(1_000)]
    others = [b"Content-Type: image/gif\n\nR0lG\n"] * 1_000
    message = parse(mixed(*others, *parts, *others))
    assert len(message.parts) == 200
    assert message.limits == {"parts"}
    assert "part 0" in message.parts[0].text
    assert "part 999" in message.parts[-1].text


GIF, OCTETS = b"Content-Type: image/gif\n", b"Content-Type: application/octet-stream"
NAMED = b"Content-Disposition: attachment; filename=a.xhtml\n"
READ = [OCTETS + b"\n", OCTETS + b"; name=a.html\n", GIF + NAMED]
READ += [b"Content-Type: application/x-any; name=a.HTM\n"]


@each("fields", [*READ, GIF, b"Content-Type: application/pdf; name=a.pdf\n"])
def test_pages_in_attachments_are_read(fields):
    raw = mixed(fields + b"Content-Transfer-Encoding: base64\n\n" + base64.encodebytes(PAGE))
    assert texts(raw) == ([PAGE.decode()] if fields in READ else [])
    assert texts(mixed(OCTETS + b"\n\nbytes of any kind\n")) == []


def test_of_alternatives_and_related_parts_all_but_one_are_in_doubt_and_a_line_may_be_no_field():
    def doubts(*inside, kind=b"alternative"):
        raw = mixed(*inside).replace(b"mixed", kind)
        return [part.is_doubtful for part in parse(raw).parts]

    plain, page = b"\nplain", CODED
    assert doubts(plain, page) == [True, False]
    assert doubts(page, b"Content-Type: text/calendar\n\nx") == [False, True]
    assert doubts(plain, page, kind=b"mixed") == [False, False]
    assert doubts(page, plain, kind=b"related") == [False, True]
    root = b"Content-ID: <r>\n\nroot"
    assert doubts(page, root, kind=b'related; start="<r>"') == [True, False]
    within = mixed(plain, page).replace(b"mixed", b"alternative").partition(b"\n")[2]
    within = within.replace(b"=b", b"=c").replace(b"--b", b"--c")
    assert doubts(within, plain) == [True, True, False]
    for kind in (b"application/xml", b"message/delivery-status", b"text/csv"):
        attached = b"Content-Type: %s\n\nx" % kind
        assert doubts(plain, attached, kind=b"mixed") == [False, True]
        assert not parse(attached).parts[0].is_doubtful  # there is nothing else to show
    attached = b"Content-Disposition: ATTACHMENT; filename=a\n\nx"
    assert doubts(plain, attached, kind=b"mixed") == [False, True]
    assert texts(mixed(b"no field here\n" + CODED)) == [PAGE.decode()]
    text = b"\na text, then\nContent-Type: text/html\n\nmore"
    assert texts(mixed(text)) == [text.removeprefix(b"\n").decode()]


@each("text, is_page", golden_table("reading/pages.table", 2, "beginnings"))
def test_html_is_known_by_its_beginning_its_type_or_its_name(text, is_page):
    assert is_html("text/plain", "a.txt", text) == (is_page == "True")
    assert is_html("text/html", "", text)
    assert is_html("application/xhtml+xml", "", text)
    assert is_html("application/octet-stream", "page.HTM", text)


def many_parts(before, after):
    empty = b"Content-Type: text/plain\n\n"
    return mixed(*[empty] * before, CODED, *[empty] * after)


@each("before, after", [(11_000, 0), (0, 11_000), (4_000, 4_000)])
def test_a_page_is_read_beyond_many_empty_parts(before, after):
    assert PAGE.decode() in texts(many_parts(before, after))


def test_a_limit_of_parts_is_told_and_the_text_between_too_many_delimiters_is_read():
    assert "parts" in parse(many_parts(10_001, 0)).limits
    raw = mixed(*[b"\n" + b"%d" % i for i in range(200)])
    assert len(texts(raw)) == 200
    assert not parse(raw).limits
    empty = b"Content-Type: text/plain\n\n"
    raw = mixed(*[empty] * 6_000, b"\nin the middle of it\n", *[empty] * 6_000)
    [text] = texts(raw)
    assert text.split() == "in the middle of it".split()
    short = [b"\nword"] * 300
    assert PAGE.decode() in texts(mixed(*short, CODED, *short))


@each("before", [0, 1, 4_999, 5_000, 5_001, 9_999, 10_000])
def test_the_parts_are_the_same_whichever_way_they_are_looked_for(before):
    body = b"--b\nx\n" * before + b"--bc\n--b\n\nthe last\n--b--\nand after\n"
    message = parse(b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n" + body)
    assert message.parts[-1].text == "the last"
    assert len(message.parts) == min(before + 1, 200)
    assert message.limits == ({"parts"} if before >= 200 else set())


def fit(text, most=1000, is_html=False):
    limits: set[str] = set()
    [found] = fitted([text], [is_html], most, limits)
    return found, limits


@given(st.lists(st.text(max_size=300), max_size=8), st.integers(0, 400), st.booleans())
def test_texts_fit_and_short_ones_stay(texts, most, is_html):
    limits: set[str] = set()
    found = fitted(texts, [is_html] * len(texts), most, limits)
    assert len(found) == len(texts)
    assert sum(map(len, found)) <= most
    if sum(map(len, texts)) <= most:
        assert found == texts
        assert not limits
    for before, after in zip(texts, found, strict=True):
        assert after == before or len(before) > most // len(texts)


@given(st.text(max_size=500), st.integers(0, 600))
def test_a_sample_is_no_longer_than_its_room(text, room):
    assert len(sample(text, room)) <= room
    assert sample(text, 500) == text


def test_of_a_long_text_the_beginning_the_end_and_some_between_are_read():
    words = [f"w{i:06}" for i in range(20_000)]
    found, limits = fit(" ".join(words), 16_000)
    kept = found.split()
    assert limits == {"text"}
    assert kept[:900] == words[:900]
    assert kept[-400:] == words[-400:]
    assert len({int(word[1:]) // 2_000 for word in kept if len(word) == 7}) == 10


PADDING = {
    "comment": "<!--" + "z " * 9_000 + "-->",
    "comments": "<!-- x -->" * 2_000,
    "script": "<script>" + "var x;" * 3_000 + "</script>",
    "blanks": " \n\t" * 6_000,
    "nbsp": "&nbsp;" * 3_000 + "\xa0" * 3_000,
    "inline tags": "<b></b><q7>" * 2_000,
    "blocks": "<p></p><div>\n</div>" * 1_000,
    "attributes": f"<p title='{'x' * 3_000}'>" * 6,
}


@each("padding", PADDING.values())
def test_what_shows_nothing_counts_toward_no_limit(padding):
    found, limits = fit(f"{padding}<p>buy now</p>{padding}", 4_000, is_html=True)
    assert "buy now" in found
    assert not limits


def test_blanks_of_plain_text_count_toward_no_limit():
    assert fit("\n" * 9_000 + "buy" + " " * 9_000 + "now" + "\n" * 900) == ("  buy  now  ", set())


def test_of_a_long_style_sheet_the_ends_and_of_a_long_attribute_the_end_are_kept():
    sheet = "<style>.first{display:none}" + ".a{color:red}" * 20_000 + ".last{display:none}</style>"
    found, _ = fit(f"{sheet}<p>seen", 100_000, is_html=True)
    assert ".first{display:none}" in found
    assert ".last{display:none}</style><p>seen" in found
    style = "color:red;" * 100 + "display:none"
    found, _ = fit(f'<p style="{style}">' * 3, 1_500, is_html=True)
    assert found.count("display:none;") == 3


LONG = {"…": ".a{color:red}" * 9_000, "~": "a " * 300, "^": "color:red;" * 40}


@each("hides", golden_table("reading/pages.table", 1, "hides"))
def test_what_is_cut_off_may_hide_text(hides):
    hides = "".join(LONG.get(sign, sign) for sign in hides)
    found, _ = fit(f"{hides} ham</p>{' ' * 70_000}", 67_000, is_html=True)
    text, certain, *_ = page_of(found)
    assert ("ham" in text, "ham" in certain) == (True, False)


@each("markup", golden_table("reading/pages.table", 1, "shows"))
def test_what_ends_as_in_browsers_hides_nothing_behind_it(markup):
    found, _ = fit(f"{markup} seen{' ' * 2_000}", is_html=True)
    assert page_of(found).certain.split() == ["seen"]


UNITS = [*"<p> < <!-- <b> &nbsp; =' =\" <style a &".split(), "<p ", " ", "<b <b", "é "]


@pytest.mark.few(1)
@pytest.mark.parametrize("unit, is_html", list(itertools.product(UNITS, [True, False])))
def test_any_text_fits_in_bounded_time(unit, is_html):
    start = time.process_time()
    found, _ = fit(unit * (2 * SOURCE_LIMIT // len(unit)), 100_000, is_html)
    assert len(found) <= 100_000
    assert time.process_time() - start < 5
