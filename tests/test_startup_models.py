"""A message is classified without numpy, whatever the model: it runs once a message."""

import pytest
from counted_models import COMBINATIONS
from one_case import one_by_default
from test_startup import HEAVY, SAMPLE, imported, run

# Each event model, each kind of traits and both scorings, if not with each other.
SOME = [
    ("multinomial", "gaussian", "evidence"),
    ("bernoulli", "kernel", "evidence"),
    ("binary-multinomial", "none", "sum"),
    ("complement", "kernel", "sum"),
    ("none", "gaussian", "sum"),
]


OTHERS = [pytest.param(some, marks=pytest.mark.long) for some in SOME[1:]]


@pytest.fixture(scope="module", params=[SOME[0], *OTHERS], ids="-".join)
def model(request, tmp_path_factory):
    event_model, traits, scoring = request.param
    path = tmp_path_factory.mktemp("startup") / "model.json"
    options = "--event-model", event_model, "--traits", traits, "--scoring", scoring
    run("train", SAMPLE / "sms.tsv", "-m", path, *options)
    return path


@one_by_default("command", ["classify", "explain", "train --update --spam -", "forget"])
def test_one_message_loads_nothing_heavy(model, command):
    assert imported(*command.split(), "-m", model) & HEAVY == set()


def test_what_is_tried_here_has_every_part_of_the_combinations():
    assert set(SOME) <= set(COMBINATIONS)
    for some, every in zip(zip(*SOME, strict=True), zip(*COMBINATIONS, strict=True), strict=True):
        assert set(some) == set(every)
