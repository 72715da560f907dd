import time

from hypothesis import given
from hypothesis import strategies as st
from one_case import each, one_by_default

from nbspam.tokens.styles import Element, StyleSheet, background_of, declarations, hides, is_tiny


@each(
    "style, expected",
    [
        ("color:red; display : none", {"color": "red", "display": "none"}),
        ("display:none;display:block", {"display": "block"}),
        ("display:none !important; display:block", {"display": "none"}),
        ("d\\69 splay:none", {"display": "none"}),
        ("d\\isplay:none", {"display": "none"}),
        ("display:/* x */none/**/", {"display": "none"}),
        ("nothing; :; a", {"": ""}),
        ("", {}),
    ],
)
def test_of_each_property_the_declaration_that_holds(style, expected):
    assert declarations(style) == expected


HIDING = [
    "display:none", "opacity:0", "opacity:0.05", "opacity:.01", "opacity:5%", "mso-hide:all",
    "height:0;overflow:hidden", "max-height:1px;overflow-y:hidden",
    "width:0.5em;overflow:hidden", "position:absolute;left:-9999px",
    "position:fixed;top:-100em", "text-indent:-9999px", "margin-left:-5000px",
    "margin:0 0 0 -5000px", "clip:rect(0,0,0,0)", "clip:rect(1px 1px 1px 1px)",
    "clip-path:inset(50%)", "clip-path:circle(0)", "transform:scale(0)",
    "transform:rotate(3deg) scalex(0.0)",
]  # fmt: skip
SHOWING = [
    "display:block", "display:inherit", "opacity:1", "opacity:0.9", "opacity:inherit",
    "opacity:", "height:0", "height:10px;overflow:hidden", "line-height:0;overflow:hidden",
    "position:absolute;left:0", "position:relative;left:-9999px", "left:-9999px",
    "text-indent:-20px", "margin-left:-10px", "clip:auto", "clip-path:inset(5%)",
    "transform:scale(1)", "transform:scale(0.5)", "",
]  # fmt: skip


def test_styles_that_hide_and_styles_that_do_not():
    assert [style for style in HIDING if not hides(declarations(style))] == []
    assert [style for style in SHOWING if hides(declarations(style))] == []


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
    assert is_tiny(declarations(style)) is expected


@each(
    "style, expected",
    [
        ("background:red", "red"), ("background:#fff url(x.gif)", "#fff"),
        ("background-color:rgb(1,2,3)", "rgb(1,2,3)"), ("background:url(red.gif)", ""),
        ("color:red", ""),
    ],
)  # fmt: skip
def test_backgrounds(style, expected):
    assert background_of(declarations(style)) == expected


def element(name, classes="", own_id="", attributes=""):
    return Element(name, frozenset(classes.split()), own_id, attributes)


DIV = element("div", "x y", "i", ' title="q r" lang="en"')


def style_of(rule, one=DIV, around=()):
    return StyleSheet(f"<style>{rule}</style>").style_of(one, around)


HIDDEN = {"display": "none"}


FITTING = [
    "div", ".x", "#i", "*", "div.x", ".x.y", "div#i.y", "p, .x", "p,div", "[title]", "DIV.X",
    '[title="q r"]', "[lang=en]", "[title~=r]", "[title^=q]", "[title$=r]", "[title*=' ']",
]  # fmt: skip
OTHERS = [
    "p", ".z", "#j", "p.x", ".x.z", "div:hover", "div::before", ".x + .y", ".x ~ .y",
    "[lang=de]", "[alt]", "p .x", "p > .x", "@font-face", "",
]  # fmt: skip


def test_selectors_that_fit_an_element_and_those_around_it():
    around = [element("table", "out"), element("tr"), element("td", "in")]
    within = [".out .x", "table td .x", "td > .x", "table > tr > td > div", ".out>tr .x"]
    not_within = [".in .out .x", "table > .x", "tr > .x", "td tr .x"]
    for selectors, over, found in (
        (FITTING, (), HIDDEN),
        (OTHERS, (), {}),
        (within, around, HIDDEN),
        (not_within, around, {}),
    ):
        for selector in selectors:
            assert style_of(selector + "{display:none}", around=over) == found, selector


def test_the_more_specific_rule_holds():
    assert style_of("#i{color:red} .x{color:blue} div{color:green}") == {"color": "red"}
    assert style_of(".x{color:red} .y{color:blue}") == {"color": "blue"}


@each(
    "sheet, applies",
    [
        ("@media screen{.x{display:none}}", True),
        ("@media all and (min-width:1px){.x{display:none}}", True),
        ("@media print{.x{display:none}}", False),
        ("@media only screen and (max-width:480px){.x{display:none}}", False),
        ("@media (prefers-color-scheme:dark){.x{display:none}}", False),
        ("@media print{p{color:red}} .x{display:none}", True),
        ("@font-face{src:x} .x{display:none}", True),
        ("@keyframes a{.x{display:none}}", False),
        ("/* .x{ */ .x{display:none}", True),
        (".x{display:/**/none}", True),
        ("} .x{display:none}", True),
        (".x{display:none", True),
        ("<!-- .x{display:none} -->", True),
    ],
)
def test_media_and_crooked_sheets(sheet, applies):
    assert (style_of(sheet) == HIDDEN) == applies


def test_rules_that_can_hide_nothing_are_not_kept():
    assert not StyleSheet("<style>p{line-height:1px;border:0}</style>")
    assert not StyleSheet("<p>no sheet</p>")


@given(st.text(alphabet="{}.#[]>@,:;abcx=\"'*/\\ \n<style>"))
def test_any_soup_is_a_sheet(source):
    StyleSheet(f"<style>{source}").style_of(DIV, [DIV])


@one_by_default(
    "source",
    [
        ".x{" * 100_000, "}" * 500_000, ".x .x .x .x{color:red}" * 20_000, "/*" * 200_000,
        "\\" * 400_000, ".a," * 150_000 + "{color:red}", "[a=" * 100_000,
        ".x" * 200_000 + "{color:red}", "@media (" * 60_000,
        ".x{" + "a:b;" * 100_000 + "}", "<style>" * 60_000,
    ],
)  # fmt: skip
def test_no_sheet_takes_long(source):
    start = time.process_time()
    sheet = StyleSheet(f"<style>{source}</style>")
    around = [DIV] * 200
    for _ in range(2_000):
        sheet.style_of(DIV, around)
    assert time.process_time() - start < 5
