import io
import re

from outcomes import CUT_OFFS, THREE, TWO, outcome

from nbspam.evaluation.outcome import Evaluation
from nbspam.evaluation.report import print_report
from nbspam.evaluation.results import compute
from nbspam.scoring.highlights import highlighted
from nbspam.tokens.excerpt import Excerpt


def printed(capsys, evaluation, errors=0):
    print_report(compute(evaluation, CUT_OFFS), errors)
    return capsys.readouterr().out


def test_text_in_a_pipe_is_plain_and_not_cut_the_general_figures_first(capsys):
    text = printed(capsys, TWO)
    assert "\x1b" not in text
    assert "…" not in text
    assert text.startswith("a test: 4 messages (")
    for name in ("accuracy", "MCC", "SC%", "BH%", "lam%", "1-ROCA%", "Brier"):
        assert name in text
    text = printed(capsys, TWO)
    at = [text.index(f"\n{name} ") for name in ("accuracy", "F1", "AUC", "Brier")]
    track = text.index("TREC spam tracks")
    assert [*at, track] == sorted([*at, track])
    assert track < text.index("\nSC% ") < text.index("\nverdicts: ")
    one = Evaluation("a test", ("ham", "spam"), "spam", TWO.outcomes[:1])
    assert printed(capsys, one).startswith("a test: 1 message (ham: 1, spam: 0)")
    print_report(compute(TWO, CUT_OFFS), 0, ["one of them was learned", "two are the same"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:4] == ["one of them was learned", "two are the same", ""]


def test_the_text_has_figures_with_interval_and_meaning_and_what_the_verdicts_do(capsys):
    lines = [line.split() for line in printed(capsys, TWO).splitlines()]
    assert "accuracy 0.7500 0.3006 – 0.9544 correct, 3 of 4 messages".split() in lines
    assert "Brier 0.2050 0.0000 – 0.4975 mean squared error of P(spam)".split() in lines
    head = "actual called ham called spam verdict ham verdict spam unsure"
    assert head.split() in lines
    assert ["2", "ham", "1", "1", "1", "1", "0"] in lines
    assert ["2", "spam", "0", "2", "0", "1", "1"] in lines
    at = lines.index("verdicts: spam above 0.7, ham up to 0.3".split())
    assert lines[at + 1 : at + 4] == [
        "blocked% 50.00 9.4531 – 90.55 ham blocked, 1 of 2 ham".split(),
        "missed% 50.00 9.4531 – 90.55 spam missed, 1 of 2 spam".split(),
        "unsure% 25.00 4.5587 – 69.94 unsure, 1 of 4 messages".split(),
    ]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_of_eighty_columns_folds_nothing(monkeypatch):
    many = compute(TWO._replace(outcomes=TWO.outcomes * 10_000), CUT_OFFS)
    drawn = {}
    for columns in (80, 200):
        stream = Terminal()
        monkeypatch.setattr("sys.stdout", stream)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("TERM", "xterm")
        print_report(many, 0)
        text = re.sub(r"\x1b\[[\d;]*m", "", stream.getvalue())
        drawn[columns] = [line.split() for line in text.splitlines()]
    assert "10,000 of 20,000 ham".split() in [line[-4:] for line in drawn[80]]
    assert drawn[80] == drawn[200]


def test_no_line_is_longer_than_eighty_columns(capsys):
    many = Evaluation("a test", ("ham", "spam"), "spam", TWO.outcomes * 5_000)
    text = printed(capsys, many)
    assert "15,000 of 20,000 messages" in text
    assert "10,000 ham" in text
    assert max(map(len, map(str.rstrip, text.splitlines()))) <= 80


def test_text_of_three_classes_has_their_verdicts_once_no_cut_off_and_no_calibration(capsys):
    text = printed(capsys, THREE)
    assert "actual  called a  called b  called c\n" in text
    assert "verdict" not in text.replace("correct verdicts", "")
    assert "3 classes: a message is called the most probable one; the figures are over all" in text
    text = printed(capsys, THREE._replace(positive="c"))
    one_line = " ".join(text.split())
    assert "every other figure is of the spam class 'c' against the rest" in one_line
    assert "classes" not in printed(capsys, TWO)
    text = printed(capsys, THREE)
    assert "calibration" not in text
    assert "log-odds" not in text


def test_text_of_mistakes_shows_their_source_as_it_is_and_their_words_or_that_there_are_none(
    capsys,
):
    text = printed(capsys, TWO, errors=1)
    assert "file:[b]2[/b]: ham called spam, probability 0.8000, verdict spam\n" in text
    assert "prize +2.50" in text
    assert "file:4" not in text
    right = Evaluation("a test", ("ham", "spam"), "spam", [TWO.outcomes[0], TWO.outcomes[2]])
    assert "no mistakes" in printed(capsys, right, errors=5)


def test_class_names_are_no_markup(capsys):
    classes = ("[red]x[/red]", "[/]")
    wrong = outcome("[red]x[/red]", "[/]", 0.4, 0.6, classes=classes)
    right = outcome("[/]", "[/]", 0.1, 0.9, classes=classes)
    evaluation = Evaluation("a test", classes, "[/]", [wrong, right])
    text = printed(capsys, evaluation, errors=3)
    assert "called [red]x[/red]" in text
    assert "[/]" in text


# Calibration and score distribution


def test_the_text_has_calibration_and_score_distribution(capsys):
    text = printed(capsys, TWO)
    assert "calibration error 0.35" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["P(spam)", "messages", "predicted", "observed"] in lines
    assert ["0.8", "to", "0.9", "1", "0.8000", "0.0000"] in lines
    bars = [line for line in lines if line[1:2] == ["to"] and line[-1].strip("hS") == ""]
    assert sum(int(line[3]) for line in bars) == 2
    assert sum(int(line[4]) for line in bars) == 2
    assert all(line[-1] for line in bars)


# Mistakes


def test_a_mistake_shows_its_message_with_what_decided(capsys):
    excerpt = Excerpt("a prize", "Desk <a@b.example>", "free prize and lunch", 2_000)
    shown = highlighted(excerpt, {"free": 1.0, "prize": 1.0, "lunch": -1.0, "subject:prize": 1.0})
    mistake = TWO.outcomes[1]._replace(message=shown)
    text = printed(capsys, TWO._replace(outcomes=[mistake]), errors=1)
    assert "    Subject: a [+prize+]\n" in text
    assert "    From: Desk <a@b.example>\n" in text
    assert "    [+free prize+] and [-lunch-]\n" in text
    assert "    … (1,980 characters more)\n" in text
