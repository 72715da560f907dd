"""Models in memory, learned message by message, with their ledgers."""

import random
from collections import Counter

from hypothesis import strategies as st
from small_models import with_learned

from nbspam.learning.settings import TrainingSettings, empty_metadata
from nbspam.learning.update import Learner, PendingMessages
from nbspam.store.lookup import Model
from nbspam.store.metadata import EVIDENCE, Metadata
from nbspam.store.model_file import write_model
from nbspam.tokens.kinds import TRAITS
from nbspam.tokens.tokenized import TokenExtras, TokenizedMessage, TokenizerOutputs, digest_of

TWO, THREE = ("ham", "spam"), ("ham", "promo", "spam")


def taught(messages, classes=TWO, scoring=EVIDENCE, **chosen):
    """Return the model of messages: (label, tokens, number), the number for digest and traits.

    One class may be enough, or none.
    """
    metadata = empty_metadata(classes, "spam", TrainingSettings(scoring=scoring, **chosen))
    learner = Learner(metadata, {})
    learned: dict[str, Counter] = {}
    for label, tokens, number in messages:
        learner.learn(label, tokens, numbers_of(number))
        learner.refine(label, tokens, numbers_of(number))
        learned.setdefault(f"{number:032x}", Counter())[label] += 1
    rows = {d: tuple(times[name] for name in classes) for d, times in sorted(learned.items())}
    return Model(learner.metadata, dict(sorted(learner.counts.items())), rows)


def ledger_of(corpus, classes):
    """Return how often each class has each digest of a corpus, in their order; none without."""
    found: dict[str, Counter] = {}
    for digest, label in zip(corpus.digests, corpus.labels, strict=False):
        found.setdefault(digest.hex(), Counter())[label] += 1
    return [(digest, tuple(own[name] for name in classes)) for digest, own in sorted(found.items())]


def numbers_of(number):
    """Return traits for the message of this number; few values, so that messages share them."""
    chance = random.Random(number)
    return TokenExtras(traits=tuple(chance.randrange(5) for _ in TRAITS))


def numbered(classes=TWO, most=8, tokens="abcdefgh"):
    """Draw messages of one or more of the classes, each with a number of its own."""
    one = st.tuples(st.sampled_from(classes), st.sets(st.sampled_from(tokens), max_size=5))
    return st.lists(one, max_size=most).map(
        lambda drawn: [(*message, i) for i, message in enumerate(drawn)]
    )


def without_calibration(metadata: Metadata) -> Metadata:
    """Return metadata without what depends on the order of learning."""
    return with_learned(metadata, calibrations=(), calibrated_by="", recent=(), before=())


def message(label, *tokens, number=0, traits_of=None):
    """Return a message as `learn` takes it; the number tells messages of the same tokens apart."""
    extras = numbers_of(number if traits_of is None else traits_of)
    digest = digest_of(sorted(tokens), [("message-id", f"<{number}>")], *extras)
    return TokenizedMessage("-", label, sorted(tokens), digest, extras=extras)


def pending(messages):
    """Return messages that wait to be learned into a model with traits."""
    found = PendingMessages(TokenizerOutputs(traits=True))
    found.add(messages)
    return found


def save(path, model):
    """Write a model to a file."""
    write_model(path, model)
    return path


def messages_of(labels, most=12):
    """Draw messages, few different ones, so that the same comes again, and in another class."""
    tokens = st.sampled_from(["a", "b", 'd"', "from:c", "received:e", "by:mx", "by:-"])
    one = st.tuples(st.sampled_from(labels), st.sets(tokens), st.integers(0, 2))
    drawn = one.map(lambda own: message(own[0], *own[1], number=own[2]))
    return st.lists(drawn, max_size=most)
