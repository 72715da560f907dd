import gc
import json
import math
import re
import tracemalloc
from pathlib import Path

import pytest
from counted_models import teach, train
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from small_models import assert_one_sentence, refused, with_learned
from whole_models import message, messages_of, save, without_calibration

from nbspam.errors import ModelError, TrainingError
from nbspam.learning import update
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.update import Change, PendingMessages, forget, learn, moves
from nbspam.store.lookup import Lookup, Model, find_inconsistencies, read_model
from nbspam.store.metadata import with_counts
from nbspam.store.model_file import write_model
from nbspam.tokens.tokenized import TokenizedMessage

HAM, SPAM = "ham", "spam"
WANTED = TrainingSettings().outputs


def sections(path):
    """Return the bytes of the tokens and of the ledger."""
    with Lookup(path) as lookup:
        raw = path.read_bytes()
        return [raw[start:end] for start, end in lookup.sections]


def calibrations(path):
    return read_model(path).metadata.learned.calibrations


def assert_whole(path):
    """Hold a model to what `model check` recomputes, and its ledger to its messages."""
    model, wrong = find_inconsistencies(path)
    assert wrong == []
    metadata = model.metadata
    assert with_counts(metadata, model.counts) == metadata
    stated = json.loads(path.read_bytes())["derived"]["bias"]
    stated = [-math.inf if b is None else b for b in stated]
    assert stated == pytest.approx(metadata.bias, abs=5.01e-7)  # six decimals
    for k, n in enumerate(metadata.learned.messages):
        assert sum(row[k] for row in model.learned.values()) <= n
    return model


def assert_same(one, other):
    """Hold two models to each other, but for the calibration and what it remembers."""
    assert sections(one) == sections(other)
    derived = [re.findall(rb'^"derived".*', path.read_bytes(), re.M) for path in (one, other)]
    assert len(derived[0]) == 1
    assert derived[0] == derived[1]
    both = [without_calibration(read_model(path).metadata) for path in (one, other)]
    assert both[0] == both[1]
    assert both[0].bias == pytest.approx(both[1].bias, abs=1e-9)


def assert_trained(path, messages):
    """Hold a model to that of training on these messages."""
    train(path.with_name("right.json"), messages)
    assert_same(path.with_name("right.json"), path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.json"


BASE = [
    message(HAM, "lunch", "noon", number=1),
    message(HAM, "lunch", "notes", number=2),
    message(HAM, "meeting", "notes", number=3),
    message(SPAM, "free", "prize", number=4),
    message(SPAM, "free", "click", number=5),
]


@pytest.fixture
def model(path):
    train(path, BASE)
    return path


# Learning

MESSAGES = messages_of([HAM, SPAM])


@given(MESSAGES, MESSAGES)
def test_learning_the_same_again_changes_nothing(tmp_path_factory, first, second):
    path = tmp_path_factory.mktemp("again") / "model.json"
    teach(path, [*BASE, *first])
    teach(path, second)
    before = path.read_bytes()
    assert teach(path, second) == Change(unchanged=len(second))
    assert before == path.read_bytes()
    assert_whole(path)


def test_the_calibration_does_not_depend_on_the_order_within_a_batch(tmp_path):
    batch = [message(label, f"w{i}", "x", number=i) for i in range(9) for label in (HAM, SPAM)]
    for name, messages in (("a", batch), ("b", batch[::-1])):
        train(tmp_path / name, BASE)
        teach(tmp_path / name, messages)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_message_that_is_found_twice_is_learned_twice_and_never_a_third_time(path):
    train(path, BASE)
    one = message(SPAM, "win", number=9)
    assert teach(path, [one]).learned == 1
    assert teach(path, [one, one]) == Change(learned=1, unchanged=1)
    assert teach(path, [one, one]) == Change(unchanged=2)
    assert teach(path, [one]) == Change(unchanged=1)
    found = assert_whole(path)
    assert (found.learned[one.digest], found.counts["win"]) == ((0, 2), (0, 2))
    empty = message(HAM, number=7)  # without tokens it is remembered, too
    assert teach(path, [empty]).learned == 1
    assert teach(path, [empty]).unchanged == 1
    assert assert_whole(path).metadata.learned.messages == (4, 4)
    assert forget(path, [empty]).forgotten == 1


def test_a_message_that_has_turned_up_in_another_class_is_moved(model):
    one = BASE[0]
    assert teach(model, [one._replace(label=SPAM)]) == Change(moved=1)
    assert_trained(model, [one._replace(label=SPAM), *BASE[1:]])
    assert teach(model, [one._replace(label=HAM)]) == Change(moved=1)
    assert_trained(model, BASE)
    both = [one, one._replace(label=SPAM)]  # in both classes it is learned in both
    assert teach(model, both) == Change(learned=1, unchanged=1)
    assert teach(model, both) == Change(unchanged=2)
    assert read_model(model).learned[one.digest] == (1, 1)
    assert_trained(model, [*BASE, both[1]])


@each("known", [[], BASE, BASE[1:]])  # a message that has gone stays learned
def test_nothing_new_writes_nothing(model, known):
    before, contents = model.stat(), model.read_bytes()
    assert teach(model, known) == Change(unchanged=len(known))
    assert forget(model, [message(HAM, "never", number=99)]) == Change(unchanged=1)
    assert forget(model, [BASE[0]._replace(label=SPAM)]) == Change(unchanged=1)  # ham's
    after = model.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert model.read_bytes() == contents


def test_of_known_messages_no_tokens_are_kept(model, monkeypatch):
    pending = PendingMessages(WANTED)
    new = [message(SPAM, "new", number=i) for i in range(10, 15)]
    pending.add([*BASE, new[0], BASE[0], BASE[1]], model)
    assert pending.occurrences.total() == 8
    # Two are found once more than they were learned.
    kept = [one.digest for one in pending.corpus.messages()]
    assert sorted(kept) == sorted(one.digest for one in (new[0], *BASE[:2]))
    monkeypatch.setattr(update, "LOOKUP_GROUP", 2)  # looked up together
    assert teach(model, [*BASE, *new]) == Change(learned=5, unchanged=5)
    assert forget(model, [*new, *new]) == Change(forgotten=5, unchanged=5)
    # A pruned token is no hindrance.
    found = read_model(model)
    counts = {token: row for token, row in found.counts.items() if token != "noon"}
    save(model, Model(with_counts(found.metadata, counts), counts, found.learned))
    assert forget(model, BASE[:1]) == Change(forgotten=1)
    assert assert_whole(model).metadata.learned.messages == (2, 2)


@pytest.mark.long
def test_memory_does_not_grow_with_what_is_known(path):
    n = 3_000

    def mails():
        for i in range(n):
            yield message((HAM, SPAM)[i % 2], *(f"w{i}-{j}" for j in range(30)), number=i % 40)

    teach(path, mails())
    pending = PendingMessages(WANTED)
    tracemalloc.start()
    try:
        pending.add(mails(), path)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (pending.occurrences.total(), len(pending.corpus)) == (n, 0)
    tokens = n * 30 * 60  # bytes at the least, were they all kept
    assert kept < tokens / 4
    assert peak < tokens


def test_what_was_learned_meanwhile_is_not_learned_again(model):
    """Two processes that read the same mail, and write one after the other."""
    new = [message(SPAM, "win", number=9), message(HAM, "tea", number=10)]
    first, second, third = (PendingMessages(WANTED) for _ in range(3))
    first.add(new, model)
    second.add([*new, message(HAM, "milk", number=11)], model)
    third.add([new[0]._replace(label=HAM)], model)
    assert learn(model, first, TrainingSettings()) == Change(learned=2)
    assert learn(model, second, TrainingSettings()) == Change(learned=1, unchanged=2)
    assert assert_whole(model).metadata.learned.messages == (5, 3)
    assert learn(model, third, TrainingSettings()) == Change(moved=1)
    assert assert_whole(model).counts["win"] == (1, 0)


def test_a_model_made_meanwhile_is_added_to(path):
    pending = PendingMessages(WANTED)
    pending.add([message(SPAM, "win", number=9)], path)
    train(path, BASE)
    assert learn(path, pending, TrainingSettings()) == Change(learned=1)
    assert assert_whole(path).metadata.learned.messages == (3, 3)


def test_the_settings_are_those_of_a_new_model_only(path):
    first = TrainingSettings(alpha=0.7, prior=0.2, scoring="sum", positive="junk")
    assert teach(path, [], chosen=first) == Change()  # a model that knows nothing
    assert assert_whole(path).metadata.settings.classes == (HAM, "junk")
    teach(path, [message("junk", "free")], chosen=TrainingSettings(alpha=3, traits="none"))
    chosen = assert_whole(path).metadata.settings
    assert (chosen.alpha, chosen.prior, chosen.scoring) == (0.7, 0.2, "sum")
    assert (chosen.classes, chosen.positive) == ((HAM, "junk"), "junk")


@each(
    "of_model, of_messages",
    [
        (TrainingSettings(), TrainingSettings(traits="none")),
        (TrainingSettings(traits="none"), TrainingSettings()),
        (TrainingSettings(event_model="multinomial"), TrainingSettings()),
    ],
)
def test_messages_read_for_a_model_that_counts_other_numbers_are_not_learned(
    path, of_model, of_messages
):
    train(path, BASE, of_model)
    before = path.read_bytes()
    with pytest.raises(ModelError, match="another event model or other traits; run it again"):
        teach(path, [message(SPAM, "free", number=9)], chosen=of_messages)
    assert path.read_bytes() == before


def test_labels_that_make_no_model_are_refused(path):
    with pytest.raises(TrainingError):
        teach(path, [message("unsure", "x"), message(SPAM, "y")])
    with refused(path, "model not found"):
        forget(path, BASE)
    assert not list(path.parent.iterdir())


def test_without_the_ledger_everything_is_new_and_nothing_is_remembered(model):
    ledger = sections(model)[1]
    assert teach(model, BASE, remember=False) == Change(learned=5)
    assert teach(model, BASE[:1] * 2, remember=False) == Change(learned=2)
    assert ledger == sections(model)[1]
    found = assert_whole(model)
    assert (found.metadata.learned.messages, found.counts["lunch"]) == ((8, 4), (6, 0))


def test_without_the_ledger_what_was_learned_is_forgotten_by_its_counts(model):
    before = sections(model)
    new = [message(SPAM, "win", "free", number=9)]
    teach(model, new, remember=False)
    learned = read_model(model).metadata.learned
    assert forget(model, new) == Change(unchanged=1)  # the ledger has it not
    assert forget(model, new, remember=False) == Change(forgotten=1)
    assert before == sections(model)
    assert_whole(model)
    assert [lesson.digest for lesson in learned.recent] == [""]  # it is not taken back
    assert calibrations(model) == learned.calibrations
    contents = model.read_bytes()
    for never in (
        message(SPAM, "win"),  # a token that was never learned
        message(SPAM, "lunch"),  # nor in this class
        message(SPAM, "prize"),  # "free" is in all spam, and would be in more than all
        TokenizedMessage("-", None, ["free", "prize"], "0" * 32),  # of no class
    ):
        assert forget(model, [never], remember=False) == Change(unchanged=1)
        assert contents == model.read_bytes()


def test_a_message_without_a_label_is_forgotten_where_it_was_learned(model):
    fitted, before = read_model(model).metadata.learned, sections(model)
    unlabelled = [BASE[0]._replace(label=None), BASE[3]._replace(label=None)]
    assert forget(model, unlabelled) == Change(forgotten=2)
    assert_trained(model, [BASE[1], BASE[2], BASE[4]])
    after = read_model(model).metadata.learned
    assert (fitted.calibrations, fitted.recent) == (after.calibrations, after.recent)
    assert teach(model, [BASE[0], BASE[3]]).learned == 2
    assert before == sections(model)
    assert forget(model, BASE) == Change(forgotten=5)
    found = assert_whole(model)
    assert (found.counts, found.learned, found.metadata.learned.messages) == ({}, {}, (0, 0))
    teach(model, BASE)
    assert_trained(model, BASE)


def test_a_message_is_forgotten_as_often_as_it_comes(path):
    one = message(SPAM, "win", number=9)
    teach(path, [*BASE, one, one, one])
    assert forget(path, [one]) == Change(forgotten=1)
    assert read_model(path).learned[one.digest] == (0, 2)
    assert forget(path, [one] * 5) == Change(forgotten=2, unchanged=3)
    assert one.digest not in assert_whole(path).learned


@pytest.mark.parametrize("scoring", ["evidence", "sum"])
def test_a_slip_that_is_forgotten_leaves_the_file_as_it_was(path, scoring):
    chosen, refines = TrainingSettings(scoring=scoring), scoring == "evidence"
    train(path, BASE, chosen)
    before, learned = path.read_bytes(), read_model(path).metadata.learned
    slip = message(SPAM, "lunch", "notes", number=9)
    assert teach(path, [slip], chosen=chosen).learned == 1
    now = read_model(path).metadata.learned
    assert [lesson.digest for lesson in now.recent] == [slip.digest] * refines
    assert now.calibrated_by == learned.calibrated_by
    assert (now.calibrations != learned.calibrations) == refines
    assert forget(path, [slip]).forgotten == 1
    assert path.read_bytes() == before


@each("move", [False, True])
@each("counted", [True, False])
def test_a_ledger_that_does_not_fit_the_counts_breaks_nothing(model, counted, move):
    """It has messages that were never counted, or the counts have none of its class."""
    train(model, BASE)
    found = read_model(model)
    metadata, counts, learned = found.metadata, found.counts, found.learned
    tea = [message(HAM, "tea", number=i) for i in range(9)]
    if counted:
        learned = learned | {one.digest: (3, 0) for one in tea}
    else:
        histograms = ({0: 2}, {2: 1, 1: 1})
        metadata = with_learned(metadata, messages=(0, 2), count_histograms=histograms)
        counts = {"click": (0, 1), "free": (0, 2)}
    write_model(model, Model(metadata, counts, learned))
    before = model.read_bytes()
    mails = [*BASE[:3], *tea]
    why = "a message of its ledger is not in its counts; restore it" if counted else ""
    with refused(model, f"damaged: {why}"):
        if move:
            teach(model, [one._replace(label=SPAM) for one in mails])
        else:
            forget(model, mails * 3)
    assert before == model.read_bytes()


def test_where_no_whole_model_is_nothing_is_learned_or_forgotten(model, tmp_path):
    whole = model.read_bytes()
    promo = message("promo", "shoes")
    for act in (teach, forget):
        model.write_bytes(whole)
        with pytest.raises(ModelError) as error:
            act(model, [promo])
        words = ["ham, spam", "train a new model"] if act is teach else []
        assert_one_sentence(error, model, "'promo'", *words)
        assert model.read_bytes() == whole
        model.write_bytes(whole[:-20])
        with refused(model, "truncated"):
            act(model, BASE)
        assert model.read_bytes() == whole[:-20]
        with refused(tmp_path):
            act(tmp_path, BASE)


OPEN = Path("/proc/self/fd")


@pytest.mark.skipif(not OPEN.is_dir(), reason="this system does not list a process's open files")
def test_no_file_stays_open(model):
    gc.collect()  # closes what earlier tests left to the collector
    before = sorted(OPEN.iterdir())
    teach(model, [message(SPAM, "new", number=9)])
    forget(model, [message(SPAM, "new", number=9)])
    with pytest.raises(ModelError):
        teach(model, [message("promo", "new", number=9)])
    assert before == sorted(OPEN.iterdir())


# ledger


ROWS = st.integers(1, 4).flatmap(
    lambda width: st.tuples(*[st.lists(st.integers(0, 4), min_size=width, max_size=width)] * 2)
)


def after(learned, steps):
    row = list(learned)
    for source, target in steps:
        if source is not None:
            row[source] -= 1
            assert row[source] >= 0
        row[target] += 1
    return row


@given(ROWS)
def test_each_class_is_brought_up_to_what_was_found_and_not_above_it(rows):
    learned, found = rows
    steps = moves(*rows)
    reached = after(learned, steps)
    for n, m, k in zip(reached, found, learned, strict=True):
        assert m <= n <= max(m, k)
    assert moves(reached, found) == []  # what was brought up once stays
    # A message is moved rather than learned again.
    missing = sum(max(0, m - n) for n, m in zip(learned, found, strict=True))
    surplus = sum(max(0, n - m) for n, m in zip(learned, found, strict=True))
    assert len(steps) == missing
    assert sum(source is not None for source, _ in steps) == min(missing, surplus)


@each(
    "learned, found, expected",
    [
        ([0, 0], [1, 0], [(None, 0)]),
        ([0, 0], [1, 1], [(None, 0), (None, 1)]),
        ([1, 0], [1, 0], []),
        ([1, 0], [0, 0], []),
        ([0, 1], [1, 0], [(1, 0)]),
        ([0, 1], [1, 1], [(None, 0)]),
        ([0, 1], [3, 0], [(1, 0), (None, 0), (None, 0)]),
        ([2, 0], [1, 1], [(0, 1)]),
        ([1, 1, 0], [0, 0, 1], [(0, 2)]),
    ],
)
def test_moves_of_a_few_rows(learned, found, expected):
    assert moves(learned, found) == expected
