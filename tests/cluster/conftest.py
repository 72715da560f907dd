"""What several tests of the cluster need."""

import pytest
from dask_processes import DaskProcesses


@pytest.fixture
def processes(tmp_path):
    pytest.importorskip("distributed")
    started = DaskProcesses(tmp_path)
    try:
        yield started
    finally:
        started.end()
