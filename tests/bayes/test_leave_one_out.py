import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from random_messages import ALPHAS, PRIORS, Messages, bias, messages

from nbspam.bayes import bernoulli_arrays
from nbspam.bayes.leave_one_out import left_out_joints
from nbspam.bayes.posterior import log_priors


def retrained_joints(found: Messages, i: int, alpha: float, prior: float | None):
    """Return message i's joints by a model trained on the others, their vocabulary alone."""
    others = np.arange(len(found.labels)) != i
    dense = found.dense[others]
    known = dense.any(axis=0)
    rest = Messages(dense[:, known], found.labels[others], found.n_classes)
    shares = found.per_class if prior is not None else rest.per_class
    log_prior = np.array(log_priors(shares.tolist(), prior, found.n_classes - 1))
    weights = bernoulli_arrays.weights(rest.counts, rest.per_class, alpha)
    return weights @ found.dense[i][known] + bias(rest.counts, rest.per_class, alpha, log_prior)


def left_out(found: Messages, alpha: float, prior: float | None = None):
    """Return the joints of messages left out, held to those of retraining."""
    fixed = None
    if prior is not None:
        fixed = np.array(log_priors(found.per_class.tolist(), prior, found.n_classes - 1))
    actual = left_out_joints(
        found.presence, found.labels, found.counts, found.per_class, alpha, fixed
    )
    expected = [retrained_joints(found, i, alpha, prior) for i in range(len(found.labels))]
    np.testing.assert_allclose(actual, np.array(expected), rtol=1e-9, atol=1e-9)
    return actual


@given(messages(), ALPHAS, st.none() | PRIORS)
def test_left_out_is_retrained(found, alpha, prior):
    left_out(found, alpha, prior)


def test_left_out_is_retrained_on_many_messages():
    random = np.random.default_rng(7)
    dense = (random.random((60, 200)) < random.random(200) * 0.2).astype(np.int64)
    dense = dense[:, dense.any(axis=0)]
    left_out(Messages(dense, random.integers(0, 3, 60), 3), 0.1)


@each(
    "dense, labels",
    [
        ([[0, 0], [1, 1], [0, 0], [0, 1]], [0, 0, 1, 1]),  # messages without tokens
        ([[1, 0], [0, 1]], [0, 1]),  # one message of each class
    ],
)
def test_few_tokens_and_few_messages_have_joints(dense, labels):
    left_out(Messages(np.array(dense), np.array(labels), 2), 0.1)


def test_the_last_message_of_a_class_leaves_an_impossible_class_but_with_a_fixed_prior():
    found = Messages(np.array([[1, 0], [1, 1], [0, 1]]), np.array([0, 0, 1]), 2)
    assert left_out(found, 0.5)[2, 1] == -np.inf
    assert np.isfinite(left_out(found, 0.5, prior=0.3)).all()


def test_a_token_of_one_message_alone_says_nothing_of_it():
    with_own = Messages(np.array([[1, 0], [1, 0], [1, 1]]), np.array([0, 1, 0]), 2)
    without = Messages(np.array([[1], [1], [1]]), np.array([0, 1, 0]), 2)
    np.testing.assert_allclose(left_out(with_own, 1)[2], left_out(without, 1)[2], rtol=1e-12)
