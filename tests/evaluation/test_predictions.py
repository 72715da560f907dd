import csv
import json
import re

import pytest
from one_case import each
from outcomes import THREE, TWO

from nbspam.errors import OptionError
from nbspam.evaluation.results import ENDINGS, check_predictions, prediction, write_predictions

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
    check_predictions(tmp_path / name)
    assert rows_of(written(tmp_path, name)) == expected


@each("at", [0, 2])
@each("ending", ENDINGS)
def test_a_reason_is_written_whichever_message_has_it(tmp_path, ending, at):
    outcomes = list(TWO.outcomes)
    judged = outcomes[at].judged._replace(reason="too few known words")
    outcomes[at] = outcomes[at]._replace(judged=judged)
    rows = rows_of(written(tmp_path, f"a{ending}", TWO._replace(outcomes=outcomes)))
    reasons = [row.get("reason") or "" for row in rows]
    assert reasons == ["too few known words" if i == at else "" for i in range(len(rows))]


def test_the_probabilities_of_three_classes_are_columns(tmp_path):
    row, *_ = rows_of(written(tmp_path, "a.csv", THREE))
    assert [row[f"probability_{name}"] for name in "abc"] == ["0.5", "0.3", "0.2"]
    assert "probabilities" not in row


@each("name", ["a", "a.txt", "a.csv.gz", ".csv"])
def test_other_endings_are_refused(tmp_path, name):
    start = re.escape(str(tmp_path / name))
    with pytest.raises(OptionError, match=rf"^{start}: .* ends in \.csv, .* or \.parquet$"):
        check_predictions(tmp_path / name)


def test_parquet_without_pyarrow_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(OptionError, match=r"needs pyarrow; .* -m pip install pyarrow$"):
        check_predictions(tmp_path / "a.parquet")
