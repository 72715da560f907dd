"""The wheel, built as `pip install .` builds it."""

import subprocess
import sys
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from nbspam.cli.manual import manual_pages

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Return the wheel's files by name, the shared ones as they are below a prefix."""
    if not find_spec("hatchling"):
        pytest.skip("needs hatchling (pip install '.[dev]')")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=120,
    )
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return {
            name.partition(".data/data/")[2] or name: archive.read(name)
            for name in archive.namelist()
        }


UNITS = ("nbspam.service", "nbspam.socket")


def test_the_wheel_has_what_systems_look_for_as_the_program_makes_it(wheel):
    pages = manual_pages("")
    shared = {name for name in wheel if name.startswith(("share/", "lib/"))}
    assert shared == {
        *(f"share/man/man1/{name}" for name in pages),
        *(f"lib/systemd/system/{name}" for name in UNITS),
    }
    assert {"nbspam_main.py", "nbspam/__init__.py", "nbspam/py.typed"} <= wheel.keys()
    for name, text in pages.items():
        lines = wheel[f"share/man/man1/{name}"].decode().splitlines()
        assert lines[1:] == text.splitlines()[1:]  # the first has the date
    for name in UNITS:
        assert wheel[f"lib/systemd/system/{name}"] == (ROOT / "docs" / name).read_bytes()


def test_the_build_needs_what_the_program_needs_to_start():
    """The hook imports the commands, which need click alone."""
    click = [line for line in PROJECT["project"]["dependencies"] if line.startswith("click")]
    assert [
        line for line in PROJECT["build-system"]["requires"] if "hatchling" not in line
    ] == click
