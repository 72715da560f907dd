"""Padding: the ham words in the padded copies of learned spam.

A spammer can append a page of ordinary text to a spam.  No learned message looks like that, so a
calibration fitted only to learned messages takes the page for evidence.  Therefore each learned
spam has a copy with ham words added, which counts as COPY_WEIGHT messages in the fit.

A copy needs only the weights of the added words, and these follow from counts.  If a word is drawn
at random from learned ham, a token in n ham messages is drawn n times as often as a token in one.
So the padding needs neither a ham message nor random numbers: it consists of evenly spaced
quantiles of the weights that the words of a ham message have while that message is left out.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from nbspam.bayes.event_model import TrialTotals, one_vs_rest_weight
from nbspam.bayes.matrix import (
    TEXT,
    Booleans,
    EvidenceArrays,
    Floats,
    Integers,
    evidence_of_rows,
    rank_weights,
)

# (count in ham, count in spam) -> the number of tokens.  All classes but spam are ham.
Pairs = Mapping[tuple[int, int], int]

# The weight of a copy, in messages.  Share of 200 P2 spams called ham after words of P2's ham were
# added:
#   COPY_WEIGHT   200 words   500 words   1,000 words
#   0               20 %        52 %         77 %
#   0.03            14 %        35 %         64 %
#   0.06            12.5 %      31 %         54 %
# With 0.1, mail without headers is ranked worse: the left-out 1-ROCA% of Enron 1 rises from 0.053
# to 0.069; with 0.03 it rises to 0.056.
COPY_WEIGHT = 0.06
# Numbers of added words.  A copy's number of text tokens selects its size, so that many spams
# together use all sizes.
PADDING_SIZES = (30, 100, 300, 1000)
# From this number of learned spams on, spam has copies.  With copies, a smaller model would rarely
# be sure.
#   MIN_SPAM_TO_PAD   errors of P6.2   1-ROCA% of P7 with 50, 100, 200 of each class
#   200                     95              0.347   0.157   0.081
#   50                      79              0.343   0.162   0.081
MIN_SPAM_TO_PAD = 50


def ham_pairs(counts: Integers, spam: int | None) -> Counter[tuple[int, int]]:
    """Count the tokens of ham by their counts in ham and in spam.

    counts: (n_classes, n_tokens), of text tokens.
    spam: the index of the spam class; None without a spam class, for which there are no pairs.
    """
    if spam is None:
        return Counter()
    in_spam = counts[spam]
    in_ham = counts.sum(axis=0) - in_spam
    width = int(in_spam.max(initial=0)) + 1
    keys, n_tokens = np.unique((in_ham * width + in_spam)[in_ham > 0], return_counts=True)
    pairs = zip((keys // width).tolist(), (keys % width).tolist(), strict=True)
    return Counter(dict(zip(pairs, n_tokens.tolist(), strict=True)))


def padding_weights(pairs: Pairs, n_ham: int, n_spam: int, alpha: float) -> list[Floats]:
    """Return the weights of the added words, for each of PADDING_SIZES; [] with too little spam.

    n_ham, n_spam: learned messages.  alpha: smoothing (`one_vs_rest_weight`).
    An array may be shorter than its size in PADDING_SIZES, because a word of a single message is
    unknown while that message is left out.
    """
    if n_spam < MIN_SPAM_TO_PAD:
        return []
    size = TrialTotals((n_ham - 1, n_spam), (n_ham - 1, n_spam), 2)
    known = sorted(
        (one_vs_rest_weight((in_ham - 1, in_spam), size, 1, alpha), in_ham * n_tokens)
        for (in_ham, in_spam), n_tokens in pairs.items()
        if in_ham + in_spam > 1
    )
    if not known:
        return []
    weights, times = map(np.array, zip(*known, strict=True))
    ends = times.cumsum()
    n_words = sum(in_ham * n_tokens for (in_ham, _), n_tokens in pairs.items())
    sizes = [round(n * ends[-1] / n_words) for n in PADDING_SIZES]
    return [weights[ends.searchsorted((np.arange(n) + 0.5) / n * ends[-1])] for n in sizes]


def padded_evidence(
    rows: Integers,
    weights: Floats,
    channels: Integers,
    is_spam: Booleans,
    added: Sequence[Floats],
) -> EvidenceArrays:
    """Return the evidence of the padded copies of the spam among some messages.

    rows, weights, channels: (nnz,), one for each entry.  is_spam: (n_messages,).
    added: the weights of the added words, one array for each number of words.
    """
    n, own = int(is_spam.sum()), is_spam[rows]
    text_tokens = np.bincount(rows[channels == TEXT], minlength=len(is_spam))[is_spam]
    of_copies = [added[i] for i in (text_tokens % len(added)).tolist()]
    rows_of_added = np.repeat(np.arange(n), np.array([*map(len, of_copies)], np.int64))
    rows = np.append((np.cumsum(is_spam) - 1)[rows[own]], rows_of_added)
    channels = np.append(channels[own], np.full(len(rows_of_added), TEXT))
    ranks, different = rank_weights(np.concatenate([weights[own], *of_copies]))
    return evidence_of_rows(rows, ranks, different, channels, n)
