"""A model file written from the old one with some lines changed.

What does not change is copied without being parsed: a message is learned into a model of a million
tokens at about the speed of copying the file.
"""

import itertools
from collections.abc import Mapping
from typing import IO

from nbspam.bayes.event_model import Row
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import Metadata
from nbspam.store.metadata_json import dump_metadata
from nbspam.store.model_file import END, LEARNED_LINE, TOKENS_LINE, learned_line, token_key

_TOGETHER = 1 << 20  # bytes; each write by itself would be slower where most lines change


def splice(
    file: IO[bytes],
    old: Lookup,
    metadata: Metadata,
    counts: Mapping[str, Row],
    learned: Mapping[str, Row],
) -> None:
    """Write a model: the old one's lines, but with this metadata and these rows.

    counts, learned: the rows that are new or have changed; a row of zeros removes its line.
    Raises ModelError when a line of the old model that must be read is damaged.
    """
    tokens, ledger = old.sections
    file.write(dump_metadata(metadata).encode())
    file.write(TOKENS_LINE)
    shown = {row: f": [{', '.join(map(str, row))}]" for row in set(counts.values())}  # few differ
    changed = {(token_key(token) + shown[row]).encode(): any(row) for token, row in counts.items()}
    _copy(file, old, *tokens, changed, ledger=False)
    file.write(LEARNED_LINE)
    changed = {learned_line(digest, row).encode(): any(row) for digest, row in learned.items()}
    _copy(file, old, *ledger, changed, ledger=True)
    file.write(END)


def _copy(
    file: IO[bytes], old: Lookup, start: int, end: int, changed: dict[bytes, bool], ledger: bool
) -> None:
    """Write the lines from start to end of the old file, with the changed lines in place."""
    lines = sorted(changed)
    places = old.places(lines, ledger)
    separator = b""
    pieces: list[bytes] = []
    size = 0
    for line, (below, above) in itertools.chain(
        zip(lines, places, strict=True), [(b"", (end, end))]
    ):
        if start < below:
            pieces.append(separator)
            for part in old.copy(start, below - (1 if below == end else 2)):  # all but ",\n"
                pieces.append(part)
                size += len(part)
                if size > _TOGETHER:
                    file.write(b"".join(pieces))
                    pieces.clear()
                    size = 0
            separator = b",\n"
        if line and changed[line]:
            pieces += separator, line
            size += len(line)
            separator = b",\n"
        start = above
    file.write(b"".join(pieces))
    if separator:
        file.write(b"\n")
