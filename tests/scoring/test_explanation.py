import math

import pytest
from channel_models import labelled_mails, many_mails
from closeness import close
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from small_models import ALPHAS, MESSAGES, PRIORS, SCORINGS, learn, with_learned
from whole_models import numbers_of

import nbspam
from nbspam.bayes.calibration import Calibrations, calibration_specs, prior_calibration
from nbspam.bayes.event_model import EVENT_MODELS, class_log_odds
from nbspam.reading.message import parse_text
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.explanation import explain
from nbspam.scoring.rules import BIAS, CALIBRATION, CAUTION, LENGTH, OTHER_CLASSES, PRIOR
from nbspam.tokens.kinds import HEADER, channel_of, is_host
from nbspam.tokens.tokenized import TokenExtras, tokenize

# Mails per class that one host took in, which is all trust depends on beside the header words.
HOST_ROWS = {
    "none": {},
    "one": {(10**9, 10**9): 1},
    "apart": {(50, 0): 1, (0, 50): 1},
    "some": {(50, 10): 1, (10, 50): 1},
    "few": {(2, 1): 1},
}


def assert_adds_up(found, metadata):
    """Hold an explanation to its score, and its terms to what they may be."""
    settings = metadata.settings
    k = settings.classes.index(found.of)
    score = found.score
    if len(settings.classes) == 2:
        expected = score.log_odds
    elif settings.scoring == "evidence":
        expected = class_log_odds(score.log_scores, k)
    else:
        against = settings.classes.index(found.against)
        expected = score.log_scores[k] - score.log_scores[against]
    assert close(expected) == found.total
    assert found.constants.keys() <= {BIAS, CALIBRATION, LENGTH, CAUTION, PRIOR, OTHER_CLASSES}
    assert (BIAS in found.constants) == (settings.scoring == "sum")
    if settings.scoring == "sum":
        assert found.constants.keys() == {BIAS}
        assert all(word.share == word.weight for word in found.words)
    else:
        assert (OTHER_CLASSES in found.constants) == (len(settings.classes) > 2)
        assert not any(is_host(word.token) for word in found.words)
        if not score.trust:
            headers = [word for word in found.words if channel_of(word.token) == HEADER]
            assert all(word.share == 0 for word in headers)


def with_hosts(learned, rows, n_classes):
    """Return a classifier of the model with these counts of hosts."""
    wider = {(*row, *[0] * (n_classes - 2)): hosts for row, hosts in rows.items()}
    metadata = with_learned(learned.fit.metadata, host_rows=wider)
    return Classifier(metadata, learned.classifier.counts)


@given(labelled_mails(), labelled_mails(), ALPHAS, PRIORS, st.sampled_from(SCORINGS))
def test_constants_and_shares_add_up_to_the_score(messages, new, alpha, prior, scoring):
    learned = learn(messages, alpha=alpha, prior=prior, scoring=scoring)
    for _, tokens in [*messages, *new]:
        found = explain(learned.classifier, tokens | {"unknown", "received:unknown"})
        assert_adds_up(found, learned.fit.metadata)


@pytest.mark.few(6)
@pytest.mark.parametrize("hosts", [None, *HOST_ROWS])
@pytest.mark.parametrize("classes", [("ham", "spam"), ("ham", "promo", "spam")])
@pytest.mark.parametrize("prior", [None, 0.2])
@pytest.mark.parametrize("scoring", SCORINGS[::-1])
def test_constants_and_shares_of_mails_add_up_to_the_score(scoring, prior, classes, hosts):
    learned = learn(many_mails(60, 4, classes), scoring=scoring, prior=prior)
    classifier = learned.classifier
    if hosts is not None:
        classifier = with_hosts(learned, HOST_ROWS[hosts], len(classes))
    trust = []
    for _, tokens in [*many_mails(10, 4, classes), *many_mails(10, 5, classes)]:
        more = {f"received:w{i}" for i in range(150)}
        for message in (tokens, tokens | more, tokens - more, more):
            found = explain(classifier, message)
            assert_adds_up(found, learned.fit.metadata)
            trust.append(found.score.trust)
    if scoring == "evidence":  # what is held is held at every degree of trust
        assert min(trust) == 0
        expected = {"none": (0, 0), "apart": (0, 0.05), "few": (0, 0.3), "some": (0.3, 0.8)}
        low, high = expected.get(hosts, (0.7, 1) if hosts is None else (0.98, 1))
        assert low <= max(trust) <= high


@st.composite
def wild(draw, scale):
    """Draw a calibration that no training made: what is out of its ranges is held at their ends."""
    values = [draw(st.floats(-9, 9)) for _ in range(3 * scale.size - 2)]
    ends = values[scale.size :]
    ranges = (tuple(sorted(pair)) for pair in zip(ends[::2], ends[1::2], strict=True))
    return prior_calibration(scale)._replace(
        coefficients=tuple(values[: scale.size]), ranges=tuple(ranges)
    )


@given(st.data())
def test_constants_and_shares_add_up_whatever_the_calibrations_are(data):
    mails, extras = many_mails(60, 4)[:51], [numbers_of(i) for i in range(51)]
    learned = learn(mails, extras, scoring="evidence", traits="kernel")
    both = Calibrations(*(data.draw(wild(scale)) for scale in calibration_specs(with_traits=True)))
    rows = HOST_ROWS[data.draw(st.sampled_from([*HOST_ROWS]))]
    metadata = with_learned(learned.fit.metadata, calibrations=(both,), host_rows=rows)
    classifier = Classifier(metadata, learned.classifier.counts)
    prior = abs(math.log(25.5 / 26.5))
    for i in range(0, 51, 5):
        found = explain(classifier, mails[i][1], extras[-1 - i])
        assert_adds_up(found, metadata)
        assert found.constants.get(CAUTION, 0) <= 0
        assert abs(found.constants.get(PRIOR, 0)) <= prior * (1 + 1e-9)


def test_under_evidence_who_took_the_mail_in_has_no_share():
    learned = learn(many_mails(60, hosts="mixed"), scoring="evidence")
    tokens = {"ham1", "ham2", "received:ham3", "from:ham4"}
    alone, found = (
        explain(learned.classifier, tokens | by) for by in (set(), {"by:ham", "by:spam"})
    )
    assert {word.token for word in found.words} == tokens
    assert all(word.share < 0 for word in found.words)
    assert (found.words, found.constants) == (alone.words, alone.constants)
    assert found.unknown == 0


def test_without_a_known_word_the_prior_is_all_that_is_explained():
    learned = learn(many_mails(60, 1)[:51], scoring="evidence")
    found = explain(learned.classifier, {"зима", "by:mx"})
    assert found.constants.keys() == {PRIOR}
    assert close(math.log(25.5 / 26.5)) == found.constants[PRIOR] == found.score.log_odds


@given(labelled_mails(("ham", "spam")), ALPHAS)
def test_a_weight_under_evidence_is_what_the_counts_say(messages, alpha):
    learned = learn(messages, alpha=alpha, scoring="evidence")
    ham, spam = learned.fit.metadata.learned.messages
    # alpha in proportion to the size of the class, its mean alpha
    of_ham, of_spam = (2 * alpha * (n + 1) / (ham + spam + 2) for n in (ham, spam))
    for word in explain(learned.classifier, set(learned.counts)).words:
        in_ham, in_spam = word.counts
        ratio = (in_spam + of_spam) / (spam + 2 * of_spam)
        ratio /= (in_ham + of_ham) / (ham + 2 * of_ham)
        assert close(math.log(ratio)) == word.weight


@given(labelled_mails(("ham", "spam")), ALPHAS, PRIORS)
def test_plain_bernoulli_is_told_beside_any_score(messages, alpha, prior):
    plain = learn(messages, alpha=alpha, prior=prior)
    other = learn(messages, alpha=alpha, prior=prior, scoring="evidence")
    for _, tokens in messages:
        found = explain(plain.classifier, tokens)
        assert close(found.score.log_odds) == found.sum_log_odds
        assert close(found.sum_log_odds) == found.bias + sum(w.weight for w in found.words)
        beside = explain(other.classifier, tokens)
        assert close(found.sum_log_odds) == beside.sum_log_odds


@given(labelled_mails(("a", "b", "c")), ALPHAS, st.sampled_from(SCORINGS))
def test_of_three_classes_the_most_probable_is_explained(messages, alpha, scoring):
    learned = learn(messages, alpha=alpha, scoring=scoring)
    classes = learned.fit.metadata.settings.classes
    for _, tokens in messages:
        found = explain(learned.classifier, tokens)
        names = dict(zip(classes, found.score.probabilities, strict=True))
        assert max(names.values()) == names[found.of]
        if scoring == "sum":
            assert sorted(names.values())[-2] == names[found.against]
            expected = math.log(names[found.of] / names[found.against])
        else:
            assert found.against == "the rest"
            expected = math.log(names[found.of]) - math.log1p(-names[found.of])
        assert pytest.approx(expected, rel=1e-6, abs=1e-6) == found.total


def test_words_have_the_weights_of_the_formula_and_come_in_the_order_of_their_strength():
    """Two classes are explained as spam against ham; unknown tokens are counted and not shown."""
    found = explain(learn(alpha=0.5).classifier, {"free", "prize", "notes", "zebra", "x"})

    def logit(count, n):
        return math.log((count + 0.5) / (n - count + 0.5))

    expected = {
        token: (logit(spam, 2) - logit(ham, 3), (ham, spam))
        for token, ham, spam in [("free", 1, 1), ("prize", 0, 2), ("notes", 1, 0)]
    }
    assert {w.token: (close(w.weight), w.counts) for w in found.words} == expected
    assert (found.unknown, found.of, found.against) == (2, "spam", "ham")
    found = explain(learn().classifier, set().union(*(tokens for _, tokens in MESSAGES)))
    shares = [abs(word.share) for word in found.words]
    assert sorted(shares, reverse=True) == shares
    equal = learn([("ham", {"x"}), ("spam", {"b", "c", "a"})]).classifier
    assert [word.token for word in explain(equal, {"c", "a", "b"}).words] == ["a", "b", "c"]
    none = explain(equal, set())  # without tokens the bias is all that is explained
    assert none.words == ()
    assert none.bias == none.total == none.sum_log_odds


@each("event_model", EVENT_MODELS)
def test_the_score_explained_is_the_score(event_model):
    pairs = [("ham", "see you at noon"), ("spam", "FREE prize, call 0900 111222 now")] * 2
    spam_filter = nbspam.train(pairs, event_model=event_model, traits="kernel").version
    message = tokenize(parse_text("a prize for you"), outputs=spam_filter.outputs)
    score = spam_filter.classifier.score(message.tokens, message.extras)
    assert explain(spam_filter.classifier, message.tokens, message.extras).score == score
    assert score.text > 0


def test_words_of_perhaps_hidden_text_speak_for_spam_alone():
    texts = [("spam", "win a prize"), ("ham", "lunch at noon")] * 20
    spam_filter = nbspam.train(texts).version
    words = {"win", "prize", "lunch", "noon"}
    doubt = TokenExtras(possibly_hidden=frozenset(words))
    found = explain(spam_filter.classifier, words, doubt)
    assert {word.token for word in found.words} == {"win", "prize"}
    assert found.ignored_hidden == 2
    assert found.total == pytest.approx(found.score.log_odds)
    alone = spam_filter.classifier.score({"win", "prize", "unknown", "another"})
    assert found.score.log_odds == alone.log_odds  # the others are words of the text, unheard
