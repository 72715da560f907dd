"""How often each token occurs in a message, for event models that count it.

What the text has again and again counts again: words, bigrams, links, signs and, of a short text,
words as written and trigrams, over all parts.  What is said of the message once (a trick, its
parts, its header fields) counts once.
"""

from collections import Counter
from collections.abc import Sequence

from nbspam.tokens import text as of_text
from nbspam.tokens.tokenizer import add_target
from nbspam.tokens.visible_text import VisibleText


def repeated_tokens(texts: Sequence[VisibleText], is_mail: bool) -> dict[str, int]:
    """Return the tokens that occur more than once in a message's texts, and how often."""
    counted: Counter[str] = Counter()
    for part in texts:
        for link in part.targets or ():
            target: set[str] = set()
            add_target(link, target)
            counted.update(target)
        counted.update(of_text.every_token(part.text))
        if not is_mail:
            counted.update(of_text.short_text_tokens(part.text.lstrip()[: of_text.SHORT]))
    return {token: n for token, n in counted.items() if n > 1}
