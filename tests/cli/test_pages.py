"""The pages in a browser, light, dark and on a phone: readable, and nothing scrolls sideways."""

from itertools import product

import pytest
from browsers import PROGRAM, Browser

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs chromium to look at pages")

MANY = [f"a-class-with-a-long-name-{i}" for i in range(12)]
COMMANDS = {
    "report": "eval --folds 3 TABLE --report PAGE -j 1",
    "classes": "eval --folds 2 CLASSES --report PAGE -j 1",
    "comparison": "eval --compare bernoulli,gaussian:sum TABLE --report PAGE -j 1",
    "explanation": "explain -m MODEL MAIL --format html",
    "words": "explain -m MODEL --words --format html",
}
CONTRASTS = """(() => {
  const parts = c => [...c.matchAll(/[\\d.]+/g)].map(Number);
  const over = ([r, g, b, a = 1], low) => [r, g, b].map((v, i) => a * v + (1 - a) * low[i]);
  const background = e => !e ? [255, 255, 255]
    : over(parts(getComputedStyle(e).backgroundColor), background(e.parentElement));
  const light = c => c.map(v => v / 255)
    .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (texts.nextNode()) {
    const text = texts.currentNode.data.trim(), e = texts.currentNode.parentElement;
    if (!text || !e.getClientRects().length) continue;
    const below = background(e), own = over(parts(getComputedStyle(e).color), below);
    const [a, b] = [light(own), light(below)].sort((x, y) => y - x);
    found.push([(a + .05) / (b + .05), text.slice(0, 60)]);
  }
  return found;
})()"""
BEYOND = """[...document.querySelectorAll('body, body *')].filter(e =>
  e.getBoundingClientRect().right > innerWidth + 1 || (e.scrollWidth > e.clientWidth + 1
    && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX)))
  .map(e => `${e.tagName} ${e.className} ${e.textContent.slice(0, 60)}`)"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("chromium"))
    yield opened
    opened.close()


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_has_contrast_and_fits_its_width(nbspam, browser, table, make_model, tmp_path, name):
    classes, mail, page = (tmp_path / n for n in ("classes.tsv", "mail.eml", "page.html"))
    rows = [f"{label}\tword{i} and {'x' * 300} {label[-2:]}" for i in (1, 2) for label in MANY]
    classes.write_text("label\ttext\n" + "\n".join(rows), encoding="utf-8")
    mail.write_text(f"Subject: free prize {'y' * 200}\n\nfree prize, lunch {'z' * 400} 0906170\n")
    places = {"TABLE": table, "CLASSES": classes, "MAIL": mail, "PAGE": page}
    places |= {"MODEL": make_model(table) if "MODEL" in COMMANDS[name] else None}
    done = nbspam(*(places.get(word, word) for word in COMMANDS[name].split()))
    assert done.code == 0, done.err
    if not page.exists():
        page.write_text(done.out, encoding="ascii")
    browser.show(page)
    for scheme, width in product(("light", "dark"), (390, 1000)):
        browser.look(scheme, width)
        assert browser.value_of("document.documentElement.scrollWidth") <= width
        assert browser.value_of(BEYOND) == []
        assert [text for ratio, text in browser.value_of(CONTRASTS) if ratio < 4.5] == []
