from collections import Counter

import numpy as np
from closeness import CLOSE, close
from hypothesis import given
from hypothesis import strategies as st
from random_messages import ALPHAS, PRIORS, Messages, bias, messages
from sklearn.naive_bayes import BernoulliNB

from nbspam.bayes import bernoulli_arrays, matrix
from nbspam.bayes.bernoulli import joints, log_absent_sum, weight
from nbspam.bayes.posterior import log_priors, sigmoid, softmax


def probabilities(scores):
    return np.array([softmax(row) for row in scores.tolist()])


@given(messages())
def test_counts_are_the_sums_of_each_class(found):
    expected = [found.dense[found.labels == k].sum(axis=0) for k in range(found.n_classes)]
    assert np.array(expected).tolist() == found.counts.tolist()
    empty = Messages(np.array([[1, 0], [1, 1]]), np.array([0, 2]), 3)
    assert empty.counts.tolist() == [[1, 0], [0, 0], [1, 1]]


@given(messages(), ALPHAS, st.none() | PRIORS)
def test_weights_bias_and_joints_are_scikit_learns(found, alpha, prior):
    """The last class is the positive one."""
    per_class = found.per_class
    log_prior = np.array(log_priors(per_class.tolist(), prior, found.n_classes - 1))
    assert prior is None or np.exp(log_prior[-1]) == close(prior)
    model = BernoulliNB(alpha=alpha, binarize=None, class_prior=np.exp(log_prior))
    model.fit(found.dense, found.labels)
    weights = bernoulli_arrays.weights(found.counts, per_class, alpha)
    log_present = model.feature_log_prob_
    np.testing.assert_allclose(weights, log_present - np.log1p(-np.exp(log_present)), **CLOSE)
    class_bias = bias(found.counts, per_class, alpha, log_prior)
    empty = np.zeros((1, found.dense.shape[1]))
    np.testing.assert_allclose(class_bias, model.predict_joint_log_proba(empty)[0], **CLOSE)
    scores = matrix.joint_matrix(found.presence, weights, class_bias)
    np.testing.assert_allclose(scores, model.predict_joint_log_proba(found.dense), **CLOSE)
    np.testing.assert_allclose(probabilities(scores), model.predict_proba(found.dense), **CLOSE)
    # The formulas for one message give what the matrix gives.
    counts, n_messages = found.counts.tolist(), per_class.tolist()
    own_bias = [
        of_prior + log_absent_sum(Counter(row), n, alpha)
        for of_prior, row, n in zip(log_prior, counts, n_messages, strict=True)
    ]
    rows = [
        [weight(c, n, alpha) for c, n in zip(column, n_messages, strict=True)]
        for column in zip(*counts, strict=True)
    ]
    for i, message in enumerate(found.dense):
        actual = joints(own_bias, [rows[j] for j in np.flatnonzero(message)])
        np.testing.assert_allclose(actual, scores[i], **CLOSE)
        if found.n_classes == 2:
            assert sigmoid(actual[1] - actual[0]) == close(softmax(actual)[1])


def test_probabilities_of_far_scores_neither_overflow_nor_vanish():
    actual = probabilities(np.array([[-1e5, 0.0], [1e5, 0.0], [-3e4, -3e4]]))
    assert actual.tolist() == [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
