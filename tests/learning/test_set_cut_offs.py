"""The cut-offs of a model file are changed, and nothing else is."""

import threading

import pytest
from channel_models import TOKENS, many_mails
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import SCORINGS, refused
from whole_models import THREE, TWO, numbered, save, taught

from nbspam.errors import OptionError
from nbspam.learning.pruning import set_cut_offs
from nbspam.scoring.verdict import CutOffs
from nbspam.store.lookup import Lookup, find_inconsistencies, read_model

CUT_OFFS = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(lambda two: CutOffs(max(two), min(two)))


@pytest.fixture
def path(tmp_path):
    mails = [(label, tokens, i) for i, (label, tokens) in enumerate(many_mails(40, hosts="mixed"))]
    return save(tmp_path / "model.json", taught(mails))


def others(path):
    """Return the lines of a model file but those of its cut-offs."""
    lines = path.read_bytes().split(b"\n")
    return [line for line in lines if not line.startswith((b'"spam_cutoff"', b'"ham_cutoff"'))]


@st.composite
def models(draw):
    classes = draw(st.sampled_from([TWO, THREE]))
    return taught(draw(numbered(classes, 12, TOKENS)), classes, draw(st.sampled_from(SCORINGS)))


@settings(max_examples=10)
@given(models(), st.lists(CUT_OFFS, min_size=1, max_size=3))
def test_only_the_cut_offs_change(tmp_path_factory, model, wanted):
    path = save(tmp_path_factory.mktemp("set") / "model.json", model)
    before, rest = path.read_bytes(), others(path)
    for cut_offs in wanted:
        assert set_cut_offs(path, lambda metadata, chosen=cut_offs: chosen) == cut_offs
        assert others(path) == rest
        with Lookup(path) as lookup:
            assert CutOffs.from_model(lookup.metadata) == cut_offs
        expected = model._replace(metadata=cut_offs.applied_to(model.metadata))
        assert find_inconsistencies(path) == (expected, [])
    set_cut_offs(path, lambda metadata: CutOffs())
    assert path.read_bytes() == before


def test_the_new_cut_offs_may_follow_from_the_old_and_what_is_refused_changes_nothing(path):
    set_cut_offs(path, lambda metadata: CutOffs.from_model(metadata).overridden(spam=0.99))
    found = set_cut_offs(path, lambda metadata: CutOffs.from_model(metadata).overridden(ham=0.25))
    assert found == CutOffs(0.99, 0.25) == CutOffs.from_model(read_model(path).metadata)
    before = path.stat()
    with pytest.raises(OptionError, match="is above the spam cut-off"):
        set_cut_offs(path, lambda metadata: CutOffs.from_model(metadata).overridden(ham=0.995))
    after = path.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_the_file_stays_its_owners_alone_and_a_link_a_link(path, tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(path)
    path.chmod(0o600)
    set_cut_offs(link, lambda metadata: CutOffs(0.75, 0.25))
    assert link.is_symlink()
    assert read_model(path).metadata.settings.spam_cutoff == 0.75
    assert path.stat().st_mode & 0o777 == 0o600


def test_changes_at_the_same_time_all_happen(path):
    def lower():
        change = lambda metadata: CutOffs(metadata.settings.spam_cutoff - 0.03125, 0.0)  # noqa: E731
        set_cut_offs(path, change)

    set_cut_offs(path, lambda metadata: CutOffs(1.0, 0.0))
    threads = [threading.Thread(target=lower) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_model(path).metadata.settings.spam_cutoff == 1 - 8 * 0.03125


def test_without_a_whole_model_there_is_nothing_to_set(path, tmp_path):
    whole = path.read_bytes()

    before = set(tmp_path.iterdir())
    for none in (tmp_path / "none.json", tmp_path / "no folder" / "none.json"):
        with refused(none, "model not found"):
            set_cut_offs(none, lambda metadata: CutOffs())
        assert set(tmp_path.iterdir()) == before
    path.write_bytes(whole[:-20])
    with refused(path, "truncated"):
        set_cut_offs(path, lambda metadata: CutOffs())
    assert path.read_bytes() == whole[:-20]
