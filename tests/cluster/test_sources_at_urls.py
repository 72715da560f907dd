"""Sources at URLs: on the web, and in an object store."""

import socket
from pathlib import Path

import pytest
from click.testing import CliRunner
from cluster_training import ROWS
from web_servers import FileServer, web_server

from nbspam.cli import program
from nbspam.errors import NbspamError

SAMPLE = Path(__file__).parents[2] / "sample_data"
pytestmark = pytest.mark.long  # the libraries of an object store alone take seconds to load


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    """Return the URL of a server with a bucket `mail`, which the environment names as S3's."""
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    folder = tmp_path_factory.mktemp("served")
    (folder / "mail").mkdir()
    (folder / "mail" / "rows.tsv").write_text(ROWS)
    (folder / "mail" / "spam.mbox").write_bytes((SAMPLE / "mail" / "spam.mbox").read_bytes())

    class Served(FileServer):
        pass

    Served.folder = folder
    with web_server(Served) as url, pytest.MonkeyPatch.context() as patched:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b",
            "AWS_DEFAULT_REGION": "eu-west-1",
            "AWS_ENDPOINT_URL": url,
        }.items():
            patched.setenv(name, value)
        yield url


def run(*arguments, code=0):
    """Run nbspam in this process, which has loaded all that reads URLs."""
    done = CliRunner().invoke(program.nbspam, list(map(str, arguments)))
    failed = isinstance(done.exception, NbspamError)
    assert (done.exception.exit_code if failed else done.exit_code) == code, done
    return done.stdout if code == 0 else str(done.exception)


@pytest.mark.parametrize("where", [["-j1"], ["--dask", "local:2"]], ids=" ".join)
@pytest.mark.parametrize("store", [True, False], ids=["s3", "web"])
def test_a_table_and_an_mbox(web, tmp_path, store, where):
    if store:
        pytest.importorskip("s3fs", reason="s3fs is not installed")
    here, far = SAMPLE.parent / "sample_data" / "mail", "s3://mail" if store else f"{web}/mail"
    (tmp_path / "rows.tsv").write_text(ROWS)
    models = tmp_path / "here.json", tmp_path / "far.json"
    run("train", "-q", "-j1", tmp_path / "rows.tsv", "-m", models[0])
    run("train", "-q", *where, f"{far}/rows.tsv", "-m", models[1])
    assert models[0].read_bytes() == models[1].read_bytes()
    verdicts = run("classify", *where, f"{far}/spam.mbox", "-m", models[1])
    assert verdicts.replace(far, str(here)) == run("classify", "-m", models[0], here / "spam.mbox")


def test_what_cannot_be_read_is_one_sentence(web, tmp_path):
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    model = ["-m", tmp_path / "m.json"]
    for url in ("s3://mail/no.tsv", f"{web}/mail/no.tsv"):
        said = run("train", "-q", url, *model, code=1)
        assert said == f"{url}: no such file or folder; check the name"
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/m.json"
        said = run("train", "-q", *model, url, code=1)
        assert said.startswith(f"{url}: cannot be read (Cannot connect to host 127.0.0.1")
        assert "\n" not in said
