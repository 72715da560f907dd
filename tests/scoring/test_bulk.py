from channel_models import EVERY_CHANNEL, labelled_mails
from hypothesis import given
from hypothesis import strategies as st
from small_models import SCORINGS, labelled_tokens, learn, with_learned

from nbspam.scoring.bulk import BulkClassifier
from nbspam.scoring.classifier import Classifier
from nbspam.store.lookup import Lookup
from nbspam.store.token_table import TokenTable
from nbspam.tokens.tokenized import TokenizedMessage

WORDS = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=4)


def scores_both_ways(path, token_sets):
    """Return the scores of messages one by one, and all at once."""
    messages = [TokenizedMessage("-", None, list(tokens)) for tokens in token_sets]
    with Lookup(path) as lookup:
        classifier = Classifier(lookup.metadata, lookup.counts)
        one_by_one = [classifier.score(m.tokens, m.numbers) for m in messages]
        found = list(BulkClassifier(classifier, TokenTable(lookup)).scores(messages))
    at_once = [score for _, score in found]
    assert [message for message, _ in found] == messages
    return one_by_one, at_once


@given(
    labelled_tokens(tokens=WORDS | EVERY_CHANNEL) | labelled_mails(),
    st.lists(st.sets(WORDS | EVERY_CHANNEL), max_size=5),
    st.sampled_from(SCORINGS),
)
def test_many_score_as_one_by_one_to_the_last_bit(tmp_path_factory, messages, new, scoring):
    learned = learn(messages, scoring=scoring)
    path = learned.save(tmp_path_factory.getbasetemp() / "bulk.json")
    one_by_one, at_once = scores_both_ways(path, [*new, *(own for _, own in messages)])
    assert one_by_one == at_once


def test_a_model_of_one_class_decides_nothing(tmp_path):
    learned = learn([("ham", {"one"}), ("ham", {"one"}), ("spam", set())])
    with Lookup(learned.save(tmp_path / "model.json")) as lookup:
        metadata = with_learned(lookup.metadata, messages=(2, 0))
        assert metadata.is_one_sided
        messages = [TokenizedMessage("-", None, [token]) for token in ("one", "new")]
        classifier = Classifier(metadata, lookup.counts)
        found = BulkClassifier(classifier, TokenTable(lookup)).scores(messages)
        assert [score for _, score in found] == [classifier.score(m.tokens) for m in messages]
