import json
import math

import pytest
from hypothesis import given, settings
from small_models import ALPHAS, PRIORS, labelled_tokens, learn

from nbspam.store.metadata import MetadataError, dump_metadata, load_metadata, with_bias


def loaded_again(head):
    return load_metadata(json.loads(dump_metadata(head).rstrip().rstrip(",") + "}"))


@settings(deadline=None, max_examples=60)
@given(labelled_tokens(), ALPHAS, PRIORS)
def test_bias_from_counts_of_counts_is_the_direct_sum(messages, alpha, prior):
    learned = learn(messages, alpha=alpha, prior=prior)
    head = learned.fit.head
    shares = [n / sum(head.messages) for n in head.messages]
    if prior is not None:
        rest = 1 - shares[head.positive_index]
        shares = [
            prior if name == head.positive else (1 - prior) * share / rest
            for name, share in zip(head.classes, shares, strict=True)
        ]
    for k, n in enumerate(head.messages):
        absent = [
            math.log(n - row[k] + alpha) - math.log(n + 2 * alpha)
            for row in learned.counts.values()
        ]
        expected = math.log(shares[k]) + math.fsum(absent)
        assert pytest.approx(expected, rel=1e-9, abs=1e-9) == head.bias[k]


@settings(deadline=None, max_examples=60)
@given(labelled_tokens(), ALPHAS, PRIORS)
def test_a_head_survives_being_written_and_read(messages, alpha, prior):
    head = learn(messages, alpha=alpha, prior=prior).fit.head
    assert head == loaded_again(head)


def test_a_class_without_messages_has_an_impossible_bias_that_survives_too():
    head = learn([("ham", {"a"}), ("spam", {"a"})]).fit.head
    head = with_bias(head._replace(messages=(1, 0), count_histograms=({1: 1}, {0: 1})))
    assert -math.inf == head.bias[1]
    assert head == loaded_again(head)


def test_class_names_of_any_script_survive():
    head = learn([('häm "1"', {"a"}), ("спам\\", {"b"})], positive="спам\\").fit.head
    assert head == loaded_again(head)


def test_each_key_stands_on_a_line_of_its_own():
    lines = dump_metadata(learn().fit.head).splitlines()
    assert all(line.startswith(('"', '{"format": "nbspam-model", ')) for line in lines)
    assert all(line.endswith(",") for line in lines)


def test_the_positive_class_has_an_index():
    assert learn().fit.head.positive_index == 1
    three = learn([(name, {name}) for name in ("a", "b", "c")])
    assert three.fit.head.positive_index is None


@pytest.mark.parametrize("fields", [None, [], "nbspam-model", 1, {}, {"format": []}])
def test_what_is_no_head_is_refused(fields):
    with pytest.raises(MetadataError, match="not an nbspam model"):
        load_metadata(fields)


def test_a_class_that_is_called_as_the_verdict_of_none_is_refused():
    head = learn([("ham", {"a"}), ("spam", {"b"})]).fit.head
    fields = json.loads(dump_metadata(head).rstrip().rstrip(",") + "}")
    fields["classes"][0] = "unsure"
    with pytest.raises(MetadataError, match="unsure"):
        load_metadata(fields)
