"""nbspam in a notebook: many messages at once, data frames, scikit-learn."""

# ruff: noqa: E501

import copy
import html
import json
import pickle
import warnings
from functools import partial
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from one_case import each
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted, validate_data
from test_front_door import ROOT

import nbspam
from nbspam.cli.program import nbspam as group
from nbspam.scoring.verdict import rounded
from nbspam.sklearn import NBSpam

SMS = ROOT / "sample_data" / "fresh.tsv"
FRAME = pd.read_csv(
    SMS, sep="\t", names=["label", "text"], quoting=3, nrows=120
)  # few: each test learns them
THREE = FRAME.label.where(FRAME.index % 5 > 0, "promo")
TEXTS = FRAME.text.tolist()
evaluate = partial(nbspam.evaluate, FRAME)


@pytest.fixture
def sms(tmp_path):
    """Return a file of what the frame has."""
    path = tmp_path / "sms.tsv"
    FRAME.to_csv(path, sep="\t", index=False, header=False, quoting=3)
    return path


@pytest.fixture(scope="module")
def trained():
    return nbspam.train(FRAME)


def command(*arguments):
    done = CliRunner().invoke(group, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return done.stdout


# What is not learned, and what is guessed

GAPS = pd.DataFrame(
    [("spam", "win a prize"), ("ham", None), (None, "lunch?"), ("ham", "see you"), ("spam", " ")],
    columns=["label", "text"],
)
RARE = pd.DataFrame(
    [*[("ham", "see you"), ("spam", "win")] * 20, ("hma", "at nine")], columns=["label", "text"]
)


@each(
    "call, sentence",
    [
        (
            lambda: nbspam.train(GAPS),
            "3 of 5 messages were skipped (row:1: the row has no text; row:2: the row has no label; row:4: the row has no text); strict=True stops at the first",
        ),
        (
            lambda: nbspam.train(GAPS.to_csv(CSV, index=False) or CSV),
            "3 of 5 messages were skipped (CSV:3: the row has no text; CSV:4: the row has no label; CSV:6: the row has no text); strict=True stops at the first",
        ),
        (
            lambda: nbspam.train(
                [*zip(["ham", "spam", None, np.nan], "abcd", strict=True), ("ham", "")]
            ),
            "3 of 5 messages were skipped (pair:2: it has no label, or none of printable characters; pair:3: it has no label, or none of printable characters; pair:4: the message is empty); strict=True stops at the first",
        ),
        (
            lambda: nbspam.evaluate(pd.concat([GAPS] * 9)),
            "27 of 45 messages were skipped (row:1: the row has no text; row:2: the row has no label; row:4: the row has no text; …); strict=True stops at the first",
        ),
        (
            lambda: nbspam.train([("Spam", "a b"), ("SPAM ", "a c"), ("ham", "d"), ("ham", "e")]),
            "the labels 'SPAM ', 'Spam' are one class, spam",
        ),
        (
            lambda: nbspam.train(
                FRAME.assign(label=FRAME.label.where(FRAME.index % 2 > 0, " Ham"))
            ),
            "the labels ' Ham', 'ham' are one class, ham",
        ),
        (
            lambda: nbspam.train(RARE),
            "the class 'hma' has only 1 message (row:40), next to two large ones, and is left out;"
            " correct the label",
        ),
        (
            lambda: nbspam.train(
                FRAME.assign(n=range(len(FRAME))).rename(columns={"text": "wording"})
            ),
            "the data frame: text: column 'wording' (by content); name another if it is wrong (--text-column)",
        ),
        (
            lambda: nbspam.train(FRAME).classify_many(GAPS),
            "the verdicts on 1 rows are those on an empty message (row:1: the row has no text)",
        ),
        (
            lambda: nbspam.train(FRAME).classify_many(
                pd.DataFrame({"words": ["see you all at noon", "bye for now all"]})
            ),
            "the data frame: text: column 'words' (the model learned from 'text', which it lacks); name another if it is wrong (--text-column)",
        ),
    ],
)
def test_what_is_skipped_or_guessed_is_warned_of_at_the_line_of_the_program(
    call, sentence, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning) as warned:
        call()
    assert {(str(w.message), w.filename) for w in warned} == {
        (sentence.replace("CSV", CSV), __file__)
    }


CSV = "messages.csv"


@pytest.mark.long
@each(
    "labels, yes",
    [
        ([1, 0], np.bool_(True)),
        ([True, False], "1"),
        ([1.0, 0.0], True),
        (["1", "0"], 1),
        (pd.array([1, 0], "Int64"), np.int64(1)),
        (pd.Categorical([1, 0]), 1.0),
    ],
)
def test_labels_are_booleans_and_whole_numbers_too(labels, yes):
    texts, labels = ["win a prize", "see you at noon"] * 5, list(labels) * 5
    for named in (yes, labels[0]):
        for source in (
            pd.DataFrame({"label": labels, "text": texts}),
            list(zip(labels, texts, strict=True)),
        ):
            made = nbspam.train(source, spam_label=named)
            assert (made.classes, made.metadata.settings.positive) == (("0", "1"), "1")
        assert nbspam.evaluate(source, spam_label=named).evaluation.positive == "1"
        fitted = NBSpam(spam_label=named).fit(texts, labels)
        assert fitted.classes_[fitted.filter_.metadata.settings.positive_index] == labels[0]
    with pytest.warns(UserWarning, match="1 of 11 messages were skipped"):
        frame = pd.DataFrame({"label": [*map(int, labels), np.nan], "text": [*texts, "x"]})
        assert nbspam.train(frame, spam_label=1).classes == ("0", "1")


# Many messages


def test_many_messages_are_judged_as_each_and_those_of_a_frame_beside_its_columns(
    trained, tmp_path
):
    alone = list(map(trained.classify, TEXTS))
    said = [(v.verdict, v.log_odds) for v in alone]
    trained.save(tmp_path / "model.json")
    for model in (trained, tmp_path / "model.json"):
        for jobs in (1, 2):
            found = nbspam.classify_many(TEXTS, model, jobs=jobs)
            assert [(v.verdict, v.log_odds) for v in found] == said
    assert found[7].source == "message:7"
    shuffled = FRAME.sample(frac=1, random_state=1)
    judged = trained.classify_many(shuffled, text_column="text")
    assert list(judged) == ["label", "text", "verdict", "probability", "log_odds", "reason"]
    with pytest.warns(UserWarning, match="has the column 'log_odds', so .* in 'verdict_2', "):
        again = trained.classify_many(judged, text_column="text")
    assert again["verdict_2"].equals(judged["verdict"])
    assert again[list(judged)].equals(judged)  # no column is lost
    assert judged.index.equals(shuffled.index)
    assert list(judged.sort_index()[["verdict", "log_odds"]].itertuples(index=False)) == said
    assert list(shuffled) == ["label", "text"]  # as it was
    probabilities = trained.probabilities(FRAME.text)
    assert probabilities.tolist() == [list(v.probabilities.values()) for v in alone]
    assert trained.probabilities([]).shape == (0, 2)
    assert trained.probabilities([b"Subject: hello\n\nhi"]).shape == (1, 2)


@each(
    "call, error, said",
    [
        (lambda f: f.classify(5), "Source", "the message is of the type int; give it as text"),
        (lambda f: f.classify_many("win"), "Option", "are of the type str; give a list"),
        (lambda f: f.probabilities(5), "Option", "are of the type int; give a list"),
        (lambda f: f.classify_many(["a", None]), "Source", "message:1: is of the type NoneType"),
        (lambda _: nbspam.train(5), "Source", "the source is of the type int; give a name"),
        (lambda _: nbspam.matrix(5), "Option", "are of the type int; give a list"),
        (lambda _: evaluate(folds=2, online=9), "Option", "are two tests; leave"),
        (lambda _: nbspam.evaluate(TEXTS), "Source", "is not a pair; give (label, text or bytes)"),
        (lambda _: nbspam.evaluate(FRAME[["text"]]), "Table", "looks like a label; name the label"),
        (lambda _: evaluate(folds="2"), "Option", "folds must be a whole number, not"),
        (lambda _: evaluate(seed=7), "Option", "seed needs folds; add that, or leave out seed"),
        (lambda _: evaluate(seed=-1), "Option", "seed must be a whole number, not -1"),
        (lambda _: nbspam.matrix(FRAME, jobs=0.5), "Option", "jobs must be a whole number from 1"),
        (lambda _: nbspam.train(FRAME, alpha="1"), "Option", "at most 1e+06, not 1: without"),
        (lambda _: nbspam.train(FRAME, prior="1"), "Option", "between 0 and 1, not 1; leave it"),
        (lambda _: nbspam.train(FRAME, spam_label=7), "Training", "no message is labelled '7'"),
        (lambda _: nbspam.open(b"no\0ne"), "Model", "embedded null"),
        (
            lambda f: f.save("no\0ne"),
            "Model",
            "no file can have this name; name another file (--model or --output)",
        ),
        (lambda f: f.learn(FRAME), "Source", "are of the type DataFrame; give a list of them"),
        (lambda f: f.learn(["win"]), "Source", "is of the type str, without a label; give each as"),
        (lambda f: f.forget("win"), "Source", "are of the type str; give a list of them"),
        (lambda f: f.forget(5), "Source", "are of the type int; give a list of them"),
        (lambda _: NBSpam().fit(None, [0, 1]), "Source", "are not a list; give a list or one"),
        (lambda _: NBSpam().fit("ab", [0, 1]), "Source", "are not a list; give a list or one"),
        (lambda _: NBSpam().fit(np.zeros((2, 2)), [0, 1]), "Source", "are not a list; give a list"),
        (lambda _: NBSpam().fit(["a", 1], [0, 1]), "Source", "message 1 is of the type int; give"),
        (lambda _: NBSpam(spam_label=2).fit(["a", "b"], [0, 1]), "Option", "2; name one of 0, 1"),
        (lambda _: NBSpam().fit(["a", "b"], [0, 0]), "Training", "give messages of two classes"),
        (
            lambda _: NBSpam().fit(["a"] * 3, ["x", None, "y"]),
            "Source",
            "1 of 3 labels are missing",
        ),
        (lambda _: NBSpam().fit(["a"] * 3, ["x", np.nan, "y"]), "Source", "the first of message 1"),
        (lambda _: NBSpam().fit(["a"] * 3, [1, 0, np.nan]), "Source", "the first of message 2"),
        (
            lambda _: NBSpam().fit(["a", "b"], [0, 1], [1, 0.5]),
            "Option",
            "sample_weight 0.5 of message 1 must be a whole number",
        ),
        (
            lambda _: NBSpam().fit(["a", "b"], [0, 1], [1, np.inf]),
            "Option",
            "sample_weight inf of message 1 must",
        ),
        (
            lambda _: NBSpam().fit(["a", "b"], [0, 1], [1, -1]),
            "Option",
            "sample_weight -1 of message 1 must",
        ),
        (
            lambda _: NBSpam().fit(["a", "b"], [0, 1], "no"),
            "Option",
            "a whole number for each of the 2",
        ),
        (
            lambda _: NBSpam().fit(["a", "b"], [0, 1], [1] * 3),
            "Option",
            "for each of the 2 messages",
        ),
        (
            lambda _: NBSpam().fit(FRAME.text.where(FRAME.index != 7), FRAME.label),
            "Source",
            "row 7 has no text (nan); give it one, or leave",
        ),
        (lambda _: NBSpam().fit(["a", pd.NA], [0, 1]), "Source", "row 1 has no text (<NA>)"),
        (
            lambda _: NBSpam().partial_fit(["a", "b"], [0, 0]),
            "Option",
            "labels of one class; name all",
        ),
        (
            lambda _: NBSpam().partial_fit(["a"], ["b"], ["c", "d"]),
            "Source",
            "the label 'b' is not among",
        ),
        (lambda f: f.classify_many(GAPS, strict=True), "Source", "row:1: the row has no text; fix"),
        (lambda _: nbspam.train(GAPS, strict=True), "Source", "row:1: the row has no text; fix it"),
        (
            lambda _: nbspam.train(RARE, strict=True),
            "Training",
            "the class 'hma' has only 1 message",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(trained, call, error, said):
    with pytest.raises(getattr(nbspam, f"{error}Error")) as raised:
        call(trained)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_is_shown_of_them_fits_a_line_and_an_explanation_is_a_table(trained):
    explained = trained.explain("win a free prize <b>&amp; " + " ".join(TEXTS[:3]))
    for shown in (
        *(trained, trained.classify("win"), explained, trained.explain("")),
        *(nbspam.matrix(TEXTS), nbspam.evaluate(FRAME, folds=2), NBSpam()),
    ):
        assert "\n" not in repr(shown)
        assert 5 < len(repr(shown)) < 120
    table = explained._repr_html_()
    assert table.count("<tr>") == 1 + 15 + 2 + len(explained.constants) + 1
    assert all(
        f"<bdi>{html.escape(word.token)}</bdi>" in table for word in explained.readable_words[:15]
    )
    assert f"<td>{explained.total:+.3f}</td></tr></table>" in table
    hostile = explained._replace(words=(explained.words[0]._replace(token="<script>"),))
    assert "<script" not in hostile._repr_html_()


@each("pack", [copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))])
def test_a_filter_in_memory_goes_to_other_processes_and_learns_there(trained, tmp_path, pack):
    other = pack(trained)
    assert [v.log_odds for v in other.classify_many(TEXTS)] == [
        v.log_odds for v in trained.classify_many(TEXTS)
    ]
    for model, name in ((trained, "a"), (other, "b")):
        model.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    other.learn([("spam", "an utterly new text")])
    assert sum(other.metadata.learned.messages) == 1 + sum(trained.metadata.learned.messages)


# Matrix and evaluation


def test_the_matrix_has_the_counts_of_the_model(trained, sms):
    for source in (FRAME, sms, list(zip(FRAME.label, TEXTS, strict=True))):
        found = nbspam.matrix(source)
        assert found.labels == FRAME.label.tolist()
        ham = found.counts[[label == "ham" for label in found.labels]].sum(axis=0)
        spam = found.counts.sum(axis=0) - ham
        model = trained.version.classifier.counts(found.tokens)
        assert {*zip(ham, spam, strict=True)} == {*model.values()}
        assert [model[token] for token in found.tokens] == list(zip(ham, spam, strict=True))
    alone = nbspam.matrix(["win win", b"Subject: win\n\nlunch"], times=True)
    assert alone.labels == [None, None]
    assert alone.sources == ["message:0", "message:1"]
    assert alone.counts[[0], [alone.tokens.index("win")]].tolist() == [2]


@pytest.mark.long
@each(
    "asked, options",
    [
        ({"folds": 3, "seed": 4}, ["--folds", 3, "--seed", 4]),
        ({"train_first": 90}, ["--train-first", 90]),
        ({"online": 30, "scoring": "sum"}, ["--online", "--batch", 30, "--scoring", "sum"]),
        ({"event_model": "multinomial", "alpha": 0.5}, "--leave-one-out --alpha .5".split()),
    ],
)
def test_an_evaluation_is_that_of_the_command(tmp_path, sms, asked, options):
    if "event_model" in asked:
        options = [*options, "--event-model", asked["event_model"]]
    said = tmp_path / "said.csv"
    arguments = ("eval", *options, "--quiet", "--format", "json", "--predictions", said, sms)
    expected = json.loads(command(*arguments))
    found = nbspam.evaluate(sms, **asked)
    assert {key: expected[key] for key in found.figures.values} == rounded(found.figures.values)
    columns = ["verdict", "probability", "log_odds"]
    pd.testing.assert_frame_equal(found.predictions[columns], pd.read_csv(said)[columns])


# scikit-learn


@each("labels", [FRAME.label, THREE, (FRAME.label == "spam").to_numpy(), THREE.to_numpy(object)])
def test_the_classifier_agrees_with_the_command(tmp_path, labels):
    named = pd.DataFrame({"label": [str(label) for label in labels], "text": TEXTS})
    named.to_csv(tmp_path / "messages.csv", index=False)
    model = tmp_path / "model.json"
    spam = ["--spam-label", "True"] if labels.dtype == bool else []
    command("train", "--quiet", "-m", model, *spam, tmp_path / "messages.csv")
    lines = command("classify", "-m", model, "--format", "json", tmp_path / "messages.csv")
    expected = [json.loads(line) for line in lines.splitlines()]
    fitted = NBSpam().fit(TEXTS, labels)
    found = fitted.predict_proba(TEXTS)
    for row, one in zip(found, expected, strict=True):
        given = one.get("probabilities", {str(fitted.classes_[-1]): one["probability"]})
        for k, name in enumerate(map(str, fitted.classes_)):
            if name in given:
                assert row[k] == pytest.approx(given[name], abs=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert fitted.classes_.tolist() == sorted({*labels})
    predicted = fitted.predict(TEXTS)
    assert predicted.tolist() == fitted.classes_[found.argmax(axis=1)].tolist()
    assert (predicted == labels).mean() > 0.8


@pytest.mark.long
def test_it_works_in_pipelines_searches_and_cross_validation():
    y = (FRAME.label == "spam").astype(int)
    pipeline = make_pipeline(FunctionTransformer(lambda texts: texts.str.lower()), NBSpam())
    assert cross_val_score(pipeline, FRAME.text, y, cv=3, scoring="roc_auc").min() > 0.85
    assert cross_val_score(NBSpam(), FRAME[["text"]], y, cv=3).min() > 0.8
    proba = cross_val_predict(NBSpam(), TEXTS, THREE, cv=3, method="predict_proba")
    assert proba.shape == (len(TEXTS), 3)
    kinds = [{}, {"alpha": [0.1], "scoring": ["sum"], "event_model": ["complement"]}]
    search = GridSearchCV(NBSpam(), kinds, cv=2, error_score="raise", scoring="neg_log_loss")
    shuffled = FRAME.text.set_axis([*range(1, len(FRAME)), 0])  # of another index than y
    best = search.fit(shuffled, y).best_estimator_
    assert search.best_score_ > -0.3
    again = pickle.loads(pickle.dumps(best))
    assert (again.predict_proba(TEXTS) == best.predict_proba(TEXTS)).all()
    assert again.filter_.explain("win a prize").words
    with pytest.raises(NotFittedError):
        clone(best).predict(TEXTS)


def test_names_that_a_model_cannot_have_apart_are_classes_all_the_same():
    labels = np.array(["Spam", "spam", "unsure"] * 3, object)
    fitted = NBSpam().fit(["win a prize", "see you at noon", "what is it"] * 3, labels)
    assert fitted.classes_.tolist() == ["Spam", "spam", "unsure"]
    assert fitted.predict(["win a prize", "see you at noon"]).tolist() == ["Spam", "spam"]
    swapped = NBSpam(spam_label="ham").fit(TEXTS, FRAME.label)
    assert swapped.filter_.metadata.settings.positive == "ham"
    assert swapped.score(TEXTS, FRAME.label) > 0.9


@each("labels", [FRAME.label, THREE])
def test_log_odds_and_log_probabilities_are_those_of_the_probabilities(labels):
    fitted = NBSpam(spam_label="ham").fit(FRAME.text, labels)
    p, odds = fitted.predict_proba(TEXTS), fitted.decision_function(TEXTS)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(TEXTS)), p, atol=1e-9)
    wide = np.column_stack([-odds, odds]) if odds.ndim == 1 else odds
    np.testing.assert_allclose(1 / (1 + np.exp(-wide)), p, atol=1e-9)
    assert (fitted.predict(TEXTS) == fitted.classes_[wide.argmax(axis=1)]).all()
    assert fitted.n_features_in_ == 1
    certain = fitted.predict_log_proba(["win a free prize " * 2_000])
    assert np.isfinite(certain).all()


@pytest.mark.long
@each("start", ["one class", "two classes"])
def test_parts_are_learned_as_by_an_update_of_the_command(tmp_path, start):
    model, saved = tmp_path / f"{start}.json", tmp_path / "saved.json"
    parts = [FRAME[i : i + 40] for i in range(0, len(FRAME), 40)]
    parts += [parts[0], parts[1].assign(label="spam")]  # nothing new, and moved
    parts = [FRAME[FRAME.label == "ham"][:9], *parts] * (start == "one class") or parts
    fitted = NBSpam()
    for part in parts:
        part.to_csv(tmp_path / "part.tsv", sep="\t", index=False, header=False, quoting=3)
        command("train", "--update", "--quiet", "-m", model, tmp_path / "part.tsv")
        assert fitted.partial_fit(part.text, part.label, classes=["spam", "ham"]) is fitted
    fitted.filter_.save(saved)
    assert saved.read_bytes() == model.read_bytes()
    after = (
        NBSpam()
        .fit(TEXTS, FRAME.label)
        .partial_fit(["an utterly new text"] * 2, ["spam", "spam"], sample_weight=[2, 1])
    )
    assert sum(after.filter_.metadata.learned.messages) == len(FRAME) + 3


def test_weights_are_repeats():
    weights = np.arange(len(FRAME)) % 3
    weighted = NBSpam().fit(
        FRAME.text, FRAME.label, sample_weight=pd.Series(weights, FRAME.index[::-1])
    )
    repeated = NBSpam().fit(np.repeat(TEXTS, weights), np.repeat(FRAME.label.to_numpy(), weights))
    assert (weighted.predict_proba(TEXTS) == repeated.predict_proba(TEXTS)).all()


class NumbersAsWords(NBSpam):
    """An estimator of numbers, which the checks give: value 2.5 of column 3 is the word `c3v2`."""

    def _words(self, numbers, *, reset=False):
        numbers = validate_data(self, numbers, reset=reset)
        return [
            " ".join(f"c{j}v{int(x // 1)}".replace("-", "m") for j, x in enumerate(row))
            for row in numbers
        ]

    def _learn(self, learn, numbers, y, *rest, reset=True):
        numbers, y = validate_data(self, numbers, y, reset=reset)
        width = numbers.shape[1]
        learn(self._words(numbers, reset=True), y, *rest)
        self.n_features_in_ = width
        return self

    def fit(self, X, y, sample_weight=None):  # noqa: N803
        if isinstance(X, list) and isinstance(X[0], str):
            return super().fit(X, y, sample_weight)
        return self._learn(super().fit, X, y, sample_weight)

    def partial_fit(self, X, y, classes=None, sample_weight=None):  # noqa: N803
        is_first = not hasattr(self, "filter_")
        return self._learn(super().partial_fit, X, y, classes, sample_weight, reset=is_first)

    def predict_proba(self, X):  # noqa: N803
        check_is_fitted(self)
        return super().predict_proba(self._words(X))

    def _odds(self, X):  # noqa: N803
        check_is_fitted(self)
        return super()._odds(self._words(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        accepted = tags.input_tags
        accepted.one_d_array, accepted.two_d_array, accepted.string = False, True, False
        return tags


# scikit-learn's checks that this classifier fails on purpose.
ITS_OWN_ERRORS = "raises an NbspamError, which names the remedy, and no ValueError"
EXPECTED = {
    "check_all_zero_sample_weights_error": ITS_OWN_ERRORS,
    "check_sample_weights_shape": ITS_OWN_ERRORS,
    "check_fit2d_1sample": ITS_OWN_ERRORS,
    "check_classifiers_one_label": "a filter of one class tells nothing apart, and is refused",
    "check_classifiers_one_label_sample_weights": "a filter of one class is refused",
}
SLOW = "check_classifiers_train"  # two seconds each
CHECKS = list(
    estimator_checks.estimator_checks_generator(
        NumbersAsWords(), expected_failed_checks=EXPECTED, mark="skip"
    )
)


@pytest.mark.filterwarnings("ignore")  # of scikit-learn, about the numbers it gives
@pytest.mark.parametrize(
    ("estimator", "check"),
    [pytest.param(*c, marks=[pytest.mark.long] * (SLOW in str(c[1]))) for c in CHECKS],
    ids=lambda value: getattr(getattr(value, "func", value), "__name__", ""),
)
def test_a_check_of_scikit_learn(estimator, check):
    try:
        check(estimator)
    except SkipTest as skipped:
        pytest.skip(str(skipped))


def test_the_checks_that_fail_do_so_for_the_reason_given():
    known = {
        check: reason for check, reason in EXPECTED.items() if hasattr(estimator_checks, check)
    }
    assert len(known) >= len(EXPECTED) - 1  # one came after scikit-learn 1.6
    for check, reason in known.items():
        wrong = (
            nbspam.NbspamError
            if reason is ITS_OWN_ERRORS
            else (nbspam.TrainingError, AssertionError)
        )
        with pytest.raises(wrong), warnings.catch_warnings(action="ignore"):
            getattr(estimator_checks, check)("NBSpam", NumbersAsWords())


def test_without_numbers_scikit_learn_checks_little():
    """Most checks give numbers, of which a classifier of texts is none: `check_estimator` says so."""
    with pytest.warns(Warning, match="Can't test estimator NBSpam which requires input"):
        done = estimator_checks.check_estimator(NBSpam())
    assert [check["status"] for check in done] == ["passed"] * len(done)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        NBSpam().fit(["a", "b"], [0.5, 1.5])
