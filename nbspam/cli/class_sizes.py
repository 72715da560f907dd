"""How many messages each class has, so that a label typed wrongly does not pass unseen."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from nbspam.cli.notes import note
from nbspam.errors import counted, one_line
from nbspam.labels import FEW, rare_classes
from nbspam.tokens.tokenized import TokenizedMessage

_SHOWN = 5  # classes named


@contextmanager
def class_sizes(quiet: bool) -> Iterator["ClassSizes"]:
    """Count the messages of each class, and say at the end, unless quiet, which are suspicious."""
    sizes = ClassSizes()
    yield sizes
    if not quiet:
        sizes.note_small()


class ClassSizes:
    """Counts the messages of each class that pass through it, and keeps where the first are."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._first: dict[str, list[str]] = {}  # the first sources of each, FEW at most

    def __call__(self, messages: Iterable[TokenizedMessage]) -> Iterator[TokenizedMessage]:
        """Yield the messages, and count those with a label."""
        for message in messages:
            if message.label is not None:
                n = self._sizes[message.label] = self._sizes.get(message.label, 0) + 1
                if n <= FEW:
                    self._first.setdefault(message.label, []).append(message.source)
            yield message

    def add(self, sizes: Mapping[str, int], first: Mapping[str, list[str]]) -> None:
        """Count messages that others have counted; first: where the first of each class are."""
        for name, n in sizes.items():
            self._sizes[name] = self._sizes.get(name, 0) + n
            own = self._first.setdefault(name, [])
            own += first[name][: FEW - len(own)]

    def note_small(self) -> None:
        """Say which classes are of a few messages beside two large ones, and where these are."""
        small = self.small()
        for name in small[:_SHOWN]:
            n = self._sizes[name]
            where = ", ".join(one_line(source) for source in self._first[name])
            header = ""
            if self._may_be_header(name):
                header = " if that row names the columns, add --header-row yes;"
            note(
                f"the class {name!r} has only {counted(n, 'message')} of"
                f" {sum(self._sizes.values()):,} ({where});{header} if that label is a mistake,"
                " correct it"
                f" there: as it is there are {len(self._sizes)} classes, and cut-offs are for two"
            )
        if len(small) > _SHOWN:
            note(f"{len(small) - _SHOWN} more classes have at most {FEW} messages each")

    def _may_be_header(self, name: str) -> bool:
        """Return whether a class has one message, the first row of a table with others."""
        table, _, row = self._first[name][0].rpartition(":")
        return (self._sizes[name], row) == (1, "1") and any(
            source.startswith(f"{table}:")
            for other, sources in self._first.items()
            for source in sources
            if other != name
        )

    def small(self) -> list[str]:
        """Return the names of those classes."""
        return rare_classes(self._sizes)
