"""Writing a model file: whole, or the old file's lines with some of them changed.

An update copies unchanged lines without parsing them, so learning a message into a model of a
million tokens takes about as long as copying the file.  `lookup.py` describes the lines;
`writing.py` replaces one file by another.
"""

import itertools
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import IO

from nbspam.bayes.event_model import Row
from nbspam.errors import ModelError, Remedy
from nbspam.store import lookup, writing
from nbspam.store.lookup import Lookup, Model
from nbspam.store.metadata import FORMAT, Metadata, dump_metadata
from nbspam.store.writing import DEFAULT_WAIT, LockWait

_LINES_PER_BLOCK = 20_000
Write = Callable[[IO[bytes]], None]
KeyOf = Callable[[str], str]
# the start of a ledger's line; the blank distinguishes it from a token's line
digest_key = ' "{}"'.format


def write_model(
    path: Path, model: Model, *, replace_old: bool = True, wait: LockWait = DEFAULT_WAIT
) -> None:
    """Write a whole model by `replace_model`."""
    replace_model(path, partial(write_lines, model=model), replace_old=replace_old, wait=wait)


def replace_model(
    path: Path, write: Write, *, replace_old: bool = True, wait: LockWait = DEFAULT_WAIT
) -> None:
    """Replace a model by the output of `write`, with the old mode, or 0600 for a new file.

    wait: how long to wait for the model's lock.
    The old file stays intact until the new file is on the disk.
    Raises ModelError: the file cannot be written, must not be replaced, or is not a model.
    """
    with locked_for_replacement(path, replace_old, wait=wait) as place:
        writing.write_atomically(place, write)


@contextmanager
def locked_for_replacement(
    path: Path,
    replace_old: bool,
    remedy: Remedy = Remedy.UPDATE_OR_REPLACE,
    wait: LockWait = DEFAULT_WAIT,
) -> Iterator[Path]:
    """Hold the lock of a model that will be written; yields its real path, like `locked`.

    remedy: the remedy if the file exists and must not be replaced.
    Raises ModelError: the file is not a model, or must not be replaced.
    """
    with writing.locked(path, wait) as place:
        if not replace_old and place.exists():
            raise ModelExistsError(path, remedy)
        check_replaceable(place)
        yield place


class UnsavedModel:
    """A model in an unnamed temporary file, which is deleted when nothing refers to it."""

    lookup: Lookup

    def __init__(self, write: Write) -> None:
        """write: writes the model."""
        self.lock = Lock()  # held while the model is changed
        self.put(write)

    def __reduce__(self) -> tuple[object, ...]:
        return _unsaved_again, (list(self.lookup.iter_bytes()),)

    def __str__(self) -> str:
        return "the model"

    def put(self, write: Write) -> None:
        """Replace the model by the output of `write`; readers can finish with the old model.

        Raises ModelError if the disk is full.
        """
        from tempfile import TemporaryFile  # takes 5 ms to import, and one message does not need it

        with writing.temporary_files(), TemporaryFile() as file:
            write(file)
            file.flush()
            handle = os.dup(file.fileno())
        self.lookup = Lookup(str(self), handle)


def _unsaved_again(lines: list[bytes]) -> UnsavedModel:
    return UnsavedModel(lambda file: file.writelines(lines))


def open_model(place: Path | UnsavedModel) -> Lookup:
    """Open a model; raises ModelError."""
    if isinstance(place, UnsavedModel):
        return Lookup(str(place), os.dup(place.lookup.fileno()))
    return Lookup(place)


@contextmanager
def updating_model(
    place: Path | UnsavedModel, wait: LockWait = DEFAULT_WAIT, may_be_new: bool = False
) -> Iterator[tuple[Lookup | None, Callable[[Write], None]]]:
    """Lock a model; yields the open model and a function that replaces it.

    A model that another program has changed, restored or copied is checked whole.  With a million
    tokens the check takes 3.4 s of CPU and 180 MB, too much for every update: an update takes 0.1
    s.
    may_be_new: the model may be missing; then None is yielded instead of a model.
    Raises ModelError: the model is missing, damaged, locked, or cannot be written.
    """
    if isinstance(place, UnsavedModel):
        with place.lock, open_model(place) as own:  # no other process can change an unsaved model
            yield own, place.put
        return
    with writing.locked(place, wait) as real, ExitStack() as stack:
        old = None
        if real.exists() or not may_be_new:
            old = stack.enter_context(Lookup(real))
            if not writing.is_as_written(real):
                lookup.checked_model(real)
        yield old, partial(writing.write_atomically, real)


_SAMPLE_BYTES = 4 << 10


def check_replaceable(path: "Path") -> None:
    """Raise ModelError for a file that is not a model, and must not be overwritten.

    A damaged or reformatted model may be overwritten; a mailbox named by mistake must not.
    """
    if not path.exists():
        return
    with os.fdopen(lookup.open_model_file(path), "rb") as file:
        sample = file.read(_SAMPLE_BYTES)
    if sample and not _looks_like_model(sample):
        raise ModelError(
            f"{path}: is not a model, and would be lost; name another file, or remove it first"
        )


def _looks_like_model(sample: bytes) -> bool:
    return sample.lstrip().startswith(b"{") and f'"{FORMAT}"'.encode() in sample


class ModelExistsError(ModelError):
    """The file exists, and neither an update nor a replacement was requested."""

    def __init__(self, path: Path, remedy: Remedy = Remedy.UPDATE_OR_REPLACE) -> None:
        super().__init__(f"{path}: the file exists", remedy)


def write_lines(file: IO[bytes], model: Model) -> None:
    """Write the lines of a model."""
    metadata, counts, learned = model
    write_blocks(file, metadata, _blocks(counts), _blocks(learned, digest_key))


def _blocks(rows: Mapping[str, Row], key: KeyOf = lookup.token_key) -> Iterator[bytes]:
    lines = iter(sorted_lines(rows.items(), key))
    while batch := list(itertools.islice(lines, _LINES_PER_BLOCK)):
        yield ",\n".join(batch).encode()


def write_blocks(
    file: IO[bytes], metadata: Metadata, counts: Iterable[bytes], learned: Iterable[bytes]
) -> None:
    """Write a model from blocks of sorted lines with commas between them.

    Empty blocks are allowed.
    """
    file.write(dump_metadata(metadata).encode())
    for first_line, blocks in ((lookup.TOKENS_LINE, counts), (lookup.LEARNED_LINE, learned)):
        file.write(first_line)
        separator = b""
        for block in filter(None, blocks):
            file.write(separator)
            file.write(block)  # separately, because joining would copy a long block
            separator = b",\n"
        if separator:
            file.write(b"\n")
    file.write(lookup.END)


def sorted_lines(rows: Iterable[tuple[str, Row]], key: KeyOf = lookup.token_key) -> list[str]:
    """Return the lines of tokens or of the ledger, sorted, without separators."""
    # The order of code points is the order of UTF-8's bytes.
    return sorted([key(name) + lookup.row_text(row) for name, row in rows])


def splice(
    file: IO[bytes],
    old: Lookup,
    metadata: Metadata,
    counts: Mapping[str, Row],
    learned: Mapping[str, Row],
) -> None:
    """Write the old model's lines with new metadata and changed rows.

    counts, learned: the new and changed rows; a row of zeros removes its line.
    Raises ModelError if an old line that must be read is damaged.
    """
    tokens, ledger = old.sections
    token_blocks = _changed(old, tokens, sorted_lines(counts.items()))
    ledger_blocks = _changed(old, ledger, sorted_lines(learned.items(), digest_key))
    write_blocks(file, metadata, token_blocks, ledger_blocks)


def _changed(old: Lookup, section: tuple[int, int], changed: list[str]) -> Iterator[bytes]:
    """Yield a section's lines of the old file, with the changed lines merged in."""
    removed = lookup.row_text((0,) * len(old.metadata.settings.classes)).encode()
    new = [line.encode() for line in changed]
    start, end = section
    for low, high, first, last in old.iter_spans(list(map(lookup.sort_key, new))):
        yield from old.parts(start, low - 2)
        start = high
        lines = old.lines(low, high)
        after = lines.copy()
        for line in reversed(new[first:last]):  # backwards, so that earlier indexes stay valid
            key = line[: line.rindex(b"[")]
            i = bisect_left(lines, key)
            for neighbour in lines[max(0, i - 1) : i + 1]:
                old.row(neighbour)  # raises for an invalid line
            is_there = i < len(lines) and lines[i].startswith(key)
            after[i : i + is_there] = [] if line.endswith(removed) else [line]
        yield b",\n".join(after)
    yield from old.parts(start, end - 1)
