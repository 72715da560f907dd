import json
import math

import pytest
from hypothesis import given, settings
from small_models import ALPHAS, PRIORS, labelled_tokens, learn, with_settings

from nbspam.store.metadata import MetadataError, dump_metadata, load_metadata


def loaded_again(metadata):
    return load_metadata(json.loads(dump_metadata(metadata).rstrip().rstrip(",") + "}"))


@settings(deadline=None, max_examples=60)
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


@settings(deadline=None, max_examples=60)
@given(labelled_tokens(), ALPHAS, PRIORS)
def test_metadata_survives_being_written_and_read(messages, alpha, prior):
    metadata = learn(messages, alpha=alpha, prior=prior).fit.metadata
    assert metadata == loaded_again(metadata)


def test_a_class_without_messages_has_an_impossible_bias_that_survives_too():
    metadata = learn([("ham", {"a"}), ("spam", {"a"})]).fit.metadata
    learned = metadata.learned._replace(messages=(1, 0), count_histograms=({1: 1}, {0: 1}))
    metadata = metadata._replace(learned=learned)
    assert -math.inf == metadata.bias[1]
    assert metadata == loaded_again(metadata)


def test_class_names_of_any_script_survive():
    metadata = learn([('häm "1"', {"a"}), ("спам\\", {"b"})], positive="спам\\").fit.metadata
    assert metadata == loaded_again(metadata)


def test_each_key_stands_on_a_line_of_its_own():
    lines = dump_metadata(learn().fit.metadata).splitlines()
    assert all(line.startswith(('"', '{"format": "nbspam-model", ')) for line in lines)
    assert all(line.endswith(",") for line in lines)


def test_the_positive_class_has_an_index():
    assert learn().fit.metadata.settings.positive_index == 1
    three = learn([(name, {name}) for name in ("a", "b", "c")])
    assert three.fit.metadata.settings.positive_index is None


@pytest.mark.parametrize("fields", [None, [], "nbspam-model", 1, {}, {"format": []}])
def test_what_is_not_metadata_is_refused(fields):
    with pytest.raises(MetadataError, match="not an nbspam model"):
        load_metadata(fields)


def test_a_class_that_is_called_as_the_verdict_of_none_is_refused():
    metadata = learn([("ham", {"a"}), ("spam", {"b"})]).fit.metadata
    fields = json.loads(dump_metadata(metadata).rstrip().rstrip(",") + "}")
    fields["classes"][0] = "unsure"
    with pytest.raises(MetadataError, match="unsure"):
        load_metadata(fields)


@settings(deadline=None, max_examples=40)
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
    fields = json.loads(dump_metadata(metadata).rstrip().rstrip(",") + "}")
    fields["derived"]["tokens"] += 1
    fields["derived"]["bias"] = [0.0, 0.0]
    found = load_metadata(fields)
    assert (found.bias, found.n_tokens) == (metadata.bias, metadata.n_tokens)
