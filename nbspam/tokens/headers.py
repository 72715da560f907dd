"""The tokens of a mail's header fields.

Three kinds, by how far they can be trusted to hold for other mail (measured in docs/tokens.md):

- the Subject is text, and has text's tokens with `subject:` before them;
- the fields that sender and mailer write (From, To, Reply-To, Message-ID, the mailer, the type of
  the content) give words and addresses with the field's name before them;
- the rest (relays, dates, ids, unusual fields) says above all where a mail was collected: superb on
  one server's mail, ruinous on other mail.  Its tokens begin with `trace:`, and the evidence bounds
  what they may bring, all together.

Other filters' verdicts and our own are never tokens, nor what mail software writes into a message
after it has arrived: the same message must give the same tokens in every folder.
"""

import re

from nbspam.reading.message import Header, decode_words
from nbspam.tokens.kinds import HEADER, prefix
from nbspam.tokens.memo import Memo
from nbspam.tokens.text import WORD_LIMIT, add_host, different_words_of, text_tokens
from nbspam.tokens.unicode import undo_tricks

_HEADER = prefix(HEADER)

_FIELDS = {
    "subject": "subject:",
    "from": "from:",
    "to": "to:",
    "cc": "to:",
    "reply-to": "reply-to:",
    "x-mailer": "mailer:",
    "user-agent": "mailer:",
    "message-id": "message-id:",
    "x-priority": "priority:",
    "x-msmail-priority": "priority:",
    "importance": "priority:",
    "organization": "organization:",
    "mime-version": "mime-version:",
    "content-type": "content:",
    "content-transfer-encoding": "content:",
}
# Verdicts and labels, of filters and of the reader's own software; signatures are random letters.
_NEVER = frozenset(
    "status x-status x-keywords x-label x-uid x-uidl x-mozilla-status x-mozilla-status2 "
    "x-mozilla-keys x-gmail-labels x-evolution x-evolution-source content-length lines x-bogosity "
    "x-virus-scanned x-virus-status x-text-classification x-scl x-sieve x-folder x-imapbase "
    "authentication-results received-spf dkim-signature domainkey-signature "
    "x-google-dkim-signature x-gm-message-state x-google-smtp-source x-received list-id list-post "
    "list-help list-subscribe list-unsubscribe list-archive list-owner sender x-beenthere "
    "errors-to x-mailman-version mailing-list x-mailing-list precedence".split()
)
_NEVER_BEGINS = (
    "x-spam", "x-nbspam", "x-crm114", "x-dspam", "x-rspamd", "x-osbf", "x-junk", "x-ham",
    "x-barracuda", "x-proofpoint", "x-mailscanner", "x-pyzor", "x-razor", "x-antispam",
    "x-microsoft-antispam", "x-forefront-antispam", "x-ms-exchange", "x-ironport", "x-amavis",
    "x-pstn", "x-assp", "x-habeas", "x-antiabuse", "x-gmane", "arc-",
)  # fmt: skip
_ADDRESS = re.compile(r"@([a-z0-9.-]{1,255})")
_VALUE_LIMIT = 4_000  # characters of the fields of one name
_HEADER_LIMIT = 300  # tokens of the trace fields of one message


def header_tokens(headers: list[Header]) -> set[str]:
    """Return the tokens of a mail's header fields."""
    tokens: set[str] = set()
    trace: set[str] = set()
    values: dict[str, str] = {}
    for name, value in headers:
        if _prefixes[name]:  # ten Received lines are one long one, and one search
            values[name] = f"{values[name]}\n{value}" if name in values else value
    for name, raw in values.items():
        if name == "subject":
            if "=?" in raw:
                tokens.add("mime:encoded-subject")
            text, tricks = undo_tricks(decode_words(raw[:_VALUE_LIMIT]))
            tokens |= tricks
            tokens.update(["subject:" + token for token in text_tokens(text)])
            continue
        is_header = _prefixes[name].startswith(_HEADER)
        if is_header and len(trace) >= _HEADER_LIMIT:
            continue
        field = f"{name}:{raw[:_VALUE_LIMIT]}"
        (trace if is_header else tokens).update(
            _tokens_of(field) if name in _UNIQUE else _field_tokens[field]
        )
    tokens |= trace
    return tokens


def _prefix_of(name: str) -> str:
    """Return what the tokens of a field begin with; empty when it is to have none."""
    if begins := _FIELDS.get(name):
        return begins
    if name in _NEVER or name.startswith(_NEVER_BEGINS):
        return ""
    return f"{_HEADER}{name[:WORD_LIMIT]}:"


def is_header_field(name: str) -> bool:
    """Return whether a field, its name in lower case, is one of those that have `trace:` tokens."""
    return name != "subject" and _prefixes[name].startswith(_HEADER)


def _tokens_of(field: str) -> tuple[str, ...]:
    """Return the tokens of a field but the Subject.  field: its name, a colon, its value."""
    name, _, value = field.partition(":")
    begins = _prefixes[name]
    if begins.startswith(_HEADER):
        return begins, *[begins + word for word in different_words_of(value.lower())]
    value = undo_tricks(decode_words(value))[0].lower()
    tokens = {begins + word for word in different_words_of(value)}
    if "@" in value:
        for host in set(_ADDRESS.findall(value)):
            add_host(f"{begins}@", host, tokens)
    return tuple(tokens)


_prefixes = Memo(_prefix_of, limit=1 << 10)
# Of P2's mails half of the From fields, two in three To and nine in ten Content-Type stood in one
# before: 120 µs a mail in place of 140.
_field_tokens = Memo(_tokens_of, limit=1 << 12)
# These stand in no other mail and would only fill the memo.
_UNIQUE = frozenset({"received", "date", "message-id", "references", "in-reply-to"})
