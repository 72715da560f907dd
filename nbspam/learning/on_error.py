"""Train on error: learning only the messages that the model judges wrong, or is not sure of.

The model is smaller and decides a little worse.  What is learned, and refines the calibration, is
what is near the border between the classes; so right is not enough, the model must be sure too.
Measured online from nothing on the first 1,674 SMS (docs/ideas-tried.md): learned 130 with every
right verdict left out, and then 80 errors in 3,900; 339 and 33 if it must be right with 0.99;
all of them, and 21.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from nbspam.learning.update import LearningRun
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.verdict import CutOffs, verdict_on
from nbspam.store.metadata import Metadata
from nbspam.tokens.tokenized import TokenizedMessage

SURE = 0.99


class TrainOnError:
    """Learns in turn what the model, as it is by then, is not sure of: a `Teaching`."""

    def __init__(self, cut_offs_of: Callable[[Metadata], CutOffs], sure: float = SURE) -> None:
        """sure: a right verdict is left out if its class has this probability or more."""
        self._cut_offs_of, self._sure = cut_offs_of, sure

    def __call__(self, run: LearningRun) -> None:
        """Judge each message, then learn it or leave it out; one learned elsewhere is moved."""
        cut_offs = self._cut_offs_of(run.learner.metadata)
        classifier: Classifier | None = None  # of the model as it is
        for message in _in_turns(run):
            steps = [step for step in run.steps(message) if run.classes[step[1]] == message.label]
            if not steps:
                continue  # the ledger has it
            if steps[0][0] is None:
                classifier = classifier or run.learner.classifier()
                if self._is_sure(classifier, message, cut_offs):
                    run.judged_right += 1
                    continue
            run.take(message, steps[:1])  # once more if it comes once more and is not sure then
            run.refine(message, steps[0][1])
            classifier = None

    def _is_sure(
        self, classifier: Classifier, message: TokenizedMessage, cut_offs: CutOffs
    ) -> bool:
        score = classifier.score(message.tokens, message.numbers)
        judged = verdict_on(classifier.metadata, score, cut_offs)
        is_right = judged.verdict == message.label
        return is_right and judged.probabilities[judged.verdict] >= self._sure


def _in_turns(run: LearningRun) -> Iterator[TokenizedMessage]:
    """Yield the messages, the classes in turns by their sizes, each class in its own order.

    Spam after ham, as two folders have them, would be judged by a model that knows ham alone.
    """
    labels = run.corpus.labels
    sizes, done = Counter(labels), Counter[str]()
    places = []
    for i, label in enumerate(labels):
        done[label] += 1
        places.append(((done[label] - 0.5) / sizes[label], i))
    vocabulary = run.corpus.vocabulary
    for _, i in sorted(places):
        yield run.corpus.message(i, vocabulary)
