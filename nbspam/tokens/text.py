"""The tokens of plain text: words, numbers, money, links, punctuation and capitals.

A token is a word in lower case, or `kind:value`; no word holds a colon, so the two never meet.
Each kind's worth, measured on P1 (errors of 1,674 by leave-one-out, alpha 0.1; all kinds: 10), is
in docs/tokens.md, which benchmarks/token_kinds.py prints.
"""

import re

# Letters in any script.  The vowel signs and tone marks of many scripts are no letters to Python's
# \w, and words would fall apart at them; these are the blocks' ranges, not every single mark.
_INDIC = "".join(
    f"{chr(b)}-{chr(b + 3)}{chr(b + 0x3A)}-{chr(b + 0x57)}{chr(b + 0x62)}{chr(b + 0x63)}"
    for b in range(0x900, 0xE00, 0x80)  # Devanagari to Sinhala share one plan
)
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u0610-\u061a\u064b-\u065f\u0670"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3"
) + _INDIC
_LETTER = rf"(?:[^\W\d_]|[{_MARKS}])"
_ASCII_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
_ANY_WORD = re.compile(rf"[^\W\d_]{_LETTER}*(?:['’]{_LETTER}+)*")
_NUMBER = re.compile(r"\d+")
_MONEY = re.compile(r"[$£€¥₹]\s?\d[\d.,]*|\d[\d.,]*\s?[$£€¥₹%]")
_CURRENCY = re.compile(r"[$£€¥₹%]")
_LINK = re.compile(r"(?:https?://|www\.)[^\s<>\"'()\[\]]{1,500}")
_HOST = re.compile(r"(?:https?://)?(?:[^/@?#]{0,100}@)?([^/:?#]{1,255})")
_PUNCTUATION = re.compile(r"[!?]+|\.{2,}|\*{2,}|#{2,}|={2,}|~{2,}|\+{2,}|&{2,}|\${2,}|£{2,}|-{2,}")
_CAPITALS = re.compile(r"[^\W\d_a-zß-öø-ÿ]{2,}(?![^\W\d_])")

# Longer runs are random letters, encoded data, or text without spaces: no two messages share them.
_WORD_LIMIT = 30


def text_tokens(text: str) -> set[str]:
    """Return the tokens of a text."""
    lower = text.lower()
    word = _ASCII_WORD if lower.isascii() else _ANY_WORD
    tokens = {w for w in set(word.findall(lower)) if len(w) <= _WORD_LIMIT}
    # How many digits, not which: phone numbers and codes change with every campaign.
    tokens.update([f"num:{min(len(n), 12)}" for n in set(_NUMBER.findall(lower))])
    if _CURRENCY.search(lower):
        for amount in set(_MONEY.findall(lower)):
            sign = _CURRENCY.search(amount)
            digits = sum(map(str.isdigit, amount))
            tokens.add(f"money:{sign[0]}{min(digits, 9)}" if sign else "money:")
            tokens.add("money:")
    if "://" in lower or "www." in lower:
        for link in set(_LINK.findall(lower)):
            tokens.add("link:")
            tokens.update(host_tokens(link))
    tokens.update([f"punct:{run[:3]}" for run in set(_PUNCTUATION.findall(text))])
    capitals = _CAPITALS.findall(text)
    if capitals:
        tokens.add(f"caps:{min(len(capitals).bit_length(), 4)}")
    return tokens


def host_tokens(link: str) -> list[str]:
    """Return the host of a link and each of its parent domains, as tokens."""
    found = _HOST.match(link)
    if not found:
        return []
    labels = [label for label in found[1].rstrip(".").split(".") if label]
    if labels and all(label.isdigit() for label in labels):
        return ["link:ip"]
    return [f"host:{'.'.join(labels[i:])}" for i in range(len(labels))]
