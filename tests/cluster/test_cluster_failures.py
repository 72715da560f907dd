"""What goes wrong on a cluster changes nothing in the result, or is one sentence."""

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

import distributed
from click.testing import CliRunner
from cluster_training import ROWS, trained_alone, trained_on

from nbspam.cli import program
from nbspam.cluster import connection
from nbspam.cluster.connection import ClusterError, cluster_at
from nbspam.errors import ModelError
from nbspam.reading.source import ReadingOptions, Skips
from nbspam.reading.sources import read_labelled
from nbspam.workers import ProgressPasses

PASSES = [
    "reading",
    "counting",
    "scoring",
    "estimating the accuracy, each message left out",
]


class Killing(ProgressPasses):
    """Kills a worker in each pass, and starts another for the next."""

    def __init__(self, add, kill):
        self.add, self.kill, self.killed = add, kill, []
        self.doomed = add()

    def start(self, title, parts):
        self.current = title

    def advance(self, messages=0, size=0):
        if self.current not in self.killed:
            self.killed.append(self.current)
            self.kill(self.doomed)
            if self.current != PASSES[-1]:
                self.doomed = self.add()


def check_killing(tmp_path, address, killing):
    table = tmp_path / "rows.tsv"
    table.write_text(ROWS + "no label here\n" + ROWS)
    asked = [(str(table), None, True)]
    alone = trained_alone(asked, tmp_path / "alone.json")
    assert alone[0] == 1  # a bad row counts once, though its task ran twice
    with cluster_at(address) as cluster:
        found = trained_on(cluster, asked, tmp_path / "far.json", size=5_000, passes=killing)
    assert killing.killed == PASSES
    assert found == alone
    assert (tmp_path / "far.json").read_bytes() == (tmp_path / "alone.json").read_bytes()


@pytest.mark.long
def test_a_worker_killed_in_each_pass_changes_nothing(tmp_path, processes):
    def kill(worker):
        worker.send_signal(signal.SIGKILL)
        assert worker.wait() == -signal.SIGKILL

    processes.add_worker()
    check_killing(tmp_path, processes.address, Killing(processes.add_worker, kill))


@pytest.mark.long
def test_a_worker_that_leaves_in_each_pass_changes_nothing(tmp_path, threads):
    """What it kept is lost, and done again by another."""

    def add():
        threads.scale(3)
        threads.sync(threads._correct_state)
        return threads.workers[max(threads.workers)]

    def leave(worker):
        threads.sync(worker.close, executor_wait=False)
        threads.workers = {k: each for k, each in threads.workers.items() if each is not worker}

    check_killing(tmp_path, threads.scheduler_address, Killing(add, leave))


def nbspam(*arguments, **options):
    command = [sys.executable, "-m", "nbspam", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def sentence(process):
    """Return what a failed program says, in one line."""
    stderr = process.communicate(timeout=120)[1].decode()
    assert process.returncode == 1, stderr
    assert stderr.count("\n") == 1, stderr
    return stderr


def old_model(tmp_path, table):
    model = tmp_path / "model.json"
    trained_alone([(str(table), None, True)], model)
    return model, model.read_bytes()


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text(ROWS)
    return path


def refused(*arguments):
    return str(CliRunner().invoke(program.nbspam, list(map(str, arguments))).exception)


@pytest.mark.long
def test_nobody_answers(tmp_path, table, monkeypatch):
    monkeypatch.setattr(connection, "_CONNECT_SECONDS", 1)
    model, before = old_model(tmp_path, table)
    said = refused("train", "-q", "--replace", "--dask", "tcp://127.0.0.1:9", "-m", model, table)
    assert said.startswith(
        "tcp://127.0.0.1:9: no scheduler answers there; start one with: dask scheduler"
    )
    assert model.read_bytes() == before


@pytest.mark.long
def test_no_worker(workerless):
    address = workerless.scheduler_address
    with pytest.raises(ClusterError) as raised, cluster_at(address):
        pytest.fail("nobody is there to work")
    assert str(raised.value) == (
        f"{address}: the scheduler has no workers; start some with: dask worker {address}"
    )


@pytest.mark.long
def test_a_scheduler_that_dies(processes, tmp_path, table):
    table.write_text(ROWS * 30)
    model, before = old_model(tmp_path, table)
    processes.add_worker()
    run = nbspam("train", "-q", "--replace", "--dask", processes.address, "-m", model, table)
    scheduler = next(iter(processes.running))
    log = processes.running[scheduler]
    while "Receive client connection" not in log.read_text():
        time.sleep(0.05)
    time.sleep(0.3)
    scheduler.send_signal(signal.SIGKILL)
    said = sentence(run)
    assert said.startswith(f"nbspam: {processes.address}: the scheduler no longer answers;")
    assert model.read_bytes() == before


@pytest.mark.long
@pytest.mark.parametrize(
    "line, other",
    [
        ("import nbspam; nbspam.__version__ = '0.0.7'\n", "has nbspam 0.0.7"),
        ("import nbspam.tokens.tokenized as t; t.TOKENIZER_VERSION = 999\n", "(rules 999)"),
    ],
)
def test_a_worker_of_another_version_or_other_rules(processes, tmp_path, table, line, other):
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(line)
    path = os.pathsep.join([str(folder), processes.env["PYTHONPATH"]])
    processes.add_worker(env={"PYTHONPATH": path})
    run = nbspam("train", "-q", "--dask", processes.address, "-m", tmp_path / "m.json", table)
    said = sentence(run)
    assert said.startswith("nbspam: the worker tcp://127.0.0.1:")
    assert other in said
    assert said.endswith("install the same on all machines, and start the worker again\n")
    assert not (tmp_path / "m.json").exists()


class ClientOfOneWorker:
    """A client of Dask as far as the version of a worker goes."""

    def __init__(self, version):
        self.worker = {"host": {"python": "3.11.2.final.0"}, "packages": {"nbspam": version}}

    def scheduler_info(self, **_):
        return {"workers": {"tcp://10.0.0.2:4": {}}}

    def get_versions(self, **_):
        return {"workers": {"tcp://10.0.0.2:4": self.worker}}


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        (None, "no nbspam; install nbspam [0-9.]+ .rules [0-9]+. on Python 3.[0-9]+ there"),
        ("0.0.7", "nbspam 0.0.7 on Python 3.11, and this machine has nbspam .*; install the same"),
    ],
)
def test_a_worker_without_nbspam_or_with_another(version, problem):
    cluster = connection.Cluster(ClientOfOneWorker(version), "tcp://10.0.0.1:8786")
    with pytest.raises(ClusterError, match=f"^the worker tcp://10.0.0.2:4 has {problem}"):
        cluster.check()


@pytest.mark.long
def test_a_worker_without_the_file(processes, tmp_path, monkeypatch):
    """A relative name is another file where the worker runs: the workers are in `tmp_path`."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for place in ("ham/1.eml", "spam/1.eml"):
        (elsewhere / place).parent.mkdir()
        (elsewhere / place).write_text("Subject: lunch\n\nsee you at noon\n")
    processes.add_worker()
    command = "train", "-q", "--dask", processes.address, "-m", tmp_path / "m.json", "."
    said = sentence(nbspam(*command, cwd=elsewhere, env=processes.env))
    assert said.startswith("nbspam: ham: no such folder on the worker tcp://127.0.0.1:")
    assert said.endswith("; put it where all machines find it under this name\n")


def test_a_worker_without_the_parquet_file(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "rows.parquet"
    pandas.DataFrame({"label": ["ham", "spam"] * 9, "text": ["see you", "a prize"] * 9}).to_parquet(
        path
    )
    parts = list(read_labelled(str(path), ReadingOptions(by_range=True), Skips()))
    assert connection._missing_file_problem(parts) == ""
    path.unlink()
    assert connection._missing_file_problem(parts) == f"{path}: no such file"


@pytest.mark.long
def test_a_model_is_known_elsewhere_by_its_bytes(processes, tmp_path, table):
    """The worker is in another folder; and where it has another file, or none, it stays."""
    here = tmp_path / "here"
    here.mkdir()
    old_model(here, table)
    processes.add_worker()
    command = "classify", "--dask", processes.address, "-m", "model.json", table
    found = nbspam(*command, cwd=here, env=processes.env).communicate(timeout=120)[0]
    alone = nbspam("classify", "-j1", "-m", "model.json", table, cwd=here, env=processes.env)
    assert found == alone.communicate(timeout=120)[0] != b""


def _open_gone():
    raise ModelError("m.json: model not found")


class Gone:
    """A filter whose model is not on the worker."""

    def __reduce__(self):
        return _open_gone, ()


@pytest.mark.long
def test_a_worker_without_the_model_says_so_and_stays(threads):
    with cluster_at(threads.scheduler_address) as cluster:
        told = r"model not found on the worker tcp://.*; put it where all machines find it"
        for _ in range(2):
            with pytest.raises(ClusterError, match=told):
                list(cluster.map(_die, Gone(), [1]))


def children_of(pid):
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return [child for path in threads for child in path.read_text().split()]


@pytest.mark.long
def test_ctrl_c_leaves_nothing_running(tmp_path, table):
    table.write_text(ROWS * 100)
    model, before = old_model(tmp_path, table)
    run = nbspam(
        *("train", "-q", "--replace", "--dask", "local:2", "-m", model, table),
        start_new_session=True,
    )
    end = time.monotonic() + 60
    while len(workers := children_of(run.pid)) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(1)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does, to all of them
    stderr = run.communicate(timeout=60)[1].decode()
    assert run.returncode == 130
    assert "Traceback" not in stderr
    assert stderr.strip() == "nbspam: interrupted"
    for pid in workers:
        while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
            time.sleep(0.05)
        assert not Path(f"/proc/{pid}").exists()
    assert model.read_bytes() == before


@pytest.mark.long
def test_a_task_that_kills_every_worker_is_given_up(monkeypatch):
    """Also where Dask starts no other worker, as it may if one dies while it starts."""
    monkeypatch.setattr(connection, "_NO_WORKERS_SECONDS", 20)
    with pytest.raises(ClusterError, match="the workers died"), cluster_at("local:1") as cluster:
        list(cluster.map(_die, None, [1]))


@pytest.mark.long
def test_a_cluster_whose_workers_are_gone_is_given_up(monkeypatch):
    monkeypatch.setattr(connection, "_NO_WORKERS_SECONDS", 1)
    with pytest.raises(ClusterError, match="the workers died"), cluster_at("local:1") as cluster:
        distributed.default_client().retire_workers()
        list(cluster.map(plus, 1, [1]))


def _die(_, __):
    os._exit(1)


# `local:N`: whoever else can reach its ports has no use of them


def answered(address, context=None):
    """Return what a port says to somebody without the key of the run; b"" if it hangs up."""
    place = urlsplit(address)
    try:
        with socket.create_connection((place.hostname, place.port), 10) as client:
            if context is not None:
                client = context.wrap_socket(client)
            with client:
                client.sendall(b"\0" * 64)
                return client.recv(100)
    except (ssl.SSLError, ConnectionError):
        return b""


@pytest.mark.long
def test_a_client_without_the_certificate_is_refused():
    without = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    without.check_hostname, without.verify_mode = False, ssl.CERT_NONE
    with cluster_at("local:1") as cluster:
        told = distributed.default_client().scheduler_info()
        workers = told["workers"].values()
        assert cluster.dashboard == ""
        addresses = [told["address"], *told["workers"], *(each["nanny"] for each in workers)]
        assert len(set(addresses)) == 3
        for address in addresses:
            assert address.startswith("tls://127.0.0.1:")
            assert answered(address) == answered(address, without) == b""
        other = distributed.Security.temporary()
        with pytest.raises(OSError, match=r"TLS|connect"):
            distributed.Client(told["address"], security=other, timeout=1)
        for services in (told["services"], *(each["services"] for each in workers)):
            http = HTTPConnection("127.0.0.1", services["dashboard"], timeout=10)
            for path in ("/", "/health", "/metrics", "/json/counts.json", "/status"):
                http.request("GET", path)
                with http.getresponse() as answer:
                    assert answer.status == 404
                    answer.read()
            http.close()
        assert list(cluster.map(plus, 1, [1, 2])) == [2, 3]  # and it goes on working


def plus(a, b):
    return a + b


def test_a_cluster_with_tls_needs_a_certificate():
    said = "tls://127.0.0.1:9: this machine has no certificate for Dask's TLS; name its files"
    with pytest.raises(ClusterError, match=said), cluster_at("tls://127.0.0.1:9"):
        pass
