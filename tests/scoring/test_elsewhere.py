"""Mail from elsewhere: received in a domain in which no learned mail was received."""

import numpy as np
from closeness import close
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from small_models import learn

from nbspam.bayes.event_model import logit
from nbspam.bayes.matrix import doubts_of
from nbspam.scoring.verdict import FROM_ELSEWHERE, CutOffs, make_verdict
from nbspam.store.metadata import ELSEWHERE
from nbspam.tokens.kinds import channels_of

WORDS = {"ham": {"lunch", "noon"}, "spam": {"prize", "win"}}


def collectors(host):
    """Return the tokens of a mail's host: "-" if it is unknown, None for a text."""
    if host is None:
        return set()
    return {f"by:{host}"} if host == "-" else {f"by:{host}", f"by-domain:{host}"}


def mails(hosts, n=60):
    """Return n mails of ham and spam in turn, received by the hosts in turn."""
    classes = ["ham", "spam"] * (n // 2)
    return [(k, WORDS[k] | collectors(hosts[i % len(hosts)])) for i, k in enumerate(classes)]


@each(
    "hosts, host, low, high",
    [
        (["mx"], "mx", 0.0, 0.1),
        (["mx"], "other", 0.8, 1.0),
        (["mx"], "-", 0.8, 1.0),
        (["mx"], None, 0.0, 0.0),
        ([f"mx{i}" for i in range(60)], "other", 0.0, 0.1),  # a new name for each mail
        ([None], "other", 0.0, 0.0),
        ([None], "-", 0.0, 0.0),
        (["-"], "-", 0.0, 0.0),
        (["-"], "mx", 0.8, 1.0),
    ],
)
def test_a_mail_is_doubted_if_its_domain_is_new_and_new_domains_are_rare(hosts, host, low, high):
    classifier = learn(mails(hosts), scoring="evidence").classifier
    assert low <= classifier.score(WORDS["spam"] | collectors(host)).doubt <= high


def test_a_new_domain_is_familiar_after_some_lessons():
    doubts = []
    for n in (0, 2, 20):
        learned = learn(mails(["mx"], 200) + mails(["new"], n), scoring="evidence")
        doubts.append(learned.classifier.doubt(collectors("new")))
    assert doubts[0] > 0.9 > 0.55 > doubts[1] > 0.25 > 0.1 > doubts[2]


def test_a_known_domain_makes_a_new_host_familiar():
    classifier = learn(mails(["mx"], 200), scoring="evidence").classifier
    assert classifier.doubt({"by:mx2", "by-domain:mx"}) == classifier.doubt(collectors("mx")) < 0.1


@each("above, verdict, reason", [(-0.1, "unsure", FROM_ELSEWHERE), (0.1, "spam", None)])
def test_doubt_asks_more_of_spam_and_changes_nothing_else(above, verdict, reason):
    learned = learn(mails(["mx"], 400), scoring="evidence")
    metadata, score = learned.fit.metadata, learned.classifier.score
    own, other = (score(WORDS["spam"] | collectors(host)) for host in ("mx", "other"))
    assert own._replace(doubt=other.doubt) == other
    found = other._replace(log_odds=logit(0.9) + ELSEWHERE * other.doubt + above)
    judged = make_verdict(metadata, found, CutOffs())
    assert (judged.verdict, judged.reason) == (verdict, reason)
    assert (
        make_verdict(metadata, found, CutOffs().overridden(trust_elsewhere=True)).verdict == "spam"
    )
    assert make_verdict(metadata, found._replace(log_odds=0.0), CutOffs()).verdict == "ham"


HOSTS = st.lists(st.sampled_from(["a", "b", "c", "-", None]), min_size=1, max_size=5)


@given(HOSTS)
def test_a_learned_mail_is_left_out_of_those_of_its_domain(hosts):
    messages = mails(hosts, 8)
    learned = learn(messages, scoring="evidence")
    domains = learned.fit.metadata.domains
    for (_, tokens), score in zip(messages, learned.fit.left_out_scores(), strict=True):
        names = [token for token in tokens if token.startswith("by-domain:")]
        expected = domains.doubt_unnamed if "by:-" in tokens else 0.0
        if names:
            expected = domains.doubt(sum(learned.counts[names[0]]) - 1)
        assert score.doubt == expected


@given(HOSTS, HOSTS)
def test_many_mails_are_doubted_like_one(learned_hosts, hosts):
    learned = learn(mails(learned_hosts, 8), scoring="evidence")
    messages = [list(tokens) for _, tokens in mails(hosts, 6)]
    tokens = [token for message in messages for token in message]
    rows = np.repeat(np.arange(6), [len(message) for message in messages])
    totals = np.array([sum(learned.counts.get(token, ())) for token in tokens])
    channels = np.array(channels_of(tokens))
    found = doubts_of(learned.fit.metadata.domains, channels, totals, rows, 6)
    assert found.tolist() == [learned.classifier.doubt(message) for message in messages]


def test_the_choice_is_stored_in_the_model():
    metadata = learn(scoring="evidence").fit.metadata
    assert CutOffs.from_model(metadata).elsewhere == close(ELSEWHERE)
    trusting = CutOffs().overridden(trust_elsewhere=True)
    assert CutOffs.from_model(trusting.applied_to(metadata)) == trusting
    assert trusting.overridden(trust_elsewhere=False) == CutOffs()
