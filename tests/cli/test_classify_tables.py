"""`nbspam classify` with tables: no cell is lost, and each row has its verdict."""

import csv
import gzip
import io
import json
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
from one_case import each
from running import run_raw

ADDED = ["verdict", "probability", "log_odds", "reason"]
NOTE = 'win, "free"\nprize'
ROWS = [
    ["id", "text", "amount", "class"],
    ["1", NOTE, "-5", "a"],
    ["2", "lunch at noon, meeting today", "-5.5", "b"],
    ["3"],
    ["4", "", "", "b"],
    ["5", "=free prize now", "+1", "é"],
]


def as_csv(rows, delimiter=","):
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return file.getvalue()


@pytest.fixture
def rows_out(model):
    """Return a function that classifies a source into a CSV, and returns its rows."""

    def classified(*arguments, stdin=b"", error=""):
        code, out, err = run_raw(["classify", "-m", model, *arguments], stdin)
        assert (code, error in err.decode()) == (0, True), err
        text = io.StringIO(out.decode(), newline="")
        return list(csv.reader(text, delimiter="\t" if "tsv" in arguments else ","))

    return classified


def verdicts_of(model, source):
    _, out, _ = run_raw(["classify", "-m", model, source, "--format", "json"], b"")
    lines = [json.loads(line) for line in out.decode().splitlines()]
    return {line["source"]: [str(line.get(name, "")) for name in ADDED] for line in lines}


@each("form", ["csv", "tsv"])
@each("ending", ["csv", "csv.gz", "tsv", "utf16.csv", "cp1252.csv", "stdin"])
def test_each_row_keeps_its_cells_and_gets_its_verdict(tmp_path, model, rows_out, form, ending):
    text, path = as_csv(ROWS, "\t" if ending == "tsv" else ","), tmp_path / f"a.{ending}"
    codec = {"utf16.csv": "utf-16", "cp1252.csv": "cp1252"}.get(ending, "utf-8")
    data = text.encode(codec)
    path.write_bytes(gzip.compress(data) if ending == "csv.gz" else data)
    if ending == "stdin":
        found = rows_out("--input-format", "csv", "--format", form, stdin=data)
    else:
        found = rows_out(path, "--format", form)
    assert found[0] == ROWS[0] + ADDED
    cells = [row[:4] for row in found[1:]]
    assert cells == [
        *ROWS[1:3],
        ["3", "", "", ""],
        ROWS[4],
        ["5", "'=free prize now", "+1", "é"],
    ]
    assert found[3][4:] == [""] * 4  # the row without a text was skipped
    if ending == "csv":
        said = [value for name, value in verdicts_of(model, path).items()]
        assert [row[4:] for row in found[1:] if row[4]] == said


def test_what_was_read_comes_back(tmp_path, model, rows_out):
    """A table that is read from the output has the same cells, and the same verdicts."""
    path, out = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text(as_csv(ROWS))
    for options in ([], ["--keep-formulas"]):
        assert rows_out(path, "-o", out, *options) == []
        found = rows_out(out, "--format", "csv", *options, error="verdicts are in 'verdict_2'")
        assert found[0] == ROWS[0] + ADDED + [f"{name}_2" for name in ADDED]
        for row in found[1:]:
            if row[4] and (options or not row[1].startswith("'")):
                assert row[4:8] == row[8:]
        assert (found[5][1] == ROWS[5][1]) is bool(options)


WRITERS = {"csv": "to_csv", "parquet": "to_parquet", "xlsx": "to_excel"}
OBJECTS = [
    {"text": "win a prize", "n": 1, "deep": {"a": [1, None]}, "is": True, "none": None},
    {"n": 1.5, "text": "lunch at noon"},
    {"text": ["win"], "n": -1, "label": "ham"},
    {"text": {"no": "text"}, "n": 10**20},
]


def test_json_lines_keep_their_values(tmp_path, model):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{json.dumps(value)}\n" for value in OBJECTS))
    _, out, _ = run_raw(["classify", "-m", model, path, "--format", "jsonl"], b"")
    found = [json.loads(line) for line in out.decode().splitlines()]
    assert [{k: v for k, v in line.items() if k not in ADDED} for line in found] == OBJECTS
    assert [line["verdict"] is None for line in found] == [False, False, False, True]
    assert found[0].keys() == OBJECTS[0].keys() | set(ADDED)


@each("ending", ["parquet", "xlsx", "json"])
def test_a_file_is_written_as_it_ends_and_read_again(tmp_path, model, rows_out, ending):
    pytest.importorskip({"xlsx": "openpyxl"}.get(ending, "pyarrow"))
    path, out = tmp_path / "a.csv", tmp_path / f"b.{ending}"
    path.write_text(as_csv(ROWS))
    assert rows_out(path, "-o", out) == []
    if ending != "json":
        found = rows_out(out, "--format", "csv", "--keep-formulas")
        assert [row[:4] for row in found] == [[*row, "", "", ""][:4] for row in ROWS]
    else:
        found = json.loads(out.read_text())
        assert [list(row.values())[:4] for row in found[:2]] == ROWS[1:3]


def test_a_table_without_names_gets_some_and_spare_commas_belong_to_the_text(tmp_path, rows_out):
    path = tmp_path / "a.csv"
    lines = ["ham,lunch at noon,7", "spam,win a prize, now,8", "ham,see you,9"] * 5
    path.write_text("\n".join(lines))
    header, *found = rows_out(path, "--format", "csv")
    assert header == ["label", "text", "column_3", *ADDED]
    assert [row[:3] for row in found[:2]] == [
        ["ham", "lunch at noon", "7"],
        ["spam", "win a prize, now", "8"],
    ]
    other = tmp_path / "b.csv"  # a label that is none: no cell goes
    other.write_text(
        "text,n,label\n" + "see you at noon,1,ham\nwin a prize,2,spam\n" * 9 + "a,b,c,d\n"
    )
    assert rows_out(other, "--format", "csv")[-1][:3] == ["a,b", "c", "d"]
    other.write_text("text,n\nsee you at noon,10\nwin, a prize,20\nlunch,30\n")  # without labels
    said = "b.csv:3: has more cells than columns; the rest belongs to the text"
    assert rows_out(other, "--format", "csv", error=said)[2][:2] == ["win, a prize", "20"]
    other.write_text("label,n,text\nham,1,5,see you at noon\nspam,2,5,win\n")  # each row is wider
    assert (
        rows_out(other, "--format", "csv", error=said.replace("3", "2"))[1][2]
        == "5,see you at noon"
    )


def test_mails_have_their_source(tmp_path, model, rows_out):
    mail = tmp_path / "a.eml"
    mail.write_text("Subject: lunch\n\nlunch at noon\n")
    verdict = verdicts_of(model, mail)[str(mail)]
    assert rows_out(mail, mail, "--format", "csv") == [
        ["source", *ADDED],
        *[[str(mail), *verdict]] * 2,
    ]
    table = tmp_path / "a.csv"
    table.write_text(as_csv(ROWS))
    _, out, _ = run_raw(["classify", "-m", model, table, mail, table, "--format", "jsonl"], b"")
    lines = [json.loads(line) for line in out.decode().splitlines()]
    assert [line.get("source", line.get("id")) for line in lines] == [*"12345", str(mail), *"12345"]


@each(
    "options, said",
    [
        (["-o", "a.csv"], "--output a.csv: is a source, and would be lost; name another file"),
        (["-o", "./link.csv"], "--output link.csv: is a source, and would be lost"),
        (["-o", "model.json"], "--output model.json: is the model, and would be lost"),
        (["-o", "b.txt"], "b.txt: unknown format of a table; name a file that ends in .csv, "),
        (["-o", "no/b.csv"], "no/b.csv: cannot be written (No such file or directory); make its"),
        (
            ["-o", "b.csv", "--format", "text"],
            "are for tables; add --format csv, or leave them out",
        ),
        (["-o", "b.tsv", "--format", "csv"], "--output b.tsv: is not for --format csv; leave out"),
        (["-o", "b.jsonl", "--keep-formulas"], "--keep-formulas is for a CSV or a TSV; leave"),
        (["--keep-formulas"], "are for tables; add --format csv, or leave them out"),
        (["-o", "b.csv", "--strict"], "a.csv:5: the row has no text; "),
    ],
)
def test_what_cannot_be_written_is_refused(nbspam, table, model, monkeypatch, options, said):
    monkeypatch.chdir(table.parent)
    source = table.with_name("a.csv")
    source.write_text(as_csv(ROWS))
    table.with_name("m.eml").write_text("Subject: a\n\nb")
    link = table.with_name("link.csv")
    if not link.is_symlink():
        link.symlink_to("a.csv")
    files = [model, source]
    before = [file.read_bytes() for file in files]
    found = nbspam("classify", "-m", "model.json", "a.csv", *options)
    assert found.code in (1, 2)
    assert said in found.err
    assert found.err.startswith("nbspam: ")
    assert [file.read_bytes() for file in files] == before
    assert not [*table.parent.glob("b.*"), *table.parent.glob(".b*")]


def test_a_verdict_has_its_reason(tmp_path, rows_out):
    mail = tmp_path / "a.eml"
    mail.write_text("From: boss@example.org\n\nlunch at noon\n")
    header, row = rows_out(mail, "--block", "@example.org", "--format", "csv")
    found = dict(zip(header, row, strict=True))
    assert (found["verdict"], found["reason"]) == ("spam", "blocked sender")
    assert float(found["probability"]) < 0.1


@each("ending", ["csv", "parquet", "xlsx"])
def test_a_table_without_rows_keeps_its_columns(tmp_path, rows_out, ending):
    pytest.importorskip({"xlsx": "openpyxl"}.get(ending, "pyarrow"))
    path, rest = tmp_path / f"a.{ending}", tmp_path / "b.csv"
    pd.DataFrame({"id": [], "text": []}).pipe(
        lambda frame: getattr(frame, WRITERS[ending])(path, index=False)
    )
    rest.write_text("id,text\n1,lunch at noon\n")
    assert rows_out(path, "--format", "csv") == [["id", "text", *ADDED]]
    assert [row[0] for row in rows_out(path, rest, path, "--format", "csv")] == ["id", "1"]
    assert rows_out(path, "--format", "jsonl") == []


def test_rows_are_answered_as_they_come(model):
    command = [sys.executable, "-m", "nbspam", "classify", "-m", model]
    with subprocess.Popen(
        [*command, "--input-format", "csv", "--format", "csv", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as program:
        program.stdin.write("id,text\n1,win a free prize\n")
        program.stdin.flush()
        assert program.stdout.readline() == f"id,text,{','.join(ADDED)}\n"
        assert program.stdout.readline().startswith("1,win a free prize,spam,")
        program.stdin.write("2,lunch at noon\n")
        program.stdin.flush()
        assert program.stdout.readline().startswith("2,lunch at noon,ham,")
        program.stdin.close()
        assert program.wait() == 0


def test_processes_and_a_cluster_write_the_same(tmp_path, rows_out, monkeypatch):
    monkeypatch.setattr("nbspam.workers._SERIAL_SECONDS", 0)
    path = tmp_path / "a.csv"
    path.write_text(as_csv([ROWS[0], *ROWS[1:] * 200]))
    one = rows_out(path, "--format", "csv", "-j", "1")
    assert len(one) == 1001
    assert rows_out(path, "--format", "csv", "-j", "2") == one


@pytest.mark.long
def test_memory_does_not_grow_with_the_table(tmp_path, model):
    peaks = []
    for n in (10_000, 60_000):  # in both a table of tokens pays
        path = tmp_path / f"{n}.csv"
        path.write_text(
            as_csv([["id", "text"], *([str(i), f"win {i} prize {i % 9}"] for i in range(n))])
        )
        code = (
            "import sys; from nbspam.cli.program import nbspam;"
            "nbspam(sys.argv[1:], standalone_mode=False);"
            "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0], file=sys.stderr)"
        )
        words = [sys.executable, "-c", code, "classify", "-m", model, "-j", "1", path]
        words += ["-o", tmp_path / "b.csv"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        peaks.append(int(done.stderr.split()[-1]))
    assert peaks[1] < peaks[0] + 8_000


@each("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGPIPE"])
def test_a_signal_leaves_the_old_file_and_the_next_writer_no_other(tmp_path, model, name):
    folder, number = tmp_path / "out", getattr(signal, name)
    folder.mkdir()
    (old := folder / "b.csv").write_text("old")
    command = [sys.executable, "-m", "nbspam", "classify", "-m", model, "-j", "2", "-o", old]
    with subprocess.Popen(
        [*command, "--input-format", "csv", "-"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        program.stdin.write("id,text\n1,win a free prize\n")
        program.stdin.flush()
        while len(list(folder.iterdir())) < 2 and program.poll() is None:
            time.sleep(0.01)  # the file beside the old one is being written
        program.send_signal(number)
        if name != "SIGPIPE":  # Python ignores it
            program.wait()
        _, said = program.communicate()
    ends = {"SIGINT": (130, "nbspam: interrupted"), "SIGPIPE": (0, "")}
    assert (program.returncode, said.strip()) == ends.get(name, (-number, ""))
    assert old.read_text().startswith("id,text,verdict" if name == "SIGPIPE" else "old")
    subprocess.run([*command, "-"], input="win a free prize", text=True, check=True)
    assert [*folder.iterdir()] == [old]
