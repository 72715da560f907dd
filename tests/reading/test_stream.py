import io

from nbspam.reading.raw_message import RawMessage
from nbspam.reading.stream import one_message


def test_huge_stream_is_read_to_its_end_but_not_kept():
    stream = io.BytesIO(b"x" * 3_000_000)
    raw = one_message("-", stream, "spam", limit=100)
    assert raw == RawMessage("-", "spam", b"x" * 100)
    assert stream.read() == b""
