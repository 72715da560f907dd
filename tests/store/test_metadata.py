import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from small_models import (
    ALPHAS,
    PRIORS,
    SCORINGS,
    damaged,
    labelled_tokens,
    learn,
    with_learned,
    with_settings,
)

from nbspam.bayes.calibration import (
    Calibration,
    Calibrations,
    Lesson,
    Noise,
    calibration_specs,
)
from nbspam.bayes.prediction import (
    host_independence,
)
from nbspam.bayes.trait_model import KERNEL, TRAIT_MODELS
from nbspam.learning.settings import TrainingSettings, empty_metadata
from nbspam.store.metadata import (
    ORIGINS,
    MetadataError,
    ModelSettings,
    dump_histograms,
    dump_metadata,
    empty_state,
    load_histograms,
    load_metadata,
)
from nbspam.tokens.kinds import TRAIT_NAMES
from nbspam.tokens.tokenized import NAME, TOKENIZER_VERSION

GOLDEN = Path(__file__).parents[1] / "golden/store/trait-damages.txt"


def fields_of(metadata):
    return json.loads(dump_metadata(metadata).rstrip().rstrip(",") + "}")


def loaded_again(metadata):
    return load_metadata(fields_of(metadata))


@given(labelled_tokens(), ALPHAS, PRIORS)
def test_the_bias_from_the_count_histograms_is_the_direct_sum(messages, alpha, prior):
    learned = learn(messages, alpha=alpha, prior=prior)
    metadata = learned.fit.metadata
    shares = [n / sum(metadata.learned.messages) for n in metadata.learned.messages]
    if prior is not None:
        rest = 1 - shares[metadata.settings.positive_index]
        shares = [
            prior if name == metadata.settings.positive else (1 - prior) * share / rest
            for name, share in zip(metadata.settings.classes, shares, strict=True)
        ]
    for k, n in enumerate(metadata.learned.messages):
        absent = [
            math.log(n - row[k] + alpha) - math.log(n + 2 * alpha)
            for row in learned.counts.values()
        ]
        expected = math.log(shares[k]) + math.fsum(absent)
        assert pytest.approx(expected, rel=1e-9, abs=1e-9) == metadata.bias[k]


@given(
    labelled_tokens(tokens=st.sampled_from([*"abcdef", "by:-", "by:mx.example"])),
    ALPHAS,
    PRIORS,
    st.sampled_from(SCORINGS),
    st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted),
)
def test_metadata_survives_being_written_and_read(messages, alpha, prior, scoring, cut_offs):
    metadata = learn(messages, alpha=alpha, prior=prior, scoring=scoring).fit.metadata
    ham, spam = cut_offs
    metadata = with_settings(metadata, ham_cutoff=ham, spam_cutoff=spam)
    found = loaded_again(metadata)
    assert metadata == found
    assert metadata.host_trust == found.host_trust
    assert dump_metadata(metadata) == dump_metadata(found)


@given(
    st.integers(0, 2**32),
    st.integers(-(10**6), 10**6),
    st.builds(Noise, *[st.floats(0, 1, exclude_max=True)] * 2),
    st.sampled_from(TRAIT_MODELS),
)
def test_any_two_calibrations_survive(seed, run, noise, traits):
    """Each with its coefficients, precision, ranges, noise and run, to the last bit."""
    chance = np.random.default_rng(seed)

    def drawn(scale):
        root = chance.normal(size=(scale.size, scale.size))
        ends = np.sort(chance.normal(size=(scale.size - 1, 2)))
        return Calibration(
            tuple(chance.normal(size=scale.size).tolist()),
            tuple(map(tuple, (root @ root.T + np.eye(scale.size)).tolist())),
            tuple(map(tuple, ends.tolist())),
            noise,
            run,
        )

    both = Calibrations(*map(drawn, calibration_specs(with_traits=traits != "none")))
    sizes = [scale.size for scale in calibration_specs(with_traits=traits != "none")]
    xs = tuple(tuple(chance.normal(size=size).round(3).tolist()) for size in sizes)
    recent = tuple(Lesson(f"{(seed + i) ** 3:032x}", i % 2, (xs,)) for i in range(seed % 4))
    metadata = with_learned(
        learn(traits=traits).fit.metadata,
        calibrations=(both,),
        calibrated_by=ORIGINS[seed % len(ORIGINS)],
        recent=recent,
        before=(both,) if recent else (),
    )
    found = loaded_again(metadata)
    assert found == metadata
    assert found.learned.calibrations == (both,)
    assert found.learned.recent == recent


@pytest.mark.parametrize("traits", TRAIT_MODELS)
def test_the_keys_of_the_calibrations_and_hosts(traits):
    messages = [("ham", {"a", "by:mx"}), ("ham", {"b", "by:mx"}), ("spam", {"a", "by:-"})]
    messages.append(("spam", {"c", "by:mx"}))
    metadata = learn(messages, scoring="evidence", traits=traits).fit.metadata
    fields = fields_of(metadata)
    both = fields["calibration"]["spam"]
    assert list(both) == ["text", "full", "opening"]
    for scale in calibration_specs(with_traits=traits != "none"):
        assert scale.size == (8 if scale.name == "full" else 5) + (traits != "none")
        found = both[scale.name]
        assert list(found) == ["coefficients", "precision", "ranges", "noise", "run"]
        assert len(found["coefficients"]) == len(found["precision"]) == scale.size
        assert len(found["ranges"]) == scale.size - 1
    assert (fields["spam_cutoff"], fields["ham_cutoff"]) == (0.9, 0.5)
    assert fields["derived"]["hosts"] == [[0, 1, 1], [2, 1, 1]]
    assert metadata.learned.host_rows == {(0, 1): 1, (2, 1): 1}
    rho, mails = metadata.host_trust
    assert (rho, mails) == host_independence([((0, 1), 1), ((2, 1), 1)], (2, 2))


def test_a_model_of_text_and_without_traits_has_no_hosts_no_trust_and_no_histograms():
    metadata = learn().fit.metadata
    assert (metadata.learned.host_rows, metadata.host_trust) == ({}, (0, 0))
    assert fields_of(metadata)["traits"]["histograms"] == {}
    assert loaded_again(metadata).learned.trait_histograms == ()


def of_tokenizer(name, rules):
    fields = fields_of(learn().fit.metadata)
    assert fields["tokenizer"] == {"name": NAME, "rules": TOKENIZER_VERSION}
    return fields | {"tokenizer": {"name": name, "rules": rules}}


def test_counts_of_older_rules_are_used_and_stay_older():
    for rules in (1, TOKENIZER_VERSION - 1):
        metadata = load_metadata(of_tokenizer(NAME, rules))
        assert metadata == with_settings(learn().fit.metadata, rules=rules)
        assert loaded_again(metadata) == metadata


def test_counts_of_newer_rules_or_another_tokenizer_are_refused():
    with pytest.raises(MetadataError) as error:
        load_metadata(of_tokenizer(NAME, TOKENIZER_VERSION + 1))
    assert str(error.value) == (
        f"was made with tokenizer rules {TOKENIZER_VERSION + 1}, newer than this program's"
        f" {TOKENIZER_VERSION}; update nbspam"
    )
    odd = (0, -1, True, 1.0, None, "2")
    for name, rules in (
        ("other", 1),
        ("other", TOKENIZER_VERSION),
        *((NAME, rules) for rules in odd),
    ):
        with pytest.raises(MetadataError) as error:
            load_metadata(of_tokenizer(name, rules))
        assert str(error.value) == (
            f"was made with the tokenizer {{'name': {name!r}, 'rules': {rules!r}}}, and this"
            f" program has 'nbspam' with rules {TOKENIZER_VERSION}; train again"
        )


def test_odd_classes_survive_too():
    """One without messages has an impossible bias."""
    metadata = learn([("ham", {"a"}), ("spam", {"a"})]).fit.metadata
    learned = metadata.learned._replace(messages=(1, 0), count_histograms=({1: 1}, {0: 1}))
    metadata = metadata._replace(learned=learned)
    assert -math.inf == metadata.bias[1]
    assert metadata == loaded_again(metadata)
    metadata = learn([("häm 1", {"a"}), ("спам\\", {"b"})], positive="спам\\").fit.metadata
    assert metadata == loaded_again(metadata)


def test_the_positive_class_has_an_index():
    assert learn().fit.metadata.settings.positive_index == 1
    three = learn([(name, {name}) for name in ("a", "b", "c")])
    assert three.fit.metadata.settings.positive_index is None


def test_what_is_not_metadata_is_refused():
    for fields in (None, [], "nbspam-model", 1, {}, {"format": []}):
        with pytest.raises(MetadataError, match="not an nbspam model"):
            load_metadata(fields)
    fields = fields_of(learn([("ham", {"a"}), ("spam", {"b"})]).fit.metadata)
    fields["classes"][0] = "unsure"  # called as the verdict of none
    with pytest.raises(MetadataError, match="unsure"):
        load_metadata(fields)


@given(labelled_tokens(), labelled_tokens(), ALPHAS, PRIORS)
def test_what_follows_from_the_counts_follows_them_when_they_change(one, other, alpha, prior):
    classes = {label for label, _ in one}
    other = [(label, tokens) for label, tokens in other if label in classes]
    other += [(label, set()) for label in classes]
    first = learn(one, alpha=alpha).fit.metadata
    second = learn(other, alpha=alpha, prior=prior).fit.metadata
    changed = with_settings(first._replace(learned=second.learned), prior=prior)
    assert changed.bias == second.bias
    assert changed.n_tokens == second.n_tokens


def test_derived_numbers_in_a_file_are_not_relied_on():
    metadata = learn().fit.metadata
    fields = fields_of(metadata)
    fields["derived"]["tokens"] += 1
    fields["derived"]["bias"] = [0.0, 0.0]
    found = load_metadata(fields)
    assert (found.bias, found.n_tokens) == (metadata.bias, metadata.n_tokens)


def test_the_fewest_of_a_class_and_of_all_others():
    learned = learn().fit.metadata.learned
    three = learned._replace(messages=(2, 3, 9))
    assert [three.n_smaller_class(k) for k in range(3)] == [2, 3, 5]
    assert learned._replace(messages=(0, 7)).n_smaller_class(1) == 0


# trait_histograms


CLASSES = ("ham", "spam")
MESSAGES = (1000, 1000)
HISTOGRAM = st.dictionaries(st.integers(0, 999), st.integers(1, 100), max_size=8)
# Few are drawn; each trait and class has one of them.
DRAWN = st.lists(HISTOGRAM, min_size=1, max_size=5).map(
    lambda some: tuple(
        tuple(some[(i + k) % len(some)] for k in range(len(CLASSES)))
        for i in range(len(TRAIT_NAMES))
    )
)


def histograms_again(histograms, classes=CLASSES, messages=MESSAGES):
    written = json.loads(json.dumps(dump_histograms(histograms, classes)))
    return load_histograms(written, classes, messages)


@given(DRAWN, st.randoms())
def test_histograms_survive_being_written_and_read_whatever_the_order(histograms, chance):
    def mixed(values):
        return dict(chance.sample(list(values.items()), len(values)))

    assert histograms_again(histograms) == histograms
    other = tuple(tuple(map(mixed, row)) for row in histograms[:2]) + histograms[2:]
    written = dump_histograms(other, CLASSES)
    assert json.dumps(written) == json.dumps(dump_histograms(histograms, CLASSES))


def test_histograms_as_they_are_written():
    histograms = ({12: 1, 14: 3}, {}), *((({0: 2}, {7: 1}),) * (len(TRAIT_NAMES) - 1))
    written = dump_histograms(histograms, CLASSES)
    assert tuple(written) == TRAIT_NAMES
    assert written["characters"] == {
        "ham": {"lowest": 12, "counts": [1, 0, 3]},
        "spam": {"lowest": 0, "counts": []},
    }
    assert written["hops"]["spam"] == {"lowest": 7, "counts": [1]}


def test_histograms_of_no_message_and_of_no_traits():
    assert dump_histograms((), CLASSES) == {}
    for n in (2, 3):
        settings = ModelSettings(tuple("abc"[:n]), "b", 1, traits=KERNEL)
        empty = empty_state(settings, ()).trait_histograms
        assert empty == (({},) * n,) * len(TRAIT_NAMES)
        assert histograms_again(empty, "abc"[:n], (0,) * n) == empty


# Damage


def whole():
    histograms = ((({3: 2, 5: 1}, {4: 2}),)) * len(TRAIT_NAMES)
    return json.loads(json.dumps(dump_histograms(histograms, CLASSES)))


OTHER_TRAITS = [
    *([], "characters", 17, {}, damaged(whole(), "- hops"), damaged(whole(), "new = {}")),
    dict(reversed(whole().items())),
]
WORDS = "traits histograms words"
DAMAGE = [
    *(line for line in GOLDEN.read_text().splitlines() if line[0] != "#"),
    f"{WORDS} ham counts = {[1] * 1001}",
    f"traits histograms = {json.dumps(OTHER_TRAITS[-1])}",
]


def model_fields(histograms):
    metadata = empty_metadata(CLASSES, "spam", TrainingSettings(traits="kernel"))
    learned = metadata.learned._replace(messages=(4, 2))
    fields = json.loads(dump_metadata(metadata._replace(learned=learned)).rstrip(",\n") + "}")
    fields["traits"]["histograms"] = histograms
    return fields


def test_the_histograms_that_are_spoiled_here_are_whole():
    known = {3: 2, 5: 1}, {4: 2}
    assert load_histograms(whole(), CLASSES, (4, 2))[0] == known
    assert load_metadata(model_fields(whole())).learned.trait_histograms[0] == known


@each("line", DAMAGE)
def test_damage_is_refused_in_one_sentence_or_seen_when_it_is_written_again(line):
    fields = damaged(model_fields(whole()), line)
    try:
        loaded = load_metadata(fields)
    except MetadataError as error:
        text = str(error)
        assert text.startswith("is damaged: ")
        assert text.endswith("; restore it from a copy or train again")
        assert "\n" not in text
    else:
        assert json.dumps(fields_of(loaded)) != json.dumps(fields)


def test_what_is_wrong_is_named():
    for line, why in (
        ("traits histograms = []", "it has other traits than this program's"),
        ("traits histograms words ham counts = [5]", "a trait words of more messages than were"),
        ("- traits histograms words ham lowest", "it has no 'lowest'"),
        ("traits model = 3", "it has an unknown model 3"),
        ("traits variance_prior = false", "it has an invalid variance_prior False"),
        ("alpha = NaN", "it has an invalid alpha nan"),
        ("calibration = 7", "a value in its first lines is of another kind than nbspam writes"),
    ):
        with pytest.raises(MetadataError, match=re.escape(why)):
            load_metadata(damaged(model_fields(whole()), line))


@each("fields", OTHER_TRAITS)
def test_an_older_model_may_have_other_traits(fields):
    """What it does not know is of no message, and what is not known any more is left out."""
    if not isinstance(fields, dict):
        with pytest.raises(ValueError, match="other traits than"):
            load_histograms(fields, CLASSES, (4, 2), is_older=True)
        return
    found = load_histograms(fields, CLASSES, (4, 2), is_older=True)
    known = {3: 2, 5: 1}, {4: 2}
    assert found == tuple(known if name in fields else ({}, {}) for name in TRAIT_NAMES)
