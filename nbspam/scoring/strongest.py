"""The words of a model that speak most strongly for each class."""

from typing import TYPE_CHECKING, NamedTuple

from nbspam.bayes.event_model import Row
from nbspam.scoring.rule import rule_of
from nbspam.tokens.kinds import is_fragment, is_host

if TYPE_CHECKING:
    from nbspam.store.model_file import Model


class StrongWord(NamedTuple):
    """A token of a model."""

    token: str
    weight: float  # for the class that it is listed for, in nats
    counts: Row


def strongest_words(model: "Model", top: int, *, fragments: bool) -> dict[str, list[StrongWord]]:
    """Return the strongest words for each class, strongest first.

    top: how many of each class.  fragments: whether character trigrams are among them.
    """
    contrasts = rule_of(model.metadata).contrasts
    rows = [
        (token, row, contrasts(row))
        for token, row in model.counts.items()
        if not is_host(token) and (fragments or not is_fragment(token))
    ]
    ranked = {}
    for k, name in enumerate(model.metadata.settings.classes):
        best = sorted(rows, key=lambda item: (-item[2][k], item[0]))[:top]
        ranked[name] = [StrongWord(token, weights[k], row) for token, row, weights in best]
    return ranked
