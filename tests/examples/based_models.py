"""Models with a base beneath them, for the tests of several folders."""

from nbspam.learning.based_batch import counts_in_base, with_base
from small_models import learn
from whole_models import numbers_of

from nbspam.learning.settings import TrainingSettings, empty_metadata
from nbspam.scoring.base import Base

EVIDENCE = {"scoring": "evidence"}


def numbered_messages(messages, traits):
    """Return the numbers of messages, if the models have traits."""
    return None if traits == "none" else [numbers_of(i) for i in range(len(messages))]


def base_of(messages, traits="none"):
    """Return a base trained on messages: (label, tokens)."""
    learned = learn(messages, numbered_messages(messages, traits), **EVIDENCE, traits=traits)
    return Base("base.json", learned.fit.metadata, learned.classifier.counts)


def learn_with(base, messages, traits="none"):
    """Return what is learned of messages with a base: the model, and its fit with the base."""
    learned = learn(messages, numbered_messages(messages, traits), **EVIDENCE, traits=traits)
    in_base = counts_in_base(base, learned.corpus.vocabulary)
    return learned, with_base(learned.fit, learned.corpus.presence(), base, in_base)


def nothing_learned(classes=("ham", "spam"), traits="none"):
    """Return the metadata of a model without messages."""
    return empty_metadata(classes, "spam", TrainingSettings(**EVIDENCE, traits=traits))
