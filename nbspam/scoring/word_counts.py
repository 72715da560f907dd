"""What a model has counted of single tokens, looked up in its file."""

from collections.abc import Iterable
from typing import NamedTuple

from nbspam.bayes.event_model import Row
from nbspam.scoring.rule import rule_of
from nbspam.store.lookup import Lookup
from nbspam.tokens.kinds import is_host
from nbspam.tokens.single_word import of_other_kinds, typed_tokens


class WordCount(NamedTuple):
    """A token that was asked for."""

    typed: str
    token: str  # as the tokenizer writes it
    counts: Row | None  # per class, the messages that have it, or how often they do; None: unknown
    weights: tuple[float, ...] | None  # for each class against the others, in nats; None: it is
    # unknown, or a host that took mails in, which has no weight
    other_kinds: tuple[str, ...]  # of an unknown token: what the model knows with its value


def word_counts(lookup: Lookup, typed: Iterable[str]) -> list[WordCount]:
    """Return what the model knows of the tokens that typed words stand for; raises ModelError."""
    asked = [(word, token) for word in typed for token in typed_tokens(word)]
    kinds = {token: of_other_kinds(token) for _, token in asked}
    known = lookup.counts({*kinds, *(other for others in kinds.values() for other in others)})
    rule = rule_of(lookup.metadata)
    found = []
    for word, token in asked:
        row = known.get(token)
        others = tuple(other for other in kinds[token] if other in known) if row is None else ()
        weights = None
        if row is not None and not (is_host(token) and rule.is_calibrated):
            weights = tuple(rule.contrasts(row))
        found.append(WordCount(word, token, row, weights, others))
    return found
