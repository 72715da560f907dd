import math

import pytest
from closeness import close
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from small_models import learn, with_settings
from whole_models import taught

from nbspam.bayes.event_model import logit
from nbspam.errors import OptionError
from nbspam.names import ALLOWED_SENDER
from nbspam.reading.senders import ListedSender
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.verdict import (
    IN_CONTAINER,
    TOO_FEW_WORDS,
    TOO_LARGE,
    CutOffs,
    classify_score,
    make_verdict,
)
from nbspam.store.metadata import HAM_CUTOFF, SPAM_CUTOFF
from nbspam.tokens.tokenized import LIMITS

LEARNED = learn()
METADATA = LEARNED.fit.metadata
SCORE = LEARNED.classifier.score
OF_SPAM, OF_HAM = map(SCORE, ({"prize", "winner"}, {"meeting", "tomorrow"}))


@each(
    "probability, verdict",
    [(0.0, "ham"), (0.49, "ham"), (0.51, "unsure"), (0.89, "unsure"), (0.91, "spam"), (1, "spam")],
)
def test_by_default_spam_begins_at_nine_tenths_and_ham_ends_at_a_half(probability, verdict):
    assert (SPAM_CUTOFF, HAM_CUTOFF) == (0.9, 0.5) == CutOffs()[:2]
    score = OF_SPAM._replace(probability=probability, log_odds=logit(probability))
    assert classify_score(METADATA, score, CutOffs()) == verdict
    assert make_verdict(METADATA, score, CutOffs.from_model(METADATA)).verdict == verdict


def test_spam_needs_more_than_the_cut_off_and_ham_no_more():
    learned = learn([("ham", {"a"}), ("spam", {"a"})])
    score = learned.classifier.score({"a"})
    assert score.probability == 0.5
    assert classify_score(learned.fit.metadata, score, CutOffs()) == "ham"
    assert classify_score(learned.fit.metadata, score, CutOffs(0.5, 0.5)) == "ham"
    assert classify_score(learned.fit.metadata, score, CutOffs(0.5, 0.4)) == "unsure"
    assert classify_score(learned.fit.metadata, score, CutOffs(0.4, 0.4)) == "spam"


@each(
    "known, text, of_spam, of_ham",
    [
        (0, 0, TOO_FEW_WORDS, TOO_FEW_WORDS),
        (0, 9, TOO_FEW_WORDS, TOO_FEW_WORDS),
        (1, 1, None, None),
        (1, 10, None, None),
        (1, 11, None, TOO_FEW_WORDS),
        (5, 104, None, TOO_FEW_WORDS),
        *((n, 10 * n, None, None) for n in range(2, 2_000, 97)),
        *((n, 10 * n + 1, None, TOO_FEW_WORDS) for n in range(2, 2_000, 97)),
    ],
)
def test_spam_needs_a_known_word_and_ham_one_in_ten_or_there_is_a_reason(
    known, text, of_spam, of_ham
):
    for score, verdict, reason in ((OF_SPAM, "spam", of_spam), (OF_HAM, "ham", of_ham)):
        found = score._replace(known=known, text=text)
        judged = make_verdict(METADATA, found, CutOffs(), "a\tb")
        assert judged.reason == reason
        assert judged.verdict == classify_score(METADATA, found, CutOffs())
        assert judged.verdict == ("unsure" if reason else verdict)
        assert judged.as_json().get("reason") == reason
        fields = judged.as_line().split("\t")
        assert fields[:2] == [judged.verdict, f"{judged.probability:.4f}"]
        assert fields[3:] == ([reason] if reason else [])
        assert judged.reason_suffix == (f" ({reason})" if reason else "")
        assert judged.log_odds == round(score.log_odds, 9)  # the number stays


@each("limit", sorted(LIMITS))
def test_what_was_not_read_whole_is_unsure_where_its_score_says_ham(limit):
    judged = make_verdict(METADATA, OF_HAM, CutOffs(), "a", tokens=["word", limit])
    why = IN_CONTAINER if limit == "limit:container" else TOO_LARGE
    assert judged.as_line().split("\t")[::3] == ["unsure", why]
    assert judged.as_json()["reason"] == why
    assert judged.log_odds == round(OF_HAM.log_odds, 9)
    assert make_verdict(METADATA, OF_HAM, CutOffs(), tokens=["word"]).verdict == "ham"
    for score, reason in ((OF_SPAM, None), (OF_HAM._replace(known=0), TOO_FEW_WORDS)):
        cut_off = CutOffs()
        judged = make_verdict(METADATA, score, cut_off, tokens=[limit])
        assert (judged.verdict, judged.reason) == (classify_score(METADATA, score, cut_off), reason)
    sender = ListedSender(ALLOWED_SENDER, "ann@example.org", "@example.org")
    judged = make_verdict(METADATA, OF_HAM, CutOffs(), sender=sender, tokens=[limit])
    assert (judged.verdict, judged.reason) == ("ham", ALLOWED_SENDER)


def test_between_the_cut_offs_the_number_is_the_reason():
    p = OF_SPAM.probability
    for cut_offs, verdict, reason in (
        (CutOffs(p + 1e-6, p - 1e-6), "unsure", None),
        (CutOffs(p - 1e-6, p - 2e-6), "spam", TOO_FEW_WORDS),
        (CutOffs(p + 2e-6, p + 1e-6), "ham", TOO_FEW_WORDS),
    ):
        assert classify_score(METADATA, OF_SPAM, cut_offs) == verdict
        judged = make_verdict(METADATA, OF_SPAM._replace(known=0), cut_offs)
        assert (judged.verdict, judged.reason) == ("unsure", reason)


def test_a_model_of_one_class_gives_that_as_the_reason():
    model = taught([("spam", {"prize"}, 1)] * 9, ("ham", "spam"))
    classifier = Classifier(model.metadata, lambda _: model.counts)
    judged = make_verdict(model.metadata, classifier.score({"prize"}), CutOffs())
    assert judged.as_line() == "unsure\t0.5000\t-\ttoo few learned classes"


def test_of_three_classes_the_most_probable_one_is_the_verdict():
    learned = learn([("a", {"x"}), ("b", {"y"}), ("c", {"z"})])
    scores = map(learned.classifier.score, ["x", "y", "z"])
    assert [classify_score(learned.fit.metadata, s, CutOffs()) for s in scores] == ["a", "b", "c"]


@each(
    "spam, ham, cost, expected, of_model",
    [
        (None, None, None, (0.9, 0.5), (0.7, 0.2)),
        (0.95, None, None, (0.95, 0.5), (0.95, 0.2)),
        (0.1, None, None, (0.1, 0.1), (0.1, 0.1)),
        (None, 0.1, None, (0.9, 0.1), (0.7, 0.1)),
        (None, 0.9, None, (0.9, 0.9), None),
        (0.8, 0.1, None, (0.8, 0.1), (0.8, 0.1)),
        (1.0, 0.0, None, (1.0, 0.0), (1.0, 0.0)),
        (None, None, 9, (0.9, 0.9), (0.9, 0.9)),
        (None, None, 1, (0.5, 0.5), (0.5, 0.5)),
    ],
)
def test_cut_offs_follow_from_the_options_and_else_from_the_model(
    spam, ham, cost, expected, of_model
):
    assert close(expected) == CutOffs().overridden(spam, ham, cost)[:2]
    if of_model is not None:
        assert close(of_model) == CutOffs(0.7, 0.2).overridden(spam, ham, cost)[:2]


NAN, INFINITY = math.nan, math.inf


@each(
    "spam, ham, cost, sentence",
    [
        (1.5, None, None, "the spam cut-off must be between 0 and 1, not 1.5; 0.9 is the default"),
        (NAN, None, None, "the spam cut-off must be between 0 and 1, not nan; 0.9 is the default"),
        (None, -0.1, None, "the ham cut-off must be between 0 and 1, not -0.1; 0.5 is the default"),
        (None, NAN, None, "the ham cut-off must be between 0 and 1, not nan;"),
        (0.1, 0.9, None, "the ham cut-off, 0.9, is above the spam cut-off, 0.1; lower the one or"),
        (None, 0.95, None, "the ham cut-off, 0.95, is above the spam cut-off, 0.9;"),
        (None, None, 0, "the ham cost must be above 0, not 0; 9 is a careful choice"),
        (None, None, NAN, "the ham cost must be above 0, not nan;"),
        (None, None, INFINITY, "the ham cost must be above 0, not inf;"),
        (0.9, None, 9, "the ham cost sets both cut-offs; leave out the spam and the ham cut-off"),
        (0.9, 0.1, 9, "the ham cost sets both cut-offs;"),
    ],
)
def test_cut_offs_that_make_no_sense_are_refused(spam, ham, cost, sentence):
    with pytest.raises(OptionError) as error:
        CutOffs().overridden(spam, ham, cost)
    assert str(error.value).startswith(sentence)
    assert "\n" not in str(error.value)
    with pytest.raises(OptionError, match=r"the ham cut-off, 0.8, is above the spam cut-off, 0.7;"):
        CutOffs(0.7, 0.2).overridden(ham=0.8)


CHOSEN = st.none() | st.floats(0, 1)


@given(st.floats(0, 1), st.floats(0, 1), CHOSEN, CHOSEN, st.none() | st.floats(1e-9, 1e9))
def test_cut_offs_that_are_allowed_are_in_order_and_are_those_that_were_asked_for(
    a, b, spam, ham, cost
):
    before = CutOffs(max(a, b), min(a, b))
    try:
        after = before.overridden(spam, ham, cost)
    except OptionError:
        both = spam is not None or ham is not None
        above = ham is not None and ham > (before.spam if spam is None else spam)
        assert above if cost is None else both
        return
    assert 0 <= after.ham <= after.spam <= 1
    if cost is not None:
        assert after.spam == after.ham == close(cost / (1 + cost))
    else:
        assert after.spam == (before.spam if spam is None else spam)
        if ham is not None:
            assert after.ham == ham
        elif spam is None or spam >= before.ham:
            assert after.ham == before.ham


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_model_keeps_its_cut_offs_and_all_else(a, b):
    assert CutOffs.from_model(METADATA) == CutOffs()
    cut_offs = CutOffs(max(a, b), min(a, b))
    changed = cut_offs.applied_to(METADATA)
    assert CutOffs.from_model(changed) == cut_offs
    assert with_settings(changed, spam_cutoff=0.9, ham_cutoff=0.5) == METADATA
    assert CutOffs().applied_to(changed) == METADATA


def test_cut_offs_of_0_and_1_are_never_and_always():
    for score in (OF_SPAM, OF_HAM):
        assert classify_score(METADATA, score, CutOffs(1, 1)) == "ham"
        assert classify_score(METADATA, score, CutOffs(0, 0)) == "spam"
        assert classify_score(METADATA, score, CutOffs(1, 0)) == "unsure"
