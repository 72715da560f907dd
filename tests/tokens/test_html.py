"""The words of pages, in plain sight and hidden: golden/tokens/html.table has pages."""

import html
import re
from ast import literal_eval

from golden_tables import golden_table
from honest import HONEST
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading.message import parse
from nbspam.tokens.html import parse_colour, read_page
from nbspam.tokens.tokenized import message_tokens

PAGES = list(golden_table("tokens/html.table", 4))
HIDE = 'style="display:none"'


@each("source, text, hidden, tricks", PAGES)
def test_the_words_in_plain_sight_and_those_that_count_for_spam_only(source, text, hidden, tricks):
    page = read_page(source)
    assert page.text.split() == text.split()
    assert page.hidden.split() == hidden.split()
    assert page.tricks == {f"trick:{trick}" for trick in tricks.split()}


@each("tag", ["span", "div", "td"])
def test_a_style_hides_in_any_tag(tag):
    pages = [row for row in PAGES if row[0].startswith("<body>seen <p style")]
    assert len(pages) == 28
    for source, text, hidden, trick in pages:
        page = read_page(source.replace("<p ", f"<{tag} ").replace("</p>", f"</{tag}>"))
        assert (page.text.split(), page.hidden) == (text.split(), hidden)
        assert page.tricks == {f"trick:{trick}"}


@each("text, expected", golden_table("tokens/html.table", 2, "colours"))
def test_colours_by_all_their_names(text, expected):
    assert parse_colour(text) == literal_eval(expected)


def test_the_rules_of_a_sheet_hold_for_its_page_only():
    hiding, other = "<style>p.x,.y{display:none}</style>", "<style>.x{display:none}</style>"
    for _ in range(2):
        assert read_page(f"{hiding}a<p class=x>b</p><p class=y>c").hidden == "c"
        assert read_page(f"{other}a<p class=x>b</p><p class=y>c").hidden == "b"
        assert read_page("a<p class=x>b</p><p class=y>c").hidden == ""


@each(
    "page",
    [
        f"<p style='{'a:b;' * 9_000}display:none'>ham</p>",
        f"<p style='margin:{' ' * 9_000}0;display:none'>ham</p>",
        f"<p {'a= ' * 9_000}{HIDE}>ham</p>",
        f"<p {'a' * 9_000} {HIDE}>ham</p>",
        f"<{'a' * 99} {HIDE}>ham</{'a' * 99}>",
        f"<style>.z{{display:none}}</style><p class='{' '.join(map(str, range(999)))} z'>ham</p>",
        f"<style>.z{{{'a:b;' * 9_000}display:none}}</style><p class=z>ham</p>",
        f"<style>{'.y{color:red}' * 9_000}.z{{display:none}}</style><p class=z>ham</p>",
        f"<style {'x' * 9_000}>.z{{display:none}}</style><p class=z>ham</p>",
        f"<div {HIDE}>{'<i>' * 20}ham</div>",
    ],
)
def test_length_does_not_prevent_hiding(page):
    found = read_page(f"<p>seen</p>{page}<p>seen")
    assert (found.text.split(), found.hidden) == (["seen", "seen"], "ham")


def test_only_a_beginning_of_at_most_250_letters_is_a_preheader():
    filler = "&#847;&zwnj;&nbsp;" * 200
    for letters, is_seen in ((250, True), (251, False)):
        page = read_page(f"<div {HIDE}>{'a' * letters}{filler}</div>text")
        assert page.tricks == (set() if is_seen else {"trick:hidden"})
        assert ("aaa" in page.text, "aaa" in page.hidden) == (is_seen, not is_seen)
    parts = f"<i {HIDE}>{'a' * 200}</i>" * 2
    assert read_page(f"{parts}text").hidden == "a" * 200
    assert read_page(f"text{parts}").hidden == f"{'a' * 200} {'a' * 200}"


def test_behind_the_end_of_a_page_no_style_shows_text_and_no_trick_is_noted():
    page = read_page("<html>a</html><p style='display:block;visibility:visible'>b</p><p hidden>c")
    assert (page.text.split(), page.hidden, page.tricks) == (["a"], "b c", set())


@each("source, targets", golden_table("tokens/html.table", 2, "links"))
@each("before", ["", f"<i {HIDE}></i>"])
def test_links_targets_wherever_they_stand(source, targets, before):
    assert targets.split() == read_page(before + source).links


SOUP = st.text(alphabet="<>/!-\"'= abpstyle&#;:none01\\(){}@.*%,data:64\n")


@given(SOUP)
def test_any_soup_is_a_page(source):
    page = read_page(source)
    assert len(page.text) <= len(source) + 200
    assert all(trick.startswith("trick:") for trick in page.tricks)


@given(SOUP, SOUP)
def test_any_soup_is_a_style_and_a_sheet(style, name):
    quoted = html.escape(style)
    page = read_page(f'<style>{style}</style><p class="{name}" style="{quoted}" alt="{quoted}">x')
    assert len(page.hidden) < 40 * len(style + name) + 200


@given(st.text(alphabet="#0123456789abcdefghlrs(),.%-/ "))
def test_any_text_is_a_colour_or_unknown(text):
    assert len(parse_colour(text)) in (0, 1, 3)


WORDS = st.lists(st.sampled_from("alpha beta gamma delta".split()), min_size=1).map(" ".join)
# Whole tags: after an open quote, words belong to an attribute, in a browser too.
WHOLE = re.compile("<[^<>\"']+(?:\"[^<>\"']*\"|'[^<>\"']*'|[^<>\"'])*>")
TAGS = st.lists(st.sampled_from(WHOLE.findall(" ".join(row[0] for row in PAGES))))


@given(TAGS, WORDS, TAGS)
def test_every_word_between_tags_is_read(before, words, after):
    raw = re.compile("<(!|style|script|title|textarea|xmp|iframe|template|noframes)", re.I)
    tags = [tag for tag in before if not raw.match(tag)]
    page = read_page(" ".join([*tags, words, *after]))
    assert set(words.split()) <= set(f"{page.text} {page.hidden}".split())


@given(st.text(alphabet=st.characters(exclude_characters="<&")))
def test_a_text_without_tags_stays_as_it_is(source):
    assert read_page(source) == (source, "", [], set())


@each("entity", ["&#" + "1" * 5000 + ";", "&#x" + "f" * 5000 + ";", "&#00065;"])
def test_entities_of_any_length_are_text(entity):
    words = read_page(f"<p>free {entity} now</p>").text.split()
    assert (words[0], words[-1]) == ("free", "now")
    hides = f"a:{entity};dis&#{'0' * 5000}112;lay:none"
    page = read_page(f"s&#x{'0' * 5000}65;en<p style='{hides}'>ham</p>")
    assert (page.text.split(), page.hidden) == (["seen"], "ham")


ENTITIES = ["&amp;", "&lt;", "&gt;", "&quot;", "&nbsp;", "&copy;", "&#39;", "&#160;", "&amp;lt;"]


@given(st.lists(st.sampled_from([*ENTITIES, "&raquo;", "&amp", "&", "x", " ", "&#8203;"])))
def test_entities_are_what_the_standard_library_takes_them_for(pieces):
    source = "".join(pieces)
    assert read_page(source).text == html.unescape(source)


@each("name, raw, words", HONEST)
def test_the_words_of_honest_mail_count_both_ways(name, raw, words):
    possibly_hidden = set()
    tokens = message_tokens(parse(raw), possibly_hidden=possibly_hidden)
    assert len(words & (tokens - possibly_hidden)) >= 0.95 * len(words)
