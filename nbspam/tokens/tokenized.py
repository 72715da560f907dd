"""A message's tokens, from all its parts, and the record of a tokenized message."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from nbspam.errors import SourceError
from nbspam.patterns import lazy_pattern
from nbspam.reading.header_fields import Header, identity_of
from nbspam.reading.message import Message, RawMessage
from nbspam.reading.mime import Part
from nbspam.reading.source import CollectedNotes, Note, Skipped
from nbspam.tokens import text as plain_text
from nbspam.tokens.disguises import VISIBLE_SHAPE, text_in_encoded, undo_tricks, western_table
from nbspam.tokens.headers import header_tokens, subject_of
from nbspam.tokens.kinds import COLLECTED_BY, clipped_count, log_scale, percentage
from nbspam.tokens.sight import TokensBySight
from nbspam.tokens.text import SHORT_TEXT_LENGTH, Text, VisibleText, readable, text_tokens

if TYPE_CHECKING:  # classifying shows nothing of a message
    from nbspam.reading.senders import ListedSender, SenderLists

    # The messages that a process tokenizes at a time; some are names of files.
    Batch = list[RawMessage]

# Stored in the model, because counts by another tokenizer or version do not fit these tokens.
# Increase the version when a message would give other tokens, times or traits.
NAME = "nbspam"
TOKENIZER_VERSION = 11
# Tokens of a message, more than any mail in the corpora (the largest of 10,546 mails has 18,430): a
# mail with 104,000 different words took 2.9 s to learn, and added 3 MB to the model.
TOKENS_LIMIT = 20_000
_DIGEST_BYTES = 16  # with 2^64 messages two are likely to share a digest
# Tags of a page that are parsed; a tag unlike all others takes 30 µs.  The HTML of 313 mails of
# SpamAssassin has 9,084 different tags in all.
MAX_TAGS = 20_000
CONTAINER = "container"
# The tokens that show that a message was not read whole.
LIMITS = frozenset(
    f"limit:{name}"
    for name in (CONTAINER, *"bytes depth encoding header parts tags text tokens".split())
)
_QUOTED = lazy_pattern(">+From ")  # as quoted in an mbox, at the start of a line
_TAG = lazy_pattern(r"<[^>]*>?")
_INVALID_MEDIA_TYPE_CHARS = lazy_pattern(r"[^\w.+/-]+")


def message_tokens(
    message: Message,
    texts: list[VisibleText] | None = None,
    possibly_hidden: set[str] | None = None,
) -> KeysView[str]:
    """Return the set of tokens of a message, always in the same order.

    texts: receives the texts as a reader sees them.
    possibly_hidden: receives the tokens that may not be in plain sight.
    """
    is_mail = bool(message.headers)
    # Mail software may change the order of a header's fields, but not of a text's words.
    subject = subject_of(message.headers) if is_mail else ""
    of_header = sorted(header_tokens(message.headers, subject)) if is_mail else ()
    sight = TokensBySight(dict.fromkeys(of_header), [undo_tricks(subject)[0]] if is_mail else [])
    if len({value for name, value in message.headers if name == "subject"}) > 1:
        # Programs disagree about the Subject to show.
        doubtful = [token for token in of_header if token.startswith("subject:")]
        sight = TokensBySight(dict.fromkeys(sorted({*of_header} - {*doubtful})), [])
        sight.doubtful |= dict.fromkeys(doubtful)
    for part in message.parts:
        if is_mail:
            (sight.doubtful if part.is_possibly_hidden else sight.certain).update(
                _part_tokens(part)
            )
        if not part.text:
            sight.add(part, "", {}, {})
            continue
        seen: dict[str, None] = {}
        hidden: dict[str, None] = {}
        text = _visible_text(part, seen, is_mail)
        if texts is not None:
            texts.append(text)
        if text.hidden:
            hidden |= _text_tokens(text.hidden, is_mail)
        shown = _text_tokens(text.text, is_mail)
        sight.add(part, text.text, seen | shown if seen else shown, hidden)
    openings, disputed = sight.compare_versions()
    # The trigrams of a short text without headers already contain its first words and signs.
    if is_mail or max(map(len, openings), default=0) > SHORT_TEXT_LENGTH:
        sight.certain |= plain_text.opening_tokens(openings)
    for version in disputed:
        sight.doubtful |= plain_text.opening_tokens(openings + version)
    limits = message.limits | {"tokens"} if sight.limit_tokens(TOKENS_LIMIT) else message.limits
    tokens = sight.certain
    tokens |= dict.fromkeys([f"limit:{name}" for name in sorted(limits)])
    if possibly_hidden is not None:
        possibly_hidden.update([token for token in sight.doubtful if token not in tokens])
    tokens |= sight.doubtful
    return tokens.keys()


def _text_tokens(text: str, is_mail: bool) -> dict[str, None]:
    tokens = text_tokens(text)
    if not is_mail:
        tokens |= dict.fromkeys(plain_text.short_text_tokens(text.lstrip()[:SHORT_TEXT_LENGTH]))
    return tokens


def _visible_text(part: Part, tokens: dict[str, None], is_mail: bool) -> VisibleText:
    """Read a part's text, in plain sight and hidden, and the targets of HTML's links.

    Adds the tokens of its links and tricks.
    """
    text, hidden, targets = part.text, "", None
    if part.is_html:
        # Imported late: its patterns take 2 ms to compile, and a plain text does not need them.
        from nbspam.tokens.html import read_page

        text, rest = _cut_page(text)
        text, hidden, targets, tricks_of_page = read_page(text)
        if rest:
            hidden = f"{hidden}\n{_TAG.sub(' ', rest)}"
            tokens |= {} if part.is_attached else {"limit:tags": None}
        tricks_of_page.update(*map(target_tokens, set(targets)))
        tokens |= dict.fromkeys(sorted(tricks_of_page))
        if is_mail and part.content_type == "text/plain":  # some programs show the tags
            hidden = f"{hidden}\n{part.text}"
    if ">From " in text:
        text = _QUOTED.sub("From ", text)
    encoded: list[str] = []
    text, tricks = readable(text, encoded)
    hidden = "\n".join(filter(None, [hidden, *map(text_in_encoded, encoded)]))
    tokens |= dict.fromkeys(sorted(tricks))
    return VisibleText(text, targets, readable(hidden)[0] if hidden else "")


def _cut_page(source: str) -> tuple[str, str]:
    """Split a page after MAX_TAGS tags; the rest is read without tags, and counts only for spam."""
    if source.count("<") <= MAX_TAGS:
        return source, ""
    rest = source.split("<", MAX_TAGS + 1)[-1]
    return source[: len(source) - len(rest) - 1], f"<{rest}"


def target_tokens(link: str) -> set[str]:
    """Return the tokens of an HTML link's or image's target, which is in lower case."""
    scheme, colon, _ = link.partition(":")
    if link.startswith(("http://", "https://", "//", "www.")):
        return plain_text.link_tokens(link.removeprefix("//"))
    # mailto, cid, javascript, data
    return {f"link:{scheme}"} if colon and scheme.isalpha() and len(scheme) <= 12 else set()


def _part_tokens(part: Part) -> dict[str, None]:
    """Return the tokens of a part's type, and of its file name: words and suffix."""
    tokens = dict.fromkeys([f"mime:{_INVALID_MEDIA_TYPE_CHARS.sub('', part.content_type[:60])}"])
    if part.filename:
        stem, dot, suffix = part.filename.lower().rpartition(".")
        if dot and suffix.isalnum() and len(suffix) <= 8:
            tokens[f"attachment:.{suffix}"] = None
        words = plain_text.words_of(stem or suffix)
        tokens |= dict.fromkeys([f"attachment:{word}" for word in words])
    return tokens


# Traits

_DIGITS = re.compile(r"\d+")
_DIGITS_ALONE = western_table("0123456789".__contains__)
# Bytes to delete from a Western text so that capitals, letters or visible characters remain.
_NO_CAPITALS, _NO_LETTERS, _BLANKS = (
    bytes(byte for byte in range(256) if table[byte] == 32)
    for table in (western_table(str.isupper), western_table(str.isalpha), VISIBLE_SHAPE)
)


def _count_characters(text: Text) -> tuple[int, int, int, int, int, int]:
    """Count capitals, letters, digits, non-blank characters and words.

    The last number is the length of the longest run of digits.
    """
    data = text.western
    if data is not None:  # by table look-ups, which are faster
        runs = data.translate(_DIGITS_ALONE).split()
        return (
            len(data.translate(None, _NO_CAPITALS)),
            len(data.translate(None, _NO_LETTERS)),
            sum(map(len, runs)),
            len(data.translate(None, _BLANKS)),
            (b" " + data.translate(VISIBLE_SHAPE)).count(b" a"),
            max(map(len, runs), default=0),
        )
    words = text.split()
    letters = "".join(filter(str.isalpha, text))  # excludes Ⅳ, which is upper but no letter
    return (
        sum(map(str.isupper, letters)),
        len(letters),
        sum(map(str.isdecimal, text)),
        sum(map(len, words)),
        len(words),
        max(map(len, _DIGITS.findall(text)), default=0),
    )


def _count_links(text: str) -> int:
    """Count web addresses: http://, https://, and www. without a scheme."""
    lower = text.encode("utf-8", "replace").lower()  # str.lower is slow beyond ASCII
    schemes = (b"http://", b"https://") if b"://" in lower else ()
    n_bare = lower.count(b"www.")
    n = sum(map(lower.count, schemes)) + n_bare
    return n - sum(lower.count(scheme + b"www.") for scheme in schemes) if n_bare else n


def message_traits(message: Message, texts: Sequence[VisibleText]) -> tuple[int, ...]:
    """Return a message's traits, in the order of TRAITS.  texts: its parts' visible texts."""
    numbers = [_count_characters(part.text) for part in texts] or [(0,) * 6]
    *sums, runs = zip(*numbers, strict=True)
    capitals, letters, digits, visible, words = map(sum, sums)
    characters = sum(len(part.text.strip()) for part in texts)
    of_html = sum(len(part.text.strip()) for part in texts if part.targets is not None)
    links = sum(_count_links(part.text) + len(part.targets or ()) for part in texts)
    return (
        log_scale(characters),
        log_scale(words),
        log_scale(visible / words if words else 0),
        log_scale(digits),
        clipped_count(max(runs)),
        percentage(capitals, letters),
        percentage(visible - letters - digits, visible),
        log_scale(links),
        percentage(of_html, characters),
        clipped_count([name for name, _ in message.headers].count("received")),
    )


class TokenExtras(NamedTuple):
    """The data of a message in addition to its set of tokens, as far as a model uses them."""

    times: Mapping[str, int] = {}  # token that occurs more than once -> number of occurrences
    traits: tuple[int, ...] = ()  # in the order of `kinds.TRAITS`
    # The tokens that may not be in plain sight; these tokens never count for ham.
    possibly_hidden: frozenset[str] = frozenset()


NO_EXTRAS = TokenExtras()


def repeated_tokens(texts: Sequence[VisibleText], is_mail: bool) -> dict[str, int]:
    """Count the tokens that occur more than once in a message's texts, over all parts.

    For event models that count occurrences.  Tokens that describe the message (tricks, parts,
    header fields) count once.
    """
    counted: Counter[str] = Counter()
    for part in texts:
        counted.update(itertools.chain.from_iterable(map(target_tokens, part.targets or ())))
        counted.update(plain_text.repeated_text_tokens(part.text))
        if not is_mail:
            counted.update(plain_text.short_text_tokens(part.text.lstrip()[:SHORT_TEXT_LENGTH]))
    return {token: n for token, n in counted.items() if n > 1}


_LEFT_OUT = dict.fromkeys(map(ord, " \t\r\n>"))


def digest_of(
    tokens: Iterable[str],
    headers: list[Header],
    times: Mapping[str, int] = NO_EXTRAS.times,
    traits: Sequence[int] = (),
    texts: Iterable[str] = (),
) -> str:
    """Return the digest, in hexadecimal, by which the ledger recognises a message.

    tokens: the tokens in the message's order.  times: as in `TokenExtras`.
    texts: the decoded texts of the message's parts.

    A mail is recognised by its Message-ID (`identity_of`), whatever programs on its route added or
    rewrote; without a Message-ID, by its Subject and text.  The digest leaves out a mail's tokens,
    because the mail with a list's footer is the same mail.  Unlearning such a copy removes the
    tokens that both have.

    The digest of a plain text includes the text next to the tokens, because "offer 1" and "offer 2"
    are two messages, but every digit is 0 in their tokens.
    """
    from _blake2 import blake2b  # importing it from hashlib takes 4 ms: OpenSSL

    subject = subject_of(headers)
    identity = identity_of(headers, subject)
    # White space and the quotes of an mbox differ from folder to folder.
    text = identity or (subject + "".join(texts)).translate(_LEFT_OUT)
    known = blake2b(text.encode("utf-8", "replace"), digest_size=_DIGEST_BYTES)
    if not headers:
        lines = ["", *tokens, *(f"{times[token]} {token}" for token in sorted(times))]
        if traits:
            lines.append(" ".join(map(str, traits)))
        known.update("\n".join(lines).encode("utf-8", "replace"))
    return known.hexdigest()


# The excerpt of a message, for a reader

_FIELD_LIMIT = 300  # characters of the Subject and of From
_STRANGE = "\ufffd"


class Excerpt(NamedTuple):
    """The part of a message that is shown: harmless, and of bounded size.

    The only control character in it is the line feed, which ends a line of the text.
    """

    subject: str  # "" without a Subject, as in a text without a header
    sender: str
    text: str  # the start of the text
    characters: int  # length of the whole text

    @property
    def rest(self) -> int:
        """The number of characters after the excerpt."""
        return self.characters - len(self.text)


def excerpt_of(message: Message, texts: list[VisibleText], limit: int) -> Excerpt:
    """Make the excerpt of a message.

    texts: the texts from `message_tokens`.  limit: maximum characters of text.
    """
    whole = "\n".join(filter(None, (printable(text) for text in _without_repeats(texts))))
    subject, sender = (_field(message.header(name)) for name in ("subject", "from"))
    return Excerpt(subject, sender, whole[:limit], len(whole))


def printable(text: str) -> str:
    """Make a text printable: without control characters except line feeds, and format characters.

    So it can neither control a terminal nor change the reading direction.  Also merges repeated
    blanks and blank lines.
    """
    lines = [" ".join(line.split()) for line in text.split("\n")]
    single_spaced = [line for i, line in enumerate(lines) if line or (i and lines[i - 1])]
    text = "\n".join(single_spaced).strip("\n")
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c == "\n" or c.isprintable() else _STRANGE for c in text)


def _field(value: str) -> str:
    line = printable(undo_tricks(value)[0].replace("\n", " "))
    return line if len(line) <= _FIELD_LIMIT else line[: _FIELD_LIMIT - 1] + "…"


def _without_repeats(texts: list[VisibleText]) -> list[str]:
    """Leave out the pages that repeat a plain text."""
    different: list[str] = []
    words: set[str] = set()
    for text, targets, _ in texts:
        words_of_text = set(text.lower().split())
        if targets is None or 2 * len(words_of_text & words) < len(words_of_text) or not words:
            different.append(text)
            words |= words_of_text
    return different


class TokenizerOutputs(NamedTuple):
    """The data to compute in addition to tokens: extras that a model uses, an excerpt, a sender."""

    times: bool = False
    traits: bool = False
    excerpt: int = 0  # characters of text to show to a reader, at most; 0: no excerpt
    senders: "SenderLists | None" = None  # the lists in which to look up the sender


TOKENS_ONLY = TokenizerOutputs()


class TokenizedMessage(NamedTuple):
    """A message and its tokens."""

    source: str  # a path, `path:line`, "-"
    label: str | None  # the class in its source, if any
    tokens: list[str]  # each token once, in the message's order
    digest: str = ""  # for the ledger; "" if not requested
    size: int = 0  # bytes or characters; 0 for a file, which its source names
    extras: TokenExtras = NO_EXTRAS
    excerpt: Excerpt | None = None  # None if not requested
    sender: "ListedSender | None" = None  # None if the lists do not have the sender

    @property
    def is_mail(self) -> bool:
        """Whether the message has a mail's header, and so a token of the receiving host."""
        return f"\n{COLLECTED_BY.prefix}" in "\n".join(["", *self.tokens])

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the tokens as one string, which takes a fifth of the time of a list."""
        source, label, tokens, digest, size, extras, excerpt, sender = self
        rest = source, label, digest, size, excerpt, sender
        return _from_pickle, ("\n".join(tokens), tuple(extras), *rest)


def _from_pickle(
    packed: str, extras: tuple[Any, ...], source: str, label: str | None, *others: Any
) -> TokenizedMessage:
    digest, size, excerpt, sender = others
    tokens = packed.split("\n") if packed else []
    return TokenizedMessage(
        source, label, tokens, digest, size, TokenExtras(*extras), excerpt, sender
    )


def tokenize(
    message: Message,
    source: str = "-",
    label: str | None = None,
    *,
    digest: bool = False,
    outputs: TokenizerOutputs = TOKENS_ONLY,
    size: int = 0,
) -> TokenizedMessage:
    """Tokenize a parsed message.

    digest: whether to compute the digest for the ledger.  size: as in `TokenizedMessage`.
    outputs: what to compute; the extras that the model counts are part of the digest too.
    """
    texts: list[VisibleText] | None = None if outputs[:3] == TOKENS_ONLY[:3] else []
    hidden_tokens: set[str] = set()
    tokens = message_tokens(message, texts, hidden_tokens)
    extras, excerpt = NO_EXTRAS, None
    if texts is not None:
        times = repeated_tokens(texts, bool(message.headers)) if outputs.times else {}
        if not tokens.isdisjoint(LIMITS):  # some tokens may be left out
            times = {token: n for token, n in times.items() if token in tokens}
        extras = TokenExtras(times, message_traits(message, texts) if outputs.traits else ())
        if outputs.excerpt:
            excerpt = excerpt_of(message, texts, outputs.excerpt)
    if hidden_tokens:
        extras = extras._replace(possibly_hidden=frozenset(hidden_tokens))
    known = ""
    if digest:
        decoded = (part.text for part in message.parts)
        known = digest_of(tokens, message.headers, *extras[:2], texts=decoded)
    sender = outputs.senders.find_sender(message) if outputs.senders else None
    return TokenizedMessage(source, label, list(tokens), known, size, extras, excerpt, sender)


class TokenizeOptions(NamedTuple):
    """The options of `tokenize` for many messages."""

    digest: bool = False
    outputs: TokenizerOutputs = TOKENS_ONLY
    skip_empty: bool = False  # skip a mail without content


def tokenize_batch(batch: "Batch", options: TokenizeOptions) -> Iterator[TokenizedMessage | Note]:
    """Tokenize a batch; yields a note in place of each skipped message."""
    skips = CollectedNotes()
    for raw in batch:
        for message in raw.messages(skips):
            yield tokenize_raw(message, options)
    yield from skips.notes


def tokenize_raw(raw: RawMessage, options: TokenizeOptions) -> TokenizedMessage | Skipped:
    """Tokenize a message, or note why it is skipped."""
    try:
        message = raw.message()
    except SourceError as error:
        return Skipped(raw.source, str(error).removeprefix(f"{raw.source}: "))
    if options.skip_empty and message.problem:
        return Skipped(raw.source, message.problem)
    if options.skip_empty and not isinstance(raw.content, str) and message.is_empty:
        return Skipped(raw.source, "the message is empty", is_error=False)
    size = len(raw.content) if isinstance(raw.content, bytes | str) else 0
    return tokenize(
        message, raw.source, raw.label, digest=options.digest, outputs=options.outputs, size=size
    )
