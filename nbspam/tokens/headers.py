"""The tokens of a mail's header fields.

Three kinds, by how well they apply to other mail (docs/research/ideas-tried.md):

- the Subject is text, and has a text's tokens with the prefix `subject:`;
- the fields that sender and mailer write (From, To, Reply-To, Message-ID, the mailer) give words
  and addresses with the field's name as prefix;
- the fields of CHANNEL_FIELDS, among them From and To again, show the mail's route: they are the
  header channel, the best evidence on one server's mail and ruinous on other mail.

Fields that mail software adds after arrival are not used, because the same message must give the
same tokens in every folder.
"""

import re
from itertools import chain, pairwise

from nbspam.patterns import lazy_pattern
from nbspam.reading.header_fields import Header, decode_words
from nbspam.reading.marks import TAG_LIMIT
from nbspam.tokens.disguises import undo_tricks
from nbspam.tokens.kinds import (
    COLLECTED_BY,
    COLLECTED_IN,
    OTHER_FIELD,
    RECEIVED,
    RECIPIENT,
    RETURN_PATH,
    SENDER,
)
from nbspam.tokens.text import Memo, add_host, different_words_of, text_tokens

_FIELDS = (
    {name: f"{name}:" for name in "subject from to reply-to message-id organization".split()}
    | {"cc": "to:", "x-mailer": "mailer:", "user-agent": "mailer:"}
    | dict.fromkeys(("x-priority", "x-msmail-priority", "importance"), "priority:")
)
_ADDRESS = re.compile(r"@([a-z0-9.-]{1,255})")
_FIELD_LIMIT = 4_000  # characters of the fields with the same name


# Tags that filters put before a Subject: "[SPAM]", "***** SPAM(12.3) *****", "{Virus?}", "Junk:".
_TAG_WORDS = "spam", "junk", "virus", "phishing", "bulk"
_TAG_WORD = f"(?:(?:anti)?{'|'.join(_TAG_WORDS)})"
_TAG = lazy_pattern(
    r"\s*(?:[\[({<][^\])}>]{0,20}(?<![\w-])WORD(?![\w-])[^\])}>]{0,20}[\])}>]+"
    r"|([*#=~_!+-])\1*[ a-z]{0,13}(?<![a-z])WORD(?!-?[a-z])[ a-z\d().?:!]{0,12}\1+"
    r"|WORD ?(?:\([^)]{0,20}\))?:)\s*".replace("WORD", _TAG_WORD),
    re.IGNORECASE,
)
_TAG_BEGINS = frozenset("[({<*#=~_!+-asjvpb")
_TAGS_LIMIT = 3
# Fields in which filters keep the Subject without the tag.
_OLD_SUBJECTS = frozenset(
    "old-subject x-old-subject original-subject x-original-subject x-spam-prev-subject "
    "x-asg-orig-subj".split()
)


def subject_of(headers: list[Header]) -> str:
    """Return the Subject, decoded, without the tags that filters put before it.

    If a filter kept the old Subject in another field, at most TAG_LIMIT characters before it are a
    tag.  A longer text is kept, because its sender may have added such a field to hide the text.
    """
    values = [value for name, value in headers if name == "subject"]
    subject = decode_words("\n".join(values)[:_FIELD_LIMIT])
    for name, value in headers:
        old = decode_words(value) if name in _OLD_SUBJECTS else ""
        if old and subject.endswith(old) and len(subject) - len(old) <= TAG_LIMIT:
            subject = old
    for _ in range(_TAGS_LIMIT):
        # Compiling the pattern takes 1 ms, and few subjects start like a tag and have a tag's word.
        lower = subject.lstrip().casefold()
        may_be = lower[:1] in _TAG_BEGINS and any(map(lower.__contains__, _TAG_WORDS))
        if may_be and (tag := _TAG.match(subject)):
            subject = subject[tag.end() :]
    return subject


def fields_of(headers: list[Header]) -> dict[str, str]:
    """Return the fields that are used, by name; several fields with the same name become lines."""
    lines: dict[str, list[str]] = {}
    for name, value in headers:
        if name in CHANNEL_FIELDS and (value or name == "received"):
            lines.setdefault(name, []).append(value)
    return {name: "\n".join(values) for name, values in sorted(lines.items())}


def header_tokens(headers: list[Header], subject: str | None = None) -> set[str]:
    """Return the tokens of a mail's header fields.  subject: as `subject_of` returns it."""
    values = fields_of(headers)
    tokens = channel_tokens(values)
    for name in values.keys() & _FIELDS.keys():
        raw = values[name]
        if len(raw) > _FIELD_LIMIT:
            tokens.add("limit:header")
        if name == "subject":
            if "=?" in raw:
                tokens.add("mime:encoded-subject")
            text, tricks = undo_tricks(subject_of(headers) if subject is None else subject)
            tokens |= tricks
            tokens.update(["subject:" + token for token in text_tokens(text)])
            continue
        field = f"{name}:{raw[:_FIELD_LIMIT]}"
        tokens.update(_tokens_of(field) if name == "message-id" else _field_tokens[field])
    return tokens


def _tokens_of(field: str) -> tuple[str, ...]:
    """Return the tokens of a field other than the Subject.  field: its name, a colon, its value."""
    name, _, value = field.partition(":")
    token_prefix = _FIELDS[name]
    value = undo_tricks(decode_words(value))[0].lower()
    tokens = {token_prefix + word for word in different_words_of(value)}
    if "@" in value:
        for host in set(_ADDRESS.findall(value)):
            add_host(f"{token_prefix}@", host, tokens)
    return tuple(tokens)


# Half of P2's From fields and two thirds of its To fields occurred in an earlier mail; a Message-ID
# does not occur again.
_field_tokens = Memo(_tokens_of, limit=1 << 12)


# The header channel: the route, the programs and the form by which a mail reached this server.
#
# All fields listed here except the Subject (which is text) are split into pieces of 3 to 30
# letters, digits, dots, hyphens and underscores, starting with a letter.  A piece gets one of five
# prefixes.  An IP address gives three tokens: the address, its /24 and its /16.  The name of a
# field with OTHER_FIELD's prefix is a token, too, if the field has a value.  Days, months, time
# zones, and random letters (queue and message ids) are not tokens.
#
# Nobody can list all fields that fetchers, filters and mail stores write after arrival, so this
# list has the fields that senders, mailers and lists write: those in IANA's registry that contain
# text and are written before arrival, and X- fields chosen on the training halves
# (docs/research/ideas-tried.md).
_OTHER = OTHER_FIELD.prefix
_WRITTEN_BEFORE = (
    "approved auto-submitted bcc comment comments content-base content-class content-description "
    "content-disposition content-id content-language content-location content-transfer-encoding "
    "content-type disposition-notification-to encoding error-to errors-to expires feedback-id "
    "in-reply-to keywords list-archive list-help list-id list-owner list-post list-subscribe "
    "list-unsubscribe list-unsubscribe-post mail-followup-to mailing-list message-type "
    "mime-version newsgroups old-return-path precedence priority references reply-by resent-cc "
    "resent-from resent-message-id resent-reply-to resent-sender resent-to return-receipt-to "
    "sender sensitivity thread-topic x-accept-language x-authentication-warning x-beenthere "
    "x-complaints-to x-loop x-mailing-list x-mailman-version x-mime-autoconverted x-mimeole "
    "x-original-date x-originalarrivaltime x-originating-email x-originating-ip x-sender"
).split()
CHANNEL_FIELDS = dict.fromkeys([*_FIELDS, *_WRITTEN_BEFORE], _OTHER) | {
    "subject": "",
    "received": RECEIVED.prefix,
    "return-path": RETURN_PATH.prefix,
    "from": SENDER.prefix,
    "to": RECIPIENT.prefix,
    "cc": RECIPIENT.prefix,
}
# Fields are split in this order until there are enough tokens.  A long list of recipients comes
# late, so it cannot crowd out the relays.
_SPLIT_ORDER = tuple(
    kind.prefix for kind in (RECEIVED, RETURN_PATH, SENDER, OTHER_FIELD, RECIPIENT)
)
# Only the host after the @ of an id is a token, because the part before the @ is always new.
_IDS = frozenset({"message-id", "in-reply-to", "references", "content-id", "resent-message-id"})
_AFTER_HOST = re.compile("[>\n]")
_TIMES = frozenset(
    "mon tue wed thu fri sat sun jan feb mar apr may jun jul aug sep oct nov dec est edt cst cdt "
    "mst mdt pst pdt gmt utc bst ist cet cest met mest eet eest jst kst".split()
)
_CHANNEL_LIMIT = 16_000  # characters of the fields of one prefix
_TOKENS_LIMIT = 1_000  # tokens of a message, after which no more text is split
_SHORTEST, _LONGEST = 3, 30  # characters of a piece
_DIGITS_LIMIT = 4  # digits in a piece without a dot; more digits show a queue id or the like
_ASCII = map(chr, range(128))
_KEEP_TABLE = (
    bytes(ord(c.lower()) if c.isalnum() or c in "._-" else 32 for c in _ASCII) + b" " * 128
)
_NO_DIGITS = str.maketrans("", "", "0123456789")
_HOST_LIMIT = 80
_COMMENT = re.compile(r"\([^()]*\)")
_ADDRESS_IN_BRACKETS = re.compile(r"<[^<>]*>")
_RECEIVED_LIMIT = 1_000  # characters of a Received line in which its host is looked for


def channel_tokens(values: dict[str, str]) -> set[str]:
    """Return the tokens of a mail's header channel, including the collecting host's.

    values: as `fields_of` returns them.  Fields with the same prefix are joined, so that there are
    five texts to split however many fields there are: 59 µs a mail instead of 114 µs.
    """
    texts: dict[str, list[str]] = {prefix: [] for prefix in _SPLIT_ORDER}
    host = collecting_host(values.get("received", ""))
    tokens = {COLLECTED_BY.prefix + host}
    if host != "-":
        tokens.add(COLLECTED_IN.prefix + domain_of(host))
    for name, value in values.items():
        prefix = CHANNEL_FIELDS[name]
        if name in _IDS:
            value = " ".join([_AFTER_HOST.split(part, 1)[0] for part in value.split("@")[1:]])
        if prefix == _OTHER:
            tokens.add(f"{_OTHER}{name}:")
        if prefix:
            texts[prefix].append(value)
    for prefix, lines in texts.items():
        text = "\n".join(lines)
        if len(tokens) < _TOKENS_LIMIT:
            data = text[:_CHANNEL_LIMIT].encode("ascii", "replace").translate(_KEEP_TABLE)
            values_of_pieces = map(_values_of.__getitem__, set(data.decode("ascii").split()))
            tokens.update([prefix + value for value in chain.from_iterable(values_of_pieces)])
        if len(tokens) >= _TOKENS_LIMIT or len(text) > _CHANNEL_LIMIT:
            tokens.add("limit:header")
    return tokens


def _values(piece: str) -> tuple[str, ...]:
    """Return a piece's values: a word, or an address and its networks; () for ids and numbers."""
    piece = piece.strip("._-")
    if not _SHORTEST <= len(piece) <= _LONGEST or piece in _TIMES:
        return ()
    if piece[0].isalpha():
        is_word = piece.isalpha() or "." in piece
        if is_word or len(piece) - len(piece.translate(_NO_DIGITS)) <= _DIGITS_LIMIT:
            return (piece,)
    elif piece.count(".") == 3 and piece.replace(".", "").isdecimal():  # an IP address
        net = piece.rpartition(".")[0]
        return piece, net, net.rpartition(".")[0]
    return ()


# 70 % of the pieces occurred before: 46 µs a mail instead of 61 µs.
_values_of = Memo(_values, limit=1 << 12)


def collecting_host(received: str) -> str:
    """Return the server that received the message, "-" if no field names it.

    received: the Received lines, the topmost first.  The host follows the last `by` of the topmost
    line.  Skips text that the sender can write: addresses, which may end a comment early; comments;
    the name in the greeting (HELO), which is before that `by`.  An IP address is replaced by its
    network, because some providers use a new address for nearly each mail.
    """
    line = received.partition("\n")[0][:_RECEIVED_LIMIT].lower()
    line = _ADDRESS_IN_BRACKETS.sub(" ", line)
    while (shorter := _COMMENT.sub(" ", line)) != line:
        line = shorter
    words = line.split()
    if words[:1] == ["from"]:
        del words[:2]
    taken_by = [following for word, following in pairwise(words) if word == "by"]
    host = taken_by[-1].strip("()[]<>;,").rstrip(".")[:_HOST_LIMIT] if taken_by else ""
    if not (host.isascii() and host.isprintable() and host[:1].isalnum()):
        return "-"
    if ":" in host:
        return ":".join(host.split(":")[:2])
    return ".".join(host.split(".")[:2]) if host.replace(".", "").isdecimal() else host


# A country with one of these labels is not a domain yet: `co.uk`.
_BELOW_COUNTRIES = frozenset("ac co com edu gov ne net or org".split())


def domain_of(host: str) -> str:
    """Return the domain of a host from `collecting_host`; a network is its own domain."""
    labels = host.split(".")
    if labels[-1].isdecimal() or ":" in host:
        return host
    is_deeper = len(labels[-1]) == 2 and labels[-2:-1] and labels[-2] in _BELOW_COUNTRIES
    return ".".join(labels[-3 if is_deeper else -2 :])
