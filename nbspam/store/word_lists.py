"""A model's counts as other programs have them: bogofilter's word list as text, and CSV.

bogofilter's, as `bogoutil -d` writes it and `bogoutil -l` reads it, has on each line a word, how
many spam and how many ham messages contain it, and the day it was last seen: what Bernoulli naive
Bayes counts.  `.MSG_COUNT` has the number of messages; other words that begin with a dot are
ignored.

    .MSG_COUNT 948 2075 20260105
    subj:Cheap 31 2 20260105
    meeting*tomorrow 0 17 20260103

Words become tokens by the rules that the tokenizer applies to a message (docs/model-file.md has the
table).  bogofilter's words contain no colon but that of their prefix, so tokens of our own kinds
keep their names in its list and are imported again exactly.

CSV, quoted as RFC 4180 says, is for spreadsheets and other programs.  Tokens stand as they are in
the model, so what is exported and imported again is the same.

    token,ham,spam
    (messages),2075,948
    free,12,340
"""

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO, NamedTuple

from nbspam.bayes.event_model import Row
from nbspam.errors import OptionError, Remedy, SourceError
from nbspam.names import HAM, SPAM, normal_label
from nbspam.reading.source import Skips
from nbspam.store.lookup import Model
from nbspam.store.metadata import MESSAGES_LIMIT
from nbspam.store.model_file import TOKEN_LIMIT
from nbspam.tokens.headers import add_pieces, has_name_token
from nbspam.tokens.kinds import KINDS, OTHER_FIELD, RECEIVED, RETURN_PATH
from nbspam.tokens.text import add_host, undo_tricks, unspelled, words_of

_COUNT_LINE = b".MSG_COUNT"
_FIRST = "token"  # cell of a table's first line, before the classes
_MESSAGES = "(messages)"  # cell of the second line, before their messages
BEGINNINGS = (_COUNT_LINE, f"{_FIRST},".encode())  # of a text in these forms
_SPECIAL = re.compile('[,"\r\n]')
_LINE_LIMIT = 1 << 16  # bytes; the rest of a longer line is read as another line
_PREFIXES = ("subj", "from", "to", "rtrn", "rcvd", "head", "mime")
_CHANNEL = {"rcvd": RECEIVED, "rtrn": RETURN_PATH}
# bogofilter has prefixes of its own for these; tokens of every other kind keep their names.
_TRANSLATED = ("", "from", "to", "mime")
_OWN_KINDS = frozenset(kind.name for kind in KINDS) - set(_TRANSLATED)
_HOST = re.compile(r"(?:[a-z0-9-]+\.)+[a-z][a-z0-9-]*")
_FILE = re.compile(r"([\w-]+)(\.[a-z0-9]{1,8})")
# bogofilter splits a part's type in two; these second halves have but one first half.
_MEDIA_TYPES = {
    "html": "text/html",
    "plain": "text/plain",
    "octet-stream": "application/octet-stream",
    "pdf": "application/pdf",
    "zip": "application/zip",
    "msword": "application/msword",
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "png": "image/png",
    "rfc822": "message/rfc822",
}


class WordCounts(NamedTuple):
    """What another program has counted."""

    classes: tuple[str, ...]
    messages: Row
    counts: dict[str, Row]
    words: int = 0  # of bogofilter's list; 0 for a table
    foreign: int = 0  # of those, the words that have no token


def parse_counts(name: str, stream: BinaryIO, skips: Skips) -> WordCounts:
    """Return the counts in a file: bogofilter's word list as text, or CSV, as its first line shows.

    A line that is not of that form is skipped and named.  Raises SourceError when it is neither.
    """
    lines = iter(lambda: stream.readline(_LINE_LIMIT), b"")
    try:
        first = next(lines, b"").removeprefix(b"\xef\xbb\xbf")
        if b"\0" in first:
            raise SourceError(
                f"{name}: is a binary file; convert a bogofilter database with bogoutil -d"
            )
        every = itertools.chain([first], lines)
        if first.startswith(BEGINNINGS[1]):
            return _table(name, (line.decode() for line in every), skips)
        return _word_list(name, every, skips)
    except UnicodeDecodeError:
        raise SourceError(f"{name}: is not in UTF-8; convert it, for example with iconv") from None
    except OSError as error:
        raise SourceError(f"{name}: cannot be read ({error.strerror}); check it") from error


def _word_list(name: str, lines: Iterable[bytes], skips: Skips) -> WordCounts:
    """Return the counts in bogofilter's list; raises SourceError without a number of messages.

    The counts of a repeated word are added, as bogoutil does.  Of several words that become one
    token (FREE, Free, free) the highest count is taken, not the sum, which would assume that no
    message contains two of them: a list of 3,000 mails gave 38 errors of 3,023 by the sum, 33
    by the maximum and 29 as if they were independent; with pairs of words 33, 18 and 25.
    """
    messages: Row = (0, 0)
    words: dict[bytes, Row] = {}
    for number, line in enumerate(lines, 1):
        word, *cells = line.rstrip(b"\r\n").split(b" ")
        if not (word or cells):
            continue
        # The day is optional.
        row = _row(cells) if 2 <= len(cells) <= 3 and 0 < len(word) <= TOKEN_LIMIT else None
        if row is None:
            skips(f"{name}:{number}", "expected: WORD SPAM HAM [DATE]")
        elif word == _COUNT_LINE:
            messages = messages[0] + row[0], messages[1] + row[1]
        elif not word.startswith(b"."):
            before = words.get(word, (0, 0))
            words[word] = before[0] + row[0], before[1] + row[1]
    if not any(messages):
        raise SourceError(
            f"{name}: has no number of messages (.MSG_COUNT); write the word list with"
            " bogoutil -d wordlist.db"
        )
    foreign = 0
    counts: dict[str, Row] = {}
    for raw, (spam, ham) in words.items():
        try:
            tokens = tokens_of(raw.decode())
        except (
            UnicodeDecodeError
        ):  # a list of an older bogofilter, in the mails' own character sets
            tokens = tokens_of(raw.decode("cp1252", "replace"))
        foreign += not tokens
        for token in tokens:
            known = counts.get(token, (0, 0))
            counts[token] = max(known[0], ham), max(known[1], spam)
    return WordCounts((HAM, SPAM), messages[::-1], counts, len(words), foreign)


def _table(name: str, lines: Iterable[str], skips: Skips) -> WordCounts:
    """Return the table in the lines of a CSV file; invalid rows are skipped and named.

    Raises SourceError when the line of the classes or of their messages is invalid.
    """
    import csv  # a model is changed without

    reader = csv.reader(lines, strict=True)
    header = _cells(reader) or []
    classes = tuple(map(normal_label, header[1:]))
    if header[:1] != [_FIRST] or len(set(classes)) < max(2, len(classes)) or not all(classes):
        raise SourceError(
            f"{name}:1: expected {_FIRST!r} and the names of two or more classes", Remedy.SEE_CSV
        )
    second = _cells(reader) or []
    messages = _row(second[1:]) if len(second) == len(header) else None
    if second[:1] != [_MESSAGES] or messages is None:
        raise SourceError(
            f"{name}:2: expected {_MESSAGES!r} and the number of messages of each class",
            Remedy.SEE_CSV,
        )
    counts: dict[str, Row] = {}
    while (cells := _cells(reader)) is not None:
        if not cells:
            continue  # an empty line
        is_row = len(cells) == len(header) and len(cells[0]) <= TOKEN_LIMIT
        row = _row(cells[1:]) if is_row else None
        if row is None:
            skips(f"{name}:{reader.line_num}", f"expected a token and {len(classes)} counts")
        elif cells[0] in counts:
            skips(f"{name}:{reader.line_num}", f"duplicate token {cells[0][:80]!r}")
        else:
            counts[cells[0]] = row
    return WordCounts(classes, messages, counts)


def _cells(reader: Any) -> list[str] | None:
    """Return the next row, None after the last; what cannot be read is a row of one odd cell."""
    import csv

    try:
        return next(reader, None)
    except csv.Error as error:
        return [str(error)]


def _row(cells: Sequence[str] | Sequence[bytes]) -> Row | None:
    """Return the counts in cells; None if one is invalid."""
    if not all(cell.isascii() and cell.isdigit() and len(cell) <= 16 for cell in cells):
        return None
    counts = tuple(map(int, cells))
    return counts if max(counts) <= MESSAGES_LIMIT else None


def tokens_of(word: str) -> set[str]:
    """Return the tokens that a message with this word of bogofilter's has."""
    prefix, colon, value = word.partition(":")
    if colon and prefix in _OWN_KINDS:
        return {word}
    if not colon or prefix not in _PREFIXES:
        prefix, value = "", word
    inner = value.partition(":")
    if prefix == "subj" and inner[1] and inner[0] in _OWN_KINDS:
        return {f"subject:{value}"}
    if (prefix in ("from", "to") and value.startswith("@")) or (
        prefix == "mime" and ("/" in value or value == "encoded-subject")
    ):
        return {word}
    lower = undo_tricks(value)[0].lower()
    if prefix in ("", "subj"):
        return {("subject:" if prefix else "") + token for token in _of_text(lower, not prefix)}
    return _of_part(lower) if prefix == "mime" else _of_field(prefix, lower)


def _of_field(prefix: str, lower: str) -> set[str]:
    """Return the tokens of a word of a header field but the Subject."""
    if prefix == "head":  # words of any other field, and its name; which field a word is of is lost
        is_name = "-" in lower and has_name_token(lower)
        return {f"{OTHER_FIELD.prefix}{lower}:"} if is_name else set()
    tokens: set[str] = set()
    if prefix in _CHANNEL:
        add_pieces(_CHANNEL[prefix].prefix, lower, tokens)
        return tokens
    tokens.update(f"{prefix}:{word}" for word in words_of(lower))
    if _HOST.fullmatch(lower):
        add_host(f"{prefix}:@", lower, tokens)
    return tokens


def _of_text(lower: str, links: bool) -> set[str]:
    """Return the tokens of a word of the text, or of words joined by stars."""
    parts = [words_of(unspelled(part)[0]) for part in lower.split("*")]
    if len(parts) > 1:  # the single words have lines of their own
        pair = len(parts) == 2 and parts[0] and parts[1]
        return {f"{parts[0][-1]} {parts[1][0]}"} if pair else set()
    words = parts[0]
    tokens = {*words, *map(" ".join, itertools.pairwise(words))}
    if links and _HOST.fullmatch(lower):  # of a link or not: bogofilter does not say
        add_host("host:", lower, tokens)
    return tokens


def _of_part(lower: str) -> set[str]:
    """Return the tokens of a word of a part's own header."""
    if lower in _MEDIA_TYPES:
        return {f"mime:{_MEDIA_TYPES[lower]}"}
    if file := _FILE.fullmatch(lower):
        return {f"attachment:{file[2]}", *(f"attachment:{word}" for word in words_of(file[1]))}
    return set()


def word_of(token: str) -> str | None:
    """Return the word for a token in bogofilter's list, None if there is none."""
    word = token
    for ours, theirs in (
        ("subject:", "subj:"),
        *((kind.prefix, f"{theirs}:") for theirs, kind in _CHANNEL.items()),
    ):
        if token.startswith(ours):
            word = theirs + token.removeprefix(ours)
    joined = word.replace(" ", "*")
    # Within a word a 0 is an o, and an 8 is any digit.
    for candidate in (joined, token, joined.replace("0", "8")):
        if not re.search(r"\s", candidate) and tokens_of(candidate) == {token}:
            return candidate
    return None


def dump_word_list(model: Model) -> tuple[str, int]:
    """Return the text of a model's word list, and how many tokens have no word.

    Raises OptionError for a model of three classes or more, or one that does not count messages.
    """
    settings, learned = model.metadata
    if settings.counts.repeats:
        raise OptionError(
            f"a bogofilter word list counts messages, and the {settings.event_model} model counts"
            " occurrences",
            Remedy.USE_CSV,
        )
    if len(settings.classes) > 2:
        raise OptionError(
            f"a bogofilter word list has two classes and the model has {len(settings.classes)}",
            Remedy.USE_CSV,
        )
    ham, spam = learned.messages
    lines = [f"{_COUNT_LINE.decode()} {spam} {ham}\n"]
    for token, (ham, spam) in model.counts.items():
        word = word_of(token)
        if word is not None:
            lines.append(f"{word} {spam} {ham}\n")
    return "".join(lines), len(model.counts) + 1 - len(lines)


def dump_counts_table(model: Model) -> tuple[str, int]:
    """Return the text of a model's counts, and how many tokens are left out: none."""
    rows = itertools.chain(
        ((_FIRST, *model.metadata.settings.classes), (_MESSAGES, *model.metadata.learned.messages)),
        ((token, *counts) for token, counts in model.counts.items()),
    )
    return "".join(f"{','.join(map(_quoted, row))}\n" for row in rows), 0


def _quoted(cell: object) -> str:
    """Return a cell as RFC 4180 has it; csv.writer quotes no \\r where lines end with \\n alone."""
    text = str(cell)
    if not _SPECIAL.search(text):
        return text
    return f'"{text.replace(chr(34), 2 * chr(34))}"'


# Each returns the text, and how many tokens it has no way to write.
FORMS: dict[str, Callable[[Model], tuple[str, int]]] = {
    "bogofilter": dump_word_list,
    "csv": dump_counts_table,
}
