"""Archives of a few kilobytes that unpack to much: what is unpacked is bounded, in time too."""

import gzip
import io
import tracemalloc
import zlib

from one_case import each

from nbspam.reading.compression import Taken, decompressed
from nbspam.reading.source import one_message
from nbspam.serving import spamd

ZEROS = bytes(32 << 20)


def test_of_one_message_no_more_is_unpacked_than_is_read(monkeypatch):
    unpacked, real = [], Taken.readinto

    def counted(self, buffer):
        unpacked.append(real(self, buffer))
        return unpacked[-1]

    monkeypatch.setattr(Taken, "readinto", counted)
    packed = io.BufferedReader(io.BytesIO(gzip.compress(ZEROS, 1)))
    with decompressed(packed) as stream:
        assert len(one_message("-", stream, None, limit=1 << 16).content) == 1 << 16
        assert packed.read() == b""  # whoever writes it may end
    assert sum(unpacked) <= 1 << 18


@each(
    "unpack",
    [
        lambda data: spamd.unzipped(data, 1000),
        lambda data: spamd.Request("CHECK", body=data, compressed=True).beginning(1000)[1000:],
    ],
)
def test_zlib_of_a_client_takes_no_more_memory_than_a_message(unpack):
    data = zlib.compress(ZEROS, 1)
    tracemalloc.start()
    try:
        assert not unpack(data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
