"""A model trained on a cluster has the bytes of one trained here."""

import json
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from click.testing import CliRunner
from cluster_training import ROWS, messages, trained_alone, trained_on

from nbspam.cli.program import nbspam
from nbspam.cluster.connection import cluster_at
from nbspam.errors import NbspamError
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.training import TrainingRun
from nbspam.reading.mail import split_mbox
from nbspam.reading.source import ReadingOptions, Skips
from nbspam.workers import Executor, Processes, batch_messages

SAMPLE = Path(__file__).parents[2] / "sample_data"


@pytest.fixture(scope="module")
def cluster(threads):
    with cluster_at(threads.scheduler_address) as found:
        yield found


def sms(tmp_path):
    return [(str(SAMPLE / "sms.tsv"), None, True)]


def rows(tmp_path, text=ROWS, name="rows.tsv"):
    (tmp_path / name).write_text(text)
    return [(str(tmp_path / name), None, True)]


def mboxes(tmp_path):
    return [(str(SAMPLE / "mail" / f"{label}.mbox"), label, False) for label in ("ham", "spam")]


def mails(tmp_path):
    for asked in mboxes(tmp_path):
        with Path(asked[0]).open("rb") as stream:
            yield from split_mbox(stream, 1 << 20)


def folders(tmp_path):
    for i, mail in enumerate(mails(tmp_path)):
        folder = tmp_path / "mails" / ("spam" if i % 2 else "ham")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i}.eml").write_bytes(mail)
    return [(str(tmp_path / "mails"), None, True)]


def index(tmp_path):
    folders(tmp_path)
    names = sorted((tmp_path / "mails").rglob("*.eml"))
    lines = [f"{path.parent.name} ../mails/{path.parent.name}/{path.name}" for path in names]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "index").write_text("\n".join([*lines, "ham ../mails/gone", "odd", ""]))
    return [(str(tmp_path / "full" / "index"), None, True)]


def parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    lines = [line.split("\t") for line in ROWS.splitlines()]
    lines[50:50] = [["ham", None], ["", "no label"], ["Spam", "win a prize"], ["label", "text"]]
    frame = pandas.DataFrame(lines, columns=["label", "text"])
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=37)
    return [(str(path), None, True)]


def quoted_csv(tmp_path):
    lines = (line.split("\t") for line in ROWS.splitlines())
    text = "".join(f'{label},"{text}\n2"\n' for label, text in lines)
    return rows(tmp_path, f"label,text\n{text}", "rows.csv")


def json_lines(tmp_path):
    lines = (line.split("\t") for line in ROWS.splitlines())
    objects = [f'{{"text": "{text}", "label": "{label}"}}\n' for label, text in lines]
    return rows(tmp_path, "".join([*objects[:50], "no JSON\n", *objects[50:]]), "rows.jsonl")


def two_kinds(tmp_path):
    return [*index(tmp_path), *json_lines(tmp_path)]


LONG = [parquet, quoted_csv, sms, mboxes, folders]


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", [json_lines, two_kinds, *LONG])
def test_the_model_has_the_same_bytes(cluster, tmp_path, kind):
    check(cluster, kind(tmp_path), tmp_path)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "where", [Executor(), Processes(2, serial_seconds=0.0)], ids=["serial", "processes"]
)
@pytest.mark.parametrize("kind", [json_lines, two_kinds, *LONG])
def test_so_it_has_where_this_machine_trains(tmp_path, where, kind):
    check(where, kind(tmp_path), tmp_path)


def check(cluster, asked, tmp_path, **options):
    alone, far = tmp_path / "alone.json", tmp_path / "far.json"
    more = {key: options[key] for key in ("settings", "ledger") if key in options}
    skipped = trained_alone(asked, alone, **more)
    assert trained_on(cluster, asked, far, **options) == skipped
    assert far.read_bytes() == alone.read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_number_of_processes_changes_nothing(tmp_path, workers):
    with cluster_at(f"local:{workers}") as cluster:
        check(cluster, [*sms(tmp_path), *mboxes(tmp_path)], tmp_path, size=12_000)


SETTINGS = {
    "multinomial": TrainingSettings(event_model="multinomial"),
    "no traits": TrainingSettings(traits="none"),
    "no tokens": TrainingSettings(event_model="none"),
    "gaussian": TrainingSettings(traits="gaussian", prior=0.3, alpha=0.2),
}


@pytest.mark.long
@pytest.mark.parametrize("name", SETTINGS)
def test_so_it_has_with_other_settings(cluster, tmp_path, name):
    check(cluster, rows(tmp_path), tmp_path, settings=SETTINGS[name], ledger=False)


@pytest.mark.long
def test_so_it_has_with_three_classes(cluster, tmp_path):
    check(cluster, rows(tmp_path, ROWS + ROWS.replace("ham\tsee", "promo\tbuy")), tmp_path)


@pytest.mark.long
def test_one_class_is_not_enough_and_a_strict_run_stops_at_the_first_bad_row(cluster, tmp_path):
    with pytest.raises(NbspamError, match="only the class 'ham'"):
        trained_on(cluster, mboxes(tmp_path)[:1], tmp_path / "m.json")
    [asked] = rows(tmp_path, ROWS + "no label here\n" + ROWS)
    skips = Skips(strict=True)
    batches = batch_messages(messages(*asked, ReadingOptions(), skips))
    with pytest.raises(NbspamError, match=r"rows\.tsv:401: the row has no text"):
        TrainingRun(cluster, TrainingSettings()).read(batches, skips)


# The commands


def run(*arguments, code=0, **options):
    done = CliRunner().invoke(nbspam, list(map(str, arguments)), **options)
    assert done.exit_code == code, (done.output, done.exception)
    return done


@pytest.mark.long
def test_the_commands_say_the_same(tmp_path, address):
    here, far = tmp_path / "here.json", tmp_path / "far.json"
    sources = ["--spam", SAMPLE / "mail" / "spam.mbox", "--ham", SAMPLE / "mail" / "ham.mbox"]
    dask = ["--dask", address]
    alone = run("train", "-j1", "--max-ham-blocked", "10%", *sources, "-m", here).stdout
    cluster = run("train", "--max-ham-blocked", "10%", *dask, *sources, "-m", far).stdout
    assert cluster == alone.replace("here.json", "far.json")
    assert far.read_bytes() == here.read_bytes()
    mixed = [SAMPLE / "sms.tsv", SAMPLE / "mail" / "spam.mbox"]
    verdicts = run("classify", "-j1", *mixed, "-m", here).stdout
    assert run("classify", *dask, *mixed, "-m", here).stdout == verdicts
    figures = run("eval", "-q", "-j1", *sources, "--leave-one-out").stdout
    assert run("eval", "-q", *dask, *sources, "--leave-one-out").stdout == figures


@pytest.mark.long
def test_what_is_read_here_is_gathered_here(tmp_path, address):
    here, far = tmp_path / "here.json", tmp_path / "far.json"
    rows = {"input": ROWS.encode()}
    for more in ([], ["--scoring", "sum"]):
        stdin = ["--replace", *more, "--input-format", "tsv", "-"]
        run("train", "-j1", *stdin, "-m", here, **rows)
        run("train", "--dask", address, *stdin, "-m", far, **rows)
        assert far.read_bytes() == here.read_bytes()


@pytest.mark.long
def test_update_on_a_cluster(tmp_path, address):
    here, far = tmp_path / "here.json", tmp_path / "far.json"
    for model, where in ((here, ["-j1"]), (far, ["--dask", address])):
        run("train", "-j1", SAMPLE / "sms.tsv", "-m", model)
        run("train", "--update", *where, "--spam", SAMPLE / "mail" / "spam.mbox", "-m", model)
    assert far.read_bytes() == here.read_bytes()


@pytest.mark.long
def test_messages_in_two_classes_are_counted(tmp_path, address):
    path, model = tmp_path / "rows.tsv", tmp_path / "m.json"
    path.write_text("ham\tnoon\nspam\tprize\nham\tok\n" + ROWS + "spam\tok\nspam\tnoon\n")
    command = "train", "--dask", address, path, "-m", model, "--format", "json"
    done = run(*command, "--strict", code=1)
    assert "2 messages are in two or more classes (" in str(done.exception)
    assert "; correct the labels, or leave out --strict" in str(done.exception)
    assert not model.exists()
    done = run(*command)
    assert json.loads(done.stdout)["in_two_classes"] == 2
    assert "2 messages are in two or more classes (" in " ".join(done.stderr.split())
    done = run(*command, "-q", "--replace", "--no-ledger")
    assert (json.loads(done.stdout)["in_two_classes"], done.stderr) == (2, "")


def test_what_is_no_address_is_refused(tmp_path):
    for name in ("local:0", "local:", "local:x", "here", "tcp://", "8786"):
        done = run("train", "--dask", name, SAMPLE / "sms.tsv", "-m", tmp_path / "m", code=1)
        assert f"{name!r} is not the address of a Dask scheduler" in str(done.exception)
