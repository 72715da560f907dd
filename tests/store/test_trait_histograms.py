import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from small_models import learn

from nbspam.learning.settings import TrainingSettings, empty_metadata
from nbspam.store.metadata import no_histograms
from nbspam.store.metadata_json import (
    MetadataError,
    dump_histograms,
    dump_metadata,
    load_histograms,
    load_metadata,
)
from nbspam.tokens.traits import NAMES

CLASSES = ("ham", "spam")
MESSAGES = (1000, 1000)
HISTOGRAM = st.dictionaries(st.integers(0, 999), st.integers(1, 100), max_size=8)
# Few are drawn; each trait and class has one of them.
DRAWN = st.lists(HISTOGRAM, min_size=1, max_size=5).map(
    lambda some: tuple(
        tuple(some[(i + k) % len(some)] for k in range(len(CLASSES))) for i in range(len(NAMES))
    )
)


def loaded_again(histograms, classes=CLASSES, messages=MESSAGES):
    written = json.loads(json.dumps(dump_histograms(histograms, classes)))
    return load_histograms(written, classes, messages)


@given(DRAWN, st.randoms())
def test_histograms_survive_being_written_and_read_whatever_the_order(histograms, chance):
    def mixed(values):
        return dict(chance.sample(list(values.items()), len(values)))

    assert loaded_again(histograms) == histograms
    other = tuple(tuple(map(mixed, row)) for row in histograms[:2]) + histograms[2:]
    written = dump_histograms(other, CLASSES)
    assert json.dumps(written) == json.dumps(dump_histograms(histograms, CLASSES))


def test_histograms_as_they_are_written():
    histograms = ({12: 1, 14: 3}, {}), *((({0: 2}, {7: 1}),) * (len(NAMES) - 1))
    written = dump_histograms(histograms, CLASSES)
    assert tuple(written) == NAMES
    assert written["characters"] == {
        "ham": {"lowest": 12, "counts": [1, 0, 3]},
        "spam": {"lowest": 0, "counts": []},
    }
    assert written["hops"]["spam"] == {"lowest": 7, "counts": [1]}


def test_histograms_of_no_message_and_of_no_traits():
    assert dump_histograms((), CLASSES) == {}
    for n in (2, 3):
        empty = no_histograms(n)
        assert empty == (({},) * n,) * len(NAMES)
        assert loaded_again(empty, "abc"[:n], (0,) * n) == empty


# Damage


def whole():
    histograms = ((({3: 2, 5: 1}, {4: 2}),)) * len(NAMES)
    return json.loads(json.dumps(dump_histograms(histograms, CLASSES)))


def changed(place, value):
    """Return the fields with the value at a place, a path of keys, changed; None: taken out."""
    fields = whole()
    *path, last = place
    inner = fields
    for key in path:
        inner = inner[key]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return fields


OTHER_TRAITS = [
    *([], "characters", 17, {}, changed(["hops"], None), changed(["new"], {})),
    dict(reversed(whole().items())),
]
OTHERS = {
    "": [[], "ham"],
    "ham": [None, [], 3],
    "promo": [{"lowest": 0, "counts": []}],
    # 998: with three counts up to 1000
    "ham lowest": [None, -1, 998, 10**30, 3.0, True, "3"],
    "ham counts": [
        *(None, {}, "12", [1.0], [True], ["1"], [[1]], [1, -1, 1], [0, 1], [1, 0], [0], [1] * 1001)
    ],
}
TOO_MANY = [("ham", [5]), ("spam", [1, 1, 1]), ("spam", [10**30])]
DAMAGE = [
    *((fields, "other traits than") for fields in OTHER_TRAITS),
    *(
        (changed(["words", *place.split()], value), "no histogram of a trait")
        for place, values in OTHERS.items()
        for value in values
    ),
    *(
        (changed(["words", name, "counts"], counts), "a trait of more messages than there are")
        for name, counts in TOO_MANY
    ),
]


def model_fields(histograms):
    metadata = empty_metadata(CLASSES, "spam", TrainingSettings(traits="kernel"))
    learned = metadata.learned._replace(messages=(4, 2))
    fields = json.loads(dump_metadata(metadata._replace(learned=learned)).rstrip(",\n") + "}")
    fields["traits"]["histograms"] = histograms
    return fields


def test_the_histograms_that_are_spoiled_here_are_whole():
    known = {3: 2, 5: 1}, {4: 2}
    assert load_histograms(whole(), CLASSES, (4, 2))[0] == known
    assert load_metadata(model_fields(whole())).learned.trait_histograms[0] == known


@each("fields, why", DAMAGE)
def test_damage_is_refused_and_said_in_one_sentence(fields, why):
    with pytest.raises(ValueError, match=why):
        load_histograms(copy.deepcopy(fields), CLASSES, (4, 2))
    with pytest.raises(MetadataError, match=why) as error:
        load_metadata(model_fields(fields))
    text = str(error.value)
    assert text.startswith("is damaged: it has ")
    assert text.endswith("; restore it from a copy or train again")
    assert "\n" not in text


@each("fields", OTHER_TRAITS)
def test_an_older_model_may_have_other_traits(fields):
    """What it does not know is of no message, and what is not known any more is left out."""
    if not isinstance(fields, dict):
        with pytest.raises(ValueError, match="other traits than"):
            load_histograms(fields, CLASSES, (4, 2), is_older=True)
        return
    found = load_histograms(fields, CLASSES, (4, 2), is_older=True)
    known = {3: 2, 5: 1}, {4: 2}
    assert found == tuple(known if name in fields else ({}, {}) for name in NAMES)


SETTINGS = {
    "model": ["", "normal", None, 3, [], {}],
    "variance_smoothing": [-1e-9, 1e7, True, "0", None, [], float("nan"), float("inf")],
    "variance_prior": [-1, 1e7, False, "0", None, float("inf")],
    "shared_variance": [0, 1, None, "yes", []],
}


def test_settings_of_traits_that_make_no_sense_are_refused_and_what_is_missing_is_named():
    for key, values in SETTINGS.items():
        for value in values:
            fields = model_fields(whole())
            fields["traits"][key] = value
            with pytest.raises(MetadataError, match=r"^is damaged: it has an? |it has no "):
                load_metadata(fields)
    for key in (*SETTINGS, "histograms"):
        fields = model_fields(whole())
        del fields["traits"][key]
        with pytest.raises(MetadataError, match=f"it has no '{key}'"):
            load_metadata(fields)
    for traits in (None, [], "kernel", 3):
        with pytest.raises(MetadataError, match="it has no traits"):
            load_metadata(model_fields(whole()) | {"traits": traits})


def test_a_model_of_the_sum_has_no_histograms():
    fields = json.loads(dump_metadata(learn().fit.metadata).rstrip(",\n") + "}")
    assert fields["traits"]["histograms"] == {}
    assert load_metadata(fields).learned.trait_histograms == ()
