from pathlib import Path

from nbspam.reading.lines import read_lines
from nbspam.reading.skips import Skips


def test_lines_of_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\n\n  \ncaf\xe9\ttwo\nthree")
    expected = [(1, "one"), (4, "café\ttwo"), (5, "three")]
    assert expected == list(read_lines(path, None, Skips()))
