"""`nbspam train`: what it learns, and what it prints of the new or changed model."""

import json
import math
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from nbspam.cli import notes, options
from nbspam.cli.command import command, flag, rare_flag, section
from nbspam.cli.learning_options import Learning, Sources
from nbspam.cli.notes import NoTrace, note
from nbspam.cli.options import Cutting, Reading
from nbspam.cli.progress import cutter, progress, shown_passes, work_place
from nbspam.errors import OptionError, Remedy, TrainingError, counted, one_line
from nbspam.learning import update
from nbspam.learning.settings import TrainingSettings, first_metadata
from nbspam.learning.update import Change, PendingMessages
from nbspam.names import FEW, is_first_row, rare_classes
from nbspam.reading.message import RawMessage
from nbspam.reading.source import MBOX_FORMAT, STDIN, ReadingNote, Skips
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
_ESTIMATED = 20  # messages of each class for an estimate
_NAMED = 3  # messages of two or more classes that are named


class ClassSizes:
    """Counts the messages of each class, and keeps the first sources of each."""

    def __init__(self) -> None:
        self.n_shared: int | None = None  # messages in two or more classes; None: unknown
        self.columns: list[tuple[str, str]] = []  # of the tables: with texts and labels
        self._columns: list[SourceError] = []
        self._sizes: dict[str, int] = {}
        self._first: dict[str, list[str]] = {}  # the first sources of each, FEW at most

    def hear(self, say: Callable[["SourceError"], None], what: "SourceError") -> None:
        """Print a note on a source; keep that on its label column until the labels do not fit."""
        if what.remedy is Remedy.NAME_ANOTHER_LABEL:
            self._columns.append(what)
        else:
            say(what)

    def note_columns(self) -> None:
        """Print the kept notes on label columns."""
        for what in self._columns:
            notes.note_reading(what)

    @contextmanager
    def fitting(self) -> Iterator[None]:
        """Print the notes on label columns if training fails; raises that TrainingError.

        For one class it names --update, which takes one.
        """
        try:
            yield
        except TrainingError as error:
            self.note_columns()
            if error.remedy is Remedy.GIVE_TWO_CLASSES:
                error = TrainingError(error.problem, Remedy.TWO_CLASSES_OR_UPDATE)
            raise error from None

    def __call__(self, messages: Iterable[TokenizedMessage]) -> Iterator[TokenizedMessage]:
        """Yield the messages, and count them."""
        for message in messages:
            label = message.label or ""
            self.add({label: 1}, {label: [message.source]})
            yield message

    def report_shared(
        self, n: int, examples: Sequence[Mapping[str, str]], quiet: bool, strict: bool
    ) -> None:
        """Print a note on n messages that are in two or more classes.

        examples: class -> first source, of some of the messages.
        """
        self.n_shared = n
        if not n:
            return
        where = [
            " and ".join(
                f"{one_line(source)} as {name}" for name, source in list(example.items())[:_SHOWN]
            )
            for example in examples[:_NAMED]
        ]
        where += [f"and {n - len(where):,} more"] if 0 < len(where) < n else []
        details = f" ({'; '.join(where)})" if where else ""
        what = (
            f"{counted(n, 'message')} {'is' if n == 1 else 'are'} in two or more classes{details}"
        )
        if strict:
            raise TrainingError(f"{what}; correct the labels, or leave out --strict")
        if not quiet:
            note(f"{what}; correct the labels if that is a mistake")

    def add(self, sizes: Mapping[str, int], first: Mapping[str, list[str]]) -> None:
        """Add class counts made elsewhere; first: sources of the first messages of each class."""
        for name, n in sizes.items():
            self._sizes[name] = self._sizes.get(name, 0) + n
            sources = self._first.setdefault(name, [])
            sources += first[name][: FEW - len(sources)]

    def note_unread(self, quiet: bool) -> None:
        """Say, unless quiet, that --seen has left no message to learn."""
        if not (self._sizes or quiet):
            note(
                "no message is marked as read by its owner, so none was learned; leave out --seen"
                " to learn those that are not, too"
            )

    def note_small(self, strict: bool) -> None:
        """Print notes on classes of a few messages beside two large ones, with their sources.

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
            header = ""
            if is_first_row(self._first[name], chain(*self._first.values())):
                header = ", or add --header-row yes if that row names the columns"
            note(
                f"the class {name!r} has only {only} ({where}); if the label is wrong, correct it"
                f"{header}: cut-offs need two classes, and there are {len(self._sizes)}"
            )
        if len(small) > _SHOWN:
            note(f"{len(small) - _SHOWN} more classes have at most {FEW} messages each")


@section("Model")
class Writing(NamedTuple):
    """What to do with the model file."""

    update: bool = flag(
        "--update", excludes="--replace", help="Add to the model; create it if it does not exist."
    )
    replace: bool = flag("--replace", help="Overwrite the model file if it exists.")
    ledger: bool = rare_flag(
        "--ledger/--no-ledger",
        default=True,
        help="Remember which messages were learned, for --update and forget. [default: ledger]",
    )
    dry_run: bool = rare_flag(
        "--dry-run",
        help="Say what --update would learn, and what looks like another class; change nothing.",
    )
    seen: bool = flag(
        "--seen",
        under="Sources",
        formats=(MBOX_FORMAT,),
        help="Read only messages of a Maildir or mbox that were read and not deleted.",
    )
    verbose: bool = flag(
        "-v",
        "--verbose",
        under="Output",
        excludes="--quiet",
        help="After training, print the whole estimate with its intervals.",
    )
    # It needs all messages at once; --base learns them one by one.
    max_ham_blocked: float | None = options.ham_limit_option(
        excludes="--spam-cutoff --ham-cutoff --ham-cost --update --base",
        help="Choose and store the lowest spam cut-off that marks at most this share of ham as"
        " spam.",
    )


class Training(NamedTuple):
    """The options and the state of one run."""

    model: Path
    settings: TrainingSettings
    cutting: Cutting
    writing: Writing
    form: str
    quiet: bool  # print no text but errors
    skips: Skips
    trace: NoTrace
    wait: "LockWait"  # for the model's lock
    sizes: ClassSizes  # of what was read

    def read(self) -> dict[str, int | None]:
        """Return the JSON fields about reading."""
        return {"skipped": self.skips.count, "in_two_classes": self.sizes.n_shared}


def _check(
    sources: Sources,
    model: Path,
    writing: Writing,
    cutting: Cutting,
    learning: Learning,
    reading: Reading,
) -> None:
    """Raise OptionError for options that are wrong with any model."""
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
    old = _updated(sources, model, writing, cutting, learning)
    skips, sizes = Skips(reading.strict), ClassSizes()
    read = reading.options(writing.seen, quiet, needs_content=True)
    read = read._replace(on_columns=sizes.columns.append, tell=partial(sizes.hear, read.tell))
    if old is not None:
        read = read.with_learned_columns(old.learned.columns)
    names = sources.names()
    # A macro of a mail reader runs it silently.
    is_one = names == [STDIN] and reading.is_one_message
    is_seen = writing.verbose or sys.stdout.isatty()
    silent = quiet or (writing.update and is_one and not is_seen)
    with (
        sizes.fitting(),
        options.opened_base(base) as opened_base,
        work_place(dask, jobs, trace, quiet) as where,
    ):
        settings = learning.settings()._replace(base=opened_base)
        if opened_base is not None:  # before anything is read
            opened_base.check(model, (old or first_metadata((), settings)).settings)
        asked = (settings, cutting, writing, form, silent)
        training = Training(model, *asked, skips, trace, notes.lock_wait(quiet), sizes)
        # One class alone begins a model one by one, without numpy.
        begins = not writing.update or sources.may_have_two_classes
        if old is None and begins and opened_base is None:
            whole = training._replace(quiet=quiet)
            pieces = sources.pieces(cutter(where, read, names))
            instead = partial(update_instead, training=whole) if writing.update else None
            train_whole(where, in_batches(pieces, *PIECE), names, whole, instead)
            return
        raws: Iterable[RawMessage | ReadingNote | SourcePiece]
        if where.is_here:
            raws = trace.noted(sources.messages(read, skips))
        else:
            raws = sources.pieces(cutter(where, read, names))
        pending = PendingMessages((settings if old is None else old.settings).wanted)
        # What is above the spam cut-off is in the inbox because the user moved it back.
        if writing.seen and not sources.sources:
            pending.is_presumed = lambda _, is_spam: not is_spam
        messages = tokenized(raws, skips, where, True, pending.corpus.wanted, skips_empty=True)
        with progress(silent, names) as with_progress:
            noted = trace.digested(sizes(with_progress(messages)))
            pending.add(noted, model if writing.update and writing.ledger else None)
        sizes.note_small(skips.strict)
        pending.columns = sizes.columns
        sizes.report_shared(*pending.shared(), quiet, skips.strict)
        notes.note_skips(skips, quiet)
        if writing.seen:
            sizes.note_unread(quiet)
        options.make_default_folder(model)
        learn_one_by_one(pending, training)


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
                sources.check_all()  # a wrong source is reported first
                is_any = sources.may_have_two_classes
                remedy = Remedy.UPDATE_OR_REPLACE if is_any else Remedy.UPDATE_IT
                raise model_file.ModelExistsError(model, remedy)
        return None
    if is_file and cutting.is_given:
        raise OptionError(
            f"{model}: has cut-offs of its own; change them with nbspam model set, and leave them"
            " out here"
        )
    with update.open_for_learning(model) as lookup:
        metadata = lookup.metadata
    of_model = Learning.of_model(metadata.settings)
    for name in learning.given():
        typed, trained_with = getattr(learning, name), getattr(of_model, name)
        if typed != trained_with:
            raise OptionError(
                f"{learning.option(name)} {typed}: the model {model} was trained with"
                f" {'none' if trained_with is None else trained_with}; leave"
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
        for piece in run.records:
            training.sizes.add(piece.summary.messages, piece.summary.first)
        training.sizes.note_small(training.skips.strict)
        notes.note_skips(training.skips, quiet)
        if training.writing.seen:
            training.sizes.note_unread(quiet)
        options.make_default_folder(model)
        if instead is not None and len(run.labels) < 2:
            instead(run.messages())
            return
        run.count()
        run.metadata = with_columns(run.metadata, training.sizes.columns)
        chosen = run.metadata.settings
        notes.note_binary(training.settings.positive, chosen.classes, chosen.positive)
        training.sizes.report_shared(*run.shared(), quiet, training.skips.strict)
        if not quiet:
            _note_alone(run)
        run.fit()
        if training.writing.max_ham_blocked is not None:
            run.choose_cut_offs(training.writing.max_ham_blocked)
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
        rates, doubted = leave_one_out_rates(run)
        doubtful_sources = run.named(doubted.messages[:LISTED])
    _print_training(run.metadata, rates, doubted, doubtful_sources, training)


def _note_alone(run: "TrainingRun") -> None:
    """Print a note on header words in nearly all messages of one class and hardly any other."""
    (settings, learned), rows = run.metadata, run.telling_alone()
    if not rows:
        return
    described = []
    for token, row in sorted(rows, key=lambda each: (-max(each[1]), each[0]))[:_NAMED]:
        sizes = zip(row, learned.messages, settings.classes, strict=True)
        where = ", ".join(f"in {n:,} of {of:,} {one_line(name)}" for n, of, name in sizes)
        described.append(f"{token!r} ({where})")
    described += [f"{len(rows) - _NAMED:,} more"] if len(rows) > _NAMED else []
    each, they = ("each of ", "they are") if len(rows) > 1 else ("", "it is")
    note(
        f"{each}{', '.join(described)} alone tells {' from '.join(settings.classes)}: {they}"
        " not used, since a program that fetches or sorts mail may have written that"
    )


def update_instead(messages: Iterable[TokenizedMessage], training: Training) -> None:
    """Learn messages one by one, with --update, in place of all at once."""
    pending = PendingMessages(training.settings.wanted)
    pending.columns = training.sizes.columns
    pending.add(messages, training.model if training.writing.ledger else None)
    learn_one_by_one(pending, training)


def learn_one_by_one(pending: PendingMessages, training: Training) -> None:
    """Add to the model, or write a new one, and print what changed."""
    model, settings, writing = training.model, training.settings, training.writing
    trace = training.trace
    quiet, remember, cut_offs_of = training.quiet, writing.ledger, training.cutting.of
    if not writing.update:
        change, made = update.learned_model(model, None, pending, settings, remember)
        made = made._replace(metadata=cut_offs_of(made.metadata).stored_in(made.metadata))
        model_file.write_model(model, made, replace_old=writing.replace, wait=training.wait)
        trace.trained(model, change.learned)
    else:
        if remember and len(pending.corpus) and not quiet:
            _note_unnamed(model)
        if writing.dry_run:
            change = update.preview(model, pending, settings, remember)
        else:
            with shown_passes(quiet) as passes, trace.changes(model, remember):
                passes.begin(f"adding messages to {model}", 0)
                change = update.learn(model, pending, settings, remember, training.wait)
                trace.learned(change)
                if training.cutting.is_given:  # the model is new
                    update.set_cut_offs(model, cut_offs_of)
    _print_change(change, training)


def _note_unnamed(model: Path) -> None:
    """Print a note, before learning, on learned messages that the ledger does not have."""
    if not model.exists():
        return
    with Lookup(model) as lookup:
        learned = sum(lookup.metadata.learned.messages)
        # Adding up a ledger of a million takes 2 s; mostly its number of lines suffices.
        unnamed = 0 if lookup.remembered() == learned else sum(lookup.without_ledger_entry())
    if unnamed:
        note(
            f"{model}: has learned {counted(unnamed, 'message')} that its ledger does not name"
            " (learned with --no-ledger); one that is given again is counted twice, so"
            " give only newer mail"
        )


def _print_change(change: Change, training: Training) -> None:
    if training.form == "json":
        fields = {"model": str(training.model), **notes.change_json(change), **training.read()}
        click.echo(json.dumps(rounded(fields)))
        return
    _note_surprising(change, training)
    if not training.quiet:
        from nbspam.cli.terminal import echo_sentence, unbroken  # not loaded in silence

        would = "would have " if training.writing.dry_run else ""
        echo_sentence(f"{unbroken(training.model)}: {would}{notes.change_words(change)}")
        with Lookup(training.model) as lookup:
            metadata = lookup.metadata
        if training.settings.base is not None:
            metadata = training.settings.base.through(metadata)
        if not metadata.is_one_sided and (sentence := notes.young_sentence(metadata)):
            echo_sentence(sentence)


def _note_surprising(change: Change, training: Training) -> None:
    """Print a note on messages that looked like another class, unless one is learned silently."""
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
    """Print the numbers learned, and the estimate for new messages.

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
    words, young = notes.counts_words(metadata), notes.young_sentence(metadata)
    if training.writing.verbose:
        sentences = [words, estimate_sentence(rates, len(classes))]
    else:
        sentences = [words.rpartition("),")[0] + ")"]
        if min(metadata.learned.messages) >= _ESTIMATED:
            sentences += expectation(rates, len(classes))
        if not young:
            model_option = (
                "" if str(model) == notes.default_model() else f"-m {unbroken(quote(str(model)))} "
            )
            sentences.append(f"next: nbspam classify {model_option}message.eml")
    if wrong := doubted.sentence(named):
        sentences.append(f"{wrong}; nbspam eval --leave-one-out --errors 20 shows the worst")
    sentences[0] = f"{unbroken(model)}: learned {sentences[0]}"
    if training.writing.max_ham_blocked is not None:
        sentences.append(cut_off_sentence(metadata, training.writing.max_ham_blocked))
    for sentence in filter(None, [*sentences, young]):
        echo_sentence(sentence)


# What to expect of a new model


_Called = Counter[tuple[str, str]]  # (label, verdict) -> messages


def leave_one_out_rates(run: "TrainingRun") -> "tuple[Figures, DoubtedLabels]":
    """Return the leave-one-out rates of the model, and the labels that look wrong."""
    from nbspam.evaluation.messages import DoubtedLabels, doubted_labels
    from nbspam.evaluation.metrics import count_verdicts, left_out_rates

    called, verdicts, odds, labels = _Called(), _Called(), array("d"), list[str]()
    for part in run.each("estimating the accuracy, each message left out", _judged):
        called.update(part[0])
        verdicts.update(part[1])
        odds.extend(part[2])
        labels.extend(part[3])
    positive = run.metadata.settings.positive
    rates = left_out_rates(count_verdicts(called, positive), count_verdicts(verdicts, positive))
    is_calibrated = rule_of(run.metadata).is_calibrated
    doubted = doubted_labels(odds, labels, positive) if is_calibrated else DoubtedLabels()
    return rates, doubted


def _judged(
    metadata: Metadata, labels: list[str], scores: Iterator[Score]
) -> "tuple[_Called, _Called, array[float], list[str]]":
    """Return counts of (label, verdict) at 0.5 and with the cut-offs, log-odds and labels."""
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
    """Return the estimate of 100 messages, for a beginner."""
    blocked, missed = (rates.by_key[f"verdict_{key}_pct"].counts for key in ("bh", "sm"))
    if n_classes > 2 or blocked is None or missed is None:
        right, every = rates.by_key["accuracy"].counts or (0, 1)
        return [f"{100 * right // every} in 100 new messages would be classified correctly"]
    (marked, ham), (delivered, spam) = blocked, missed
    few = "fewer than 1" if 0 < marked < ham / 100 else math.ceil(100 * marked / ham)
    rest = "; the rest delivered, as unsure or ham" if delivered else ""
    return [
        f"{few} in 100 legitimate messages would be marked as spam",
        f"{100 * (spam - delivered) // spam} in 100 spam messages would be caught{rest}",
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
    """Return the chosen cut-off, and whether there is enough ham to measure the limit."""
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
