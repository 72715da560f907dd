"""Any file is a model that scores, or is refused in one sentence; read whole or in place.

PYTHONPATH=. python benchmarks/fuzz/model.py CORPUS -max_total_time=600
"""

import itertools
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import atheris
from budget import fuzz  # beside this file

atheris.enabled_hooks.add("str")  # what a text is compared with guides the search
with atheris.instrument_imports(include=["nbspam", "json"]):
    from nbspam.bayes.event_model import EVENT_MODELS
    from nbspam.bayes.trait_model import TRAIT_MODELS
    from nbspam.errors import ModelError
    from nbspam.learning.settings import TrainingSettings
    from nbspam.learning.update import PendingMessages, learn
    from nbspam.scoring.classifier import Classifier
    from nbspam.scoring.explanation import explain
    from nbspam.scoring.verdict import CutOffs, make_verdict
    from nbspam.store.lookup import Lookup, read_model
    from nbspam.store.metadata import SCORINGS
    from nbspam.tokens.kinds import TRAITS
    from nbspam.tokens.tokenized import TokenExtras, TokenizedMessage

PATH = Path(tempfile.mkdtemp(prefix="nbspam-fuzz-")) / "model.json"
TOKENS = {"free", "prize", "meeting", "subject:free", "trace:received:a", "never met", "é", "\\"}
NUMBERS = TokenExtras({"free": 3, "é": 2}, tuple(range(10, 10 + len(TRAITS))))
DIGESTS = ["0" * 32, "7" * 32, "f" * 32]
SENTENCE = 600  # characters


def model(data: bytes) -> None:
    """Read the bytes as a model in both ways; what both take must be the same."""
    PATH.write_bytes(data)
    whole = in_place = None
    try:
        whole = read_model(PATH)
    except ModelError as error:
        check(error)
    try:
        with Lookup(PATH) as lookup:
            lookup.ledger_rows(DIGESTS)
            wanted = {*TOKENS, *list(whole.counts)[:100]} if whole else TOKENS
            in_place = lookup.counts(wanted)
            classifier = Classifier(lookup.metadata, lookup.counts)
            score = classifier.score(wanted, NUMBERS)
            assert math.isfinite(score.log_odds)
            assert 0 <= score.probability <= 1
            assert explain(classifier, wanted, NUMBERS).score == score
            judged = make_verdict(lookup.metadata, score, CutOffs(0.5, 0.5))
            str(judged.as_json()).encode()
            if whole:
                assert lookup.metadata == whole.metadata
                known = {token: whole.counts[token] for token in wanted if token in whole.counts}
                assert in_place.items() <= known.items()  # a line with other spaces is passed over
    except ModelError as error:
        check(error)


def seeds() -> Iterator[bytes]:
    """Yield small whole models of every kind, of two classes and of three, with a ledger."""
    for event_model, traits, scoring in itertools.product(EVENT_MODELS, TRAIT_MODELS, SCORINGS):
        chosen = TrainingSettings(scoring=scoring, event_model=event_model, traits=traits)
        if (event_model, traits) == ("none", "none"):
            continue
        for label in ("spam", "promo"):
            PATH.unlink(missing_ok=True)
            pending = PendingMessages(chosen.outputs)
            found = [("ham", ["meeting", "é"]), ("spam", ["free", "trace:received:a"])]
            found.append((label, ["\\", "prize", "subject:free"]))
            messages = [
                TokenizedMessage("-", name, tokens, digest, extras=NUMBERS)
                for (name, tokens), digest in zip(found, DIGESTS, strict=True)
            ]
            pending.add(messages, PATH)
            learn(PATH, pending, chosen)
            yield PATH.read_bytes()


def check(error: ModelError) -> None:
    """Hold an error to the promise: one sentence of a line, that names the file."""
    text = str(error)
    assert text.startswith(f"{PATH}: "), text
    assert "\n" not in text, text
    assert len(text) < SENTENCE, text
    text.encode()


if __name__ == "__main__":
    fuzz(model, seeds())
