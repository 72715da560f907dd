import io

import pytest
from one_case import each
from small_models import assert_one_sentence, with_learned
from whole_models import save, taught

from nbspam.bayes.calibration import untrained_calibrations
from nbspam.errors import SourceError, TrainingError
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.word_list import FORMS, read_counts
from nbspam.reading.source import Skips
from nbspam.store.check import disagreements
from nbspam.store.metadata import DEFAULT
from nbspam.store.trait_histograms import no_histograms

LIST = b".MSG_COUNT 3 4\nfree 2 1\nlunch 0 4\n"
TABLE = b"token,ham,spam\n(messages),4,3\nfree,1,2\nlunch,4,0\n"


def read(raw, **chosen):
    return read_counts("file", io.BytesIO(raw), Skips(), TrainingSettings(**chosen))


@each("raw", [LIST, TABLE, b"\xef\xbb\xbf" + TABLE, b"\xef\xbb\xbf" + LIST])
@each("traits", [None, "none"])
def test_a_model_of_either_form(tmp_path, raw, traits):
    """A list of words has no traits; those of the mail that is learned later have a say then."""
    model = read(raw, traits=traits, alpha=0.25, prior=0.125).model
    assert model.counts == {"free": (1, 2), "lunch": (4, 0)}
    assert model.learned == {}
    settings, learned = model.metadata.settings, model.metadata.learned
    assert (settings.classes, settings.positive) == (("ham", "spam"), "spam")
    assert (settings.alpha, settings.prior, settings.scoring) == (0.25, 0.125, "evidence")
    assert (learned.messages, learned.calibrated_by) == ((4, 3), DEFAULT)
    assert learned.calibrations == (untrained_calibrations(with_traits=traits is None),)
    assert not any(any(values) for values in learned.trait_histograms)
    assert disagreements(save(tmp_path / "model.json", model)) == (model, [])


@each("form", FORMS)
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


def test_counts_above_the_messages_are_cut_down():
    found = read(LIST + b"often 9 9\nnever 0 0\n" + b"x" * 200_000 + b"\nlast 1 1\n")
    assert found.capped == 1
    assert (found.model.counts["often"], found.model.counts["last"]) == ((4, 3), (1, 1))
    assert "never" not in found.model.counts
    found = read(b".MSG_COUNT 3 0\nfree 2 1\nlunch 0 4\n")  # a class without messages
    assert found.model.counts == {"free": (0, 2)}
    assert found.model.metadata.is_one_sided


@each(
    "header, positive, classes",
    [("spam,ham", None, ("ham", "spam")), ("junk,good", "junk", ("good", "junk"))],
)
def test_the_classes_of_a_table_stand_in_our_order(header, positive, classes):
    raw = f"token,{header}\n(messages),3,4\nfree,2,1\n".encode()
    model = read(raw, positive=positive, scoring="sum").model
    assert (model.metadata.settings.classes, model.metadata.settings.scoring) == (classes, "sum")
    assert (model.metadata.learned.messages, model.counts) == ((4, 3), {"free": (1, 2)})
    if positive:
        with pytest.raises(TrainingError, match="say which class is spam"):
            read(raw)


@each(
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
