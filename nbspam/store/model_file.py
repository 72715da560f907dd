"""Writing a model file: whole, or the old one's lines with some of them changed.

What an update does not change is copied without being parsed: a message is learned into a model of
a million tokens at about the speed of copying the file.  How the lines look is in `lookup.py`; how
one file takes the place of another, in `writing.py`.
"""

import itertools
import os
import weakref
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from nbspam.bayes.event_model import Row
from nbspam.errors import ModelError, Remedy
from nbspam.store import lookup, writing
from nbspam.store.lookup import Lookup, Model
from nbspam.store.metadata import FORMAT, Metadata, dump_metadata
from nbspam.store.writing import DEFAULT_WAIT, LockWait

_BATCH = 20_000  # tokens joined at a time when writing
Write = Callable[[IO[bytes]], None]
KeyOf = Callable[[str], str]
digest_key = ' "{}"'.format  # as its line begins; the blank tells it from a token's


def write_model(
    path: Path, model: Model, *, replace_old: bool = True, wait: LockWait = DEFAULT_WAIT
) -> None:
    """Write a model file, as `put_model` does."""
    put_model(path, partial(write_lines, model=model), replace_old=replace_old, wait=wait)


def put_model(
    path: Path, write: Write, *, replace_old: bool = True, wait: LockWait = DEFAULT_WAIT
) -> None:
    """Replace a model by the output of `write`.  Its mode stays; a new file has mode 0600.

    wait: how long to wait for the model's lock.
    The old file stays whole until the new one is on the disk.
    Raises ModelError: the file cannot be written, must not be replaced, or is not a model.
    """
    with replacing(path, replace_old, wait=wait) as place:
        writing.write_atomically(place, write)


@contextmanager
def replacing(
    path: Path,
    replace_old: bool,
    remedy: Remedy = Remedy.UPDATE_OR_REPLACE,
    wait: LockWait = DEFAULT_WAIT,
) -> Iterator[Path]:
    """Hold the lock of a model that will be written; yields its real path, as `locked` does.

    Raises ModelError: the file is not a model, or must not be replaced (remedy: of that error).
    """
    with writing.locked(path, wait) as place:
        if not replace_old and place.exists():
            raise ModelExistsError(path, remedy)
        check_replaceable(place)
        yield place


class UnsavedModel:
    """A model in an unnamed temporary file, which is deleted with its last user."""

    lookup: Lookup

    def __init__(self, write: Write) -> None:
        """Make a model of the output of `write`."""
        self.put(write)

    def __str__(self) -> str:
        return "the model"

    def put(self, write: Write) -> None:
        """Replace the model by the output of `write`; readers of the old one may go on.

        Raises ModelError when there is no room.
        """
        from tempfile import TemporaryFile  # with random 5 ms, which one message does without

        with writing.temporary_files(), TemporaryFile() as file:
            write(file)
            file.flush()
            handle = os.dup(file.fileno())
        self.lookup = Lookup(str(self), handle)
        weakref.finalize(self.lookup, os.close, handle)


def opened(place: Path | UnsavedModel) -> Lookup:
    """Open a model; raises ModelError."""
    if isinstance(place, UnsavedModel):
        return Lookup(str(place), os.dup(place.lookup.fileno()))
    return Lookup(place)


@contextmanager
def changing(
    place: Path | UnsavedModel, wait: LockWait = DEFAULT_WAIT, may_be_new: bool = False
) -> Iterator[tuple[Lookup | None, Callable[[Write], None]]]:
    """Lock a model; yields the open model and a function that replaces it.

    A model that another program has changed, restored or copied is checked whole.  That takes 3.4 s
    of CPU and 180 MB for a million tokens, too much for each update, which takes .1 s.
    may_be_new: whether the model may be missing; then None is yielded for it.
    Raises ModelError: the model is missing, damaged, locked, or cannot be written.
    """
    if isinstance(place, UnsavedModel):
        yield place.lookup, place.put
        return
    with writing.locked(place, wait) as real, ExitStack() as stack:
        old = None
        if real.exists() or not may_be_new:
            old = stack.enter_context(Lookup(real))
            if not writing.is_as_written(real):
                lookup.checked_model(real)
        yield old, partial(writing.write_atomically, real)


_SAMPLE = 4 << 10  # bytes


def check_replaceable(path: "Path") -> None:
    """Raise ModelError for a file that must not be overwritten: any but a model.

    A damaged or reformatted model may be overwritten; a mailbox named by mistake must not.
    """
    if not path.exists():
        return
    with os.fdopen(lookup.open_model_file(path), "rb") as file:
        sample = file.read(_SAMPLE)
    if sample and not _begins_model(sample):
        raise ModelError(
            f"{path}: is not a model, and would be lost; name another file, or remove it first"
        )


def is_model_like(path: "Path") -> bool:
    """Return whether a file begins like a model, damaged or not; False if it cannot be read."""
    try:
        with path.open("rb") as file:
            return _begins_model(file.read(_SAMPLE))
    except OSError:
        return False


def _begins_model(sample: bytes) -> bool:
    return sample.lstrip().startswith(b"{") and f'"{FORMAT}"'.encode() in sample


class ModelExistsError(ModelError):
    """The file exists, and neither an update nor a replacement was asked for."""

    def __init__(self, path: Path, remedy: Remedy = Remedy.UPDATE_OR_REPLACE) -> None:
        super().__init__(f"{path}: the file exists", remedy)


def write_lines(file: IO[bytes], model: Model) -> None:
    """Write the lines of a model."""
    metadata, counts, learned = model
    write_blocks(file, metadata, _blocks(counts), _blocks(learned, digest_key))


def _blocks(rows: Mapping[str, Row], key: KeyOf = lookup.token_key) -> Iterator[bytes]:
    lines = iter(sorted_lines(rows.items(), key))
    while batch := list(itertools.islice(lines, _BATCH)):
        yield ",\n".join(batch).encode()


def write_blocks(
    file: IO[bytes], metadata: Metadata, counts: Iterable[bytes], learned: Iterable[bytes]
) -> None:
    """Write a model of sorted lines, which come in blocks with commas between them.

    A block may be empty.
    """
    file.write(dump_metadata(metadata).encode())
    for beginning, blocks in ((lookup.TOKENS_LINE, counts), (lookup.LEARNED_LINE, learned)):
        file.write(beginning)
        before = b""
        for block in filter(None, blocks):
            file.write(before)
            file.write(block)  # which may be long: joined to the comma it would be copied
            before = b",\n"
        if before:
            file.write(b"\n")
    file.write(lookup.END)


def sorted_lines(rows: Iterable[tuple[str, Row]], key: KeyOf = lookup.token_key) -> list[str]:
    """Return the lines of tokens or of the ledger, sorted, without separators."""
    # In the order of code points, which is that of the bytes of UTF-8.
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
    Raises ModelError when an old line that must be read is damaged.
    """
    tokens, ledger = old.sections
    token_blocks = _changed(old, tokens, sorted_lines(counts.items()))
    ledger_blocks = _changed(old, ledger, sorted_lines(learned.items(), digest_key))
    write_blocks(file, metadata, token_blocks, ledger_blocks)


def _changed(old: Lookup, section: tuple[int, int], changed: list[str]) -> Iterator[bytes]:
    """Yield the lines of a section of the old file, with the changed lines merged in."""
    gone = lookup.row_text((0,) * len(old.metadata.settings.classes)).encode()
    new = [line.encode() for line in changed]
    start, end = section
    for low, high, first, last in old.stretches(list(map(lookup.rank, new))):
        yield from old.parts(start, low - 2)
        start = high
        lines = old.lines(low, high)
        after = lines.copy()
        for line in reversed(new[first:last]):  # so that places before it stay
            key = line[: line.rindex(b"[")]
            at = bisect_left(lines, key)
            for beside in lines[max(0, at - 1) : at + 1]:
                old.row(beside)  # which raises for a line that is none
            is_there = at < len(lines) and lines[at].startswith(key)
            after[at : at + is_there] = [] if line.endswith(gone) else [line]
        yield b",\n".join(after)
    yield from old.parts(start, end - 1)
