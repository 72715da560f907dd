"""What begins in the ranges of a file, counted by the workers."""

from collections.abc import Iterable

from nbspam.cluster.connection import Cluster
from nbspam.reading.byte_range import ByteRange, LinesFound
from nbspam.reading.cutting import RangeCount, Survey


def surveyed_by(cluster: Cluster) -> Survey:
    """Return what counts on a cluster."""

    def survey(count: RangeCount, parts: list[ByteRange]) -> Iterable[LinesFound | int]:
        if len(parts) == 1:
            return [count(parts[0])]
        return cluster.map(_counted, count, parts)

    return survey


def _counted(count: RangeCount, part: ByteRange) -> LinesFound | int:
    return count(part)
