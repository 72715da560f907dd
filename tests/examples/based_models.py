"""Models that are read through a base, for the tests of several folders."""

import pytest
from small_models import learn
from whole_models import numbers_of

from nbspam.learning.learner import Learner
from nbspam.scoring import base
from nbspam.tokens.tokenized import NO_EXTRAS


def numbered_messages(messages, traits, first=0):
    """Return the numbers of messages, if the models have traits; first: of the first message."""
    return None if traits == "none" else [numbers_of(first + i) for i in range(len(messages))]


def trained(messages, traits="none", first=0, **chosen):
    """Return what is learned of messages, (label, tokens), without a base."""
    extras = numbered_messages(messages, traits, first)
    return learn(messages, extras, **{"scoring": "evidence"} | chosen, traits=traits)


def base_of(messages, traits="none", strength=base.STRENGTH):
    """Return a base trained on messages."""
    learned = trained(messages, traits)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(base, "STRENGTH", strength)
        return base.Base("base.json", learned.fit.metadata, learned.classifier.counts)


def no_counts(_):
    """Give the counts of a model without tokens."""
    return {}


def taught_through(base, messages, traits="none", batch=1, first=100):
    """Return a learner that was taught messages through a base, from nothing, in batches."""
    learner = Learner(base.empty_personal_model(), {}, base)
    extras = numbered_messages(messages, traits, first) or [NO_EXTRAS] * len(messages)
    for start in range(0, len(messages), batch):
        some = list(zip(messages, extras, strict=True))[start : start + batch]
        for (label, tokens), own in some:
            learner.learn(label, tokens, own)
        for (label, tokens), own in some:
            learner.refine(label, tokens, own, digest_of(tokens))
    return learner


def digest_of(tokens):
    """Return a name of a message with these tokens."""
    return " ".join(sorted(tokens))
