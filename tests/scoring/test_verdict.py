import math

import pytest
from closeness import close
from hypothesis import given
from hypothesis import strategies as st
from small_models import learn, with_settings
from whole_models import taught

from nbspam.bayes.posterior import logit
from nbspam.errors import OptionError
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.verdict import TOO_FEW_WORDS, CutOffs, verdict_of, verdict_on
from nbspam.store.metadata import HAM_CUTOFF, SPAM_CUTOFF


def test_two_classes_have_a_verdict_on_either_side():
    learned = learn()
    classifier = learned.classifier
    metadata = learned.fit.metadata
    assert verdict_of(metadata, classifier.score({"prize", "winner"}), CutOffs()) == "spam"
    assert verdict_of(metadata, classifier.score({"meeting", "tomorrow"}), CutOffs()) == "ham"


def test_between_the_cut_offs_a_message_is_unsure():
    learned = learn()
    score = learned.classifier.score({"prize"})
    p = score.probability
    metadata = learned.fit.metadata
    assert verdict_of(metadata, score, CutOffs(spam=p + 1e-6, ham=p - 1e-6)) == "unsure"
    assert verdict_of(metadata, score, CutOffs(spam=p - 1e-6, ham=p - 2e-6)) == "spam"
    assert verdict_of(metadata, score, CutOffs(spam=p + 2e-6, ham=p + 1e-6)) == "ham"


@pytest.mark.parametrize(
    ("probability", "verdict"),
    [(0.0, "ham"), (0.49, "ham"), (0.51, "unsure"), (0.89, "unsure"), (0.91, "spam"), (1, "spam")],
)
def test_by_default_spam_begins_at_nine_tenths_and_ham_ends_at_a_half(probability, verdict):
    learned = learn()
    score = learned.classifier.score({"prize"})
    score = score._replace(probability=probability, log_odds=logit(probability))
    metadata = learned.fit.metadata
    assert verdict_of(metadata, score, CutOffs()) == verdict
    assert verdict_on(metadata, score, CutOffs.of_model(metadata)).verdict == verdict


def test_spam_needs_more_than_the_cut_off_and_ham_no_more():
    learned = learn([("ham", {"a"}), ("spam", {"a"})])
    score = learned.classifier.score({"a"})
    assert score.probability == 0.5
    assert verdict_of(learned.fit.metadata, score, CutOffs()) == "ham"
    assert verdict_of(learned.fit.metadata, score, CutOffs(0.5, 0.5)) == "ham"
    assert verdict_of(learned.fit.metadata, score, CutOffs(0.5, 0.4)) == "unsure"
    assert verdict_of(learned.fit.metadata, score, CutOffs(0.4, 0.4)) == "spam"


def test_cut_offs_of_0_and_1_are_never_and_always():
    learned = learn()
    metadata = learned.fit.metadata
    for tokens in ({"prize", "winner", "click"}, {"meeting", "lunch"}):
        score = learned.classifier.score(tokens)
        assert verdict_of(metadata, score, CutOffs(1, 1)) == "ham"
        assert verdict_of(metadata, score, CutOffs(0, 0)) == "spam"
        assert verdict_of(metadata, score, CutOffs(1, 0)) == "unsure"


@pytest.mark.parametrize(
    ("known", "text", "spam", "ham"),
    [
        (0, 0, "unsure", "unsure"),
        (0, 9, "unsure", "unsure"),
        (1, 1, "spam", "ham"),
        (1, 10, "spam", "ham"),
        (1, 11, "spam", "unsure"),
        (7, 70, "spam", "ham"),
        (7, 71, "spam", "unsure"),
        (5, 104, "spam", "unsure"),
    ],
)
def test_spam_needs_a_known_word_and_ham_one_in_ten(known, text, spam, ham):
    learned = learn()
    of_spam, of_ham = map(learned.classifier.score, ({"prize", "winner"}, {"meeting", "tomorrow"}))
    for score, verdict in ((of_spam, spam), (of_ham, ham)):
        score = score._replace(known=known, text=text)
        assert verdict_of(learned.fit.metadata, score, CutOffs()) == verdict


@given(st.integers(1, 2_000))
def test_one_in_ten_is_counted_exactly(known):
    metadata, score = ONE_IN_TEN
    for unknown, verdict in ((9 * known, "ham"), (9 * known + 1, "unsure")):
        found = score._replace(known=known, text=known + unknown)
        assert verdict_of(metadata, found, CutOffs()) == verdict


ONE_IN_TEN = learn().fit.metadata, learn().classifier.score({"meeting", "tomorrow"})


# Where not the number decides


@pytest.mark.parametrize(
    ("known", "text", "of_spam", "of_ham"),
    [
        (0, 0, TOO_FEW_WORDS, TOO_FEW_WORDS),
        (0, 9, TOO_FEW_WORDS, TOO_FEW_WORDS),
        (1, 10, None, None),
        (1, 11, None, TOO_FEW_WORDS),
    ],
)
def test_a_verdict_that_is_not_the_numbers_has_a_reason(known, text, of_spam, of_ham):
    learned = learn()
    metadata, score = learned.fit.metadata, learned.classifier.score
    for tokens, reason in (({"prize", "winner"}, of_spam), ({"meeting", "tomorrow"}, of_ham)):
        found = score(tokens)._replace(known=known, text=text)
        judged = verdict_on(metadata, found, CutOffs(), "a\tb")
        assert judged.reason == reason
        assert (judged.verdict == "unsure") == (reason is not None)
        assert judged.as_json().get("reason") == reason
        fields = judged.as_line().split("\t")
        assert fields[:2] == [judged.verdict, f"{judged.probability:.4f}"]
        assert fields[3:] == ([reason] if reason else [])
        assert judged.remark == (f" ({reason})" if reason else "")
        assert judged.log_odds == score(tokens).log_odds  # the number stays


def test_between_the_cut_offs_the_number_is_the_reason():
    learned = learn()
    score = learned.classifier.score({"prize"})._replace(known=0)
    p = score.probability
    for cut_offs, reason in (
        (CutOffs(p + 1e-6, p - 1e-6), None),
        (CutOffs(p - 1e-6, p - 2e-6), TOO_FEW_WORDS),
        (CutOffs(p + 2e-6, p + 1e-6), TOO_FEW_WORDS),
    ):
        judged = verdict_on(learned.fit.metadata, score, cut_offs)
        assert (judged.verdict, judged.reason) == ("unsure", reason)


def test_a_model_of_one_class_gives_that_as_the_reason():
    model = taught([("spam", {"prize"}, 1)] * 9, ("ham", "spam"))
    classifier = Classifier(model.metadata, lambda _: model.counts)
    judged = verdict_on(model.metadata, classifier.score({"prize"}), CutOffs())
    assert judged.as_line() == "unsure\t0.5000\t-\ttoo few learned classes"


def test_of_three_classes_the_most_probable_one_is_the_verdict():
    learned = learn([("a", {"x"}), ("b", {"y"}), ("c", {"z"})])
    classifier = learned.classifier
    assert [
        verdict_of(learned.fit.metadata, classifier.score({token}), CutOffs()) for token in "xyz"
    ] == ["a", "b", "c"]


# Cut-offs


MODEL = CutOffs(0.7, 0.2)


def test_the_default_protects_ham():
    assert (SPAM_CUTOFF, HAM_CUTOFF) == (0.9, 0.5) == CutOffs()


@pytest.mark.parametrize(
    ("spam", "ham", "cost", "expected"),
    [
        (None, None, None, (0.9, 0.5)),
        (0.95, None, None, (0.95, 0.5)),
        (0.3, None, None, (0.3, 0.3)),
        (None, 0.1, None, (0.9, 0.1)),
        (None, 0.9, None, (0.9, 0.9)),
        (0.8, 0.1, None, (0.8, 0.1)),
        (0.0, 0.0, None, (0.0, 0.0)),
        (1.0, 1.0, None, (1.0, 1.0)),
        (1.0, 0.0, None, (1.0, 0.0)),
        (0.0, None, None, (0.0, 0.0)),
        (None, None, 9, (0.9, 0.9)),
        (None, None, 99, (0.99, 0.99)),
        (None, None, 1, (0.5, 0.5)),
        (None, None, 0.25, (0.2, 0.2)),
    ],
)
def test_cut_offs_follow_from_the_options(spam, ham, cost, expected):
    assert close(expected) == tuple(CutOffs().changed(spam, ham, cost))


@pytest.mark.parametrize(
    ("spam", "ham", "cost", "expected"),
    [
        (None, None, None, (0.7, 0.2)),
        (0.95, None, None, (0.95, 0.2)),
        (0.1, None, None, (0.1, 0.1)),
        (None, 0.6, None, (0.7, 0.6)),
        (0.6, 0.4, None, (0.6, 0.4)),
        (None, None, 9, (0.9, 0.9)),
    ],
)
def test_what_is_not_asked_for_stays_as_the_model_has_it(spam, ham, cost, expected):
    assert close(expected) == tuple(MODEL.changed(spam, ham, cost))


NAN, INFINITY = math.nan, math.inf


@pytest.mark.parametrize(
    ("spam", "ham", "cost", "sentence"),
    [
        (1.5, None, None, "the spam cut-off must be between 0 and 1, not 1.5; 0.9 is the default"),
        (-0.1, None, None, "the spam cut-off must be between 0 and 1, not -0.1; 0.9 is the"),
        (NAN, None, None, "the spam cut-off must be between 0 and 1, not nan; 0.9 is the default"),
        (INFINITY, None, None, "the spam cut-off must be between 0 and 1, not inf;"),
        (None, -0.1, None, "the ham cut-off must be between 0 and 1, not -0.1; 0.5 is the default"),
        (0.5, NAN, None, "the ham cut-off must be between 0 and 1, not nan;"),
        (None, NAN, None, "the ham cut-off must be between 0 and 1, not nan;"),
        (NAN, NAN, None, "the spam cut-off must be between 0 and 1, not nan;"),
        (
            0.1,
            0.9,
            None,
            "the ham cut-off, 0.9, is above the spam cut-off, 0.1; lower the one or raise",
        ),
        (None, 0.95, None, "the ham cut-off, 0.95, is above the spam cut-off, 0.9;"),
        (None, None, 0, "the ham cost must be above 0, not 0; 9 is a careful choice"),
        (None, None, -1, "the ham cost must be above 0, not -1;"),
        (None, None, NAN, "the ham cost must be above 0, not nan;"),
        (None, None, INFINITY, "the ham cost must be above 0, not inf;"),
        (0.9, None, 9, "the ham cost sets both cut-offs; leave out the spam and the ham cut-off"),
        (None, 0.1, 9, "the ham cost sets both cut-offs;"),
        (0.9, 0.1, 9, "the ham cost sets both cut-offs;"),
    ],
)
def test_cut_offs_that_make_no_sense_are_refused(spam, ham, cost, sentence):
    with pytest.raises(OptionError) as error:
        CutOffs().changed(spam, ham, cost)
    assert str(error.value).startswith(sentence)
    assert "\n" not in str(error.value)


def test_a_ham_cut_off_above_the_models_spam_cut_off_is_refused():
    with pytest.raises(OptionError, match=r"the ham cut-off, 0.8, is above the spam cut-off, 0.7;"):
        MODEL.changed(ham=0.8)
    assert CutOffs(0.9, 0.5).changed(ham=0.8) == (0.9, 0.8)


CHOSEN = st.none() | st.floats(0, 1)


@given(st.floats(0, 1), st.floats(0, 1), CHOSEN, CHOSEN, st.none() | st.floats(1e-9, 1e9))
def test_cut_offs_that_are_allowed_are_in_order_and_are_those_that_were_asked_for(
    a, b, spam, ham, cost
):
    before = CutOffs(max(a, b), min(a, b))
    try:
        after = before.changed(spam, ham, cost)
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
    metadata = learn().fit.metadata
    assert CutOffs.of_model(metadata) == CutOffs()
    cut_offs = CutOffs(max(a, b), min(a, b))
    changed = cut_offs.stored_in(metadata)
    assert CutOffs.of_model(changed) == cut_offs
    assert with_settings(changed, spam_cutoff=0.9, ham_cutoff=0.5) == metadata
    assert CutOffs().stored_in(changed) == metadata
