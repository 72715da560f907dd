"""Rows and files that could not be read: skipped, counted, and named at the end."""

from collections.abc import Mapping
from typing import NamedTuple

from nbspam.errors import Remedy, SourceError

# Enough to see what is wrong; a log of a million bad rows helps nobody.
NAMED_LIMIT = 10


class Skipped(NamedTuple):
    """A message that could not be read, or has nothing in it."""

    source: str
    reason: str
    is_error: bool = True  # under `strict`


class Skips:
    """Called with each bad row or file; under `strict` the first of them is an error instead."""

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self.count = 0
        self._first: list[SourceError] = []  # NAMED_LIMIT at most

    def __call__(self, source: str, reason: str, remedy: Remedy | None = None) -> None:
        """Note that `source` was skipped; raises SourceError under `strict`."""
        if self.strict:
            raise SourceError(f"{source}: {reason}", remedy or Remedy.LEAVE_OUT_STRICT)
        self.note(source, reason, remedy)

    def note(self, source: str, reason: str, remedy: Remedy | None = None) -> None:
        """Note that `source` was left out, which is not an error even under `strict`."""
        self.count += 1
        if len(self._first) < NAMED_LIMIT:
            self._first.append(SourceError(f"{source}: {reason}", remedy))

    def take(self, skipped: Skipped) -> None:
        """Note what another reader skipped; raises SourceError for an error under `strict`."""
        skip = self if skipped.is_error else self.note
        skip(skipped.source, skipped.reason)

    def merge(self, other: "Skips") -> None:
        """Add what another reader skipped after this one."""
        self.count += other.count
        self._first += other._first[: NAMED_LIMIT - len(self._first)]

    @property
    def named(self) -> list[str]:
        """The first things skipped, each with the reason."""
        return [str(skipped) for skipped in self._first]

    def report(self, remedies: Mapping[Remedy, str] | None = None) -> list[str]:
        """Return the lines to show the user at the end; empty when nothing was skipped.

        remedies: the words of whoever reports, as in `NbspamError.sentence`.
        """
        if not self.count:
            return []
        items = "item" if self.count == 1 else "items"
        lines = [f"skipped {self.count} {items} that could not be read:"]
        lines += [f"  {skipped.sentence(remedies or {})}" for skipped in self._first]
        if self.count > len(self._first):
            lines.append(f"  … and {self.count - len(self._first)} more")
        return lines
