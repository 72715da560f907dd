"""The options of commands that learn or evaluate: labelled sources, training, test protocols."""

import itertools
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from nbspam.bayes.event_model import BERNOULLI, EVENT_MODELS
from nbspam.bayes.trait_model import SMOOTHING, TRAIT_MODELS, Variances
from nbspam.cli import notes
from nbspam.cli.command import (
    SOURCE,
    argument,
    given_on_command_line,
    option,
    rare_flag,
    rare_option,
    section,
)
from nbspam.cli.options import PROBABILITY, CutOffOptions, ham_limit_option, refuse_stdin_twice
from nbspam.errors import OptionError, Remedy, SourceError, TrainingError, format_count, one_line
from nbspam.learning.settings import TrainingSettings
from nbspam.names import FEW, HAM, SPAM, is_first_row, normal_label, rare_classes, real_name
from nbspam.reading.message import RawMessage
from nbspam.reading.source import STDIN, ReadingOptions, Skips
from nbspam.reading.sources import Source, read_labelled, read_unlabelled
from nbspam.store.metadata import EVIDENCE, SCORINGS, ModelSettings
from nbspam.workers import ProgressPasses

if TYPE_CHECKING:  # --help loads no numpy
    from pathlib import Path

    from nbspam.evaluation.results import Evaluation
    from nbspam.learning.corpus import Corpus
    from nbspam.scoring.verdict import CutOffs
    from nbspam.tokens.tokenized import TokenizedMessage


_Reading = Callable[[str, ReadingOptions, Skips], Iterator[RawMessage]]
_read = partial(option, multiple=True, type=SOURCE)
_read_several = partial(_read, metavar="SRC...", greedy=True)


@section("Sources")
class Sources(NamedTuple):
    """The labelled messages to read."""

    sources: tuple[str, ...] = argument("sources", metavar="[SOURCE]...", nargs=-1)
    spam: tuple[str, ...] = _read_several(help="Read spam from each SRC, up to the next option.")
    ham: tuple[str, ...] = _read_several(
        help="Read ham from each SRC; a quoted pattern, '~/Maildir/.*', is read without the"
        " sources that other options name."
    )
    label: tuple[str, ...] = _read(
        metavar="NAME=SRC",
        advanced=True,
        help="Read messages of the class NAME from SRC (repeatable).",
    )

    def names(self) -> list[str]:
        """Return the names of all sources; raises OptionError if standard input is named twice."""
        pairs = [pair.partition("=")[2] for pair in self.label]
        names = [*self.sources, *self.spam, *self.ham, *pairs]
        refuse_stdin_twice(names)
        return names

    @property
    def may_have_two_classes(self) -> bool:
        """Whether the messages may have two or more labels."""
        return bool(self.sources) or len({label for label, _ in self._labelled_sources()}) > 1

    def names_without_labels(self) -> list[str]:
        """Return the names of all sources; no names if some sources have labels of their own."""
        return [] if self.sources else self.names()

    def messages(
        self, reading: ReadingOptions, skips: Skips, read: _Reading = read_labelled
    ) -> Iterator[RawMessage]:
        """Read the messages: the plain sources, then --spam, --ham and --label, in order.

        read: reads a plain source, with labels or without.
        Raises OptionError.
        """
        self.check()
        labelled_sources = self._labelled_sources()
        reading = self._without_overlaps(reading)
        return itertools.chain(
            *(read(source, reading, skips) for source in self._distinct_sources()),
            *(read_unlabelled(source, label, reading, skips) for label, source in labelled_sources),
        )

    def check(self) -> None:
        """Raise OptionError without a source, and for sources that a shell made from a pattern.

        `--ham ~/Maildir/.* --spam ~/Maildir/.Junk` without quotes names the junk folder twice, and
        in some shells (dash) the parent folder.
        """
        labelled_sources = self._labelled_sources()
        if not (self.sources or labelled_sources):
            raise OptionError(
                "no source was given; name a table or a folder, or use --spam and --ham"
            )
        label_by_path: dict[str, str] = {}
        for label, source in labelled_sources:
            if source != STDIN and label_by_path.setdefault(real_name(source), label) != label:
                raise OptionError(
                    f"{source}: is given with two labels; give it once, and quote a pattern such as"
                    " '~/Maildir/.*'"
                )
        for source in (*self.spam[1:], *self.spam[:-1], *self.ham[1:], *self.ham[:-1]):
            if source.rstrip("/").endswith(("/.", "/..")):
                raise OptionError(
                    f"{source}: a shell made this of a pattern; quote it, such as '~/Maildir/.*'"
                )

    def given_labels(self) -> list[str]:
        """Return the labels that --spam, --ham and --label give."""
        return [label for label, _ in self._labelled_sources()]

    def check_all(self) -> None:
        """Raise OptionError without a source, and SourceError for a source that does not exist."""
        self.check()
        for source in [*self.sources, *(source for _, source in self._labelled_sources())]:
            Source(source, ReadingOptions(), Skips()).check_exists()

    def _without_overlaps(self, reading: ReadingOptions) -> ReadingOptions:
        """Return options that read a source inside another source only once."""
        labels = [(source, "") for source in self.sources]
        labels += [(source, label) for label, source in self._labelled_sources()]
        if len(labels) < 2:
            return reading
        label_by_path = {real_name(source): label for source, label in labels if source != STDIN}
        return reading._replace(source_labels={**reading.source_labels, **label_by_path})

    def _distinct_sources(self) -> list[str]:
        """Return the sources with labels, each once.

        A link counts as a different source, because an index names files in its own folder, and
        the ending of a name gives a table's format.
        """
        places = (os.path.split(source.rstrip("/")) for source in self.sources)
        keys = [(real_name(folder), name) for folder, name in places]
        return list(dict(zip(keys, self.sources, strict=True)).values())

    def _labelled_sources(self) -> list[tuple[str, str]]:
        """Return (label, source) of --spam, --ham and --label, each once."""
        pairs = [(SPAM, source) for source in self.spam] + [(HAM, source) for source in self.ham]
        for text in self.label:
            name, equals, source = text.partition("=")
            if not (equals and normal_label(name) and source):
                raise OptionError(
                    f"--label {text!r} is not NAME=SOURCE; try --label promo=promo.mbox"
                )
            pairs.append((normal_label(name), source))
        literal = {real_name(source) for _, source in pairs if source != STDIN}
        paths = [(label, path) for label, name in pairs for path in _expand_pattern(name, literal)]
        return list({(label, real_name(path)): (label, path) for label, path in paths}.values())


def _expand_pattern(source: str, other_paths: Container[str]) -> list[str]:
    """Return the paths that match a pattern; the name of an existing file is not a pattern.

    other_paths: real paths of other sources, which a pattern leaves out: `--spam ~/Maildir/.Junk
    --ham '~/Maildir/.*'`.  Files whose name starts with a dot are not mail: they belong to mail
    programs.
    """
    if not set(source) & set("*?[") or os.path.lexists(source):
        return [source]
    import glob  # learning one message loads no glob

    paths = sorted(glob.glob(os.path.expanduser(source), include_hidden=True))  # noqa: PTH111, PTH207
    return [
        path
        for path in paths
        if real_name(path) not in other_paths
        and (os.path.isdir(path) or not os.path.basename(path).startswith("."))  # noqa: PTH112, PTH119
    ] or [source]


def _normalize_label(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    """Normalize a label, as in the class names of a model."""
    return None if value is None else normal_label(value)


@section("Model")
class TrainingOptions(NamedTuple):
    """The kind of model to train; None is the default."""

    event_model: str | None = rare_option(
        type=click.Choice(EVENT_MODELS),
        help="How tokens are counted: present or absent; as often as they occur; in the complement"
        " of the class; not at all. [default: bernoulli]",
    )
    traits: str | None = rare_option(
        type=click.Choice(TRAIT_MODELS),
        help="How numeric features (length, digits, capitals …) are modelled. [default: kernel;"
        " with --scoring sum none]",
    )
    scoring: str | None = rare_option(
        type=click.Choice(SCORINGS),
        help="Combine and calibrate the weights, or take the textbook's plain sum. [default:"
        " evidence]",
    )
    alpha: float | None = rare_option(
        metavar="A",
        type=float,
        help="Additive (Laplace) smoothing, above 0. [default: 0.05; with --scoring sum 0.1]",
    )
    prior: float | None = rare_option(
        type=PROBABILITY,
        help="Fix the prior probability of spam, between 0 and 1. [default: as learned]",
    )
    variance_smoothing: float | None = rare_option(
        metavar="E",
        type=float,
        help="Gaussian traits: add this share of the largest variance to each. [default: 1e-9]",
    )
    variance_prior: float | None = rare_option(
        metavar="N",
        type=float,
        help="Gaussian traits: weight of the variance over all classes, in messages. [default: 0]",
    )
    shared_variance: bool | None = rare_flag(
        default=None, help="Gaussian traits: use one variance for all classes."
    )
    spam_label: str | None = option(
        metavar="NAME", callback=_normalize_label, help="Name of the spam class, if it is not spam."
    )

    @classmethod
    def from_model(cls, settings: ModelSettings) -> "TrainingOptions":
        """Return the options that a model was trained with."""
        kind = settings.event_model, settings.traits, settings.scoring
        return cls(*kind, settings.alpha, settings.prior, *settings.variances, settings.positive)

    def settings(self) -> TrainingSettings:
        """Return checked settings for `learning`; raises OptionError for a value out of bounds."""
        settings = self.unchecked()
        settings.check()
        return settings

    def unchecked(self) -> TrainingSettings:
        """Return settings for `learning` that may suit only some kinds of models."""
        smoothing, prior, shared = self[5:8]
        smoothing = SMOOTHING if smoothing is None else smoothing
        variances = Variances(smoothing, prior or 0.0, bool(shared))
        kind = self.event_model or BERNOULLI, self.traits, variances
        scoring = self.scoring or EVIDENCE
        return TrainingSettings(self.alpha, self.prior, scoring, self.spam_label, *kind)

    def given(self) -> list[str]:
        """Return the names of the options that were given."""
        return [name for name, value in self._asdict().items() if value is not None]

    @staticmethod
    def option(name: str) -> str:
        """Return a field's option: `--spam-label`."""
        return f"--{name.replace('_', '-')}"


_PROTOCOL_OPTIONS = "--leave-one-out --folds --train-first --online"
_protocol_option = partial(option, conflicts_with=f"{_PROTOCOL_OPTIONS} --including-learned")


@section("Test")
class Protocol(NamedTuple):
    """The test protocol; by default the saved model is tested."""

    leave_one_out: bool = _protocol_option(
        is_flag=True, help="Classify each message with a model of all the others."
    )
    folds: int | None = _protocol_option(metavar="K", type=int, help="Cross-validate with K folds.")
    train_first: str | None = _protocol_option(
        metavar="N|P%", help="Train on the first N messages (or P percent) and test on the rest."
    )
    online: bool = _protocol_option(
        is_flag=True, help="Classify, then learn, in order, like a live filter."
    )
    batch: int | None = rare_option(
        type=click.IntRange(1),
        requires="--online",
        help="With --online, classify N messages before learning them. [default: 1]",
    )
    max_ham_blocked: float | None = ham_limit_option(
        requires="--train-first",
        conflicts_with="--spam-cutoff --ham-cutoff --ham-cost",
        advanced=True,
        help="With --train-first, choose from those messages the lowest spam cut-off that marks at"
        " most this share of ham as spam.",
    )
    compare: str | None = _protocol_option(
        metavar="all|NAME,…",
        conflicts_with="--event-model --traits --scoring --spam-cutoff --ham-cutoff --ham-cost"
        " --max-ham-blocked --including-learned --errors --predictions --full",
        help="Compare kinds of naive Bayes, by leave-one-out or as chosen above.",
    )
    including_learned: bool = rare_flag(
        help="Test a saved model also on messages that it has learned."
    )
    seed: int | None = rare_option(
        type=click.IntRange(0),
        requires="--folds",
        help="Shuffle messages before splitting into --folds. [default: not shuffled]",
    )

    @property
    def is_stream(self) -> bool:
        """Whether mail is tested in the order of arrival, including copies."""
        return self.online or self.train_first is not None

    @property
    def _protocol_options(self) -> list[str]:
        """The given options that choose the protocol."""
        names = "folds", "train_first", "online", "leave_one_out", "compare"
        values = ((name, getattr(self, name)) for name in names)  # 0 folds are given and wrong
        return [
            TrainingOptions.option(name) for name, v in values if v is not None and v is not False
        ]

    @property
    def trains(self) -> bool:
        """Whether models are trained on some of the messages."""
        return bool(self._protocol_options)

    def check(
        self, training_options: TrainingOptions, cut_off_options: CutOffOptions, model: "Path"
    ) -> None:
        """Raise OptionError for conflicting options."""
        if not self.trains:
            cut_off_options.check()
            for name in training_options.given():
                if name != "spam_label":  # --spam-label may name the spam of the test messages
                    flag = training_options.option(name)
                    raise OptionError(
                        f"{flag} needs --leave-one-out, --folds, --train-first or --online; add one"
                        f" of them, or leave out {flag}"
                    )
            return
        if given_on_command_line("model"):
            way = self._protocol_options[0]
            raise OptionError(
                f"{way} trains new models and does not test {model}; leave out --model, or leave"
                f" out {way} to test that model"
            )
        cut_off_options.for_new_model()  # raises for wrong cut-offs
        if self.compare is None:  # --compare checks the settings of each kind
            training_options.settings()
        if not self.online and given_on_command_line("base"):
            raise OptionError(
                "--base needs --online or a saved model, since with a base messages are learned one"
                " by one; add --online, or leave out --base"
            )

    def run(
        self,
        read: "Corpus",
        settings: TrainingSettings,
        cut_offs: "CutOffs",
        explain_mistakes: bool = True,
        passes: ProgressPasses | None = None,
    ) -> "Evaluation":
        """Test models trained on some of the messages; the default is leave-one-out.

        explain_mistakes: keep the strongest words of mistakes.  passes: shows the progress.
        """
        from nbspam.cli.progress import progress_parts
        from nbspam.evaluation import protocols
        from nbspam.evaluation.messages import for_model

        read, n = for_model(read, settings), len(read)
        title = f"classifying, then learning, message {{:,}} of {n:,}"
        if self.folds is not None:
            title = f"training and testing, fold {{:,}} of {self.folds}"
        titled = partial(
            progress_parts, passes or ProgressPasses(), lambda _, i: title.format(i + 1)
        )
        trial = protocols.Trial(read, settings, cut_offs, explain_mistakes, titled)
        if self.folds is not None:
            return protocols.folds(trial, self.folds, self.seed)
        if self.online:
            return protocols.online(trial, self.batch or 1)
        if self.train_first is not None:
            return protocols.train_first(
                trial, protocols.count_first(self.train_first, n), self.max_ham_blocked
            )
        return protocols.leave_one_out(trial)


# The labels that were read

_MAX_CLASSES_NAMED, MAX_EXAMPLES = 5, 3  # named in a note; examples are messages or words


class LabelTally:
    """Counts the messages of each class, and keeps the first sources of each."""

    def __init__(self) -> None:
        self.n_shared: int | None = None  # messages in two or more classes; None: unknown
        self.columns: list[tuple[str, str]] = []  # text column and label column of each table
        self._deferred: list[SourceError] = []  # notes on label columns
        self._sizes: dict[str, int] = {}
        self._first: dict[str, list[str]] = {}  # class -> its first sources, FEW at most

    def note_or_defer(self, print_note: Callable[[SourceError], None], note: SourceError) -> None:
        """Print a note on a source; a note on its label column waits until the labels do not fit.

        print_note: prints the note.
        """
        if note.remedy is Remedy.NAME_ANOTHER_LABEL:
            self._deferred.append(note)
        else:
            print_note(note)

    def print_deferred_notes(self) -> None:
        """Print the notes on label columns."""
        for note in self._deferred:
            notes.note_reading(note)

    @contextmanager
    def report_label_failure(self) -> Iterator[None]:
        """Print the notes on label columns if training fails."""
        try:
            yield
        except TrainingError:
            self.print_deferred_notes()
            raise

    def __call__(self, messages: "Iterable[TokenizedMessage]") -> "Iterator[TokenizedMessage]":
        """Yield the messages, and count them."""
        for message in messages:
            label = message.label or ""
            self.add({label: 1}, {label: [message.source]})
            yield message

    def note_shared_messages(
        self, n: int, examples: Sequence[Mapping[str, str]], quiet: bool, strict: bool
    ) -> None:
        """Print a note on n messages that are in two or more classes.

        examples: class -> first source, for some of the messages.
        Raises TrainingError if strict.
        """
        self.n_shared = n
        if not n:
            return
        locations = [
            " and ".join(
                f"{one_line(source)} as {name}"
                for name, source in list(example.items())[:_MAX_CLASSES_NAMED]
            )
            for example in examples[:MAX_EXAMPLES]
        ]
        locations += [f"and {n - len(locations):,} more"] if 0 < len(locations) < n else []
        details = f" ({'; '.join(locations)})" if locations else ""
        sentence = (
            f"{format_count(n, 'message')} {'is' if n == 1 else 'are'} in two or more classes"
            f"{details}"
        )
        if strict:
            raise TrainingError(f"{sentence}; correct the labels, or leave out --strict")
        if not quiet:
            notes.note(f"{sentence}; correct the labels if that is a mistake")

    def add(self, sizes: Mapping[str, int], first: Mapping[str, list[str]]) -> None:
        """Add counts by class; first: sources of the first messages of each class."""
        for name, n in sizes.items():
            self._sizes[name] = self._sizes.get(name, 0) + n
            sources = self._first.setdefault(name, [])
            sources += first[name][: FEW - len(sources)]

    def note_nothing_seen(self, quiet: bool) -> None:
        """Print a note, unless quiet, if --seen has left no message to learn."""
        if not (self._sizes or quiet):
            notes.note(
                "no message is marked as read by its owner, so nothing was learned; leave out"
                " --seen to learn unread messages, too"
            )

    def mistyped(self, intended: Iterable[str | None], strict: bool) -> list[str]:
        """Return the classes with few messages next to two large classes, which are left out.

        intended: classes that are not mistakes.  Prints notes, or raises TrainingError if strict.
        """
        rare = {*rare_classes(self._sizes)} - {HAM, SPAM, *intended}
        mistyped = {name: self._first[name] for name in sorted(rare)}
        for name, sources in list(mistyped.items())[:_MAX_CLASSES_NAMED]:
            examples = ", ".join(map(one_line, sources))
            only = f"the class {name!r} has only {format_count(len(sources), 'message')}"
            if strict:
                raise TrainingError(
                    f"{only} ({examples}); correct the label, or leave out --strict"
                )
            header = ""
            if is_first_row(sources, itertools.chain(*self._first.values())):
                header = ", or add --header-row yes if that row names the columns"
            notes.note(
                f"{only} of {sum(self._sizes.values()):,} ({examples}), and is left out; if the"
                f" label is wrong, correct it{header}; --label {name}=SOURCE gives a class of that"
                " name"
            )
        if len(mistyped) > _MAX_CLASSES_NAMED:
            notes.note(f"{len(mistyped) - _MAX_CLASSES_NAMED} more such classes are left out")
        return list(mistyped)
