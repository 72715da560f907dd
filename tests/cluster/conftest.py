"""Schedulers of Dask: with workers in threads, which start in no time, and as programs."""

import pytest
from dask_processes import DaskProcesses


def in_threads(n):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    quiet = {"dashboard_address": "127.0.0.1:0", "silence_logs": 60}
    where = {"processes": False, "protocol": "tcp", "host": "127.0.0.1"}
    return distributed.LocalCluster(n_workers=n, threads_per_worker=1, **where, **quiet)


@pytest.fixture(scope="module")
def threads():
    """Return a scheduler with two workers."""
    with in_threads(2) as found:
        yield found


@pytest.fixture
def workerless():
    with in_threads(0) as found:
        yield found


def as_programs(folder):
    pytest.importorskip("distributed", reason="Dask is not installed")
    started = DaskProcesses(folder)
    try:
        yield started
    finally:
        started.end()


@pytest.fixture
def processes(tmp_path):
    """Return a scheduler as a program of its own; only `long` tests have the time to start it."""
    yield from as_programs(tmp_path)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Return the address of a scheduler with two workers, all as people start them."""
    for found in as_programs(tmp_path_factory.mktemp("dask")):
        found.add_worker()
        found.add_worker()
        yield found.address
