"""Styles and colours; golden/tokens/html.table has what they do to pages."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.tokens.styles import StyleSheet, are_alike, colour, declarations, look


@each(
    "text, expected",
    [
        ("white", (255, 255, 255)), (" ivory ", (255, 255, 240)), ("#fff", (255, 255, 255)),
        ("#12f8", (17, 34, 255)), ("#123456", (18, 52, 86)), ("123456", (18, 52, 86)),
        ("#12345678", (18, 52, 86)), ("rgb(1, 2, 300)", (1, 2, 255)),
        ("rgb(100%,0%,50%)", (255, 0, 127)), ("rgba(1 2 3 / 0.5)", (1, 2, 3)),
        ("hsl(0, 100%, 50%)", (255, 0, 0)), ("hsl(120,0%,100%)", (255, 255, 255)),
        ("nobody", None), ("#12", None), ("rgb(1,2)", None), ("", None),
    ],
)  # fmt: skip
def test_colours_by_all_their_names(text, expected):
    assert colour(text)[0] == expected


@each(
    "text, expected",
    [
        ("transparent", 0), ("rgba(0,0,0,0)", 0), ("rgba(0 0 0 / 5%)", 0.05),
        ("hsla(0,0%,0%,.05)", 0.05), ("#0000", 0), ("#00000010", 16 / 255), ("#000f", 1),
        ("#00000080", 128 / 255), ("rgba(0,0,0,1)", 1), ("rgb(0,0,0)", 1), ("black", 1),
        ("#zzzz", 1), ("", 1),
    ],
)  # fmt: skip
def test_how_much_a_colour_covers(text, expected):
    assert colour(text)[1] == expected


@given(st.text(alphabet="#0123456789abcdefghlrs(),.%- "))
def test_any_text_is_a_colour_or_none(text):
    found, strength = colour(text)
    assert strength >= 0
    assert found is None or all(0 <= part <= 255 for part in found)


def test_what_an_eye_takes_for_one():
    assert are_alike((255, 255, 255), (255, 255, 208))  # 47 apart in all
    assert not are_alike((255, 255, 255), (255, 255, 207))


@each(
    "style, expected",
    [
        ("color:red; display : none", {"color": "red", "display": "none"}),
        ("display:none;display:block", {"display": "block"}),
        ("display:none !important; display:block", {"display": "none"}),
        ("d\\69 splay:none", {"display": "none"}), ("d\\isplay:none", {"display": "none"}),
        ("a:b;" * 999 + "c:d", {"a": "b", "c": "d"}), (";" * 9_999 + "a:b", {"a": "b"}),
        ("display:/* x */none/**/", {"display": "none"}), ("nothing; :; a", {"": ""}), ("", {}),
    ],
)  # fmt: skip
def test_of_each_property_the_declaration_that_holds(style, expected):
    assert declarations(style) == expected


HIDING = [
    "display:none", "opacity:0", "opacity:0.05", "opacity:.01", "opacity:5%", "mso-hide:all",
    "height:0;overflow:hidden", "max-height:1px;overflow-y:hidden",
    "width:0.5em;overflow:hidden", "position:absolute;left:-9999px",
    "position:fixed;top:-100em", "text-indent:-9999px", "margin-left:-5000px",
    "margin:0 0 0 -5000px", "clip:rect(0,0,0,0)", "clip:rect(1px 1px 1px 1px)",
    "clip-path:inset(50%)", "clip-path:circle(0)", "transform:scale(0)",
    "transform:rotate(3deg) scalex(0.0)", "scale:0", "zoom:0", "filter:opacity(0)",
    "letter-spacing:-99px", "-webkit-text-fill-color:transparent",
]  # fmt: skip
DOUBTFUL = [
    "display:var(--x)", "opacity:.4", "opacity:calc(0)", "clip-path:inset(5%)",
    "transform:scale(0.5)", "transform:translate(-9px)", "filter:blur(9px)", "mask:url(x)",
    "animation:a 1s", "unicode-bidi:bidi-override", "z-index:-1", "text-indent:-20px",
    "margin-left:-10px", "letter-spacing:-1px", "line-height:0", "mix-blend-mode:screen",
    "height:calc(0px);overflow:hidden", "position:absolute;left:-9px", "font-size:var(--x)",
    "color:lab(1 1 1)", "color:rgba(1,1,1,.4)", "background:color-mix(in srgb,red)",
]  # fmt: skip
SHOWING = [
    "display:block", "display:inherit", "opacity:1", "opacity:0.9", "opacity:inherit",
    "opacity:", "height:0", "height:10px;overflow:hidden", "position:absolute;left:0",
    "position:relative;left:-9999px", "left:-9999px", "clip:auto", "margin:0 auto",
    "transform:none", "filter:none", "filter:progid:x(1)", "z-index:2", "letter-spacing:1px",
    "line-height:1.5", "color:inherit", "color:rgba(1,1,1,.5)", "background:url(x) no-repeat",
    "width:calc(100% - 9px)", "",
]  # fmt: skip


def test_styles_that_hide_those_in_doubt_and_those_that_show():
    assert [style for style in HIDING if not look(declarations(style)).hides] == []
    found = {style: look(declarations(style)) for style in DOUBTFUL}
    assert [style for style in found if found[style].hides or not found[style].is_doubted] == []
    found = {style: look(declarations(style)) for style in SHOWING}
    assert [style for style in found if found[style].hides or found[style].is_doubted] == []


@each(
    "style, expected",
    [
        ("font-size:1px", True), ("font-size:1%", True), ("font:0/0 a", True),
        ("font:bold 1px/1 serif", True), ("font:100 1px serif", True), ("font:12px arial", False),
        ("font:italic bold 1.5em/2 x", False), ("font-size:80%", False), ("color:red", None),
        ("font:caption", None),
    ],
)  # fmt: skip
def test_sizes(style, expected):
    assert look(declarations(style)).is_tiny is expected


@each(
    "style, expected",
    [
        ("background:red", (255, 0, 0)), ("background:#fff url(x.gif)", (255, 255, 255)),
        ("background-color:rgb(1,2,3)", (1, 2, 3)), ("background:url(red.gif)", None),
        ("color:red", None), ("background:linear-gradient(#000,#fff)", None),
    ],
)  # fmt: skip
def test_backgrounds(style, expected):
    assert look(declarations(style)).backgrounds == (() if expected is None else (expected,))


def found_by(rule):
    """Return what a rule declares of <div class="x y" id=i>, and whether it may do so."""
    style, _, besides = StyleSheet(f"<style>{rule}</style>").rules_for("div", ("x", "y"), "i")
    return style, besides is not None and besides.is_doubted


CERTAIN = ["div", ".x", "#i", "*", "div.x", "div#i", "p, .x", "p,div", "DIV.X", "*.y"]
PERHAPS = [
    ".x.y", "div#i.y", "[title]", ".out .x", "td > .x", "p ~ div", "div:nth-child(2)", ".x[a='b']",
    ":is(p)", ".x:first-child", "[a='b,c']", "p + #i",
]  # fmt: skip
OTHERS = ["p", ".z", "#j", "p.x", ".x.z p", "div:hover", "div::before", ".x td", "@font-face"]


def test_simple_selectors_are_known_and_others_in_doubt():
    for selectors, style, is_doubted in (
        (CERTAIN, {"display": "none"}, False),
        (PERHAPS, {}, True),
        (OTHERS, {}, False),
    ):
        for selector in selectors:
            assert found_by(selector + "{display:none}") == (style, is_doubted), selector


def test_of_many_rules_all_are_known_or_it_is_said_that_they_are_not():
    rules = "".join(f".c{i}{{color:red}}" for i in range(1_999))
    assert not StyleSheet(f"<style>{rules}p{{color:red}}</style>").met_limit
    assert StyleSheet(f"<style>{rules}p,a{{color:red}}</style>").met_limit


def test_the_more_specific_rule_holds():
    rules = "#i{color:red} div.x{color:pink} .x{color:blue} div{color:green}"
    assert found_by(rules)[0] == {"color": "red"}
    assert found_by(rules[13:])[0] == {"color": "pink"}
    assert found_by(".x{color:red} .y{color:blue}")[0] == {"color": "blue"}


@each(
    "sheet, certain, perhaps",
    [
        ("@media screen{.x{display:none}}", True, False),
        ("@media all and (min-width:1px){.x{display:none}}", True, False),
        ("@media print{.x{display:none}}", False, False),
        ("@media print,screen{.x{display:none}}", True, False),
        ("@media only screen and (max-width:480px){.x{display:none}}", False, True),
        ("@media (prefers-color-scheme:dark){.x{display:none}}", False, True),
        ("@media not print{.x{display:none}}", False, True),
        ("@supports (color:red){@media screen{.x{display:none}}}", False, True),
        ("@media print{p{color:red}} .x{display:none}", True, False),
        ("@font-face{src:x} .x{display:none}", True, False),
        ("@keyframes a{.x{display:none}}", False, True),
        ("/* .x{ */ .x{display:none}", True, False),
        (".x{display:/**/none}", True, False),
        ("} .x{display:none}", True, False),
        (".x{display:none", True, False),
        ("<!-- .x{display:none} -->", True, False),
        ("\\.y{display:none}", False, True),
        ("", False, False),
    ],
)
def test_media_and_crooked_sheets(sheet, certain, perhaps):
    assert found_by(sheet) == ({"display": "none"} if certain else {}, perhaps)


@given(st.text(alphabet="{}.#[]>@,:;abcx=\"'*/\\ \n<style>"))
def test_any_soup_is_a_sheet(source):
    StyleSheet(f"<style>{source}").rules_for("div", ("x",), "i")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "source",
    [
        ".x{" * 100_000, "}" * 500_000, ".x .x .x .x{color:red}" * 20_000, "/*" * 200_000,
        "\\" * 400_000, ".a," * 150_000 + "{color:red}", "[a=" * 100_000,
        ".x" * 200_000 + "{color:red}", "@media (" * 60_000, "@media" + " " * 400_000 + "x{",
        ".x{" + "a:b;" * 100_000 + "}", "<style>" * 60_000,
    ],
)  # fmt: skip
def test_no_sheet_takes_long(source):
    start = time.process_time()
    sheet = StyleSheet(f"<style>{source}</style>")
    for _ in range(2_000):
        sheet.rules_for("div", ("x", "y"), "i")
    assert time.process_time() - start < 5
