"""What `nbspam train` does with the messages that it has read, and what it prints of that."""

import json
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from nbspam.cli.declared import DECIDES, OVERWRITES, option, section
from nbspam.cli.notes import (
    NoTrace,
    change_json,
    change_words,
    counts_json,
    counts_words,
    default_model,
    note,
    note_reading,
    note_skips,
    note_surprising,
    young_sentence,
)
from nbspam.cli.options import Cutting, ham_limit_option, make_default_folder
from nbspam.cli.progress import shown_passes
from nbspam.errors import Remedy, TrainingError, counted, one_line
from nbspam.learning.settings import TrainingSettings, class_names
from nbspam.learning.update import (
    Change,
    PendingMessages,
    learn,
    rehearsed,
    set_cut_offs,
    taught,
)
from nbspam.names import FEW, rare_classes
from nbspam.reading.source import MBOX_FORMAT, Skips
from nbspam.scoring.rules import Score, rule_of
from nbspam.scoring.verdict import rounded
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import Metadata, with_columns
from nbspam.store.model_file import ModelExistsError, put_model, write_model
from nbspam.tokens.tokenized import TokenizedMessage
from nbspam.workers import Executor

if TYPE_CHECKING:  # one message is learned without numpy
    from nbspam.errors import SourceError
    from nbspam.evaluation.messages import DoubtedLabels
    from nbspam.evaluation.metrics import Figures
    from nbspam.learning.training import Piece, TrainingRun
    from nbspam.store.writing import LockWait


_SHOWN = 5  # classes named
_ESTIMATED = 20  # messages of each class from which on a beginner is told what to expect
_NAMED = 3  # messages of two or more classes that are named


class ClassSizes:
    """Counts the messages of each class, and keeps where the first of them are."""

    def __init__(self) -> None:
        self.n_shared: int | None = None  # messages in two or more classes; None: unknown
        self.columns: list[tuple[str, str]] = []  # of the tables: with texts and labels
        self._columns: list[SourceError] = []
        self._sizes: dict[str, int] = {}
        self._first: dict[str, list[str]] = {}  # the first sources of each, FEW at most

    def hear(self, say: Callable[["SourceError"], None], what: "SourceError") -> None:
        """Say how a source was read; which column its labels are in, only if they do not fit."""
        if what.remedy is Remedy.NAME_ANOTHER_LABEL:
            self._columns.append(what)
        else:
            say(what)

    def note_columns(self) -> None:
        """Say in which columns labels are that are neither ham nor spam."""
        for what in self._columns:
            note_reading(what)

    @contextmanager
    def fitting(self) -> Iterator[None]:
        """Say in which columns the labels are where nothing can be learned from these."""
        try:
            yield
        except TrainingError:
            self.note_columns()
            raise

    def __call__(self, messages: Iterable[TokenizedMessage]) -> Iterator[TokenizedMessage]:
        """Yield the messages, and count them."""
        for message in messages:
            label = message.label or ""
            self.add({label: 1}, {label: [message.source]})
            yield message

    def report_shared(
        self, n: int, found: Sequence[Mapping[str, str]], quiet: bool, strict: bool
    ) -> None:
        """Say that n messages are in two or more classes.

        found: of some, each class and the first source in it.
        """
        self.n_shared = n
        if not n:
            return
        where = [
            " and ".join(
                f"{one_line(source)} as {name}" for name, source in list(each.items())[:_SHOWN]
            )
            for each in found[:_NAMED]
        ]
        where += [f"and {n - len(where):,} more"] if 0 < len(where) < n else []
        shown = f" ({'; '.join(where)})" if where else ""
        what = f"{counted(n, 'message')} {'is' if n == 1 else 'are'} in two or more classes{shown}"
        if strict:
            raise TrainingError(f"{what}; correct the labels, or leave out --strict")
        if not quiet:
            note(f"{what}; correct the labels if that is a mistake")

    def add(self, sizes: Mapping[str, int], first: Mapping[str, list[str]]) -> None:
        """Count messages that others have counted; first: where the first of each class are."""
        for name, n in sizes.items():
            self._sizes[name] = self._sizes.get(name, 0) + n
            own = self._first.setdefault(name, [])
            own += first[name][: FEW - len(own)]

    def note_small(self, strict: bool) -> None:
        """Say which classes are of a few messages beside two large ones, and where these are.

        Raises TrainingError if strict.
        """
        small = rare_classes(self._sizes)
        if small and strict:
            where = ", ".join(map(one_line, self._first[small[0]]))
            only = counted(self._sizes[small[0]], "message")
            raise TrainingError(
                f"the class {small[0]!r} has only {only} ({where}); correct the label, or leave out"
                " --strict"
            )
        for name in small[:_SHOWN]:
            only = f"{counted(self._sizes[name], 'message')} of {sum(self._sizes.values()):,}"
            where = ", ".join(map(one_line, self._first[name]))
            header = ", or add --header-row yes if that row names the columns"
            note(
                f"the class {name!r} has only {only} ({where});"
                f" if the label is wrong, correct it{header if self._may_be_header(name) else ''}:"
                f" cut-offs need two classes, and there are {len(self._sizes)}"
            )
        if len(small) > _SHOWN:
            note(f"{len(small) - _SHOWN} more classes have at most {FEW} messages each")

    def _may_be_header(self, name: str) -> bool:
        """Return whether a class has one message, the first row of a table with others."""
        table, _, row = self._first[name][0].rpartition(":")
        return (self._sizes[name], row) == (1, "1") and any(
            source.startswith(f"{table}:")
            for other, sources in self._first.items()
            for source in sources
            if other != name
        )


@section("Model")
class Writing(NamedTuple):
    """What to do with the model file."""

    update: bool = option(
        "Add to the model; create it if it does not exist.", excludes="--replace", typed=DECIDES
    )
    replace: bool = option("Overwrite the model file if it exists.", typed=OVERWRITES)
    ledger: bool = option(
        "Remember which messages were learned, for --update and forget. [default: ledger]",
        "--ledger/--no-ledger",
        default=True,
        seldom=True,
    )
    dry_run: bool = option(
        "Say what --update would learn, and what looks like another class; change nothing.",
        typed=DECIDES,
        seldom=True,
    )
    seen: bool = option(
        "Read only messages of a Maildir or mbox that were read and not deleted.",
        under="Sources",
        formats=(MBOX_FORMAT,),
    )
    verbose: bool = option(
        "After training, print the whole estimate with its intervals.",
        "-v --verbose",
        under="Output",
        excludes="--quiet",
    )
    # It needs all messages at once; with a base they are learned one by one.
    max_ham_blocked: float | None = ham_limit_option(
        "Choose and store the lowest spam cut-off", "--update --base"
    )


class Training(NamedTuple):
    """What one run was asked for."""

    model: Path
    settings: TrainingSettings
    cutting: Cutting
    writing: Writing
    limit: float | None  # the share of ham that may be blocked
    form: str
    quiet: bool  # print no text but errors
    skips: Skips
    trace: NoTrace
    wait: "LockWait"  # for the model's lock
    sizes: ClassSizes  # of what was read

    def read(self) -> dict[str, int | None]:
        """Return what is said of the reading, as JSON has it."""
        return {"skipped": self.skips.count, "in_two_classes": self.sizes.n_shared}


def train_whole(
    where: Executor,
    pieces: "Iterable[Piece]",
    names: Sequence[str],
    training: Training,
    instead: Callable[[Iterable[TokenizedMessage]], object] | None = None,
) -> None:
    """Learn from all messages at once, write the model and print what to expect of it.

    names: of the sources.
    instead: learns the messages one by one if they are of one class, or another process has created
        the model meanwhile; without it these are errors.
    """
    from nbspam.evaluation.messages import LISTED
    from nbspam.learning.training import TrainingRun

    model, quiet = training.model, training.quiet
    with shown_passes(quiet, names) as passes, TrainingRun(where, training.settings, passes) as run:
        run.read(pieces, training.skips)
        for kept in run.kept:
            training.sizes.add(kept.summary.messages, kept.summary.first)
        training.sizes.note_small(training.skips.strict)
        note_skips(training.skips)
        make_default_folder(model)
        if instead is not None and len(run.labels) < 2:
            instead(run.messages())
            return
        run.count()
        run.metadata = with_columns(run.metadata, training.sizes.columns)
        training.sizes.report_shared(*run.shared(), quiet, training.skips.strict)
        if not quiet:
            _note_alone(run)
        run.fit()
        if training.limit is not None:
            run.choose_cut_offs(training.limit)
        elif training.cutting.is_given:
            run.metadata = training.cutting.of(run.metadata).stored_in(run.metadata)
        try:
            put_model(
                model,
                lambda file: run.write(file, training.writing.ledger),
                replace_old=training.writing.replace,
                wait=training.wait,
            )
        except ModelExistsError:
            if instead is None:
                raise
            instead(run.messages())
            return
        training.trace.trained(model, run.labels.total())
        if run.metadata.settings.positive is None and not quiet:
            training.sizes.note_columns()
            note(
                f"{model}: none of the {len(run.labels)} classes is called spam, so a verdict is"
                " the most probable of them; name the spam class with --spam-label if there is one"
            )
        if quiet and training.form == "text":
            return
        rates, doubted = left_out_rates_of(run)
        named = run.named(doubted.messages[:LISTED])
    _print_training(run.metadata, rates, doubted, named, training)


def _note_alone(run: "TrainingRun") -> None:
    """Say which header words stand in nearly all messages of one class and in hardly any other."""
    (settings, learned), found = run.metadata, run.telling_alone()
    if not found:
        return
    shown = []
    for token, row in sorted(found, key=lambda each: (-max(each[1]), each[0]))[:_NAMED]:
        sizes = zip(row, learned.messages, settings.classes, strict=True)
        where = ", ".join(f"in {n:,} of {of:,} {one_line(name)}" for n, of, name in sizes)
        shown.append(f"{token!r} ({where})")
    shown += [f"{len(found) - _NAMED:,} more"] if len(found) > _NAMED else []
    each, they = ("each of ", "they are") if len(found) > 1 else ("", "it is")
    note(
        f"{each}{', '.join(shown)} alone tells {' from '.join(settings.classes)}: {they} not used,"
        " since a program that fetches or sorts mail may have written that"
    )


def update_instead(messages: Iterable[TokenizedMessage], training: Training) -> None:
    """Learn messages one by one that were to be learned at once, with `--update`."""
    pending = PendingMessages(training.settings.wanted)
    pending.columns = training.sizes.columns
    pending.add(messages, training.model if training.writing.ledger else None)
    update_model(pending, training)


def update_model(pending: PendingMessages, training: Training) -> None:
    """Add to the model, or create it, and print what changed."""
    model, quiet, remember = training.model, training.quiet, training.writing.ledger
    if remember and len(pending.corpus) and not quiet:
        _note_unnamed(model)
    if training.writing.dry_run:
        change = rehearsed(model, pending, training.settings, remember)
    else:
        with shown_passes(quiet) as passes, training.trace.changes(model, remember):
            passes.begin(f"adding messages to {model}", 0)
            change = learn(model, pending, training.settings, remember, training.wait)
            training.trace.learned(change)
            if training.cutting.is_given:  # the model was not there before
                set_cut_offs(model, training.cutting.of)
    _print_change(change, training)


def _note_unnamed(model: Path) -> None:
    """Say, before more is learned, that the ledger cannot tell what of it is counted already."""
    if not model.exists():
        return
    with Lookup(model) as lookup:
        learned = sum(lookup.metadata.learned.messages)
        # To add up a ledger of a million takes 2 s; mostly its lines are as many as the messages.
        unnamed = 0 if lookup.remembered() == learned else sum(lookup.unnamed())
    if unnamed:
        note(
            f"{model}: has learned {counted(unnamed, 'message')} that its ledger does not name"
            " (learned with --no-ledger); one that is given again is counted twice, so"
            " give only newer mail"
        )


def begin_one_by_one(pending: PendingMessages, training: Training) -> None:
    """Write a new model that learned one message after another, and print what it learned."""
    model, settings, writing = training.model, training.settings, training.writing
    if settings.base is None:
        class_names(pending.corpus.labels, settings.positive)  # raises if there are not two
    change, made = taught(model, None, pending, settings, writing.ledger)
    write_model(
        model,
        made._replace(metadata=training.cutting.of(made.metadata).stored_in(made.metadata)),
        replace_old=writing.replace,
        wait=training.wait,
    )
    training.trace.trained(model, change.learned)
    _print_change(change, training)


def _print_change(change: Change, training: Training) -> None:
    if training.form == "json":
        fields = {"model": str(training.model), **change_json(change), **training.read()}
        click.echo(json.dumps(rounded(fields)))
        return
    _note_surprising(change, training)
    if not training.quiet:
        from nbspam.cli.terminal import echo_sentence, unbroken  # one message is learned silently

        would = "would have " if training.writing.dry_run else ""
        echo_sentence(f"{unbroken(training.model)}: {would}{change_words(change)}")
        with Lookup(training.model) as lookup:
            metadata = lookup.metadata
        if training.settings.base is not None:
            metadata = training.settings.base.through(metadata)
        if not metadata.is_one_sided and (sentence := young_sentence(metadata)):
            echo_sentence(sentence)


def _note_surprising(change: Change, training: Training) -> None:
    """Say which lessons looked like another class; not of one message that is learned silently."""
    if training.quiet and all(one.source == "-" for one in change.surprising):
        return

    def remedy(sources: list[str], learned: bool) -> str:
        from shlex import quote

        own = str(training.model)
        place = "" if own == default_model() else f"-m {quote(own)} "
        files = [quote(source) for source in sources if Path(source).is_file()] or ["MESSAGE"]
        if learned:
            return f"nbspam forget {place}{' '.join(files)}"
        return f"nbspam train --update {place}--ham {' --ham '.join(files)}"

    note_surprising(change, training.quiet, remedy, training.writing.dry_run)


def _print_training(
    metadata: Metadata,
    rates: "Figures",
    doubted: "DoubtedLabels",
    named: Sequence[tuple[str, str]],
    training: Training,
) -> None:
    """Print what was learned, and what to expect of the model.

    rates: of the messages, each left out.  named: the first of those whose labels look wrong.
    """
    from shlex import quote

    from nbspam.cli.terminal import echo_sentence, unbroken

    model, classes = training.model, metadata.settings.classes
    if training.form == "json":
        fields = {
            "model": str(model),
            **counts_json(metadata),
            **training.read(),
            "label_noise": metadata.by_class(metadata.label_noise),
            "doubted_labels": doubted.as_json(named),
            "leave_one_out": rates.as_json(),
        }
        click.echo(json.dumps(rounded(fields)))
        return
    words, wrong, young = counts_words(metadata), doubted.sentence(named), young_sentence(metadata)
    if training.writing.verbose:
        said = [words, estimate_sentence(rates, len(classes))]
    else:
        said = [words.rpartition("),")[0] + ")"]
        if min(metadata.learned.messages) >= _ESTIMATED:
            said += expectation(rates, len(classes))
        if not young:
            model_option = (
                "" if str(model) == default_model() else f"-m {unbroken(quote(str(model)))} "
            )
            said.append(f"next: nbspam classify {model_option}message.eml")
    if wrong:
        said.append(f"{wrong}; nbspam eval --leave-one-out --errors 20 shows the worst")
    said[0] = f"{unbroken(model)}: learned {said[0]}"
    if training.limit is not None:
        said.append(cut_off_sentence(metadata, training.limit))
    for sentence in filter(None, [*said, young]):
        echo_sentence(sentence)


# What to expect of a new model


_Called = Counter[tuple[str, str]]  # a label, and what a message of it is called -> messages


def left_out_rates_of(run: "TrainingRun") -> "tuple[Figures, DoubtedLabels]":
    """Return the rates of the model on the training messages, each left out, and wrong labels."""
    from nbspam.evaluation.messages import DoubtedLabels, doubted_labels
    from nbspam.evaluation.metrics import count_verdicts, left_out_rates

    called, verdicts, odds, labels = _Called(), _Called(), array("d"), list[str]()
    for found in run.each("estimating the accuracy, each message left out", _judged):
        called.update(found[0])
        verdicts.update(found[1])
        odds.extend(found[2])
        labels.extend(found[3])
    positive = run.metadata.settings.positive
    rates = left_out_rates(count_verdicts(called, positive), count_verdicts(verdicts, positive))
    is_calibrated = rule_of(run.metadata).is_calibrated
    doubted = doubted_labels(odds, labels, positive) if is_calibrated else DoubtedLabels()
    return rates, doubted


def _judged(
    metadata: Metadata, labels: list[str], scores: Iterator[Score]
) -> "tuple[_Called, _Called, array[float], list[str]]":
    """Return how often messages of each class are called what, at 0.5 and with the cut-offs.

    And of each message the log-odds of its label, and that.
    """
    from nbspam.evaluation.results import Outcome
    from nbspam.scoring.verdict import CutOffs, verdict_on

    called, verdicts, odds = _Called(), _Called(), array("d")
    cut_offs = CutOffs.of_model(metadata)
    for label, score in zip(labels, scores, strict=True):
        outcome = Outcome(verdict_on(metadata, score, cut_offs, label=label))
        odds.append(outcome.odds)
        called[label, outcome.called] += 1
        verdicts[label, outcome.judged.verdict] += 1
    return called, verdicts, odds, labels


def expectation(rates: "Figures", n_classes: int) -> list[str]:
    """Return the estimate for a beginner: of 100 messages."""
    blocked, missed = (rates.by_key[f"verdict_{key}_pct"].counts for key in ("bh", "sm"))
    if n_classes > 2 or blocked is None or missed is None:
        right, every = rates.by_key["accuracy"].counts or (0, 1)
        return [f"of 100 new messages {100 * right // every} are classified correctly"]
    (marked, ham), (delivered, spam) = blocked, missed
    few = "fewer than 1" if 0 < marked < ham / 100 else math.ceil(100 * marked / ham)
    rest = "; the rest are delivered, as unsure or ham" if delivered else ""
    return [
        f"of 100 new ham {few} would be marked as spam",
        f"of 100 new spam {100 * (spam - delivered) // spam} are caught{rest}",
    ]


def estimate_sentence(rates: "Figures", n_classes: int) -> str:
    """Return the estimate in words: at 0.5, and with the cut-offs where there are two classes."""
    from nbspam.evaluation.metrics import GENERAL, TRACK, VERDICTS

    sentence = "leave-one-out estimate for new messages like these: "
    if n_classes > 2:
        return sentence + ", ".join(row.sentence() for row in rates.rows(GENERAL, TRACK))
    accuracy = next(rates.rows(GENERAL)).percentage().replace(" %", " % correct at 0.5", 1)
    verdicts = ", ".join(row.sentence() for row in rates.rows(VERDICTS))
    return f"{sentence}{accuracy}; verdicts: {verdicts}"


def cut_off_sentence(metadata: Metadata, limit: float) -> str:
    """Return where the cut-off is, and how well it can be known."""
    settings, learned = metadata
    sentence = (
        f"cut-off for at most {100 * limit:g} % of ham blocked: spam is above"
        f" {settings.spam_cutoff:.6g}, stored in the model; the verdicts above are with it"
    )
    if settings.spam_cutoff >= 1:
        sentence += "; some ham scores so high that nothing will be classified as spam"
    ham = sum(learned.messages) - learned.messages[settings.positive_index or 0]
    if limit * ham < 1:
        few = f"{counted(ham, 'ham message')} {'is' if ham == 1 else 'are'} too few"
        sentence += f"; {few} to measure less than {100 / ham:.2g} %"
    return sentence
