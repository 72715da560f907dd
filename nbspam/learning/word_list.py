"""Counts that go to other programs and come from them."""

import itertools
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

from nbspam.bayes.token_weight import Row
from nbspam.errors import SourceError
from nbspam.labels import HAM, SPAM
from nbspam.learning.settings import TrainingSettings, class_names, empty_metadata
from nbspam.reading.source import Skips
from nbspam.store import bogofilter, csv_counts
from nbspam.store.check import with_counts
from nbspam.store.metadata import MESSAGES_LIMIT
from nbspam.store.model_file import Model

# Each returns the text, and how many tokens it has no way to write.
FORMS: dict[str, Callable[[Model], tuple[str, int]]] = {
    "bogofilter": bogofilter.dump_word_list,
    "csv": csv_counts.dump_counts_table,
}
BEGINNINGS = (bogofilter.MESSAGES, f"{csv_counts.FIRST},".encode())  # of a text in these forms
_LINE_LIMIT = 1 << 16  # bytes; the rest of a longer line is read as another line


class Imported(NamedTuple):
    """A model made from another program's counts."""

    model: Model
    capped: int  # tokens that were counted in more messages than there are
    words: int  # of bogofilter's list; 0 for a table
    foreign: int  # of those, the words that have no token


def read_counts(name: str, stream: BinaryIO, skips: Skips, settings: TrainingSettings) -> Imported:
    """Return the model in a file: bogofilter's word list as text, or CSV, as its first line shows.

    It has the default calibration and no ledger; its traits, if it has any, know no message yet.
    Raises SourceError when the file is neither, and TrainingError when its classes make no model.
    """
    lines = iter(lambda: stream.readline(_LINE_LIMIT), b"")
    try:
        first = next(lines, b"").removeprefix(b"\xef\xbb\xbf")
        if b"\0" in first:
            raise SourceError(
                f"{name}: is a binary file; convert a bogofilter database with bogoutil -d"
            )
        if first.startswith(BEGINNINGS[1]):
            text = (line.decode() for line in itertools.chain([first], lines))
            table = csv_counts.read_counts_table(name, text, skips)
            return _imported(table.classes, table.messages, table.counts, settings)
        found = bogofilter.WordList(name, itertools.chain([first], lines), skips)
    except UnicodeDecodeError:
        raise SourceError(f"{name}: is not in UTF-8; convert it, with iconv say") from None
    except OSError as error:
        raise SourceError(f"{name}: cannot be read ({error.strerror}); check it") from error
    imported = _imported((HAM, SPAM), found.messages, found.counts, settings)
    return imported._replace(words=found.words, foreign=found.foreign)


def _imported(
    names: tuple[str, ...], messages: Row, counts: dict[str, Row], settings: TrainingSettings
) -> Imported:
    classes, positive = class_names(names, settings.positive)
    order = [names.index(name) for name in classes]
    learned_messages = tuple(messages[k] for k in order)
    empty = empty_metadata(classes, positive, settings)
    limits = learned_messages
    if empty.settings.counts.repeats:  # a message may have a token any number of times
        limits = tuple(n and MESSAGES_LIMIT for n in limits)
    capped = 0
    rows: dict[str, Row] = {}
    for token, row in counts.items():
        own = tuple(row[k] for k in order)
        least = tuple(map(min, own, limits))
        capped += own != least
        if any(least):
            rows[token] = least
    metadata = empty._replace(learned=empty.learned._replace(messages=learned_messages))
    return Imported(Model(with_counts(metadata, rows), rows, {}), capped, 0, 0)
