"""What `classify --learn` does after the verdicts."""

from contextlib import suppress

from nbspam.cli.base import opened_base
from nbspam.cli.failure import outcome
from nbspam.cli.notes import NoTrace, has_reader, lock_wait, note
from nbspam.learning.self_training import FEWEST, SURE, SelfTraining, too_few
from nbspam.reading.source_kind import Source
from nbspam.store.lock import QUIET_WAIT
from nbspam.store.metadata import Metadata

# Seconds that a mail program waits for the model's lock: its next mail waits behind this one.
MAIL_LIMIT = 5.0


def too_few_sentence(metadata: Metadata) -> str:
    """Return what a model lacks for self-training, in words; empty if nothing."""
    few = too_few(metadata)
    if not few:
        return ""
    learned = " and ".join(f"{n:,} {name}" for name, n in few.items())
    return (
        f"has learned {learned}, so classify --learn learns nothing; teach it {FEWEST} messages of"
        " each class with nbspam train --update"
    )


def self_training(model: str, metadata: Metadata, learn_from: float | None) -> SelfTraining:
    """Return what collects the sure verdicts.

    If the model is too small to learn any, say so on a terminal: in the log of a mail program it
    would be a line for every mail.  `model info` says it too.
    """
    if has_reader() and too_few(metadata):
        note(f"{model}: {too_few_sentence(metadata)}")
    return SelfTraining(metadata, SURE if learn_from is None else learn_from)


def learn_sure(
    training: SelfTraining, model: str, base: str | None, is_only_noted: bool, trace: NoTrace
) -> None:
    """Learn what was collected, and log it; raises ModelError.

    is_only_noted: if that fails, say so, and let the verdict be the outcome; do not wait for long.
    """
    if not training.collected:
        return
    path = Source(model).path
    trace.learns(training.collected.values())
    wait = QUIET_WAIT._replace(limit=MAIL_LIMIT) if is_only_noted else lock_wait(quiet=False)
    try:
        with opened_base(base, indexed=False) as beneath, trace.changes(path, remember=True):
            training.learn(path, wait, beneath)
    except (Exception, KeyboardInterrupt) as error:
        if not is_only_noted:
            raise
        trace.failed(error)
        with suppress(OSError):
            note(f"nothing was learned: {outcome(error)[1]}")
