"""A message is classified without numpy, whatever the model: it runs once a message."""

import pytest
from counted_models import COMBINATIONS
from test_startup import HEAVY, SAMPLE, imported, modules_in, run

# Each event model, each kind of traits and both scorings, if not with each other.
SOME = [
    ("bernoulli", "kernel", "evidence"),
    ("multinomial", "gaussian", "evidence"),
    ("binary-multinomial", "none", "sum"),
    ("complement", "kernel", "sum"),
    ("none", "gaussian", "sum"),
]


def trained(path, *options):
    run("train", SAMPLE / "sms.tsv", "-m", path, *options)
    return path


@pytest.fixture(scope="module", params=SOME, ids="-".join)
def model(request, tmp_path_factory):
    event_model, traits, scoring = request.param
    path = tmp_path_factory.mktemp("startup") / "model.json"
    options = "--event-model", event_model, "--traits", traits, "--scoring", scoring
    return trained(path, *options)


@pytest.mark.parametrize(
    "command",
    [("classify",), ("explain",), ("train", "--update", "--spam", "-"), ("forget",)],
    ids=" ".join,
)
def test_one_message_loads_nothing_heavy(model, command):
    assert imported(*command, "-m", model) & HEAVY == set()


def test_what_is_tried_here_has_every_part_of_the_combinations():
    assert set(SOME) <= set(COMBINATIONS)
    for some, every in zip(zip(*SOME, strict=True), zip(*COMBINATIONS, strict=True), strict=True):
        assert set(some) == set(every)


def test_by_default_one_message_loads_its_own_event_model_and_traits_only(tmp_path):
    path = trained(tmp_path / "model.json")
    found = run("classify", "-m", path, flags=("-X", "importtime")).stderr
    names = {name.removeprefix("nbspam.bayes.") for name in modules_in(found)}
    assert {"bernoulli", "kernel"} <= names
    others = {"multinomial", "complement", "no_tokens", "gaussian"}
    assert names & {*others, "bernoulli_arrays", "multinomial_arrays"} == set()
