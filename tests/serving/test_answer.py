"""What is said of a message: the scale, the symbols, the head that spamc goes on from."""

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nbspam.learning.settings import TrainingSettings, empty_metadata
from nbspam.names import ALLOWED_SENDER, BLOCKED_SENDER
from nbspam.reading.senders import ListedSender
from nbspam.scoring.verdict import CutOffs, Score, Verdict, classify_score
from nbspam.scoring.version import FilterVersion
from nbspam.serving.answer import ScoredVerdict, header_for_spamc, matching_tests, scored_verdict
from nbspam.serving.spamd import RefusedError
from nbspam.store.metadata import Metadata
from nbspam.tokens.tokenized import TokenizedMessage


def metadata_of(classes=("ham", "spam"), messages=None) -> Metadata:
    metadata = empty_metadata(classes, "spam", TrainingSettings())
    learned = metadata.learned._replace(messages=messages or (9,) * len(classes))
    return metadata._replace(learned=learned)


def score_of(log_odds):
    p = 0.0 if log_odds < -700 else 1 / (1 + math.exp(-log_odds))
    return Score(log_odds, p, (1 - p, p), known=9, text=9)


class Scored:
    """A classifier that gives every message the same score."""

    def __init__(self, metadata, score):
        self.metadata = metadata
        self._score = score

    def score(self, tokens, extras):
        return self._score


def tenths(metadata, score, cut_offs):
    spam_filter = FilterVersion(Scored(metadata, score), cut_offs)
    judged = scored_verdict(spam_filter, TokenizedMessage("-", None, []))
    assert judged.spam == (judged.verdict.verdict == "spam")
    return judged.tenths


ODDS = st.floats(-2e9, 2e9) | st.floats(-8, 8) | st.floats(-0.06, 0.06)


@given(ODDS, ODDS, st.floats(0, 1))
@example(0.0, 1e-300, 0.5)
@example(-0.04, 0.04, 0.5)
@example(5.0, 7.0, 1.0)
@example(-5.0, -7.0, 0.0)
def test_the_scale_never_contradicts_the_verdict_nor_the_order(one, other, cut_off):
    metadata, cut_offs = metadata_of(), CutOffs(cut_off, cut_off)
    low, high = sorted([one, other])
    found = [tenths(metadata, score_of(odds), cut_offs) for odds in (low, high)]
    assert found == sorted(found)
    for odds, points in zip((low, high), found, strict=True):
        assert (points >= 50) == (classify_score(metadata, score_of(odds), cut_offs) == "spam")
        assert -1000 <= points <= 1000


def test_a_point_is_a_nat_above_the_cut_off():
    points = {
        0.5: {0.5: 4.9, 0.501: 5.0, 0.9: 7.2, 0.99: 9.6, 0.01: 0.4},
        0.9: {0.9: 4.9, 0.99: 7.4, 0.999: 9.7, 0.5: 2.8, 0.01: -1.8},
    }
    for cut_off, expected in points.items():
        for p, n in expected.items():
            score = score_of(math.log(p / (1 - p)))
            assert tenths(metadata_of(), score, CutOffs(cut_off, cut_off)) / 10 == n, (p, cut_off)


def test_both_ends_are_bounded():
    for odds, cut_off, wanted in (
        (1e9, 0.9, 1000),
        (-1e9, 0.9, -1000),
        (3, 1, -1000),
        (3, 0, 1000),
    ):
        cut_offs = CutOffs(cut_off, min(cut_off, 0.5))
        assert tenths(metadata_of(), score_of(float(odds)), cut_offs) == wanted


@given(st.lists(st.floats(-30, 30), min_size=3, max_size=3))
@example([0.0, 0.0, 0.0])
def test_of_three_classes_the_most_probable_decides(log_scores):
    metadata = metadata_of(("ham", "promo", "spam"))
    weights = [math.exp(score) for score in log_scores]
    probabilities = tuple(w / sum(weights) for w in weights)
    score = Score(0.0, probabilities[2], probabilities, log_scores=tuple(log_scores))
    called = classify_score(metadata, score, CutOffs())
    assert (tenths(metadata, score, CutOffs()) >= 50) == (called == "spam")


def test_a_model_of_one_side_and_what_has_no_known_word_are_below_the_threshold():
    for classes, cut_off, points in (
        (("ham", "spam"), 0.5, 4.9),
        (("ham", "spam"), 0.9, 2.8),  # of a probability of 0.5
        (("ham", "promo", "spam"), 0.9, 4.9),
    ):
        metadata = metadata_of(classes, (5,) + (0,) * (len(classes) - 1))
        score = Score(0.0, 0.5, (1 / len(classes),) * len(classes))
        assert tenths(metadata, score, CutOffs(cut_off, 0.5)) / 10 == points, (classes, cut_off)
    unknown = score_of(9.0)._replace(known=0)  # however probable
    assert tenths(metadata_of(), unknown, CutOffs()) == 49


BAYES = [
    *((0.0, "BAYES_00"), (0.0099, "BAYES_00"), (0.01, "BAYES_05"), (0.3, "BAYES_40")),
    *((0.5, "BAYES_50"), (0.6, "BAYES_60"), (0.95, "BAYES_95"), (0.9989, "BAYES_99")),
    *((0.999, "BAYES_99,BAYES_999"), (1.0, "BAYES_99,BAYES_999")),
]


def test_a_list_of_senders_decides_on_which_side_of_the_threshold_the_score_is():
    for odds in (-9.0, 0.0, 9.0):
        spam_filter = FilterVersion(Scored(metadata_of(), score_of(odds)), CutOffs())
        for reason, is_spam in ((BLOCKED_SENDER, True), (ALLOWED_SENDER, False), (None, odds > 8)):
            sender = ListedSender(reason, "a@b.org", "@b.org")
            message = TokenizedMessage("-", None, [], sender=sender)
            scored = scored_verdict(spam_filter, message)
            assert scored.spam == is_spam == (scored.tenths >= 50)
            name = f"NBSPAM_{reason.upper().replace(' ', '_')}" if reason else "NBSPAM_TOO_FEW"
            assert reason is None or matching_tests(scored)[1] == name


def test_symbols():
    for probability, names in BAYES:
        score = Score(0.0, probability, (1 - probability, probability))

        def judged(called, is_spam, p=probability, score=score):
            verdict = Verdict(called, p, 0.0, {"ham": 1 - p, called: p}, "-", None, score)
            return ScoredVerdict(verdict, is_spam, 50)

        for called, spam, symbol in (("spam", True, "SPAM"), ("ham", False, "HAM")):
            found = ",".join(matching_tests(judged(called, spam)))
            assert found == f"NBSPAM_{symbol},{names}"
        unsure = judged("unsure", False)
        assert matching_tests(unsure)[0] == "NBSPAM_UNSURE"
        reasoned = unsure._replace(verdict=unsure.verdict._replace(reason="too few known words"))
        why = "NBSPAM_UNSURE,NBSPAM_TOO_FEW_KNOWN_WORDS"
        assert ",".join(matching_tests(reasoned)) == f"{why},{names}"
        # A class of the user's own: its name might hold a comma.
        assert matching_tests(judged("a,b", False))[0] == "NBSPAM_HAM"


# HEADERS


def spamc_appends(message, head):
    for at in range(len(message)):
        for end in (b"\r\n\r\n", b"\n\n"):
            if message.startswith(end, at):
                body = message[at + len(end) :]
                return head + body.split(b"\0")[0].ljust(len(body), b"\0")
    return None


def with_header(message):
    at = message.find(b"\n\n")
    if at < 0:
        return b"X: y\n\n" + message
    return message[: at + 1] + b"X: y\n" + message[at + 1 :]


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"\r", b"\0", b"b: c"]), max_size=12))
def test_what_spamc_makes_of_the_head_is_the_message(pieces):
    message = b"".join(pieces)
    rewritten = with_header(message)
    try:
        head = header_for_spamc(message, rewritten)
    except RefusedError as error:
        assert error.line.startswith(b"SPAMD/1.0 65 Message refused: HEADERS ")
        return
    assert spamc_appends(message, head) == rewritten


def test_a_usual_mail_has_a_head_and_a_rewriting_of_the_body_is_refused():
    assert header_for_spamc(b"To: a\n\nb\n\nc", b"To: a\nX: y\n\nb\n\nc") == b"To: a\nX: y\n\n"
    crlf = b"To: a\r\n\r\nb\r\n"
    assert header_for_spamc(crlf, b"To: a\r\nX: y\r\n\r\nb\r\n") == b"To: a\r\nX: y\r\n\r\n"
    with pytest.raises(RefusedError, match="use PROCESS"):
        header_for_spamc(b"To: a\n\nb", b"To: a\n\nc")


def test_a_refusal_is_one_printable_line():
    line = RefusedError(76, "a\r\nSpam: True ; 1 / 1\r\n\r\n\x1b[31m" + "x" * 1000).line
    assert line.endswith(b"\r\n")
    assert line.count(b"\n") == 1
    assert len(line) < 600
    assert json.loads(json.dumps(line.decode("ascii")))
    assert b"\x1b" not in line
