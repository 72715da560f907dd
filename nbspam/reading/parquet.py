"""Tables as Parquet, which pandas reads."""

import io
import itertools

from nbspam.errors import TableError, install_command
from nbspam.reading.columns import cell_text, first_rows
from nbspam.reading.content import Content
from nbspam.reading.data_frame import frame_rows
from nbspam.reading.rows import Rows

# Bytes, unpacked: a megabyte of gzip can hold a gigabyte of zeros.
BYTES_LIMIT = 512 << 20


def parquet_rows(content: Content) -> Rows:
    """Return the rows of a Parquet file, numbered from 1."""
    with content.whole() as stream:
        # pandas reads it from both ends, so unpacked first.
        unpacked = io.BytesIO(stream.read(BYTES_LIMIT + 1))
    if unpacked.getbuffer().nbytes > BYTES_LIMIT:
        raise TableError(
            f"{content.name}: is larger than {BYTES_LIMIT >> 20} MiB, unpacked; split it, or"
            " convert it to JSON lines"
        )
    try:
        import pandas as pd

        frame = pd.read_parquet(unpacked)
        rows = frame_rows(frame)
    except ImportError as error:
        raise TableError(
            f"{content.name}: reading Parquet needs pandas and pyarrow; install them with:"
            f" {install_command('pandas pyarrow')}"
        ) from error
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise TableError(f"{content.name}: not a Parquet file ({reason}); check it") from error
    cells = ((number, [cell_text(value) for value in row]) for number, row in enumerate(rows, 1))
    sample = list(first_rows(cells, lambda row: sum(map(len, row[1]))))
    return Rows([str(name) for name in frame.columns], sample, itertools.chain(sample, cells))
