"""A model read through a base: the counts of both, as if one model had learned them."""

import pytest
from based_models import base_of, no_counts, numbered_messages, taught_through, trained
from channel_models import labelled_mails, many_mails
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from small_models import assert_one_sentence, learn, with_learned, with_settings
from whole_models import numbers_of

from nbspam.bayes.calibration import Noise, prior_calibrations
from nbspam.errors import ModelError
from nbspam.scoring.base import STRENGTH, Base
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.explanation import explain
from nbspam.store.metadata import BASE
from nbspam.tokens.tokenized import TOKENIZER_VERSION

TWO, THREE = ("ham", "spam"), ("ham", "promo", "spam")
NEW = {"spam1", "w3", "from:w7", "received:spam2", "received:w9", "by:mx", "never seen"}
CLOSE = {"rel": 1e-9, "abs": 1e-9}


@st.composite
def mails_of_both(draw):
    """Draw mails of a base and of a personal model, whose hosts are others, and their traits."""
    classes = draw(st.sampled_from([TWO, THREE]))
    base, own = draw(labelled_mails(classes, most=12)), draw(labelled_mails(classes))
    own = [(label, {t.replace("by:", "by:my-") for t in tokens}) for label, tokens in own]
    return base, own, draw(st.sampled_from(["none", "kernel", "gaussian"]))


def scores(classifier, mails, traits):
    """Return the scores of mails, learned or not."""
    extras = numbered_messages(mails, traits, 7)
    return [
        classifier.score(tokens, *([extras[i]] if extras else []))
        for i, (_, tokens) in enumerate(mails)
    ]


@given(mails_of_both())
def test_a_small_base_is_as_if_one_model_had_learned_the_messages_of_both(drawn):
    """With r = 1 every count is that of such a model, so every score is, too."""
    base_mails, own_mails, traits = drawn
    base, own = base_of(base_mails, traits), trained(own_mails, traits, first=50)
    through = base.classifier(own.fit.metadata, own.classifier.counts)
    extras = numbered_messages(base_mails, traits)
    both = learn(
        [*base_mails, *own_mails],
        extras and [*extras, *numbered_messages(own_mails, traits, 50)],
        scoring="evidence",
        traits=traits,
    )
    one = Classifier(
        with_learned(both.fit.metadata, calibrations=through.metadata.learned.calibrations),
        both.classifier.counts,
    )
    mails = [*base_mails, *own_mails, ("", NEW)]
    for mine, its in zip(scores(through, mails, traits), scores(one, mails, traits), strict=True):
        for name in ("log_odds", "probability", "trust"):
            assert getattr(mine, name) == pytest.approx(getattr(its, name), **CLOSE)
        assert mine.probabilities == pytest.approx(its.probabilities, **CLOSE)
        assert (mine.known, mine.text) == (its.known, its.text)


@given(mails_of_both(), st.sampled_from([1, STRENGTH]))
def test_who_has_taught_nothing_has_the_verdict_of_the_base_to_the_bit(drawn, strength):
    """However large the base is."""
    base_mails, own_mails, traits = drawn
    base = base_of(base_mails, traits, strength)
    plain = trained(base_mails, traits).classifier
    mails = [*base_mails, *own_mails, ("", NEW)]
    through = base.classifier(base.empty_personal_model(), no_counts)
    assert scores(through, mails, traits) == scores(plain, mails, traits)


def test_a_large_base_counts_as_so_many_messages_of_its_smaller_class():
    """By hand: of 4,000 spam and 8,000 ham, a quarter."""
    mails = many_mails(40)
    learned = trained(mails, "kernel")
    metadata = with_learned(
        learned.fit.metadata,
        messages=(8000, 4000),
        host_rows={(3, 1): 2, (0, 9): 8},
        trait_histograms=(
            ({5: 8}, {5: 2, 6: 1}),
            *learned.fit.metadata.learned.trait_histograms[1:],
        ),
    )
    assert STRENGTH == 1000
    base = Base("base.json", metadata, lambda _: {"both": (4, 8), "its": (1, 0)})
    own = with_learned(
        base.empty_personal_model(),
        messages=(10, 20),
        host_rows={(3, 1): 1, (1, 0): 5},
        trait_histograms=(
            ({5: 1}, {7: 1}),
            *base.empty_personal_model().learned.trait_histograms[1:],
        ),
    )
    through = base.classifier(own, lambda _: {"both": (1, 1), "own": (2, 0)})
    found = through.metadata.learned
    assert found.messages == (2010, 1020)
    assert found.host_rows == {(3, 1): 1.5, (0, 9): 2, (1, 0): 5}
    assert found.trait_histograms[0] == ({5: 3}, {5: 0.5, 6: 0.25, 7: 1})
    assert through.counts(["both", "its", "own"]) == {
        "both": (2, 3),
        "its": (0.25, 0),
        "own": (2, 0),
    }


def with_noise(metadata, **changes):
    """Return metadata whose calibrations are changed."""
    noisy = tuple(
        type(both)(*(one._replace(**changes) for one in both))
        for both in metadata.learned.calibrations
    )
    return with_learned(metadata, calibrations=noisy)


def test_a_new_model_begins_as_the_base():
    metadata = with_settings(base_of(many_mails(60)).metadata, spam_cutoff=0.97, alpha=0.2, rules=1)
    noise = Noise(0.03, 0.0)
    first = Base(
        "base.json", with_noise(metadata, noise=noise, run=7), no_counts
    ).empty_personal_model()
    assert first.settings == metadata.settings._replace(rules=TOKENIZER_VERSION)
    assert first.learned.calibrated_by == BASE
    # The run is of the messages that the base has learned.
    expected = with_noise(metadata, noise=noise, run=0).learned.calibrations
    assert first.learned.calibrations == expected
    assert (sum(first.learned.messages), first.n_tokens) == (0, 0)


@each("own_mails, is_own", [(80, True), (30, False), (40, False)])
def test_what_learned_without_a_base_goes_on_with_the_calibrations_of_more_messages(
    own_mails, is_own
):
    mails = many_mails(200)
    base, own = base_of(mails[:80]), trained(mails[80 : 80 + 2 * own_mails]).fit.metadata
    own = with_noise(own, noise=Noise(0.05, 0.1), run=3)
    own = with_learned(own, recent=("a lesson",), before=("a calibration",))
    begun = base.with_base_calibrations(own)
    now = begun.learned
    assert (now.calibrated_by, now.recent, now.before) == (BASE, (), ())
    assert begun._replace(learned=own.learned) == own
    expected = with_noise(own if is_own else base.metadata, run=0).learned.calibrations
    assert begun.learned.calibrations == expected
    assert base.with_base_calibrations(begun) == begun
    assert base.combine(begun) == base.combine(own)


def test_calibrations_that_were_never_fitted_are_not_gone_on_with():
    base, own = base_of(many_mails(40)), trained(many_mails(20)).fit.metadata
    prior_calibration = (prior_calibrations(with_traits=False),)
    young = with_learned(
        base.empty_personal_model(),
        messages=(50, 50),
        calibrated_by="default",
        calibrations=prior_calibration,
    )
    fitted = with_noise(base.metadata, run=0).learned.calibrations
    assert base.with_base_calibrations(young).learned.calibrations == fitted
    unfitted = Base(
        "base.json", with_learned(base.metadata, calibrations=prior_calibration), no_counts
    )
    kept = with_noise(own, run=0).learned.calibrations
    assert unfitted.with_base_calibrations(own).learned.calibrations == kept
    assert unfitted.empty_personal_model().learned.calibrations == prior_calibration


@each("classes", [TWO, THREE])
@each("traits", ["none", "kernel", "gaussian"])
@each("strength", [7, STRENGTH])
def test_an_explanation_adds_up_and_shows_the_counts_of_both(classes, traits, strength):
    mails = many_mails(90, classes=classes, hosts="mixed", longest=15)
    mails[0][1].add("never seen")  # but by the base
    base = base_of(mails[:60], traits, strength)
    classifier = taught_through(base, mails[60:], traits).classifier()
    found = explain(classifier, NEW, *([numbers_of(1)] if traits != "none" else []))
    if len(classes) == 2:
        assert found.total == pytest.approx(found.score.log_odds, **CLOSE)
    assert (found.base, found.bias, found.sum_log_odds) == ("base.json", None, None)
    counts = {word.token: word.counts for word in found.words}
    r = min(1, strength / (60 // len(classes)))
    assert counts["never seen"] == (pytest.approx(r, abs=0.05), *[0] * (len(classes) - 1))
    words = sum(not w.is_trait for w in found.words)
    assert found.unknown == len(NEW) - words - ("by:mx" not in counts)


@each(
    "chosen, named",
    [
        ({"event_model": "multinomial"}, "event model multinomial"),
        ({"event_model": "complement"}, "event model complement"),
        ({"event_model": "none", "traits": "kernel"}, "event model none"),
        ({"scoring": "sum"}, "scoring sum"),
    ],
)
def test_a_base_must_be_of_the_default_kind_and_know_every_class(chosen, named):
    learned = trained(many_mails(6), **chosen)
    with pytest.raises(ModelError) as error:
        Base("base.json", learned.fit.metadata, learned.classifier.counts)
    assert_one_sentence(error, "base.json", named, "leave the base out")
    metadata = with_learned(base_of(many_mails(6)).metadata, messages=(3, 0))
    with pytest.raises(ModelError) as error:
        Base("base.json", metadata, no_counts)
    assert_one_sentence(error, "base.json", "'spam'", "of each class")


@each(
    "changes, named",
    [
        ({"classes": ("ham", "junk"), "positive": "junk"}, "has the classes ham, junk, and"),
        ({"positive": "ham"}, "has the spam class ham, and"),
        ({"event_model": "multinomial"}, "has the event model multinomial, and"),
        ({"scoring": "sum"}, "has the scoring sum, and"),
        ({"traits": "kernel"}, "has the traits kernel, and"),
    ],
)
def test_the_two_must_be_alike(changes, named):
    base = base_of(many_mails(6))
    with pytest.raises(ModelError) as error:
        base.check("me.json", with_settings(base.empty_personal_model(), **changes).settings)
    assert_one_sentence(error, "me.json", named, "base.json", "leave the base out")
    own = with_settings(
        base.empty_personal_model(), alpha=0.5, prior=0.3, spam_cutoff=0.6
    )  # its own
    base.check("me.json", own.settings)
    assert base.combine(own).settings == own.settings
