"""What `import nbspam` gives a program."""

import copy
import pickle
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import nbspam
from nbspam.cli.program import nbspam as group
from nbspam.learning.pruning import set_cut_offs
from nbspam.scoring.verdict import CutOffs

ROOT = Path(__file__).parents[1]
SMS = ROOT / "sample_data" / "sms.tsv"
SPAM = "WINNER! Claim your FREE prize now: http://prize.example/win"
HAM = "See you at lunch tomorrow, I will bring the notes"
PAIRS = [("spam", "win a free prize"), ("ham", "lunch at noon"), ("spam", b"free cash prize")] * 3


@pytest.fixture(scope="module")
def trained():
    return nbspam.train(SMS)


@pytest.fixture
def saved(trained, tmp_path):
    path = tmp_path / "model.json"
    trained.save(path)
    return path


def test_the_public_names():
    assert (
        nbspam.__all__
        == (
            "Change Explanation Filter Matrix ModelError NbspamError OptionError SourceError"
            " TableError TrainingError Verdict Word __version__ classify_many evaluate matrix open"
            " train"
        ).split()
    )
    assert dir(nbspam) == sorted(nbspam.__all__)
    assert all(getattr(nbspam, name) is not None for name in nbspam.__all__)
    with pytest.raises(AttributeError, match="no attribute 'learn'"):
        nbspam.learn  # noqa: B018
    assert (Path(nbspam.__file__).parent / "py.typed").exists()


def test_a_full_disk_for_temporary_files_is_an_error_of_one_sentence():
    trained, (_, hard) = nbspam.train(PAIRS), resource.getrlimit(resource.RLIMIT_FSIZE)
    said = rf"^{tempfile.gettempdir()}: .* \(File too large\); free some space, or set TMPDIR"
    for act in (
        lambda: nbspam.train(PAIRS),
        lambda: trained.learn([("spam", "more prizes")]),
        lambda: trained.forget(PAIRS[:1]),
    ):
        with pytest.raises(nbspam.ModelError, match=said):
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
            try:
                act()
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert trained.classify("a free prize").verdict  # the old model is still there


def test_classifying_loads_nothing_heavy(saved):
    """What `import nbspam` loads is in test_startup.py."""
    code = (
        "import sys, nbspam\n"
        f"with nbspam.open({str(saved)!r}) as f: f.classify('hello'); f.explain('hello')\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & {"numpy", "scipy", "pandas", "rich", "click"} == set()


def test_a_filter_from_a_table(trained):
    verdict = trained.classify(SPAM)
    assert (verdict.verdict, verdict.source, verdict.label) == ("spam", "-", None)
    assert 0.9 < verdict.probability < 1
    assert verdict.log_odds > 0
    assert verdict.probabilities["spam"] == verdict.probability
    assert trained.classify(HAM).verdict == "ham"
    assert trained.classify("Congratulations, you have won a prize").verdict == "unsure"


def test_a_saved_filter_is_the_same_and_that_of_the_command(trained, saved, tmp_path):
    with nbspam.open(saved) as opened:
        assert opened.classify(SPAM) == trained.classify(SPAM)
        assert opened.explain(HAM) == trained.explain(HAM)
        assert opened.classes == ("ham", "spam")
    assert trained.explain(SPAM).total == pytest.approx(trained.classify(SPAM).log_odds, abs=1e-9)
    other = tmp_path / "other.json"
    assert (
        CliRunner().invoke(group, ["train", str(SMS), "-m", str(other), "-j", "1"]).exit_code == 0
    )
    assert other.read_bytes() == saved.read_bytes()


def test_the_same_message_as_text_bytes_or_parsed(trained):
    mail = f"Subject: hello\nFrom: a@b.example\n\n{HAM}\n".encode()
    assert trained.classify(mail).log_odds != trained.classify(HAM).log_odds
    assert trained.classify(HAM) == trained.classify(HAM.encode())


def test_sources_in_memory():
    by_name, by_content = (pd.DataFrame(PAIRS, columns=c) for c in (["label", "text"], [1, 2]))
    for source in (PAIRS, iter(PAIRS), by_name, by_content):
        made = nbspam.train(source)
        assert made.metadata.learned.messages == (3, 6)
        assert made.classify("free prize").probability > made.classify("lunch").probability


def test_sources_without_labels(tmp_path):
    for name, texts in (("junk", ["win a prize", "free prize"]), ("inbox", ["lunch", "meeting"])):
        (tmp_path / name).mkdir()
        for i, text in enumerate(texts):
            (tmp_path / name / str(i)).write_text(f"Subject: {text}\n\n{text}\n")
    made = nbspam.train(spam=[tmp_path / "junk"], ham=tmp_path / "inbox")
    assert made.metadata.learned.messages == (2, 2)


def test_learning_and_forgetting_in_memory(trained):
    made = copy.deepcopy(trained)
    before = made.classify(SPAM)
    *numbers, surprising = made.learn([("ham", SPAM), ("ham", HAM)])
    assert (*numbers, [one.looks_like for one in surprising]) == (2, 0, 0, 0, ["spam"])
    assert made.classify(SPAM).log_odds < before.log_odds
    assert made.learn([("ham", SPAM)]).unchanged == 1
    assert made.learn([("spam", SPAM)]).moved == 1
    assert made.forget([SPAM, ("ham", HAM), "never learned"])[:4] == (0, 0, 2, 1)
    assert made.metadata.learned.messages == trained.metadata.learned.messages
    assert made.learn([("spam", f"number {n}") for n in range(6)]).learned == 6
    assert made.forget(["number 1"] * 2).forgotten == 1


def test_learning_into_a_file(saved):
    lines = saved.read_bytes().split(b'"tokens"')[1]
    with nbspam.open(saved) as opened:
        assert opened.learn([("ham", HAM)]).learned == 1
        assert saved.read_bytes().split(b'"tokens"')[1] != lines
        with nbspam.open(saved) as again:
            assert again.classify(HAM) == opened.classify(HAM)
        assert opened.forget([HAM]).forgotten == 1
    assert saved.read_bytes().split(b'"tokens"')[1] == lines


def test_cut_offs(saved):
    """The model's own hold where no other is given."""

    def judged(**options):
        with nbspam.open(saved, **options) as opened:
            return *opened.version.cut_offs[:2], *(
                opened.classify(text).verdict for text in (SPAM, HAM)
            )

    assert judged(spam_cutoff=0.999999) == (0.999999, 0.5, "unsure", "ham")
    assert judged(ham_cutoff=0) == (0.9, 0, "spam", "unsure")
    assert judged(ham_cost=9_999_999)[2:] == ("ham", "ham")
    for options, said in (
        ({"spam_cutoff": 2}, "spam cut-off must be between 0 and 1"),
        ({"spam_cutoff": 0.9, "ham_cost": 9}, "the ham cost sets both cut-offs"),
        ({"ham_cutoff": 0.95}, r"0.95, is above the spam cut-off, 0.9;"),
    ):
        with pytest.raises(nbspam.OptionError, match=said):
            nbspam.open(saved, **options)
    set_cut_offs(saved, lambda metadata: CutOffs(0.999999, 1e-6))
    assert judged() == (0.999999, 1e-6, "unsure", "unsure")
    assert judged(spam_cutoff=0.9) == (0.9, 1e-6, "spam", "unsure")


def test_lists_of_senders(saved, tmp_path):
    spam = f"From: a@example.org\nSubject: x\n\n{SPAM}".encode()
    proven = b"Authentication-Results: mx; dmarc=pass header.from=example.org\n" + spam
    (tmp_path / "block").write_text("@example.org\n")
    for options, found in (
        ({"allow": ["@example.org"], "auth_host": "mx"}, [None, "allowed sender"]),
        ({"allow": ["@example.org"], "auth_host": ["my", "mx"]}, [None, "allowed sender"]),
        ({"allow": {"@example.org"}, "trust_from": True}, ["allowed sender"] * 2),
        ({"block": [f"file:{tmp_path}/block"]}, ["blocked sender"] * 2),
        ({"block": ["@b.org"], "auth_host": "mx"}, [None] * 2),
    ):
        with nbspam.open(saved, **options) as opened:
            verdicts = [opened.classify(mail) for mail in (spam, proven)]
            with pickle.loads(pickle.dumps(opened)) as again:
                assert [again.classify(mail) for mail in (spam, proven)] == verdicts
            assert opened.classify_many([spam, proven]) == [
                v._replace(source=f"message:{i}") for i, v in enumerate(verdicts)
            ]
            assert [v.reason for v in verdicts] == found
            assert [v.verdict for v in verdicts] == [
                "ham" if reason == "allowed sender" else "spam" for reason in found
            ]
            assert opened.classify(SPAM).reason is None  # a text has no sender
    for options, said in (
        ({"allow": ["@example.org"]}, "name your mail server \\(--auth-host"),
        ({"block": "@example.org"}, "block is a text; give a list of senders"),
        ({"block": ["example.org"]}, "'example.org' is not a sender"),
    ):
        with pytest.raises(nbspam.OptionError, match=said):
            nbspam.open(saved, **options)


def test_three_classes_have_no_cut_offs(tmp_path):
    made = nbspam.train([(name, f"{name} {name}") for name in ("ham", "promo", "spam")] * 3)
    made.save(tmp_path / "three.json")
    with nbspam.open(tmp_path / "three.json") as opened:
        assert opened.classify("promo").verdict == "promo"
    with pytest.raises(nbspam.OptionError, match="several classes has no cut-offs"):
        nbspam.open(tmp_path / "three.json", ham_cutoff=0.5)


@pytest.mark.parametrize(
    "page", ["README.md", pytest.param("docs/python.md", marks=pytest.mark.long)]
)
def test_the_examples_of_a_page_run(tmp_path, monkeypatch, page):
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.M | re.S)
    assert blocks
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)


@pytest.mark.parametrize("ham, spam", [(0, 1), (False, True), ("0", "1"), ("false", "TRUE")])
def test_of_0_and_1_the_second_is_spam_unless_another_is_named(ham, spam):
    pairs = [(spam if label == "spam" else ham, text) for label, text in PAIRS]
    trained = nbspam.train(pairs)
    assert trained.classify("free prize").probability > 0.5
    assert trained.metadata.settings.positive == trained.classes[1]
    assert nbspam.evaluate(pairs, folds=2).evaluation.positive == trained.classes[1]
    assert nbspam.train(pairs, spam_label=ham).classify("free prize").probability < 0.5
