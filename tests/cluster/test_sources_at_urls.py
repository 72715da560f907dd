"""Sources and models in an object store: a real S3 server on loopback, moto's."""

import re
import socket
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from click.testing import CliRunner
from cluster_training import ROWS
from web_servers import web_server

from nbspam.cli import program
from nbspam.errors import NbspamError

SAMPLE = Path(__file__).parents[2] / "sample_data"
pytestmark = pytest.mark.long  # the libraries of an object store alone take seconds to load


@pytest.fixture(scope="module")
def store():
    """Return a client of the server, which the environment names."""
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    server = pytest.importorskip("moto.server", reason="moto's server is not installed")
    import boto3

    started = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    started.start()
    host, port = started.get_host_and_port()
    environment = {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }
    with pytest.MonkeyPatch.context() as patched:
        for name, value in environment.items():
            patched.setenv(name, value)
        client = boto3.client("s3")
        place = {"LocationConstraint": "eu-west-1"}
        client.create_bucket(Bucket="mail", CreateBucketConfiguration=place)
        client.put_object(Bucket="mail", Key="rows.tsv", Body=ROWS.encode())
        for path in (SAMPLE / "mail" / "spam.mbox", *(SAMPLE / "odd").glob("*.eml")):
            name = str(path.relative_to(SAMPLE)).removeprefix("mail/")
            client.put_object(Bucket="mail", Key=name, Body=path.read_bytes())
        yield client
        client.close()
        started.stop()


def run(*arguments, code=0):
    """Run nbspam in this process, which has loaded all that reads URLs."""
    done = CliRunner().invoke(program.nbspam, list(map(str, arguments)))
    failed = isinstance(done.exception, NbspamError)
    assert (done.exception.exit_code if failed else done.exit_code) == code, done
    return done.stdout if code == 0 else str(done.exception)


def body(client, key):
    return client.get_object(Bucket="mail", Key=key)["Body"].read()


@pytest.mark.parametrize("where", [["-j1"], ["--dask", "local:2"]], ids=" ".join)
def test_a_table_and_a_model_in_the_store(store, tmp_path, where):
    (tmp_path / "rows.tsv").write_text(ROWS)
    run("train", "-q", "-j1", tmp_path / "rows.tsv", "-m", tmp_path / "here.json")
    model = ["-m", "s3://mail/model.json"]
    run("train", "-q", "--replace", *where, "s3://mail/rows.tsv", *model)
    assert body(store, "model.json") == (tmp_path / "here.json").read_bytes()
    far = run("classify", *where, "s3://mail/rows.tsv", *model)
    here = run("classify", "-j1", tmp_path / "rows.tsv", "-m", tmp_path / "here.json")
    assert far.replace("s3://mail", str(tmp_path)) == here


def test_an_mbox_and_a_folder_of_mail(store, tmp_path):
    sources = [f"--spam={SAMPLE}/mail/spam.mbox", f"--ham={SAMPLE}/odd"]
    run("train", "-q", "-j1", *sources, "-m", tmp_path / "here.json")
    far = ["--spam=s3://mail/spam.mbox", "--ham=s3://mail/odd"]
    run("train", "-q", "-j1", *far, "-m", "s3://mail/mails.json")
    assert body(store, "mails.json") == (tmp_path / "here.json").read_bytes()


def test_a_model_in_the_store_is_not_lost(store):
    run("train", "-q", "-j1", "s3://mail/rows.tsv", "-m", "s3://mail/kept.json")
    before = body(store, "kept.json")
    model = ("-m", "s3://mail/kept.json")
    said = run("train", "-q", "-j1", "s3://mail/rows.tsv", *model, code=1)
    assert "s3://mail/kept.json: the file exists" in said
    said = run("train", "-q", "--update", "s3://mail/rows.tsv", *model, code=2)
    assert "a model at a URL is written whole" in said
    said = run("train", "-q", "--replace", "s3://mail/no.tsv", *model, code=1)
    assert "s3://mail/no.tsv: no such file or folder; check the name" in said
    said = run("train", "-q", "s3://mail/rows.tsv", "-m", "s3://no-bucket/m.json", code=1)
    assert "\n" not in said
    assert "s3://no-bucket/m.json: cannot be written" in said
    assert body(store, "kept.json") == before


def test_what_changes_a_model_needs_a_file_and_what_cannot_be_read_is_one_sentence(store):
    run("train", "-q", "--replace", "-j1", "s3://mail/rows.tsv", "-m", "s3://mail/fixed.json")
    before = body(store, "fixed.json")
    commands = "model set --ham-cost 9", "model prune --min-count 2", "forget", "serve --socket s"
    for command in commands:
        code = 2 if command.startswith("serve") else 1
        said = run(*command.split(), "-m", "s3://mail/fixed.json", code=code)
        assert "\n" not in said, command
        assert said.startswith("s3://mail/fixed.json: ")
        assert re.search("work on a file, and copy it there|copy the model to a file", said)
        assert body(store, "fixed.json") == before
    said = run("train", "-q", "odd://mail/rows.tsv", "-m", "m.json", code=1)
    assert "\n" not in said
    assert "odd://" in said
    said = run("classify", "s3://mail/rows.tsv", "-m", "s3://mail/no.json", code=1)
    assert "s3://mail/no.json: model not found" in said


@pytest.fixture(scope="module")
def web():
    """Return a server of the sample data, which has no bytes from the middle of a file."""
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with web_server(partial(Quiet, directory=str(SAMPLE))) as url:
        yield url


def test_a_table_and_an_mbox_on_the_web_and_a_server_that_is_away(web, tmp_path):
    run("train", "-q", "-j1", SAMPLE / "sms.tsv", "-m", tmp_path / "here.json")
    run("train", "-q", "-j1", f"{web}/sms.tsv", "-m", tmp_path / "far.json")
    assert (tmp_path / "far.json").read_bytes() == (tmp_path / "here.json").read_bytes()
    model = ["-m", tmp_path / "here.json"]
    far = run("classify", *model, f"{web}/mail/spam.mbox")
    assert far.replace(web, str(SAMPLE)) == run("classify", *model, SAMPLE / "mail/spam.mbox")
    assert "no such file" in run("classify", *model, f"{web}/none.tsv", code=1)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/m.json"
        said = run("classify", "-m", url, code=1)
        assert f"{url}: the model cannot be read (Cannot connect to host 127.0.0.1" in said
        said = run("train", "-q", "-m", tmp_path / "m.json", url, code=1)
        assert f"{url}: cannot be read (Cannot connect to host 127.0.0.1" in said
