"""Copies of a message leave with it: it is scored as by a model that has seen none of them."""

import numpy as np
import pytest
from one_case import each
from small_models import learn

from nbspam.learning.batch import fit
from nbspam.learning.copies import copies_of
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import TrainingSettings
from nbspam.reading.message import parse_text
from nbspam.tokens.tokenized import tokenize

TEXTS = [
    ("ham", "call me when you are home please"),
    ("ham", "can you bring the blue folder tomorrow"),
    ("ham", "can you bring the red folder when you call"),
    ("spam", "win cash today reply yes now"),
    ("spam", "win a prize when you call now"),
    ("spam", "reply yes to bring home your cash prize"),
]


def corpus_of(pairs):
    corpus = Corpus()
    for label, text in pairs:
        corpus.add(tokenize(parse_text(text), label=label, digest=True))
    return corpus


def test_copies_have_the_same_words_whatever_their_digits_and_their_case():
    same = ["Win 100 pounds, call 0900 1234", "win 2000 POUNDS, call 0900 77"]
    others = [
        "win pounds call",
        "claim 100 pounds, call 0900 1234",
        "12 34",
        "56 7",
        "\N{EARTH GLOBE ASIA-AUSTRALIA}",
    ]
    corpus = corpus_of([("spam", text) for text in [*same, *others]] + [("ham", same[0])])
    labels = np.array([0] * 7 + [1])
    assert copies_of(corpus.keys(), labels).tolist()[:2] == [2, 2]
    assert copies_of(corpus.keys(), labels).tolist()[3:] == [1, 1, 1, 1, 1]  # of its class
    light = Corpus()
    light.extend(corpus, with_tokens=False)
    assert light.keys().tolist() == corpus.keys().tolist()
    assert light.without({"ham"}).keys().tolist() == corpus.keys().tolist()[:7]


@each("times", [1, 2, 3])
@each("event_model", ["bernoulli", "multinomial", "complement"])
def test_left_out_scores_are_those_of_a_model_without_the_copies(event_model, times):
    chosen = {"event_model": event_model, "alpha": 0.5}
    pairs = [pair for pair in TEXTS for _ in range(times)] + TEXTS[1:2]
    corpus = corpus_of(pairs)
    settings = TrainingSettings(scoring="sum", traits="none", **chosen)
    fitted = fit(corpus, corpus.labels, settings, corpus.channels(), keys=corpus.keys())
    assert sum(fitted.n_texts().values()) == len(TEXTS)
    for (label, text), score in zip(pairs, fitted.left_out_scores(), strict=True):
        others = corpus_of([pair for pair in pairs if pair != (label, text)])
        messages = [(m.label, m.tokens) for m in others.messages()]
        tokens = tokenize(parse_text(text)).tokens
        expected = learn(messages, **chosen).classifier.score(tokens)
        assert score.log_odds == pytest.approx(expected.log_odds, abs=1e-9)


def test_labels_drawn_by_lot_promise_nothing_however_often_each_text_stands_there():
    chance = np.random.default_rng(3)
    words = "stone garden table basket paper silver cloud button river bridge green ladder".split()
    texts = [" ".join(chance.choice(words, 8)) for _ in range(60)]
    pairs = [(("ham", "spam")[i % 2], text) for i, text in enumerate(texts) for _ in range(9)]
    corpus = corpus_of(pairs)
    settings = TrainingSettings(traits="none")
    for keys, least, most in ((corpus.keys(), 0.3, 0.7), (None, 0.95, 1)):
        fitted = fit(corpus, corpus.labels, settings, corpus.channels(), keys=keys)
        scores = fitted.left_out_scores()
        right = [
            (s.log_odds > 0) == (label == "spam")
            for s, label in zip(scores, corpus.labels, strict=True)
        ]
        assert least <= np.mean(right) <= most
