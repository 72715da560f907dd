"""Learning and forgetting, with every event model, traits and scoring, on model files."""

import pytest
from counted_models import (
    KINDS,
    THREE,
    by_combination,
    counted_messages,
    learn_counted,
    message,
    numbers_of,
    settings_of,
    teach,
    train,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from nbspam.learning.update import Change, forget
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.explanation import explain
from nbspam.store.lookup import Lookup, find_inconsistencies, read_model

BEGUN = [
    message(label, {"a": 2, "b": 1, f"w{i}": 3, "by:mx": 1}, numbers_of(7_654_321 * i), 900 + i)
    for i, label in enumerate(THREE * 2)
]


def begun(classes):
    """Return messages of each class that are none of those drawn."""
    return [one for one in BEGUN if one.label in classes]


def contents(path, history=(b'"calibrat', b'"lessons', b'"before_')):
    """Return the lines of a file, but for those that depend on the order of learning."""
    return [line for line in path.read_bytes().splitlines() if not line.startswith(history)]


def lines_but_calibration(path):
    return contents(path, (b'"calibration"', b'"lessons', b'"before_'))


def is_whole(path):
    """Hold a model to what `model check` recomputes, and traits to the number of messages."""
    return find_inconsistencies(path)[1] == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder whose files each example writes anew."""
    return tmp_path_factory.mktemp("files")


def emptied(folder):
    for path in folder.iterdir():
        path.unlink()
    return folder


@by_combination
@settings(max_examples=2)
@given(counted_messages(per_class=1, told=False), st.data())
def test_what_was_learned_and_forgotten_leaves_no_trace(folder, kind, scoring, messages, data):
    chosen = settings_of(kind, scoring)
    first = begun({one.label for one in messages})
    path = train(emptied(folder) / "model.json", first, chosen)
    before = lines_but_calibration(path)
    assert teach(path, messages, chosen) == Change(learned=len(messages))
    assert is_whole(path)
    known = data.draw(st.permutations(messages))
    unlabelled = [one._replace(label=None) for one in known[:1]]
    assert forget(path, [*unlabelled, *known[1:]]) == Change(forgotten=len(messages))
    assert lines_but_calibration(path) == before
    assert is_whole(path)


@by_combination
@settings(max_examples=2)
@given(counted_messages(per_class=1, told=False), st.data())
def test_any_order_makes_the_same_file(folder, kind, scoring, messages, data):
    chosen = settings_of(kind, scoring)
    classes = {one.label for one in messages}
    first = begun(classes)
    whole = train(emptied(folder) / "whole.json", [*first, *messages], chosen)
    path = folder / "model.json"
    mixed = data.draw(st.permutations([*first, *messages]))
    half = data.draw(st.integers(0, len(mixed)))
    train(path, mixed[:half] if {one.label for one in mixed[:half]} == classes else first, chosen)
    teach(path, mixed[:half], chosen)
    teach(path, mixed[half:], chosen)
    assert contents(path) == contents(whole)
    assert is_whole(path)


@pytest.mark.few(5)
@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_a_message_is_moved_and_forgotten_with_its_numbers(tmp_path, kind):
    chosen = settings_of(kind, "evidence")
    path = train(tmp_path / "model.json", BEGUN, chosen)
    before = lines_but_calibration(path)
    one = message("spam", {"a": 3, "new": 2}, numbers_of(3**11), 1)
    assert teach(path, [one], chosen, remember=False) == Change(learned=1)
    strange = one._replace(
        tokens=[*one.tokens, "never"],
        extras=one.extras._replace(traits=tuple(v + 1 for v in one.extras.traits)),
    )
    # Without the ledger what the counts have can be forgotten.
    assert forget(path, [strange], remember=False) == Change(unchanged=1)
    assert forget(path, [one], remember=False) == Change(forgotten=1)
    assert lines_but_calibration(path) == before
    moved = BEGUN[0]._replace(label="spam")
    assert teach(path, [moved], chosen) == Change(moved=1)
    right = train(tmp_path / "right.json", [moved, *BEGUN[1:]], chosen)
    assert contents(path) == contents(right)


@by_combination
@settings(max_examples=2)
@given(counted_messages(told=False))
def test_a_saved_model_is_read_as_it_was(folder, kind, scoring, messages):
    learned = learn_counted(messages, settings_of(kind, scoring))
    path = learned.save(emptied(folder) / "model.json")
    model = read_model(path)
    assert (model.metadata, model.counts) == (learned.fit.metadata, learned.counts)
    with Lookup(path) as lookup:
        assert lookup.metadata == learned.fit.metadata
        saved = Classifier(lookup.metadata, lookup.counts)
        for one in messages:
            own = one.tokens, one.extras
            assert saved.score(*own) == learned.classifier.score(*own)
            assert explain(saved, *own) == explain(learned.classifier, *own)
