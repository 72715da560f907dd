"""The options of commands that learn or evaluate: sources with labels, how to learn and to test."""

import itertools
import os
from collections.abc import Callable, Container, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from nbspam.bayes.event_model import BERNOULLI, EVENT_MODELS
from nbspam.bayes.trait_model import SMOOTHING, TRAIT_MODELS, Variances
from nbspam.cli.command import SOURCE, argument, is_typed, option, rare_flag, rare_option, section
from nbspam.cli.options import PROBABILITY, Cutting, ham_limit_option, refuse_stdin_twice
from nbspam.errors import OptionError
from nbspam.learning.settings import TrainingSettings
from nbspam.names import HAM, SPAM, is_url, normal_label, real_name
from nbspam.reading.message import RawMessage
from nbspam.reading.source import STDIN, ReadingNote, ReadingOptions, Skips
from nbspam.reading.sources import existing, labelled, unlabelled
from nbspam.store.metadata import EVIDENCE, SCORINGS, ModelSettings
from nbspam.workers import Passes

if TYPE_CHECKING:  # --help loads no numpy
    from pathlib import Path

    from nbspam.evaluation.messages import LabelledCorpus
    from nbspam.evaluation.results import Evaluation
    from nbspam.reading.cutting import Cutter, SourcePiece
    from nbspam.scoring.verdict import CutOffs


_Reading = Callable[[str, ReadingOptions, Skips], Iterator[RawMessage]]
_read = partial(option, multiple=True, type=SOURCE)
_read_several = partial(_read, metavar="SRC...", takes_several=True)


@section("Sources")
class Sources(NamedTuple):
    """The labelled messages to read."""

    sources: tuple[str, ...] = argument("sources", metavar="[SOURCE]...", nargs=-1)
    spam: tuple[str, ...] = _read_several(help="Read spam from each SRC, up to the next option.")
    ham: tuple[str, ...] = _read_several(
        help="Read ham from each SRC; a quoted pattern, '~/Maildir/.*', is read without what the"
        " other options name."
    )
    label: tuple[str, ...] = _read(
        metavar="NAME=SRC",
        seldom=True,
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
        return bool(self.sources) or len({label for label, _ in self._named()}) > 1

    def names_without_labels(self) -> list[str]:
        """Return the names of all sources if none carries labels itself."""
        return [] if self.sources else self.names()

    def messages(
        self, reading: ReadingOptions, skips: Skips, read: _Reading = labelled
    ) -> Iterator[RawMessage]:
        """Return the messages; raises OptionError.

        First the plain sources, then --spam, --ham and --label, in order.
        read: how to read the plain sources: with labels, or `any_kind`.
        """
        self.check()
        labelled_sources = self._named()
        reading = self._without_overlaps(reading)
        return itertools.chain(
            *(read(source, reading, skips) for source in self._labelled()),
            *(unlabelled(source, label, reading, skips) for label, source in labelled_sources),
        )

    def pieces(self, cutter: "Cutter") -> "Iterator[SourcePiece | RawMessage | ReadingNote]":
        """Yield the sources cut into pieces, in the order of `messages`; raises OptionError."""
        self.check()
        labelled_sources = self._named()
        cutter = cutter._replace(options=self._without_overlaps(cutter.options))
        for source in self._labelled():
            yield from cutter.pieces(source, needs_labels=True)
        for label, source in labelled_sources:
            yield from cutter.pieces(source, label)

    def check(self) -> None:
        """Raise OptionError for no source, and for one that only a shell can have meant.

        `--ham ~/Maildir/.* --spam ~/Maildir/.Junk` without quotes names the junk folder twice, and
        in some shells (dash) the folder above.
        """
        labelled_sources = self._named()
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

    def check_all(self) -> None:
        """Raise OptionError if there is no source, and SourceError if one does not exist."""
        self.check()
        for source in [*self.sources, *(source for _, source in self._named())]:
            if not is_url(source):
                existing(source)

    def _without_overlaps(self, reading: ReadingOptions) -> ReadingOptions:
        """Return options that read a source inside another source only once."""
        labels = [(source, "") for source in self.sources]
        labels += [(source, label) for label, source in self._named()]
        if len(labels) < 2:
            return reading
        label_by_path = {real_name(source): label for source, label in labels if source != STDIN}
        return reading._replace(source_labels={**reading.source_labels, **label_by_path})

    def _labelled(self) -> list[str]:
        """Return the sources with labels, each once.

        A link is another one: an index names files beside it, and an ending tells a table's format.
        """
        places = (os.path.split(source.rstrip("/")) for source in self.sources)
        keys = [(real_name(folder), name) for folder, name in places]
        return list(dict(zip(keys, self.sources, strict=True)).values())

    def _named(self) -> list[tuple[str, str]]:
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
    """Return the paths that match a pattern; the name of an existing file is no pattern.

    other_paths: real paths of other sources, which a pattern leaves out: `--spam ~/Maildir/.Junk
    --ham '~/Maildir/.*'`.  Files with a dot in front are not mail: programs keep their own there.
    """
    if not set(source) & set("*?[") or is_url(source) or os.path.lexists(source):
        return [source]
    import glob  # learning one message loads no glob

    paths = sorted(glob.glob(os.path.expanduser(source), include_hidden=True))  # noqa: PTH111, PTH207
    return [
        path
        for path in paths
        if real_name(path) not in other_paths
        and (os.path.isdir(path) or not os.path.basename(path).startswith("."))  # noqa: PTH112, PTH119
    ] or [source]


def _label(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return a label as the model names its class."""
    return None if value is None else normal_label(value)


@section("Model")
class Learning(NamedTuple):
    """How to learn; None is the default."""

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
        metavar="NAME", callback=_label, help="Name of the spam class, if it is not spam."
    )

    @classmethod
    def of_model(cls, settings: ModelSettings) -> "Learning":
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


_WAYS = "--leave-one-out --folds --train-first --online"
_way = partial(option, excludes=f"{_WAYS} --including-learned")


@section("Test")
class Protocol(NamedTuple):
    """How to test; without any of these, the saved model."""

    leave_one_out: bool = _way(
        is_flag=True, help="Classify each message with a model of all the others."
    )
    folds: int | None = _way(metavar="K", type=int, help="Cross-validate with K folds.")
    train_first: str | None = _way(
        metavar="N|P%", help="Train on the first N messages (or P percent) and test on the rest."
    )
    online: bool = _way(is_flag=True, help="Classify, then learn, in order, like a live filter.")
    batch: int | None = rare_option(
        type=click.IntRange(1),
        needs="--online",
        help="With --online, classify N messages before learning them. [default: 1]",
    )
    max_ham_blocked: float | None = ham_limit_option(
        needs="--train-first",
        excludes="--spam-cutoff --ham-cutoff --ham-cost",
        seldom=True,
        help="With --train-first, choose from those messages the lowest spam cut-off that marks at"
        " most this share of ham as spam.",
    )
    compare: str | None = _way(
        metavar="all|NAME,…",
        excludes="--event-model --traits --scoring --spam-cutoff --ham-cutoff --ham-cost"
        " --max-ham-blocked --including-learned --errors --predictions --report --full",
        help="Compare kinds of naive Bayes, by leave-one-out or as chosen above.",
    )
    including_learned: bool = rare_flag(
        help="Test a saved model also on messages that it has learned."
    )
    seed: int | None = rare_option(
        type=click.IntRange(0),
        help="Shuffle messages before splitting into --folds, and set the seed of the bootstrap."
        " [default: 0, not shuffled]",
    )

    @property
    def _ways(self) -> list[str]:
        """The given options that choose the protocol."""
        names = "folds", "train_first", "online", "leave_one_out", "compare"
        values = ((name, getattr(self, name)) for name in names)  # 0 folds are given and wrong
        return [Learning.option(name) for name, v in values if v is not None and v is not False]

    @property
    def trains(self) -> bool:
        """Whether models are trained on some of the messages."""
        return bool(self._ways)

    def check(self, learning: Learning, cutting: Cutting, model: "Path") -> None:
        """Raise OptionError for options that cannot be together."""
        if not self.trains:
            cutting.check()
            for name in learning.given():
                if name != "spam_label":  # which may name the spam of the test messages
                    flag = learning.option(name)
                    raise OptionError(
                        f"{flag} needs --leave-one-out, --folds, --train-first or --online; add one"
                        f" of them, or leave out {flag}"
                    )
            return
        if is_typed("model"):
            way = self._ways[0]
            raise OptionError(
                f"{way} trains new models and does not test {model}; leave out --model, or leave"
                f" out {way} to test that model"
            )
        cutting.of_new()  # raises for those of no new model
        if self.compare is None:  # which tries several kinds
            learning.settings()
        if not self.online and is_typed("base"):
            raise OptionError(
                "--base needs --online or a saved model, since with a base messages are learned one"
                " by one; add --online, or leave out --base"
            )

    def run(
        self,
        read: "LabelledCorpus",
        settings: TrainingSettings,
        cut_offs: "CutOffs",
        telling: bool = True,
        passes: Passes | None = None,
    ) -> "Evaluation":
        """Return the outcomes of models trained on some of the messages; leave-one-out by default.

        telling: keep the telling words.  passes: shows the progress.
        """
        from nbspam.cli.progress import parts_shown
        from nbspam.evaluation import protocols

        read, n = read.for_model(settings), len(read.corpus)
        title = f"classifying, then learning, message {{:,}} of {n:,}"
        if self.folds is not None:
            title = f"training and testing, fold {{:,}} of {self.folds}"
        titled = partial(parts_shown, passes or Passes(), lambda _, i: title.format(i + 1))
        trial = protocols.Trial(read, settings, cut_offs, telling, titled)
        if self.folds is not None:
            return protocols.folds(trial, self.folds, self.seed)
        if self.online:
            return protocols.online(trial, self.batch or 1)
        if self.train_first is not None:
            return protocols.train_first(trial, self.first(n), self.max_ham_blocked)
        return protocols.left_out(trial)

    def first(self, messages: int) -> int:
        """Return the number of messages that --train-first names."""
        text = self.train_first or ""
        try:
            return round(messages * float(text[:-1]) / 100) if text.endswith("%") else int(text)
        except (ValueError, OverflowError) as error:
            raise OptionError(
                f"--train-first {text!r} is neither a number nor a percentage; try 1000 or 30%"
            ) from error
