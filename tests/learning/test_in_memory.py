"""A model that is not saved learns and forgets as one in a file, to the byte."""

from functools import cache, partial

import pytest
from channel_models import many_mails
from hypothesis import given
from hypothesis import strategies as st
from small_models import SCORINGS, refused
from small_models import learn as fitted
from whole_models import THREE, TWO, message, pending, save, taught

from nbspam.learning.settings import TrainingSettings
from nbspam.learning.update import Change, PendingMessages, forget, learn
from nbspam.store.lookup import Model
from nbspam.store.model_file import UnsavedModel, write_lines
from nbspam.tokens.kinds import is_host


def unsaved(model):
    return UnsavedModel(partial(write_lines, model=model))


@pytest.mark.parametrize("remember", [True, False])
@pytest.mark.parametrize("classes", [TWO, THREE])
def test_learning_and_forgetting_are_those_of_the_file(tmp_path, classes, remember):
    begun = [("ham", {"a", "b"}, 1), ("spam", {"b", "c"}, 2), ("spam", {"c", "by:mx"}, 3)]
    model = taught(begun, classes, traits="kernel")
    path, place = save(tmp_path / "model.json", model), unsaved(model)
    some = [message(name, "a", name, "received:e", number=i) for i, name in enumerate(classes, 7)]
    some *= 2
    for where in (path, place):
        assert learn(where, pending(some), TrainingSettings(), remember).learned == len(some)
        again = learn(where, pending(some[:1]), TrainingSettings(), remember)
        assert again == (Change(unchanged=1) if remember else Change(learned=1))
        assert forget(where, some[1:3], remember).forgotten == 2
    assert path.read_bytes() == b"".join(place.lookup.iter_bytes())


@cache
def mail_model(classes, traits, seed, n=60):
    """Return a model that was fitted to n mails, with their ledger, and 40 more mails."""
    mails = many_mails(n + 40, seed, classes, hosts="mixed", longest=15)
    every = [message(label, *tokens, number=i) for i, (label, tokens) in enumerate(mails)]
    extras = [one.extras for one in every[:n]]
    learned = fitted(mails[:n], extras, scoring="evidence", traits=traits)
    names = learned.fit.metadata.settings.classes
    ledger = {one.digest: tuple(int(one.label == name) for name in names) for one in every[:n]}
    return Model(learned.fit.metadata, learned.counts, dict(sorted(ledger.items()))), every[n:]


MODELS = st.builds(
    mail_model,
    st.sampled_from([TWO, THREE]),
    st.sampled_from(["none", "kernel"]),
    st.integers(0, 3),
)


def teach(model, *messages, remember=True):
    place, pending = unsaved(model), PendingMessages(model.metadata.settings.outputs)
    pending.add(messages)
    learn(place, pending, TrainingSettings(), remember)
    return place.lookup.model()


def digests_of(model):
    return tuple(lesson.digest for lesson in model.metadata.learned.recent)


def unteach(model, *messages):
    place = unsaved(model)
    assert forget(place, messages) == Change(forgotten=len(messages))
    return place.lookup.model()


@given(MODELS, st.integers(0, 39), st.data())
def test_learned_and_forgotten_is_as_if_it_had_not_happened(drawn, i, data):
    model, mails = drawn
    label = data.draw(st.sampled_from(model.metadata.settings.classes))
    between = teach(model, one := mails[i]._replace(label=label))
    assert digests_of(between) == (one.digest,)
    assert model.metadata.learned.calibrations != between.metadata.learned.calibrations
    after = unteach(between, one)
    assert (after.counts, after.learned) == (model.counts, model.learned)
    assert after.metadata == model.metadata


@given(MODELS, st.permutations(range(4)))
def test_in_whatever_order_messages_are_forgotten_nothing_is_left(drawn, order):
    model, mails = drawn
    taught = model
    for one in (some := mails[:4]):
        taught = teach(taught, one)
    for i in order:
        taught = unteach(taught, some[i])
    assert taught == model


@given(MODELS, st.integers(0, 39), st.data())
def test_taught_wrong_and_then_moved_is_as_taught_rightly(drawn, i, data):
    model, mails = drawn
    right = mails[i]
    others = [name for name in model.metadata.settings.classes if name != right.label]
    wrong = right._replace(label=data.draw(st.sampled_from(others)))
    corrected, expected = teach(teach(model, wrong), right), teach(model, right)
    assert (corrected.counts, corrected.learned) == (expected.counts, expected.learned)
    now, then = corrected.metadata.learned, expected.metadata.learned
    assert digests_of(corrected) == (right.digest,)
    assert now == then


def test_a_text_learned_twice_is_taken_back_once_and_again():
    model, mails = mail_model(TWO, "kernel", 0)
    tokens = [token for token in mails[0].tokens if not is_host(token)]
    text = mails[0]._replace(tokens=tokens)
    once = teach(model, text)
    twice = teach(once, text, text)
    assert digests_of(twice) == (text.digest,) * 2
    back = unteach(twice, text)
    assert digests_of(back) == (text.digest,)
    assert back == once
    back = unteach(back, text)
    assert digests_of(back) == ()
    assert back == model


def test_the_last_50_lessons_can_be_taken_back():
    model, mails = mail_model(TWO, "none", 1)
    later = [*mails, *mail_model(TWO, "none", 2)[1][:20]]
    later = [one._replace(digest=f"{i:032x}") for i, one in enumerate(later)]
    for one in later:
        model = teach(model, one)
    learned = model.metadata.learned
    assert digests_of(model) == tuple(one.digest for one in later[-50:])
    # Those before stay in the calibration, and in those to be taken back.
    without_first = unteach(model, later[9]).metadata.learned
    assert without_first.calibrations == learned.calibrations
    assert without_first.recent == learned.recent
    without_tenth = unteach(model, later[10]).metadata.learned
    assert without_tenth.calibrations != learned.calibrations
    assert without_tenth.recent == learned.recent[1:]


@pytest.mark.parametrize("scoring", SCORINGS)
def test_what_was_not_learned_from_leaves_no_digest(scoring):
    model = taught([("spam", {"b", "c"}, 2)], scoring=scoring, traits="kernel")
    one_class = teach(model, message("spam", "c", number=7))  # nothing is left to score it with
    assert digests_of(one_class) == ()
    ham = teach(one_class, message("ham", "a", number=8))
    assert digests_of(ham) == ()
    both = teach(ham, message("spam", "a", number=9))
    digests = (message("spam", "a", number=9).digest,)
    assert digests_of(both) == (digests if scoring == "evidence" else ())
    unremembered = teach(ham, message("spam", "a", number=9), remember=False)
    assert digests_of(unremembered) == (("",) if scoring == "evidence" else ())
    calibrations = unremembered.metadata.learned.calibrations
    assert calibrations == both.metadata.learned.calibrations


def test_what_cannot_be_learned_is_refused_under_the_name_of_the_model():
    place, promo = unsaved(taught([("ham", {"a"}, 1)])), message("promo", "shoes")
    for act in (lambda: learn(place, pending([promo]), TrainingSettings()), partial(forget, place)):
        with refused("the model", "'promo'", "ham, spam"):
            act(*[[promo]] * isinstance(act, partial))
