import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading.mime import SOURCE_LIMIT, fitted, sample
from nbspam.tokens.html import page_of


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


RULES = ".a{color:red}" * 9_000


@each(
    "hides",
    [
        f"<style>{RULES}.z{{display:none}}{RULES}</style><p class=z>",
        f"<style>{RULES}.z{{display:none}}{RULES}*{{opacity:1!important}}</style><p class=z>",
        f"<style>.z{{display:none}}</style><p class='z {'a ' * 300}'>",
        f"<p style='display:none;{'color:red;' * 40}opacity:1!important'>",
        f"<p STYLE = 'display:none;{'color:red;' * 40}'>",
    ],
)
def test_what_is_cut_off_may_hide_text(hides):
    found, _ = fit(f"{hides} ham</p>{' ' * 70_000}", 67_000, is_html=True)
    text, certain, *_ = page_of(found)
    assert ("ham" in text, "ham" in certain) == (True, False)


@each(
    "markup",
    [
        *("<!-->", "<!--->", "<!-- --!>", "<script></script/x>", "<script-x>", "<style-x>"),
        "<style title='</style>'></style >",
    ],
)
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
