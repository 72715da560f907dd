"""What each kind of model says of messages of our own stays as it is, to the last digits.

A change that is meant to change verdicts writes them anew: python tests/examples/golden_verdicts.py
"""

import json
import math

import pytest
from golden_verdicts import every_verdict, messages, path_of


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return dict(every_verdict(tmp_path_factory.mktemp("models")))


@pytest.mark.parametrize("name", [path.stem for path in sorted(path_of("x").parent.glob("*.json"))])
def test_golden_verdicts(found, name):
    golden = json.loads(path_of(name).read_text())
    assert list(found[name]) == list(golden) == list(messages())
    for message, expected in golden.items():
        differences = list(_differences(expected, found[name][message], message))
        assert not differences, f"{name}: {differences[:5]}"


def test_every_model_has_its_file(found):
    assert {path.stem for path in path_of("x").parent.glob("*.json")} == set(found)


def _differences(expected, actual, where):
    """Yield where two verdicts differ by more than 1e-10, or in the 9th digit of a word's share."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        if expected.keys() != actual.keys():
            yield where, sorted(expected.keys() ^ actual.keys())
        for key in expected.keys() & actual.keys():
            yield from _differences(expected[key], actual[key], f"{where} {key}")
    elif isinstance(expected, list):
        for one, other in zip(expected, actual, strict=True):
            if not math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-10):
                yield where, one, other
    elif isinstance(expected, float) and isinstance(actual, float):
        if not math.isclose(expected, actual, rel_tol=1e-12, abs_tol=1e-10):
            yield where, expected, actual
    elif expected != actual:
        yield where, expected, actual
