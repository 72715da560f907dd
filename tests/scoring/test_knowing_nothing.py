"""What the model does not know is no certainty: what few or unknown words may do to a score."""

import math

from channel_models import labelled_mails
from closeness import close
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from small_models import ALPHAS, PRIORS, SCORINGS, learn, with_learned
from whole_models import THREE, TWO, taught

from nbspam.bayes.calibration import Calibration, Calibrations
from nbspam.bayes.event_model import logit
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.explanation import explain
from nbspam.scoring.verdict import KNOWN_SHARE, CutOffs, classify_score, make_verdict
from nbspam.tokens.kinds import HOST, TEXT, channel_of

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
        coefficients = draw(st.tuples(*[st.floats(-30, 30)] * size))
        ends = st.tuples(st.floats(-9, 0), st.floats(0, 9))
        ranges = draw(st.tuples(*[ends] * (size - 1)))
        both.append(Calibration(coefficients, calibration.precision, ranges))
    metadata = with_learned(learned.fit.metadata, calibrations=(Calibrations(*both),))
    return Classifier(metadata, learned.classifier.counts)


@given(labelled_mails(TWO), ALPHAS, PRIORS, UNKNOWN, CUT_OFFS, st.data())
def test_without_a_known_token_the_probability_is_the_prior_and_the_verdict_unsure(
    messages, alpha, prior, unknown, cut_offs, data
):
    learned = learn(messages, alpha=alpha, prior=prior, scoring="evidence")
    metadata = learned.fit.metadata
    host = data.draw(st.sets(st.sampled_from(["by:mx", "by:mail", "by:-"])))
    for classifier in (learned.classifier, data.draw(far_fetched(learned))):
        score = classifier.score(unknown | host)  # who took a mail in is no knowledge of it
        assert close(prior_of(metadata)) == score.log_odds
        if prior is not None:
            assert close(prior) == score.probability
        assert score.trust == 0
        assert classify_score(metadata, score, cut_offs) == "unsure"
    by_sum = learn(messages, alpha=alpha, prior=prior)
    score = by_sum.classifier.score(unknown)
    assert classify_score(by_sum.fit.metadata, score, cut_offs) == "unsure"


@given(labelled_mails(("a", "b", "spam")), UNKNOWN, PRIORS)
def test_without_a_known_token_three_classes_have_their_shares(messages, unknown, prior):
    learned = learn(messages, scoring="evidence", prior=prior)
    score = learned.classifier.score(unknown)
    n = learned.fit.metadata.learned.messages
    if prior is None:  # half a message on both sides, as with two classes
        expected = [(k + 0.5) / (sum(n) + 1.5) for k in n]
    else:
        expected = [(1 - prior) * k / (n[0] + n[1]) for k in n[:2]] + [prior]
    assert list(score.probabilities) == close(expected)
    assert score.probability == score.probabilities[2]


@each("prior", [None, 0.2])
@each("scoring", SCORINGS)
@each("empty", THREE)
def test_a_class_that_has_no_message_yet_has_a_probability(prior, scoring, empty):
    messages = [(name, {name, "x", "by:mx"}, i) for i, name in enumerate(THREE * 3)]
    model = taught([m for m in messages if m[0] != empty], THREE, scoring, prior=prior)
    classifier = Classifier(
        model.metadata, lambda tokens: {t: model.counts[t] for t in tokens if t in model.counts}
    )
    for tokens in ({"зима"}, {"x"}, set(THREE), {"by:mx", "x", "ham"}):
        score = classifier.score(tokens)
        assert close(1) == sum(score.probabilities)
        assert math.isfinite(score.log_odds)
        assert math.isfinite(explain(classifier, tokens).total)


@given(labelled_mails(TWO), ALPHAS, PRIORS, UNKNOWN, st.data())
def test_few_words_move_the_prior_by_half_of_what_they_say_at_most(
    messages, alpha, prior, unknown, data
):
    learned = learn(messages, alpha=alpha, prior=prior, scoring="evidence")
    known = sorted(token for token in learned.counts if channel_of(token) != HOST)
    few = set(data.draw(st.lists(st.sampled_from(known or ["зима"]), max_size=4)))
    start = prior_of(learned.fit.metadata)
    for classifier in (learned.classifier, data.draw(far_fetched(learned))):
        rows = [learned.counts[token] for token in few if token in learned.counts]
        weights = [classifier.rule.weights(row)[0] for row in rows]
        move = classifier.score(few | unknown).log_odds - start
        assert move <= 0.5 * sum(w for w in weights if w > 0) + 1e-9
        assert move >= 0.5 * sum(w for w in weights if w < 0) - 1e-9


@given(
    labelled_mails(TWO), labelled_mails(TWO), PRIORS, UNKNOWN, CUT_OFFS, st.sampled_from(SCORINGS)
)
def test_unknown_words_change_no_probability_and_what_cannot_be_read_is_never_ham(
    messages, new, prior, unknown, cut_offs, scoring
):
    learned = learn(messages, prior=prior, scoring=scoring)
    metadata, classifier = learned.fit.metadata, learned.classifier
    for _, tokens in new:
        before, after = classifier.score(tokens), classifier.score(tokens | unknown)
        assert before.log_odds == after.log_odds
        assert before.probabilities == after.probabilities
        assert before.evidences == after.evidences
        verdicts = [classify_score(metadata, each, cut_offs) for each in (before, after)]
        assert verdicts[0] == verdicts[1] or verdicts == ["ham", "unsure"]
        text = [token for token in tokens | unknown if channel_of(token) == TEXT]
        known = sum(token in learned.counts for token in text)
        assert (after.known, after.text) == (known, len(text))
        verdict, *_, reason = make_verdict(metadata, after, cut_offs)
        is_between = logit(cut_offs.ham) < after.log_odds <= logit(cut_offs.spam)
        assert (reason is None) == (verdict != "unsure" or is_between)
        if known == 0:
            assert verdict == "unsure"
        if known < KNOWN_SHARE * len(text):
            assert verdict != "ham"


@given(labelled_mails(THREE), UNKNOWN, st.sampled_from(SCORINGS))
def test_unknown_words_change_no_probability_of_three_classes(messages, unknown, scoring):
    score = learn(messages, scoring=scoring).classifier.score
    for _, tokens in messages:
        assert score(tokens).probabilities == score(tokens | unknown).probabilities


@each("classes", [TWO, THREE])
@each("learned", [[], [("spam", {"prize", "by:mx"}, 1)] * 9])
def test_a_model_of_fewer_than_two_classes_is_unsure_of_everything(classes, learned):
    model = taught(learned, classes)
    score = Classifier(model.metadata, lambda _: model.counts).score({"prize", "by:mx", "зима"})
    assert (score.log_odds, score.probability) == (0, 0.5)
    assert classify_score(model.metadata, score, CutOffs()) == "unsure"


@each("words", [{"prize", "win"}, {"noon", "lunch"}])
def test_the_more_is_learned_the_surer_is_the_verdict(words):
    surely = []
    for n in (2, 5, 20, 100, 400):
        ham = [("ham", {"noon", "lunch", f"h{i}"}) for i in range(n)]
        spam = [("spam", {"prize", "win", f"s{i}"}) for i in range(n)]
        score = learn(ham + spam, scoring="evidence").classifier.score(words)
        surely.append(max(score.probabilities))
    assert surely == sorted(surely)
    assert surely[0] < 0.99 < surely[-1]
