import io

import pytest

from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.reading.source_kind import ReadingOptions, ReadingRequest
from nbspam.reading.stream import stream_messages

PLAIN = ReadingRequest(ReadingOptions(), Skips(), "spam")
LINES = ReadingRequest(ReadingOptions(input_format="lines"), Skips(), "spam")


def test_huge_stream_is_read_to_its_end_but_not_kept() -> None:
    stream = io.BytesIO(b"x" * 3_000_000)
    raws = list(stream_messages("-", stream, PLAIN, limit=100))
    assert raws == [RawMessage("-", "spam", b"x" * 100)]
    assert stream.read() == b""


@pytest.mark.parametrize("length", [99, 100, 101, 250])
def test_huge_line_is_cut(length: int) -> None:
    raws = list(stream_messages("-", io.BytesIO(b"x" * length + b"\ny\n"), LINES, limit=100))
    texts = [str(raw.content) for raw in raws]
    assert max(map(len, texts)) <= 100
    assert "".join(texts) == "x" * length + "y"
