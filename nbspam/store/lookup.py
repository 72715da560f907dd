"""A model file, read line by line: counts are looked up where they lie.

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
blank, and no other line does.  So the tokens of one message are found by bisection with positioned
reads: a few kilobytes of a model of any size, without a table of offsets, whoever edited the file.
The probes are shared: a stretch of the file is halved once for all tokens in it.  A memory map
would be no faster, counts the pages it touches as resident, and kills the process when the file
shrinks; a read only returns fewer bytes.

What is read is validated; the rest of the file is not (`nbspam model check` validates all of it).
"""

import itertools
import json
import math
import os
import re
import stat
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, NamedTuple

from nbspam.bayes.event_model import Row
from nbspam.errors import ModelError, Remedy
from nbspam.names import is_url
from nbspam.store.metadata import (
    FORMAT,
    Metadata,
    MetadataError,
    derived_fields,
    is_digest,
    load_metadata,
    shown,
    with_counts,
)

if TYPE_CHECKING:  # importing it takes 3 ms, and classifying one message does without
    from pathlib import Path


TOKENS_LINE = b'"tokens": {\n'
LEARNED_LINE = b'},"learned": {\n'
END = b"}}\n"
_METADATA_CHUNK = 1 << 16
# Bytes.  A crafted model with 16 MB of metadata took a second and 400 MB of memory.
_METADATA_LIMIT = 4 << 20
# Stretches no longer than this are read whole.  Measured on 1,000,000 tokens (25 MB) and a mail of
# 250: 4 KiB 4.4 ms, 8 KiB 4.1 ms, 16 KiB 4.6 ms.
_BLOCK = 8 << 10
_PROBE = 256
_MANY = 20  # tokens looked for in one block
_COPIED = 1 << 20  # bytes copied at a time
_COUNT = rb"(?:0|[1-9]\d{0,15})"  # as JSON writes it
LINE_LIMIT = 1 << 13  # bytes; the tokenizer's longest token is much shorter

token_key: Callable[[str], str] = encode_basestring  # a token as its line begins, in quotes


class Model(NamedTuple):
    """A model, whole."""

    metadata: Metadata
    counts: dict[str, Row]  # token -> its counts per class: messages, or how often it occurs
    learned: dict[str, Row]  # digest of a message -> how often it was learned, per class


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
        from nbspam.store.writing import unreadable

        raise unreadable(path) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(
            f"{path}: the model cannot be read ({reason}); restore it, or name another"
        ) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ModelError(f"{path}: is not a file; name a file that nbspam train wrote")
    return handle


def is_ledger_row(row: Row, messages: Row) -> bool:
    """Return whether a message can have been learned this often in each class."""
    return any(row) and all(0 <= times <= n for times, n in zip(row, messages, strict=True))


class _DuplicateError(Exception):
    """An object has a duplicate key; the text is the key."""


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object's pairs as a dict; raises _DuplicateError (for object_pairs_hook)."""
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = sorted(key for key, _ in pairs)
        raise _DuplicateError(shown(next(a for a, b in itertools.pairwise(keys) if a == b)))
    return found


def _side(line: bytes, ledger: bool) -> int:
    """Return -1, 0 or 1 for a line before the section looked at, in it or after it."""
    if line.startswith(b'"'):
        return -1 if ledger else 0
    if line.startswith(b" "):
        return 0 if ledger else 1
    return -1 if ledger and line.startswith(LEARNED_LINE[:2]) else 1


def _key(line: bytes) -> bytes:
    return line.rpartition(b": [")[0]


def _unescaped(key: str) -> str:
    """Return the token of a key; nothing, which has another key, if it is none."""
    if "\\" not in key:
        return key[1:-1]
    try:
        return str(json.loads(key))
    except ValueError:
        return ""


class Lookup:
    """An open model file.  Close it, or use it as a context manager."""

    def __init__(
        self,
        path: "str | Path",
        handle: int | None = None,
        load: Callable[[Any], Metadata] = load_metadata,
    ) -> None:
        """Open the model and read its metadata; raises ModelError.

        handle: a descriptor of the file if it is open already, which `close` will close; the path
        is its name in errors.
        load: reads the metadata; `load_counted` what is needed of them to export the counts.
        """
        self._path = path
        self._handle = open_model_file(path) if handle is None else handle
        try:
            self._ahead = 0, b""  # where the bytes begin that `copy` read last, and the bytes
            # Few counts differ: of the tokens, and of the ledger.
            self._parsed: tuple[dict[bytes, Row], dict[bytes, Row]] = ({}, {})
            self._size = os.fstat(self._handle).st_size
            self.metadata: Metadata
            self.derived: Any  # of the metadata, as the file states it
            self._start = self._read_metadata(load)
        except BaseException:
            os.close(self._handle)
            raise
        # What is a row of a token, and of the ledger.
        self._is_row = self.metadata.settings.counts.is_row, is_ledger_row
        width = len(self.metadata.settings.classes)
        self._line = re.compile(
            rb' ?"(?:[^"\\\n]|\\.)*": \[(%b(?:, %b){%d})\],?' % (_COUNT, _COUNT, width - 1)
        )

    def __enter__(self) -> "Lookup":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """Return the descriptor of the open file."""
        return self._handle

    def identity(self) -> tuple[int, ...]:
        """Return what tells the file's bytes from any others, on any machine: size and check sum.

        Each machine has its own numbers of devices and files, and a copy its own time.
        """
        import zlib  # only for bulk

        place = total = 0
        while piece := os.pread(self._handle, _COPIED, place):
            place, total = place + len(piece), zlib.crc32(piece, total)
        return place, total

    def close(self) -> None:
        """Close the file; once more does nothing."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def counts(self, tokens: Iterable[str]) -> dict[str, Row]:
        """Return the counts per class of those tokens that the model knows.

        Raises ModelError when a line it reads is not as it should be.
        """
        return self._rows(((token_key(token), token) for token in tokens), ledger=False)

    def learned(self, digests: Iterable[str]) -> dict[str, Row]:
        """Return how often each class has learned those messages that the ledger knows.

        Raises ModelError when a line it reads is not as it should be.
        """
        return self._rows(((f' "{digest}"', digest) for digest in digests), ledger=True)

    def _rows(self, named: Iterable[tuple[str, str]], ledger: bool) -> dict[str, Row]:
        wanted = sorted((key.encode("utf-8", "replace"), name) for key, name in named)
        keys = [key for key, _ in wanted]
        found: dict[str, Row] = {}
        for low, high, first, last in self._stretches(keys, ledger):
            block = b"\n" + self.read(low, high - low)
            if last - first > _MANY:  # one pass over the lines is cheaper than a search each
                lines = {line.rpartition(b": [")[0]: line for line in block.split(b"\n")}
                for i in range(first, last):
                    if (known := lines.get(keys[i])) is not None:
                        found[wanted[i][1]] = self.row(known)
                continue
            for i in range(first, last):
                at = block.find(b"\n" + keys[i] + b": [")
                if at >= 0:
                    end = block.find(b"\n", at + 1)
                    line = block[at + 1 : end if end > 0 else len(block)]
                    found[wanted[i][1]] = self.row(line)
        return found

    def places(self, rows: Sequence[bytes], ledger: bool) -> list[tuple[int, int]]:
        """Return where in the file each row's key stands, or would stand.

        rows: lines of tokens, or of the ledger, as they are to be, sorted.
        A place is (start, end) in bytes, line end included; both the same where the key is new.
        Raises ModelError when a line it reads is not as it should be.
        """
        keys = [_key(row) for row in rows]
        found: dict[int, tuple[int, int]] = {}
        for low, high, first, last in self._stretches(keys, ledger):
            block = self.read(low, high - low)
            lines = block.split(b"\n")[:-1]
            starts = list(itertools.accumulate(map(len, lines), initial=low))  # less line ends
            top = bisect_left(lines, 0, key=lambda line: _side(line, ledger))
            bottom = bisect_left(lines, 1, top, key=lambda line: _side(line, ledger))
            # Many are looked for at once, a few one by one, which is the cheaper way for each.
            own = set(map(_key, lines)) if last - first > _MANY else None
            beside: set[int] = set()  # the lines that the rows are between, each validated once
            for i in range(first, last):
                # No key is the beginning of another, so the lines are in the order of the keys.
                at = bisect_left(lines, keys[i], top, bottom)
                beside.add(at - 1)
                beside.add(at)
                is_there = at < bottom and lines[at].startswith(keys[i] + b": [")
                if not is_there and (
                    b"\n" + keys[i] + b": [" in block if own is None else keys[i] in own
                ):
                    raise self.damaged("its lines are not in order")
                end = at + is_there
                found[i] = starts[at] + at, starts[end] + end
            for at in beside:
                if top <= at < bottom:
                    self.row(lines[at])
        return [found[i] for i in range(len(keys))]

    def beginning_with(self, prefix: str) -> Iterator[tuple[str, Row]]:
        """Yield the tokens that begin with a prefix, in order, and their counts.

        prefix: ends with a colon.  Raises ModelError when a line it reads is not as it should be.
        """
        # In the order of the keys a colon's successor is a semicolon.
        first, last = (f'"{prefix[:-1]}{end}'.encode() + b": [" for end in ":;")
        (start, _), (_, stop) = self.places([first, last], ledger=False)
        for line in self._lines(start, stop, b"\n"):
            yield json.loads(_key(line)), self.row(line)

    def border(self) -> int:
        """Return where in the file the line stands that ends the tokens and begins the ledger."""
        last = b'"\xff": ['  # no UTF-8 holds such a byte
        return self.places([last], ledger=False)[0][0]

    @property
    def sections(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Where in the file the lines of the tokens begin and end, and those of the ledger."""
        border = self.border()
        if border + len(LEARNED_LINE) > self._size:
            raise self.damaged("it has no messages")
        if self.read(border, len(LEARNED_LINE)) != LEARNED_LINE:
            raise self.damaged("its ledger does not begin where its tokens end")
        return (self._start, border), (border + len(LEARNED_LINE), self._size - len(END))

    def remembered(self) -> int:
        """Return how many messages the ledger names: its lines are counted, not validated."""
        start, end = self.sections[1]
        return sum(part.count(b"\n") for part in self.copy(start, end))

    def unnamed(self) -> list[int]:
        """Return how many messages of each class were learned that the ledger does not name."""
        left = list(self.metadata.learned.messages)
        for line in self._lines(*self.sections[1], b"\n"):
            left = [n - times for n, times in zip(left, self.row(line), strict=True)]
        return left

    def whole(self) -> Iterator[bytes]:
        """Yield the bytes of the file; raises ModelError."""
        return self.copy(0, self._size)

    def model(self) -> Model:
        """Return the whole model, every line of it validated; raises ModelError."""
        found: tuple[dict[str, Row], dict[str, Row]] = ({}, {})
        texts = RowTexts()
        for (start, end), rows, is_ledger in zip(self.sections, found, (False, True), strict=True):
            if end > start and self.read(end - 1, 1) != b"\n":
                raise self.damaged("its lines are not as nbspam writes them")
            before = ""
            for line in self._lines(start, end - 1, b",\n") if start < end else ():
                row = self.row(line)
                text = _key(line).decode("utf-8", "replace")
                name = text[2:-1] if is_ledger else _unescaped(text)
                key = f' "{name}"' if is_ledger else token_key(name)
                # JSON can spell half of a character, which no file can hold.
                if (key + texts[row]).encode("utf-8", "replace") != line or (
                    is_ledger and not is_digest(name)
                ):
                    raise self.damaged(f"the line {shown(line)} is not as nbspam writes it")
                if key == before:
                    raise self.damaged(f"duplicate key {shown(name)}")
                if key < before:  # by code points, which is by the bytes of UTF-8
                    raise self.damaged("its lines are not in order")
                rows[name], before = row, key
        return Model(self.metadata, *found)

    def _lines(self, start: int, end: int, separator: bytes) -> Iterator[bytes]:
        """Yield the lines from start to end; raises ModelError."""
        rest = b""
        for part in self.copy(start, end):
            *lines, rest = (rest + part).split(separator)
            if len(rest) > LINE_LIMIT:
                raise self.damaged("a line in it is too long")
            yield from lines
        if rest:
            yield rest

    def copy(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes of the file from start to end; raises ModelError.

        Reads ahead: stretches that follow one another are read together.
        """
        while start < end:
            at, chunk = self._ahead
            if not at <= start < at + len(chunk):
                at, chunk = start, self.read(start, min(_COPIED, self._size - start))
                self._ahead = at, chunk
            yield chunk[start - at : end - at]
            start = min(end, at + len(chunk))

    def _stretches(self, keys: list[bytes], ledger: bool) -> Iterator[tuple[int, int, int, int]]:
        """Yield (from, to) in the file and (from, to) in the sorted keys: where to look for them.

        A stretch is of whole lines, and no longer than _BLOCK unless one line is.
        """
        # (from, to) in the file, (from, to) in the keys, and the keys that bound the stretch.
        stack = [(self._start, self._size, 0, len(keys), b"", b"")]
        while stack:
            low, high, first, last, above, below = stack.pop()
            if first == last:
                continue
            middle = self._middle_line(low, high) if high - low > _BLOCK else None
            if middle is None:
                yield low, high, first, last
                continue
            start, line = middle
            side = _side(line, ledger)
            if side > 0:
                stack.append((low, start, first, last, above, below))
                continue
            if side < 0:
                stack.append((start, high, first, last, above, below))
                continue
            self.row(line)
            key = _key(line)
            if (above and key <= above) or (below and key >= below):
                raise self.damaged("its lines are not in order")
            at = bisect_left(keys, key, first, last)
            stack.append((start, high, at, last, key, below))
            stack.append((low, start, first, at, above, key))

    def _middle_line(self, low: int, high: int) -> tuple[int, bytes] | None:
        """Return a line near the middle of a stretch and its start; None if it has one line."""
        start, line = self._line_at((low + high) // 2, high)
        if start < high:
            return start, line
        # A long line goes on from the middle to the end: take the second line, if there is one.
        start = low + len(self._read_line(low)) + 1
        return (start, self._read_line(start)) if start < high else None

    def row(self, line: bytes) -> Row:
        """Return the counts in a line of a token or of the ledger; raises ModelError."""
        match = self._line.fullmatch(line)
        if match:
            is_ledger = line.startswith(b" ")
            parsed = self._parsed[is_ledger]
            row = parsed.get(match[1])
            if row is not None:
                return row
            row = tuple(map(int, match[1].split(b", ")))
            if self._is_row[is_ledger](row, self.metadata.learned.messages):
                parsed[match[1]] = row
                return row
        text = line[:80].decode("utf-8", "replace")
        raise self.damaged(f"the line {text!r} is not a token and its counts")

    def _line_at(self, position: int, high: int) -> tuple[int, bytes]:
        """Return the first line that begins after `position`, and where it begins."""
        size = _PROBE
        while True:
            chunk = self.read(position, min(size, self._size - position))
            start = chunk.find(b"\n") + 1
            if start and position + start >= high:
                return high, b""
            end = chunk.find(b"\n", start) if start else -1
            if end >= 0:
                return position + start, chunk[start:end]
            if position + size >= self._size:
                return high, b""
            size *= 4
            if size > 4 * LINE_LIMIT:
                raise self.damaged("a line in it is too long")

    def _read_line(self, position: int) -> bytes:
        chunk = self.read(position, min(LINE_LIMIT, self._size - position))
        line, end, _ = chunk.partition(b"\n")
        if not end:
            raise self.damaged("a line in it is too long")
        return line

    def read(self, position: int, length: int) -> bytes:
        """Return bytes of the file; raises ModelError."""
        try:
            chunk = os.pread(self._handle, length, position)
        except OSError as error:
            raise ModelError(
                f"{self._path}: the model cannot be read ({error.strerror}); check the disk"
            ) from error
        if len(chunk) < length:
            raise ModelError(
                f"{self._path}: the model shrank while it was read; run it again, and write"
                " models with nbspam only"
            )
        return chunk

    def _read_metadata(self, load: Callable[[Any], Metadata]) -> int:
        """Read the metadata; return where the lines of the tokens begin."""
        text, end = self._metadata_lines()
        try:
            # With what comes after them, whose keys are none of theirs.
            fields = json.loads(
                text[:end] + b'\n"tokens": 0, "learned": 0}', object_pairs_hook=_without_duplicates
            )
            self.metadata, self.derived = load(fields), fields.get("derived")
        except MetadataError as error:
            raise ModelError(f"{self._path}: {error}") from None
        except _DuplicateError as error:
            raise self.damaged(f"duplicate key {error}") from None
        except (ValueError, RecursionError):
            raise self.damaged("its first lines are not JSON") from None
        if self.read(max(0, self._size - len(END)), min(len(END), self._size)) != END:
            raise self.damaged("it is truncated")
        return end + 1 + len(TOKENS_LINE)

    def _metadata_lines(self) -> tuple[bytes, int]:
        """Return the beginning of the file, and where in it the metadata end."""
        text = self.read(0, min(_METADATA_CHUNK, self._size))
        if not text.startswith(b'{"format": "%s"' % FORMAT.encode()):
            if text.lstrip()[:1] == b"{" and f'"{FORMAT}"'.encode() in text:
                raise self.damaged("it was reformatted by another program")
            raise ModelError(
                f"{self._path}: is not an nbspam model; name a file that nbspam train wrote"
            )
        while (end := text.find(b"\n" + TOKENS_LINE)) < 0:
            if len(text) >= min(self._size, _METADATA_LIMIT):
                raise self.damaged("it is truncated")
            text = self.read(0, min(4 * len(text), self._size))
        return text, end

    def damaged(self, how: str) -> ModelError:
        """Return the error of a damaged model."""
        return ModelError(
            f"{self._path}: the model is damaged: {how}; restore it from a copy or train again"
        )


class RowTexts(dict[Row, str]):
    """What follows a key, by its counts; few differ, and each is formatted once."""

    def __missing__(self, row: Row) -> str:
        text = self[row] = f": [{', '.join(map(str, row))}]"
        return text


def read_model(path: "str | Path", load: Callable[[Any], Metadata] = load_metadata) -> Model:
    """Return the model in a file, every line of it validated; load: as `Lookup` takes it.

    Raises ModelError: no such file, not a model, damaged, newer than this program.
    """
    with Lookup(path, load=load) as lookup:
        return lookup.model()


_TOLERANCE = 1e-9  # of the bias, in nats or relative: logarithms differ between machines


def disagreements(path: "str | Path") -> tuple[Model, list[str]]:
    """Read a whole model; return it with clauses that say which of its numbers contradict others.

    Raises ModelError when it is not a model, or a line is not as nbspam writes it.
    """
    with Lookup(path) as lookup:
        model, stated = lookup.model(), lookup.derived
    true = derived_fields(with_counts(model.metadata, model.counts))
    wrong = []
    if stated["tokens"] != true["tokens"]:
        wrong.append(f"it states {stated['tokens']} tokens and has {true['tokens']}")
    if stated["count_histograms"] != true["count_histograms"]:
        wrong.append("its count histograms are not those of its tokens")
    if stated["hosts"] != true["hosts"]:
        wrong.append("its counts of hosts are not those of its tokens")
    if not all(
        a is b
        or (None not in (a, b) and math.isclose(a, b, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE))
        for a, b in zip(true["bias"], stated["bias"], strict=True)
    ):
        wrong.append("its bias does not follow from its counts")
    settings, learned = model.metadata
    times = map(sum, zip(*model.learned.values(), strict=True))  # it may name fewer than learned
    wrong += [
        f"its ledger has {named} messages of {name} and it learned {n}"
        for name, n, named in zip(settings.classes, learned.messages, times, strict=False)
        if named > n
    ]
    return model, wrong
