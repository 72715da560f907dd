import math

import pytest
from small_models import learn

from nbspam.errors import OptionError
from nbspam.scoring.verdict import CutOffs, verdict_of


def close(expected):
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


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


def test_spam_needs_more_than_the_cut_off():
    learned = learn([("ham", {"a"}), ("spam", {"a"})])
    score = learned.classifier.score({"a"})
    assert score.probability == 0.5
    assert verdict_of(learned.fit.metadata, score, CutOffs()) == "ham"


def test_cut_offs_of_0_and_1_are_never_and_always():
    learned = learn()
    metadata = learned.fit.metadata
    for tokens in ({"prize", "winner", "click"}, {"meeting", "lunch"}):
        score = learned.classifier.score(tokens)
        assert verdict_of(metadata, score, CutOffs(1, 1)) == "ham"
        assert verdict_of(metadata, score, CutOffs(0, 0)) == "spam"
        assert verdict_of(metadata, score, CutOffs(1, 0)) == "unsure"


def test_of_three_classes_the_most_probable_one_is_the_verdict():
    learned = learn([("a", {"x"}), ("b", {"y"}), ("c", {"z"})])
    classifier = learned.classifier
    assert [
        verdict_of(learned.fit.metadata, classifier.score({token}), CutOffs()) for token in "xyz"
    ] == [
        "a",
        "b",
        "c",
    ]


# Cut-offs


@pytest.mark.parametrize(
    ("spam", "ham", "cost", "expected"),
    [
        (None, None, None, (0.5, 0.5)),
        (0.9, None, None, (0.9, 0.5)),
        (0.3, None, None, (0.3, 0.3)),
        (None, 0.1, None, (0.5, 0.1)),
        (0.9, 0.1, None, (0.9, 0.1)),
        (0.0, 0.0, None, (0.0, 0.0)),
        (1.0, 1.0, None, (1.0, 1.0)),
        (None, None, 9, (0.9, 0.9)),
        (None, None, 1, (0.5, 0.5)),
        (None, None, 0.25, (0.2, 0.2)),
    ],
)
def test_cut_offs_follow_from_the_options(spam, ham, cost, expected):
    assert close(expected) == tuple(CutOffs.of_options(spam, ham, cost))


NAN, INFINITY = math.nan, math.inf


@pytest.mark.parametrize(
    ("spam", "ham", "cost", "named"),
    [
        (1.5, None, None, "the spam cut-off must be"),
        (-0.1, None, None, "the spam cut-off must be"),
        (NAN, None, None, "the spam cut-off must be"),
        (None, -0.1, None, "the ham cut-off must be"),
        (0.5, NAN, None, "the ham cut-off must be"),
        (None, NAN, None, "cut-off must be"),
        (0.1, 0.9, None, "the ham cut-off, 0.9, is above the spam cut-off, 0.1;"),
        (None, None, 0, "the ham cost must be"),
        (None, None, -1, "the ham cost must be"),
        (None, None, NAN, "the ham cost must be"),
        (None, None, INFINITY, "the ham cost must be"),
        (0.9, None, 9, "the ham cost sets both"),
        (None, 0.1, 9, "the ham cost sets both"),
    ],
)
def test_cut_offs_that_make_no_sense_are_refused(spam, ham, cost, named):
    with pytest.raises(OptionError, match=named) as error:
        CutOffs.of_options(spam, ham, cost)
    assert "\n" not in str(error.value)


def test_a_ham_cut_off_above_the_models_spam_cut_off_is_refused():
    with pytest.raises(OptionError, match=r"the ham cut-off, 0.8, is above the spam cut-off, 0.5;"):
        CutOffs.of_options(ham=0.8)
    assert CutOffs.of_options(ham=0.8, default=0.9) == (0.9, 0.8)
