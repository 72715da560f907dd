"""Judging an account's mail with the ledger at hand: what was taught as ham is not moved as spam.

A message is looked up where it is tokenized, so that it is tokenized once, and its tokens go to no
other process; and only if its verdict is spam.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from nbspam.filter import ClassifiedMessage, Filter
from nbspam.reading.raw_message import RawMessage
from nbspam.tokens.tokenized import TokenizedMessage, Tokenizing, tokenize_batch
from nbspam.workers import Executor, in_batches

if TYPE_CHECKING:
    from nbspam.bayes.token_weight import Row
    from nbspam.tokens.tokenized import Batch

TAUGHT_AS_HAM = "taught as ham"  # the reason beside a verdict of spam on what is not to be moved


def classified_with_ledger(
    raws: Iterable[RawMessage], where: Executor, spam_filter: Filter
) -> Iterator[ClassifiedMessage]:
    """Yield the verdict on each message, in order; its reason may be TAUGHT_AS_HAM.

    Raises NbspamError when a process dies, ModelError when the ledger is damaged.
    """
    for judged in where.map(_judge_batch, spam_filter, in_batches(iter(raws))):
        yield from judged


def _judge_batch(spam_filter: Filter, batch: "Batch") -> list[ClassifiedMessage]:
    how = Tokenizing(digest=True, wanted=spam_filter.wanted)
    # Only files can be skipped, and mail of a server is in memory.
    messages = [m for m in tokenize_batch(batch, how) if isinstance(m, TokenizedMessage)]
    pairs = list(zip(messages, spam_filter.judge_all(messages), strict=True))
    settings = spam_filter.metadata.settings
    rows = spam_filter.learned({m.digest for m, v in pairs if v.verdict == settings.positive})
    ham = {digest for digest, row in rows.items() if _is_ham(row, settings.positive_index)}
    return [
        ClassifiedMessage(
            verdict._replace(reason=TAUGHT_AS_HAM) if message.digest in ham else verdict,
            message.source,
            message.size,
        )
        for message, verdict in pairs
    ]


def _is_ham(row: "Row", positive: int | None) -> bool:
    """Return whether classes other than the positive one learned it, at least as often."""
    as_spam = 0 if positive is None else row[positive]
    return sum(row) - as_spam >= max(1, as_spam)
