"""A model file line by line: counts are looked up where they lie, and some lines changed.

The file is sorted by key, one token per line, so the tokens of one message are found by bisection
with positioned reads: a few kilobytes of a model of any size.  The probes are shared: a stretch of
the file is halved once for all tokens in it.  A memory map would be no faster, counts the pages it
touches as resident, and kills the process when the file shrinks; a read only returns fewer bytes.

What is read is validated; the rest of the file is not (`nbspam model check` validates all of it).

What an update does not change is copied without being parsed: a message is learned into a model of
a million tokens at about the speed of copying the file.
"""

import itertools
import json
import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING

from nbspam.bayes.event_model import Row
from nbspam.errors import ModelError
from nbspam.store.metadata import Metadata
from nbspam.store.metadata_json import FORMAT, MetadataError, dump_metadata, load_metadata
from nbspam.store.model_file import (
    END,
    LEARNED_LINE,
    TOKENS_LINE,
    DuplicateError,
    is_ledger_row,
    learned_line,
    open_model_file,
    token_key,
    without_duplicates,
)

if TYPE_CHECKING:
    from pathlib import Path


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


def _side(line: bytes, ledger: bool) -> int:
    """Return -1, 0 or 1 for a line before the section looked at, in it or after it."""
    if line.startswith(b'"'):
        return -1 if ledger else 0
    if line.startswith(b" "):
        return 0 if ledger else 1
    return -1 if ledger and line.startswith(LEARNED_LINE[:2]) else 1


def _key(line: bytes) -> bytes:
    return line.rpartition(b": [")[0]


class Lookup:
    """An open model file.  Close it, or use it as a context manager."""

    def __init__(self, path: "str | Path", handle: int | None = None) -> None:
        """Open the model and read its metadata; raises ModelError.

        handle: a descriptor of the file if it is open already, which `close` will close; the path
        is its name in errors.
        """
        self._path = path
        self._handle = open_model_file(path) if handle is None else handle
        try:
            self._ahead = 0, b""  # where the bytes begin that `copy` read last, and the bytes
            # Few counts differ: of the tokens, and of the ledger.
            self._parsed: tuple[dict[bytes, Row], dict[bytes, Row]] = ({}, {})
            self._size = os.fstat(self._handle).st_size
            self.metadata: Metadata
            self.metadata, self._start = self._read_metadata()
        except BaseException:
            os.close(self._handle)
            raise
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
        rest = b""
        for part in self.copy(start, stop):
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                yield json.loads(_key(line)), self.row(line)

    def border(self) -> int:
        """Return where in the file the line stands that ends the tokens and begins the ledger."""
        last = b'"\xff": ['  # no UTF-8 holds such a byte
        return self.places([last], ledger=False)[0][0]

    @property
    def sections(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Where in the file the lines of the tokens begin and end, and those of the ledger."""
        border = self.border()
        if self.read(border, len(LEARNED_LINE)) != LEARNED_LINE:
            raise self.damaged("its ledger does not begin where its tokens end")
        return (self._start, border), (border + len(LEARNED_LINE), self._size - len(END))

    def remembered(self) -> int:
        """Return how many messages the ledger names: its lines are counted, not validated."""
        start, end = self.sections[1]
        return sum(part.count(b"\n") for part in self.copy(start, end))

    def unnamed(self) -> list[int]:
        """Return how many messages of each class were learned that the ledger does not name."""
        start, end = self.sections[1]
        left = list(self.metadata.learned.messages)
        rest = b""
        for part in self.copy(start, end):
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                left = [n - times for n, times in zip(left, self.row(line), strict=True)]
        return left

    def whole(self) -> bytes:
        """Return the whole file; raises ModelError."""
        return b"".join(self.copy(0, self._size))

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
            is_row = is_ledger_row if is_ledger else self.metadata.settings.counts.is_row
            if is_row(row, self.metadata.learned.messages):
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
                f"{self._path}: the model became shorter while it was read; run it again, and write"
                " models with nbspam only"
            )
        return chunk

    def _read_metadata(self) -> tuple[Metadata, int]:
        """Return the metadata, and where the lines of the tokens begin."""
        text, end = self._metadata_lines()
        try:
            fields = json.loads(
                text[:end].rstrip(b",") + b"}", object_pairs_hook=without_duplicates
            )
            loaded = load_metadata(fields)
        except MetadataError as error:
            raise ModelError(f"{self._path}: {error}") from None
        except DuplicateError as error:
            raise self.damaged(f"duplicate key {error}") from None
        except (ValueError, RecursionError):
            raise self.damaged("its first lines are not JSON") from None
        if self.read(max(0, self._size - len(END)), min(len(END), self._size)) != END:
            raise self.damaged("it is cut short")
        return loaded, end + 1 + len(TOKENS_LINE)

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
                raise self.damaged("it is cut short")
            text = self.read(0, min(4 * len(text), self._size))
        return text, end

    def damaged(self, how: str) -> ModelError:
        """Return the error of a damaged model."""
        return ModelError(
            f"{self._path}: the model is damaged: {how}; restore it from a copy or train again"
        )


_TOGETHER = 1 << 20  # bytes; each write by itself would be slower where most lines change


def splice(
    file: IO[bytes],
    old: Lookup,
    metadata: Metadata,
    counts: Mapping[str, Row],
    learned: Mapping[str, Row],
) -> None:
    """Write a model: the old one's lines, but with this metadata and these rows.

    counts, learned: the rows that are new or have changed; a row of zeros removes its line.
    Raises ModelError when a line of the old model that must be read is damaged.
    """
    tokens, ledger = old.sections
    file.write(dump_metadata(metadata).encode())
    file.write(TOKENS_LINE)
    shown = {row: f": [{', '.join(map(str, row))}]" for row in set(counts.values())}  # few differ
    changed = {(token_key(token) + shown[row]).encode(): any(row) for token, row in counts.items()}
    _copy(file, old, *tokens, changed, ledger=False)
    file.write(LEARNED_LINE)
    changed = {learned_line(digest, row).encode(): any(row) for digest, row in learned.items()}
    _copy(file, old, *ledger, changed, ledger=True)
    file.write(END)


def _copy(
    file: IO[bytes], old: Lookup, start: int, end: int, changed: dict[bytes, bool], ledger: bool
) -> None:
    """Write the lines from start to end of the old file, with the changed lines in place."""
    lines = sorted(changed)
    places = old.places(lines, ledger)
    separator = b""
    pieces: list[bytes] = []
    size = 0
    for line, (below, above) in itertools.chain(
        zip(lines, places, strict=True), [(b"", (end, end))]
    ):
        if start < below:
            pieces.append(separator)
            for part in old.copy(start, below - (1 if below == end else 2)):  # all but ",\n"
                pieces.append(part)
                size += len(part)
                if size > _TOGETHER:
                    file.write(b"".join(pieces))
                    pieces.clear()
                    size = 0
            separator = b",\n"
        if line and changed[line]:
            pieces += separator, line
            size += len(line)
            separator = b",\n"
        start = above
    file.write(b"".join(pieces))
    if separator:
        file.write(b"\n")
