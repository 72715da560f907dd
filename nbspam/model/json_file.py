"""The model file: written whole, atomically and durably; read whole, and validated whole.

One JSON object.  Its layout is fixed, since the file is its own index: the head, a key a line;
then the tokens, one a line, sorted by the bytes of their JSON-escaped keys:

    {"format": "nbspam-model", "version": 1,
    "classes": ["ham", "spam"],
    …
    "tokens": {
    "free": [12, 340],
    "meeting": [55, 1]
    },"learned": {
    }}

Every line of the tokens begins with a quote and no line after them does, so that a search by
bisection (`lookup.py`) needs no table of offsets and survives hand editing.
"""

import itertools
import json
import os
import stat
from collections.abc import Callable, Iterable
from json.encoder import encode_basestring
from pathlib import Path
from typing import NamedTuple

from nbspam.errors import ModelError
from nbspam.model.head import Head, HeadError, dump_head, load_head

TOKENS_LINE = b'"tokens": {\n'
LEARNED_LINE = b'},"learned": {\n'
END = b"}}\n"
_BATCH = 20_000  # tokens joined at a time when writing

token_key: Callable[[str], str] = encode_basestring  # a token as its line begins, in quotes


class Model(NamedTuple):
    """A model, whole."""

    head: Head
    counts: dict[str, tuple[int, ...]]  # token -> messages that contain it, per class


def write_model(path: Path, head: Head, counts: Iterable[tuple[str, tuple[int, ...]]]) -> None:
    """Write a model file, mode 0600, in place of what is there.

    counts: (token, counts per class) in any order; no token twice.
    Whatever happens on the way, the old file stays whole until the new one is on the disk.
    Raises ModelError when it cannot be written.
    """
    path = Path(os.path.realpath(path))  # a link keeps pointing at the model
    if path.is_dir():
        raise ModelError(f"{path}: is a folder; give --model a file's name")
    if (path.exists() or path.is_symlink()) and not path.is_file():
        raise ModelError(f"{path}: is no ordinary file; give --model another name")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    rows: dict[tuple[int, ...], str] = {}  # few counts differ: each pair is written out once
    lines = []
    for token, row in counts:
        shown = rows.get(row)
        if shown is None:
            shown = rows[row] = f": [{', '.join(map(str, row))}]"
        lines.append(token_key(token) + shown)
    lines.sort()  # by code points, which is by the bytes of UTF-8
    try:
        temporary.unlink(missing_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(dump_head(head).encode())
                file.write(TOKENS_LINE)
                for start in range(0, len(lines), _BATCH):
                    text = ",\n".join(lines[start : start + _BATCH]).encode()
                    file.write(text + (b",\n" if start + _BATCH < len(lines) else b"\n"))
                file.write(LEARNED_LINE + END)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
    except OSError as error:
        raise ModelError(
            f"{path}: cannot be written ({error.strerror}); the model that was there is unchanged,"
            " free the space or mend the permissions and run it again"
        ) from error


def _sync_folder(folder: Path) -> None:
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return  # a folder that may be written but not read; Windows
    try:
        os.fsync(handle)
    except OSError:
        return  # not every file system can
    finally:
        os.close(handle)


def open_model(path: Path) -> int:
    """Return a file descriptor of a model file, for reading; raises ModelError."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        raise ModelError(
            f"{path}: there is no such model; make it with nbspam train -m {path}, or name another"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(
            f"{path}: the model cannot be read ({reason}); check its permissions"
        ) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ModelError(f"{path}: is not a file; name a file that nbspam train wrote")
    return handle


def read_model(path: Path) -> Model:
    """Return the model in a file, every line of it validated.

    Raises ModelError: no such file, not a model, damaged, newer than this program.
    """
    with os.fdopen(open_model(path), "rb") as file:
        raw = file.read()
    try:
        fields = json.loads(raw, object_pairs_hook=_without_duplicates, parse_constant=_refuse)
    except _DuplicateError as error:
        raise ModelError(
            f"{path}: is damaged: the key {error} stands in it twice;"
            " restore it from a copy or train again"
        ) from None
    except (ValueError, RecursionError) as error:
        whole = raw.endswith(END) or not raw.startswith(b'{"format"')
        what = "is not a model" if whole else "is cut short"
        raise ModelError(
            f"{path}: {what} ({error}); restore it from a copy or train again"
        ) from None
    try:
        head = load_head(fields)
    except HeadError as error:
        raise ModelError(f"{path}: {error}") from None
    tokens = fields.get("tokens")
    width = len(head.classes)
    limits = head.messages
    if not isinstance(tokens, dict):
        raise ModelError(f"{path}: is damaged: it has no tokens; restore it from a copy")
    for token, row in tokens.items():
        if (
            type(row) is not list
            or len(row) != width
            or not all(type(c) is int and 0 <= c <= n for c, n in zip(row, limits, strict=True))
            or not any(row)
        ):
            raise ModelError(
                f"{path}: is damaged: the counts {str(row)[:80]} of the token {token[:80]!r} make"
                " no sense; restore it from a copy or train again"
            )
    keys = [token_key(token).encode() for token in tokens]
    for before, after in itertools.pairwise(keys):
        if before >= after:
            raise ModelError(
                f"{path}: is damaged: {after.decode()} stands in the wrong place, and tokens are"
                " found by their order; restore it from a copy or train again"
            )
    return Model(head, {token: tuple(row) for token, row in tokens.items()})


class _DuplicateError(Exception):
    pass


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = sorted(key for key, _ in pairs)
        twice = next(a for a, b in itertools.pairwise(keys) if a == b)
        raise _DuplicateError(repr(twice))
    return found


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON number")
