"""The opening: a second, small view that moves the log-odds of the rest a little."""

import json

import pytest
from channel_models import many_mails
from closeness import close
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from small_models import learn

from nbspam.bayes.calibration import (
    prior_calibration,
)
from nbspam.bayes.prediction import (
    OPENING_FOR_HAM,
    OPENING_FOR_SPAM,
    OPENING_SHARE,
    opening_weight,
)
from nbspam.learning.learner import Learner
from nbspam.store.metadata import MetadataError, dump_metadata, load_metadata
from nbspam.tokens.tokenized import TOKENIZER_VERSION

NATS = st.floats(-60, 60, allow_subnormal=False)


def is_of_opening(token):
    return token.startswith("open:")


@given(NATS, NATS)
def test_it_moves_the_others_by_a_fifth_of_the_gap_within_its_limits(others, opening):
    phi = opening_weight(others, opening, known=3)
    move = (1 - phi) * others + phi * opening - others
    assert OPENING_SHARE == 0.2
    assert 0 <= phi <= 0.2 + 1e-12
    expected = min(max(0.2 * (opening - others), -OPENING_FOR_HAM), OPENING_FOR_SPAM)
    assert move == pytest.approx(expected, abs=1e-9)
    assert opening_weight(others, opening, known=0) == 0


@given(NATS, NATS, st.floats(0, 5))
def test_what_is_more_for_spam_stays_so(others, opening, more):
    def blend(others, opening):
        phi = opening_weight(others, opening, known=1)
        return (1 - phi) * others + phi * opening

    before = blend(others, opening)
    assert blend(others + more, opening) >= before - 1e-9
    assert blend(others, opening + more) >= before - 1e-9


@each("classes", [("ham", "spam"), ("ham", "promo", "spam")])
def test_a_score_is_moved_by_what_the_opening_says_and_no_further(classes):
    messages = many_mails(240, 3, classes, longest=12)
    learned = learn(messages, scoring="evidence")
    score, moves = learned.classifier.score, []
    for _, tokens in many_mails(60, 8, classes, longest=12):
        without = score({token for token in tokens if not is_of_opening(token)})
        found = score(tokens)
        others, known = without.evidences[0], found.evidences[0]
        assert (known.text, known.header) == (others.text, others.header)
        moves.append(found.log_odds - without.log_odds)
        if len(classes) == 2:
            opening = learned.classifier.rule.predictions(known, 0, found.trust)[2].log_odds
            expected = 0.2 * (opening - without.log_odds)
            assert moves[-1] == close(min(max(expected, -OPENING_FOR_HAM), OPENING_FOR_SPAM))
    assert min(moves) < -0.1
    assert max(moves) > 0.1
    if len(classes) == 2:
        assert min(moves) >= -OPENING_FOR_HAM - 1e-9
        assert max(moves) <= OPENING_FOR_SPAM + 1e-9


def test_a_message_teaches_its_calibration_and_is_forgotten_without_a_trace():
    messages = many_mails(60, 4)
    learned = learn(messages, scoring="evidence")
    learner = Learner(learned.fit.metadata, dict(learned.counts))
    before, counts = learner.metadata, dict(learner.counts)
    new = [(*one, f"{i:032x}") for i, one in enumerate(many_mails(6, 5))]
    for label, tokens, _ in new:
        learner.learn(label, tokens)
    for label, tokens, digest in new:
        learner.refine(label, tokens, digest=digest)
    now = learner.metadata.learned.calibrations[0].opening
    assert now.coefficients != before.learned.calibrations[0].opening.coefficients
    assert [len(xs) for lesson in learner.metadata.learned.recent for xs in lesson.inputs] == [
        3
    ] * 6
    for label, tokens, digest in new[::-1]:
        learner.unlearn(label, tokens, digest=digest)
    assert (learner.metadata, learner.counts) == (before, counts)


def of_older_rules(metadata):
    """Return the fields of a model file of the rules before the opening."""
    fields = json.loads(dump_metadata(metadata)[:-2] + "}")
    fields["tokenizer"]["rules"] = TOKENIZER_VERSION - 1
    for calibrations in fields["calibration"].values():
        del calibrations["opening"]
    return fields


def test_a_model_of_older_rules_has_none_and_goes_on_classifying():
    messages = [(k, {t for t in ts if not is_of_opening(t)}) for k, ts in many_mails(60, 4)]
    learned = learn(messages, scoring="evidence")
    fields = of_older_rules(learned.fit.metadata)
    found = load_metadata(fields)
    (calibrations,) = found.learned.calibrations
    assert calibrations.opening == prior_calibration(found.settings.calibration_specs[2])
    assert calibrations[:2] == learned.fit.metadata.learned.calibrations[0][:2]
    classifier = type(learned.classifier)(found, learned.classifier.counts)
    for _, tokens in many_mails(20, 5):
        assert classifier.score(tokens).log_odds == learned.classifier.score(tokens).log_odds
    fields["tokenizer"]["rules"] = TOKENIZER_VERSION
    with pytest.raises(MetadataError, match="opening"):
        load_metadata(fields)
