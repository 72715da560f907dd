"""Any file is rows of text, skipped rows, or one sentence that names it.

The input's first byte chooses the file's ending, the rest is the file.

PYTHONPATH=. python fuzz/table.py CORPUS fuzz/seeds/table sample_data
"""

import tempfile
from pathlib import Path

import atheris
from budget import fuzz  # beside this file

atheris.enabled_hooks.add("str")  # what a text is compared with guides the search
with atheris.instrument_imports(include=["nbspam", "csv", "json"]):
    from nbspam.errors import SourceError
    from nbspam.reading.message import parse_text
    from nbspam.reading.skips import Skips
    from nbspam.reading.sources import ReadingOptions, any_kind, labelled
    from nbspam.reading.tables import TableOptions

SUFFIXES = (".tsv", ".csv", ".jsonl", "", ".parquet", ".index", ".csv.gz", ".txt")
FOLDER = Path(tempfile.mkdtemp(prefix="nbspam-fuzz-"))


def table(data: bytes) -> None:
    """Read the bytes as a labelled source and as one whose labels do not matter."""
    kind = data[0] if data else 0
    path = FOLDER / f"table{SUFFIXES[kind % len(SUFFIXES)]}"
    path.write_bytes(data[1:])
    encoding = (None, None, "latin-1", "utf-16", "utf-8")[kind // len(SUFFIXES) % 5]
    options = ReadingOptions(TableOptions(encoding=encoding), lines=kind > 0xF0)
    for read in (labelled, any_kind):
        skips = Skips()
        try:
            for raw in read(str(path), options, skips):
                if read is labelled:
                    assert raw.label
                    raw.label.encode()
                    assert raw.label.isprintable() or not raw.label.isascii()
                if isinstance(raw.content, str):
                    raw.content.encode("utf-8", "surrogatepass")
                    parse_text(raw.content)
        except SourceError as error:
            assert str(error).startswith(str(path)), error
            assert "\n" not in str(error), error
        for line in skips.report():
            assert not any(c < " " or "\x7f" <= c <= "\x9f" for c in line), skips.named


if __name__ == "__main__":
    fuzz(table)
