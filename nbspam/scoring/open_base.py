"""An open model file that lies beneath others."""

import os
from typing import TYPE_CHECKING

from nbspam.errors import ModelError
from nbspam.scoring.base import Base, CountsOf, based_classifier
from nbspam.scoring.classifier import CACHED_TOKENS, Classifier
from nbspam.store.lookup import Lookup

if TYPE_CHECKING:
    from pathlib import Path


def counts_in(lookup: Lookup, indexed: bool) -> CountsOf:
    """Return what gives the counts of an open model's tokens.

    indexed: make an index of the tokens, which pays from the second message on.
    """
    if not indexed:
        return lookup.counts
    from nbspam.store.index import TokenIndex

    return TokenIndex(lookup).counts


class OpenBase:
    """An open model that lies beneath others; many filters, one after another, may share it.

    Close it after them, or use it as a context manager.
    """

    def __init__(self, path: "str | Path", indexed: bool = True) -> None:
        """Open it; raises ModelError if it cannot be opened, or cannot be a base."""
        self.path = path
        self._lookup = Lookup(path)
        try:
            self.base = Base(path, self._lookup.metadata, counts_in(self._lookup, indexed))
        except BaseException:
            self._lookup.close()
            raise

    def __enter__(self) -> "OpenBase":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._lookup.close()

    def check(self, path: "str | Path", own: Lookup) -> None:
        """Raise ModelError if a personal model cannot lie on this one; path: its name in errors."""
        if os.path.sameopenfile(own.fileno(), self._lookup.fileno()):
            raise ModelError(
                f"{path}: is both the model and its base, so its messages would count twice; name"
                " another base, or leave it out"
            )
        self.base.check(path, own.metadata.settings)

    def classifier(
        self, own: Lookup | None, indexed: bool = True, cached: int = CACHED_TOKENS
    ) -> Classifier:
        """Return a classifier of a personal model on this base; None: there is no such model yet.

        indexed: as of `counts_in`.  cached: as of `Classifier`.
        """
        if own is None:
            return Classifier(self.base.metadata, self.base.counts, cached)
        return based_classifier(own.metadata, counts_in(own, indexed), self.base, cached)
