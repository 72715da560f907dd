"""An open model file that lies beneath others."""

import os
from typing import TYPE_CHECKING

from nbspam.errors import ModelError
from nbspam.scoring.base import Base, based_classifier
from nbspam.scoring.classifier import CACHED_TOKENS, Classifier, CountsOf
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import Metadata

if TYPE_CHECKING:
    from pathlib import Path

    from nbspam.store.index import IndexLayout


def counts_in(lookup: Lookup, indexed: bool, layout: "IndexLayout | None" = None) -> CountsOf:
    """Return what gives the counts of an open model's tokens.

    indexed: make an index of the tokens, which pays from the second message on.  layout: of it.
    """
    if not indexed:
        return lookup.counts
    from nbspam.store.index import IndexLayout, TokenIndex

    return TokenIndex(lookup, layout or IndexLayout()).counts


class OpenBase:
    """An open model that lies beneath others; many filters may share it.

    Close it after them, or use it as a context manager.  Who gets it by `share` closes it, too.
    """

    def __init__(
        self,
        path: "str | Path",
        indexed: bool = True,
        handle: int | None = None,
        layout: "IndexLayout | None" = None,
    ) -> None:
        """Open it; raises ModelError if it cannot be opened, or cannot be a base.

        handle: a descriptor of the file if it is open already, which `close` will close.
        indexed, layout: as of `counts_in`.
        """
        self.path = path
        self._users = 1
        self._lookup = Lookup(path, handle)
        try:
            self.base = Base(path, self._lookup.metadata, counts_in(self._lookup, indexed, layout))
        except BaseException:
            self._lookup.close()
            raise

    def __enter__(self) -> "OpenBase":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def share(self) -> "OpenBase":
        """Return it for one more user: the file stays open until each has closed it."""
        self._users += 1
        return self

    def close(self) -> None:
        """Close the file, if this was the last user."""
        self._users -= 1
        if not self._users:
            self._lookup.close()

    def fileno(self) -> int:
        """Return the descriptor of the open file."""
        return self._lookup.fileno()

    def identity(self) -> tuple[int, ...]:
        """Return what tells the file's bytes from any others, on any machine."""
        return self._lookup.identity()

    @property
    def without_messages(self) -> Metadata:
        """The metadata of a model that has the base's settings and no messages yet."""
        settings, learned = self.base.metadata
        return Metadata(settings, learned._replace(messages=(0,) * len(settings.classes)))

    def check(self, path: "str | Path", own: Lookup) -> None:
        """Raise ModelError if a personal model cannot lie on this one; path: its name in errors."""
        self.check_place(path)
        self.base.check(path, own.metadata.settings)

    def check_place(self, path: "str | Path") -> None:
        """Raise ModelError if the base is the file at `path`."""
        if os.path.realpath(path) == os.path.realpath(self.path):
            raise ModelError(
                f"{path}: is both the model and its base, so its messages would count twice; name"
                " another base, or leave it out"
            )

    def classifier(
        self,
        own: Lookup | None,
        indexed: bool = True,
        cached: int = CACHED_TOKENS,
        layout: "IndexLayout | None" = None,
    ) -> Classifier:
        """Return a classifier of a personal model on this base; None: there is no such model yet.

        indexed, layout: as of `counts_in`.  cached: as of `Classifier`.
        """
        if own is None:
            return self.classifier_of(self.base.metadata, None, cached)
        return self.classifier_of(own.metadata, counts_in(own, indexed, layout), cached)

    def classifier_of(
        self, own: Metadata, counts_of: CountsOf | None, cached: int = CACHED_TOKENS
    ) -> Classifier:
        """Return a classifier of a personal model on this base; counts_of: None without one."""
        if counts_of is None:
            return Classifier(self.base.metadata, self.base.counts, cached)
        return based_classifier(own, counts_of, self.base, cached)
