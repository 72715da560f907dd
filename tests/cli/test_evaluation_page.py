import pytest
from harmless_pages import assert_harmless

from nbspam import __version__


def reported(nbspam, tmp_path, *arguments):
    path = tmp_path / "report.html"
    found = nbspam("eval", *arguments, "--report", path)
    assert (found.code, found.err) == (0, "")
    return assert_harmless(path.read_text(encoding="ascii"))


@pytest.fixture
def mislabelled(table):
    """Return the table with a spam that is labelled ham."""
    with table.open("a", encoding="utf-8") as file:
        file.write("ham\twin a <b>free</b> prize now\n")
    return table


def test_the_page_has_figures_curves_mistakes_and_how_it_was_made(nbspam, mislabelled, tmp_path):
    parsed = reported(nbspam, tmp_path, "--folds", "3", mislabelled)
    for part in (
        "3 folds: 31 messages (ham: 19, spam: 12)",
        "accuracy",
        "95 % interval",
        "area under the curve",
        "win a <b>free</b> prize",
        "nbspam eval --folds 3",
        __version__,
    ):
        assert part in parsed.text
    assert parsed.found.count("figure") == 4
    assert "Strongest words" not in parsed.text


def test_the_page_of_a_saved_model_has_its_strongest_words(nbspam, table, model, tmp_path):
    parsed = reported(nbspam, tmp_path, "-m", model, table, "--including-learned")
    assert "Strongest words of the model" in parsed.text
    assert "of 18" in parsed.text


def test_the_page_of_three_classes_has_no_curves(nbspam, three_classes, tmp_path):
    rows = three_classes.read_text(encoding="utf-8").replace("spam\t", "other\t")
    three_classes.write_text(rows, encoding="utf-8")
    parsed = reported(nbspam, tmp_path, "--folds", "3", three_classes)
    assert "called promo" in parsed.text
    assert "svg" not in parsed.found
    assert "by the most probable class" in parsed.text


def test_the_page_of_three_classes_with_spam_says_what_its_figures_are_of(
    nbspam, three_classes, tmp_path
):
    parsed = reported(nbspam, tmp_path, "--folds", "3", three_classes)
    assert "every other figure is of the spam class 'spam' against the rest" in parsed.text
    assert "the point is by the most probable class" in parsed.text
    assert "P(spam) = 0.5" not in parsed.text


def test_a_page_of_a_comparison_is_wrong_usage(nbspam, table, tmp_path):
    path = tmp_path / "report.html"
    found = nbspam("eval", "--compare", "all", table, "--report", path)
    assert (found.code, "--report is of one model" in found.err) == (2, True)
    assert not path.exists()


def test_the_page_is_written_to_a_file_alone(nbspam, table):
    found = nbspam("eval", "--folds", "3", table, "--report", "-")
    assert (found.code, found.out) == (2, "")
