"""What commands log of messages, with `--log`; loaded only then."""

import contextlib
import time
from collections.abc import Iterable, Iterator
from types import TracebackType

from nbspam.cli.notes import note
from nbspam.reading.message_id import Identity, identity, message_id
from nbspam.reading.raw_message import RawMessage
from nbspam.scoring.verdict import Verdict
from nbspam.serving.log import Entry, Log, own_user


class Trace:
    """Logs what one run of a command does with its messages, and why it fails.

    Nothing that it does fails or waits: what cannot be logged is said on standard error, once.
    """

    def __init__(self, action: str, destination: str) -> None:
        """Log to `destination`; action: what the command does, as the lines name it."""
        self._log = Log(destination)
        self._entry = Entry(action, user=own_user())
        self._started: float | None = time.perf_counter()
        self._identities: dict[str, Identity] = {}  # by source

    def __enter__(self) -> "Trace":
        """Log from here on."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Log why the command fails, if it does; else say if something was not logged."""
        if error is not None:
            with contextlib.suppress(Exception):  # what failed is reported, not this
                from nbspam.cli.failure import outcome

                self._write(self._entry._replace(error=outcome(error)[1] or "interrupted"))
        elif self._log.problem:  # after an error the message is still to be passed on
            with contextlib.suppress(OSError):
                note(f"{self._log.problem}; start that service, or log elsewhere")

    def begin(self, raw: bytes) -> None:
        """Take down which message it is; raw: as much of it as was read."""
        self._entry = self._entry._replace(message_id=message_id(raw), size=len(raw))

    def noted(self, raws: Iterable[RawMessage]) -> Iterator[RawMessage]:
        """Yield messages, and take down by its source what identifies each."""
        for raw in raws:
            if not isinstance(raw.content, str):  # a row of a table has no Message-ID
                self._identities[raw.source] = identity(raw)
            yield raw

    def judged(self, verdict: Verdict) -> None:
        """Log the verdict on a message."""
        self.add(verdict.source, verdict=verdict.verdict, probability=verdict.probability)

    def add(self, source: str, **values: object) -> None:
        """Log a message; values: of the entry's fields."""
        entry = self._entry
        if identity := self._identities.get(source):
            entry = entry._replace(message_id=identity.message_id, size=identity.size)
        if self._started is not None:  # of the first message alone: many are read at a time
            entry = entry._replace(seconds=time.perf_counter() - self._started)
            self._started = None
        self._write(entry._replace(**values))  # type: ignore[arg-type]

    def _write(self, entry: Entry) -> None:
        self._log.write(entry)
