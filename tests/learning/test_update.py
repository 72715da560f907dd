import json
import math
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import assert_one_sentence, with_learned
from whole_models import assert_same_fit, numbers_of, without_calibration

from nbspam.bayes.calibration import untrained_calibrations
from nbspam.errors import ModelError, TrainingError
from nbspam.labels import UNSURE
from nbspam.learning.batch import fit, token_counts
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.update import Change, PendingMessages, forget, learn
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.verdict import CutOffs, verdict_of
from nbspam.store.check import disagreements, histograms_of, with_counts
from nbspam.store.lookup import Lookup
from nbspam.store.model_file import read_model, write_model
from nbspam.tokens.digest import digest_of
from nbspam.tokens.tokenized import TokenizedMessage

HAM, SPAM = "ham", "spam"
WANTED = TrainingSettings().wanted


def message(label, *tokens, number=0):
    """Return a message as `learn` takes it; the number tells messages of the same tokens apart."""
    numbers = numbers_of(number)
    digest = digest_of(tokens, [("message-id", f"<{number}>")], *numbers)
    return TokenizedMessage("-", label, sorted(tokens), digest, numbers=numbers)


def teach(path, messages, remember=True, chosen=TrainingSettings(), batch=500):  # noqa: B008
    pending = PendingMessages(chosen.wanted)
    pending.read(path, messages, remember, batch)
    return learn(path, pending, chosen, remember)


def train(path, messages, chosen=TrainingSettings()):  # noqa: B008
    """Learn all at once, as `train` does."""
    corpus = Corpus(chosen.wanted)
    for one in messages:
        corpus.add(one)
    found = fit(corpus, corpus.labels, chosen, corpus.channels(), corpus.traits())
    counts = token_counts(corpus.vocabulary, found.counts)
    write_model(path, found.metadata, counts, corpus.learned(found.metadata.settings.classes))


def sections(path):
    """Return the bytes of the tokens and of the ledger."""
    with Lookup(path) as lookup:
        (start, end), (first, last) = lookup.sections
        raw = path.read_bytes()
        return raw[start:end], raw[first:last]


def derived(path):
    """Return the line of the numbers that follow from the tokens, as it stands in the file."""
    (line,) = [at for at in path.read_bytes().splitlines() if at.startswith(b'"derived"')]
    return line


def assert_whole(path):
    """Hold a model to what `model check` recomputes."""
    model, wrong = disagreements(path)
    assert wrong == []
    histogram = histograms_of(model.counts.values(), len(model.metadata.settings.classes))
    hosts = Counter(row for token, row in model.counts.items() if token.startswith("by:"))
    assert dict(hosts) == model.metadata.learned.host_rows
    assert len(model.counts) == model.metadata.n_tokens
    assert list(map(dict, histogram)) == list(map(dict, model.metadata.learned.count_histograms))
    stated = json.loads(path.read_bytes())["derived"]["bias"]
    stated = [-math.inf if b is None else b for b in stated]
    assert stated == pytest.approx(model.metadata.bias, abs=1e-9)
    for k, n in enumerate(model.metadata.learned.messages):
        assert sum(row[k] for row in model.learned.values()) <= n
    return model


def assert_same(one, other):
    """Hold two models to each other, but for the calibration and what it remembers."""
    assert sections(one) == sections(other)
    assert derived(one) == derived(other)
    both = [without_calibration(read_model(path).metadata) for path in (one, other)]
    assert both[0] == both[1]
    assert both[0].bias == pytest.approx(both[1].bias, abs=1e-9)


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

# Few messages, so that the same comes again, and in the other class.
MESSAGES = st.lists(
    st.builds(
        lambda label, tokens, number: message(label, *tokens, number=number),
        st.sampled_from([HAM, SPAM]),
        st.sets(st.sampled_from(["a", "b", 'd"', "from:c", "received:e", "by:mx", "by:-"])),
        st.integers(0, 2),
    ),
    max_size=12,
)


@given(MESSAGES, st.randoms(), st.integers(1, 5), st.booleans())
def test_batches_in_any_order_learn_what_training_learns(
    tmp_path_factory, messages, chance, size, begun
):
    messages = [message(HAM, "a", number=8), message(SPAM, "b", number=9), *messages]
    folder = tmp_path_factory.mktemp("update")
    train(folder / "whole.json", messages)
    path = folder / "model.json"
    # A message that comes twice counts twice only where it comes twice at once.
    groups = {}
    for one in messages:
        groups.setdefault(one.digest, []).append(one)
    mixed = list(groups.values())
    chance.shuffle(mixed)
    parts = [mixed[i : i + size] for i in range(0, len(mixed), size)]
    batches = [[one for group in part for one in group] for part in parts]
    if begun and len({one.label for one in batches[0]}) == 2:
        train(path, batches.pop(0))
    for batch in batches:
        change = teach(path, batch)
        assert (change.learned, change.moved, change.unchanged) == (len(batch), 0, 0)
    assert_whole(path)
    assert_same(folder / "whole.json", path)


@given(MESSAGES, MESSAGES)
def test_what_was_learned_and_forgotten_leaves_no_trace(tmp_path_factory, before, after):
    path = tmp_path_factory.mktemp("forget") / "model.json"
    train(path, [*BASE, *before])
    known = {one.digest for one in [*BASE, *before]}
    new = [one for one in after if one.digest not in known]
    kept, numbers = sections(path), derived(path)
    metadata = read_model(path).metadata
    assert teach(path, new).learned == len(new)
    assert forget(path, new) == Change(forgotten=len(new))
    assert (kept, numbers) == (sections(path), derived(path))
    again = assert_whole(path).metadata
    assert metadata.learned.recent == again.learned.recent == ()
    assert without_calibration(metadata) == without_calibration(again)
    assert metadata.host_trust == again.host_trust


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


@pytest.mark.parametrize("scoring", ["evidence", "sum"])
def test_learning_refines_the_calibration_of_evidence(path, scoring):
    train(path, BASE, TrainingSettings(scoring=scoring))
    before = read_model(path).metadata.learned
    new = [message(SPAM, "free", "lunch", number=9)]
    teach(path, new, chosen=TrainingSettings(scoring=scoring))
    after = read_model(path).metadata.learned
    assert after.calibrated_by == before.calibrated_by
    assert (after.calibrations != before.calibrations) == (scoring == "evidence")


def test_a_message_that_is_found_twice_is_learned_twice_and_never_a_third_time(path):
    train(path, BASE)
    one = message(SPAM, "win", number=9)
    assert teach(path, [one]).learned == 1
    assert teach(path, [one, one]) == Change(learned=1, unchanged=1)
    assert teach(path, [one, one]) == Change(unchanged=2)
    assert teach(path, [one]) == Change(unchanged=1)
    found = assert_whole(path)
    assert found.learned[one.digest] == (0, 2)
    assert found.counts["win"] == (0, 2)


def test_a_message_that_has_turned_up_in_another_class_is_moved(tmp_path, model):
    one = BASE[0]
    assert teach(model, [one._replace(label=SPAM)]) == Change(moved=1)
    train(tmp_path / "right.json", [one._replace(label=SPAM), *BASE[1:]])
    assert_same(tmp_path / "right.json", model)
    assert teach(model, [one._replace(label=HAM)]) == Change(moved=1)
    train(tmp_path / "right.json", BASE, TrainingSettings())
    assert_same(tmp_path / "right.json", model)


def test_a_message_in_both_classes_is_learned_in_both(tmp_path, model):
    both = [BASE[0], BASE[0]._replace(label=SPAM)]
    assert teach(model, both) == Change(learned=1, unchanged=1)
    assert teach(model, both) == Change(unchanged=2)
    assert read_model(model).learned[BASE[0].digest] == (1, 1)
    train(tmp_path / "right.json", [*BASE, both[1]])
    assert_same(tmp_path / "right.json", model)


def test_a_message_that_has_gone_stays_learned(model):
    before = model.read_bytes()
    assert teach(model, BASE[1:]) == Change(unchanged=4)
    assert before == model.read_bytes()


def test_a_message_without_tokens_is_remembered(model):
    empty = message(HAM, number=7)
    assert teach(model, [empty]).learned == 1
    assert teach(model, [empty]).unchanged == 1
    assert assert_whole(model).metadata.learned.messages == (4, 2)
    assert forget(model, [empty]).forgotten == 1


@pytest.mark.parametrize("known", [[], BASE], ids=["nothing", "known"])
def test_nothing_new_writes_nothing(model, known):
    before = model.stat()
    assert teach(model, known) == Change(unchanged=len(known))
    assert forget(model, [message(HAM, "never", number=99)]) == Change(unchanged=1)
    after = model.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_of_known_messages_no_tokens_are_kept(model):
    pending = PendingMessages(WANTED)
    new = message(SPAM, "new", number=9)
    pending.read(model, [*BASE, new, BASE[0], BASE[1]], remember=True)
    assert pending.found.total() == 8
    # Two are found once more than they were learned.
    assert {new.digest, BASE[0].digest, BASE[1].digest} == {
        one.digest for one in pending.corpus.messages()
    }
    assert len(pending.corpus) == 3


def test_memory_does_not_grow_with_what_is_known(path):
    def mails():
        for i in range(3_000):
            yield message((HAM, SPAM)[i % 2], *(f"w{i}-{j}" for j in range(30)), number=i)

    teach(path, mails())
    pending = PendingMessages(WANTED)
    tracemalloc.start()
    try:
        pending.read(path, mails(), remember=True)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert pending.found.total() == 3_000
    assert len(pending.corpus) == 0
    tokens = 3_000 * 30 * 60  # bytes at the least, were they all kept
    assert kept < tokens / 4
    assert peak < tokens


def test_what_was_learned_meanwhile_is_not_learned_again(model):
    """Two processes that read the same mail, and write one after the other."""
    new = [message(SPAM, "win", number=9), message(HAM, "tea", number=10)]
    first, second = PendingMessages(WANTED), PendingMessages(WANTED)
    first.read(model, new, remember=True)
    second.read(model, [*new, message(HAM, "milk", number=11)], remember=True)
    assert learn(model, first, TrainingSettings()) == Change(learned=2)
    assert learn(model, second, TrainingSettings()) == Change(learned=1, unchanged=2)
    assert assert_whole(model).metadata.learned.messages == (5, 3)


def test_what_was_moved_meanwhile_is_moved_again(model):
    pending = PendingMessages(WANTED)
    pending.read(model, [message(SPAM, "win", number=9)], remember=True)
    teach(model, [message(HAM, "win", number=9)])
    assert learn(model, pending, TrainingSettings()) == Change(moved=1)
    assert assert_whole(model).counts["win"] == (0, 1)


def test_a_model_made_meanwhile_is_added_to(path):
    pending = PendingMessages(WANTED)
    pending.read(path, [message(SPAM, "win", number=9)], remember=True)
    train(path, BASE)
    assert learn(path, pending, TrainingSettings()) == Change(learned=1)
    assert assert_whole(path).metadata.learned.messages == (3, 3)


# A new model


@pytest.mark.parametrize("only", [HAM, SPAM])
def test_a_model_of_one_class_is_unsure_of_everything(path, only):
    assert teach(path, [message(only, "free", number=i) for i in range(3)]).learned == 3
    with Lookup(path) as lookup:
        score = Classifier(lookup.metadata, lookup.counts).score({"free"})
        assert (score.probability, score.log_odds) == (0.5, 0)
        assert verdict_of(lookup.metadata, score, CutOffs()) == UNSURE
        assert lookup.metadata.host_trust == (0, 0)
    assert_whole(path)
    teach(path, [message(HAM if only == SPAM else SPAM, "tea", number=9)])
    with Lookup(path) as lookup:
        score = Classifier(lookup.metadata, lookup.counts).score({"free"})
        assert (score.probability > 0.5) == (only == SPAM)
    assert_whole(path)


@pytest.mark.parametrize("turn", [1, -1])
def test_one_class_after_the_other_judges_as_both_at_once(tmp_path, turn):
    own = {HAM: ["lunch", "notes", "tea"], SPAM: ["free", "prize", "click"]}
    messages = [
        message(label, f"day{i % 7}", own[label][i % 3], own[label][(i + 1) % 3], number=i)
        for label in (HAM, SPAM)
        for i in range(150)
    ]
    path = tmp_path / "model.json"
    for label in [HAM, SPAM][::turn]:
        teach(path, [one for one in messages if one.label == label])
    with Lookup(path) as lookup:
        classifier = Classifier(lookup.metadata, lookup.counts)
        for label, words in own.items():
            score = classifier.score([*words, "day8"])
            assert verdict_of(lookup.metadata, score, CutOffs()) == label
            assert abs(score.log_odds) > 1
        assert lookup.metadata.settings.has_traits
        untrained = untrained_calibrations(with_traits=True)
        assert lookup.metadata.learned.calibrations != (untrained,)


def test_no_message_makes_a_model_that_knows_nothing(path):
    assert teach(path, []) == Change()
    assert assert_whole(path).metadata.settings.classes == (HAM, SPAM)


def test_the_settings_are_those_of_a_new_model_only(path):
    teach(path, BASE[:1], chosen=TrainingSettings(alpha=0.7, prior=0.2, scoring="sum"))
    teach(path, BASE[1:], chosen=TrainingSettings(alpha=3, traits="none"))
    chosen = assert_whole(path).metadata.settings
    assert (chosen.alpha, chosen.prior, chosen.scoring) == (0.7, 0.2, "sum")


@pytest.mark.parametrize(
    ("of_model", "of_messages"),
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
    with pytest.raises(ModelError, match="counts other numbers of them; run it again"):
        teach(path, [message(SPAM, "free", number=9)], chosen=of_messages)
    assert path.read_bytes() == before


@pytest.mark.parametrize("label", ["junk", HAM])
def test_the_positive_class_of_a_new_model_may_be_named(path, label):
    teach(path, [message(label, "free")], chosen=TrainingSettings(positive="junk"))
    metadata = assert_whole(path).metadata
    assert (metadata.settings.classes, metadata.settings.positive) == ((HAM, "junk"), "junk")


def test_three_classes_are_learned_and_forgotten(path):
    mails = [message(name, name, "x", number=i) for i, name in enumerate([HAM, "promo", SPAM] * 2)]
    train(path, mails)
    before = sections(path)
    new = [message("promo", "shoes", number=9)]
    assert teach(path, new).learned == 1
    assert teach(path, [new[0]._replace(label=HAM)]).moved == 1
    assert_whole(path)
    assert forget(path, [new[0]._replace(label=None)]).forgotten == 1
    assert before == sections(path)


def test_a_class_the_model_has_not_is_refused(model):
    before = model.read_bytes()
    with pytest.raises(ModelError) as error:
        teach(model, [message("promo", "shoes")])
    assert_one_sentence(error, model, "'promo'", "ham, spam", "train a new model")
    with pytest.raises(ModelError) as error:
        forget(model, [message("promo", "shoes")])
    assert_one_sentence(error, model, "'promo'")
    assert before == model.read_bytes()


def test_labels_that_make_no_model_are_refused(path):
    with pytest.raises(TrainingError):
        teach(path, [message("unsure", "x"), message(SPAM, "y")])
    assert not path.exists()


# Without the ledger


def test_without_the_ledger_everything_is_new_and_nothing_is_remembered(model):
    ledger = sections(model)[1]
    assert teach(model, BASE, remember=False) == Change(learned=5)
    assert teach(model, BASE[:1] * 2, remember=False) == Change(learned=2)
    assert ledger == sections(model)[1]
    found = assert_whole(model)
    assert found.metadata.learned.messages == (8, 4)
    assert found.counts["lunch"] == (6, 0)


def test_without_the_ledger_what_was_learned_is_forgotten_by_its_counts(model):
    before = sections(model)
    new = [message(SPAM, "win", "free", number=9)]
    teach(model, new, remember=False)
    assert forget(model, new) == Change(unchanged=1)  # the ledger has it not
    assert forget(model, new, remember=False) == Change(forgotten=1)
    assert before == sections(model)
    assert_whole(model)


@pytest.mark.parametrize(
    "never",
    [
        message(SPAM, "win"),  # a token that was never learned
        message(SPAM, "lunch"),  # nor in this class
        message(SPAM, "prize"),  # "free" is in all spam, and would be in more than all
        TokenizedMessage("-", None, ["free", "prize"], "0" * 32),  # of no class
    ],
)
def test_without_the_ledger_what_cannot_have_been_learned_stays(model, never):
    before = model.read_bytes()
    assert forget(model, [never], remember=False) == Change(unchanged=1)
    assert before == model.read_bytes()


# Forgetting


def test_a_message_without_a_label_is_forgotten_where_it_was_learned(model, tmp_path):
    unlabelled = [BASE[0]._replace(label=None), BASE[3]._replace(label=None)]
    assert forget(model, unlabelled) == Change(forgotten=2)
    train(tmp_path / "rest.json", [BASE[1], BASE[2], BASE[4]])
    assert_same(tmp_path / "rest.json", model)


def test_a_message_is_forgotten_only_in_the_class_that_is_named(model):
    before = model.read_bytes()
    assert forget(model, [BASE[0]._replace(label=SPAM)]) == Change(unchanged=1)
    assert before == model.read_bytes()


def test_a_message_is_forgotten_as_often_as_it_comes(path):
    one = message(SPAM, "win", number=9)
    teach(path, [*BASE, one, one, one])
    assert forget(path, [one]) == Change(forgotten=1)
    assert read_model(path).learned[one.digest] == (0, 2)
    assert forget(path, [one] * 5) == Change(forgotten=2, unchanged=3)
    assert one.digest not in assert_whole(path).learned


def test_everything_can_be_forgotten_and_learned_again(model, tmp_path):
    assert forget(model, BASE) == Change(forgotten=5)
    found = assert_whole(model)
    assert (found.counts, found.learned, found.metadata.learned.messages) == ({}, {}, (0, 0))
    teach(model, BASE)
    train(tmp_path / "again.json", BASE)
    assert_same(tmp_path / "again.json", model)


def test_a_forgotten_message_can_be_learned_again(model):
    before = sections(model)
    forget(model, BASE[:1])
    assert teach(model, BASE[:1]).learned == 1
    assert before == sections(model)


@pytest.mark.parametrize("scoring", ["evidence", "sum"])
def test_a_slip_that_is_forgotten_leaves_the_file_as_it_was(path, scoring):
    chosen = TrainingSettings(scoring=scoring)
    train(path, BASE, chosen)
    before, learned = path.read_bytes().splitlines(), read_model(path).metadata.learned
    slip = message(SPAM, "lunch", "notes", number=9)
    assert teach(path, [slip], chosen=chosen).learned == 1
    refines = scoring == "evidence"
    assert read_model(path).metadata.learned.recent == ((slip.digest,) if refines else ())
    assert forget(path, [slip]).forgotten == 1
    after = path.read_bytes().splitlines()
    changed = [old[:14] for old, new in zip(before, after, strict=True) if old != new]
    assert changed == ([b'"calibration":'] if refines else [])
    assert_same_fit(learned.calibrations, read_model(path).metadata.learned.calibrations)


def test_a_fitted_message_that_is_forgotten_leaves_the_calibration(model):
    before = read_model(model).metadata.learned
    forget(model, BASE[:1])
    after = read_model(model).metadata.learned
    assert (before.calibrations, before.recent) == (after.calibrations, after.recent)


def test_without_the_ledger_no_lesson_is_taken_back(model):
    teach(model, [message(SPAM, "win", "lunch", number=9)], remember=False)
    learned = read_model(model).metadata.learned
    assert learned.recent == ()
    forget(model, [message(SPAM, "win", "lunch", number=9)], remember=False)
    assert read_model(model).metadata.learned.calibrations == learned.calibrations


def test_without_a_model_there_is_nothing_to_forget(path):
    with pytest.raises(ModelError) as error:
        forget(path, BASE)
    assert_one_sentence(error, path, "no such model")
    assert not list(path.parent.iterdir())


def test_a_pruned_token_is_no_hindrance(model):
    found = read_model(model)
    counts = {token: row for token, row in found.counts.items() if token != "noon"}
    metadata = with_counts(found.metadata, counts)
    write_model(model, metadata, counts.items(), sorted(found.learned.items()))
    assert forget(model, BASE[:1]) == Change(forgotten=1)
    assert assert_whole(model).metadata.learned.messages == (2, 2)


# Damage


def damaged(path, change):
    fields = json.loads(path.read_text())
    found = read_model(path)
    metadata, counts, learned = change(found.metadata, dict(found.counts), dict(found.learned))
    assert fields["classes"] == list(metadata.settings.classes)
    write_model(path, metadata, counts.items(), sorted(learned.items()))


@pytest.mark.parametrize("move", [False, True], ids=["forget", "move"])
@pytest.mark.parametrize(
    "change",
    [
        # The ledger has messages that were never counted.
        lambda metadata, counts, learned: (
            metadata,
            counts,
            learned | {message(HAM, "tea", number=i).digest: (3, 0) for i in range(9)},
        ),
        lambda metadata, counts, learned: (
            with_learned(metadata, messages=(0, 2), count_histograms=({0: 2}, {2: 1, 1: 1})),
            {"free": (0, 2), "click": (0, 1)},
            learned,
        ),
    ],
    ids=["too-many", "none"],
)
def test_a_ledger_that_does_not_fit_the_counts_breaks_nothing(model, change, move):
    try:
        damaged(model, change)
    except ModelError:
        pytest.skip("refused before it is read")
    before = model.read_bytes()
    mails = [*BASE[:3], *[message(HAM, "tea", number=i) for i in range(9)]]
    with pytest.raises(ModelError) as error:
        if move:
            teach(model, [one._replace(label=SPAM) for one in mails])
        else:
            forget(model, mails * 3)
    assert_one_sentence(error, model, "damaged")
    assert before == model.read_bytes()


def test_a_damaged_model_is_neither_learned_into_nor_forgotten_from(model):
    whole = model.read_bytes()
    model.write_bytes(whole[:-20])
    for act in (teach, forget):
        with pytest.raises(ModelError) as error:
            act(model, BASE)
        assert_one_sentence(error, model, "cut short")
    assert model.read_bytes() == whole[:-20]


def test_a_folder_is_no_model(tmp_path):
    for act in (teach, forget):
        with pytest.raises(ModelError) as error:
            act(tmp_path, BASE)
        assert_one_sentence(error, tmp_path)


def test_batches_of_messages_are_looked_up_together(model):
    new = [message(SPAM, "new", number=i) for i in range(10, 15)]
    assert teach(model, [*BASE, *new], batch=2) == Change(learned=5, unchanged=5)
    assert forget(model, [*new, *new], batch=2) == Change(forgotten=5, unchanged=5)


OPEN = Path("/proc/self/fd")


@pytest.mark.skipif(not OPEN.is_dir(), reason="this system does not list a process's open files")
def test_no_file_stays_open(model):
    before = sorted(OPEN.iterdir())
    teach(model, [message(SPAM, "new", number=9)])
    forget(model, [message(SPAM, "new", number=9)])
    with pytest.raises(ModelError):
        teach(model, [message("promo", "new", number=9)])
    assert before == sorted(OPEN.iterdir())
