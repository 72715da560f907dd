import io

from one_case import each

from nbspam.reading.rows import read_lines
from nbspam.reading.source import Skips


def test_lines_of_text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\n\n  \ncaf\xe9\ttwo\nthree")
    expected = [(1, "one"), (4, "café\ttwo"), (5, "three")]
    assert expected == list(read_lines(str(path), lambda: path.open("rb"), None, Skips()))


@each("length", [99, 100, 101, 250])
def test_huge_line_is_cut(length, monkeypatch):
    monkeypatch.setattr("nbspam.reading.rows._LINE_LIMIT", 100)
    stream = io.BufferedReader(io.BytesIO(b"x" * length + b"\ny\n"))
    texts = [text for _, text in read_lines("-", lambda: stream, None, Skips())]
    assert max(map(len, texts)) <= 100
    assert "".join(texts) == "x" * length + "y"
