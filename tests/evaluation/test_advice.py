from compared_models import compared, difference, scored
from one_case import each

from nbspam.evaluation.advice import advice
from nbspam.evaluation.comparison import DEFAULT, SURE, Comparison


def said_of(*models):
    return advice(Comparison("x", list(models)), lambda chosen: f"those of {chosen.name}")


RIGHT = scored([True] * 20)
TWO_WRONG = scored([False] * 2 + [True] * 18)
NINE_WRONG = scored([False] * 9 + [True] * 11)


def test_advice_the_default_where_it_is_best_or_another_without_it():
    said = said_of(
        compared(DEFAULT.name, RIGHT), compared("bernoulli:sum", TWO_WRONG, difference(SURE / 2))
    )
    assert said.startswith(f"Take the default, {DEFAULT.name}: it makes the fewest errors;")
    assert said.endswith("the others are worse, by more than chance.")
    said = said_of(
        compared("kernel:sum", RIGHT), compared("bernoulli:sum", TWO_WRONG, difference(0.001))
    )
    assert said.startswith("Take kernel:sum, with those of kernel:sum: it makes the fewest errors;")


@each("best", [DEFAULT.name, "kernel:sum"])
@each(
    "other, reason",
    [(TWO_WRONG, "no model makes fewer errors"), (NINE_WRONG, "it makes the fewest errors")],
)
def test_advice_says_the_fewest_errors_of_no_other(best, other, reason):
    said = said_of(compared(best, TWO_WRONG), compared("bernoulli:sum", other, difference(0.5)))
    assert f"{reason};" in said


def test_advice_the_default_where_the_best_may_be_best_by_chance():
    said = said_of(
        compared("multinomial:sum", RIGHT),
        compared(DEFAULT.name, TWO_WRONG, difference(0.5)),
        compared("bernoulli:sum", TWO_WRONG, difference(0.001)),
    )
    assert said.startswith(f"Take the default, {DEFAULT.name}")
    assert "2 fewer errors, which may be chance; the others are worse" in said


@each(
    "chance, reason",
    [
        (difference(0.001), "where the default makes 9, which is not chance"),
        (difference(1.0, 0.001), "where the default makes 9, and ranks better than it"),
    ],
)
def test_advice_another_where_the_default_is_worse_for_sure(chance, reason):
    said = said_of(compared("kernel:sum", RIGHT), compared(DEFAULT.name, NINE_WRONG, chance))
    assert said.startswith("Take kernel:sum, with those of kernel:sum: it makes the fewest errors")
    assert reason in said


def test_advice_the_default_where_it_makes_an_error_more_and_ranks_better_for_sure():
    said = said_of(
        compared("multinomial:sum", RIGHT),
        compared(DEFAULT.name, TWO_WRONG, difference(1.0, 0.001, roca=-2.2)),
    )
    assert said.startswith(f"Take the default, {DEFAULT.name}")
    assert "which may be chance, and the default ranks better, which is not chance" in said
    assert "worse, by more than chance" not in said


def test_advice_where_no_difference_is_sure_or_there_is_none():
    said = said_of(
        compared("kernel:sum", RIGHT),
        compared("gaussian:sum", TWO_WRONG, difference(0.5)),
        compared("bernoulli:sum", TWO_WRONG, difference(0.6)),
    )
    assert said.startswith("Take kernel:sum")
    assert said.endswith("no other model is worse by more than chance.")
    same = compared(DEFAULT.name, RIGHT, difference(1.0))
    said = said_of(compared("bernoulli:evidence", RIGHT), same)
    assert said == f"Take the default, {DEFAULT.name}: no model makes fewer errors."
    worse = compared(DEFAULT.name, RIGHT, difference(1.0, 0.001))
    said = said_of(compared("kernel:sum", RIGHT), worse)
    assert "it makes as few errors as the default, and ranks better than it" in said
