"""Sources and models in an object store: a real S3 server on loopback, moto's."""

import os
import re
import socket
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("s3fs", reason="s3fs is not installed")
server = pytest.importorskip("moto.server", reason="moto's server is not installed")

from cluster_training import ROWS  # noqa: E402

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_data"


@pytest.fixture(scope="module")
def store():
    """Return the environment in which programs find the server, and what puts files into it."""
    import boto3

    started = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    started.start()
    host, port = started.get_host_and_port()
    url = f"http://{host}:{port}"
    keys = {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "eu-west-1",
    }
    env = {**os.environ, **keys, "AWS_ENDPOINT_URL": url, "PYTHONPATH": str(ROOT)}
    client = boto3.client(
        "s3",
        endpoint_url=url,
        aws_access_key_id="a",
        aws_secret_access_key="b",
        region_name="eu-west-1",
    )
    place = {"LocationConstraint": "eu-west-1"}
    client.create_bucket(Bucket="mail", CreateBucketConfiguration=place)
    client.put_object(Bucket="mail", Key="rows.tsv", Body=ROWS.encode())
    spam = (SAMPLE / "mail" / "spam.mbox").read_bytes()
    client.put_object(Bucket="mail", Key="spam.mbox", Body=spam)
    for path in (SAMPLE / "mail" / "ham").rglob("*"):
        if path.is_file():
            name = f"ham/{path.parent.name}/{path.name}"
            client.put_object(Bucket="mail", Key=name, Body=path.read_bytes())
    yield env, client
    client.close()
    started.stop()


def run(env, *arguments, code=0):
    command = [sys.executable, "-m", "nbspam", *map(str, arguments)]
    done = subprocess.run(command, env=env, capture_output=True, timeout=120, check=False)
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode() if code == 0 else done.stderr.decode()


def body(client, key):
    return client.get_object(Bucket="mail", Key=key)["Body"].read()


@pytest.mark.parametrize("where", [["-j1"], ["--dask", "local:2"]], ids=" ".join)
def test_a_table_and_a_model_in_the_store(store, tmp_path, where):
    env, client = store
    (tmp_path / "rows.tsv").write_text(ROWS)
    run(env, "train", "-q", "-j1", tmp_path / "rows.tsv", "-m", tmp_path / "here.json")
    model = ["-m", "s3://mail/model.json"]
    run(env, "train", "-q", "--replace", *where, "s3://mail/rows.tsv", *model)
    assert body(client, "model.json") == (tmp_path / "here.json").read_bytes()
    far = run(env, "classify", *where, "s3://mail/rows.tsv", *model)
    here = run(env, "classify", "-j1", tmp_path / "rows.tsv", "-m", tmp_path / "here.json")
    assert far.replace("s3://mail", str(tmp_path)) == here


def test_an_mbox_and_a_folder_of_mail(store, tmp_path):
    env, client = store
    sources = [f"--spam={SAMPLE}/mail/spam.mbox", f"--ham={SAMPLE}/mail/ham"]
    run(env, "train", "-q", "-j1", *sources, "-m", tmp_path / "here.json")
    far = ["--spam=s3://mail/spam.mbox", "--ham=s3://mail/ham"]
    run(env, "train", "-q", "-j1", *far, "-m", "s3://mail/mails.json")
    assert body(client, "mails.json") == (tmp_path / "here.json").read_bytes()


def test_a_model_in_the_store_is_not_lost(store):
    env, client = store
    run(env, "train", "-q", "-j1", "s3://mail/rows.tsv", "-m", "s3://mail/kept.json")
    before = body(client, "kept.json")
    model = ("-m", "s3://mail/kept.json")
    said = run(env, "train", "-q", "-j1", "s3://mail/rows.tsv", *model, code=1)
    assert "s3://mail/kept.json: the file exists" in said
    said = run(env, "train", "-q", "--update", "s3://mail/rows.tsv", *model, code=2)
    assert "a model at a URL is written whole" in said
    said = run(env, "train", "-q", "--replace", "s3://mail/no.tsv", *model, code=1)
    assert "s3://mail/no.tsv: no such file or folder; check the name" in said
    said = run(env, "train", "-q", "s3://mail/rows.tsv", "-m", "s3://no-bucket/m.json", code=1)
    assert said.count("\n") == 1
    assert "s3://no-bucket/m.json: cannot be written" in said
    assert body(client, "kept.json") == before


def test_what_cannot_be_read_is_one_sentence(store):
    env, _ = store
    said = run(env, "train", "-q", "odd://mail/rows.tsv", "-m", "m.json", code=1)
    assert said.count("\n") == 1
    assert "odd://" in said
    said = run(env, "classify", "s3://mail/rows.tsv", "-m", "s3://mail/no.json", code=1)
    assert "s3://mail/no.json: there is no such model" in said


@pytest.mark.parametrize(
    "command", ["model set --ham-cost 9", "model prune --min-count 2", "forget", "serve --socket s"]
)
def test_what_changes_a_model_needs_a_file(store, command):
    env, client = store
    run(env, "train", "-q", "--replace", "-j1", "s3://mail/rows.tsv", "-m", "s3://mail/fixed.json")
    before = body(client, "fixed.json")
    code = 2 if command.startswith("serve") else 1
    said = run(env, *command.split(), "-m", "s3://mail/fixed.json", code=code)
    assert said.count("\n") == 1
    assert said.startswith("nbspam: s3://mail/fixed.json: ")
    assert re.search("work on a file, and copy it there|copy it to a file", said)
    assert body(client, "fixed.json") == before


def test_models_at_urls_merge_into_a_file(store, tmp_path):
    env, _ = store
    run(env, "train", "-q", "--replace", "-j1", "s3://mail/rows.tsv", "-m", "s3://mail/one.json")
    run(env, "train", "-q", "-j1", SAMPLE / "sms.tsv", "-m", tmp_path / "two.json")
    both = "s3://mail/one.json", tmp_path / "two.json"
    assert "spam: " in run(env, "model", "merge", *both, "-o", tmp_path / "both.json")
    said = run(env, "model", "merge", *both, "-o", "s3://mail/both.json", code=1)
    assert "s3://mail/both.json: a model at a URL cannot be locked" in said


# A web server, which has no bytes from the middle of a file


@pytest.fixture(scope="module")
def web():
    """Return the address of a server of the sample data."""
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    served = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SAMPLE)))
    thread = threading.Thread(target=served.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{served.server_address[1]}"
    served.shutdown()
    thread.join()
    served.server_close()


class Quiet(SimpleHTTPRequestHandler):
    """Says nothing."""

    def log_message(self, *_):
        pass


def test_a_table_and_an_mbox_on_the_web(web, tmp_path):
    env = os.environ
    run(env, "train", "-q", "-j1", SAMPLE / "sms.tsv", "-m", tmp_path / "here.json")
    run(env, "train", "-q", "-j1", f"{web}/sms.tsv", "-m", tmp_path / "far.json")
    assert (tmp_path / "far.json").read_bytes() == (tmp_path / "here.json").read_bytes()
    model = ["-m", tmp_path / "here.json"]
    far = run(env, "classify", *model, f"{web}/mail/spam.mbox")
    assert far.replace(web, str(SAMPLE)) == run(env, "classify", *model, SAMPLE / "mail/spam.mbox")
    assert "no such file" in run(env, "classify", *model, f"{web}/none.tsv", code=1)


def test_a_web_server_that_is_away(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/m.json"
        said = run(os.environ, "classify", "-m", url, code=1)
        assert f"{url}: the model cannot be read (Cannot connect to host 127.0.0.1" in said
        said = run(os.environ, "train", "-q", "-m", tmp_path / "m.json", url, code=1)
        assert f"{url}: cannot be read (Cannot connect to host 127.0.0.1" in said
