"""The model file: written whole, atomically and durably; read whole, and validated whole.

One JSON object.  Its layout is fixed, since the file is its own index: the metadata, one key per
line; then the tokens, one per line, sorted by the bytes of their JSON-escaped keys:

    {"format": "nbspam-model", "version": 1,
    "classes": ["ham", "spam"],
    …
    "tokens": {
    "free": [12, 340],
    "meeting": [55, 1]
    },"learned": {
     "0a64…": [1, 0],
     "ffe2…": [0, 1]
    }}

After the metadata, every line of a token begins with a quote, every line of the ledger with a
blank, and no other line does, so that a search by bisection (`lookup.py`) needs no table of offsets
and survives hand editing.
"""

import itertools
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from json.encoder import encode_basestring
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from nbspam.bayes.event_model import Row
from nbspam.errors import ModelError, Remedy
from nbspam.patterns import lazy_pattern
from nbspam.reading.source import is_url
from nbspam.store.metadata import Metadata
from nbspam.store.metadata_json import (
    FORMAT,
    MetadataError,
    dump_metadata,
    is_digest,
    load_metadata,
    shown,
)

if TYPE_CHECKING:  # importing it takes 3 ms, and classifying one message does without
    from pathlib import Path

    from nbspam.store.writing import LockWait

TOKENS_LINE = b'"tokens": {\n'
LEARNED_LINE = b'},"learned": {\n'
END = b"}}\n"
# Of an imported token, in characters; the tokenizer's own are far shorter.  A longer one could make
# a line that `lookup.py` would report as damage.
TOKEN_LIMIT = 1_000
_SURROGATE = lazy_pattern("[\ud800-\udfff]")  # JSON can spell one; no file can hold it
_BATCH = 20_000  # tokens joined at a time when writing

token_key: Callable[[str], str] = encode_basestring  # a token as its line begins, in quotes


class Model(NamedTuple):
    """A model, whole."""

    metadata: Metadata
    counts: dict[str, Row]  # token -> its counts per class: messages, or how often it occurs
    learned: dict[str, Row]  # digest of a message -> how often it was learned, per class

    def write(self, file: IO[bytes]) -> None:
        """Write the lines of its file."""
        write_lines(file, self.metadata, self.counts.items(), sorted(self.learned.items()))


def write_model(
    path: "Path",
    metadata: Metadata,
    counts: Iterable[tuple[str, Row]],
    learned: Iterable[tuple[str, Row]] = (),
    *,
    replace_old: bool = True,
    wait: "LockWait | None" = None,
) -> None:
    """Write a model file in place of what is there, whose mode stays; that of a new one is 0600.

    counts: (token, counts per class) in any order; no token twice.
    learned: (digest, times per class) in the order of the digests.
    wait: how long to wait for the model's lock; None for the default.
    Whatever happens on the way, the old file stays whole until the new one is on the disk.
    Raises ModelError when it cannot be written, exists and must not be replaced, or is no model.
    """
    put_model(
        path,
        lambda file: write_lines(file, metadata, counts, learned),
        replace_old=replace_old,
        wait=wait,
    )


def put_model(
    path: "Path",
    write: Callable[[IO[bytes]], None],
    *,
    replace_old: bool = True,
    wait: "LockWait | None" = None,
) -> None:
    """Put what `write` writes in place of a model, as `write_model` does."""
    if is_url(path):
        from nbspam.store.writing import put_remote

        check_replaceable(path)
        if not replace_old and path.exists():
            raise already_exists(path)
        put_remote(str(path), write)
        return
    from nbspam.store.writing import (
        DEFAULT_WAIT,
        locked,
        write_atomically,  # reading needs none of it
    )

    with locked(path, wait or DEFAULT_WAIT) as place:
        if not replace_old and place.exists():
            raise already_exists(path)
        check_replaceable(place)
        write_atomically(place, write)


_SAMPLE = 4 << 10  # bytes


def check_replaceable(path: "Path", counts: tuple[bytes, ...] = ()) -> None:
    """Raise ModelError unless what is at `path` may be overwritten: a model, or nothing.

    A damaged model may be, and one that another program has formatted; a mailbox named by a slip
    may not.
    counts: for an export, what those begin with that may be overwritten in place of models.
    """
    if not path.exists():
        return
    with os.fdopen(open_model_file(path), "rb") as file:
        sample = file.read(_SAMPLE)
    if counts:
        what, is_one = "an export", sample.startswith(counts)
    else:
        what, is_one = "a model", _begins_model(sample)
    if sample and not is_one:
        raise ModelError(
            f"{path}: is not {what}, and would be lost; name another file, or remove it first"
        )


def is_model_like(path: "Path") -> bool:
    """Return whether a file begins as a model does, damaged or not; False if it cannot be read."""
    try:
        with path.open("rb") as file:
            return _begins_model(file.read(_SAMPLE))
    except OSError:
        return False


def _begins_model(sample: bytes) -> bool:
    return sample.lstrip().startswith(b"{") and f'"{FORMAT}"'.encode() in sample


class ModelExistsError(ModelError):
    """The model exists, and neither an update nor a replacement was asked for."""


def already_exists(path: "Path", remedy: Remedy = Remedy.UPDATE_OR_REPLACE) -> ModelExistsError:
    """Return the error of a file that would be overwritten."""
    return ModelExistsError(f"{path}: the file exists", remedy)


def is_ledger_row(row: Row, messages: Row) -> bool:
    """Return whether a message can have been learned this often in each class."""
    return any(row) and all(0 <= times <= n for times, n in zip(row, messages, strict=True))


def write_lines(
    file: IO[bytes],
    metadata: Metadata,
    counts: Iterable[tuple[str, Row]],
    learned: Iterable[tuple[str, Row]],
) -> None:
    """Write the lines of a model; its arguments are those of `write_model`."""
    suffix = _RowTexts()
    # In the order of code points, which is that of the bytes of UTF-8.
    lines = sorted(token_key(token) + suffix[row] for token, row in counts)
    own = (learned_line(digest, row) for digest, row in learned)
    write_blocks(file, metadata, _joined(iter(lines)), _joined(own))


def write_blocks(
    file: IO[bytes], metadata: Metadata, counts: Iterable[bytes], learned: Iterable[bytes]
) -> None:
    """Write a model of which the lines are there, in order: some in each block, as `lines_of_rows`.

    An empty block has no line.
    """
    file.write(dump_metadata(metadata).encode())
    file.write(TOKENS_LINE)
    _write_section(file, counts)
    file.write(LEARNED_LINE)
    _write_section(file, learned)
    file.write(END)


def lines_of_rows(keys: Sequence[str], rows: Sequence[Sequence[int]]) -> bytes:
    """Return lines of tokens or of the ledger, in their order, without the last line end.

    keys: as the file has them.  rows: of each, its counts per class; one of zeros has no line.
    """
    lines = (
        key + text for key, text, row in zip(keys, row_texts(rows), rows, strict=True) if any(row)
    )
    return ",\n".join(lines).encode()


def row_texts(rows: Iterable[Sequence[int]]) -> Iterator[str]:
    """Return what follows the key of each row."""
    suffix = _RowTexts()
    return map(suffix.__getitem__, map(tuple, rows))


class _RowTexts(dict[Row, str]):
    """What follows a key, by its counts; few differ, and each is formatted once."""

    def __missing__(self, row: Row) -> str:
        shown = self[row] = f": [{', '.join(map(str, row))}]"
        return shown


def _write_section(file: IO[bytes], blocks: Iterable[bytes]) -> None:
    before = b""
    for block in filter(None, blocks):
        file.write(before + block)
        before = b",\n"
    if before:
        file.write(b"\n")


def _joined(lines: Iterator[str]) -> Iterator[bytes]:
    while batch := list(itertools.islice(lines, _BATCH)):
        yield ",\n".join(batch).encode()


def learned_line(digest: str, row: Row) -> str:
    """Return a digest's line, without comma and line end; the blank tells it from a token's."""
    return f' "{digest}": [{", ".join(map(str, row))}]'


def open_model_file(path: "str | Path", follows_links: bool = True) -> int:
    """Return a file descriptor of a model file, for reading; raises ModelError.

    Of a model at a URL it is that of a copy, which is gone when it is closed.
    follows_links: False refuses a path that is a link itself.
    """
    if is_url(path):
        from nbspam.store.writing import fetched

        return fetched(str(path))
    try:
        no_link = 0 if follows_links else os.O_NOFOLLOW
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | no_link)
    except FileNotFoundError:
        raise ModelError(f"{path}: model not found", Remedy.CREATE_MODEL, path=path) from None
    except PermissionError as error:
        raise _unreadable(path) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(
            f"{path}: the model cannot be read ({reason}); restore it, or name another"
        ) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ModelError(f"{path}: is not a file; name a file that nbspam train wrote")
    return handle


def _unreadable(path: "str | Path") -> ModelError:
    """Return the error for a model that the user of this process may not open."""
    from nbspam.store.writing import described_access, user_name

    reader = user_name(os.geteuid())
    if access := described_access(path):
        return ModelError(
            f"{path}: the model cannot be read by {reader} (Permission denied): {access}; let its"
            " owner change the mode with chmod, or name another"
        )
    return ModelError(
        f"{path}: the model cannot be read by {reader} (Permission denied): a folder on the way to"
        " it is closed; let its owner open that with chmod, or name another"
    )


def read_model(path: "str | Path", load: Callable[[Any], Metadata] = load_metadata) -> Model:
    """Return the model in a file, every line of it validated.

    load: reads the metadata; `load_counted` what is needed of them to export the counts.
    Raises ModelError: no such file, not a model, damaged, newer than this program.
    """
    with os.fdopen(open_model_file(path), "rb") as file:
        return parse_model(path, file.read(), load)


def parse_model(
    path: "str | Path", raw: bytes, load: Callable[[Any], Metadata] = load_metadata
) -> Model:
    """Return the model that the bytes of a file hold; raises ModelError as `read_model` does."""
    try:
        fields = json.loads(raw, object_pairs_hook=without_duplicates, parse_constant=_refuse)
    except DuplicateError as error:
        raise ModelError(
            f"{path}: is damaged: duplicate key {error}; restore it from a copy or train again"
        ) from None
    except (ValueError, RecursionError) as error:
        whole = raw.endswith(END) or not raw.startswith(b'{"format"')
        what = "is not a model" if whole else "is cut short"
        raise ModelError(
            f"{path}: {what} ({error}); restore it from a copy or train again"
        ) from None
    try:
        metadata = load(fields)
    except MetadataError as error:
        raise ModelError(f"{path}: {error}") from None
    is_row = metadata.settings.counts.is_row
    counts = _section(path, fields.get("tokens"), metadata, "token", token_key, is_row)
    learned = _section(path, fields.get("learned"), metadata, "message", _digest_key, is_ledger_row)
    return Model(metadata, counts, learned)


def _section(
    path: "str | Path",
    rows: Any,
    metadata: Metadata,
    what: str,
    key: Callable[[str], str],
    is_row: Callable[[Row, Row], bool],
) -> dict[str, Row]:
    """Return the rows of the tokens or of the ledger, validated; raises ModelError."""
    if not isinstance(rows, dict):
        raise ModelError(f"{path}: is damaged: it has no {what}s; restore it from a copy")
    width, messages = len(metadata.settings.classes), metadata.learned.messages
    for name, row in rows.items():
        if (
            type(row) is not list
            or len(row) != width
            or not all(type(count) is int for count in row)
            or not is_row(tuple(row), messages)
        ):
            raise ModelError(
                f"{path}: is damaged: the counts {shown(row)} of the {what} {shown(name)} are"
                " impossible; restore it from a copy or train again"
            )
        if not name.isascii() and _SURROGATE.search(name):
            raise ModelError(
                f"{path}: is damaged: the {what} {shown(name)} contains an unpaired surrogate;"
                " restore it from a copy or train again"
            )
    keys = [key(name) for name in rows]
    for before, after in itertools.pairwise(["", *keys]):
        if before >= after:
            raise ModelError(
                f"{path}: is damaged: the {what} {shown(after)} is out of order, so it cannot be"
                " found; restore it from a copy or train again"
            )
    return {name: tuple(row) for name, row in rows.items()}


def _digest_key(digest: str) -> str:
    return digest if is_digest(digest) else ""  # which is out of order anywhere


class DuplicateError(Exception):
    """An object has a duplicate key; the text is the key."""


def without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object's pairs as a dict; raises DuplicateError (for object_pairs_hook)."""
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = sorted(key for key, _ in pairs)
        twice = next(a for a, b in itertools.pairwise(keys) if a == b)
        raise DuplicateError(shown(twice))
    return found


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not a JSON number")
