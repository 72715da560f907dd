"""Messages with repeated tokens and traits, and models of every combination learned from them."""

import itertools
from collections.abc import Iterable

import pytest
from channel_models import EVERY_CHANNEL
from hypothesis import strategies as st
from small_models import SCORINGS, Learned
from whole_models import ledger_of

from nbspam.bayes.event_model import EVENT_MODELS
from nbspam.bayes.trait_model import TRAIT_MODELS, Variances
from nbspam.learning.batch import fit
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.update import PendingMessages, learn
from nbspam.store.lookup import Model
from nbspam.store.model_file import write_model
from nbspam.tokens.kinds import TEXT, TRAITS, channel_of
from nbspam.tokens.tokenized import TokenExtras, TokenizedMessage

TWO, THREE = ("ham", "spam"), ("ham", "promo", "spam")
TOKEN_MODELS = tuple(name for name in EVENT_MODELS if name != "none")
# All but the one without tokens and without traits.  First come some that show each event model,
# each trait model and each scoring: the cases of the default run.
FIRST = [
    ("bernoulli", "kernel", "evidence"),
    ("multinomial", "gaussian", "sum"),
    ("bernoulli", "none", "evidence"),
    ("complement", "kernel", "sum"),
    ("none", "gaussian", "evidence"),
]
KINDS = sorted(
    {*itertools.product(EVENT_MODELS, TRAIT_MODELS)} - {("none", "none")},
    key=lambda kind: (kind not in [first[:2] for first in FIRST], kind),
)
COMBINATIONS = sorted(
    ((*kind, scoring) for kind in KINDS for scoring in SCORINGS),
    key=lambda combination: (combination not in FIRST, combination),
)
VALUES = 5  # of a trait
DEFAULTS = TrainingSettings()
# With the default smoothing joints can be of 1e9 nats, whose differences have few digits.
SMOOTH = Variances(smoothing=0.01)
VARIANCES = st.builds(
    Variances, st.sampled_from([0.01, 0.5]), st.sampled_from([0.0, 2.5]), st.booleans()
)


def by_combination(test):
    """Run a test with the kind and the scoring of each model; all but five in the long run."""
    every = [pytest.param(tuple(c[:2]), c[2], id="-".join(c)) for c in COMBINATIONS]
    return pytest.mark.few(len(FIRST))(pytest.mark.parametrize(("kind", "scoring"), every)(test))


def message(label, times, traits=(), number=0) -> TokenizedMessage:
    """Return a message; times: of each of its tokens; number: for its digest.

    Tokens of the header count once, as `tokens/tokenized.py` has it.
    """
    repeated = {token: n for token, n in times.items() if n > 1 and channel_of(token) == TEXT}
    extras = TokenExtras(repeated, tuple(traits))
    return TokenizedMessage("-", label, sorted(times), f"{number:032x}", extras=extras)


def numbers_of(code: int) -> list[int]:
    """Return a value below VALUES for each trait, the digits of a number."""
    return [code // VALUES**i % VALUES for i in range(len(TRAITS))]


@st.composite
def counted_messages(draw, classes=None, per_class=1, most=8, told=True, tokens=EVERY_CHANNEL):
    """Draw messages, at least `per_class` of each class; told: whether all have traits."""
    classes = classes or draw(st.sampled_from([TWO, THREE]))
    labels = list(classes) * per_class
    labels += draw(st.lists(st.sampled_from(classes), max_size=most - len(labels)))
    bags = st.dictionaries(tokens, st.integers(1, 3), max_size=5)
    traits = st.integers(0, VALUES ** len(TRAITS) - 1).map(numbers_of)
    traits = traits if told else st.just([]) | traits
    return [
        message(label, draw(bags), draw(traits), i)
        for i, label in enumerate(draw(st.permutations(labels)))
    ]


def settings_of(kind, scoring="sum", variances=SMOOTH, **chosen) -> TrainingSettings:
    """Return the settings of an event model and traits; variances are of Gaussian ones."""
    event_model, traits = kind
    if traits == "gaussian":
        chosen["variances"] = variances
    return TrainingSettings(event_model=event_model, traits=traits, scoring=scoring, **chosen)


def learn_counted(messages: Iterable[TokenizedMessage], chosen: TrainingSettings) -> Learned:
    """Learn as `train` does."""
    chosen.check()
    corpus = Corpus(chosen.outputs)
    for one in messages:
        corpus.add(one)
    traits = corpus.traits()
    return Learned(corpus, fit(corpus, corpus.labels, chosen, corpus.channels(), traits))


def train(path, messages, chosen=DEFAULTS):
    """Learn all at once into a file, as `train` does."""
    learned = learn_counted(messages, chosen)
    ledger = ledger_of(learned.corpus, learned.fit.metadata.settings.classes)
    write_model(path, Model(learned.fit.metadata, learned.counts, dict(ledger)))
    return path


def teach(path, messages, chosen=DEFAULTS, remember=True):
    """Learn into a file, as `train --update` does."""
    pending = PendingMessages(chosen.outputs)
    pending.add(messages, path if remember else None)
    return learn(path, pending, chosen, remember)
