"""Changes of a model file without learning: new cut-offs, and the removal of rare tokens."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from nbspam.errors import Remedy
from nbspam.scoring.rules import scoring_rule
from nbspam.scoring.verdict import CutOffs
from nbspam.store import model_file
from nbspam.store.lookup import Lookup, Model, read_model
from nbspam.store.metadata import Metadata, with_counts
from nbspam.store.model_file import updating_model
from nbspam.store.writing import write_atomically
from nbspam.tokens.kinds import is_collector


def set_cut_offs(path: Path, make_cut_offs: Callable[[Metadata], CutOffs]) -> CutOffs:
    """Store cut-offs in the model at `path`, and return them.

    Raises ModelError: the model is missing, damaged, or cannot be written.
    """
    Lookup(path).close()  # fails here, before locking, if the model is missing
    with updating_model(path) as (old, put):
        assert old is not None
        cut_offs = make_cut_offs(old.metadata)
        metadata = cut_offs.applied_to(old.metadata)
        put(lambda file: model_file.splice(file, old, metadata, {}, {}))
    return cut_offs


# Below this share of kept tokens, 2 in 100 verdicts or more change.  Half of P1's and P2's training
# messages were learned, and the other half classified.  Changed verdicts, with the errors at 0.5 in
# parentheses; the whole models make 5 errors in P1 and 9 in P2:
#
#     tokens kept  P1             P2
#     1 in 10      1.0 % (7)      0.9 % (11)
#     1 in 20      1.7 % (13)     1.4 % (14)
#     1 in 50      4.9 % (17)     2.3 % (23)
#     1 in 100     15 % (107)     5.7 % (75)
#     1 in 500     53 % (128)     25 % (305)
MIN_TOKEN_SHARE = 0.05


class Pruned(NamedTuple):
    """The size of a model before and after."""

    tokens_before: int
    tokens: int
    bytes_before: int
    bytes: int

    @property
    def is_little(self) -> bool:
        """Whether so few tokens are left that verdicts change noticeably."""
        return self.tokens < MIN_TOKEN_SHARE * self.tokens_before


def prune_file(
    path: Path,
    output: Path | None = None,
    min_count: int = 1,
    max_tokens: int | None = None,
    replace_old: bool = False,
) -> Pruned:
    """Prune a model file, in place or into another one.

    Raises ModelError if the file is not a model or is damaged, or the output exists or cannot be
    written.
    """
    Lookup(path).close()  # fails here, before locking, if the model is missing
    may_overwrite = replace_old or output is None
    with model_file.locked_for_replacement(
        output or path, may_overwrite, Remedy.REPLACE_OUTPUT
    ) as place:
        before = read_model(path)
        size = path.stat().st_size
        after = prune(before, min_count, max_tokens)
        write_atomically(place, partial(model_file.write_lines, model=after))
        return Pruned(len(before.counts), len(after.counts), size, place.stat().st_size)


def prune(model: Model, min_count: int = 1, max_tokens: int | None = None) -> Model:
    """Return a model without the tokens that fewer than `min_count` messages have.

    max_tokens: the maximal number of tokens to keep.  Frequent tokens are kept before rare ones,
    then strong before weak ones, then in alphabetical order.
    Messages, calibration and ledger stay as they are; the bias is computed anew from the kept
    tokens.  Tokens of the hosts that received mails, and of their domains, are always kept, because
    trust in headers and in mail from elsewhere must not depend on pruning.
    """
    hosts = {token: row for token, row in model.counts.items() if is_collector(token)}
    words = {t: row for t, row in model.counts.items() if t not in hosts and sum(row) >= min_count}
    if max_tokens is not None and len(words) > max_tokens:
        rule = scoring_rule(model.metadata)
        strength = {
            row: max(map(abs, rule.one_vs_rest_weights(row))) for row in set(words.values())
        }
        rank = {row: (-sum(row), -nats) for row, nats in strength.items()}
        strongest = sorted(words, key=lambda token: (rank[words[token]], token))
        words = {token: words[token] for token in strongest[:max_tokens]}
    counts = words | hosts
    return model._replace(metadata=with_counts(model.metadata, counts), counts=counts)
