import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from excerpts import explanation, hostile_excerpt

from nbspam.display.explanation_page import ExplanationView, explanation_page
from nbspam.display.page import escaped, html_page
from nbspam.scoring.verdict import Verdict

HARMLESS = {
    *("html head meta title style body footer p h1 h2 h3 div dl dt dd span mark small").split(),
    *("table tr th td bdi code svg line rect figure figcaption").split(),
    *("polyline circle path text").split(),
}
# None of them names anything to load, to run or to go to.
ATTRIBUTES = {
    *("lang charset http-equiv content name class dir title role aria-hidden aria-label").split(),
    *("viewbox preserveaspectratio x y x1 x2 y1 y2 width height cx cy r d points").split(),
    *("text-anchor transform").split(),
}


class Page(HTMLParser):
    """The tags, attributes and text of a page."""

    def __init__(self, page):
        super().__init__()
        self.found, self.attributes, self.text, self.open = [], set(), "", []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def assert_harmless(page):
    """Assert that a page holds no more than text, figures and its own style; return it parsed."""
    parsed = Page(page)
    assert parsed.open == []
    assert set(parsed.found) <= HARMLESS
    assert parsed.attributes <= ATTRIBUTES
    assert page.isascii()
    assert "url(" not in page
    assert "@import" not in page
    assert not [c for c in page if c != "\n" and not c.isprintable()]
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert policy.split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{digest}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return parsed


HOSTILE_NAME = "<script>alert(4)</script>\x1b[31m\u202e"


def page_of_hostile():
    judged = Verdict(
        "spam", 0.9, 2.0, {"ham": 0.1, "spam": 0.9}, HOSTILE_NAME, None, explanation().score
    )
    found = explanation()
    view = ExplanationView(
        judged,
        found,
        "spam",
        hostile_excerpt(),
        list(found.words),
        [("calibration: any message", -1.2), ("sum: the log-odds", 2.0)],
        [(f"in {HOSTILE_NAME}", "of 2,500"), ("in spam", "of 2,500")],
        ["spam: “<b>” & co."],
        [("nats", "the unit")],
    )
    return explanation_page(view, "1.2.3")


def test_a_hostile_message_is_text_in_the_page():
    parsed = assert_harmless(page_of_hostile())
    assert "<script src=//evil.example/x.js>" in parsed.text
    assert "onerror=alert(1)" in parsed.text
    assert "<script>alert(4)</script>" in parsed.text
    assert "script" not in parsed.found


def test_words_are_shaded_and_counts_stand_beside_totals():
    page = page_of_hostile()
    assert re.search(r'<mark class="f[34]" title="\+1\.\d+ nats">prize</mark>', page)
    assert re.search(r'<mark class="a[34]" title="-0\.\d+ nats">lunch</mark>', page)
    assert "of 2,500" in page
    assert "1,234" in page


def test_the_page_is_light_and_dark_and_fits_a_phone():
    page = html_page("title", [], "end")
    assert "color-scheme: light dark" in page
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<b a="\'">&', "&lt;b a=&quot;&#39;&quot;&gt;&amp;"),
        ("one\ntwo", "one\ntwo"),
        ("\x1b[31m\u202e", "�[31m�"),
    ],
)
def test_text_is_escaped(text, expected):
    assert escaped(text) == expected


def test_surrogates_of_a_file_name_can_be_written():
    assert html_page("\udc80", [escaped("a\udcffb")], "").isascii()
