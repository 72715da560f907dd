"""Options of how to test a filter."""

from typing import TYPE_CHECKING, NamedTuple

import click

from nbspam.cli.declared import DECIDES, option, section
from nbspam.cli.learning_options import Learning
from nbspam.cli.options import ham_limit_option
from nbspam.errors import OptionError

if TYPE_CHECKING:  # help loads no numpy
    from pathlib import Path

    from nbspam.cli.progress import Work
    from nbspam.evaluation.messages import LabelledCorpus
    from nbspam.evaluation.results import Evaluation
    from nbspam.learning.settings import TrainingSettings
    from nbspam.scoring.verdict import CutOffs


_OF_KINDS = "--event-model --traits --scoring --prior --variance-smoothing --variance-prior"
_TRAINING = f"{_OF_KINDS} --shared-variance --alpha --spam-label"  # what only a new model needs


@section("Test")
class Protocol(NamedTuple):
    """How to test; without any of these, the saved model."""

    leave_one_out: bool = option(
        "Score each message by a model of all the others.", enables=_TRAINING, typed=DECIDES
    )
    folds: int | None = option(
        "Cross-validate with K folds.", "K", enables=_TRAINING, typed=DECIDES, example="2"
    )
    train_first: str | None = option(
        "Train on the first N messages (or P percent) and test on the rest.",
        "N|P%",
        enables=f"{_TRAINING} --max-ham-blocked",
        typed=DECIDES,
        example="1",
    )
    online: bool = option(
        "Classify, then learn, in order, simulating a live filter.",
        enables=f"{_TRAINING} --batch",
        typed=DECIDES,
    )
    batch: int | None = option(
        "With --online, classify N messages before learning them. [default: 1]", "N"
    )
    max_ham_blocked: str | None = ham_limit_option(
        "With --train-first, choose from those messages the lowest spam cut-off", {}
    )
    compare: str | None = option(
        "Compare kinds of naive Bayes on these messages, by leave-one-out or as chosen.",
        "all|NAME,…",
        enables=_TRAINING,
        overrules=f"{_OF_KINDS} --shared-variance --spam-cutoff --ham-cutoff --ham-cost"
        " --max-ham-blocked --errors",
        typed=DECIDES,
        example="all",
    )
    including_learned: bool = option(
        "Test a saved model on messages that it has learned, too.", typed=DECIDES
    )
    seed: int | None = option(
        "Draw the bootstrap's resamples with this seed, and shuffle the messages before --folds."
        " [default: 0; folds in the order of the messages]",
        "N",
        takes=click.IntRange(0),
    )

    @property
    def bootstrap_seed(self) -> int:
        """The seed of the bootstrap."""
        from nbspam.evaluation.samples import SEED

        return SEED if self.seed is None else self.seed

    @property
    def _ways(self) -> list[str]:
        """The options given that choose how to train and test."""
        given = {
            "--folds": self.folds is not None,
            "--train-first": self.train_first is not None,
            "--online": self.online,
            "--leave-one-out": self.leave_one_out,
            "--compare": self.compare is not None,
        }
        return [name for name, is_given in given.items() if is_given]

    @property
    def trains(self) -> bool:
        """Whether models are trained on some of the messages."""
        return bool(self._ways)

    def check(self, learning: Learning, model: "Path | None") -> None:
        """Raise OptionError for options that cannot be together.

        model: if it was named on the command line.
        """
        if len(self._ways) > 1 + (self.compare is not None):
            raise OptionError(
                "--leave-one-out, --folds, --train-first and --online are four ways to test; give"
                " one of them"
            )
        if self.compare is not None:
            self._check_compared(learning)
        if self.trains:
            self._check_no_model(model)
        if self.batch is not None and not self.online:
            raise OptionError("--batch goes with --online; add it, or leave --batch out")
        if self.batch is not None and self.batch < 1:
            raise OptionError(
                f"a batch of {self.batch} is not possible; give a number of at least 1"
            )
        if self.max_ham_blocked is not None and self.train_first is None:
            raise OptionError(
                "--max-ham-blocked chooses a cut-off from the messages of --train-first; add that,"
                " or leave it out: a saved model has the cut-off that train chose"
            )
        for name in learning.given() if not self.trains else ():
            if name == "spam_label":  # of the messages that a saved model is tested on
                continue
            raise OptionError(
                f"{learning.option(name)} is for training; add --leave-one-out, --folds,"
                " --train-first or --online, or leave it out"
            )

    def _check_compared(self, learning: Learning) -> None:
        """Raise OptionError for options of one model."""
        for name in ("event_model", "traits", "scoring"):
            if name in learning.given():
                raise OptionError(
                    f"--compare tries them all, and {learning.option(name)} asks for one; leave"
                    " it out, or name what to compare"
                )
        if self.max_ham_blocked is not None:
            raise OptionError(
                "--max-ham-blocked chooses a cut-off, and --compare counts errors at 0.5; leave"
                " it out"
            )

    def _check_no_model(self, model: "Path | None") -> None:
        """Raise OptionError for options of a saved model."""
        way = self._ways[0]
        if model is not None:
            raise OptionError(
                f"{way} trains models of its own and does not test {model}; leave out --model, or"
                f" leave out {way} to test that model"
            )
        if self.including_learned:
            raise OptionError(
                f"--including-learned is of a saved model, and {way} trains models of its own;"
                " leave one of them out"
            )

    def run(
        self,
        read: "LabelledCorpus",
        settings: "TrainingSettings",
        cut_offs: "CutOffs",
        limit: float | None = None,
        telling: bool = True,
        at_work: "Work | None" = None,
    ) -> "Evaluation":
        """Return the outcomes of models trained on some of the messages; leave-one-out by default.

        limit: the share of ham that may be blocked.  telling: whether to keep the telling words.
        at_work: shows what is being done.
        """
        from nbspam.cli.progress import Work
        from nbspam.evaluation import protocols

        read, parts = read.for_model(settings), (at_work or Work(None)).parts
        trial, n = protocols.Trial(read, settings, cut_offs, telling), len(read.corpus)
        if self.folds is not None:
            k = self.folds
            trial = trial._replace(
                shown=parts(lambda i: f"training and testing, fold {i + 1} of {k}")
            )
            return protocols.folds(trial, k, self.seed)
        if self.online:
            trial = trial._replace(
                shown=parts(lambda i: f"classifying, then learning, message {i + 1:,} of {n:,}")
            )
            return protocols.online(trial, 1 if self.batch is None else self.batch)
        if self.train_first is not None:
            return protocols.train_first(trial, self.first(n), limit)
        return protocols.left_out(trial)

    def first(self, messages: int) -> int:
        """Return how many messages --train-first means."""
        text = self.train_first or ""
        try:
            if text.endswith("%"):
                return round(messages * float(text[:-1]) / 100)
            return int(text)
        except (ValueError, OverflowError) as error:
            raise OptionError(
                f"--train-first {text!r} is neither a number nor a percentage; try 1000 or 30%"
            ) from error
