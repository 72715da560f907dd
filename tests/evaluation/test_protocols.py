import random
from collections import Counter
from functools import partial
from itertools import compress

import pytest
from one_case import each

from nbspam.errors import OptionError, SourceError, TrainingError
from nbspam.evaluation import protocols
from nbspam.evaluation.results import worst_mistakes
from nbspam.learning.batch import fit, token_counts
from nbspam.learning.corpus import Corpus
from nbspam.learning.learner import Learner
from nbspam.learning.settings import TrainingSettings, class_names, empty_metadata
from nbspam.scoring.verdict import CutOffs
from nbspam.scoring.version import FilterVersion
from nbspam.tokens.tokenized import TokenizedMessage

SCORINGS = ("sum", "evidence")


def random_messages(n=40, classes=("ham", "spam"), seed=0):
    """Return labels and token sets; message i alone holds the token `only<i>`."""
    chance, messages = random.Random(seed), []
    for i in range(n):
        label = classes[i % len(classes)]
        tokens = {chance.choice("abcdefgh") for _ in range(4)} | {f"only{i}"}
        if chance.random() < 0.5:
            tokens.add(f"of-{label}")
        messages.append((label, tokens))
    return messages


def tokenized(messages):
    return [
        TokenizedMessage(f"file:{i}", label, sorted(tokens))
        for i, (label, tokens) in enumerate(messages)
    ]


def names_of(messages):
    return [message.source for message in tokenized(messages)]


def learner_of(messages, settings):
    """Return a learner that has learned messages at once."""
    corpus = Corpus.from_messages(tokenized(messages))
    found = fit(corpus.presence(), corpus.labels, settings, corpus.channels())
    counts = {t: tuple(row) for t, row in token_counts(corpus.vocabulary, found.counts)}
    return Learner(found.metadata, counts)


SUM = TrainingSettings(scoring="sum")


def run(protocol, messages, n, settings=SUM, cut_offs=CutOffs()):  # noqa: B008
    return protocol(
        protocols.Trial(Corpus.from_messages(tokenized(messages)), settings, cut_offs), n
    )


run_folds, run_first, run_online = (
    partial(run, protocol)
    for protocol in (protocols.folds, protocols.train_first, protocols.online)
)


def assert_scored_by(classifier, outcomes, messages):
    assert [o.label for o in outcomes] == [label for label, _ in messages]
    for outcome, (_, tokens) in zip(outcomes, messages, strict=True):
        expected, actual = classifier.score(tokens), outcome.classification.score
        assert pytest.approx(expected.log_odds, rel=1e-9, abs=1e-9) == actual.log_odds
        assert pytest.approx(expected.probabilities, rel=1e-9, abs=1e-9) == actual.probabilities


def folds_by_hand(messages, k):
    """Return the fold of each message: its number within its class, modulo k."""
    seen = Counter()
    return [(seen.update([label]) or seen[label] - 1) % k for label, _ in messages]


@each("scoring", SCORINGS)
@each("classes", [("ham", "spam"), ("ham", "promo", "spam")])
def test_each_message_is_scored_by_a_model_of_the_other_folds(scoring, classes):
    messages = random_messages(30, classes)
    settings = TrainingSettings(scoring=scoring)
    found = run_folds(messages, 3, settings)
    assert names_of(messages) == [o.classification.source for o in found.outcomes]
    fold = folds_by_hand(messages, 3)
    for part in range(3):
        of_part = [f == part for f in fold]
        others = [message for message, is_own in zip(messages, of_part, strict=True) if not is_own]
        tested = compress(found.outcomes, of_part), list(compress(messages, of_part))
        assert_scored_by(learner_of(others, settings).classifier(), list(tested[0]), tested[1])


def test_mistakes_alone_bring_their_words_strongest_first_and_no_model_knows_the_tested_message():
    found = run_folds(random_messages(60, seed=2), 5)
    mistakes = [o for o in found.outcomes if o.words]
    assert mistakes
    assert not [w for o in mistakes for w in o.words if w.token.startswith("only")]
    for outcome in found.outcomes:
        assert (outcome.assigned_class != outcome.label) >= bool(outcome.words)
        shares = [abs(word.share) for word in outcome.words]
        assert sorted(shares, reverse=True) == shares
        assert len(shares) <= protocols.N_STRONGEST_WORDS


def test_folds_know_the_classes_and_the_positive_one_and_the_cut_offs_make_the_verdict():
    for classes, settings, expected in (
        (("ham", "spam"), SUM, (("ham", "spam"), "spam")),
        (("a", "b", "c"), SUM, (("a", "b", "c"), None)),
        (("a", "b"), TrainingSettings(positive="a"), (("b", "a"), "a")),
    ):
        found = run_folds(random_messages(30, classes), 4, settings)
        assert (found.classes, found.positive) == expected
        assert found == run_folds(random_messages(30, classes), 4, settings)
    sure = run_folds(random_messages(), 4, cut_offs=CutOffs(spam=1, ham=0))
    assert {o.classification.verdict for o in sure.outcomes} == {"unsure"}


@each("scoring", SCORINGS)
def test_train_first_tests_the_rest_with_a_model_of_the_first(scoring):
    messages = random_messages(30)
    settings = TrainingSettings(scoring=scoring, prior=0.3)
    found = run_first(messages, 12, settings)
    assert names_of(messages)[12:] == [o.classification.source for o in found.outcomes]
    classifier = learner_of(messages[:12], settings).classifier()
    assert_scored_by(classifier, found.outcomes, messages[12:])


def test_a_saved_model_is_tested_on_messages_with_labels_that_it_knows():
    messages = random_messages(30)
    spam_filter = FilterVersion(learner_of(messages, SUM).classifier(), CutOffs())
    found = protocols.saved_model(spam_filter, iter(tokenized(messages)))
    assert names_of(messages) == [o.classification.source for o in found.outcomes]
    scores = [spam_filter.classifier.score(tokens) for _, tokens in messages]
    assert scores == [o.classification.score for o in found.outcomes]
    unknown = iter([TokenizedMessage("x:1", "promo", ["a"])])
    with pytest.raises(SourceError, match=r"^x:1: .*'promo'.*ham, spam"):
        protocols.saved_model(spam_filter, unknown)


def test_the_worst_mistakes_come_first():
    found = run_folds(random_messages(60, seed=2), 5)
    everything = worst_mistakes(found, 1000)
    assert worst_mistakes(found, 5) == everything[:5]
    wrong = [
        o for o in found.outcomes if (o.classification.probability > 0.5) != (o.label == "spam")
    ]
    assert [
        o for o in wrong if o.classification.verdict == "unsure"
    ]  # a mistake at 0.5 all the same
    of_truth = [o.classification.probabilities[o.label] for o in everything]
    assert of_truth == sorted(o.classification.probabilities[o.label] for o in wrong)


# Online


def by_hand(messages, batch, settings):
    """Return the scores of all but the first batch by learning and scoring in turn."""
    first, labels = messages[:batch], [label for label, _ in messages]
    if {*labels[:batch]} == {*labels}:
        learner = learner_of(first, settings)
    else:
        learner = Learner(empty_metadata(*class_names(labels, None), settings), {})
        for label, tokens in first:
            learner.learn(label, tokens)
    scores = []
    for start in range(batch, len(messages), batch):
        part, classifier = messages[start : start + batch], learner.classifier()
        scores += [classifier.score(tokens) for _, tokens in part]
        for step in (learner.learn, learner.refine):
            for label, tokens in part:
                step(label, tokens)
    return scores


@each("batch", [1, 4, 11, 39])
@each("scoring", SCORINGS)
@each("classes", [("ham", "spam"), ("ham", "promo", "spam")])
def test_online_is_scoring_and_learning_in_turn(batch, scoring, classes):
    messages = random_messages(40, classes)
    settings = TrainingSettings(scoring=scoring, prior=0.4)
    found = run_online(messages, batch, settings)
    expected = by_hand(messages, batch, settings)
    assert names_of(messages)[batch:] == [o.classification.source for o in found.outcomes]
    assert [label for label, _ in messages[batch:]] == [o.label for o in found.outcomes]
    assert str(batch) in found.protocol
    for score, outcome in zip(expected, found.outcomes, strict=True):
        assert (
            pytest.approx(score.log_odds, rel=1e-9, abs=1e-9)
            == outcome.classification.score.log_odds
        )
        assert pytest.approx(score.probabilities) == outcome.classification.score.probabilities


# What is refused

MESSAGES, ONE_CLASS = random_messages(40), random_messages(10, ("spam",))
SORTED = sorted(MESSAGES, key=lambda message: message[0])
THREE = [("spam", {"a"}), ("ham", {"b"}), ("promo", {"c"})]
ONE_SPAM = [("spam", {"a"}), ("ham", {"b"}), ("ham", {"c"})]
FOLDS = r"^cannot make {:,} folds?, since the smallest class has 20 messages; .* 2 to 20 "
FIRST = "^cannot train on the first {} of 40 messages .* from 1 to 39$"


@each(
    "run, messages, n, sentence",
    [
        *((run_folds, MESSAGES, k, FOLDS.format(k)) for k in (-1, 0, 1, 21, 1000)),
        (run_folds, ONE_CLASS, 2, "only the class 'spam'"),
        (run_folds, ONE_SPAM, 2, "a class has one message; give two or more"),
        *((run_first, MESSAGES, first, FIRST.format(first)) for first in (-5, 0, 40, 41)),
        (run_first, SORTED, 5, "first 5 messages"),
        (run_first, [(name, {name}) for name in "abc"], 2, "neither 'a' nor 'b' is called spam"),
        (run_first, THREE, 2, "class 'promo' is not among the first 2 messages"),
        *((run_online, MESSAGES, n, f"^a batch of {n} is .* at least 1$") for n in (-1, 0, 40, 41)),
        (run_online, ONE_CLASS, 2, "only the class"),
    ],
)
def test_what_cannot_be_tested_is_one_sentence(run, messages, n, sentence):
    with pytest.raises((OptionError, TrainingError), match=sentence) as error:
        run(messages, n)
    assert "\n" not in str(error.value)
