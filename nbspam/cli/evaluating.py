"""What `nbspam eval` evaluates: models trained on some of the messages, or a saved one."""

from collections.abc import Callable, Iterator
from pathlib import Path

from nbspam.cli.base import opened_base
from nbspam.cli.cut_off_options import Cutting, ham_limit
from nbspam.cli.learning_options import Learning
from nbspam.cli.notes import note_older
from nbspam.cli.progress import work
from nbspam.cli.protocol_options import Protocol
from nbspam.evaluation import protocols
from nbspam.evaluation.outcome import Evaluation
from nbspam.filter import Filter, open_filter
from nbspam.learning.settings import TrainingSettings
from nbspam.scoring.verdict import CutOffs
from nbspam.tokens.tokenized import TokenizedMessage, Wanted


def evaluated(
    messages: Callable[[Wanted], Iterator[TokenizedMessage]],
    model: Path,
    base: str | None,
    protocol: Protocol,
    learning: Learning,
    cutting: Cutting,
    excerpt: int,
    quiet: bool,
) -> tuple[Evaluation, CutOffs]:
    """Return the outcomes of what is evaluated, with the base beneath it, and the cut-offs.

    excerpt: characters of each message to keep.
    """
    if protocol.trains and not protocol.online:
        base = None  # of the environment or a config file
    if protocol.trains:
        with opened_base(base) as beneath:
            settings = learning.settings()._replace(base=beneath)
            limit = ham_limit(protocol.max_ham_blocked)
            found, cut_offs = _trained(messages, protocol, settings, cutting, limit, excerpt, quiet)
    else:
        opened = open_filter(model, cutting.of, base=base)
        if not quiet:
            note_older(model, opened.metadata, opened.classifier.base)
        label, even_learned = learning.spam_label, protocol.including_learned
        found, cut_offs = _saved(messages, opened, excerpt, even_learned, label)
    if base is not None:
        found = found._replace(protocol=f"{found.protocol}, with the base {base}")
    return found, cut_offs


def _trained(
    messages: Callable[[Wanted], Iterator[TokenizedMessage]],
    protocol: Protocol,
    settings: TrainingSettings,
    cutting: Cutting,
    limit: float | None,
    excerpt: int,
    quiet: bool,
) -> tuple[Evaluation, CutOffs]:
    """Return the outcomes of models trained on some of the messages, and the cut-offs."""
    cut_offs = cutting.of_new()
    every = protocols.LabelledCorpus.of(
        messages(settings.wanted._replace(excerpt=excerpt)), settings.wanted
    )
    read, mislabelled = every.without_mislabelled(settings.positive)
    cutting.check_classes(sorted(set(read.corpus.labels)))
    with work(quiet) as at_work:
        at_work.stage("training and testing")
        found = protocol.run(read, settings, cut_offs, limit, at_work=at_work)
    return found._replace(mislabelled=mislabelled), found.cut_offs or cut_offs


def _saved(
    messages: Callable[[Wanted], Iterator[TokenizedMessage]],
    opened: Filter,
    excerpt: int,
    including_learned: bool,
    spam_label: str | None,
) -> tuple[Evaluation, CutOffs]:
    """Return the outcomes of the saved model, and its cut-offs."""
    with opened as spam_filter:
        wanted = spam_filter.wanted._replace(excerpt=excerpt)
        found = protocols.saved_model(spam_filter, messages(wanted), including_learned, spam_label)
        return found, spam_filter.cut_offs
