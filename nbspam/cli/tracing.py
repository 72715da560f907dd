"""What commands log of messages, with `--log`; loaded only then."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from nbspam.bayes.event_model import Row
from nbspam.cli.notes import NoTrace, outcome
from nbspam.errors import NbspamError, counted
from nbspam.reading.header_fields import message_id
from nbspam.reading.message import Identity, RawMessage, identity
from nbspam.scoring.verdict import Verdict
from nbspam.serving import log
from nbspam.store.lookup import Lookup
from nbspam.tokens.tokenized import TokenizedMessage

if TYPE_CHECKING:
    from pathlib import Path

    from nbspam.learning.update import Change


_PATIENCE = 1.0  # seconds that the lines of many messages may wait together


class Trace(NoTrace, contextlib.AbstractContextManager["Trace"]):
    """Logs what one run of a command does with its messages, and why it fails.

    Nothing that it does fails: what cannot be logged is said on standard error, once.
    """

    def __init__(
        self, action: str, destination: str, describe: Callable[[BaseException], tuple[int, str]]
    ) -> None:
        """Log to `destination`; action: what the command does, as the lines name it.

        describe: as of `outcome`.
        """
        self._describe = describe
        self._log = log.Log(destination, patience=_PATIENCE)
        self._entry = log.Entry(action, user=log.own_user())
        self._started: float | None = time.perf_counter()
        self._identities: dict[str, Identity] = {}  # by source
        self._learning: dict[str, tuple[str, str]] = {}  # digest -> source, label
        self._notes: dict[str, str] = {}  # digest -> what else is to be said

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Log why the command fails, if it does; else say if something was not logged."""
        if error is not None:
            with contextlib.suppress(Exception):  # what failed is reported, not this
                if len(self._identities) == 1:
                    [source] = self._identities
                    self._entry = self._identified(source)
                reason = outcome(error, self._describe)[1] or "its output was not read"
                self._log.write(self._entry._replace(error=reason))
        elif self._log.problem:  # after an error the message is still to be passed on
            sentence = f"nbspam: {self._log.problem}; start that service, or log elsewhere\n"
            with contextlib.suppress(OSError, ValueError):
                log.write_to_stderr(sentence.encode())

    def begin(self, raw: bytes) -> None:
        """Take down which message it is that is to pass; raw: as much of it as was read."""
        self._log.patience = 0.0  # who delivers it waits
        self._entry = self._entry._replace(message_id=message_id(raw), size=len(raw))

    def noted(self, raws: Iterable[RawMessage]) -> Iterator[RawMessage]:
        """Yield messages, and take down by its source what identifies each."""
        for raw in raws:
            if not isinstance(raw.content, str):  # a row of a table has no Message-ID
                self._identities[raw.source] = identity(raw)
            yield raw

    def judged(self, verdict: Verdict) -> None:
        """Log the verdict on a message."""
        probability, reason = verdict.probability, verdict.reason
        self._add(verdict.source, verdict=verdict.verdict, probability=probability, reason=reason)

    def digested(self, messages: Iterable[TokenizedMessage]) -> Iterator[TokenizedMessage]:
        """Yield messages to learn or to forget, and take down their digests, for `changes`."""
        for message in messages:
            self._learning.setdefault(message.digest, (message.source, message.label or ""))
            yield message

    @contextlib.contextmanager
    def changes(self, model: "Path", remember: bool) -> Iterator[None]:
        """Log what changes for each message while the model is changed; if alone, also nothing.

        remember: False where the ledger does not say.
        """
        with contextlib.ExitStack() as opened:
            # The file as it was stays open: a changed model is another file.
            old = opened.enter_context(Lookup(model)) if model.exists() else None
            yield
            before = old.learned(self._learning) if old else {}
        with contextlib.suppress(NbspamError, OSError):  # the change is made
            with Lookup(model) as lookup:
                after = lookup.learned(self._learning)
            for digest, (source, label) in self._learning.items():
                result = _result(before.get(digest), after.get(digest)) if remember else ""
                if result != log.UNCHANGED or len(self._learning) == 1:
                    note = self._notes.get(digest, "")
                    self._add(source, label=label, result=result, note=note)

    def learned(self, change: "Change") -> None:
        """Note which lessons looked like another class, for `changes`."""
        self._notes = {one.digest: f"looks like {one.looks_like}" for one in change.surprising}

    def trained(self, model: "Path", n: int) -> None:
        """Log that a whole model was trained on `n` messages, in one line."""
        sentence = f"{model}: learned {counted(n, 'message')}"
        self._log.write(self._entry._replace(action="train", note=sentence))

    def _identified(self, source: str) -> log.Entry:
        found = self._identities.get(source, Identity())
        return self._entry._replace(message_id=found.message_id, size=found.size)

    def _add(self, source: str, **values: object) -> None:
        """Log a message; values: of the entry's fields."""
        entry = self._identified(source) if self._identities else self._entry
        if self._started is not None:  # of the first message alone: many are read at a time
            entry = entry._replace(seconds=time.perf_counter() - self._started)
            self._started = None
        self._log.write(entry._replace(**values))  # type: ignore[arg-type]


def _result(before: Row | None, after: Row | None) -> str:
    """Return what was done to a message; the rows: how often each class had learned it."""
    n_before, n_after = sum(before or ()), sum(after or ())
    if n_after > n_before:
        return log.LEARNED
    if n_after < n_before:
        return log.FORGOTTEN
    return log.UNCHANGED if (before or ()) == (after or ()) else log.MOVED
