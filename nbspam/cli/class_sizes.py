"""How many messages each class has, and which are in two, so that no wrong label passes unseen."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise

from nbspam.cli.notes import note
from nbspam.errors import TrainingError, counted, one_line
from nbspam.labels import FEW, rare_classes
from nbspam.tokens.tokenized import TokenizedMessage

_SHOWN = 5  # classes named
_NAMED = 3  # messages of two or more classes that are named
_BLOCK = 1000  # names compressed together


class _Names:
    """A growing list of names, compressed: those of a million mails take 22 MB, not 170."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._last: list[str] = []

    def append(self, name: str) -> None:
        self._last.append(one_line(name))
        if len(self._last) == _BLOCK:
            from zlib import compress  # one message does without

            text = "\n".join(self._last).encode("utf-8", "surrogatepass")
            self._blocks.append(compress(text, 1))
            self._last = []

    def __getitem__(self, i: int) -> str:
        block, place = divmod(i, _BLOCK)
        if block == len(self._blocks):
            return self._last[place]
        from zlib import decompress

        text = decompress(self._blocks[block]).decode("utf-8", "surrogatepass")
        return text.split("\n")[place]


class ClassSizes:
    """Counts the messages of each class that pass through it, and keeps where they are."""

    def __init__(self) -> None:
        self.n_shared: int | None = None  # messages in two or more classes; None: unknown
        self._sizes: dict[str, int] = {}
        self._first: dict[str, list[str]] = {}  # the first sources of each, FEW at most
        # Of each message: half its digest (of a million, two have the same half by chance in one of
        # 37 million runs), the number of its class, and its source.
        self._digests, self._classes, self._sources = array("Q"), array("i"), _Names()
        self._numbers: dict[str, int] = {}

    def __call__(self, messages: Iterable[TokenizedMessage]) -> Iterator[TokenizedMessage]:
        """Yield the messages, and count those with a label."""
        for message in messages:
            if message.label is not None:
                n = self._sizes[message.label] = self._sizes.get(message.label, 0) + 1
                if n <= FEW:
                    self._first.setdefault(message.label, []).append(message.source)
                if message.digest:
                    self._digests.append(int(message.digest[:16], 16))
                    number = self._numbers.setdefault(message.label, len(self._numbers))
                    self._classes.append(number)
                    self._sources.append(message.source)
            yield message

    def report(self, quiet: bool, strict: bool) -> None:
        """Say, unless quiet, which classes are small and which messages are in two or more.

        strict: raises TrainingError for such a message.
        """
        if not quiet:
            self.note_small()
        shared = self._shared()
        named = [{k: self._sources[i] for k, i in each.items()} for each in shared[:_NAMED]]
        self.report_shared(len(shared), named, quiet, strict)

    def report_shared(
        self, n: int, found: Sequence[Mapping[str, str]], quiet: bool, strict: bool
    ) -> None:
        """Say that n messages are in two or more classes.

        found: of some, each class and the first source in it.
        """
        self.n_shared = n
        if not n:
            return
        where = [
            " and ".join(
                f"{one_line(source)} as {name}" for name, source in islice(each.items(), _SHOWN)
            )
            for each in found[:_NAMED]
        ]
        if where and n > len(where):
            where.append(f"and {n - len(where):,} more")
        what = (
            f"{counted(n, 'message')} {'is' if n == 1 else 'are'} in two or more classes"
            f"{' (' if where else ''}{'; '.join(where)}{')' if where else ''}"
        )
        if strict:
            raise TrainingError(f"{what}; correct the labels, or leave out --strict")
        if not quiet:
            note(f"{what}; correct the labels if that is a mistake")

    def _shared(self) -> list[dict[str, int]]:
        """Return the messages in two or more classes: the place of the first of each class."""
        if len(self._numbers) < 2:
            return []
        twice = {one for one, other in pairwise(sorted(self._digests)) if one == other}
        names = list(self._numbers)
        found: dict[int, dict[str, int]] = {}
        for i, digest in enumerate(self._digests):
            if digest in twice:
                found.setdefault(digest, {}).setdefault(names[self._classes[i]], i)
        return [places for places in found.values() if len(places) > 1]

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
