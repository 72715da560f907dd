"""A model in memory learns and forgets as its file does, number by number."""

import copy
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import SCORINGS, assert_one_sentence
from whole_models import THREE, TWO, numbers_of, taught

from nbspam.errors import ModelError, TrainingError
from nbspam.learning.prune import prune
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.update import (
    Change,
    PendingMessages,
    forget,
    forget_in_memory,
    learn,
    learn_in_memory,
)
from nbspam.store.model_file import read_model, write_model
from nbspam.tokens.digest import digest_of
from nbspam.tokens.tokenized import TokenizedMessage, Wanted

NAME = Path("the model")


def message(label, *tokens, number=0):
    """Return a message; the number tells messages of the same tokens apart."""
    numbers = numbers_of(number)
    digest = digest_of(tokens, [("message-id", f"<{number}>")], *numbers)
    return TokenizedMessage("-", label, sorted(tokens), digest, numbers=numbers)


def pending(messages):
    found = PendingMessages(Wanted(traits=True))
    found.add(messages)
    return found


def save(path, model):
    write_model(path, model.metadata, model.counts.items(), sorted(model.learned.items()))
    return path


def assert_same_model(in_file, in_memory):
    assert in_file.metadata == in_memory.metadata
    assert in_file.metadata.bias == in_memory.metadata.bias
    assert in_file.counts == in_memory.counts
    assert list(in_file.learned.items()) == list(in_memory.learned.items())


def batches(labels):
    """Draw batches of messages; few of each, so that the same comes again, and in another class."""
    one = st.builds(
        lambda label, tokens, number: message(label, *tokens, number=number),
        st.sampled_from(labels),
        st.sets(st.sampled_from(["a", "b", 'd"', "from:c", "received:e", "by:mx", "by:-"])),
        st.integers(0, 2),
    )
    acts = st.sampled_from(["learn", "learn", "forget", "learn all"])
    return st.lists(st.tuples(acts, st.lists(one, max_size=8)), max_size=5)


@st.composite
def histories(draw):
    """Draw classes, and batches to learn and to forget, which come without labels too."""
    classes = draw(st.sampled_from([TWO, THREE]))
    found = draw(batches(classes))
    unlabelled = draw(st.booleans())
    return classes, [
        (
            act,
            [one._replace(label=None) for one in some] if unlabelled and act == "forget" else some,
        )
        for act, some in found
    ]


@settings(deadline=None, max_examples=120)
@given(histories(), st.sampled_from(SCORINGS), st.sampled_from([None, 0.3]), st.booleans())
def test_learning_and_forgetting_are_those_of_the_file(
    tmp_path_factory, history, scoring, prior, pruned
):
    classes, acts = history
    path = tmp_path_factory.mktemp("memory") / "model.json"
    begun = [
        ("ham", {"a", "b"}, 1),
        ("spam", {"b", "c"}, 2),
        ("spam", {"c", "received:e", "by:mx"}, 3),
    ]
    model = taught(begun, classes, scoring, prior=prior, traits="kernel")
    if pruned:
        model = prune(model, min_count=2)
    save(path, model)
    chosen = TrainingSettings(traits="kernel", scoring=scoring)
    for act, messages in acts:
        if act == "forget":
            there = forget(path, messages)
            here, model = forget_in_memory(NAME, model, messages)
        else:
            remember = act == "learn"
            there = learn(path, pending(messages), chosen, remember)
            here, model = learn_in_memory(NAME, model, pending(messages), chosen, remember)
        assert there == here
        assert_same_model(read_model(path), model)


@settings(deadline=None, max_examples=60)
@given(batches(TWO), st.sampled_from(SCORINGS))
def test_a_new_model_in_memory_is_that_of_a_new_file(tmp_path_factory, acts, scoring):
    path = tmp_path_factory.mktemp("new") / "model.json"
    chosen = TrainingSettings(alpha=0.25, prior=0.4, scoring=scoring, traits="kernel")
    model = None
    for _, messages in acts:
        there = learn(path, pending(messages), chosen)
        here, model = learn_in_memory(NAME, model, pending(messages), chosen)
        assert there == here
        assert_same_model(read_model(path), model)


@settings(deadline=None, max_examples=40)
@given(batches(TWO))
def test_the_model_before_is_left_as_it_was(acts):
    model = taught([("ham", {"a", "b"}, 1), ("spam", {"b", "c"}, 2)])
    before = copy.deepcopy(model)
    for act, messages in acts:
        if act == "forget":
            forget_in_memory(NAME, model, messages)
        else:
            learn_in_memory(NAME, model, pending(messages), TrainingSettings())
        assert before == model


def test_what_is_learned_and_forgotten_again_is_gone():
    model = taught([("ham", {"a", "b"}, 1), ("spam", {"b", "c"}, 2)])
    new = [message("spam", "b", "new", number=7)]
    change, more = learn_in_memory(NAME, model, pending(new), TrainingSettings())
    assert change == Change(learned=1)
    assert more.counts["new"] == (0, 1)
    change, less = forget_in_memory(NAME, more, new * 2)
    assert change == Change(forgotten=1, unchanged=1)
    assert (less.counts, less.learned) == (model.counts, model.learned)
    assert less.metadata.learned.messages == model.metadata.learned.messages


def test_an_unknown_class_is_refused_under_the_name_of_the_model():
    model = taught([("ham", {"a"}, 1)])
    for act in (
        lambda messages: learn_in_memory(NAME, model, pending(messages), TrainingSettings()),
        lambda messages: forget_in_memory(NAME, model, messages),
    ):
        with pytest.raises(ModelError) as error:
            act([message("promo", "shoes")])
        assert_one_sentence(error, NAME, "'promo'", "ham, spam")


def test_a_ledger_that_does_not_fit_the_counts_is_refused():
    model = taught([("ham", {"a"}, 1)])
    never = message("spam", "zoo", number=9)
    model = model._replace(learned={**model.learned, never.digest: (0, 1)})
    with pytest.raises(ModelError) as error:
        forget_in_memory(NAME, model, [never])
    assert_one_sentence(error, NAME, "damaged")


def test_labels_that_make_no_model_are_refused():
    with pytest.raises(TrainingError, match="unsure"):
        learn_in_memory(NAME, None, pending([message("unsure", "x")]), TrainingSettings())
