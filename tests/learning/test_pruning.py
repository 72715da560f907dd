import json

from channel_models import TOKENS
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from small_models import ALPHAS, SCORINGS, learn, refused
from whole_models import THREE, TWO, numbered, save, taught

from nbspam.learning.pruning import prune, prune_file
from nbspam.store.lookup import find_inconsistencies, read_model
from nbspam.store.metadata import with_counts

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
    assert prune(model, max_tokens=1).counts.keys() == {"calm"}
    assert prune(model, max_tokens=2).counts.keys() == {"axe", "calm"}
    assert prune(model, max_tokens=3).counts.keys() == {"axe", "both", "calm"}


def test_a_pruned_file_agrees_with_itself(tmp_path):
    messages = [(f"{'spam' if i % 2 else 'ham'}", {f"t{i % 7}", f"u{i}"}, i) for i in range(30)]
    path = save(tmp_path / "model.json", taught(messages))
    path.chmod(0o640)
    before = path.stat().st_size
    pruned = prune_file(path, min_count=2)
    assert (pruned.tokens_before, pruned.tokens) == (37, 7)
    assert (pruned.bytes_before, pruned.bytes) == (before, path.stat().st_size)
    model, wrong = find_inconsistencies(path)
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
    with refused(output, "the file exists; overwrite it"):
        prune_file(path, output, max_tokens=1)
    prune_file(path, output, max_tokens=1, replace_old=True)
    assert len(json.loads(output.read_bytes())["tokens"]) == 1
