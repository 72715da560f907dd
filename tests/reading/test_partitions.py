"""Tables in parts: folders of Parquet files as Spark and Dask write them, and lists of files."""

import csv
import pickle
from pathlib import Path

import pytest

import nbspam
from nbspam.errors import SourceError
from nbspam.reading import tables, whole_tables
from nbspam.reading.source import CollectedNotes, ReadingOptions, Skips, TableOptions
from nbspam.reading.sources import read_labelled, read_messages
from nbspam.reading.tables import tables_in_folder

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

ROOT = Path(__file__).parents[2]
FRAME = pd.DataFrame(
    {
        "label": ["spam", "ham", "ham"] * 400,
        "text": [f"message number {i} of {i % 7} in a table" for i in range(1200)],
        "day": ["mon", "tue"] * 600,
    }
)


def pairs(source, read=read_labelled):
    skips = Skips()
    found = [(raw.label, raw.content) for raw in read(str(source), ReadingOptions(), skips)]
    assert skips.count == 0
    return found


def expected(frame):
    return list(zip(frame["label"], frame["text"], strict=True))


@pytest.fixture
def parts(tmp_path):
    """Write a table in three parts and the files that Spark writes next to them."""
    folder = tmp_path / "parts"
    folder.mkdir()
    for i in range(3):
        part = FRAME[400 * i : 400 * (i + 1)]
        part.to_parquet(folder / f"part-{i}.snappy.parquet", row_group_size=150)
    for name in ("_SUCCESS", "_metadata", ".part-0.crc"):
        (folder / name).write_bytes(b"")
    return folder


@pytest.mark.parametrize("read", [read_labelled, read_messages])
def test_a_folder_of_parts_is_one_table(parts, read):
    found = pairs(parts, read)
    assert [text for _, text in found] == [*FRAME["text"]]
    assert read is read_messages or found == expected(FRAME)


@pytest.mark.parametrize("column", ["day", "label"])
def test_partitions_are_one_table(tmp_path, column):
    FRAME.to_parquet(tmp_path / "table", partition_cols=[column])
    assert sorted(pairs(tmp_path / "table")) == sorted(expected(FRAME))


def test_a_folder_that_links_to_itself_is_no_partition(tmp_path):
    FRAME.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "day=1").symlink_to(tmp_path)
    assert tables_in_folder(tmp_path) == []


@pytest.mark.parametrize("inner", ["archive", "label=spam"])
def test_a_folder_within_a_partition_is_not_left_out_silently(tmp_path, inner):
    FRAME.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "day=1" / inner).mkdir(parents=True)
    FRAME.to_parquet(tmp_path / "day=1" / inner / "b.parquet")
    with pytest.raises(SourceError, match=f"day=1/{inner}: is a folder within a partition"):
        pairs(tmp_path)


def test_rows_are_read_a_part_at_a_time(parts, monkeypatch):
    sizes = []
    frame_table = whole_tables.frame_table
    monkeypatch.setattr(
        whole_tables, "frame_table", lambda f: sizes.append(len(f)) or frame_table(f)
    )
    monkeypatch.setattr(whole_tables, "_PARQUET_ROWS", 100)
    table = parts / "part-0.snappy.parquet"
    assert pairs(table) == expected(FRAME[:400])
    assert sum(sizes) == 400
    assert max(sizes) == 100


@pytest.mark.long
def test_a_list_of_names_is_one_source(parts):
    names = sorted(parts.glob("part-*"))
    learned = nbspam.train(FRAME).metadata.learned
    assert nbspam.train(names).metadata.learned == learned
    assert nbspam.train([*map(str, names)]).metadata.learned == learned
    results = nbspam.evaluate(names, folds=2)
    assert len(results.predictions) == len(FRAME)
    with pytest.raises(nbspam.SourceError, match="gone: no such file"):
        nbspam.train([names[0], parts / "gone"])


def test_a_missing_number_changes_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr("nbspam.reading.whole_tables._PARQUET_ROWS", 100)
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    numbers = [None if i == 700 else i % 2 for i in range(1200)]
    table = pa.table({"label": pa.array(numbers, pa.int64()), "text": pa.array(FRAME["text"])})
    pq.write_table(table, tmp_path / "numbers.parquet")
    rows = []
    options = ReadingOptions(on_row=lambda source, names, values: rows.append(values))
    skips = Skips()
    labels = {raw.label for raw in read_labelled(str(tmp_path / "numbers.parquet"), options, skips)}
    assert labels == {"0", "1"}
    assert {type(row[0]) for row in rows[1:]} == {int, type(None)}
    assert skips.merged_label_notes == []


def test_a_column_may_be_called_partitions():
    learned = nbspam.train(FRAME).metadata.learned
    assert nbspam.train(FRAME.assign(partitions=0)).metadata.learned == learned


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask
def test_a_frame_of_dask_is_read_by_partitions_and_classified_in_place(tmp_path, monkeypatch):
    """Runs the example of docs/scale.md."""
    dd = pytest.importorskip("dask.dataframe")
    page = (ROOT / "docs" / "scale.md").read_text("utf-8")
    example = page.partition("```python\n")[2].partition("```")[0]
    names = {"sep": "\t", "names": ["label", "text"], "quoting": csv.QUOTE_NONE}
    sms = pd.read_csv(ROOT / "sample_data" / "sms.tsv", **names)
    monkeypatch.chdir(tmp_path)
    dd.from_pandas(sms, npartitions=3).to_parquet("messages")
    exec(example, {})
    learned = nbspam.train(sms).metadata.learned
    with nbspam.open("model.json") as spam_filter:
        assert spam_filter.metadata.learned == learned
        verdicts = dd.read_parquet("verdicts").compute().reset_index(drop=True)
        alone = spam_filter.classify_many(sms, text_column="text")
    assert list(verdicts.columns) == list(alone.columns)
    assert list(verdicts["verdict"]) == list(alone["verdict"])
    assert list(verdicts["log_odds"]) == list(alone["log_odds"])
    with pytest.raises(nbspam.OptionError, match="map_partitions"):
        nbspam.classify_many(dd.from_pandas(sms, npartitions=3), "model.json")


# Ranges of rows, which other processes read


BY_RANGE = ReadingOptions(by_range=True)


def ranges(path, options=BY_RANGE):
    return list(read_labelled(str(path), options, Skips()))


def test_ranges_of_rows_are_read_elsewhere_as_they_are_read_here(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_RANGE_BYTES", 2_000)
    monkeypatch.chdir(tmp_path)
    path, frame = "t.parquet", FRAME.copy()
    frame.loc[500, "text"], frame.loc[700, "label"], frame.loc[900, "label"] = None, "", "Spam"
    frame.to_parquet(path, row_group_size=333)
    here, notes = Skips(), CollectedNotes()
    whole = list(read_labelled(str(path), ReadingOptions(), here))
    parts = pickle.loads(pickle.dumps(ranges(path)))
    monkeypatch.chdir("/")  # a worker has a folder of its own
    assert len(parts) > 4
    assert [raw for part in parts for raw in part.messages(notes)] == whole
    again = [list(part.messages(CollectedNotes())) for part in reversed(parts)]
    assert [raw for some in reversed(again) for raw in some] == whole
    there = Skips()
    for note in notes.notes:
        there.record(note)
    assert (there.named, there.spellings) == (here.named, here.spellings)
    assert here.count == 2 and here.spellings["spam"] == {"spam", "Spam"}


@pytest.mark.parametrize(
    "options",
    [
        ReadingOptions(),
        BY_RANGE._replace(table=TableOptions(text_column="text.body")),
        BY_RANGE._replace(attached=True),
    ],
)
def test_rows_are_read_here_unless_others_can_read_them_alike(tmp_path, options):
    path = tmp_path / "t.parquet"
    FRAME.rename(columns={"text": "text.body"}).to_parquet(path)
    assert [type(raw) for raw in ranges(path, options)][:1] != [tables.RowRange]
