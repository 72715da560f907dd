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
blank, and no other line does: the lines of the file have one order (`rank`).  So the tokens of one
message are found by bisection with positioned reads: a few kilobytes of a model of any size, and no
table of offsets that an editor could invalidate.  The places of lines that were met are cached, so
later messages take fewer reads.  A memory map would be no faster, counts the pages it touches as
resident, and kills the process when the file shrinks; a read only returns fewer bytes.

Only what is read is validated (`nbspam model check` validates the whole file).
"""

import functools
import itertools
import json
import os
import re
import stat
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from nbspam.bayes.event_model import Row
from nbspam.errors import ModelError, Remedy
from nbspam.names import is_url
from nbspam.store import metadata
from nbspam.store.metadata import Metadata, MetadataError

TOKENS_LINE = b'"tokens": {\n'
LEARNED_LINE = b'},"learned": {\n'
END = b"}}\n"
_METADATA_CHUNK = 1 << 16
# Bytes.  A crafted model with 16 MB of metadata took a second and 400 MB of memory.
_METADATA_LIMIT = 4 << 20
# Spans of the file up to this length are read whole.  Measured on 1,000,000 tokens (25 MB) and a
# mail of 250: 4 KiB 4.4 ms, 8 KiB 4.1 ms, 16 KiB 4.6 ms.
BLOCK = 8 << 10
FINE = 1 << 10  # the same for many messages, and for changes
MARKS = 1 << 14  # places in the cache, about, 1.5 MB, of a model of less than 128 MB
PROBE = 256
COPIED = 1 << 16  # bytes copied at a time
_COUNT = rb"(?:0|[1-9]\d{0,15})"  # as JSON writes it
FileName = str | os.PathLike[str]  # importing pathlib takes 3 ms
LINE_LIMIT = 1 << 13  # bytes; the tokenizer's longest token is much shorter

token_key: Callable[[str], str] = encode_basestring  # a token as its line begins, in quotes


class Model(NamedTuple):
    """A model, whole."""

    metadata: Metadata
    counts: dict[str, Row]  # token -> its counts per class: messages, or how often it occurs
    learned: dict[str, Row]  # digest of a message -> how often it was learned, per class


def open_model_file(path: FileName, follows_links: bool = True) -> int:
    """Return a file descriptor of a model file, for reading; raises ModelError.

    follows_links: False refuses a path that is a link itself.
    """
    try:
        no_link = 0 if follows_links else os.O_NOFOLLOW
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | no_link)
    except FileNotFoundError:
        if is_url(path):
            what = f"{path}: is a URL, and a model is a file; download it, and name the copy"
            raise ModelError(what) from None
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


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object's pairs as a dict; raises MetadataError (for object_pairs_hook)."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        keys = sorted(key for key, _ in pairs)
        twice = next(a for a, b in itertools.pairwise(keys) if a == b)
        raise metadata.damage(f"duplicate key {metadata.shown(twice)}")
    return fields


_LEDGER = b"}-"  # between the line that begins the ledger and the one that ends the file


def rank(line: bytes) -> bytes:
    """Return the sort key of a line: tokens, then `},"learned": {`, the ledger, and `}}`."""
    key = line.rpartition(b": [")[0] or line
    return _LEDGER + key if key.startswith(b" ") else key


@functools.lru_cache(1 << 16)  # few counts differ
def row_text(row: Row) -> str:
    """Return the text after a line's key, of these counts."""
    return f": [{', '.join(map(str, row))}]"


@functools.lru_cache(maxsize=2)  # a command opens its model, and its base, several times: 1 ms
def _metadata_in(text: bytes) -> tuple[Metadata, Any]:
    """Return the metadata in a model's first lines, and the derived fields as the file has them.

    Raises MetadataError, ValueError, RecursionError.
    """
    # With what comes after them, whose keys are none of theirs.
    fields = json.loads(text + b'\n"tokens": 0, "learned": 0}', object_pairs_hook=_unique_keys)
    return metadata.load_metadata(fields), fields.get("derived")


class Lookup:
    """An open model file.  Close it, or use it as a context manager."""

    def __init__(self, path: FileName, handle: int | None = None) -> None:
        """Open the model and read its metadata; raises ModelError.

        handle: the file's descriptor, if it is open; `close` closes it, and `path` is for errors.
        """
        self._path = path
        self._handle = open_model_file(path) if handle is None else handle
        try:
            self._held = b""
            self._size = os.fstat(self._handle).st_size
            self.metadata: Metadata
            self.derived: Any  # of the metadata, as the file states it
            start = self._read_metadata()
        except BaseException:
            os.close(self._handle)
            raise
        self._block = BLOCK
        # The ranks of some lines, in order, and where they begin.
        self._marks = [b"", END], [start, self._size - len(END)]
        self._finest = max(FINE, min(BLOCK, self._size // MARKS))
        # Of the tokens and of the ledger: the counts met, of which few differ, and which are valid.
        rows: tuple[dict[bytes, Row], dict[bytes, Row]] = ({}, {})
        self._rows_of = (rows[0], self.metadata.settings.counts.is_row), (rows[1], metadata.is_row)
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
        """Return size and checksum, which identify the file's bytes on any machine.

        Numbers of devices and files differ between machines, and times between copies.
        """
        import zlib  # only for bulk

        total = 0
        for piece in self.whole():
            total = zlib.crc32(piece, total)
        return self._size, total

    def close(self) -> None:
        """Close the file; once more does nothing."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def prepare(self, most: int) -> None:
        """Cache the places of the tokens, for many messages; raises ModelError if not in order.

        most: a file of no more bytes is read into memory, and may then be overwritten.
        """
        if self._size <= most:
            self._held = b"".join(self.whole())
            self._block = self._finest
        end = self.sections[0][1]
        keys, starts = self._copied_marks()
        at = 1
        while starts[at - 1] < end:
            is_long = starts[at] - starts[at - 1] > self._block
            at += not (is_long and self._is_halved(keys, starts, at))
        self._marks = keys, starts

    def counts(self, tokens: Iterable[str]) -> dict[str, Row]:
        """Return the counts per class of the tokens that are in the model.

        Raises ModelError when a line that it reads is damaged.
        """
        return self._rows((token_key(token), token) for token in tokens)

    def learned(self, digests: Iterable[str]) -> dict[str, Row]:
        """Return how often each class has learned the messages that are in the ledger.

        Raises ModelError when a line that it reads is damaged.
        """
        return self._rows((f'}}- "{digest}"', digest) for digest in digests)

    def _rows(self, pairs: Iterable[tuple[str, str]]) -> dict[str, Row]:
        wanted = sorted((key.encode("utf-8", "replace"), name) for key, name in pairs)
        rows: dict[str, Row] = {}
        for low, high, first, last in self.stretches([key for key, _ in wanted], self._block):
            block = self.read(low - 1, high - low + 1)  # with the line end before it
            for key, name in wanted[first:last]:
                at = block.find(b"\n" + key.removeprefix(_LEDGER) + b": [")
                if at >= 0:
                    rows[name] = self.row(block[at + 1 : block.find(b"\n", at + 1)])
        self._block = max(self._block // 2, self._finest)
        return rows

    def lines(self, low: int, high: int) -> list[bytes]:
        """Return the lines of a span, without commas; raises ModelError if not in order."""
        text = self.read(low, high - low).removesuffix(b"\n").removesuffix(b",")
        lines = text.split(b",\n") if text else []
        if lines != sorted(set(lines)):  # as their keys are: none is the beginning of another
            raise self.damaged("its lines are not in order")
        return lines

    def beginning_with(self, prefix: str) -> Iterator[tuple[str, Row]]:
        """Yield the tokens that begin with a prefix, in order, and their counts.

        prefix: ends with a colon.  Raises ModelError when a line that it reads is damaged.
        """
        # In the order of the keys a colon's successor is a semicolon.
        first, last = (f'"{prefix[:-1]}{end}'.encode() for end in ":;")
        spans = list(self.stretches([first, last]))
        for part in self.parts(spans[0][0], spans[-1][1]):
            lines = (line.removesuffix(b",") for line in part.split(b"\n"))
            for _, name, row in self._entries(li for li in lines if first <= rank(li) < last):
                yield name, row

    @functools.cached_property
    def sections(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The first and last place of the tokens' lines, and of the ledger's."""
        ((low, high, *_),) = self.stretches([LEARNED_LINE])
        block = self.read(low - 1, high - low + 1)
        border = low + block.find(b"\n" + LEARNED_LINE)
        if border < low:
            is_there = b'"learned"' in block
            misplaced = "its ledger does not begin where its tokens end"
            raise self.damaged(misplaced if is_there else "it has no messages")
        ledger = border + len(LEARNED_LINE)
        keys, starts = self._copied_marks()
        at = bisect_left(keys, LEARNED_LINE)
        keys[at:at], starts[at:at] = (LEARNED_LINE, _LEDGER), (border, ledger)
        self._marks = keys, starts
        return (starts[0], border), (ledger, starts[-1])

    def _lines(self, ledger: bool) -> Iterator[bytes]:
        """Yield the lines of the ledger, or those of the tokens."""
        start, end = self.sections[ledger]
        for part in self.parts(start, end - 1):
            yield from part.split(b",\n")

    def remembered(self) -> int:
        """Return the number of messages in the ledger; lines are counted, not validated."""
        start, end = self.sections[1]
        return sum(part.count(b"\n") + 1 for part in self.parts(start, end - 1))

    def without_ledger_entry(self) -> list[int]:
        """Return how many learned messages of each class are not in the ledger."""
        left = list(self.metadata.learned.messages)
        for line in self._lines(ledger=True):
            left = [n - times for n, times in zip(left, self.row(line), strict=True)]
        return left

    def whole(self) -> Iterator[bytes]:
        """Yield the bytes of the file; raises ModelError."""
        for start in range(0, self._size, COPIED):
            yield self.read(start, min(COPIED, self._size - start))

    def model(self) -> Model:
        """Return the whole model, every line of it validated; raises ModelError."""
        sections: tuple[dict[str, Row], dict[str, Row]] = ({}, {})
        for ledger, rows in enumerate(sections):
            before = ""
            for key, name, row in self._entries(self._lines(bool(ledger))):
                if key == before:
                    raise self.damaged(f"duplicate key {metadata.shown(name)}")
                if key < before:  # by code points, which is by the bytes of UTF-8
                    raise self.damaged("its lines are not in order")
                rows[name], before = row, key
        return Model(self.metadata, *sections)

    def _entries(self, lines: Iterable[bytes]) -> Iterator[tuple[str, str, Row]]:
        """Yield key, name and counts of lines; raises ModelError unless nbspam writes them so."""
        for line in lines:
            row = self.row(line)
            key = line.rpartition(b": [")[0].decode("utf-8", "replace")
            is_ledger = key.startswith(" ")
            name = key[2:-1] if is_ledger else key[1:-1]
            if "\\" in name and not is_ledger:
                try:
                    name = str(json.loads(key))
                except ValueError:
                    name = ""  # which has another key
            key = f' "{name}"' if is_ledger else token_key(name)
            # JSON can spell half of a character, which no file can hold.
            is_same = (key + row_text(row)).encode("utf-8", "replace") == line
            if not is_same or (is_ledger and not metadata.is_digest(name)):
                raise self.damaged(f"the line {metadata.shown(line)} is not as nbspam writes it")
            yield key, name, row

    def parts(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the lines from start to end in large parts, without the separators between parts.

        end: of the last line, before its separator.  Raises ModelError.
        """
        while start < end:
            part = self.read(start, min(COPIED, end - start))
            if start + len(part) < end:
                part, separator, _ = part.rpartition(b",\n")
                if not separator:
                    raise self.damaged("a line in it is too long")
            yield part
            start += len(part) + 2

    def stretches(
        self, ranks: Sequence[bytes], block: int = FINE
    ) -> Iterator[tuple[int, int, int, int]]:
        """Yield spans of the file, each with the range of the sorted ranks that belong there.

        A span has whole lines, and is no longer than `block` unless one of its lines is.
        """
        keys, starts = self._copied_marks()
        first = at = 0
        while first < len(ranks):
            at = bisect_right(keys, ranks[first], at)
            while starts[at] - starts[at - 1] > block and self._is_halved(keys, starts, at):
                at += keys[at] <= ranks[first]
            last = bisect_left(ranks, keys[at], first)
            yield starts[at - 1], starts[at], first, last
            first = last
        self._marks = keys, starts

    def _copied_marks(self) -> tuple[list[bytes], list[int]]:
        keys, starts = self._marks
        return keys.copy(), starts.copy()  # threads may share them

    def _is_halved(self, keys: list[bytes], starts: list[int], at: int) -> bool:
        """Add a mark inside the span before mark `at`; False if its second half has no line."""
        high = starts[at]
        middle = (starts[at - 1] + high) // 2
        for size in (PROBE, 2 * LINE_LIMIT):
            before, _, after = self.read(middle, min(size, high - middle)).partition(b"\n")
            line, is_whole, _ = after.partition(b"\n")
            if is_whole or middle + size >= high:
                break
        if max(len(before), len(line)) > LINE_LIMIT:
            raise self.damaged("a line in it is too long")
        if not is_whole:
            return False
        if not line.startswith(b"}"):
            self.row(line)
        line_rank = rank(line)
        if not keys[at - 1] < line_rank < keys[at]:
            raise self.damaged("its lines are not in order")
        keys.insert(at, line_rank)
        starts.insert(at, middle + len(before) + 1)
        return True

    def row(self, line: bytes) -> Row:
        """Return the counts in a line of a token or of the ledger; raises ModelError."""
        if match := self._line.fullmatch(line):
            parsed, is_row = self._rows_of[line.startswith(b" ")]
            if row := parsed.get(match[1]):
                return row
            row = tuple(map(int, match[1].split(b", ")))
            if is_row(row, self.metadata.learned.messages):
                parsed[match[1]] = row
                return row
        text = line[:80].decode("utf-8", "replace")
        raise self.damaged(f"the line {text!r} is not a token and its counts")

    def read(self, position: int, length: int) -> bytes:
        """Return bytes of the file; raises ModelError."""
        if self._held:
            return self._held[position : position + length]
        try:
            chunk = os.pread(self._handle, length, position)
        except OSError as error:
            problem = f"the model cannot be read ({error.strerror}); check the disk"
            if self._handle < 0:
                problem = "the model was closed; open it again"
            raise ModelError(f"{self._path}: {problem}") from error
        if len(chunk) < length:
            raise ModelError(
                f"{self._path}: the model shrank while it was read; run it again, and write"
                " models with nbspam only"
            )
        return chunk

    def _read_metadata(self) -> int:
        """Read the metadata; return where the lines of the tokens begin."""
        text = self.read(0, min(_METADATA_CHUNK, self._size))
        if not text.startswith(b'{"format": "%s"' % metadata.FORMAT.encode()):
            if text.lstrip()[:1] == b"{" and f'"{metadata.FORMAT}"'.encode() in text:
                raise self.damaged("it was reformatted by another program")
            raise ModelError(
                f"{self._path}: is not an nbspam model; name a file that nbspam train wrote"
            )
        while (end := text.find(b"\n" + TOKENS_LINE)) < 0:
            if len(text) >= min(self._size, _METADATA_LIMIT):
                raise self.damaged("it is truncated")
            text = self.read(0, min(4 * len(text), self._size))
        try:
            self.metadata, self.derived = _metadata_in(text[:end])
        except MetadataError as error:
            raise ModelError(f"{self._path}: {error}") from None
        except (ValueError, RecursionError):
            raise self.damaged("its first lines are not JSON") from None
        if self.read(self._size - len(END), len(END)) != END:
            raise self.damaged("it is truncated")
        return end + 1 + len(TOKENS_LINE)

    def damaged(self, how: str) -> ModelError:
        """Return the error of a damaged model."""
        return ModelError(
            f"{self._path}: the model is damaged: {how}; restore it from a copy or train again"
        )


def read_model(path: FileName) -> Model:
    """Return the model in a file, every line of it validated.

    Raises ModelError: no such file, not a model, damaged, newer than this program.
    """
    with Lookup(path) as lookup:
        return lookup.model()


def checked_model(path: FileName) -> Model:
    """Return the model in a file; raises ModelError also if its numbers contradict each other."""
    model, wrong = disagreements(path)
    if wrong:
        raise ModelError(f"{path}: {'; '.join(wrong)}; restore it from a copy or train again")
    return model


_TOLERANCE = 2e-6  # of the bias, in nats, which has six decimals


def disagreements(path: FileName) -> tuple[Model, list[str]]:
    """Read a whole model; return it with clauses that say which of its numbers contradict others.

    Raises ModelError when it is not a model, or a line is not as nbspam writes it.
    """
    with Lookup(path) as lookup:
        model, stated = lookup.model(), lookup.derived
    true = metadata.derived_fields(metadata.with_counts(model.metadata, model.counts))
    clauses = {
        "tokens": f"it states {stated['tokens']} tokens and has {true['tokens']}",
        "count_histograms": "its count histograms are not those of its tokens",
        "hosts": "its counts of hosts are not those of its tokens",
    }
    wrong = [clause for key, clause in clauses.items() if stated[key] != true[key]]
    pairs = zip(true["bias"], stated["bias"], strict=True)
    if not all(a is b or (None not in (a, b) and abs(a - b) < _TOLERANCE) for a, b in pairs):
        wrong.append("its bias does not follow from its counts")
    settings, learned = model.metadata
    times = map(sum, zip(*model.learned.values(), strict=True))  # it may name fewer than learned
    wrong += [
        f"its ledger has {n_named} messages of {name} and it learned {n}"
        for name, n, n_named in zip(settings.classes, learned.messages, times, strict=False)
        if n_named > n
    ]
    return model, wrong
