"""Any file is rows of text, skipped rows, or one sentence that names it.

The input's first byte chooses the file's ending, the rest is the file.

PYTHONPATH=. python benchmarks/fuzz/table.py CORPUS -max_total_time=600
"""

import gzip
import tempfile
from pathlib import Path

import atheris
from budget import fuzz  # beside this file

atheris.enabled_hooks.add("str")  # what a text is compared with guides the search
with atheris.instrument_imports(include=["nbspam", "csv", "json"]):
    from nbspam.errors import SourceError
    from nbspam.reading.message import parse_text
    from nbspam.reading.source import ReadingOptions, Skips
    from nbspam.reading.sources import read_labelled, read_messages
    from nbspam.reading.tables import TableOptions

SUFFIXES = (".tsv", ".csv", ".jsonl", "", ".parquet", ".index", ".csv.gz", ".txt")
TSV = b"ham\thello there\nspam\tfree prize\n" * 3
SEEDS = (
    b"\x00" + TSV,
    b'\x00"label"\t"text"\n"spam"\t"a\tb"\n"ham"\t"c"\n',
    b'\x01label,text\nspam,"free, ""prize"""\nham,"two\nlines"\nspam,"open\nham,c"d\n',
    b"\x01v1,v2,,,\nham,a,b,,\nspam,'x,,,\n",
    b"\x09" + "\ufefflabel,text\nspam,free\n".encode("utf-16-le"),
    b'\x02{"label":"spam","text":"free"}\n{"label":0,"text":null}\n[1]\n{"text":"\\ud800"}\n',
    b"\x03" + TSV,
    b"\x03From a Mon Nov 20 10:00:00 2023\nSubject: x\n\nbody\n",
    b"\x05spam table.index\nham ../b\n",
    b"\x06" + gzip.compress(TSV.replace(b"\t", b",")),
    b"\x10spam\tfree \xe9\nham\tx\n",
    b"\xf7one message\nanother\n",
)
FOLDER = Path(tempfile.mkdtemp(prefix="nbspam-fuzz-"))


def table(data: bytes) -> None:
    """Read the bytes as a labelled source and as one whose labels do not matter."""
    kind = data[0] if data else 0
    path = FOLDER / f"table{SUFFIXES[kind % len(SUFFIXES)]}"
    path.write_bytes(data[1:])
    encoding = (None, None, "latin-1", "utf-16", "utf-8")[kind // len(SUFFIXES) % 5]
    options = ReadingOptions(TableOptions(encoding=encoding), "lines" if kind > 0xF0 else None)
    for read in (read_labelled, read_messages):
        skips = Skips()
        try:
            for raw in read(str(path), options, skips):
                if read is read_labelled:
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
    fuzz(table, SEEDS)
