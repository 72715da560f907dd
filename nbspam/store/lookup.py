"""Look-up of counts in a model file, which is read line by line.

The file is one JSON object with a fixed layout, so that it needs no index: the metadata, one key
per line; then the tokens, one per line, sorted by the bytes of their JSON-escaped keys; then the
ledger:

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

After the metadata, every token's line starts with a quote, every line of the ledger with a blank,
and no other line does.  So all lines have one order (`sort_key`), and the tokens of a message are
found by bisection with positioned reads: a few kilobytes of a model of any size, and no table of
offsets that an editor could invalidate.  The positions of known lines are cached, so later messages
take fewer reads.  A memory map would be no faster, its pages would count as resident, and it would
kill the process if the file shrinks; a read only returns fewer bytes.

Only the lines that are read are validated; `nbspam model check` validates the whole file.
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
from nbspam.tokens.tokenized import TOKENIZER_VERSION

TOKENS_LINE = b'"tokens": {\n'
LEARNED_LINE = b'},"learned": {\n'
END = b"}}\n"
_METADATA_CHUNK = 1 << 16
# Bytes.  A crafted model with 16 MB of metadata took a second and 400 MB of memory.
_METADATA_LIMIT = 4 << 20
# Spans of the file up to this number of bytes are read whole.  Measured with 1,000,000 tokens (25
# MB) and a mail of 250 tokens: 4 KiB 4.4 ms, 8 KiB 4.1 ms, 16 KiB 4.6 ms.
BLOCK = 8 << 10
MIN_BLOCK = 1 << 10  # bytes, for many messages and for changes
MAX_ANCHORS = 1 << 14  # approximate; 1.5 MB of memory, for a model of less than 128 MB
PROBE = 256
COPY_CHUNK = 1 << 16  # bytes
_COUNT = rb"(?:0|[1-9]\d{0,15})"  # in the format of JSON
FileName = str | os.PathLike[str]  # importing pathlib takes 3 ms
LINE_LIMIT = 1 << 13  # bytes; the tokenizer's longest token is much shorter

token_key: Callable[[str], str] = encode_basestring  # the quoted token, the start of its line


class Model(NamedTuple):
    """A whole model."""

    metadata: Metadata
    counts: dict[str, Row]  # token -> messages, or occurrences, per class
    learned: dict[str, Row]  # digest of a message -> times learned, per class


def open_model_file(path: FileName, follow_links: bool = True) -> int:
    """Open a model file for reading, and return its descriptor; raises ModelError.

    follow_links: False refuses a path that is a link itself.
    """
    try:
        no_link = 0 if follow_links else os.O_NOFOLLOW
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | no_link)
    except FileNotFoundError:
        if is_url(path):
            problem = f"{path}: is a URL, and a model is a file; download it, and name the copy"
            raise ModelError(problem) from None
        raise ModelError(f"{path}: model not found", Remedy.CREATE_MODEL, path=path) from None
    except PermissionError as error:
        from nbspam.store.writing import unreadable_error

        raise unreadable_error(path) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(
            f"{path}: the model cannot be read ({reason}); restore it, or name another"
        ) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ModelError(f"{path}: is not a file; name a file that nbspam train wrote")
    return handle


_LEDGER = b"}-"  # sorts between the lines `},"learned": {` and `}}`


def sort_key(line: bytes) -> bytes:
    """Return a line's sort key; the order is tokens, `},"learned": {`, the ledger, `}}`."""
    key = line.rpartition(b": [")[0] or line
    return _LEDGER + key if key.startswith(b" ") else key


@functools.lru_cache(1 << 16)  # many lines have the same counts
def row_text(row: Row) -> str:
    """Return the text of a line after its key."""
    return f": [{', '.join(map(str, row))}]"


@functools.lru_cache(maxsize=2)  # saves 1 ms for each time that a command reopens a model or base
def _metadata_in(text: bytes) -> tuple[Metadata, Any]:
    """Parse a model's first lines; return the metadata, and the file's derived fields.

    Raises MetadataError, ValueError, RecursionError.
    """
    # With this end in place of all other lines, the text is a whole JSON object.
    fields = json.loads(text + b'\n"tokens": 0, "learned": 0}')
    return metadata.load_metadata(fields), fields.get("derived")


class Lookup:
    """An open model file, closed by `close` or when nothing refers to it."""

    _handle = -1  # until it is open

    def __init__(self, path: FileName, handle: int | None = None) -> None:
        """Open the model and read its metadata; raises ModelError.

        handle: the descriptor of an open file, which `close` will close; then path is only for
        errors.
        """
        self._path = path
        self._handle = open_model_file(path) if handle is None else handle
        self._content = b""
        self._size = os.fstat(self._handle).st_size
        self.metadata: Metadata
        self.derived: Any  # the file's derived fields
        start = self._first_token = self._read_metadata()
        self._block = BLOCK
        # The sort keys of some lines, in order, and their positions.
        self._anchors = [b"", END], [start, self._size - len(END)]
        self._min_block = max(MIN_BLOCK, min(BLOCK, self._size // MAX_ANCHORS))
        # For tokens and ledger: a cache of parsed counts, because many lines have the same counts,
        # and a validator.
        rows: tuple[dict[bytes, Row], dict[bytes, Row]] = ({}, {})
        self._rows_of = (
            (rows[0], self.metadata.settings.counts.is_valid_row),
            (rows[1], metadata.is_valid_row),
        )
        width = len(self.metadata.settings.classes)
        self._line = re.compile(
            rb' ?"(?:[^"\\\n]|\\.)*": \[(%b(?:, %b){%d})\],?' % (_COUNT, _COUNT, width - 1)
        )

    def __enter__(self) -> "Lookup":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def fileno(self) -> int:
        """Return the file's descriptor."""
        return self._handle

    def identity(self) -> tuple[int, ...]:
        """Return size and checksum, which identify the file's bytes on any machine.

        Device and inode numbers differ between machines, and times between copies.
        """
        import zlib  # not needed for one message

        total = 0
        for piece in self.iter_bytes():
            total = zlib.crc32(piece, total)
        return self._size, total

    def close(self) -> None:
        """Close the file, if it is open."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def prepare(self, max_bytes: int) -> None:
        """Cache the tokens' positions for many messages; raises ModelError if tokens are unsorted.

        max_bytes: a file up to this size is read into memory, and may then be overwritten.
        """
        if self._size <= max_bytes:
            self._content = b"".join(self.iter_bytes())
            self._block = self._min_block
        end = self.sections[0][1]
        keys, starts = self._copied_anchors()
        at = 1
        while starts[at - 1] < end:
            is_long = starts[at] - starts[at - 1] > self._block
            at += not (is_long and self._split_span(keys, starts, at))
        self._anchors = keys, starts

    def counts(self, tokens: Iterable[str]) -> dict[str, Row]:
        """Return the counts per class of the tokens that are in the model.

        Raises ModelError if a line that it reads is damaged.
        """
        return self._rows((token_key(token), token) for token in tokens)

    def ledger_rows(self, digests: Iterable[str]) -> dict[str, Row]:
        """Return how often each class has learned each of these messages, by the ledger.

        Raises ModelError if a line that it reads is damaged.
        """
        return self._rows((f'}}- "{digest}"', digest) for digest in digests)

    def _rows(self, pairs: Iterable[tuple[str, str]]) -> dict[str, Row]:
        wanted = sorted((key.encode("utf-8", "replace"), name) for key, name in pairs)
        rows: dict[str, Row] = {}
        for low, high, first, last in self.iter_spans([key for key, _ in wanted], self._block):
            block = self.read(low - 1, high - low + 1)  # includes the line end before it
            for key, name in wanted[first:last]:
                at = block.find(b"\n" + key.removeprefix(_LEDGER) + b": [")
                if at >= 0:
                    rows[name] = self.row(block[at + 1 : block.find(b"\n", at + 1)])
        self._block = max(self._block // 2, self._min_block)
        return rows

    def lines(self, low: int, high: int) -> list[bytes]:
        """Return a span's lines without commas; raises ModelError if they are not in order."""
        text = self.read(low, high - low).removesuffix(b"\n").removesuffix(b",")
        lines = text.split(b",\n") if text else []
        # lines sort like their keys, because no key starts with another key
        if lines != sorted(set(lines)):
            raise self.damage_error("its lines are not in order")
        return lines

    def iter_prefix(self, prefix: str) -> Iterator[tuple[str, Row]]:
        """Yield the tokens with a prefix, in order, and their counts.

        prefix: ends with a colon.  Raises ModelError if a line that it reads is damaged.
        """
        # Keys that start with the prefix sort below the prefix with its colon replaced by a
        # semicolon.
        first, last = (f'"{prefix[:-1]}{end}'.encode() for end in ":;")
        spans = list(self.iter_spans([first, last]))
        for part in self.parts(spans[0][0], spans[-1][1]):
            lines = (line.removesuffix(b",") for line in part.split(b"\n"))
            for _, name, row in self._entries(li for li in lines if first <= sort_key(li) < last):
                yield name, row

    @functools.cached_property
    def sections(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The start and end of the tokens' lines, and of the ledger's lines."""
        ((low, high, *_),) = self.iter_spans([LEARNED_LINE])
        block = self.read(low - 1, high - low + 1)
        border = low + block.find(b"\n" + LEARNED_LINE)
        if border < low:
            is_there = b'"learned"' in block
            misplaced = "its ledger does not begin where its tokens end"
            raise self.damage_error(misplaced if is_there else "it has no messages")
        ledger = border + len(LEARNED_LINE)
        keys, starts = self._copied_anchors()
        at = bisect_left(keys, LEARNED_LINE)
        keys[at:at], starts[at:at] = (LEARNED_LINE, _LEDGER), (border, ledger)
        self._anchors = keys, starts
        return (starts[0], border), (ledger, starts[-1])

    def _lines(self, ledger: bool) -> Iterator[bytes]:
        """Yield the lines of the ledger, or of the tokens."""
        start, end = self.sections[ledger]
        for part in self.parts(start, end - 1):
            yield from part.split(b",\n")

    def ledger_size(self) -> int:
        """Count the messages in the ledger, without validating its lines."""
        start, end = self.sections[1]
        return sum(part.count(b"\n") + 1 for part in self.parts(start, end - 1))

    def without_ledger_entry(self) -> list[int]:
        """Return the number of learned messages of each class that are not in the ledger."""
        left = list(self.metadata.learned.messages)
        for line in self._lines(ledger=True):
            left = [n - times for n, times in zip(left, self.row(line), strict=True)]
        return left

    def iter_bytes(self) -> Iterator[bytes]:
        """Yield the file's bytes in chunks; raises ModelError."""
        for start in range(0, self._size, COPY_CHUNK):
            yield self.read(start, min(COPY_CHUNK, self._size - start))

    def model(self) -> Model:
        """Read the whole model; raises ModelError unless every line is as nbspam writes it."""
        if self.metadata.settings.rules == TOKENIZER_VERSION:  # an older model lacks some keys
            written = metadata.dump_metadata(self.metadata).encode().splitlines()
            found = self.read(0, self._first_token).splitlines()
            for line, ours in itertools.zip_longest(found[:-1], written, fillvalue=b""):
                # `find_inconsistencies` compares the derived numbers.
                if line != ours and not (line[:10] == ours[:10] == b'"derived":'):
                    raise self._odd_line_error(line or ours)
        sections: tuple[dict[str, Row], dict[str, Row]] = ({}, {})
        for ledger, rows in enumerate(sections):
            before = ""
            for key, name, row in self._entries(self._lines(bool(ledger))):
                if key == before:
                    raise self.damage_error(f"duplicate key {metadata.quoted_value(name)}")
                if key < before:  # the order of code points is the order of UTF-8's bytes
                    raise self.damage_error("its lines are not in order")
                rows[name], before = row, key
        return Model(self.metadata, *sections)

    def _entries(self, lines: Iterable[bytes]) -> Iterator[tuple[str, str, Row]]:
        """Parse lines into key, name and counts; raises ModelError for a line in another format."""
        for line in lines:
            row = self.row(line)
            key = line.rpartition(b": [")[0].decode("utf-8", "replace")
            is_ledger = key.startswith(" ")
            name = key[2:-1] if is_ledger else key[1:-1]
            if "\\" in name and not is_ledger:
                try:
                    name = str(json.loads(key))
                except ValueError:
                    name = ""  # this name fails the comparison below
            key = f' "{name}"' if is_ledger else token_key(name)
            # JSON can escape half of a surrogate pair, which UTF-8 cannot encode.
            is_same = (key + row_text(row)).encode("utf-8", "replace") == line
            if not is_same or (is_ledger and not metadata.is_digest(name)):
                raise self._odd_line_error(line)
            yield key, name, row

    def _odd_line_error(self, line: bytes) -> ModelError:
        text = metadata.quoted_value(line.decode("utf-8", "replace"))
        return self.damage_error(f"the line {text} is not as nbspam writes it")

    def parts(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the lines from start to end in large parts, without separators between parts.

        end: the end of the last line, before its separator.  Raises ModelError.
        """
        while start < end:
            part = self.read(start, min(COPY_CHUNK, end - start))
            if start + len(part) < end:
                part, separator, _ = part.rpartition(b",\n")
                if not separator:
                    raise self.damage_error("a line in it is too long")
            yield part
            start += len(part) + 2

    def iter_spans(
        self, wanted: Sequence[bytes], block: int = MIN_BLOCK
    ) -> Iterator[tuple[int, int, int, int]]:
        """Yield the spans of the file that may contain lines with these sort keys.

        Yields (start, end, first, last): the span's bytes in the file, and its keys
        wanted[first:last].  wanted is sorted.  A span has whole lines, and at most `block` bytes
        unless one line is longer.
        """
        keys, starts = self._copied_anchors()
        first = i = 0
        while first < len(wanted):
            i = bisect_right(keys, wanted[first], i)
            while starts[i] - starts[i - 1] > block and self._split_span(keys, starts, i):
                i += keys[i] <= wanted[first]
            last = bisect_left(wanted, keys[i], first)
            yield starts[i - 1], starts[i], first, last
            first = last
        self._anchors = keys, starts

    def _copied_anchors(self) -> tuple[list[bytes], list[int]]:
        keys, starts = self._anchors
        return keys.copy(), starts.copy()  # threads may share them

    def _split_span(self, keys: list[bytes], starts: list[int], i: int) -> bool:
        """Add an anchor inside the span before anchor i; False if that is impossible."""
        high = starts[i]
        middle = (starts[i - 1] + high) // 2
        for size in (PROBE, 2 * LINE_LIMIT):
            before, _, after = self.read(middle, min(size, high - middle)).partition(b"\n")
            line, is_whole, _ = after.partition(b"\n")
            if is_whole or middle + size >= high:
                break
        if max(len(before), len(line)) > LINE_LIMIT:
            raise self.damage_error("a line in it is too long")
        if not is_whole:
            return False
        if not line.startswith(b"}"):
            self.row(line)
        key = sort_key(line)
        if not keys[i - 1] < key < keys[i]:
            raise self.damage_error("its lines are not in order")
        keys.insert(i, key)
        starts.insert(i, middle + len(before) + 1)
        return True

    def row(self, line: bytes) -> Row:
        """Parse the counts in a line of a token or the ledger; raises ModelError."""
        if match := self._line.fullmatch(line):
            parsed, is_valid_row = self._rows_of[line.startswith(b" ")]
            if row := parsed.get(match[1]):
                return row
            row = tuple(map(int, match[1].split(b", ")))
            if is_valid_row(row, self.metadata.learned.messages):
                parsed[match[1]] = row
                return row
        text = line[:80].decode("utf-8", "replace")
        raise self.damage_error(f"the line {text!r} is not a token and its counts")

    def read(self, position: int, length: int) -> bytes:
        """Read bytes of the file; raises ModelError."""
        if self._content:
            return self._content[position : position + length]
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
        """Read the metadata; return the position of the first token's line."""
        text = self.read(0, min(_METADATA_CHUNK, self._size))
        if not text.startswith(b'{"format": "%s"' % metadata.FORMAT.encode()):
            if f'"{metadata.FORMAT}"'.encode() in text.replace(b"\0", b""):  # UTF-16 has NULs
                raise self.damage_error(
                    "its first line is not as nbspam wrote it, so another program (an editor, jq)"
                    " has changed the file"
                )
            raise ModelError(
                f"{self._path}: is not an nbspam model; name a file that nbspam train wrote"
            )
        while (end := text.find(b"\n" + TOKENS_LINE)) < 0:
            if len(text) >= min(self._size, _METADATA_LIMIT):
                if b"\r\n" in text:
                    raise self.damage_error(
                        "another program, such as an editor or git, gave it CRLF"
                    )
                is_long = len(text) >= _METADATA_LIMIT
                raise self.damage_error(
                    "its first lines are too long" if is_long else "it is truncated"
                )
            text = self.read(0, min(4 * len(text), self._size))
        try:
            self.metadata, self.derived = _metadata_in(text[:end])
        except MetadataError as error:
            raise ModelError(f"{self._path}: {error}") from None
        except (ValueError, RecursionError):
            raise self.damage_error("its first lines are not JSON") from None
        last = self.read(max(0, self._size - PROBE), min(PROBE, self._size))
        if not last.endswith(b"\n" + END):
            is_whole = last.rstrip().endswith(b"\n}}")
            changed = "its end is not as nbspam wrote it, so another program has changed the file"
            raise self.damage_error(changed if is_whole else "it is truncated")
        return end + 1 + len(TOKENS_LINE)

    def damage_error(self, problem: str) -> ModelError:
        """Return the error for a damaged model."""
        return ModelError(
            f"{self._path}: the model is damaged: {problem}; restore it from a copy or train again"
        )


def read_model(path: FileName) -> Model:
    """Read the whole model in a file, and validate every line.

    Raises ModelError: the file is missing, not a model, damaged, or newer than this program.
    """
    with Lookup(path) as lookup:
        return lookup.model()


def checked_model(path: FileName) -> Model:
    """Read the model in a file; raises ModelError, also if its numbers contradict each other."""
    model, wrong = find_inconsistencies(path)
    if wrong:
        raise ModelError(f"{path}: {'; '.join(wrong)}; restore it from a copy or train again")
    return model


_BIAS_TOLERANCE = 2e-6  # nats; the bias has six decimals


def find_inconsistencies(path: FileName) -> tuple[Model, list[str]]:
    """Read a whole model; return it with a clause for each contradiction of its numbers.

    Raises ModelError if it is not a model, or a line is not as nbspam writes it.
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
    if not all(a is b or (None not in (a, b) and abs(a - b) < _BIAS_TOLERANCE) for a, b in pairs):
        wrong.append("its bias does not follow from its counts")
    settings, learned = model.metadata
    # a ledger may have fewer messages than the model has learned
    times = map(sum, zip(*model.learned.values(), strict=True))
    wrong += [
        f"its ledger has {n_named} messages of {name} and it learned {n}"
        for name, n, n_named in zip(settings.classes, learned.messages, times, strict=False)
        if n_named > n
    ]
    return model, wrong
