"""Golden verdicts: what each kind of model says of 29 messages of our own, every term of it.

The messages, what the models are trained on, and the verdicts are files in tests/golden/verdicts.
They stay as they are to the digits that the program prints; a change that is meant to change them
writes them anew with `NBSPAM_GOLDEN=new pytest -n0 tests/test_golden_verdicts.py`.
"""

import json
import mailbox
import os
from collections.abc import Iterator
from pathlib import Path

import nbspam
from nbspam.bayes.calibration import DECIMALS

FOLDER = Path(__file__).parent / "golden" / "verdicts"
Labelled = list[tuple[str, str | bytes]]
# Models whose explanations are kept whole; of the others the log-odds are.
EXPLAINED = ("default", "sum", "gaussian", "three-classes", "base")


def messages() -> dict[str, str | bytes]:
    """Return the messages by name: texts as str, mails as bytes."""
    return {
        path.name: path.read_text() if path.suffix == ".txt" else path.read_bytes()
        for path in sorted((FOLDER / "messages").iterdir())
    }


def texts(*classes: str) -> Labelled:
    """Return the labelled texts of some classes."""
    rows = (line.split("\t", 1) for line in (FOLDER / "texts.tsv").read_text().splitlines())
    return [(label, text) for label, text in rows if label in classes]


def mails(label: str) -> Labelled:
    """Return the mails of a class."""
    box = mailbox.mbox(FOLDER / f"{label}.mbox", create=False)
    found: Labelled = [(label, box.get_bytes(key)) for key in box.iterkeys()]
    box.close()
    return found


def training() -> Labelled:
    """Return what the default model is trained on."""
    return [*texts("ham", "spam"), *mails("ham"), *mails("spam")]


def models(folder: Path) -> Iterator[tuple[str, nbspam.Filter]]:
    """Yield each kind of model by its name; folder: for files."""
    every = training()
    yield "default", nbspam.train(every)
    yield "no-traits", nbspam.train(every, traits="none")
    yield "gaussian", nbspam.train(every, traits="gaussian", variance_prior=2.0)
    for name in ("multinomial", "complement", "none"):
        yield name, nbspam.train(every, event_model=name)
    yield "sum", nbspam.train(every, scoring="sum")
    yield "sum-multinomial", nbspam.train(every, scoring="sum", event_model="multinomial")
    yield "prior", nbspam.train(every, prior=0.2, alpha=0.3)
    yield "three-classes", nbspam.train(texts("ham", "spam", "promo"))
    yield "young", nbspam.train([*texts("ham")[:4], *texts("spam")[:3]])
    other = {"ham": "spam", "spam": "ham"}
    wrong = [(other[label] if i % 12 == 5 else label, m) for i, (label, m) in enumerate(every * 3)]
    yield "noise", nbspam.train(wrong)
    later: Labelled = [("ham", "Soup on Sunday? Bring the scarf"), ("spam", "Pay the toll now!")]
    updated = nbspam.train(every[:-4])
    updated.learn([*every[-4:], *later])
    yield "updated", updated
    moved = nbspam.train(every)
    moved.learn([("spam", later[0][1])])
    moved.learn(later)
    yield "moved", moved
    forgotten = nbspam.train(every)
    forgotten.learn([("spam", later[0][1]), later[1]])
    forgotten.forget([later[0][1], later[1][1], every[0][1]])
    yield "forgotten", forgotten
    nbspam.train(every).save(folder / "base.json")
    with nbspam.open(folder / "own.json", base=folder / "base.json") as own:
        own.learn([*later, ("spam", messages()["text-promo.txt"])])
        yield "base", own


def said(spam_filter: nbspam.Filter, message: str | bytes, explained: bool) -> dict[str, object]:
    """Return what a model says of a message."""
    judged = spam_filter.classify(message)
    fields: dict[str, object] = {"verdict": judged.verdict, "log_odds": _number(judged.log_odds)}
    if judged.reason:
        fields["reason"] = judged.reason
    if explained:
        found = spam_filter.explain(message)
        fields |= {key: _number(value) for key, value in found.constants.items()}
        if found.sum_log_odds is not None:
            fields["sum"] = _number(found.sum_log_odds)
        fields["words"] = {
            word.token: [_number(word.weight), _number(word.share)]
            for word in sorted(found.words, key=lambda word: word.token)
        }
    return fields


def _number(value: float) -> float:
    return round(value, DECIMALS)


def every_verdict(folder: Path) -> Iterator[tuple[str, dict[str, dict[str, object]]]]:
    """Yield what each model says of each message."""
    for name, spam_filter in models(folder):
        explained = name in EXPLAINED
        yield name, {m: said(spam_filter, text, explained) for m, text in messages().items()}


def test_golden_verdicts(tmp_path):
    found = dict(every_verdict(tmp_path))
    if os.environ.get("NBSPAM_GOLDEN") == "new":
        for name, said_of in found.items():
            lines = (f"{json.dumps(m)}: {json.dumps(f)}" for m, f in said_of.items())
            (FOLDER / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    golden = {path.stem: json.loads(path.read_text()) for path in FOLDER.glob("*.json")}
    assert set(found) == set(golden)
    differences = []
    for name, expected in golden.items():
        assert list(found[name]) == list(expected) == list(messages()), name
        for message, verdict in expected.items():
            differences += _differences(verdict, found[name][message], f"{name}: {message}")
    assert not differences, differences[:5]


def _differences(expected, actual, where):
    """Yield where two verdicts differ by more than a unit of the last decimal that is printed."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        if expected.keys() != actual.keys():
            yield where, sorted(expected.keys() ^ actual.keys())
        for key in expected.keys() & actual.keys():
            yield from _differences(expected[key], actual[key], f"{where} {key}")
    elif isinstance(expected, list):
        for one, other in zip(expected, actual, strict=True):
            yield from _differences(one, other, where)
    elif isinstance(expected, float) and isinstance(actual, float):
        if abs(expected - actual) > 1.1 * 10**-DECIMALS:
            yield where, expected, actual
    elif expected != actual:
        yield where, expected, actual
