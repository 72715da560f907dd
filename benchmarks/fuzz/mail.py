"""Any bytes are a message with tokens: they parse, and every token can be written and printed.

PYTHONPATH=. python benchmarks/fuzz/mail.py CORPUS -max_total_time=600
"""

import io
from pathlib import Path

import atheris
from budget import fuzz  # beside this file

atheris.enabled_hooks.add("str")  # what a text is compared with guides the search
with atheris.instrument_imports(include=["nbspam"]):
    from nbspam.reading import mail as mbox
    from nbspam.reading.message import is_mail, parse, parse_text
    from nbspam.reading.mime import PARTS_LIMIT, TEXT_LIMIT
    from nbspam.store.lookup import token_key
    from nbspam.tokens.tokenized import message_tokens

LONGEST = 200  # characters of a token
ROOT = Path(__file__).parents[2]
SEEDS = [
    *(ROOT / "sample_data").rglob("*.eml"),
    *(ROOT / "tests" / "golden").rglob("*.eml"),
    *(ROOT / "tests" / "golden").rglob("*.txt"),
]
HTML = b"From: a@example.org\nContent-Type: text/html\n\n"


def mail(data: bytes) -> None:
    """Read the bytes as a mail, as the body of an HTML mail, a table's row, and an mbox."""
    is_mail(data)
    for message in (parse(data), parse(HTML + data), parse_text(data.decode("utf-8", "replace"))):
        assert len(message.parts) <= PARTS_LIMIT
        assert sum(len(part.text) for part in message.parts) <= TEXT_LIMIT
        for token in message_tokens(message):
            assert type(token) is str
            assert 0 < len(token) <= LONGEST, ascii(token)
            assert not any(c < " " or "\x7f" <= c <= "\x9f" for c in token), ascii(token)
            token_key(token).encode()
    if mbox.is_mbox(data):
        list(mbox.split_mbox(io.BytesIO(data), 1 << 14))


if __name__ == "__main__":
    fuzz(mail, (path.read_bytes() for path in SEEDS))
