import io
import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from channel_models import TOKENS, many_mails
from counted_models import KINDS
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from small_models import (
    ALPHAS,
    SCORINGS,
    assert_one_sentence,
    learn,
    refused,
    with_learned,
    with_settings,
)
from whole_models import THREE, TWO, assert_same_counts, numbered, numbers_of, save, taught

from nbspam.bayes.calibration import untrained_calibrations
from nbspam.bayes.trait_model import TRAIT_MODELS
from nbspam.errors import ModelError, SourceError, TrainingError
from nbspam.learning.remake import merge, merge_files, prune, prune_file, read_counts
from nbspam.learning.settings import TrainingSettings
from nbspam.reading.source import Skips
from nbspam.scoring.verdict import CutOffs
from nbspam.store.lookup import Model, disagreements, read_model
from nbspam.store.metadata import DEFAULT, MERGING, TRAINING, no_histograms, with_counts
from nbspam.store.word_lists import FORMS

SPAM = [("spam", {"free", "prize"}, 1), ("spam", {"prize", "click"}, 2)]
HAM = [("ham", {"meeting", "free"}, 3), ("ham", {"lunch"}, 4), ("ham", {"notes"}, 5)]


def together(*models, overlap=False):
    return merge([(Path(f"{i}.json"), model) for i, model in enumerate(models)], overlap)


def parts_of(messages, whose, **chosen):
    """Return three models; whose: which of them learns each message."""
    return [
        taught([m for m, k in zip(messages, whose, strict=False) if k == part], **chosen)
        for part in range(3)
    ]


@st.composite
def divided(draw):
    """Draw classes, messages, and which of three models learns each."""
    classes = draw(st.sampled_from([TWO, THREE]))
    messages = draw(numbered(classes, most=12, tokens=TOKENS))
    return classes, messages, draw(st.lists(st.integers(0, 2), min_size=12, max_size=12))


@given(
    divided(),
    st.sampled_from(SCORINGS),
    st.sampled_from([None, *TRAIT_MODELS]),
    ALPHAS,
    st.sampled_from([None, 0.3]),
)
def test_merging_counts_as_training_on_all_messages_does(drawn, scoring, traits, alpha, prior):
    classes, messages, whose = drawn
    chosen = {"classes": classes, "scoring": scoring, "alpha": alpha, "prior": prior}
    chosen["traits"] = traits
    found = together(*parts_of(messages, whose, **chosen))
    assert_same_counts(taught(messages, **chosen), found.model)
    assert (found.shared, found.unremembered) == (0, ())


@given(divided(), st.permutations(range(3)), st.booleans())
def test_order_and_grouping_do_not_matter(drawn, order, overlap):
    classes, messages, whose = drawn
    parts = parts_of(messages, whose, classes=classes)
    if overlap:
        parts[2] = taught(messages, classes)

    def merged(*models):
        return together(*models, overlap=True).model

    flat, shuffled = merged(*parts), merged(*(parts[i] for i in order))
    left, right = merged(merged(*parts[:2]), parts[2]), merged(parts[0], merged(*parts[1:]))
    for other in (shuffled, left, right):
        assert_same_counts(flat, other)
    both = [model.metadata.learned.calibrations for model in (flat, shuffled)]
    for one, again in zip(*both, strict=True):
        for a, b in zip(one, again, strict=True):
            np.testing.assert_allclose(a.coefficients, b.coefficients)
            np.testing.assert_allclose(a.precision, b.precision)
            assert a.ranges == b.ranges


def test_ham_of_one_server_and_spam_of_another_earn_no_trust_by_merging():
    mails = [(*mail, i) for i, mail in enumerate(many_mails(60, hosts="own"))]
    parts = [taught([mail for mail in mails if mail[0] == label]) for label in TWO]
    metadata = together(*parts).model.metadata
    assert metadata.host_trust[0] < 0.1
    assert metadata.host_trust[1] == 30


@each("event_model, traits", KINDS)
def test_classes_are_told_by_their_names(event_model, traits):
    scoring = "sum" if event_model == "complement" else "evidence"
    model = partial(taught, scoring=scoring, event_model=event_model, traits=traits)
    mine = [("ham", {"a"}, 1), ("promo", {"b"}, 2), ("spam", {"c"}, 3)]
    its = [("ham", {"a"}, 4), ("spam", {"c"}, 5), ("spam", {"d"}, 6)]
    order = ("spam", "ham", "promo")
    first, second = model(mine, THREE), model(its, order)
    assert_same_counts(model([*mine, *its], THREE), together(first, second).model)
    assert_same_counts(model([*mine, *its], order), together(second, first).model)


def test_shared_messages_are_refused_with_their_number(tmp_path):
    paths = [
        save(tmp_path / "a.json", taught(SPAM + HAM[:1])),
        save(tmp_path / "b.json", taught(HAM)),
        save(tmp_path / "c.json", taught([SPAM[1]])),
    ]
    with pytest.raises(ModelError, match="share 2 messages") as error:
        merge_files(paths, tmp_path / "out.json")
    assert all(str(path) in str(error.value) for path in paths)
    assert "allow the overlap" in str(error.value)
    assert not (tmp_path / "out.json").exists()
    merged = merge_files(paths, tmp_path / "out.json", overlap=True)
    assert merged.shared == 2
    assert merged.model.metadata.learned.messages == (4, 3)
    assert merged.model.learned[f"{3:032x}"] == (2, 0)
    assert disagreements(tmp_path / "out.json")[1] == []


@each(
    "changes, words",
    [
        ({"alpha": 0.25}, ["alpha", "0.25", "0.5"]),
        ({"scoring": "sum"}, ["scoring", "sum", "evidence"]),
        ({"prior": 0.125}, ["prior", "0.125", "as learned"]),
        ({"classes": ("good", "spam")}, ["classes", "good, spam", "ham, spam"]),
        ({"classes": THREE}, ["classes", "promo"]),
    ],
)
def test_models_of_different_kinds_are_refused(changes, words):
    with refused(Path("1.json"), "0.json", "train one of the two again", *words):
        together(taught([], alpha=0.5), taught([], **{"alpha": 0.5} | changes))
    model = taught([], THREE)
    other = model._replace(metadata=with_settings(model.metadata, positive="promo"))
    with pytest.raises(ModelError, match="positive class promo") as error:
        together(model, other)
    assert "0.json has spam" in str(error.value)


def test_a_model_given_twice_or_a_message_under_another_label_is_shared(tmp_path):
    path = save(tmp_path / "a.json", taught(SPAM)._replace(learned={}))
    link = tmp_path / "link.json"
    link.symlink_to(path)
    with pytest.raises(ModelError, match="named twice") as error:
        merge_files([path, link], tmp_path / "out.json")
    assert_one_sentence(error, path, "allow the overlap")
    doubled = merge_files([path, link], tmp_path / "out.json", overlap=True)
    assert doubled.model.metadata.learned.messages == (0, 4)
    with pytest.raises(ModelError, match="share 1 message,"):
        together(taught([("spam", {"a"}, 1)]), taught([("ham", {"a"}, 1)]))


def test_a_merged_file_is_whole_and_overwrites_only_if_asked(tmp_path):
    a, b = save(tmp_path / "a.json", taught(SPAM)), save(tmp_path / "b.json", taught(HAM))
    before, output = a.read_bytes(), tmp_path / "out.json"
    with refused(a, "the file exists; replace it"):
        merge_files([a, b], a)
    assert before == a.read_bytes()
    b.write_bytes(b.read_bytes()[:-20])
    with refused(b):
        merge_files([a, b], output)
    assert not output.exists()  # a damaged model leaves nothing behind
    save(b, taught(HAM))
    merge_files([a, b], output)
    assert output.stat().st_mode & 0o777 == 0o600  # for its owner alone
    model, wrong = disagreements(output)
    assert wrong == []
    assert_same_counts(taught(SPAM + HAM), model)
    merge_files([a, b], a, replace_old=True)
    assert_same_counts(taught(SPAM + HAM), read_model(a))
    full, bare = taught(SPAM), taught(HAM)._replace(learned={})
    assert together(full, bare).unremembered == (Path("1.json"),)


def trained(seed, n=40, traits="kernel"):
    """Return a model fitted to random messages."""
    numbers = [numbers_of(1_000 * (seed + 1) + i) for i in range(n)]
    mails = many_mails(n, seed, longest=6)
    learned = learn(mails, numbers, scoring="evidence", traits=traits)
    assert learned.fit.metadata.learned.calibrated_by == TRAINING
    return Model(learned.fit.metadata, learned.counts, {})


@each("traits", ["none", "kernel"])
def test_a_merged_calibration_is_marked_and_lies_between(traits):
    models = [trained(seed, traits=traits) for seed in (1, 2, 3)]
    lessons = with_learned(models[0].metadata, recent=("a lesson",), before=("a calibration",))
    learned = together(models[0]._replace(metadata=lessons), *models[1:]).model.metadata.learned
    assert learned.calibrated_by == MERGING
    assert (learned.recent, learned.before) == ((), ())  # of a mean nothing can be taken back
    for i, merged in enumerate(learned.calibrations[0]):
        own = [model.metadata.learned.calibrations[0][i] for model in models]
        parts = np.array([calibration.coefficients for calibration in own])
        found = np.array(merged.coefficients)
        assert (parts.min(axis=0) <= found + 1e-12).all()
        assert (found <= parts.max(axis=0) + 1e-12).all()
        assert np.linalg.eigvalsh(np.array(merged.precision)).min() > 0
        ranges = np.array([calibration.ranges for calibration in own])
        ends = np.stack([ranges[:, :, 0].min(axis=0), ranges[:, :, 1].max(axis=0)])
        np.testing.assert_array_equal(ends.T, merged.ranges)
        assert merged.run == 0
    # A model that was never calibrated has no say.
    found = together(models[0], taught(SPAM, traits=traits)).model.metadata
    assert found.learned.calibrated_by == MERGING
    both = (models[0].metadata.learned.calibrations[0], found.learned.calibrations[0])
    for own, merged in zip(*both, strict=True):
        np.testing.assert_allclose(merged.coefficients, own.coefficients)
        assert merged.ranges == own.ranges


@each("traits", TRAIT_MODELS)
def test_spam_alone_and_ham_alone_make_a_model_with_the_default_calibration(traits):
    found = together(taught(SPAM, traits=traits), taught(HAM, traits=traits)).model
    assert found.metadata.learned.messages == (3, 2)
    assert not found.metadata.is_one_sided
    assert found.metadata.learned.calibrated_by == DEFAULT
    untrained = untrained_calibrations(with_traits=traits != "none")
    assert found.metadata.learned.calibrations == (untrained,)


def test_each_of_three_classes_keeps_its_own_calibration():
    labelled = [(THREE[i % 3], {f"w{i % 3}", f"x{i % 5}"}) for i in range(45)]
    fitted = [learn(some, scoring="evidence") for some in (labelled, labelled[::-1])]
    models = [Model(part.fit.metadata, part.counts, {}) for part in fitted]
    every = [model.metadata.learned.calibrations for model in models]
    for i, both in enumerate(together(*models).model.metadata.learned.calibrations):
        for scale, merged in enumerate(both):
            mean = np.mean([own[i][scale].coefficients for own in every], axis=0)
            np.testing.assert_allclose(mean, merged.coefficients, atol=1e-9)


CUT_OFFS = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted)


@given(st.lists(CUT_OFFS, min_size=1, max_size=4))
def test_the_highest_cut_offs_are_kept(pairs):
    model = taught([])
    models = [
        model._replace(metadata=CutOffs(spam, ham).stored_in(model.metadata)) for ham, spam in pairs
    ]
    merged = together(*models).model.metadata
    highest = CutOffs(max(spam for _, spam in pairs), max(ham for ham, _ in pairs))
    assert CutOffs.of_model(merged) == highest
    assert highest.ham <= highest.spam


# prune


MODELS = st.one_of(
    st.builds(
        taught,
        numbered(classes, 12, TOKENS),
        st.just(classes),
        st.sampled_from(SCORINGS),
        alpha=ALPHAS,
    )
    for classes in (TWO, THREE)
)


def frequent(model, n):
    """Return the counts of the tokens of n messages or more, and of the hosts."""
    return {
        token: row
        for token, row in model.counts.items()
        if sum(row) >= n or token.startswith("by:")
    }


@given(MODELS, st.integers(1, 4))
def test_tokens_of_few_messages_go_and_nothing_else_changes(model, n):
    found = prune(model, min_count=n)
    assert frequent(model, n) == found.counts
    assert model.learned == found.learned
    assert with_counts(model.metadata, found.counts) == found.metadata
    for name in ("messages", "calibrations", "calibrated_by", "host_rows"):
        assert getattr(found.metadata.learned, name) == getattr(model.metadata.learned, name)
    assert found.metadata.host_trust == model.metadata.host_trust
    assert prune(model) == model  # without limits nothing goes
    assert prune(model, 1, len(model.counts) + 1) == model


@given(MODELS, st.integers(1, 9), st.integers(1, 3))
def test_the_tokens_of_most_messages_stay(model, most, n):
    found = prune(model, n, most)
    left = frequent(model, n)
    hosts = {token for token in left if token.startswith("by:")}
    assert len(found.counts) == len(hosts) + min(most, len(left) - len(hosts))
    assert found.counts.items() <= left.items()
    assert hosts <= found.counts.keys()
    assert found.metadata.learned.host_rows == model.metadata.learned.host_rows
    assert found.metadata.host_trust == model.metadata.host_trust
    gone = [sum(row) for token, row in left.items() if token not in found.counts]
    kept = [sum(row) for token, row in found.counts.items() if token not in hosts]
    assert not (gone and kept) or max(gone) <= min(kept)


@each("scoring", SCORINGS)
def test_of_equally_frequent_tokens_the_strongest_stay_then_the_first(scoring):
    texts = [("ham", "both calm dull"), ("ham", "calm"), ("spam", "both axe dull"), ("spam", "axe")]
    texts.append(("spam", ""))
    model = taught(
        ((label, set(text.split()), i) for i, (label, text) in enumerate(texts)), scoring=scoring
    )
    # all four are in two messages; two of ham's two say more than two of spam's three
    assert list(prune(model, max_tokens=1).counts) == ["calm"]
    assert list(prune(model, max_tokens=2).counts) == ["axe", "calm"]
    assert list(prune(model, max_tokens=3).counts) == ["axe", "both", "calm"]


def test_a_pruned_file_agrees_with_itself(tmp_path):
    messages = [(f"{'spam' if i % 2 else 'ham'}", {f"t{i % 7}", f"u{i}"}, i) for i in range(30)]
    path = save(tmp_path / "model.json", taught(messages))
    path.chmod(0o640)
    before = path.stat().st_size
    pruned = prune_file(path, min_count=2)
    assert (pruned.tokens_before, pruned.tokens) == (37, 7)
    assert (pruned.bytes_before, pruned.bytes) == (before, path.stat().st_size)
    model, wrong = disagreements(path)
    assert wrong == []
    assert len(model.learned) == 30
    assert path.stat().st_mode & 0o777 == 0o640


def test_another_file_leaves_the_model_alone(tmp_path):
    path = learn().save(tmp_path / "model.json")
    before = path.read_bytes()
    output = tmp_path / "small.json"
    prune_file(path, output, max_tokens=2)
    assert before == path.read_bytes()
    assert len(read_model(output).counts) == 2
    with refused(output, "the file exists; replace it"):
        prune_file(path, output, max_tokens=1)
    prune_file(path, output, max_tokens=1, replace_old=True)
    assert len(json.loads(output.read_bytes())["tokens"]) == 1


# word_list


LIST = b".MSG_COUNT 3 4\nfree 2 1\nlunch 0 4\n"
TABLE = b"token,ham,spam\n(messages),4,3\nfree,1,2\nlunch,4,0\n"


def read(raw, **chosen):
    return read_counts("file", io.BytesIO(raw), Skips(), TrainingSettings(**chosen))


@each("raw", [LIST, TABLE, b"\xef\xbb\xbf" + TABLE, b"\xef\xbb\xbf" + LIST])
@each("traits", [None, "none"])
def test_a_model_of_either_form(tmp_path, raw, traits):
    """A list of words has no traits; those of the mail that is learned later have a say then."""
    model = read(raw, traits=traits, alpha=0.25, prior=0.125).model
    assert model.counts == {"free": (1, 2), "lunch": (4, 0)}
    assert model.learned == {}
    settings, learned = model.metadata.settings, model.metadata.learned
    assert (settings.classes, settings.positive) == (("ham", "spam"), "spam")
    assert (settings.alpha, settings.prior, settings.scoring) == (0.25, 0.125, "evidence")
    assert (learned.messages, learned.calibrated_by) == ((4, 3), DEFAULT)
    assert learned.calibrations == (untrained_calibrations(with_traits=traits is None),)
    assert not any(any(values) for values in learned.trait_histograms)
    assert disagreements(save(tmp_path / "model.json", model)) == (model, [])


@each("form", FORMS)
def test_both_ways_give_the_same(form):
    spam = {"free", "claim now", "from:a", "received:b", "by:mx"}
    model = taught([("spam", spam, 1), ("ham", {"free", "lunch", "by:mx"}, 2)])
    assert model.metadata.learned.host_rows == {(1, 1): 1}
    found = read(FORMS[form](model)[0].encode()).model
    assert found.counts == model.counts
    # All but the traits, which a list of words has no place for.
    none = no_histograms(2)
    assert model.metadata.learned.trait_histograms != none
    assert found.metadata == with_learned(model.metadata, trait_histograms=none)


def test_counts_above_the_messages_are_cut_down():
    found = read(LIST + b"often 9 9\nnever 0 0\n" + b"x" * 200_000 + b"\nlast 1 1\n")
    assert found.capped == 1
    assert (found.model.counts["often"], found.model.counts["last"]) == ((4, 3), (1, 1))
    assert "never" not in found.model.counts
    found = read(b".MSG_COUNT 3 0\nfree 2 1\nlunch 0 4\n")  # a class without messages
    assert found.model.counts == {"free": (0, 2)}
    assert found.model.metadata.is_one_sided


@each(
    "header, positive, classes",
    [("spam,ham", None, ("ham", "spam")), ("junk,good", "junk", ("good", "junk"))],
)
def test_the_classes_of_a_table_stand_in_our_order(header, positive, classes):
    raw = f"token,{header}\n(messages),3,4\nfree,2,1\n".encode()
    model = read(raw, positive=positive, scoring="sum").model
    assert (model.metadata.settings.classes, model.metadata.settings.scoring) == (classes, "sum")
    assert (model.metadata.learned.messages, model.counts) == ((4, 3), {"free": (1, 2)})
    if positive:
        with pytest.raises(TrainingError, match="say which class is spam"):
            read(raw)


@each(
    "raw",
    [
        b"",
        b"\0\0\0\0\0\0\0\0b1\x05\0" * 100,
        b"Dear Sir,\nbuy now\n",
        b"token,ham,spam\n(messages),1,1\ncaf\xe9,1,0\n",
        b"x" * 200_000,
    ],
)
def test_a_file_that_is_neither(raw):
    with refused("file", kind=SourceError):
        read(raw)
