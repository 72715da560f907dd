"""The tokens of a mail's header fields.

Three kinds, by how far they can be trusted to hold for other mail (docs/research/tokens.md):

- the Subject is text, and has text's tokens with `subject:` before them;
- the fields that sender and mailer write (From, To, Reply-To, Message-ID, the mailer) give words
  and addresses with the field's name before them;
- all fields, From and To once more, show the way the mail came: they are the header channel, the
  best evidence on one server's mail and ruinous on other mail.

Other filters' verdicts and our own are never tokens, nor what mail software writes into a message
after it has arrived: the same message must give the same tokens in every folder.
"""

import re
from itertools import pairwise

from nbspam.reading.header_fields import Header, decode_words
from nbspam.tokens.kinds import COLLECTED_BY, OTHER_FIELD, RECEIVED, RECIPIENT, RETURN_PATH, SENDER
from nbspam.tokens.text import Memo, add_host, different_words_of, text_tokens, undo_tricks

_FIELDS = (
    {name: f"{name}:" for name in "subject from to reply-to message-id organization".split()}
    | {"cc": "to:", "x-mailer": "mailer:", "user-agent": "mailer:"}
    | dict.fromkeys(("x-priority", "x-msmail-priority", "importance"), "priority:")
)
_ADDRESS = re.compile(r"@([a-z0-9.-]{1,255})")
_FIELD_LIMIT = 4_000  # characters of the fields of one name


def header_tokens(headers: list[Header]) -> set[str]:
    """Return the tokens of a mail's header fields."""
    tokens = channel_tokens(headers)
    values: dict[str, str] = {}
    for name, value in headers:
        if name in _FIELDS and len(before := values.get(name, "")) < _FIELD_LIMIT:
            values[name] = f"{before}\n{value}" if before else value
    for name, raw in values.items():
        if len(raw) > _FIELD_LIMIT:
            tokens.add("limit:header")
        if name == "subject":
            if "=?" in raw:
                tokens.add("mime:encoded-subject")
            text, tricks = undo_tricks(decode_words(raw[:_FIELD_LIMIT]))
            tokens |= tricks
            tokens.update(["subject:" + token for token in text_tokens(text)])
            continue
        field = f"{name}:{raw[:_FIELD_LIMIT]}"
        tokens.update(_tokens_of(field) if name == "message-id" else _field_tokens[field])
    return tokens


def _tokens_of(field: str) -> tuple[str, ...]:
    """Return the tokens of a field but the Subject.  field: its name, a colon, its value."""
    name, _, value = field.partition(":")
    begins = _FIELDS[name]
    value = undo_tricks(decode_words(value))[0].lower()
    tokens = {begins + word for word in different_words_of(value)}
    if "@" in value:
        for host in set(_ADDRESS.findall(value)):
            add_host(f"{begins}@", host, tokens)
    return tuple(tokens)


# Of P2's mails half of the From fields and two in three To stood in one before.
# A Message-ID stands in no other mail.
_field_tokens = Memo(_tokens_of, limit=1 << 12)


# The header channel: by whom, through what and in what shape a mail came to this server.
#
# Every field but the Subject (which is text) and the Date, mailing lists' fields included, cut
# plainly: pieces of 3 to 30 letters, digits, dots, hyphens and underscores that begin with a
# letter, with one of five prefixes; IP addresses whole, as /24 and as /16; and the name of a field
# that has a value.  Not tokens: other filters' verdicts, what mail software writes after arrival,
# days, months, zones, and random letters (queue and message ids).

# Verdicts and labels of the reader's own software and of filters; signatures are random letters.
NEVER = frozenset(
    "status x-status x-keywords x-label x-uid x-uidl x-mozilla-status x-mozilla-status2 "
    "x-mozilla-keys x-gmail-labels x-evolution x-evolution-source content-length lines x-bogosity "
    "x-text-classification x-scl x-sieve x-folder x-imapbase x-uuid authentication-results "
    "received-spf dkim-signature domainkey-signature x-google-dkim-signature x-gm-message-state "
    "x-google-smtp-source x-received thread-index".split()
)
NEVER_BEGINS = (
    "x-nbspam", "x-crm114", "x-dspam", "x-rspamd", "x-osbf", "x-junk", "x-ham", "x-barracuda",
    "x-proofpoint", "x-mailscanner", "x-pyzor", "x-razor", "x-microsoft-antispam",
    "x-forefront-antispam", "x-ms-exchange", "x-ironport", "x-amavis", "x-pstn", "x-assp",
    "x-habeas", "x-antiabuse", "x-gmane", "arc-",
)  # fmt: skip
_PREFIXES = {
    "subject": "",
    "date": "",
    "received": RECEIVED.prefix,
    "return-path": RETURN_PATH.prefix,
    "from": SENDER.prefix,
    "to": RECIPIENT.prefix,
    "cc": RECIPIENT.prefix,
}
_OTHER = OTHER_FIELD.prefix
# In this order they are cut, until there are enough: a list of recipients must not crowd out the
# relays.
_ORDER = tuple(kind.prefix for kind in (RECEIVED, RETURN_PATH, SENDER, OTHER_FIELD, RECIPIENT))
# Of an id only the host behind the @ means anything; what stands before it is new each time.
_IDS = frozenset({"message-id", "in-reply-to", "references", "content-id", "resent-message-id"})
_TIMES = frozenset(
    "mon tue wed thu fri sat sun jan feb mar apr may jun jul aug sep oct nov dec est edt cst cdt "
    "mst mdt pst pdt gmt utc bst ist cet cest met mest eet eest jst kst".split()
)
_CHANNEL_LIMIT = 16_000  # characters of the fields of one prefix
_TOKENS_LIMIT = 1_000  # of one message, from which on no further text is cut
_NAME_LIMIT = 30
_SHORTEST, _LONGEST = 3, 30  # characters of a piece
_DIGITS_LIMIT = 4  # in a piece without a dot: more are a queue id or the like
_KEPT = (
    bytes(
        ord(chr(byte).lower()) if chr(byte).isalnum() or chr(byte) in "._-" else ord(" ")
        for byte in range(128)
    )
    + b" " * 128
)
_NO_DIGITS = str.maketrans("", "", "0123456789")
_HOST_LIMIT = 80
_COMMENT = re.compile(r"\([^()]*\)")
_RECEIVED_LIMIT = 1_000  # characters of a Received line in which its host is looked for


def channel_tokens(headers: list[Header]) -> set[str]:
    """Return the tokens of the header channel of a mail, the collecting host's among them.

    Fields are joined by prefix, so that there are five texts to cut, however many fields there are:
    59 microseconds a mail, where one text a field took 114.
    """
    texts: dict[str, str] = {}
    tokens = {COLLECTED_BY.prefix + collecting_host(headers)}
    for name, value in headers:
        prefix = _prefix_of[name]
        if not (prefix and value):
            continue
        if name in _IDS:
            value = " ".join([part.partition(">")[0] for part in value.split("@")[1:]])
        if prefix == _OTHER and len(tokens) < _TOKENS_LIMIT:
            tokens.add(f"{_OTHER}{name[:_NAME_LIMIT]}:")
        before = texts.get(prefix, "")
        if len(before) < _CHANNEL_LIMIT:  # or 100,000 fields would be copied 100,000 times
            texts[prefix] = f"{before}\n{value}" if before else value
    for prefix in _ORDER:
        if prefix in texts and len(tokens) < _TOKENS_LIMIT:
            add_pieces(prefix, texts[prefix], tokens)
    if len(tokens) >= _TOKENS_LIMIT or max(map(len, texts.values()), default=0) > _CHANNEL_LIMIT:
        tokens.add("limit:header")
    return tokens


def add_pieces(prefix: str, text: str, tokens: set[str]) -> None:
    """Cut a text of the header channel and add its tokens."""
    data = text[:_CHANNEL_LIMIT].encode("ascii", "replace").translate(_KEPT)
    pieces = set(data.decode("ascii").split())
    tokens.update([prefix + value for piece in pieces for value in _values_of[piece]])


def _values(piece: str) -> tuple[str, ...]:
    """Return what a piece stands for: a word or an address; others are ids and numbers."""
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


# Seven pieces in ten were met before: 46 µs a mail in place of 61.
_values_of = Memo(_values, limit=1 << 12)


def _prefix(name: str) -> str:
    """Return what the tokens of a field begin with; empty when it is to have none."""
    if name in NEVER or name.startswith(NEVER_BEGINS) or "spam" in name or "virus" in name:
        return ""
    return _PREFIXES.get(name, _OTHER)


_prefix_of = Memo(_prefix, limit=1 << 10)


def has_name_token(name: str) -> bool:
    """Return whether the name of a field, in lower case, is a token itself."""
    return _prefix_of[name] == _OTHER


def collecting_host(headers: list[Header]) -> str:
    """Return the server that received the message, "-" if no field says so.

    It is the last `by` host of the topmost Received line.  What its sender can write there is
    passed over: comments, and the name with which it greets (HELO), which comes before that `by`.
    An address stands for its network: some providers have a new one for nearly each mail.
    """
    line = next((value for name, value in headers if name == "received"), "")
    line = line[:_RECEIVED_LIMIT].lower()
    while (without := _COMMENT.sub(" ", line)) != line:
        line = without
    words = line.split()
    if words[:1] == ["from"]:
        del words[:2]
    taken_by = [following for word, following in pairwise(words) if word == "by"]
    if not taken_by:
        return "-"
    host = taken_by[-1].strip("()[]<>;,").rstrip(".")[:_HOST_LIMIT]
    if not (host.isascii() and host.isprintable() and host[:1].isalnum()):
        return "-"
    if ":" in host:
        return ":".join(host.split(":")[:2])
    return ".".join(host.split(".")[:2]) if host.replace(".", "").isdecimal() else host
