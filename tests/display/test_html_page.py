import os
import re
from pathlib import Path

from excerpts import HOSTILE_NAME, page_of_hostile
from harmless_pages import assert_harmless

from nbspam.display.page import escape, html_page

GOLDEN = Path(__file__).parents[1] / "golden" / "display"


def test_a_hostile_message_is_text_in_the_page():
    parsed, name = assert_harmless(page_of_hostile()), HOSTILE_NAME.partition("\x1b")[0]
    for part in ("<script src=//evil.example/x.js>", "onerror=alert(1)", name):
        assert part in parsed.text
    assert "script" not in parsed.found


def test_the_golden_page_shades_words_and_has_counts_beside_totals():
    golden = GOLDEN / "hostile.html"
    page = re.sub(
        "(?<=<style>).*(?=</style>)|(?<='sha256-)[^']*", "", page_of_hostile(), flags=re.S
    )
    if os.environ.get("NBSPAM_GOLDEN") == "new":
        golden.write_text(page, encoding="ascii")
    assert page == golden.read_text(encoding="ascii")
    assert re.search(r'<mark class="f[12]" title="\+1\.\d+ nats">free prize</mark>', page)
    assert re.search(r'<mark class="a[12]" title="-0\.\d+ nats">lunch</mark>', page)
    assert "of 2,500" in page
    assert "1,234" in page


def test_the_page_is_light_and_dark_fits_a_phone_and_has_names_that_are_no_text():
    page = html_page("title", [], "end")
    for part in ("color-scheme: light dark", "prefers-color-scheme: dark", 'name="viewport"'):
        assert part in page
    assert html_page("\udc80", [escape("a\udcffb")], "").isascii()


def test_text_is_escaped():
    assert escape('<b a="\'">&') == "&lt;b a=&quot;&#39;&quot;&gt;&amp;"
    assert escape("one\ntwo") == "one\ntwo"
    assert escape("\x1b[31m\u202e") == "�[31m�"
