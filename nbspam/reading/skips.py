"""The rows and files that could not be read: skipped, counted, and named at the end."""

from nbspam.errors import SourceError, one_line

# Enough to see what is wrong; a log of a million bad rows helps nobody.
NAMED_LIMIT = 10


class Skips:
    """Called with each bad row or file; under `strict` the first of them is an error instead."""

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self.count = 0
        self.named: list[str] = []

    def __call__(self, source: str, reason: str) -> None:
        """Note that `source` was skipped; raises SourceError under `strict`."""
        if self.strict:
            sentence = f"{source}: {reason}; mend it, or leave out --strict to skip it"
            raise SourceError(sentence)
        self.note(source, reason)

    def note(self, source: str, reason: str) -> None:
        """Note that `source` was passed over, which is no error even under `strict`."""
        self.count += 1
        if len(self.named) < NAMED_LIMIT:
            self.named.append(one_line(f"{source}: {reason}"))

    def report(self) -> list[str]:
        """Return the lines to show the user at the end; empty when nothing was skipped."""
        if not self.count:
            return []
        lines = [f"skipped {self.count} that could not be read:", *(f"  {n}" for n in self.named)]
        if self.count > len(self.named):
            lines.append(f"  … and {self.count - len(self.named)} more")
        return lines
