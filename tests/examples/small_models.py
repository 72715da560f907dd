"""Models learned from token sets, for the tests of several folders."""

import json
import random
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.sparse import csr_array

from nbspam.errors import ModelError, NbspamError
from nbspam.learning.batch import Fit, fit, token_counts
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import TrainingSettings
from nbspam.scoring.classifier import Classifier
from nbspam.store.lookup import Model
from nbspam.store.metadata import Metadata
from nbspam.store.model_file import write_model
from nbspam.tokens.tokenized import NO_EXTRAS, TokenizedMessage


def with_settings(metadata: Metadata, **changes) -> Metadata:
    """Return metadata with some of its settings changed."""
    return metadata._replace(settings=metadata.settings._replace(**changes))


def with_learned(metadata: Metadata, **changes) -> Metadata:
    """Return metadata with some of what it learned changed."""
    return metadata._replace(learned=metadata.learned._replace(**changes))


MESSAGES = [
    ("ham", {"meeting", "tomorrow", "free"}),
    ("ham", {"meeting", "notes"}),
    ("ham", {"lunch", "tomorrow"}),
    ("spam", {"free", "prize", "winner"}),
    ("spam", {"prize", "click"}),
]


@dataclass(frozen=True)
class Learned:
    corpus: Corpus
    fit: Fit

    @cached_property
    def counts(self) -> dict[str, tuple[int, ...]]:
        rows = token_counts(self.corpus.vocabulary, self.fit.counts)
        return {token: tuple(row) for token, row in rows}

    @property
    def classifier(self) -> Classifier:
        known = self.counts
        return Classifier(
            self.fit.metadata,
            lambda tokens: {token: known[token] for token in tokens if token in known},
        )

    def save(self, path: Path) -> Path:
        write_model(path, Model(self.fit.metadata, self.counts, {}))
        return path


def learn(messages=MESSAGES, extras=None, **chosen) -> Learned:
    """Learn with the sum rule and without traits, unless others are chosen.

    numbers: of each message, if the model is to have traits.
    """
    settings = TrainingSettings(**{"scoring": "sum", "traits": "none"} | chosen)
    corpus = Corpus(settings.outputs)
    for i, (label, tokens) in enumerate(messages):
        own = NO_EXTRAS if extras is None else extras[i]
        corpus.add(TokenizedMessage("", label, list(tokens), extras=own))
    channels, traits = corpus.channels(), corpus.traits()
    return Learned(corpus, fit(corpus.presence(), corpus.labels, settings, channels, traits))


def rows_of(learned: Learned, token_sets):
    """Return the matrix of messages over a model's columns; tokens it never met are left out."""
    column = {token: j for j, token in enumerate(learned.corpus.vocabulary)}
    rows = [[column[token] for token in tokens if token in column] for tokens in token_sets]
    ends = np.cumsum([0, *map(len, rows)])
    columns = np.array([j for row in rows for j in row], dtype=np.int32)
    return csr_array((np.ones(len(columns)), columns, ends), shape=(len(rows), len(column)))


def many_messages(n_tokens: int, seed: int = 0, longest: int = 30):
    """Return 40 messages, half of them spam, that hold `n_tokens` random tokens between them."""
    chance = random.Random(seed)
    tokens = set()
    while len(tokens) < n_tokens:
        length = chance.randint(1, longest)
        tokens.add("".join(chance.choices('abcdefghijé√"\\\x01 ', k=length)))
    messages = [("spam" if i % 2 else "ham", set()) for i in range(40)]
    for token in sorted(tokens):
        for _ in range(chance.choice([1, 1, 1, 2, 5])):
            messages[chance.randrange(40)][1].add(token)
    return messages


def big(n_tokens: int, seed: int = 0) -> Learned:
    """Learn `n_tokens` random tokens."""
    return learn(many_messages(n_tokens, seed))


def laid_out(fields: dict) -> str:
    """Return the fields of a model as its file has them, as far as they can be laid out so."""
    rest = dict(fields)
    head = {key: rest.pop(key) for key in ("format", "version") if key in rest}
    sections = {}
    for key, blank in (("tokens", ""), ("learned", " ")):
        if key in rest:
            rows = rest.pop(key)
            texts = [f"{blank}{_json(name)}: {_json(rows[name])}" for name in rows or ()]
            end = ",\n".join(texts) + "\n" * bool(texts) + "}"
            sections[key] = "{\n" + end if isinstance(rows, dict) else _json(rows)
    lines = [_json(head)[1:-1], *(f"{_json(key)}: {_json(value)}" for key, value in rest.items())]
    last = ",".join(f'"{key}": {text}' for key, text in sections.items())
    return "{" + ",\n".join([*lines, last]) + "}\n"


def damaged(fields: dict, line: str) -> dict:
    """Return the fields of a model with a value changed (`alpha = 0`), or taken out (`- alpha`)."""
    found = place = json.loads(json.dumps(fields))
    *keys, last = line.removeprefix("- ").partition(" = ")[0].split()
    for key in keys:
        place = place[key]
    if line.startswith("- "):
        del place[last]
    else:
        place[last] = json.loads(line.partition(" = ")[2])
    return found


def _json(value) -> str:
    return json.dumps(value, ensure_ascii=not isinstance(value, str))


def assert_one_sentence(error, path: Path, *parts: str) -> None:
    """Hold an error to the promise: it names the file, and is one line that ends with a remedy."""
    text = str(error.value if hasattr(error, "value") else error)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    assert not text.endswith(".")
    assert len(text) < len(str(path)) + 400
    for part in parts:
        assert part in text


@contextmanager
def refused(path: Path, *parts: str, kind: type[NbspamError] = ModelError):
    """Hold what is done to an error of one sentence that names the file."""
    with pytest.raises(kind) as error:
        yield error
    assert_one_sentence(error, path, *parts)


SCORINGS = ("sum", "evidence")
ALPHAS = st.floats(1e-3, 3)
PRIORS = st.none() | st.floats(0.01, 0.99)


@st.composite
def labelled_tokens(draw, tokens=None, classes=None, per_class=1, most=10):
    """Draw a list of (label, tokens), at least `per_class` messages of each class."""
    if classes is None:
        classes = draw(st.sampled_from([("ham", "spam"), ("ham", "promo", "spam")]))
    one = st.sampled_from("abcdefgh") if tokens is None else tokens
    sets = st.sets(one, max_size=6)
    labels = list(classes) * per_class
    labels += draw(st.lists(st.sampled_from(classes), max_size=most - len(labels)))
    return [(label, draw(sets)) for label in draw(st.permutations(labels))]
