"""A model to serve, and a server in a thread."""

from functools import partial

import pytest
from served_programs import make_model
from servers import Sentences, serving_in


@pytest.fixture(scope="session")
def model_file(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("model") / "model.json")


@pytest.fixture
def model(model_file, tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(model_file.read_bytes())
    return path


@pytest.fixture(scope="module")
def served(model_file, tmp_path_factory):
    with serving_in(tmp_path_factory.mktemp("served"), model_file) as found:
        yield found


@pytest.fixture
def serving(tmp_path):
    return partial(serving_in, tmp_path)


@pytest.fixture
def users(tmp_path):
    """Return the folder of users' models."""
    folder = tmp_path / "users"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def said():
    """Return what the server's modules log."""
    with Sentences().logged() as said:
        yield said
