import html
import sys

from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.tokens.html import html_text


def seen(source):
    """Return the visible words and the tricks."""
    text, _, tricks = html_text(source)
    return text.split(), {trick.removeprefix("trick:") for trick in tricks}


def links(source):
    return html_text(source)[1]


@each(
    "source, words",
    [
        ("<p>Hello <b>you</b></p>", "Hello you"),
        ("v<b>ia</b>gr<font color=red>a</font>", "viagra"),
        ("v<span>i</span><I>agra</I>", "viagra"),
        ("one<br>two<p>three</p>four<td>five", "one two three four five"),
        ("one<div>two</div>three<li>four", "one two three four"),
        ("<style>p { color: white }</style>seen<script>var x = '<p>';</script>too", "seen too"),
        ("a<STYLE>b</STYLE >c", "a c"),
        ("<!DOCTYPE html><?xml version='1'?>seen", "seen"),
        ("fish &amp; chips &lt;now&gt; caf&eacute;", "fish & chips <now> café"),
        ("one&nbsp;two", "one two"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("I <3 you", "I <3 you"),
        ("plain text", "plain text"),
        ("", ""),
    ],
)
def test_the_text_is_what_a_reader_sees(source, words):
    assert seen(source) == (words.split(), set())


def test_a_value_of_any_length_is_none_of_the_text():
    value = "5 > 4 " * 10_000
    assert seen(f'<p title="{value}" id=a>seen</p>') == (["seen"], set())
    assert seen(f"<p title='{value}' id=a>seen</p>") == (["seen"], set())


def test_a_quoted_greater_than_does_not_end_a_tag():
    assert seen('<p title="a>b">seen</p>') == (["seen"], set())


@each(
    "source, words, tricks",
    [
        ("fr<!-- x -->ee", ["free"], {"comment"}),
        ("fr<!---->ee", ["free"], {"comment"}),
        ("one <!-- x --> two", ["one", "two"], set()),
        ("one<!-- x --> two", ["one", "two"], set()),
        ("&#102;ree", ["free"], {"entity"}),
        ("&#x66;ree", ["free"], {"entity"}),
        ("caf&#233; &#8364; &#49;", ["café", "€", "1"], set()),
    ],
)
def test_words_broken_by_comments_and_entities(source, words, tricks):
    assert seen(source) == (words, tricks)


HIDING = [
    ("display:none", "hidden"),
    ("DISPLAY : None", "hidden"),
    ("color:red; display: none !important", "hidden"),
    ("visibility:hidden", "hidden"),
    ("opacity:0", "hidden"),
    ("mso-hide:all", "hidden"),
    ("max-height:0", "hidden"),
    ("font-size:0", "tiny"),
    ("font-size:0px", "tiny"),
    ("font-size:1px", "tiny"),
    ("font-size: 3px", "tiny"),
    ("font-size:2pt", "tiny"),
    ("font-size:0.1em", "tiny"),
    ("color:white", "same-colour"),
    ("color:#ffffff", "same-colour"),
    ("color:#FFF", "same-colour"),
    ("color:#fefefe", "same-colour"),
    ("color:#123456;background-color:#123456", "same-colour"),
]


@each("style, trick", HIDING)
@each("tag", ["p", "span", "div", "td"])
def test_hidden_text_is_removed_and_marked(style, trick, tag):
    source = f'<body>seen <{tag} style="{style}">secret</{tag}> too'
    assert seen(source) == (["seen", "too"], {trick})


@each("style", ["background:#000;color:#000", "background:red;color:red"])
def test_text_of_the_colour_of_its_background_is_removed_and_marked(style):
    assert seen(f'<p style="{style}">secret</p>seen') == (["seen"], {"same-colour"})


@each(
    "style",
    [
        "display:block", "visibility:visible", "opacity:0.9", "font-size:4px",
        "font-size:12px;line-height:0", "font-size:30px", "font-size:0.8em", "font-size:1.5em",
        "color:red", "color:#333", "color:white;background-color:black", "background-color:#eee",
        "border-color:white", "max-height:100px",
    ],
)  # fmt: skip
def test_visible_text_stays(style):
    assert seen(f'<p style="{style}">seen</p>') == (["seen"], set())


def test_hiding_without_text_is_no_trick():
    assert seen('<p style="display:none"> <img src="http://a.example/1.gif"></p>x') == (
        ["x"],
        set(),
    )


def test_attributes_of_old_hide_too():
    assert seen('<body bgcolor="#ffffff"><font color="#FFFFFE">secret</font>seen') == (
        ["seen"],
        {"same-colour"},
    )
    assert seen('<table bgcolor=black><tr><td><font color="white">seen</font>')[0] == ["seen"]


def test_what_is_nested_in_hidden_text_is_hidden():
    source = '<div style="display:none">a<p>b<b>c</b></p>d</div>seen'
    assert seen(source) == (["seen"], {"hidden"})


def test_a_size_of_its_own_shows_nothing_under_display_none():
    source = '<div style="display:none"><p style="font-size:12px">secret</p></div>seen'
    assert seen(source) == (["seen"], {"hidden"})


def test_a_size_of_its_own_shows_what_is_under_a_tiny_tag():
    source = '<td style="font-size:0"><p style="font-size:14px">seen</p>secret</td>'
    assert seen(source) == (["seen"], {"tiny"})


def test_a_background_of_its_own_shows_what_is_under_its_colour():
    source = '<div style="color:white"><p style="background-color:black">seen</p>secret</div>'
    assert seen(source) == (["seen"], {"same-colour"})


def test_a_closed_tag_hides_no_more_even_if_those_in_it_were_never_closed():
    assert seen('<div style="display:none">a<p><b>c</div>seen') == (["seen"], {"hidden"})


def test_a_closing_tag_that_was_never_opened_changes_nothing():
    assert seen('<p style="display:none">a</i></td>b</p>seen') == (["seen"], {"hidden"})


def test_a_tag_that_holds_nothing_hides_nothing():
    assert seen('<img style="display:none" src="x">seen') == (["seen"], set())
    assert seen('<br style="display:none">seen') == (["seen"], set())


def test_many_open_tags_do_not_lose_the_text():
    assert seen("<p style='color:#fff'>" + "<div>" * 1000 + "</div>" * 1000 + "</p>seen")[0] == [
        "seen"
    ]


@each(
    "source, words",
    [
        ("seen <b", "seen"), ('seen <a href="http://x.example', "seen"),
        ("seen <!-- never closed", "seen"), ("seen <style>never closed", "seen"),
        ("seen <script>never closed", "seen"), ("seen <", "seen <"), ("seen &am", "seen &am"),
        ("seen <p style=\"color:'red", "seen"), ("seen <b>too", "seen too"), ("seen <!", "seen"),
    ],
)  # fmt: skip
def test_what_never_closes_does_not_swallow_what_came_before(source, words):
    assert seen(source)[0] == words.split()


def test_text_that_is_hidden_to_the_end_is_marked():
    assert seen('seen <p style="display:none">secret') == (["seen"], {"hidden"})


@each(
    "source, targets",
    [
        ('<a href="http://a.example/x">y</a>', ["http://a.example/x"]),
        ("<A HREF='http://a.example/x'>y</A>", ["http://a.example/x"]),
        ("<a href=http://a.example/x>y</a>", ["http://a.example/x"]),
        ('<img src = "http://a.example/1.gif" alt="x">', ["http://a.example/1.gif"]),
        ('<form action="http://a.example/go">', ["http://a.example/go"]),
        ('<body background="http://a.example/b.gif">', ["http://a.example/b.gif"]),
        ('<a class="b" href="mailto:me@a.example">', ["mailto:me@a.example"]),
        ("no link = here", []),
    ],
)
@each("before", ["", '<i style="display:none"></i>'])
def test_links_targets(source, targets, before):
    assert targets == links(before + source)


def test_links_under_hidden_text_count_too():
    assert links('<p style="display:none"><a href="http://a.example/">x</a></p>') == [
        "http://a.example/"
    ]


@given(st.text(alphabet="<>/!-\"'= abpstyle&#;:none01\n"))
def test_any_soup_has_a_text(source):
    text, _, tricks = html_text(source)
    assert len(text) <= len(source) + 200
    assert all(trick.startswith("trick:") for trick in tricks)


@given(st.text(alphabet=st.characters(exclude_characters="<&")))
def test_a_text_without_tags_stays_as_it_is(source):
    assert html_text(source) == (source, [], set())


@each("entity", ["&#" + "1" * 5000 + ";", "&#x" + "f" * 5000 + ";", "&#00065;"])
def test_entities_of_any_length_are_text(entity):
    text, _, _ = html_text(f"<p>free {entity} now</p>")
    assert (text.split()[0], text.split()[-1]) == ("free", "now")


ENTITIES = ["&amp;", "&lt;", "&gt;", "&quot;", "&nbsp;", "&copy;", "&#39;", "&#160;", "&amp;lt;"]


@given(st.lists(st.sampled_from([*ENTITIES, "&raquo;", "&amp", "&", "x", " ", "&#8203;"])))
def test_entities_are_what_the_standard_library_takes_them_for(pieces):
    source = "".join(pieces)
    assert html_text(source)[0] == html.unescape(source)


def test_common_entities_do_not_load_the_table_of_all(monkeypatch):
    monkeypatch.setitem(sys.modules, "html", None)  # importing it fails
    assert html_text("".join(ENTITIES))[0] == "&<>\"\xa0©'\xa0&lt;"
