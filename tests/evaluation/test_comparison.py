import json
import math
import os
import random
from fractions import Fraction
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from compared_models import GIVEN, compared, difference, scored
from hypothesis import example, given
from hypothesis import strategies as st
from one_case import each
from scipy.stats import binomtest

from nbspam.errors import OptionError
from nbspam.evaluation import protocols
from nbspam.evaluation.comparison import (
    ALL_NUMBERS,
    DEFAULT,
    Combination,
    Difference,
    advice,
    as_json,
    combinations,
    compare,
    holm,
    mcnemar_p,
    normal_p,
    parse_combinations,
)
from nbspam.evaluation.curves import draw_comparison
from nbspam.evaluation.messages import for_model
from nbspam.evaluation.metrics import one_minus_roca, placements
from nbspam.evaluation.report import print_comparison
from nbspam.learning.batch import fit_calibrations
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import TrainingSettings
from nbspam.reading.message import parse_text
from nbspam.scoring.rules import EvidenceRule
from nbspam.scoring.verdict import CutOffs
from nbspam.store.metadata import Metadata
from nbspam.tokens.tokenized import tokenize


def read(n=60, classes=("ham", "spam")):
    """Return texts: the later a class, the more digits, and words of its own."""
    chance, messages = random.Random(3), []
    for i in range(n):
        k = i % len(classes)
        words = [chance.choice(["tea", "shop", "week", "train", "desk"]) for _ in range(6)]
        if chance.random() < 0.6:
            words.append(f"word{k}")
        if chance.random() < 0.7:
            words.append("1" * (1 + 4 * k + chance.randrange(3)))
        messages.append((classes[k], " ".join(words)))
    return corpus_of(messages)


def corpus_of(messages):
    tokenized = (
        tokenize(parse_text(text), f"x:{i}", label, outputs=ALL_NUMBERS)
        for i, (label, text) in enumerate(messages)
    )
    return Corpus.from_messages(tokenized, ALL_NUMBERS)


def compared_on(corpus, asked):
    return compare(asked, GIVEN, lambda given: leave_one_out(corpus, given)._replace(skipped=2))


def leave_one_out(corpus, settings):
    trial = protocols.Trial(
        for_model(corpus, settings), settings, CutOffs(), explain_mistakes=False
    )
    return protocols.leave_one_out(trial)


@pytest.fixture(scope="module")
def everything():
    some = [c for i, c in enumerate(combinations(GIVEN)) if i % 4 == 0 or c == DEFAULT]
    return compared_on(read(), some)


def test_every_combination_that_makes_sense_has_a_name_of_its_own_and_train_makes_the_default():
    found = combinations(GIVEN)
    assert len({c.name for c in found}) == len(found) == 19
    assert DEFAULT in found
    assert DEFAULT.name == "bernoulli+kernel:evidence"
    assert Combination("none", "gaussian", "sum").name == "gaussian:sum"
    assert Combination("none", "none", "sum") not in found
    assert not any(c.event_model == "complement" and c.scoring == "evidence" for c in found)
    assert (GIVEN.event_model, GIVEN.effective_traits, GIVEN.scoring) == DEFAULT
    of_prior = combinations(TrainingSettings(prior=0.5))
    assert not any(c.event_model == "complement" for c in of_prior)


def test_names_choose():
    for names, expected in {
        "bernoulli": {"bernoulli:evidence", "bernoulli:sum"},
        "gaussian:sum,bernoulli+kernel:sum": {"gaussian:sum", "bernoulli+kernel:sum"},
    }.items():
        assert {c.name for c in parse_combinations(names, GIVEN)} == expected | {DEFAULT.name}
    assert parse_combinations("all", GIVEN) == combinations(GIVEN)
    for wrong in ("", "magic", "bernoulli,", "bernoulli:magic", "none", "ALL"):
        with pytest.raises(OptionError, match=r"bernoulli\+kernel:evidence"):
            parse_combinations(wrong, GIVEN)
    with pytest.raises(OptionError, match="name one or more, or all"):
        parse_combinations(DEFAULT.name, GIVEN)


def test_the_best_comes_first_and_each_other_is_compared_with_it(everything):
    errors = [model.errors for model in everything]
    assert errors == sorted(errors)
    best, *others = everything
    assert best.difference is None
    alone = leave_one_out(read(), others[-1].combination.settings(GIVEN)).outcomes
    assert [o.classification.log_odds for o in alone] == others[-1].messages.log_odds.tolist()
    for model in others:
        own, of_best = ~model.messages.right, ~best.messages.right
        assert model.difference.only_this_wrong == (own & ~of_best).sum()
        assert model.difference.only_best_wrong == (~own & of_best).sum()
        area, of_best = (one_minus_roca(m.messages) for m in (model, best))
        assert model.difference.roca == pytest.approx(area - of_best)
        low, high = model.difference.roca_interval
        assert low <= model.difference.roca <= high


def test_rankings_are_compared_in_pairs_and_a_few_messages_are_no_basis(everything):
    best, *others = everything
    for model in others:
        spam, ham = (
            100 * (a - b)
            for a, b in zip(placements(best.messages), placements(model.messages), strict=True)
        )
        error = (spam.var(ddof=1) / len(spam) + ham.var(ddof=1) / len(ham)) ** 0.5
        low, high = model.difference.roca_interval
        assert high - low == pytest.approx(2 * 1.959964 * error, rel=1e-6)
    for z, p in ((0, 1), (1.959964, 0.05), (-2.575829, 0.01)):
        assert normal_p(3 * z, 3) == pytest.approx(p, rel=1e-5)
    assert normal_p(1, 0) == 1.0  # no two messages rank differently
    found = compared_on(read(16), parse_combinations("kernel:sum,bernoulli:sum", GIVEN))
    assert found[1].difference.roca_p == 1.0


@given(st.integers(0, 60), st.integers(0, 60))
@example(2, 0)
@example(2_000, 0)  # below all numbers
@example(1_000, 1_001)
def test_mcnemars_test_is_exact_and_of_a_fair_coin(one, other):
    n = one + other
    outcomes = sum(math.comb(n, i) for i in range(n + 1) if min(i, n - i) <= min(one, other))
    assert mcnemar_p(one, other) == mcnemar_p(other, one) == float(Fraction(outcomes, 2**n))


def test_mcnemars_test_of_many_messages_is_scipys():
    assert mcnemar_p(20_000, 21_000) == pytest.approx(binomtest(20_000, 41_000).pvalue, rel=1e-9)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_lowers_nothing(p_values):
    adjusted = holm(p_values)
    assert all(a >= p and a <= 1 for a, p in zip(adjusted, p_values, strict=True))
    pairs = sorted(zip(p_values, adjusted, strict=True))
    assert [a for _, a in pairs] == sorted(a for _, a in pairs)
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


@each(
    "found, verdict",
    [
        (difference(0.5), "not significant"),
        (difference(0.001), "more errors"),
        (difference(0.5, 0.001), "ranks worse"),
        (difference(0.001, 0.001), "more errors, ranks worse"),
        (difference(0.5, 0.001, roca=-0.1), "ranks better"),
        (difference(0.001, 0.001, roca=-0.1), "more errors, ranks better"),
        (Difference(5, 1, 0.001), "more errors"),
    ],
)
def test_what_is_sure_of_a_difference(found, verdict):
    assert found.verdict == verdict
    assert found.is_worse == (verdict in {"more errors", "ranks worse", "more errors, ranks worse"})


@pytest.mark.long
def test_json_and_curves_have_all_models(everything, tmp_path):
    fields = json.loads(as_json(everything, "so it is"))
    expected = {"skipped": 2, "advice": "so it is", "protocol": "leave-one-out"}
    assert {key: fields[key] for key in expected} == expected
    best, *others = fields["models"]
    assert best["mcnemar_p_holm"] is None
    assert all(0 <= m["mcnemar_p_holm"] <= 1 for m in others)
    draw_comparison(everything, tmp_path / "roc.svg")
    drawn = (tmp_path / "roc.svg").read_text(encoding="utf-8")
    assert all(f">{model.combination.name}" in drawn for model in everything)


@pytest.mark.long
def test_three_classes_have_errors_and_log_loss_and_no_roc(capsys, tmp_path):
    corpus = read(90, ("a", "b", "c"))
    asked = parse_combinations("bernoulli,gaussian:sum", GIVEN)
    found = compared_on(corpus, asked)
    print_comparison(found, "so it is")
    said = capsys.readouterr().out
    assert ("log-loss" in said, "1-ROCA%" in said) == (True, False)
    assert all(m.difference.roca is None for m in found[1:])
    assert all(math.isfinite(m.results.figures.values["log_loss"]) for m in found)
    assert len(found) == len(asked)
    with pytest.raises(OptionError, match="class called spam"):
        draw_comparison(found, tmp_path / "x.svg")


def test_the_calibration_of_a_message_has_not_seen_it():
    """Turn the labels of one tenth round: its own scores stay as calibrated by the other tenths."""
    corpus = for_model(read(100), GIVEN)
    fitted = protocols.Trial(corpus, GIVEN, CutOffs()).fit_model()
    kind, learned = fitted.metadata
    others = np.arange(100) % 10 != 3
    without = fit_calibrations(kind, fitted.blocks, fitted.labels, others)
    rule = EvidenceRule(Metadata(kind, learned._replace(calibrations=without)))
    scores = chain.from_iterable(map(rule.scores_of_rows, (b.scored() for b in fitted.blocks)))
    expected = [round(s.log_odds, 9) for s in scores][3::10]
    actual = [o.classification.log_odds for o in leave_one_out(corpus, GIVEN).outcomes][3::10]
    assert actual == expected
    own = [round(s.log_odds, 9) for s in fitted.left_out_scores()][3::10]
    assert not set(actual) & set(own)


def test_leave_one_out_explains_a_mistake_by_the_others_alone():
    corpus = read(60)
    found = protocols.leave_one_out(protocols.Trial(for_model(corpus, GIVEN), GIVEN, CutOffs()))
    mistakes = [o for o in found.outcomes if o.is_mistake]
    assert mistakes
    tokens = [corpus.message(i).tokens for i in range(60)]
    for outcome in mistakes:
        own = tokens[list(corpus.sources).index(outcome.classification.source)]
        assert outcome.words
        for word in outcome.words:
            if not word.is_trait:
                assert word.token in own
                assert sum(word.counts) == sum(word.token in each for each in tokens) - 1


def test_traits_and_times_do_not_reach_a_model_that_does_not_count_them():
    corpus = read()
    plain = for_model(corpus, TrainingSettings(traits="none"))
    assert set(plain.presence().data.tolist()) == {1.0}
    for times in (corpus, for_model(corpus, TrainingSettings(event_model="multinomial"))):
        assert max(times.presence().data) > 1


def test_the_default_goes_first_among_equals():
    corpus = corpus_of([("ham", "same"), ("spam", "same")] * 6)
    asked = parse_combinations("bernoulli:evidence,bernoulli+kernel:evidence", GIVEN)
    found = compared_on(corpus, asked)
    one, other = (model.results.figures.values for model in found)
    if one == other:
        assert found[0].combination == DEFAULT
    assert [m.errors for m in found] == sorted(m.errors for m in found)


def test_the_tables_fit_into_eighty_columns(everything, capsys):
    print_comparison(everything, "so it is")
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= 80
    for model in everything:
        name = model.combination.name
        rows = [line for line in lines if line.replace(" *", "").split()[:1] == [name]]
        assert len(rows) == (1 if model is everything[0] else 2)


# Advice

DIFFERENCES = {
    "surely": difference(0.001),
    "perhaps": difference(0.5),
    "ranks-worse": difference(1.0, 0.001),
    "ranks-better": difference(1.0, 0.001, roca=-2.2),
}
ADVICE = Path(__file__).parents[1] / "golden" / "evaluation" / "advice.txt"


def test_advice():
    head, *lines = ADVICE.read_text(encoding="utf-8").splitlines()
    advised = [
        f"{named} | {advice_on(named)}" for named, _ in (line.split(" | ") for line in lines)
    ]
    if os.environ.get("NBSPAM_GOLDEN") == "new":
        ADVICE.write_text("\n".join([head, *advised, ""]), encoding="utf-8")
    assert advised == lines


def advice_on(named):
    models = []
    for name, wrong, *found in map(str.split, named.split(", ")):
        messages = scored([False] * int(wrong) + [True] * (20 - int(wrong)))
        models.append(compared(name, messages, *map(DIFFERENCES.__getitem__, found)))
    return advice(models, lambda chosen: f"those of {chosen.name}")
