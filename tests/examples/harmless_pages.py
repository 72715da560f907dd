"""What holds of every page: it is well formed and holds nothing that loads, runs or leads away."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

HARMLESS = {
    *("html head meta title style body footer p h1 h2 h3 div dl dt dd span mark small").split(),
    *("table tr th td bdi code img").split(),
    *("svg rect figure figcaption").split(),
}
# None of them names anything to load, to run or to go to; an image is within the page.
ATTRIBUTES = {
    *("lang charset http-equiv content name class dir title alt src").split(),
    *("data-head viewbox preserveaspectratio x width height").split(),
}


class Page(HTMLParser):
    """The tags, attributes and text of a page."""

    def __init__(self, page):
        super().__init__()
        self.found, self.attributes, self.text, self.open = [], set(), "", []
        self.sources = []  # of images
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.sources += [value for name, value in attrs if name == "src"]
        if tag not in ("meta", "img"):
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
    assert all(source.startswith("data:image/svg+xml;base64,") for source in parsed.sources)
    assert "url(" not in page
    assert "@import" not in page
    assert not [c for c in page if c != "\n" and not c.isprintable()]
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert policy.split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{digest}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return parsed
