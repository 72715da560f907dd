"""Padded copies of learned spam: exact without the spam, and worth it where a spam is padded."""

import itertools
import random
from unittest import mock

import numpy as np
import pytest
from channel_models import labelled_mails
from hypothesis import given
from one_case import each
from small_models import ALPHAS, learn

from nbspam.bayes import evidence, fitting, padding
from nbspam.tokens.kinds import TEXT, channel_of

CHOSEN = {"scoring": "evidence"}


def copies_of(learned):
    """Return the evidence of the copies, block by block, and the padding."""
    copies = [block.padded for block in learned.fit.blocks if block.padded is not None]
    return copies, learned.fit.padding()


@given(labelled_mails(per_class=2), ALPHAS)
def test_a_copy_is_the_spam_as_if_not_learned_with_the_padding_added(messages, alpha):
    with mock.patch.object(padding, "MIN_SPAM_TO_PAD", 1):
        learned = learn(messages, alpha=alpha, **CHOSEN)
        copies, added = copies_of(learned)
    if not added:
        assert not copies
        return
    spam = [i for i, (label, _) in enumerate(messages) if label == "spam"]
    found = [features for block in copies for features, *_ in block.messages()]
    for i, features in zip(spam, found, strict=True):
        tokens, others = messages[i][1], messages[:i] + messages[i + 1 :]
        classifier = learn(others, alpha=alpha, **CHOSEN).classifier
        place = classifier.metadata.settings.scored_classes.index(learned.fit.labels[i])
        words = classifier.known_words(tokens)
        text, *rest = ([row[place] for row in channel] for channel in words[:4])
        n_text = sum(channel_of(token) == TEXT for token in tokens)
        padded = [*text, *added[n_text % len(added)].tolist()]
        for group, expected in zip(features, evidence.message_evidence(padded, *rest), strict=True):
            assert group == (expected and pytest.approx(expected, abs=1e-9))


def many(classes, n, chance):
    """Return n labelled messages; three quarters of the words that tell are of the own class."""
    messages = []
    for i in range(n):
        label, tokens = classes[i % len(classes)], set()
        for _ in range(chance.randrange(6, 40)):
            tokens.add(f"any{int(chance.expovariate(0.02))}")
            word_class = label if chance.random() < 0.5 else chance.choice(classes)
            tokens.add(f"{word_class}{int(chance.expovariate(0.02))}")
        messages.append((label, tokens))
    return messages


def without_copies(monkeypatch, messages, **chosen):
    with monkeypatch.context() as patched:
        patched.setattr(fitting, "COPY_WEIGHT", 0.0)
        return learn(messages, **CHOSEN, **chosen)


def test_padding_hides_a_spam_less_than_without_copies(monkeypatch):
    chance = random.Random(5)
    messages = many(("ham", "spam"), 600, chance)
    plain = without_copies(monkeypatch, messages).classifier
    found = learn(messages, **CHOSEN).classifier
    new = many(("ham", "spam"), 400, chance)
    caught = [t for label, t in new if label == "spam" and plain.score(t).log_odds > 0]
    ham = [sorted(t) for label, t in new if label == "ham"]
    for n in (20, 40):
        padded = [
            tokens.union(itertools.islice(itertools.chain(*chance.sample(ham, n)), n))
            for tokens in caught
        ]
        odds, odds_without = (
            np.array([classifier.score(tokens).log_odds for tokens in padded])
            for classifier in (found, plain)
        )
        assert (odds > odds_without).mean() > 0.9
        assert (odds < 0).sum() < 0.75 * (odds_without < 0).sum()


def test_of_three_classes_only_spam_has_copies(monkeypatch):
    messages = many(("ham", "promo", "spam"), 600, random.Random(6))
    found, plain = (
        it.fit.metadata.learned.calibrations
        for it in (learn(messages, **CHOSEN), without_copies(monkeypatch, messages))
    )
    assert [a == b for a, b in zip(found, plain, strict=True)] == [True, True, False]


@each("classes, chosen", [(("ham", "spam"), {"event_model": "multinomial"}), (("a", "b", "c"), {})])
def test_words_that_repeat_and_classes_without_spam_have_no_copies(monkeypatch, classes, chosen):
    messages = many(classes, 120, random.Random(7))
    learned = learn(messages, **CHOSEN, **chosen)
    assert copies_of(learned) == ([], [])
    plain = without_copies(monkeypatch, messages, **chosen)
    assert learned.fit.metadata == plain.fit.metadata
