"""Styles and colours; golden/tokens/html.table has what they do to pages."""

import time
from ast import literal_eval

import pytest
from golden_tables import golden_table
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.tokens.styles import StyleSheet, colour, declarations, look


@each("text, expected", golden_table("tokens/styles.table", 2, "colours"))
def test_colours_by_all_their_names(text, expected):
    assert colour(text)[0] == literal_eval(expected)


@each("text, expected", golden_table("tokens/styles.table", 2, "covers"))
def test_how_much_a_colour_covers(text, expected):
    assert colour(text)[1] == pytest.approx(float(expected))


@given(st.text(alphabet="#0123456789abcdefghlrs(),.%- "))
def test_any_text_is_a_colour_or_none(text):
    found, strength = colour(text)
    assert strength >= 0
    assert found is None or all(0 <= part <= 255 for part in found)


@each("style, expected", golden_table("tokens/styles.table", 2, "declarations"))
def test_of_each_property_the_declaration_that_holds(style, expected):
    assert declarations(style) == literal_eval(expected)
    assert declarations(f"{style};" * 999 + "c:d") == literal_eval(expected) | {"c": "d"}


HIDING = list(golden_table("tokens/styles.table", 1, "hides"))
DOUBTFUL = list(golden_table("tokens/styles.table", 1, "may hide"))
SHOWING = list(golden_table("tokens/styles.table", 1, "shows"))


def test_styles_that_hide_those_in_doubt_and_those_that_show():
    for kind, styles in (("hides", HIDING), ("may", DOUBTFUL), ("shows", [*SHOWING, ""])):
        found = {style: look(declarations(style)) for style in styles}
        kinds = {
            style: "hides" if one.hides else ("may" if one.is_doubted or one.is_short else "shows")
            for style, one in found.items()
        }
        assert [style for style in styles if kinds[style] != kind] == []


@each("style, expected", golden_table("tokens/styles.table", 2, "sizes"))
def test_sizes(style, expected):
    assert look(declarations(style)).size == literal_eval(expected)


@each("style, expected", golden_table("tokens/styles.table", 2, "backgrounds"))
def test_backgrounds(style, expected):
    [(_, behind)] = look(declarations(style)).pairs
    assert (behind and behind[0]) == literal_eval(expected)


def found_by(rule):
    """Return what a rule declares of <div class="x y" id=i>, and whether it may do so."""
    style, _, besides = StyleSheet(f"<style>{rule}</style>").rules_for("div", ("x", "y"), "i")
    return style, besides is not None and besides.is_doubted


CERTAIN = ["div", ".x", "#i", "*", "div.x", "div#i", "p, .x", "p,div", "DIV.X", "*.y"]
PERHAPS = list(golden_table("tokens/styles.table", 1, "selectors in doubt"))
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


@each("sheet, certain, perhaps", golden_table("tokens/styles.table", 3, "media"))
def test_media_and_crooked_sheets(sheet, certain, perhaps):
    assert found_by(sheet) == ({"display": "none"} if certain == "True" else {}, perhaps == "True")


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
