"""What the model does not know is no certainty: what few or unknown words may do to a score."""

import math

import pytest
from channel_models import labelled_mails, many_mails
from closeness import close
from hypothesis import given
from hypothesis import strategies as st
from small_models import ALPHAS, PRIORS, SCORINGS, learn, with_learned
from whole_models import taught

from nbspam.bayes.calibration import Calibration, Calibrations
from nbspam.bayes.posterior import logit
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.explanation import explain
from nbspam.scoring.verdict import KNOWN_SHARE, CutOffs, verdict_of, verdict_on
from nbspam.tokens.kinds import HOST, TEXT, channel_of

TWO = ("ham", "spam")
# Unknown tokens of every channel, as in a script that the model has not seen.
UNKNOWN = st.sets(
    st.sampled_from(["зима", "лето", "天", "from:зима", "received:зима", "header:зима", "by:зима"])
    | st.integers(0, 999).map("unknown{}".format),
    max_size=30,
)
CUT_OFFS = st.builds(
    lambda a, b: CutOffs(max(a, b), min(a, b)), st.floats(0.01, 0.99), st.floats(0.01, 0.99)
)


def prior_of(metadata):
    """Return the log-odds of a fixed prior, or of the messages with half a one on both sides."""
    if metadata.settings.prior is not None:
        return logit(metadata.settings.prior)
    ham, spam = metadata.learned.messages
    return math.log((spam + 0.5) / (ham + 0.5))


@st.composite
def far_fetched(draw, learned):
    """Draw a classifier of the model with any calibrations, as sure as may be."""
    both = []
    for calibration in learned.fit.metadata.learned.calibrations[0]:
        size = len(calibration.coefficients)
        coefficients = draw(st.lists(st.floats(-30, 30), min_size=size, max_size=size))
        ranges = draw(
            st.lists(
                st.tuples(st.floats(-9, 0), st.floats(0, 9)), min_size=size - 1, max_size=size - 1
            )
        )
        both.append(Calibration(tuple(coefficients), calibration.precision, tuple(ranges)))
    metadata = with_learned(learned.fit.metadata, calibrations=(Calibrations(*both),))
    return Classifier(metadata, learned.classifier.counts)


# No known token


@given(labelled_mails(TWO), ALPHAS, PRIORS, UNKNOWN, CUT_OFFS, st.data())
def test_without_a_known_token_the_probability_is_the_prior(
    messages, alpha, prior, unknown, cut_offs, data
):
    learned = learn(messages, alpha=alpha, prior=prior, scoring="evidence")
    for classifier in (learned.classifier, data.draw(far_fetched(learned))):
        score = classifier.score(unknown)
        assert close(prior_of(learned.fit.metadata)) == score.log_odds
        if prior is not None:
            assert close(prior) == score.probability
        assert score.trust == 0
        assert verdict_of(learned.fit.metadata, score, cut_offs) == "unsure"


@given(labelled_mails(TWO), st.sampled_from(["by:mx", "by:mail", "by:-"]))
def test_who_took_the_mail_in_is_no_knowledge_of_it(messages, host):
    learned = learn(messages, scoring="evidence")
    score = learned.classifier.score({host, "зима"})
    assert close(prior_of(learned.fit.metadata)) == score.log_odds
    assert verdict_of(learned.fit.metadata, score, CutOffs()) == "unsure"


@given(labelled_mails(TWO), ALPHAS, PRIORS, UNKNOWN, CUT_OFFS)
def test_under_the_sum_rule_the_verdict_is_unsure_too(messages, alpha, prior, unknown, cut_offs):
    learned = learn(messages, alpha=alpha, prior=prior)
    score = learned.classifier.score(unknown)
    assert verdict_of(learned.fit.metadata, score, cut_offs) == "unsure"


def test_a_large_model_knows_nothing_of_another_script():
    learned = learn(many_mails(200), scoring="evidence")
    score = learned.classifier.score({f"天{i}" for i in range(104)} | {"by:mx"})
    assert (score.probability, score.known, score.text) == (0.5, 0, 104)


@given(labelled_mails(("a", "b", "spam")), UNKNOWN, PRIORS)
def test_without_a_known_token_three_classes_have_their_shares(messages, unknown, prior):
    learned = learn(messages, scoring="evidence", prior=prior)
    score = learned.classifier.score(unknown)
    n = learned.fit.metadata.learned.messages
    if prior is None:  # half a message on both sides, as with two classes
        shares = [k + 0.5 for k in n]
        assert close([share / sum(shares) for share in shares]) == list(score.probabilities)
    else:
        others = n[0] + n[1]
        expected = [(1 - prior) * n[0] / others, (1 - prior) * n[1] / others, prior]
        assert close(expected) == list(score.probabilities)
    assert score.probability == score.probabilities[2]


@pytest.mark.parametrize("prior", [None, 0.2])
@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("empty", ["ham", "promo", "spam"])
def test_a_class_that_has_no_message_yet_has_a_probability(prior, scoring, empty):
    classes = ("ham", "promo", "spam")
    messages = [(name, {name, "x", "by:mx"}, i) for i, name in enumerate(classes * 3)]
    model = taught([m for m in messages if m[0] != empty], classes, scoring, prior=prior)
    classifier = Classifier(
        model.metadata, lambda tokens: {t: model.counts[t] for t in tokens if t in model.counts}
    )
    for tokens in ({"зима"}, {"x"}, set(classes), {"by:mx", "x", "ham"}):
        score = classifier.score(tokens)
        assert close(1) == sum(score.probabilities)
        assert math.isfinite(score.log_odds)
        found = explain(classifier, tokens)
        assert math.isfinite(found.total)


# Few known tokens


@given(labelled_mails(TWO), ALPHAS, PRIORS, UNKNOWN, st.data())
def test_few_words_move_the_prior_by_half_of_what_they_say_at_most(
    messages, alpha, prior, unknown, data
):
    learned = learn(messages, alpha=alpha, prior=prior, scoring="evidence")
    known = sorted(token for token in learned.counts if channel_of(token) != HOST)
    few = set(data.draw(st.lists(st.sampled_from(known or ["зима"]), max_size=4)))
    start = prior_of(learned.fit.metadata)
    for classifier in (learned.classifier, data.draw(far_fetched(learned))):
        weights = [
            classifier.rule.weights(learned.counts[token])[0]
            for token in few
            if token in learned.counts
        ]
        move = classifier.score(few | unknown).log_odds - start
        assert move <= 0.5 * sum(w for w in weights if w > 0) + 1e-9
        assert move >= 0.5 * sum(w for w in weights if w < 0) - 1e-9


def test_one_known_word_is_told_by_half_of_its_weight():
    learned = learn([("ham", {"lunch"}), ("spam", {"prize"})] * 500, scoring="evidence")
    score = learned.classifier.score({"prize", "зима"})
    (weight,) = learned.classifier.rule.weights(learned.counts["prize"])
    assert 0 < score.log_odds <= weight / 2 + 1e-9


# Unknown words beside known ones


@given(
    labelled_mails(TWO), labelled_mails(TWO), PRIORS, UNKNOWN, CUT_OFFS, st.sampled_from(SCORINGS)
)
def test_unknown_words_change_no_probability_and_make_no_verdict_surer(
    messages, new, prior, unknown, cut_offs, scoring
):
    learned = learn(messages, prior=prior, scoring=scoring)
    metadata, score = learned.fit.metadata, learned.classifier.score
    for _, tokens in new:
        before, after = score(tokens), score(tokens | unknown)
        assert before.log_odds == after.log_odds
        assert before.probabilities == after.probabilities
        verdicts = [verdict_of(metadata, each, cut_offs) for each in (before, after)]
        assert verdicts in (
            ["spam", "spam"],
            ["ham", "ham"],
            ["ham", "unsure"],
            ["unsure", "unsure"],
        )


@given(labelled_mails(("ham", "promo", "spam")), UNKNOWN, st.sampled_from(SCORINGS))
def test_unknown_words_change_no_probability_of_three_classes(messages, unknown, scoring):
    score = learn(messages, scoring=scoring).classifier.score
    for _, tokens in messages:
        assert score(tokens).probabilities == score(tokens | unknown).probabilities


# Too little known to be called ham


@given(
    labelled_mails(TWO), labelled_mails(TWO), UNKNOWN, CUT_OFFS, PRIORS, st.sampled_from(SCORINGS)
)
def test_what_the_model_cannot_read_is_never_ham(messages, new, unknown, cut_offs, prior, scoring):
    learned = learn(messages, prior=prior, scoring=scoring)
    for _, tokens in new:
        message = tokens | unknown
        text = [token for token in message if channel_of(token) == TEXT]
        known = sum(token in learned.counts for token in text)
        score = learned.classifier.score(message)
        assert (score.known, score.text) == (known, len(text))
        verdict, *_, reason = verdict_on(learned.fit.metadata, score, cut_offs)
        is_between = logit(cut_offs.ham) < score.log_odds <= logit(cut_offs.spam)
        assert (reason is None) == (verdict != "unsure" or is_between)
        if known == 0:
            assert verdict == "unsure"
        if known < KNOWN_SHARE * len(text):
            assert verdict != "ham"


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("known", [1, 2, 3, 6, 7])
def test_one_token_in_ten_is_enough_for_ham(scoring, known):
    lunch = {f"lunch{i}" for i in range(known)}
    learned = learn([("ham", lunch), ("spam", {"prize"})] * 400, scoring=scoring)

    def verdict(unknown):
        tokens = lunch | {f"unknown{i}" for i in range(unknown)}
        return verdict_of(learned.fit.metadata, learned.classifier.score(tokens), CutOffs())

    assert [verdict(9 * known), verdict(9 * known + 1)] == ["ham", "unsure"]


# Young models


@pytest.mark.parametrize("classes", [TWO, ("ham", "promo", "spam")])
@pytest.mark.parametrize("learned", [[], [("spam", {"prize", "by:mx"}, 1)] * 9])
def test_a_model_of_fewer_than_two_classes_is_unsure_of_everything(classes, learned):
    model = taught(learned, classes)
    classifier = Classifier(model.metadata, lambda tokens: model.counts)
    score = classifier.score({"prize", "by:mx", "зима"})
    assert (score.log_odds, score.probability) == (0, 0.5)
    assert verdict_of(model.metadata, score, CutOffs()) == "unsure"


@pytest.mark.parametrize("words", [{"prize", "win"}, {"noon", "lunch"}])
def test_the_more_is_learned_the_surer_is_the_verdict(words):
    surely = []
    for n in (2, 5, 20, 100, 400):
        ham = [("ham", {"noon", "lunch", f"h{i}"}) for i in range(n)]
        spam = [("spam", {"prize", "win", f"s{i}"}) for i in range(n)]
        score = learn(ham + spam, scoring="evidence").classifier.score(words)
        surely.append(max(score.probabilities))
    assert surely == sorted(surely)
    assert surely[0] < 0.99 < surely[-1]
