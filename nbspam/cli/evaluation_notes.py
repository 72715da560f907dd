"""What `nbspam eval` says of the messages that it tests on, and of those that it left out."""

from pathlib import Path
from typing import TYPE_CHECKING

from nbspam.cli.notes import note
from nbspam.errors import SourceError, counted, one_line

if TYPE_CHECKING:  # help loads no numpy
    from nbspam.evaluation.mislabelled import Mislabelled
    from nbspam.evaluation.outcome import Evaluation

_LABELS_SHOWN = 5


def evaluation_notes(found: "Evaluation", model: Path) -> list[str]:
    """Return sentences to read before the figures."""
    same = duplicates_note(found.duplicates, len(found.outcomes))
    return [*_of_learned(found, model), *([same] if same else [])]


def note_mislabelled(left_out: "Mislabelled", strict: bool, quiet: bool) -> None:
    """Say which messages are left out, unless quiet; raises SourceError for one if strict."""
    if strict:
        left_out.check()
    if quiet or not left_out.messages:
        return
    where = ", ".join(
        f"{label!r} ({', '.join(map(one_line, sources))})"
        for label, sources in list(left_out.sources.items())[:_LABELS_SHOWN]
    )
    more = len(left_out.sources) - _LABELS_SHOWN
    if more > 0:
        where += f" and {counted(more, 'other label')}"
    header = (
        "if that row names the columns, add --header-row yes; " if left_out.is_first_row else ""
    )
    said = "is left out, as its label is probably a mistake"
    if left_out.messages > 1:
        said = "are left out, as their labels are probably mistakes"
    note(f"{counted(left_out.messages, 'message')} {said}: {where}; {header}correct it there")


def check_some_are_left(found: "Evaluation", model: Path) -> None:
    """Raise SourceError if there is no message to test on."""
    if found.outcomes:
        return
    before = found.learned_before
    if before is None or not before.left_out:
        raise SourceError("there is no message to test on; name a source that has some")
    n = before.left_out
    what = (
        "the only message was learned, so testing on it"
        if n == 1
        else f"all {n:,} messages were learned, so testing on them"
    )
    raise SourceError(
        f"{model}: {what} says nothing of new ones; test on other messages, test with"
        " --leave-one-out and no --model, or add --including-learned"
    )


def _of_learned(found: "Evaluation", model: Path) -> list[str]:
    before = found.learned_before
    if before is None:
        return []
    if before.learned is None:
        return [
            f"{model} does not remember which messages it learned, so whether these are among them"
            " cannot be known"
        ]
    notes = []
    if before.learned:
        share = f"{before.learned:,} of {counted(before.read, 'message')}"
        was, is_ = ("was", "is") if before.learned == 1 else ("were", "are")
        notes.append(
            f"{share} {was} learned by this model and {is_} left out; add --including-learned to"
            " test on them"
            if before.left_out
            else f"{share} {was} learned by this model, which flatters the figures; leave out"
            " --including-learned to test on the others"
        )
    if before.unnamed:
        those = "it is" if before.unnamed == 1 else "some are"
        notes.append(
            f"{model} does not remember {counted(before.unnamed, 'message')} that it learned;"
            f" whether {those} among these cannot be known"
        )
    return notes


def duplicates_note(duplicates: int | None, tested: int) -> str:
    """Return a sentence on the messages tested that are the same as one trained on, if any."""
    if not duplicates:
        return ""
    is_ = "is" if duplicates == 1 else "are"
    return (
        f"{duplicates:,} of {counted(tested, 'message')} tested {is_} the same as one trained on,"
        " which flatters the figures"
    )
