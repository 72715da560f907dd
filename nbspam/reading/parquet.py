"""Tables as Parquet, which pandas reads."""

import io
from collections.abc import Iterator
from pathlib import Path

from nbspam.errors import TableError, install_command
from nbspam.reading.columns import cell_text
from nbspam.reading.compression import open_bytes
from nbspam.reading.data_frame import frame_rows

# Bytes, unpacked: a megabyte of gzip can hold a gigabyte of zeros.
BYTES_LIMIT = 512 << 20


def parquet_rows(path: Path) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Return the names of the columns, and (row number from 1, cells) of each row."""
    with open_bytes(path) as stream:
        # pandas reads it from both ends, so unpacked first.
        content = io.BytesIO(stream.read(BYTES_LIMIT + 1))
    if content.getbuffer().nbytes > BYTES_LIMIT:
        raise TableError(
            f"{path}: is larger than {BYTES_LIMIT >> 20} MiB, unpacked; split it, or convert it to"
            " JSON lines"
        )
    try:
        import pandas as pd

        frame = pd.read_parquet(content)
        rows = frame_rows(frame)
    except ImportError as error:
        raise TableError(
            f"{path}: reading Parquet needs pandas and pyarrow; install them with:"
            f" {install_command('pandas pyarrow')}"
        ) from error
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise TableError(f"{path}: not a Parquet file ({reason}); check it") from error
    return [str(name) for name in frame.columns], (
        (number, [cell_text(value) for value in row]) for number, row in enumerate(rows, 1)
    )
