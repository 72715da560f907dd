import csv
import json

import pytest
from one_case import each
from outcomes import THREE, TWO

from nbspam.errors import OptionError
from nbspam.evaluation.json_report import prediction
from nbspam.evaluation.predictions import ENDINGS, check_predictions, write_predictions

EXPECTED = [prediction(outcome) for outcome in TWO.outcomes]


def written(tmp_path, name, evaluation=TWO):
    path = tmp_path / name
    write_predictions(evaluation.outcomes, path)
    return path


@each("name, delimiter", [("a.csv", ","), ("A.TSV", "\t")])
def test_a_table_has_a_head_and_a_line_for_each_message(tmp_path, name, delimiter):
    with written(tmp_path, name).open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter=delimiter))
    expected = [row | {"reason": row.get("reason", "")} for row in EXPECTED]
    assert rows == [{key: str(value) for key, value in row.items()} for row in expected]


def test_json_lines_are_an_object_each(tmp_path):
    lines = written(tmp_path, "a.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == EXPECTED


def test_json_is_an_array(tmp_path):
    assert json.loads(written(tmp_path, "a.json").read_text()) == EXPECTED


def test_parquet_is_what_pandas_reads(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.read_parquet(written(tmp_path, "a.parquet"))
    assert frame.to_dict("records") == [row | {"reason": row.get("reason", "")} for row in EXPECTED]


@each("at", [0, 2])
@each("ending", ENDINGS)
def test_a_reason_is_written_whichever_message_has_it(tmp_path, ending, at):
    outcomes = list(TWO.outcomes)
    outcomes[at] = outcomes[at]._replace(
        judged=outcomes[at].judged._replace(reason="too few known words")
    )
    path = written(tmp_path, f"a{ending}", TWO._replace(outcomes=outcomes))
    if ending == ".parquet":
        rows = pytest.importorskip("pandas").read_parquet(path).to_dict("records")
    elif ending in (".csv", ".tsv"):
        delimiter = "," if ending == ".csv" else "\t"
        rows = list(csv.DictReader(path.read_text().splitlines(), delimiter=delimiter))
    else:
        rows = [prediction(outcome) for outcome in outcomes]
        text = path.read_text()
        assert rows == (
            json.loads(text) if ending == ".json" else [*map(json.loads, text.split("\n")[:-1])]
        )
    reasons = [row.get("reason") or "" for row in rows]
    assert reasons == ["too few known words" if i == at else "" for i in range(len(rows))]


def test_the_probabilities_of_three_classes_are_columns(tmp_path):
    with written(tmp_path, "a.csv", THREE).open(newline="") as file:
        row = next(csv.DictReader(file))
    assert [row[f"probability_{name}"] for name in "abc"] == ["0.5", "0.3", "0.2"]
    assert "probabilities" not in row


@each("ending", ENDINGS)
def test_each_ending_can_be_written(tmp_path, ending):
    check_predictions(tmp_path / f"a{ending}")
    assert written(tmp_path, f"a{ending}").stat().st_size > 0


@each("name", ["a", "a.txt", "a.csv.gz", ".csv"])
def test_other_endings_are_refused(tmp_path, name):
    with pytest.raises(OptionError, match=r"ends in \.csv, .* or \.parquet$") as error:
        check_predictions(tmp_path / name)
    assert str(error.value).startswith(f"{tmp_path / name}: ")


def test_parquet_without_pyarrow_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(OptionError, match=r"needs pyarrow; .* -m pip install pyarrow$"):
        check_predictions(tmp_path / "a.parquet")
