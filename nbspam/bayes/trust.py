"""How far the header channel is trusted: as far as the collecting hosts say that it may be.

On one server's mail the header fields are the best evidence there is; where ham and spam were
collected at different places, they show the place and not the class.  Who collected a mail is known
without looking at its class: the host that took it in.  If that host alone tells the class, the
collection is confounded, and the headers deserve no trust:

    rho = min(1, L / L0)     L  = - sum_h sum_k n_hk ln[(n_hk - 1 + pi_k) / n_h]    left out
                             L0 = - sum_k n_k ln pi_k,   pi_k = (n_k - 1/2) / n
    tau = rho m / (m + ENOUGH) w / (w + WORDS)

n_hk: mails of class k collected by host h; n_h, n_k, n their sums.  L is the surprise of each
mail's class given its host, itself left out, and L0 without the host.  A host of one mail says
nothing by itself, so those are one host together (left out, one of each class ranked P7 at 20.9
1-ROCA% and not 17.4); messages without a host (texts, imported counts) are one more, since their
words are counted too.  w: known words of the header channel in the message at
hand; m: mails with a host in the smaller class, times the share of such mails in all messages.
From counts alone, so it merges, is unlearned and updated as counts are.
(docs/how-it-decides.md has what was tried.)
"""

import math
from collections.abc import Iterable, Sequence

# Mails of the smaller class, and known header words of a message, that earn half of the trust.
ENOUGH = 5.0
WORDS = 1.0

HostRow = tuple[tuple[int, ...], int]  # mails per class of a host, and how many hosts have that


def unconfoundedness(rows: Iterable[HostRow], messages: Sequence[int]) -> tuple[float, float]:
    """Return rho, 0 to 1, and m, how many mails speak for it; 0 without two classes.

    rows: of all hosts, in any order.  messages: learned, per class.
    """
    rows = list(rows)
    classes = range(len(messages))
    hosted = [sum(row[k] * hosts for row, hosts in rows) for k in classes]
    if sum(map(bool, hosted)) < 2:
        return 0.0, 0.0
    # Not below 0: in counts from elsewhere the hosts may have more mails than there are messages.
    unhosted = tuple(max(0, n - own) for n, own in zip(messages, hosted, strict=True))
    alone = [(row, hosts) for row, hosts in rows if sum(row) == 1]
    pooled = tuple(sum(row[k] * hosts for row, hosts in alone) for k in classes)
    rows = [(row, hosts) for row, hosts in rows if sum(row) > 1]
    rows += [(row, 1) for row in (pooled, unhosted) if sum(row) > 1]
    totals = [sum(row[k] * hosts for row, hosts in rows) for k in classes]
    n = sum(totals)
    if sum(map(bool, totals)) < 2:
        return 0.0, 0.0
    shares = [(total - 0.5) / n for total in totals]
    given_host = math.fsum(
        -hosts * row[k] * math.log((max(row[k] - 1, 0) + shares[k]) / sum(row))
        for row, hosts in rows
        for k in classes
        if row[k]
    )
    without_host = math.fsum(
        -total * math.log(share) for total, share in zip(totals, shares, strict=True) if total
    )
    fewest = min(own for own in hosted if own)
    share = sum(hosted) / (sum(hosted) + sum(unhosted))
    return max(0.0, min(1.0, given_host / without_host)), fewest * share


def trust(rho: float, mails: float, header_words: int) -> float:
    """Return tau, 0 to below 1: the part of the log-odds that the header channel has a say in."""
    if not (mails and header_words):
        return 0.0
    return rho * mails / (mails + ENOUGH) * header_words / (header_words + WORDS)
