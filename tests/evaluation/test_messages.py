import numpy as np
from one_case import each

from nbspam.evaluation import protocols
from nbspam.evaluation.messages import (
    LearnedBefore,
    duplicates_across_batches,
    duplicates_across_folds,
    stratified_folds,
)
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import TrainingSettings
from nbspam.library import train
from nbspam.reading.message import parse_text
from nbspam.scoring.verdict import CutOffs
from nbspam.tokens.tokenized import TokenizedMessage, tokenize

A, B, C, D = (bytes([n]) * 16 for n in range(4))
SPAM, HAM = [("spam", "win a prize"), ("spam", "free cash")], [("ham", "noon"), ("ham", "lunch")]
TEXTS = [SPAM[0], HAM[0], SPAM[1], HAM[1]]


def test_messages_that_are_the_same_as_another():
    assert duplicates_across_batches([A, B, A, C, A, B], 2) == 3
    assert duplicates_across_batches([A, B, C, C], 2) == 0
    assert duplicates_across_batches([A, B, A, B, C, C], 2, 2) == 2
    assert duplicates_across_batches([A, A, A, B], 2, 2) == 1
    assert duplicates_across_folds([A, A, B, B, C], [0, 1, 1, 1, 0]) == 2
    assert duplicates_across_folds([A, B, A, C, C, C, D], range(7)) == 5
    assert (
        duplicates_across_batches([], 1) is duplicates_across_folds([], [0, 1]) is None
    )  # without digests


def labelled(texts, settings):
    return [
        TokenizedMessage(
            *(str(i), label), *tokenize(parse_text(text), digest=True, outputs=settings.outputs)[2:]
        )
        for i, (label, text) in enumerate(texts)
    ]


TWICE = [*TEXTS, *TEXTS[:2], ("spam", "cheap loans"), ("ham", "the minutes")]


@each(
    "protocol, expected",
    [
        (protocols.leave_one_out, None),  # copies leave together
        (lambda trial: protocols.train_first(trial, 4), 2),
        (lambda trial: protocols.folds(trial, 2), 0),  # 0 and 4 are both in fold 0
        (lambda trial: protocols.folds(trial, 3), 4),
        (lambda trial: protocols.online(trial, 2), 2),
    ],
)
def test_each_protocol_counts_what_it_trained_on(protocol, expected):
    settings = TrainingSettings()
    read = Corpus.from_messages(labelled(TWICE, settings), settings.outputs)
    assert protocol(protocols.Trial(read, settings, CutOffs())).duplicates == expected


def test_a_model_leaves_out_what_it_has_learned_and_not_what_was_forgotten():
    model = train(TEXTS)
    messages = labelled([*TEXTS, ("ham", "the minutes")], TrainingSettings())
    found = protocols.saved_model(model.version, messages)
    assert [outcome.classification.source for outcome in found.outcomes] == ["4"]
    assert found.learned_before == LearnedBefore(5, 4, 4, 0)
    every = protocols.saved_model(model.version, messages, including_learned=True)
    assert len(every.outcomes) == 5
    assert every.learned_before == LearnedBefore(5, 4, 0, 0)
    model = train(TEXTS)
    model.forget([TEXTS[0]])
    found = protocols.saved_model(model.version, labelled(TEXTS, TrainingSettings()))
    assert [outcome.classification.source for outcome in found.outcomes] == ["0"]


# Folds


def test_folds_are_stratified_and_the_same_every_time():
    labels = ["spam", "ham"] * 6 + ["ham"] * 6
    for seed in (None, 0, 7):
        fold = stratified_folds(labels, 3, seed)
        assert fold.tolist() == stratified_folds(labels, 3, seed).tolist()
        for name, count in (("spam", 2), ("ham", 4)):
            of_class = fold[np.array(labels) == name]
            assert np.bincount(of_class).tolist() == [count] * 3
    assert stratified_folds(labels, 3).tolist()[:6] == [0, 0, 1, 1, 2, 2]
    assert stratified_folds(labels, 3, 1).tolist() != stratified_folds(labels, 3, 2).tolist()
