import csv
import json

import pytest
from one_case import each
from outcomes import THREE, TWO

from nbspam.evaluation.results import prediction, write_predictions

EXPECTED = [prediction(outcome) for outcome in TWO.outcomes]


def written(tmp_path, name, evaluation=TWO):
    path = tmp_path / name
    write_predictions(evaluation.outcomes, path)
    return path


def rows_of(path):
    """Return what is written, as whoever reads it with the usual tools has it."""
    if path.suffix.lower() == ".parquet":
        pytest.importorskip("pyarrow")
        return pytest.importorskip("pandas").read_parquet(path).to_dict("records")
    text = path.read_text()
    if path.suffix.lower() in (".csv", ".tsv"):
        delimiter = "," if path.suffix == ".csv" else "\t"
        return list(csv.DictReader(text.splitlines(), delimiter=delimiter))
    return json.loads(text) if path.suffix == ".json" else [*map(json.loads, text.splitlines())]


@each("name", ["a.csv", "A.TSV", "a.json", "a.jsonl", "a.parquet"])
def test_each_message_is_a_row_or_an_object(tmp_path, name):
    expected = EXPECTED
    if "js" not in name:
        expected = [row | {"reason": row.get("reason", "")} for row in EXPECTED]
    if name in ("a.csv", "A.TSV"):
        expected = [{key: str(value) for key, value in row.items()} for row in expected]
    assert rows_of(written(tmp_path, name)) == expected


@each("at", [0, 2])
@each("ending", [".csv", ".jsonl", ".parquet"])
def test_a_reason_is_written_whichever_message_has_it(tmp_path, ending, at):
    outcomes = list(TWO.outcomes)
    verdict = outcomes[at].classification._replace(reason="too few known words")
    outcomes[at] = outcomes[at]._replace(classification=verdict)
    rows = rows_of(written(tmp_path, f"a{ending}", TWO._replace(outcomes=outcomes)))
    reasons = [row.get("reason") or "" for row in rows]
    assert reasons == ["too few known words" if i == at else "" for i in range(len(rows))]


def test_the_probabilities_of_three_classes_are_columns(tmp_path):
    row, *_ = rows_of(written(tmp_path, "a.csv", THREE))
    assert [row[f"probability_{name}"] for name in "abc"] == ["0.5", "0.3", "0.2"]
    assert "probabilities" not in row


@each("name", ["a.csv", "a.jsonl"])
def test_the_columns_of_a_table_come_first_and_stay(tmp_path, name):
    names = ("label", "verdict", "n", "reason")
    rows = {"file:1": (names, ["Spam", "mine", "-3", "why"]), "file:4": (names, ["spam"])}
    path = tmp_path / name
    write_predictions(TWO.outcomes, path, rows)
    first, second, *_, last = rows_of(path)
    kept = {"label": "ham", "verdict": "mine", "n": "-3", "reason": "why", "source": "file:1"}
    assert kept.items() <= first.items()
    assert (first["verdict_2"], float(first["probability_2"])) == ("ham", 0.1)
    assert second["source"] == "file:[b]2[/b]"
    assert second["verdict"] == "spam"
    assert (last["label"], last["verdict_2"]) == ("spam", "unsure")
