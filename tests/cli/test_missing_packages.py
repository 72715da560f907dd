"""Optional packages that are not installed: one exit code, and one form of the sentence."""

import importlib
import re
import subprocess
import sys
import tomllib

import openpyxl
import pytest
import zstandard
from one_case import each
from running import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
# Extra, modules that are missing, what is run, and what then needs them.
CASES = [
    ("imap", "imapclient nbspam.mailbox.login", "mail filter imaps://a@b", "a@b: mail at a"),
    ("imap", "imapclient nbspam.mailbox.login", "classify imaps://a@b/INBOX", "mail at a server"),
    ("parquet", "pyarrow", "classify new.csv -o out.parquet", "out.parquet: writing .parquet"),
    ("parquet", "pyarrow fastparquet", "classify old.parquet", "old.parquet: reading a Parquet"),
    ("excel", "openpyxl", "eval new.csv --predictions out.xlsx", "out.xlsx: writing .xlsx"),
    ("excel", "openpyxl", "train --replace old.xlsx", "old.xlsx: reading an Excel workbook"),
    ("compressed", "zstandard compression.zstd", "classify old.zst", "old.zst: is compressed, and"),
    ("dask", "distributed", "train --replace --dask local:1 new.csv", "local:1: a cluster"),
    ("dask", "cryptography", "train --replace --dask local:1 new.csv", "local:1: protecting the"),
    ("plot", "matplotlib", "eval new.csv --plot a.svg", "drawing curves"),
]


@each("extra, modules, command, what", CASES)
def test_a_command_names_the_extra_that_it_needs(
    nbspam, assert_sentence, model, table, monkeypatch, extra, modules, command, what
):
    monkeypatch.chdir(table.parent)
    monkeypatch.setenv("NBSPAM_MODEL", str(model))
    table.with_name("new.csv").write_text("label,text\nham,lunch\nspam,prize\n")
    table.with_name("old.parquet").write_bytes(b"PAR1" + bytes(99) + b"PAR1")
    openpyxl.Workbook().save(table.with_name("old.xlsx"))
    table.with_name("old.zst").write_bytes(zstandard.compress(b"Subject: x\n\nbody\n"))
    if extra == "dask":  # which would stay half imported
        importlib.import_module("distributed")
    with pytest.MonkeyPatch.context() as patch:
        for name in modules.split():
            if name.startswith("nbspam."):
                patch.delitem(sys.modules, name, raising=False)
                patch.delattr(name, raising=False)  # of its package, where an import finds it too
            else:
                patch.setitem(sys.modules, name, None)
        found = nbspam(*command.split())
    assert_sentence(found, what)
    form = rf"needs (.+); install (it|them) with: .+ -m pip install 'nbspam\[{extra}\]'\n"
    packages, them = re.search(form, found.err).groups()
    assert (" and " in packages) == (them == "them")
    names = {re.match(r"\w+", requirement)[0] for requirement in EXTRAS[extra]} | {"pandas"}
    assert {*packages.split(" and ")} <= names


def test_the_cases_have_every_extra():
    assert {extra for extra, *_ in CASES} == set(EXTRAS) - {
        "dev",
        "http",  # tests/test_asgi.py
        "sklearn",  # tests/test_python.py
    }


def test_the_estimator_names_its_extra():
    code = "import sys; sys.modules['sklearn'] = None; import nbspam.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert re.search(
        r"ImportError: nbspam.sklearn needs scikit-learn; install it with: .*'nbspam\[sklearn\]'$",
        done.stderr.strip(),
    )
