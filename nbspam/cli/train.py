"""`nbspam train`: what it learns, and what it prints of the new or changed model."""

import json
import math
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from nbspam.cli import notes, options
from nbspam.cli.command import command, option, section
from nbspam.cli.learning_options import Learning, Sources
from nbspam.cli.notes import NoTrace, note
from nbspam.cli.options import Cutting, Reading
from nbspam.cli.progress import cutter, progress, shown_passes, work_place
from nbspam.errors import OptionError, Remedy, TrainingError, counted, one_line
from nbspam.learning import update
from nbspam.learning.settings import TrainingSettings, class_names, first_metadata
from nbspam.learning.update import Change, PendingMessages
from nbspam.names import FEW, rare_classes
from nbspam.reading.message import RawMessage
from nbspam.reading.source import MBOX_FORMAT, Skipped, Skips
from nbspam.reading.sources import STDIN
from nbspam.scoring.rules import Score, rule_of
from nbspam.scoring.verdict import rounded
from nbspam.store import model_file
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import Metadata, with_columns
from nbspam.tokens.tokenized import TokenizedMessage
from nbspam.workers import PIECE, Executor, in_batches, rare_collections, tokenized

if TYPE_CHECKING:  # one message is learned without numpy
    from nbspam.errors import SourceError
    from nbspam.evaluation.messages import DoubtedLabels
    from nbspam.evaluation.metrics import Figures
    from nbspam.learning.training import Piece, TrainingRun
    from nbspam.reading.cutting import SourcePiece
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
            notes.note_reading(what)

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
        "--update",
        is_flag=True,
        excludes="--replace",
        help="Add to the model; create it if it does not exist.",
    )
    replace: bool = option("--replace", is_flag=True, help="Overwrite the model file if it exists.")
    ledger: bool = option(
        "--ledger/--no-ledger",
        is_flag=True,
        default=True,
        seldom=True,
        help="Remember which messages were learned, for --update and forget. [default: ledger]",
    )
    dry_run: bool = option(
        "--dry-run",
        is_flag=True,
        seldom=True,
        help="Say what --update would learn, and what looks like another class; change nothing.",
    )
    seen: bool = option(
        "--seen",
        is_flag=True,
        under="Sources",
        formats=(MBOX_FORMAT,),
        help="Read only messages of a Maildir or mbox that were read and not deleted.",
    )
    verbose: bool = option(
        "-v",
        "--verbose",
        is_flag=True,
        under="Output",
        excludes="--quiet",
        help="After training, print the whole estimate with its intervals.",
    )
    # It needs all messages at once; with a base they are learned one by one.
    max_ham_blocked: float | None = options.ham_limit_option(
        excludes="--spam-cutoff --ham-cutoff --ham-cost --update --base",
        help="Choose and store the lowest spam cut-off that marks at most this share of ham as"
        " spam.",
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


def _check(
    sources: Sources,
    model: Path,
    writing: Writing,
    cutting: Cutting,
    learning: Learning,
    reading: Reading,
) -> None:
    """Raise OptionError for what is wrong with any model and no declaration says."""
    if writing.dry_run and not (writing.update and model.exists()):
        raise OptionError(
            f"--dry-run: says what --update would add to a model, and {model} is not updated; add"
            " --update and name a model that exists, or leave it out"
        )
    cutting.of_new()  # raises for those of no new model
    if not (writing.update and model.exists() and not model.is_dir()):
        learning.settings()  # raises for a senseless value
    reading.check(sources.names_without_labels())


@command("train", logs="learn")
@rare_collections()
def train(
    *,
    sources: Sources,
    model: Path = options.MODEL,
    base: str | None = options.BASE,
    writing: Writing,
    cutting: Cutting,
    learning: Learning,
    reading: Reading,
    form: str = options.FORM,
    quiet: bool = options.QUIET,
    jobs: int = options.JOBS,
    dask: str | None = options.DASK,
    trace: NoTrace,
) -> None:
    """Learn from labelled messages and write a model, or add to one.

    A SOURCE with labels is a table (TSV, CSV, JSON, JSON lines, Parquet), a folder with one
    sub-folder per class, or a TREC index file.  A source without labels, given by --spam, --ham or
    --label, is an mbox, a Maildir, a folder of messages, one message, a text file with --lines, or
    - for standard input.

    \b
    Examples:
      nbspam train messages.tsv
      nbspam train --ham ~/Maildir --spam ~/Maildir/.Junk
      nbspam train --update --seen -q --ham ~/Maildir --spam ~/Maildir/.Junk
      nbspam train --update --spam - < message.eml
    \f
    Compressed files (gzip, bzip2, xz, zstd, lz4) are read directly.

    After training it prints what to expect on new messages: each message is classified with a model
    trained on all the others (leave-one-out).  -v prints the whole estimate.

    --update adds to the model, or creates it.  The model remembers what it has learned: a message
    is learned as many times as the sources contain it, never more, and one that was learned in
    another class is moved.  So the same command can run every night.  A single message from
    standard input is learned without output, unless standard output is a terminal, or -v or
    --format json is given; an empty one is an error, and the model is not changed.

    A message that is in two classes is learned in both, and a note names it; with --strict it is an
    error, and nothing is learned.  --max-ham-blocked needs all messages at once, so it cannot be
    combined with --update or --base, which learn them one by one.

    --log writes a line for each message that --update learns or moves, and one for a new model.

    \b
    More examples:
      zcat messages.tsv.gz | nbspam train --input-format tsv -
      nbspam train --max-ham-blocked 0.1% --ham inbox.mbox --spam junk.mbox
      nbspam train --replace --label promo=ads.mbox --ham in.mbox --spam junk.mbox
      nbspam train --dask tcp://10.0.0.1:8786 /shared/mail.parquet
    """
    _check(sources, model, writing, cutting, learning, reading)
    before = _updated(sources, model, writing, cutting, learning)
    how, skips = reading.options(writing.seen, quiet, needs_content=True), Skips(reading.strict)
    sizes = ClassSizes()
    how = how._replace(hear_columns=sizes.columns.append)
    how = how._replace(tell=partial(sizes.hear, how.tell))
    how = how if before is None else how.like(before.learned.columns)
    names = sources.names()
    # As in a macro of a mail reader.
    is_one = names == [STDIN] and reading.is_one_message
    is_seen = writing.verbose or sys.stdout.isatty()
    silent = quiet or (writing.update and is_one and not is_seen)
    with (
        sizes.fitting(),
        options.opened_base(base) as beneath,
        work_place(dask, jobs, trace, quiet) as where,
    ):
        settings = learning.settings()._replace(base=beneath)
        if beneath is not None:  # before anything is read
            beneath.check(model, (before or first_metadata((), settings)).settings)
        asked = (settings, cutting, writing, writing.max_ham_blocked, form, silent)
        training = Training(model, *asked, skips, trace, notes.lock_wait(quiet), sizes)
        # One class alone begins a model one by one, without numpy.
        begins = not writing.update or sources.may_have_two_classes
        if before is None and begins and beneath is None:
            whole = training._replace(quiet=quiet)
            pieces = sources.pieces(cutter(where, how, names))
            instead = partial(update_instead, training=whole) if writing.update else None
            train_whole(where, in_batches(pieces, *PIECE), names, whole, instead)
            return
        raws: Iterable[RawMessage | Skipped | SourcePiece]
        if where.is_here:
            raws = trace.noted(sources.messages(how, skips))
        else:
            raws = sources.pieces(cutter(where, how, names))
        pending = PendingMessages((settings if before is None else before.settings).wanted)
        if writing.seen:  # above the spam cut-off it is in the inbox because the user moved it back
            pending.is_presumed = lambda _, is_spam: not is_spam
        found = tokenized(raws, skips, where, True, pending.corpus.wanted, skips_empty=True)
        with progress(silent, names) as shown:
            messages = sizes(shown(found))
            if writing.update:
                pending.add(trace.digested(messages), model if writing.ledger else None)
            else:
                pending.add(messages)
        sizes.note_small(skips.strict)
        pending.columns = sizes.columns
        sizes.report_shared(*pending.shared(), quiet, skips.strict)
        notes.note_skips(skips)
        options.make_default_folder(model)
        if writing.update:
            update_model(pending, training)
        else:
            begin_one_by_one(pending, training)


def _updated(
    sources: Sources, model: Path, writing: Writing, cutting: Cutting, learning: Learning
) -> Metadata | None:
    """Return the metadata of the model that is added to; None for a new one.

    Raises OptionError or ModelError for options that cannot be with this model.
    """
    is_file = model.exists() and not model.is_dir()
    if not (writing.update and model.exists()):
        if is_file:
            model_file.check_replaceable(model)
            if not writing.replace:
                sources.check_all()  # what is wrong with them is said first
                raise model_file.ModelExistsError(model)
        return None
    if is_file and cutting.is_given:
        raise OptionError(
            f"{model}: has cut-offs of its own; change them with nbspam model set, and leave them"
            " out here"
        )
    with update.opened_to_learn(model) as lookup:
        metadata = lookup.metadata
    of_model = Learning.of_model(metadata.settings)
    for name in learning.given():
        asked, kept = getattr(learning, name), getattr(of_model, name)
        if asked != kept:
            raise OptionError(
                f"{learning.option(name)} {asked}: the model {model} was trained with"
                f" {'none' if kept is None else kept}; leave"
                " it out, or train a new model with --replace"
            )
    return metadata


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
        notes.note_skips(training.skips)
        options.make_default_folder(model)
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
            model_file.put_model(
                model,
                lambda file: run.write(file, training.writing.ledger),
                replace_old=training.writing.replace,
                wait=training.wait,
            )
        except model_file.ModelExistsError:
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
        change = update.rehearsed(model, pending, training.settings, remember)
    else:
        with shown_passes(quiet) as passes, training.trace.changes(model, remember):
            passes.begin(f"adding messages to {model}", 0)
            change = update.learn(model, pending, training.settings, remember, training.wait)
            training.trace.learned(change)
            if training.cutting.is_given:  # the model was not there before
                update.set_cut_offs(model, training.cutting.of)
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
    change, made = update.taught(model, None, pending, settings, writing.ledger)
    model_file.write_model(
        model,
        made._replace(metadata=training.cutting.of(made.metadata).stored_in(made.metadata)),
        replace_old=writing.replace,
        wait=training.wait,
    )
    training.trace.trained(model, change.learned)
    _print_change(change, training)


def _print_change(change: Change, training: Training) -> None:
    if training.form == "json":
        fields = {"model": str(training.model), **notes.change_json(change), **training.read()}
        click.echo(json.dumps(rounded(fields)))
        return
    _note_surprising(change, training)
    if not training.quiet:
        from nbspam.cli.terminal import echo_sentence, unbroken  # one message is learned silently

        would = "would have " if training.writing.dry_run else ""
        echo_sentence(f"{unbroken(training.model)}: {would}{notes.change_words(change)}")
        with Lookup(training.model) as lookup:
            metadata = lookup.metadata
        if training.settings.base is not None:
            metadata = training.settings.base.through(metadata)
        if not metadata.is_one_sided and (sentence := notes.young_sentence(metadata)):
            echo_sentence(sentence)


def _note_surprising(change: Change, training: Training) -> None:
    """Say which lessons looked like another class; not of one message that is learned silently."""
    if training.quiet and all(one.source == "-" for one in change.surprising):
        return

    def remedy(sources: list[str], learned: bool) -> str:
        from shlex import quote

        own = str(training.model)
        place = "" if own == notes.default_model() else f"-m {quote(own)} "
        files = [quote(source) for source in sources if Path(source).is_file()] or ["MESSAGE"]
        if learned:
            return f"nbspam forget {place}{' '.join(files)}"
        return f"nbspam train --update {place}--ham {' --ham '.join(files)}"

    notes.note_surprising(change, training.quiet, remedy, training.writing.dry_run)


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
            **notes.counts_json(metadata),
            **training.read(),
            "label_noise": metadata.by_class(metadata.label_noise),
            "doubted_labels": doubted.as_json(named),
            "leave_one_out": rates.as_json(),
        }
        click.echo(json.dumps(rounded(fields)))
        return
    words, wrong, young = (
        notes.counts_words(metadata),
        doubted.sentence(named),
        notes.young_sentence(metadata),
    )
    if training.writing.verbose:
        said = [words, estimate_sentence(rates, len(classes))]
    else:
        said = [words.rpartition("),")[0] + ")"]
        if min(metadata.learned.messages) >= _ESTIMATED:
            said += expectation(rates, len(classes))
        if not young:
            model_option = (
                "" if str(model) == notes.default_model() else f"-m {unbroken(quote(str(model)))} "
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
