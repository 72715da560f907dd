"""A message's tokens, from all its parts."""

from nbspam.reading.message import Message, decode_words
from nbspam.tokens.html import html_text
from nbspam.tokens.text import text_tokens

# Stored in the model: counts taken under other rules do not fit this program's tokens.
RULES = 1

# Header fields whose words are tokens, and the prefix that keeps them apart from the body's.
_FIELDS = {"subject": "subject:", "from": "from:", "reply-to": "reply-to:"}


def message_tokens(message: Message) -> set[str]:
    """Return the set of tokens of a message."""
    tokens: set[str] = set()
    for name, value in message.headers:
        if prefix := _FIELDS.get(name):
            tokens.update([prefix + token for token in text_tokens(decode_words(value))])
    for part in message.parts:
        text = part.text
        if not text:
            continue
        if part.content_type == "text/html":
            text = html_text(text)
        tokens |= text_tokens(text)
    return tokens
