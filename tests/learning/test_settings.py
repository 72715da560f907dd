import math

import pytest
from one_case import each

from nbspam.bayes.calibration import prior_calibrations
from nbspam.bayes.trait_model import Variances
from nbspam.errors import OptionError
from nbspam.learning.settings import TrainingSettings, empty_metadata
from nbspam.tokens.kinds import TRAITS


@each(
    "chosen",
    [
        {},
        {"alpha": 1e-300},
        {"alpha": 1e6},
        {"prior": 1e-9},
        {"scoring": "sum"},
        {"scoring": "evidence", "event_model": "bernoulli"},
        {"scoring": "sum", "event_model": "multinomial", "prior": 0.2},
        {"event_model": "complement", "prior": 0.2},
        {"event_model": "none"},
        {"scoring": "sum", "event_model": "none", "traits": "gaussian"},
        {"traits": "gaussian", "variances": Variances(0, 2.5, True)},
    ],
)
def test_settings_within_bounds_pass(chosen):
    TrainingSettings(**chosen).check()


@each(
    "chosen, words",
    [
        ({"alpha": 0}, "alpha must be above 0 and at most 1e+06, not 0"),
        ({"alpha": -1.0}, "alpha must be above 0"),
        ({"alpha": 2e6}, "alpha must be above 0"),
        ({"alpha": math.nan}, "alpha must be above 0"),
        ({"prior": 0}, "the prior must be between 0 and 1, not 0;"),
        ({"prior": 1}, "the prior must be between 0 and 1, not 1;"),
        ({"prior": math.nan}, "the prior must be between 0 and 1"),
        ({"scoring": "bernoulli"}, "scoring must be one of evidence, sum, not 'bernoulli';"),
        ({"event_model": "magic"}, "event model must be one of bernoulli, "),
        ({"event_model": "magic"}, ", none, not 'magic';"),
        ({"traits": "magic"}, "trait model must be one of none, gaussian, kernel, not 'magic';"),
        ({"event_model": "none", "traits": "none"}, "there is nothing to learn from;"),
        ({"event_model": "none", "scoring": "sum"}, "there is nothing to learn from;"),
        (
            {"event_model": "complement", "scoring": "sum", "prior": 0.2},
            "the complement model has no prior with the scoring sum;",
        ),
        ({"variances": Variances(prior=2)}, "variances need Gaussian traits;"),
        (
            {"traits": "gaussian", "variances": Variances(smoothing=-1)},
            "the variance smoothing must be from 0 to 1e+06, not -1;",
        ),
        (
            {"traits": "gaussian", "variances": Variances(smoothing=math.nan)},
            "the variance smoothing must be from 0 to 1e+06, not nan;",
        ),
        (
            {"traits": "gaussian", "variances": Variances(prior=2e6)},
            "the weight of the variance prior must be from 0 to 1e+06 messages, not 2000000.0;",
        ),
    ],
)
def test_settings_out_of_bounds_are_refused_in_one_sentence(chosen, words):
    with pytest.raises(OptionError) as error:
        TrainingSettings(**chosen).check()
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@each("scoring, alpha, traits", [("sum", 0.1, "none"), ("evidence", 0.05, "kernel")])
def test_the_default_alpha_and_traits_are_those_of_the_scoring(scoring, alpha, traits):
    def settings(**chosen):
        of_new = TrainingSettings(scoring=scoring, **chosen)
        return empty_metadata(("ham", "spam"), "spam", of_new).settings

    found = settings()
    assert (found.alpha, found.traits, found.has_traits) == (alpha, traits, traits != "none")
    assert found.outputs == TrainingSettings(scoring=scoring).outputs
    assert settings(alpha=0.7).alpha == 0.7
    assert settings(traits="gaussian").traits == "gaussian"


@each("traits", [None, "none"])
@each("classes", [("ham", "spam"), ("ham", "promo", "spam")])
def test_a_model_that_has_learned_nothing(classes, traits):
    metadata = empty_metadata(classes, "spam", TrainingSettings(prior=0.2, traits=traits))
    settings, learned, n = metadata.settings, metadata.learned, len(classes)
    assert (settings.classes, settings.prior) == (classes, 0.2)
    assert (settings.spam_cutoff, settings.ham_cutoff) == (0.9, 0.5)
    assert learned.messages == (0,) * n
    assert len(learned.calibrations) == len(settings.scored_classes)
    assert set(learned.calibrations) == {prior_calibrations(with_traits=traits is None)}
    assert learned.trait_histograms == (({},) * n,) * (len(TRAITS) if traits is None else 0)
    assert (learned.host_rows, metadata.host_trust) == ({}, (0, 0))
    assert metadata.n_tokens == 0
    assert metadata.lacks_two_classes
