"""Sources and models in an object store: a real S3 server on loopback, moto's."""

import os
import subprocess
import sys
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
