"""Learning what the filter itself was sure of: self-training, bogofilter's -u.

What it costs and brings is measured in docs/ideas-tried.md.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from nbspam.labels import UNSURE
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.update import Change, LearningRun, PendingMessages, every_message, learn
from nbspam.scoring.verdict import Verdict
from nbspam.store.lock import DEFAULT_WAIT, LockWait
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import Metadata
from nbspam.tokens.tokenized import NO_NUMBERS, TokenizedMessage

if TYPE_CHECKING:
    from nbspam.scoring.base import Base

# A higher bound is not always safer: ham is seldom so sure.  Of 5,474 SMS, a model of 100 surely
# judged 4,472 ham and 660 spam at 0.99, and 808 and 519 at 0.999: it then made 719 errors, not 38.
SURE = 0.99
# Messages of each class that must have been learned before.  What fewer show is too little to build
# on: of 5,103 mails that came after the first 300 of SpamAssassin's (176 ham), a model of those
# calls 8 ham spam; learning its own verdicts, it called 2,079 so.  docs/ideas-tried.md has more.
FEWEST = 500


def too_few(metadata: Metadata) -> dict[str, int]:
    """Return class -> messages learned of those that a model has too few of for self-training."""
    learned = zip(metadata.settings.classes, metadata.learned.messages, strict=True)
    return {name: n for name, n in learned if n < FEWEST}


class SelfTraining:
    """Judged messages that are to be learned as what they were judged."""

    def __init__(self, metadata: Metadata, sure: float = SURE) -> None:
        """metadata: of the model that judges; sure: learn from this probability of the verdict on.

        A model of too few messages learns nothing.
        """
        self._pending = PendingMessages(metadata.settings.wanted)
        self._sure, self._is_able = sure, not too_few(metadata)
        self.collected: dict[str, TokenizedMessage] = {}  # by digest, without the tokens

    def add(self, message: TokenizedMessage, judged: Verdict) -> None:
        """Take in a message with its digest, if its verdict is sure; the same one once."""
        verdict = judged.verdict
        if not message.tokens:  # an empty message, of which there is nothing to learn
            return
        if not self._is_able or verdict == UNSURE or judged.probabilities[verdict] < self._sure:
            return
        if message.digest not in self.collected:
            taken = message._replace(label=verdict)
            self._pending.add([taken])
            self.collected[message.digest] = taken._replace(tokens=[], numbers=NO_NUMBERS)

    def learn(
        self, path: Path, wait: LockWait = DEFAULT_WAIT, base: "Base | None" = None
    ) -> Change:
        """Learn them into the model at `path`, but for those that its ledger has in any class.

        What the user has taught is never moved by what the filter believes.
        base: that the model is read through.  Raises ModelError.
        """
        if not self.collected:
            return Change()
        Lookup(path).close()  # a model that has gone meanwhile is not begun anew
        settings = TrainingSettings(base=base)
        return learn(path, self._pending, settings, wait=wait, teach=_unknown_messages)


def _unknown_messages(run: LearningRun) -> None:
    """Learn the messages that the ledger does not have: looked up under the lock."""
    every_message(run, lambda digest: not any(run.row(digest)))
