"""A message's tokens, from all its parts, and the record that goes from here to the counts."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from nbspam.errors import SourceError
from nbspam.patterns import lazy_pattern
from nbspam.reading.header_fields import Header
from nbspam.reading.message import Message, Part, RawMessage
from nbspam.reading.source import ReadingNote, Skipped
from nbspam.tokens import text as plain_text
from nbspam.tokens.headers import header_tokens, subject_of
from nbspam.tokens.kinds import amount, count, share
from nbspam.tokens.text import SHORT, VisibleText, text_tokens, undo_tricks, western_table

if TYPE_CHECKING:  # classifying shows nothing of a message
    from nbspam.reading.cutting import SourcePiece
    from nbspam.reading.senders import ListedSender, SenderLists

    # What one process tokenizes at a time: messages, or where it finds them.
    Batch = list[RawMessage | ReadingNote] | SourcePiece

# Stored in the model: counts taken by another tokenizer or other rules do not fit these tokens.  To
# be raised when a message would give other tokens, or other times or traits.
NAME = "nbspam"
RULES = 8
# Tokens of one message, far above the mail in the corpora (18,430 in the largest of 10,546): a mail
# of 104,000 different words took 2.9 s to learn, and the model grew by 3 MB.
TOKENS_LIMIT = 20_000
_DIGEST_BYTES = 16  # 2^64 messages before two of them are likely to share a digest
# From this share of common words on, an alternative is the same text as another part: ham's mostly
# is.  If they never speak for ham whatever they say, 1-ROCA% is .0139 (P2) and .1268
# (P5) in place of .0133 and .1261; if they always do, any ham can stand there.
_SAME = 0.8
_QUOTED = lazy_pattern(">+From ")  # in an mbox, at the beginning of a line
_NO_MEDIA_TYPE = lazy_pattern(r"[^\w.+/-]+")


def message_tokens(
    message: Message,
    texts: list[VisibleText] | None = None,
    possibly_hidden: set[str] | None = None,
) -> KeysView[str]:
    """Return the set of tokens of a message, always in the same order.

    texts: a list that receives the texts as a reader sees them.
    possibly_hidden: a set that receives the tokens found in possibly hidden text only.
    """
    is_mail = bool(message.headers)
    has_others = any(part.is_doubtful for part in message.parts)
    # Mail software may put a header's fields in another order, and never a text's words.
    subject = subject_of(message.headers) if is_mail else ""
    tokens = dict.fromkeys(sorted(header_tokens(message.headers, subject)) if is_mail else ())
    perhaps: dict[str, None] = {}
    others: list[str] = []  # texts that mail programs show another part for
    visible_words: set[str] = set()
    # The Subject and the texts that are seen for certain.
    certain = [undo_tricks(subject)[0]] if is_mail else []
    for part in message.parts:
        if is_mail:
            tokens[f"mime:{_NO_MEDIA_TYPE.sub('', part.content_type[:60])}"] = None
            if part.filename:
                _add_filename(part.filename, tokens)
        if not part.text:
            continue
        text = _visible_text(part, tokens)
        if texts is not None:
            texts.append(text)
        if part.is_doubtful:
            others.append(text.text)
            continue
        if has_others:
            visible_words.update(text.text.lower().split())
        of_text = _text_tokens(text.text, is_mail)
        certain.append(text.text if text.certain is None else text.certain)
        if text.certain is not None:
            perhaps |= of_text
            of_text = _text_tokens(text.certain, is_mail) if text.certain else {}
        if len(of_text) > len(tokens):  # the smaller set goes into the larger
            tokens, of_text = of_text, tokens
        tokens |= of_text
    # The trigrams of a short text without headers say how it begins, and what its signs are.
    if is_mail or max(map(len, certain), default=0) > SHORT:
        tokens |= plain_text.opening_tokens(certain)
    for other in others:
        words = set(other.lower().split())
        is_same = len(words & visible_words) >= _SAME * len(words)
        (tokens if is_same else perhaps).update(_text_tokens(other, is_mail))
    only_perhaps = perhaps.keys() - tokens.keys() if perhaps else frozenset()
    tokens |= perhaps
    limits = message.limits
    if len(tokens) > TOKENS_LIMIT:
        tokens, limits = _drawn(tokens), limits | {"tokens"}
    for name in sorted(limits):
        tokens[f"limit:{name}"] = None
    if possibly_hidden is not None:
        possibly_hidden |= only_perhaps & tokens.keys()
    return tokens.keys()


def _text_tokens(text: str, is_mail: bool) -> dict[str, None]:
    tokens = text_tokens(text)
    if not is_mail:
        tokens |= dict.fromkeys(plain_text.short_text_tokens(text.lstrip()[:SHORT]))
    return tokens


def _drawn(tokens: Iterable[str]) -> dict[str, None]:
    """Return TOKENS_LIMIT tokens, the same from the same set.

    The choice depends on all of them, so that no words can crowd out others on purpose.
    """
    from hashlib import blake2b

    ordered = sorted(tokens)
    key = blake2b("\n".join(ordered).encode("utf-8", "replace"), digest_size=16).digest()

    def draw(token: str) -> bytes:
        return blake2b(token.encode("utf-8", "replace"), digest_size=8, key=key).digest()

    return dict.fromkeys(sorted(ordered, key=draw)[:TOKENS_LIMIT])


def _visible_text(part: Part, tokens: dict[str, None]) -> VisibleText:
    """Return a part's text as a reader sees it, and of HTML the targets of its links.

    Adds the tokens of its links and tricks.
    """
    text, certain, targets = part.text, part.text, None
    if part.is_html:
        # Its patterns take 2 ms to compile: one mail of plain text goes without them.
        from nbspam.tokens.html import page_of

        text, certain, targets, tricks_of_page = page_of(text)
        tricks_of_page.update(*map(target_tokens, set(targets)))
        tokens |= dict.fromkeys(sorted(tricks_of_page))
    is_certain = certain is text
    if ">From " in text:
        text, certain = _QUOTED.sub("From ", text), _QUOTED.sub("From ", certain)
    text, tricks = undo_tricks(text)
    tokens |= dict.fromkeys(sorted(tricks))
    return VisibleText(text, targets, None if is_certain else undo_tricks(certain)[0])


def target_tokens(link: str) -> set[str]:
    """Return the tokens of the target of an HTML link or image, in lower case."""
    scheme, colon, _ = link.partition(":")
    if link.startswith(("http://", "https://", "//", "www.")):
        return plain_text.link_tokens(link.removeprefix("//"))
    # mailto, cid, javascript, data
    return {f"link:{scheme}"} if colon and scheme.isalpha() and len(scheme) <= 12 else set()


def _add_filename(name: str, tokens: dict[str, None]) -> None:
    """Add the tokens of an attachment's name: its words and its ending."""
    stem, dot, suffix = name.lower().rpartition(".")
    if dot and suffix.isalnum() and len(suffix) <= 8:
        tokens[f"attachment:.{suffix}"] = None
    tokens |= dict.fromkeys([f"attachment:{word}" for word in plain_text.words_of(stem or suffix)])


# Traits

_DIGITS = re.compile(r"\d+")
_DIGITS_ALONE = western_table("0123456789".__contains__)
_VISIBLE = western_table(lambda c: not c.isspace()).translate(b"a" * 32 + b" " + b"a" * 223)
# Western bytes but capitals, but letters, but what is seen: to count the others is to remove these.
_NO_CAPITALS, _NO_LETTERS, _BLANKS = (
    bytes(byte for byte in range(256) if table[byte] == 32)
    for table in (western_table(str.isupper), western_table(str.isalpha), _VISIBLE)
)


def _numbers(text: str) -> tuple[int, int, int, int, int, int]:
    """Return how many capitals, letters, digits, characters but blanks, and words a text has.

    And the length of the longest run of digits.
    """
    data = plain_text.western_bytes(text)
    if data is not None:  # at the speed of a table look-up
        runs = data.translate(_DIGITS_ALONE).split()
        return (
            len(data.translate(None, _NO_CAPITALS)),
            len(data.translate(None, _NO_LETTERS)),
            sum(map(len, runs)),
            len(data.translate(None, _BLANKS)),
            (b" " + data.translate(_VISIBLE)).count(b" a"),
            max(map(len, runs), default=0),
        )
    words = text.split()
    letters = "".join(filter(str.isalpha, text))  # a Roman numeral of one sign is upper, and none
    return (
        sum(map(str.isupper, letters)),
        len(letters),
        sum(map(str.isdecimal, text)),
        sum(map(len, words)),
        len(words),
        max(map(len, _DIGITS.findall(text)), default=0),
    )


def _links(text: str) -> int:
    """Return how many web addresses a text has: http:// and https://, and www. without either."""
    lower = text.encode("utf-8", "replace").lower()  # str.lower is slow beyond ASCII
    schemes = (b"http://", b"https://") if b"://" in lower else ()
    n_bare = lower.count(b"www.")
    n = sum(map(lower.count, schemes)) + n_bare
    return n - sum(lower.count(scheme + b"www.") for scheme in schemes) if n_bare else n


def message_traits(message: Message, texts: Sequence[VisibleText]) -> tuple[int, ...]:
    """Return the traits of a message, in the order of TRAITS.  texts: of its parts."""
    text = "\n".join(part.text for part in texts)
    capitals, letters, digits, visible, words, run = _numbers(text)
    characters = sum(len(part.text.strip()) for part in texts)
    of_html = sum(len(part.text.strip()) for part in texts if part.targets is not None)
    links = _links(text) + sum(len(part.targets or ()) for part in texts)
    return (
        amount(characters),
        amount(words),
        amount(visible / words if words else 0),
        amount(digits),
        count(run),
        share(capitals, letters),
        share(visible - letters - digits, visible),
        amount(links),
        share(of_html, characters),
        count([name for name, _ in message.headers].count("received")),
    )


class Numbers(NamedTuple):
    """The numbers of a message beside its set of tokens, as far as a model uses them."""

    times: Mapping[str, int] = {}  # of the tokens that occur more than once: how often
    traits: tuple[int, ...] = ()  # as `kinds.TRAITS` lists them
    # The tokens found in possibly hidden text only: they never speak for ham.
    possibly_hidden: frozenset[str] = frozenset()


NO_NUMBERS = Numbers()


def repeated_tokens(texts: Sequence[VisibleText], is_mail: bool) -> dict[str, int]:
    """Return the tokens that occur more than once in a message's texts, and how often.

    For event models that count it: what the text has again and again, over all parts.  What is said
    of the message once (a trick, its parts, its header fields) counts once.
    """
    counted: Counter[str] = Counter()
    for part in texts:
        counted.update(itertools.chain.from_iterable(map(target_tokens, part.targets or ())))
        counted.update(plain_text.every_token(part.text))
        if not is_mail:
            counted.update(plain_text.short_text_tokens(part.text.lstrip()[:SHORT]))
    return {token: n for token, n in counted.items() if n > 1}


def digest_of(
    tokens: Iterable[str],
    headers: list[Header],
    times: Mapping[str, int] = NO_NUMBERS.times,
    traits: Sequence[int] = (),
    texts: Iterable[str] = (),
) -> str:
    """Return the digest, in hexadecimal, by which the ledger knows a message again.

    tokens: as the message has them in order.  times: of those that occur more than once.
    texts: of the message's parts, decoded.

    It is of what a model counts of the message and of what tells it from others with the same
    tokens: its first Message-ID that is not empty, or without one its Subject and text, since
    digits are 0 in tokens, but "offer 1" and "offer 2" are two messages.

    What software adds to a message on its way (our header, a Status line, an mbox `From ` line) is
    part of none of these, so the message keeps its digest; and since the digest covers what was
    counted, unlearning takes out of the counts exactly what was learned.
    """
    from hashlib import blake2b  # 3 ms to import

    for name, value in headers:
        if name == "message-id" and value.strip("<> "):
            identity = "".join(value.split()).encode("utf-8", "replace")
            break
    else:
        # White space and the quotes of an mbox differ from folder to folder.
        text = subject_of(headers) + "".join(texts)
        identity = text.encode("utf-8", "replace").translate(None, b" \t\r\n>")
    known = blake2b(identity, digest_size=_DIGEST_BYTES)
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

    subject: str  # empty if there is none, as of a text without a header
    sender: str
    text: str  # the beginning
    characters: int  # of the whole text

    @property
    def rest(self) -> int:
        """How many characters of the text are left out."""
        return self.characters - len(self.text)


def excerpt_of(message: Message, texts: list[VisibleText], limit: int) -> Excerpt:
    """Return the excerpt of a message.

    texts: its texts, as `message_tokens` has them.  limit: the most characters of text.
    """
    whole = "\n".join(filter(None, (printable(text) for text in _different(texts))))
    subject, sender = (_field(message.header(name)) for name in ("subject", "from"))
    return Excerpt(subject, sender, whole[:limit], len(whole))


def printable(text: str) -> str:
    """Return a text that can be shown: no control character but line feeds, no format character.

    So it can neither command a terminal nor change the order in which it is read.  Blanks are
    single, and so are blank lines.
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


def _different(texts: list[VisibleText]) -> list[str]:
    """Return the texts, without the pages that repeat a plain text."""
    different: list[str] = []
    words: set[str] = set()
    for text, targets, _ in texts:
        words_of_text = set(text.lower().split())
        if targets is None or 2 * len(words_of_text & words) < len(words_of_text) or not words:
            different.append(text)
            words |= words_of_text
    return different


class Wanted(NamedTuple):
    """What to compute of a message beside its tokens: numbers that a model uses, an excerpt."""

    times: bool = False
    traits: bool = False
    excerpt: int = 0  # the most characters of its text to show to a reader; 0: no excerpt
    senders: "SenderLists | None" = None  # the lists in which to look its sender up


TOKENS_ALONE = Wanted()


class TokenizedMessage(NamedTuple):
    """A message and its tokens."""

    source: str  # a path, `path:line`, "-"
    label: str | None  # the class that its source gives, if any
    tokens: list[str]  # each once, in the order in which the message has them
    digest: str = ""  # for the ledger; empty when it was not asked for
    size: int = 0  # bytes or characters; 0 for a file, which its source names
    numbers: Numbers = NO_NUMBERS
    excerpt: Excerpt | None = None  # where it was wanted
    sender: "ListedSender | None" = None  # if the lists name it

    def __reduce__(self) -> tuple[object, ...]:
        """Go to another process as one string of tokens, in a fifth of the time of a list."""
        source, label, tokens, digest, size, numbers, excerpt, sender = self
        rest = source, label, digest, size, excerpt, sender
        return _unpacked, ("\n".join(tokens), tuple(numbers), *rest)


def _unpacked(
    packed: str, numbers: tuple[Any, ...], source: str, label: str | None, *others: Any
) -> TokenizedMessage:
    digest, size, excerpt, sender = others
    tokens = packed.split("\n") if packed else []
    return TokenizedMessage(source, label, tokens, digest, size, Numbers(*numbers), excerpt, sender)


def tokenize(
    message: Message,
    source: str = "-",
    label: str | None = None,
    *,
    digest: bool = False,
    wanted: Wanted = TOKENS_ALONE,
    size: int = 0,
) -> TokenizedMessage:
    """Return a parsed message tokenized.

    digest: whether the ledger will be asked for it.  size: as `TokenizedMessage` has it.
    wanted: the numbers that the model counts, and the digest is of them too; an excerpt; lists.
    """
    texts: list[VisibleText] | None = None if wanted[:3] == TOKENS_ALONE[:3] else []
    perhaps: set[str] = set()
    tokens = message_tokens(message, texts, perhaps)
    numbers, excerpt = NO_NUMBERS, None
    if texts is not None:
        times = repeated_tokens(texts, bool(message.headers)) if wanted.times else {}
        if len(tokens) > TOKENS_LIMIT:  # some were left out
            times = {token: n for token, n in times.items() if token in tokens}
        numbers = Numbers(times, message_traits(message, texts) if wanted.traits else ())
        if wanted.excerpt:
            excerpt = excerpt_of(message, texts, wanted.excerpt)
    if perhaps:
        numbers = numbers._replace(possibly_hidden=frozenset(perhaps))
    known = ""
    if digest:
        decoded = (part.text for part in message.parts)
        known = digest_of(tokens, message.headers, *numbers[:2], texts=decoded)
    sender = wanted.senders.listed(message) if wanted.senders else None
    return TokenizedMessage(source, label, list(tokens), known, size, numbers, excerpt, sender)


class Tokenizing(NamedTuple):
    """How messages are tokenized: as `tokenize` takes it."""

    digest: bool = False
    wanted: Wanted = TOKENS_ALONE
    skips_empty: bool = False  # whether a mail with nothing in it is skipped


def tokenize_batch(batch: "Batch", how: Tokenizing) -> Iterator[TokenizedMessage | ReadingNote]:
    """Yield the messages of a batch tokenized, and in their place what is skipped."""
    for raw in batch if isinstance(batch, list) else batch.read():
        yield tokenize_raw(raw, how) if isinstance(raw, RawMessage) else raw


def tokenize_raw(raw: RawMessage, how: Tokenizing) -> TokenizedMessage | ReadingNote:
    """Return a message tokenized, or why it is skipped."""
    try:
        message = raw.message()
    except SourceError as error:
        return Skipped(raw.source, str(error).removeprefix(f"{raw.source}: "))
    if how.skips_empty and message.problem:
        return Skipped(raw.source, message.problem)
    if how.skips_empty and not isinstance(raw.content, str) and message.is_empty:
        return Skipped(raw.source, "the message is empty", is_error=False)
    size = len(raw.content) if isinstance(raw.content, bytes | str) else 0
    return tokenize(message, raw.source, raw.label, digest=how.digest, wanted=how.wanted, size=size)
