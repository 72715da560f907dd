import numpy as np
from closeness import CLOSE
from hypothesis import given
from random_messages import ALPHAS, PRIORS, Messages, bias, messages
from sklearn.naive_bayes import BernoulliNB

from nbspam.bayes import bernoulli_arrays, matrix
from nbspam.bayes.bernoulli import joints, log_absent_sum, weight
from nbspam.bayes.posterior import log_priors, sigmoid, softmax


def parts(found: Messages, alpha: float, prior: float | None = None):
    """Return weights, bias and class priors, the last class being the positive one."""
    per_class = found.per_class
    log_prior = np.array(log_priors(per_class.tolist(), prior, found.n_classes - 1))
    weights = bernoulli_arrays.weights(found.counts, per_class, alpha)
    return weights, bias(found.counts, per_class, alpha, log_prior), np.exp(log_prior)


def probabilities(scores):
    return np.array([softmax(row) for row in scores.tolist()])


def reference(found: Messages, alpha: float, class_prior=None) -> BernoulliNB:
    model = BernoulliNB(alpha=alpha, binarize=None, class_prior=class_prior)
    return model.fit(found.dense, found.labels)


@given(messages())
def test_counts_are_the_sums_of_each_class(found):
    expected = [found.dense[found.labels == k].sum(axis=0) for k in range(found.n_classes)]
    assert np.array(expected).tolist() == found.counts.tolist()


def test_a_class_without_messages_has_counts_of_zero():
    found = Messages(np.array([[1, 0], [1, 1]]), np.array([0, 2]), 3)
    assert found.counts.tolist() == [[1, 0], [0, 0], [1, 1]]


@given(messages(), ALPHAS)
def test_weights_are_scikit_learns(found, alpha):
    weights, _, _ = parts(found, alpha)
    log_present = reference(found, alpha).feature_log_prob_
    np.testing.assert_allclose(weights, log_present - np.log1p(-np.exp(log_present)), **CLOSE)


@given(messages(), ALPHAS)
def test_bias_is_scikit_learns_score_of_an_empty_message(found, alpha):
    _, class_bias, _ = parts(found, alpha)
    empty = np.zeros((1, found.dense.shape[1]))
    expected = reference(found, alpha).predict_joint_log_proba(empty)[0]
    np.testing.assert_allclose(class_bias, expected, **CLOSE)


@given(messages(), ALPHAS)
def test_joints_and_probabilities_are_scikit_learns(found, alpha):
    weights, class_bias, _ = parts(found, alpha)
    model = reference(found, alpha)
    scores = matrix.joint_matrix(found.presence, weights, class_bias)
    np.testing.assert_allclose(scores, model.predict_joint_log_proba(found.dense), **CLOSE)
    np.testing.assert_allclose(probabilities(scores), model.predict_proba(found.dense), **CLOSE)


@given(messages(), ALPHAS, PRIORS)
def test_a_fixed_prior_is_scikit_learns_class_prior(found, alpha, prior):
    weights, class_bias, shares = parts(found, alpha, prior)
    assert abs(shares[-1] - prior) < 1e-12
    model = reference(found, alpha, class_prior=shares)
    scores = matrix.joint_matrix(found.presence, weights, class_bias)
    np.testing.assert_allclose(scores, model.predict_joint_log_proba(found.dense), **CLOSE)
    np.testing.assert_allclose(probabilities(scores), model.predict_proba(found.dense), **CLOSE)


@given(messages(n_classes=2), ALPHAS)
def test_log_odds_of_two_classes_are_scikit_learns(found, alpha):
    weights, class_bias, _ = parts(found, alpha)
    scores = matrix.joint_matrix(found.presence, weights, class_bias)
    model = reference(found, alpha).predict_joint_log_proba(found.dense)
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], model[:, 1] - model[:, 0], **CLOSE)


@given(messages(), ALPHAS)
def test_the_one_message_formulas_give_what_the_matrix_gives(found, alpha):
    weights, class_bias, _ = parts(found, alpha)
    counts, per_class = found.counts.tolist(), found.per_class.tolist()
    n_classes, n_tokens = found.n_classes, found.dense.shape[1]
    own_bias = []
    for k, prior in enumerate(log_priors(per_class, None, None)):
        histogram = {}
        for count in counts[k]:
            histogram[count] = histogram.get(count, 0) + 1
        own_bias.append(prior + log_absent_sum(histogram, per_class[k], alpha))
    rows = [
        [weight(counts[k][j], per_class[k], alpha) for k in range(n_classes)]
        for j in range(n_tokens)
    ]
    expected = matrix.joint_matrix(found.presence, weights, class_bias)
    for i, message in enumerate(found.dense):
        actual = joints(own_bias, [rows[j] for j in np.flatnonzero(message)])
        np.testing.assert_allclose(actual, expected[i], **CLOSE)
        shares = softmax(actual)
        np.testing.assert_allclose(shares, probabilities(expected)[i], **CLOSE)
        if n_classes == 2:
            assert abs(sigmoid(actual[1] - actual[0]) - shares[1]) < 1e-9


def test_probabilities_of_far_scores_neither_overflow_nor_vanish():
    actual = probabilities(np.array([[-1e5, 0.0], [1e5, 0.0], [-3e4, -3e4]]))
    assert actual.tolist() == [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
