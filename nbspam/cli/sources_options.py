"""Options that name sources with labels, for commands that learn or evaluate."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from nbspam.cli.options import Decorator, gathered, refuse_stdin_twice
from nbspam.errors import OptionError
from nbspam.labels import HAM, SPAM, normal_label
from nbspam.reading.message import RawMessage
from nbspam.reading.source import Skipped, Skips
from nbspam.reading.sources import STDIN, ReadingOptions, any_kind, labelled, unlabelled
from nbspam.urls import real_name

if TYPE_CHECKING:
    from nbspam.reading.cutting import Cutter, SourcePiece


class Sources(NamedTuple):
    """The labelled messages to read."""

    sources: tuple[str, ...]  # that carry their own labels
    spam: tuple[str, ...]
    ham: tuple[str, ...]
    label: tuple[str, ...]  # NAME=SRC

    def names(self) -> list[str]:
        """Return the names of all sources; raises OptionError if one cannot be read twice."""
        pairs = [pair.partition("=")[2] for pair in self.label]
        names = [*self.sources, *self.spam, *self.ham, *pairs]
        refuse_stdin_twice(names)
        return names

    @property
    def may_have_two_classes(self) -> bool:
        """Whether not all messages are given the same label."""
        return bool(self.sources) or len({label for label, _ in self._named()}) > 1

    def names_without_labels(self) -> list[str]:
        """Return the names of all sources if none of them has labels of its own."""
        return [] if self.sources else self.names()

    def messages(self, reading: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
        """Return the messages, with labels; raises OptionError.

        First the sources that carry labels themselves, then --spam, --ham and --label, in order.
        """
        self.check()
        named = self._named()
        reading = self._each_as_itself(reading)
        return itertools.chain(
            *(labelled(source, reading, skips) for source in self.sources),
            *(unlabelled(source, label, reading, skips) for label, source in named),
        )

    def pieces(
        self, cutter: "Cutter", any_kind: bool = False
    ) -> "Iterator[SourcePiece | RawMessage | Skipped]":
        """Yield them cut into pieces, in the order of `messages`; raises OptionError.

        any_kind: the plain sources need no labels of their own.
        """
        from nbspam.reading.cutting import Asked

        self.check()
        named = self._named()
        cutter = cutter._replace(options=self._each_as_itself(cutter.options))
        own = [Asked(source, needs_labels=not any_kind) for source in self.sources]
        for asked in [*own, *(Asked(source, label, True) for label, source in named)]:
            yield from cutter.pieces(asked)

    def messages_of_any_kind(self, reading: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
        """Return the messages; those of the plain sources have a label only if they carry one."""
        named, reading = self._replace(sources=()), self._each_as_itself(reading)
        return itertools.chain(
            *(any_kind(source, reading, skips) for source in self.sources),
            named.messages(reading, skips) if named != Sources((), (), (), ()) else (),
        )

    def check(self) -> None:
        """Raise OptionError if there is no source."""
        if not (self.sources or self._named()):
            raise OptionError(
                "there is nothing to read; name a table or a folder, or use --spam and --ham"
            )

    def _each_as_itself(self, reading: ReadingOptions) -> ReadingOptions:
        """Return options by which a source that is inside another one is read only once."""
        labels = [(source, "") for source in self.sources]
        labels += [(source, label) for label, source in self._named()]
        if len(labels) < 2:
            return reading
        given = {real_name(source): label for source, label in labels if source != STDIN}
        return reading._replace(given={**reading.given, **given})

    def _named(self) -> list[tuple[str, str]]:
        """Return (label, source) of --spam, --ham and --label."""
        named = [(SPAM, source) for source in self.spam] + [(HAM, source) for source in self.ham]
        for pair in self.label:
            name, equals, source = pair.partition("=")
            if not (equals and normal_label(name) and source):
                raise OptionError(
                    f"--label {pair!r} is not NAME=SOURCE; try --label promo=promo.mbox"
                )
            named.append((normal_label(name), source))
        return named


labelled_sources: Decorator[Any] = gathered(
    "sources",
    Sources,
    click.argument("sources", nargs=-1, metavar="[SOURCE]..."),
    click.option("--spam", multiple=True, metavar="SRC", help="Read spam from SRC (repeatable)."),
    click.option("--ham", multiple=True, metavar="SRC", help="Read ham from SRC (repeatable)."),
    click.option(
        "--label",
        multiple=True,
        metavar="NAME=SRC",
        help="Read messages of the class NAME from SRC (repeatable).",
    ),
)
