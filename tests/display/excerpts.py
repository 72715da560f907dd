"""A message by hand, hostile in all its parts, and what its words add."""

from nbspam.display.page import ExplanationView, explanation_page
from nbspam.reading.message import parse
from nbspam.scoring.explanation import Explanation, Word
from nbspam.scoring.highlights import highlight
from nbspam.scoring.verdict import Score, Verdict
from nbspam.tokens.tokenized import TokenizerOutputs, tokenize

HOSTILE = (
    b"Subject: =?utf-8?q?Free_prize_=3Cscript=3Ealert=281=29=3C/script=3E_=E2=80=AEgpj.exe?=\n"
    b'From: "\x1b[31m<img src=x onerror=alert(1)>" <win@shop.example>\n'
    b"Content-Type: text/plain; charset=utf-8\n\n"
    b"\x1b[2J\x1b]0;owned\x07Claim your free prize, Ondrej!\n\n"
    b"</div></body><script src=//evil.example/x.js></script>"
    b"<svg onload=alert(2)> \"'><iframe src=javascript:alert(3)>\n"
    b"See you at lunch? \xe5\x85\x8d\xe8\xb2\xbb\xe9\x80\x81 \xf0\x9f\x9a\x80 cafe\xcc\x81 "
    b"\xe2\x80\xaeevil\xe2\x80\xac &lt;b&gt; http://shop.example/win?a=1&b=2\n"
)
SHARES = {"free": 0.8, "prize": 1.1, "subject:free": 1.5, "from:@shop.example": 0.9}
SHARES |= {"lunch": -0.9, "host:shop.example": 0.6, "免費": 0.5}


def hostile_excerpt():
    excerpt = tokenize(parse(HOSTILE), outputs=TokenizerOutputs(excerpt=2_000)).excerpt
    assert excerpt is not None
    return highlight(excerpt, SHARES)


def explanation():
    words = tuple(Word(token, 3 * share, (2, 1234), share) for token, share in SHARES.items())
    score = Score(2.0, 0.9, (0.1, 0.9))
    return Explanation(score, "spam", "ham", {"calibration": -1.2}, words, 3, 0.1, 4.0)


HOSTILE_NAME = "<script>alert(4)</script>\x1b[31m\u202e"


def page_of_hostile():
    verdict = Verdict(
        "spam", 0.9, 2.0, {"ham": 0.1, "spam": 0.9}, HOSTILE_NAME, None, explanation().score
    )
    found = explanation()
    view = ExplanationView(
        verdict,
        found,
        "spam",
        hostile_excerpt(),
        list(found.words),
        [("calibration: any message", -1.2), ("sum: the log-odds", 2.0)],
        [(f"in {HOSTILE_NAME}", "of 2,500"), ("in spam", "of 2,500")],
        ["spam: “<b>” & co."],
    )
    return explanation_page(view, "1.2.3")
