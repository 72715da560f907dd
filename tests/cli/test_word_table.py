from pathlib import Path

from one_case import each
from small_models import with_learned, with_settings

from nbspam.cli.explain import table_lines
from nbspam.display.lines import WordRow, cell_width, class_heads
from nbspam.learning.settings import TrainingSettings, empty_metadata

GOLDEN = Path(__file__).parents[1] / "golden" / "display"
SUMS = [
    ("1,234 more words (--top shows them)", 0.125),
    ("calibration: any message", -1.5),
    ("sum: the log-odds", 2.0),
]


def metadata(*classes, messages=(2500, 500)):
    names = classes or ("ham", "spam")
    made = empty_metadata(names, "spam" if "spam" in names else None, TrainingSettings())
    return with_learned(made, messages=messages)


def rows(n_classes=2):
    counts = (3, 1112, 7, 8, 9)[:n_classes]
    return [
        WordRow("free", 4.2, counts, 0.9),
        WordRow("免費 🚀", 3.1, counts, 0.4),
        WordRow("cafe\u0301", -1.0, counts, -0.25),
        WordRow("host:" + "a-very-long-name." * 4 + "example", 2.0, counts, 0.1),
    ]


def plain(lines):
    return [
        line.replace("\x1b[31m", "").replace("\x1b[32m", "").replace("\x1b[0m", "")
        for line in lines
    ]


@each("width", [80, 120])
def test_the_golden_tables(width):
    lines = plain(table_lines(rows(), SUMS, class_heads(metadata()), width))
    expected = (GOLDEN / f"words-{width}.txt").read_text(encoding="utf-8")
    assert "".join(f"{line.rstrip()}\n" for line in lines) == expected


@each("width", [40, 60, 80, 120, 200])
@each("n", [2, 3, 5])
def test_no_line_is_wider_than_the_terminal(width, n):
    names = ("ham", "spam", "a-class-with-a-very-long-name", "免費送免費送免費送", "x")[:n]
    lines = plain(
        table_lines(rows(n), SUMS, class_heads(metadata(*names, messages=(2500,) * n)), width)
    )
    assert max(map(cell_width, lines)) <= width


def test_in_a_pipe_words_are_whole():
    shown = "\n".join(table_lines(rows(), SUMS, class_heads(metadata()), None))
    assert rows()[3].token in shown
    assert "…" not in shown


def test_where_repeats_count_there_is_no_total_of_messages():
    made = with_settings(metadata(), event_model="multinomial")
    assert " of " not in "\n".join(table_lines(rows(), [], class_heads(made), 80))
    assert " of 2,500" in "\n".join(table_lines(rows(), [], class_heads(metadata()), 80))
