"""A base costs nothing where there is none, and no numpy where there is one."""

import pytest
from test_startup import HEAVY, SAMPLE, imported, ours_loaded, run

OF_A_BASE = {"nbspam.scoring.base"}
COMMANDS = [
    ("classify",),
    ("classify", "-p"),
    ("explain",),
    ("train", "--update", "--spam", "-"),
    ("forget",),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return a base, and a model that has learned a message through it."""
    folder = tmp_path_factory.mktemp("with-base")
    base, me = folder / "base.json", folder / "me.json"
    run("train", SAMPLE / "sms.tsv", "-m", base)
    run("train", "--update", "-m", me, "--base", base, "--ham", "-", message=b"see you at dinner")
    return base, me


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_with_a_base_nothing_heavy_is_loaded(models, command):
    base, me = models
    assert imported(*command, "-m", me, "--base", base) & HEAVY == set()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_without_a_base_nothing_of_it_is_loaded(models, command):
    base, _ = models
    assert ours_loaded(*command, "-m", base) & OF_A_BASE == set()
