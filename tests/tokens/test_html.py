"""What is to be seen of a page: golden/tokens/html.table has pages, their words and tricks."""

import html
import sys

from golden_tables import golden_table
from hypothesis import given
from hypothesis import strategies as st
from newsletters import NEWSLETTERS
from one_case import each

from nbspam.tokens.html import page_of

PAGES = list(golden_table("tokens/html.table", 3))
HIDE = 'style="display:none"'


def seen(source):
    """Return the visible words, with a ? those that are perhaps hidden, and the tricks."""
    text, certain, _, tricks = page_of(f"0 {source}")  # hidden text at the beginning is no trick
    sure = certain.split()
    words = [word if word in sure else f"{word}?" for word in text.split()[1:]]
    return words, {trick.removeprefix("trick:") for trick in tricks}


@each("source, words, tricks", PAGES)
def test_the_words_are_what_a_reader_sees_and_tricks_are_marked(source, words, tricks):
    assert seen(source) == (words.split(), set(tricks.split()))


@each("tag", ["span", "div", "td"])
def test_a_style_hides_in_any_tag(tag):
    pages = [row for row in PAGES if row[0].startswith("<body>seen <p style")]
    assert len(pages) == 18
    for source, words, trick in pages:
        page = source.replace("<p ", f"<{tag} ").replace("</p>", f"</{tag}>")
        assert seen(page) == (words.split(), {trick})


def test_what_is_remembered_of_a_sheet_holds_for_it_alone():
    hiding, other = "<style>p.x{display:none}</style>", "<style>b.x{display:none}</style>"
    for _ in range(2):
        assert seen(f"{hiding}<p class=x>a</p><b class=x>b</b>") == (["b"], {"hidden"})
        assert seen(f"{other}<p class=x>a</p><b class=x>b</b>") == (["a"], {"hidden"})
        assert seen("<p class=x>a</p><b class=x>b</b>") == (["a", "b"], set())


def test_a_value_of_any_length_is_none_of_the_text_and_many_open_tags_do_not_lose_it():
    for quote in "\"'":
        value = quote + "5 > 4 " * 10_000 + quote
        assert seen(f"<p title={value} id=a>seen</p>") == (["seen"], set())
    nested = "<div>" * 1000 + "</div>" * 1000
    assert seen(f"<p style='color:#fff'>{nested}</p>seen")[0] == ["seen"]
    assert seen(f"<div {HIDE}>" + "<i>" * 500 + "a</div>seen") == (["seen"], {"hidden"})


@each(
    "page",
    [
        f"<p style='{'a:b;' * 9_000}display:none'>ham</p>",
        f"<p style='margin:{' ' * 9_000}0;display:none'>ham</p>",
        f"<p {'a= ' * 9_000}{HIDE}>ham</p>",
        f"<p {'a' * 9_000} {HIDE}>ham</p>",
        f"<p {'a=() ' * 9_000}{HIDE}> ham</p>".replace("()", "''"),
        f"<{'a' * 99} {HIDE}>ham</{'a' * 99}>",
        f"<!{'ham ' * 9_000}>",
        f"<? {'ham ' * 9_000}>",
        f"<style>.z{{display:none}}</style><p class='{' '.join(map(str, range(999)))} z'>ham</p>",
        f"<style>.z{{{'a:b;' * 9_000}display:none}}</style><p class=z>ham</p>",
        f"<style {'x' * 9_000}>.z{{display:none}}</style><p class=z>ham</p>",
    ],
)
def test_nothing_is_too_long_to_hide_text(page):
    assert seen(page + "<p>seen")[0] == ["seen"]


def test_beyond_the_limit_of_rules_all_text_is_in_doubt():
    rules = "".join(f".c{i}{{color:red}}" for i in range(2_000))
    for before, after in (("", ".z{display:none}"), (".z{display:none}", ".z{display:block}")):
        page = f"<style>{before}{rules}{after}</style>one<p>two</p><p class=z>three</p>"
        words, tricks = seen(page)
        assert sorted(words) == ["one?", "three?", "two?"]
        assert tricks >= {"limit:styles", "perhaps-hidden"}


def test_a_page_of_which_nothing_is_to_be_seen_is_misread_and_seen():
    text = "claim your million pounds today and send the money to us"
    assert seen(f"<div {HIDE}>{text}</div>")[0] == [f"{word}?" for word in text.split()]
    assert seen(f"<div {HIDE}>{text}</div>one two three four five six")[0][0] == "one"


def test_of_newsletters_most_is_seen_and_nothing_is_a_trick():
    for page in NEWSLETTERS:
        text, certain, _, tricks = page_of(page)
        assert len(certain.split()) > 0.9 * len(text.split())
        assert tricks == set()


def test_hidden_text_is_no_trick_if_it_is_short_and_the_first():
    short, long = "new recipes &#847;&zwnj;&nbsp;" * 9, "new recipes" * 30
    text = "what a reader sees of it"
    assert page_of(f"<div {HIDE}>{short}</div>{text}") == (text, text, [], set())
    for page in (f"<div {HIDE}>{long}</div>{text}", f"{text}<div {HIDE}>{short}</div>"):
        assert page_of(page).tricks == {"trick:hidden"}


def test_a_line_that_does_not_break_is_seen_as_far_as_a_screen_is_wide():
    for before, after in (("<td nowrap>", "</td>"), ("<nobr>", "</nobr>"), ("<pre>", "</pre>")):
        words, _ = seen(f"<table>{before}{'ham ' * 90}{after}</table><p>seen")
        assert words == ["ham?"] * 90 + ["seen"]
        assert seen(f"<table>{before}ham{after}</table>")[0] == ["ham"]
    assert seen(f"<pre>{f'ham{chr(10)}' * 90}")[0].count("ham") > 0


@each("source, targets", golden_table("tokens/html.table", 2, "links"))
@each("before", ["", f"<i {HIDE}></i>"])
def test_links_targets_wherever_they_stand(source, targets, before):
    assert targets.split() == page_of(before + source).links


@given(st.text(alphabet="<>/!-\"'= abpstyle&#;:none01\n"))
def test_any_soup_has_a_text(source):
    text, certain, _, tricks = page_of(source)
    assert len(certain) <= len(text) + 200
    assert len(text) <= len(source) + 200
    assert all(trick.startswith("trick:") for trick in tricks)


@given(st.text(alphabet=st.characters(exclude_characters="<&")))
def test_a_text_without_tags_stays_as_it_is(source):
    assert page_of(source) == (source, source, [], set())


@each("entity", ["&#" + "1" * 5000 + ";", "&#x" + "f" * 5000 + ";", "&#00065;"])
def test_entities_of_any_length_are_text(entity):
    text, *_ = page_of(f"<p>free {entity} now</p>")
    assert (text.split()[0], text.split()[-1]) == ("free", "now")
    assert seen(f'<style media="{entity}"></style><p style="{entity}">seen')[0] == ["seen"]
    hides = f"a:{entity};dis&#{'0' * 5000}112;lay:none"
    assert seen(f"<p style='{hides}'>ham</p>s&#x{'0' * 5000}65;en")[0] == ["seen"]


ENTITIES = ["&amp;", "&lt;", "&gt;", "&quot;", "&nbsp;", "&copy;", "&#39;", "&#160;", "&amp;lt;"]


@given(st.lists(st.sampled_from([*ENTITIES, "&raquo;", "&amp", "&", "x", " ", "&#8203;"])))
def test_entities_are_what_the_standard_library_takes_them_for(pieces):
    source = "".join(pieces)
    assert page_of(source)[0] == html.unescape(source)


def test_common_entities_do_not_load_the_table_of_all(monkeypatch):
    monkeypatch.setitem(sys.modules, "html", None)  # importing it fails
    assert page_of("".join(ENTITIES))[0] == "&<>\"\xa0©'\xa0&lt;"
