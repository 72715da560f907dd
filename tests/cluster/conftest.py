"""What several tests of the cluster need."""

import pytest
from dask_processes import DaskProcesses


def in_threads(n):
    """Return a scheduler with workers in threads of this process: they start in no time."""
    distributed = pytest.importorskip("distributed")
    return distributed.LocalCluster(
        n_workers=n,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=60,
    )


@pytest.fixture(scope="module")
def threads():
    """Return a scheduler with two workers."""
    with in_threads(2) as found:
        yield found


@pytest.fixture
def workerless():
    """Return a scheduler that nobody works for."""
    with in_threads(0) as found:
        yield found


@pytest.fixture
def processes(tmp_path):
    """Return a scheduler as a program of its own; only `long` tests have the time to start it."""
    pytest.importorskip("distributed")
    started = DaskProcesses(tmp_path)
    try:
        yield started
    finally:
        started.end()
