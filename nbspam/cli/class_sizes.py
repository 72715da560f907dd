"""How many messages each class has, so that a label typed wrongly does not pass unseen."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from nbspam.cli.notes import note
from nbspam.errors import counted, one_line
from nbspam.tokens.tokenized import TokenizedMessage

FEW = 5  # messages; a class of more is not one of mistakes
_TIMES_LARGER = 10  # than such a class: both of the largest two, which are what was meant
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
            note(
                f"the class {name!r} has only {counted(n, 'message')} of"
                f" {sum(self._sizes.values()):,} ({where}); if that label is a mistake, correct it"
                f" there: as it is there are {len(self._sizes)} classes, and cut-offs are for two"
            )
        if len(small) > _SHOWN:
            note(f"{len(small) - _SHOWN} more classes have at most {FEW} messages each")

    def small(self) -> list[str]:
        """Return the names of those classes."""
        if len(self._sizes) < 3:
            return []
        second = sorted(self._sizes.values())[-2]
        return [name for name, n in self._sizes.items() if n <= FEW and _TIMES_LARGER * n <= second]
