"""A model trained on a cluster has the bytes of one trained here."""

import json
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from click.testing import CliRunner
from cluster_training import ROWS, trained_alone, trained_on

from nbspam.cli.program import nbspam
from nbspam.cluster.connection import cluster_at
from nbspam.errors import NbspamError
from nbspam.learning import batch
from nbspam.learning.settings import TrainingSettings
from nbspam.reading.cutting import Asked
from nbspam.reading.sources import ReadingOptions

SAMPLE = Path(__file__).parents[2] / "sample_data"


@pytest.fixture(scope="module")
def cluster(threads):
    with cluster_at(threads.scheduler_address) as found:
        yield found


def sms(tmp_path):
    return [Asked(str(SAMPLE / "sms.tsv"), needs_labels=True)]


def mboxes(tmp_path):
    paths = {"ham": tmp_path / "ham.mbox", "spam": SAMPLE / "mail" / "spam.mbox"}
    files = sorted((SAMPLE / "mail" / "ham").rglob("*.eml")) or sorted(
        path for path in (SAMPLE / "mail" / "ham").rglob("*") if path.is_file()
    )
    mails = [path.read_bytes().rstrip() for path in files]
    line = b"From someone@example.org Thu Jan  1 00:00:00 2026\n"
    paths["ham"].write_bytes(b"".join(line + mail + b"\n\n" for mail in mails))
    return [Asked(str(path), name, True) for name, path in paths.items()]


def folders(tmp_path):
    for i, mail in enumerate(mails(tmp_path)):
        folder = tmp_path / "mails" / ("spam" if i % 2 else "ham")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i}.eml").write_bytes(mail)
    return [Asked(str(tmp_path / "mails"), needs_labels=True)]


def index(tmp_path):
    folders(tmp_path)
    names = sorted((tmp_path / "mails").rglob("*.eml"))
    lines = [f"{path.parent.name} ../mails/{path.parent.name}/{path.name}" for path in names]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "index").write_text("\n".join([*lines, "ham ../mails/gone", "odd", ""]))
    return [Asked(str(tmp_path / "full" / "index"), needs_labels=True)]


def mails(tmp_path):
    from nbspam.reading.mbox import messages

    for asked in mboxes(tmp_path):
        with Path(asked.name).open("rb") as stream:
            yield from messages(stream, 1 << 20)


def parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rows = [line.split("\t") for line in ROWS.splitlines()]
    frame = pandas.DataFrame(rows, columns=["label", "text"])
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=37)
    return [Asked(str(path), needs_labels=True)]


def quoted_csv(tmp_path):
    path = tmp_path / "rows.csv"
    lines = (line.split("\t") for line in ROWS.splitlines())
    path.write_text("label,text\n" + "".join(f'{label},"{text}\n2"\n' for label, text in lines))
    return [Asked(str(path), needs_labels=True)]


def json_lines(tmp_path):
    path = tmp_path / "rows.jsonl"
    lines = (line.split("\t") for line in ROWS.splitlines())
    rows = [f'{{"text": "{text}", "label": "{label}"}}\n' for label, text in lines]
    path.write_text("".join([*rows[:50], "no JSON\n", *rows[50:]]))
    return [Asked(str(path), needs_labels=True)]


def two_kinds(tmp_path):
    return [*sms(tmp_path), *mboxes(tmp_path)]


KINDS = [index, parquet, quoted_csv, json_lines, two_kinds]
LONG = [
    pytest.param(kind, marks=pytest.mark.long) for kind in (sms, mboxes, folders)
]  # within them


@pytest.mark.parametrize("kind", [*KINDS, *LONG])
def test_the_model_has_the_same_bytes(cluster, tmp_path, kind):
    check(cluster, kind(tmp_path), tmp_path)


def check(cluster, asked, tmp_path, **options):
    alone, far = tmp_path / "alone.json", tmp_path / "far.json"
    more = {key: options[key] for key in ("settings", "ledger") if key in options}
    skipped = trained_alone(asked, alone, **more)
    assert trained_on(cluster, asked, far, **options) == skipped
    assert far.read_bytes() == alone.read_bytes()


@pytest.mark.parametrize("workers", [2, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 4))])
def test_the_number_of_processes_changes_nothing(tmp_path, workers):
    with cluster_at(f"local:{workers}") as cluster:
        check(cluster, two_kinds(tmp_path), tmp_path, size=3_000)


SETTINGS = {
    "multinomial": TrainingSettings(event_model="multinomial"),
    "binary-multinomial": TrainingSettings(event_model="binary-multinomial", traits="none"),
    "no tokens": TrainingSettings(event_model="none"),
    "gaussian": TrainingSettings(traits="gaussian", prior=0.3, alpha=0.2),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_so_it_has_with_other_settings(cluster, tmp_path, name):
    path = tmp_path / "rows.tsv"
    path.write_text(ROWS)
    settings = SETTINGS[name]
    check(cluster, [Asked(str(path), needs_labels=True)], tmp_path, settings=settings, ledger=False)


def test_so_it_has_with_three_classes(cluster, tmp_path):
    path = tmp_path / "three.tsv"
    path.write_text(ROWS + ROWS.replace("ham\tsee", "promo\tbuy"))
    check(cluster, [Asked(str(path), needs_labels=True)], tmp_path)


def test_so_it_has_of_a_sample(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(batch, "sample_end", lambda n: (70 << 64) // n)
    check(cluster, sms(tmp_path), tmp_path, fit_limit=70)
    whole = trained_bytes(tmp_path / "alone.json")
    monkeypatch.undo()
    trained_alone(sms(tmp_path), tmp_path / "all.json")
    assert trained_bytes(tmp_path / "all.json") != whole


def trained_bytes(path):
    return path.read_bytes()


def test_one_class_is_not_enough(cluster, tmp_path):
    with pytest.raises(NbspamError, match="only the class 'ham'"):
        trained_on(cluster, mboxes(tmp_path)[:1], tmp_path / "m.json")


def test_a_strict_run_stops_at_the_first_bad_row(cluster, tmp_path):
    from nbspam.cluster.training import ClusterTraining
    from nbspam.reading.cutting import Cutter
    from nbspam.reading.skips import Skips

    path = tmp_path / "rows.tsv"
    path.write_text(ROWS + "no label here\n" + ROWS)
    skips = Skips(strict=True)
    pieces = Cutter(ReadingOptions(), skips, 4_000).pieces(Asked(str(path), needs_labels=True))
    with pytest.raises(NbspamError, match=r"rows\.tsv:401: the row has no text"):
        ClusterTraining(cluster, TrainingSettings()).read(pieces, skips)


# The commands


def run(*arguments, code=0, **options):
    done = CliRunner().invoke(nbspam, list(map(str, arguments)), **options)
    assert done.exit_code == code, (done.output, done.exception)
    return done


@pytest.fixture(params=["threads", pytest.param("processes", marks=pytest.mark.long)])
def address(request):
    """Return the address of a scheduler with two workers; long: as people start them."""
    found = request.getfixturevalue(request.param)
    if request.param == "threads":
        return found.scheduler_address
    for _ in range(2):
        found.add_worker()
    return found.address


def test_the_commands_say_the_same(tmp_path, address):
    here, far = tmp_path / "here.json", tmp_path / "far.json"
    sources = ["--spam", SAMPLE / "mail" / "spam.mbox", "--ham", SAMPLE / "mail" / "ham"]
    dask = ["--dask", address]
    alone = run("train", "-j1", "--max-ham-blocked", "10%", *sources, "-m", here).stdout
    cluster = run("train", "--max-ham-blocked", "10%", *dask, *sources, "-m", far).stdout
    # the messages whose labels look wrong are named here alone; a cluster tells their share
    cluster = cluster.replace("about 1.8 % of the labels look wrong\n", "")
    assert cluster == alone.replace("here.json", "far.json")
    assert far.read_bytes() == here.read_bytes()
    mixed = [SAMPLE / "sms.tsv", SAMPLE / "mail" / "spam.mbox"]
    verdicts = run("classify", "-j1", *mixed, "-m", here).stdout
    assert run("classify", *dask, *mixed, "-m", here).stdout == verdicts
    figures = run("eval", "-q", "-j1", *sources, "--leave-one-out").stdout
    assert run("eval", "-q", *dask, *sources, "--leave-one-out").stdout == figures


def test_what_is_read_here_is_gathered_here(tmp_path, address):
    here, far = tmp_path / "here.json", tmp_path / "far.json"
    rows = {"input": ROWS.encode()}
    for more in ([], ["--scoring", "sum"]):
        stdin = ["--replace", *more, "--input-format", "tsv", "-"]
        run("train", "-j1", *stdin, "-m", here, **rows)
        run("train", "--dask", address, *stdin, "-m", far, **rows)
        assert far.read_bytes() == here.read_bytes()


def test_update_on_a_cluster(tmp_path, address):
    here, far = tmp_path / "here.json", tmp_path / "far.json"
    for model, where in ((here, ["-j1"]), (far, ["--dask", address])):
        run("train", "-j1", SAMPLE / "sms.tsv", "-m", model)
        run("train", "--update", *where, "--spam", SAMPLE / "mail" / "spam.mbox", "-m", model)
    assert far.read_bytes() == here.read_bytes()


def test_messages_in_two_classes_are_counted(tmp_path, address):
    path, model = tmp_path / "rows.tsv", tmp_path / "m.json"
    path.write_text("ham\tnoon\nspam\tprize\nham\tok\n" + ROWS + "spam\tok\nspam\tnoon\n")
    command = "train", "--dask", address, path, "-m", model, "--format", "json"
    done = run(*command, "--strict", code=1)
    assert "2 messages are in two or more classes; correct the labels, or" in str(done.exception)
    assert not model.exists()
    done = run(*command)
    assert json.loads(done.stdout)["in_two_classes"] == 2
    note = "nbspam: 2 messages are in two or more classes; correct the labels if that is a mistake"
    assert note in done.stderr
    done = run(*command, "-q", "--replace", "--no-ledger")
    assert (json.loads(done.stdout)["in_two_classes"], done.stderr) == (None, "")


def test_what_is_no_address(tmp_path):
    for name in ("local:0", "local:", "local:x", "here", "tcp://", "8786"):
        done = run("train", "--dask", name, SAMPLE / "sms.tsv", "-m", tmp_path / "m", code=1)
        assert f"{name!r} is no scheduler of Dask" in str(done.exception)


def test_a_log_is_not_written_from_far(tmp_path, threads):
    options = ["--dask", threads.scheduler_address, "--log", "stderr", "-m", tmp_path / "m"]
    done = run("train", *options, SAMPLE / "sms.tsv", code=1)
    assert "--log says of each message" in str(done.exception)
