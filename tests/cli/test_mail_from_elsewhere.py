"""Mail from elsewhere, through the commands: what they say of it, and how the doubt ends."""

import json

import pytest
from one_server import write_mailboxes

from nbspam.bayes.event_model import sigmoid


@pytest.fixture
def trained(nbspam, tmp_path):
    """Train a model of mail that one server received; return the options for it and the output."""
    texts = {"ham": "minutes of the meeting and lunch", "spam": "win a prize and cash now"}
    model = "-m", tmp_path / "model.json"
    ham, spam = write_mailboxes(tmp_path, texts, 60)
    return model, nbspam("train", *model, "--ham", ham, "--spam", spam).out


@pytest.fixture
def foreign(nbspam, trained, tmp_path):
    """Write a spam that another server received, and choose a cut-off that it is just above."""
    model, _ = trained
    path = tmp_path / "foreign.eml"
    path.write_text("Received: by mx.example.com\nSubject: prize\n\nwin a prize and cash now\n")
    found = json.loads(nbspam("classify", *model, path, "--format", "json").out)
    return "--spam-cutoff", str(sigmoid(found["log_odds"] - 0.5)), path


def test_train_says_that_one_server_received_all_mail(nbspam, trained):
    model, said = trained
    sentence = (
        "one server received all this mail; mail that other servers received is called spam only if"
    )
    assert sentence in " ".join(said.split())
    ham = "--ham", model[1].with_name("ham.mbox"), "--spam", model[1].with_name("spam.mbox")
    assert "one server" not in nbspam("train", *model, "--replace", *ham, "--scoring", "sum").out


def test_spam_from_elsewhere_is_unsure_unless_it_is_trusted(nbspam, trained, foreign):
    model, _ = trained
    doubted = nbspam("classify", *model, *foreign).out.split("\t")
    assert (doubted[0], doubted[3]) == ("unsure", "unlike the learned mail\n")
    explained = " ".join(nbspam("explain", *model, *foreign).out.split())
    assert "the model has learned little or no mail of the server that received" in explained
    trusted = nbspam("classify", *model, *foreign, "--trust-elsewhere").out
    assert trusted.startswith("spam\t")
    nbspam("model", "set", *model, "--trust-elsewhere")
    assert nbspam("classify", *model, *foreign).out == trusted
    assert nbspam("classify", *model, *foreign, "--doubt-elsewhere").out.split("\t") == doubted
