"""Models made smaller: pruned of their rarest tokens."""

from functools import partial
from pathlib import Path
from typing import NamedTuple

from nbspam.errors import Remedy
from nbspam.scoring.rules import rule_of
from nbspam.store.lookup import Lookup, Model, read_model
from nbspam.store.metadata import with_counts
from nbspam.store.model_file import replacing, write_lines
from nbspam.store.writing import write_atomically
from nbspam.tokens.kinds import is_host

# Fewer of the tokens than this share change verdicts.  Half of P1's and of P2's training messages
# learned, the other half judged; verdicts that change, and errors at 0.5 in place of 5 and of 9:
#   1 in 10   1.0 % (7 errors)    0.9 % (11)        1 in 100   15 % (107)   5.7 % (75)
#   1 in 20   1.7 % (13)          1.4 % (14)        1 in 500   53 % (128)    25 % (305)
#   1 in 50   4.9 % (17)          2.3 % (23)        1 token    unsure of nearly everything
LITTLE = 0.05


class Pruned(NamedTuple):
    """The size of a model before and after."""

    tokens_before: int
    tokens: int
    bytes_before: int
    bytes: int

    @property
    def is_little(self) -> bool:
        """Whether so few tokens are left that verdicts change."""
        return self.tokens < LITTLE * self.tokens_before


def prune_file(
    path: Path,
    output: Path | None = None,
    min_count: int = 1,
    max_tokens: int | None = None,
    replace_old: bool = False,
) -> Pruned:
    """Prune a model file, in place or into another one.

    Raises ModelError: it is not a model or is damaged, or the output exists or cannot be written.
    """
    Lookup(path).close()  # without a model there is nothing to lock
    old_may_go = replace_old or output is None
    with replacing(output or path, old_may_go, Remedy.REPLACE_OUTPUT) as place:
        before = read_model(path)
        size = path.stat().st_size
        after = prune(before, min_count, max_tokens)
        write_atomically(place, partial(write_lines, model=after))
        return Pruned(len(before.counts), len(after.counts), size, place.stat().st_size)


def prune(model: Model, min_count: int = 1, max_tokens: int | None = None) -> Model:
    """Return a model without the tokens that fewer than `min_count` messages have.

    max_tokens: how many tokens are kept at most: those that most messages have; of equally frequent
    ones the strongest, by weight; of equally strong ones the first by name.
    Messages, calibration and ledger stay as they are; the bias follows from the tokens.  The hosts
    that took mails in stay besides: how far headers are trusted must not depend on what was pruned.
    """
    counts = {
        token: row for token, row in model.counts.items() if sum(row) >= min_count or is_host(token)
    }
    if max_tokens is not None and len(counts) > max_tokens:
        rule = rule_of(model.metadata)
        rank = {
            row: (-sum(row), -max(map(abs, rule.contrasts(row)))) for row in set(counts.values())
        }
        words = [token for token in counts if not is_host(token)]
        words.sort(key=lambda token: (rank[counts[token]], token))
        kept = set(words[:max_tokens])
        counts = {token: row for token, row in counts.items() if token in kept or is_host(token)}
    return model._replace(metadata=with_counts(model.metadata, counts), counts=counts)
