import io

import pytest
from small_models import assert_one_sentence, with_learned
from whole_models import taught

from nbspam.bayes.calibration import untrained_calibrations
from nbspam.errors import SourceError, TrainingError
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.word_list import FORMS, read_counts
from nbspam.reading.skips import Skips
from nbspam.store.check import disagreements
from nbspam.store.metadata import DEFAULT
from nbspam.store.trait_histograms import no_histograms

LIST = b".MSG_COUNT 3 4\nfree 2 1\nlunch 0 4\n"
TABLE = b"token,ham,spam\n(messages),4,3\nfree,1,2\nlunch,4,0\n"


def read(raw, **chosen):
    return read_counts("file", io.BytesIO(raw), Skips(), TrainingSettings(**chosen))


@pytest.mark.parametrize("raw", [LIST, TABLE, b"\xef\xbb\xbf" + TABLE, b"\xef\xbb\xbf" + LIST])
@pytest.mark.parametrize("traits", [None, "none"], ids=["default", "none"])
def test_a_model_of_either_form(tmp_path, raw, traits):
    """A list of words has no traits; those of the mail that is learned later have a say then."""
    model = read(raw, traits=traits).model
    assert model.counts == {"free": (1, 2), "lunch": (4, 0)}
    assert model.learned == {}
    assert (model.metadata.settings.classes, model.metadata.settings.positive) == (
        ("ham", "spam"),
        "spam",
    )
    assert model.metadata.learned.messages == (4, 3)
    assert model.metadata.learned.calibrated_by == DEFAULT
    untrained = untrained_calibrations(with_traits=traits is None)
    assert model.metadata.learned.calibrations == (untrained,)
    assert not any(any(values) for values in model.metadata.learned.trait_histograms)
    path = tmp_path / "model.json"
    with path.open("wb") as file:
        model.write(file)
    assert disagreements(path) == (model, [])


@pytest.mark.parametrize("form", FORMS)
def test_both_ways_give_the_same(form):
    spam = {"free", "claim now", "from:a", "received:b", "by:mx"}
    model = taught([("spam", spam, 1), ("ham", {"free", "lunch", "by:mx"}, 2)])
    assert model.metadata.learned.host_rows == {(1, 1): 1}
    found = read(FORMS[form](model)[0].encode()).model
    assert found.counts == model.counts
    # All but the traits, which a list of words has no place for.
    none = no_histograms(2)
    assert model.metadata.learned.trait_histograms != none
    assert found.metadata == with_learned(model.metadata, trait_histograms=none)


def test_settings_are_those_of_the_new_model():
    metadata = read(LIST, alpha=0.25, prior=0.125, scoring="sum").model.metadata
    assert (metadata.settings.alpha, metadata.settings.prior, metadata.settings.scoring) == (
        0.25,
        0.125,
        "sum",
    )


def test_counts_above_the_messages_are_cut_down():
    found = read(LIST + b"often 9 9\nnever 0 0\n")
    assert found.capped == 1
    assert found.model.counts["often"] == (4, 3)
    assert "never" not in found.model.counts


def test_a_class_without_messages():
    found = read(b".MSG_COUNT 3 0\nfree 2 1\nlunch 0 4\n")
    assert found.model.counts == {"free": (0, 2)}
    assert found.model.metadata.is_one_sided


def test_the_classes_of_a_table_stand_in_our_order():
    model = read(b"token,spam,ham\n(messages),3,4\nfree,2,1\n").model
    assert model.metadata.settings.classes == ("ham", "spam")
    assert (model.metadata.learned.messages, model.counts) == ((4, 3), {"free": (1, 2)})
    model = read(b"token,junk,good\n(messages),3,4\nfree,2,1\n", positive="junk").model
    assert model.metadata.settings.classes == ("good", "junk")
    assert (model.metadata.learned.messages, model.counts) == ((4, 3), {"free": (1, 2)})


def test_no_class_called_spam():
    with pytest.raises(TrainingError, match="say which class is spam"):
        read(b"token,junk,good\n(messages),3,4\n")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\0\0\0\0\0\0\0\0b1\x05\0" * 100,
        b"Dear Sir,\nbuy now\n",
        b"token,ham,spam\n(messages),1,1\ncaf\xe9,1,0\n",
        b"x" * 200_000,
    ],
)
def test_a_file_that_is_neither(raw):
    with pytest.raises(SourceError) as error:
        read(raw)
    assert_one_sentence(error, "file")


def test_a_long_line_is_bad_and_no_more():
    assert read(LIST + b"x" * 200_000 + b"\nlast 1 1\n").model.counts["last"] == (1, 1)
