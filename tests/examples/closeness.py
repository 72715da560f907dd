"""Equal but for rounding."""

import numpy as np
import pytest

CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def close(expected):
    """Return what is equal to the expected number, or numbers, but for rounding."""
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


def features(scores):
    """Return the evidence of each message for each scored class, in one row."""
    return [
        [x for found in score.evidences for group in found[:3] for x in group]
        + [found.traits or 0.0 for found in score.evidences]
        for score in scores
    ]


def assert_evidence_agrees(expected, actual):
    """Hold the features of all groups of words to each other, and the tokens that are counted."""
    np.testing.assert_allclose(features(actual), features(expected), **CLOSE)
    for of in (lambda s: (s.known, s.text), lambda s: [e.traits is None for e in s.evidences]):
        assert list(map(of, actual)) == list(map(of, expected))


def assert_scores_agree(expected, actual):
    """Hold two lists of scores to each other, in all that a score has."""
    for name in ("log_odds", "probability", "probabilities", "log_scores", "trust"):
        np.testing.assert_allclose(
            [getattr(s, name) for s in actual], [getattr(s, name) for s in expected], **CLOSE
        )
    assert_evidence_agrees(expected, actual)
