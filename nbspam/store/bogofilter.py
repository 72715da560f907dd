"""bogofilter's word list as text, as `bogoutil -d` writes it and `bogoutil -l` reads it.

Each line is a word, how many spam and how many ham messages contain it, and the day it was last
seen: what Bernoulli naive Bayes counts.  `.MSG_COUNT` has the number of messages;
other words that begin with a dot are ignored.

    .MSG_COUNT 948 2075 20260105
    subj:Cheap 31 2 20260105
    meeting*tomorrow 0 17 20260103

Words become tokens by the rules that the tokenizer applies to a message (docs/model-file.md has the
table).  bogofilter's words contain no colon but that of their prefix, so tokens of our own kinds
keep their names in its list and are imported again exactly.
"""

import itertools
import re
from collections.abc import Iterable

from nbspam.bayes.token_weight import Row
from nbspam.errors import OptionError, Remedy, SourceError
from nbspam.reading.source import Skips
from nbspam.store.metadata import MESSAGES_LIMIT
from nbspam.store.model_file import TOKEN_LIMIT, Model
from nbspam.tokens.header_channel import add_pieces, has_name_token
from nbspam.tokens.kinds import KINDS, OTHER_FIELD, RECEIVED, RETURN_PATH
from nbspam.tokens.text import add_host, unspelled, words_of
from nbspam.tokens.unicode import undo_tricks

MESSAGES = b".MSG_COUNT"
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
    lines = [f"{MESSAGES.decode()} {spam} {ham}\n"]
    for token, (ham, spam) in model.counts.items():
        word = word_of(token)
        if word is not None:
            lines.append(f"{word} {spam} {ham}\n")
    return "".join(lines), len(model.counts) + 1 - len(lines)


class WordList:
    """A parsed word list: the messages of ham and spam, and the counts of each token."""

    def __init__(self, name: str, lines: Iterable[bytes], skips: Skips) -> None:
        """Read the lines of a list; a line that is not of that form is skipped and named.

        The counts of a repeated word are added, as bogoutil does.  Of several words that become one
        token (FREE, Free, free) the highest count is taken, not the sum, which would assume that no
        message contains two of them: a list of 3,000 mails gave 38 errors of 3,023 by the sum, 33
        by the maximum and 29 as if they were independent; with pairs of words 33, 18 and 25.
        Raises SourceError without a number of messages.
        """
        messages = [0, 0]
        words: dict[bytes, tuple[int, int]] = {}
        for number, line in enumerate(lines, 1):
            fields = line.rstrip(b"\r\n").split(b" ")
            if fields == [b""]:
                continue
            counts = _counts(fields)
            if counts is None:
                skips(f"{name}:{number}", "expected: WORD SPAM HAM [DATE]")
            elif fields[0] == MESSAGES:
                messages = [a + b for a, b in zip(messages, counts, strict=True)]
            elif not fields[0].startswith(b"."):
                before = words.get(fields[0], (0, 0))
                words[fields[0]] = before[0] + counts[0], before[1] + counts[1]
        if not any(messages):
            raise SourceError(
                f"{name}: has no number of messages (.MSG_COUNT); write the word list with"
                " bogoutil -d wordlist.db"
            )
        self.messages = messages[1], messages[0]
        self.words = len(words)
        self.foreign = 0  # words without a token
        self.counts: dict[str, Row] = {}
        for raw, (spam, ham) in words.items():
            tokens = tokens_of(_decoded(raw))
            self.foreign += not tokens
            for token in tokens:
                known = self.counts.get(token, (0, 0))
                self.counts[token] = max(known[0], ham), max(known[1], spam)


def _counts(fields: list[bytes]) -> tuple[int, int] | None:
    """Return the spam and ham counts in a line's fields, None if they are invalid.

    The day is optional.
    """
    if not 3 <= len(fields) <= 4 or not 0 < len(fields[0]) <= TOKEN_LIMIT:
        return None
    if not all(field.isdigit() and len(field) <= 16 for field in fields[1:]):
        return None
    spam, ham = int(fields[1]), int(fields[2])
    return (spam, ham) if max(spam, ham) <= MESSAGES_LIMIT else None


def _decoded(word: bytes) -> str:
    """Return a word as text; lists of an older bogofilter are in the mails' own character sets."""
    try:
        return word.decode()
    except UnicodeDecodeError:
        return word.decode("cp1252", "replace")
