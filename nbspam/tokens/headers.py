"""The tokens of a mail's header fields.

Three kinds, by how far they can be trusted to hold for other mail (measured in docs/tokens.md):

- the Subject is text, and has text's tokens with `subject:` before them;
- the fields that sender and mailer write (From, To, Reply-To, Message-ID, the mailer) give words
  and addresses with the field's name before them;
- all fields, From and To once more, show the way the mail came: they are the header channel
  (`header_channel.py`), the best evidence on one server's mail and ruinous on other mail.

Other filters' verdicts and our own are never tokens, nor what mail software writes into a message
after it has arrived: the same message must give the same tokens in every folder.
"""

import re

from nbspam.reading.header_fields import Header, decode_words
from nbspam.tokens.header_channel import channel_tokens
from nbspam.tokens.memo import Memo
from nbspam.tokens.text import add_host, different_words_of, text_tokens
from nbspam.tokens.unicode import undo_tricks

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
}
_ADDRESS = re.compile(r"@([a-z0-9.-]{1,255})")
_VALUE_LIMIT = 4_000  # characters of the fields of one name


def header_tokens(headers: list[Header]) -> set[str]:
    """Return the tokens of a mail's header fields."""
    tokens = channel_tokens(headers)
    values: dict[str, str] = {}
    for name, value in headers:
        if name in _FIELDS and len(before := values.get(name, "")) < _VALUE_LIMIT:
            values[name] = f"{before}\n{value}" if before else value
    for name, raw in values.items():
        if len(raw) > _VALUE_LIMIT:
            tokens.add("limit:header")
        if name == "subject":
            if "=?" in raw:
                tokens.add("mime:encoded-subject")
            text, tricks = undo_tricks(decode_words(raw[:_VALUE_LIMIT]))
            tokens |= tricks
            tokens.update(["subject:" + token for token in text_tokens(text)])
            continue
        field = f"{name}:{raw[:_VALUE_LIMIT]}"
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
