"""A model has the same bytes, and figures the same digits, whatever kernels numpy computes with.

Processors add in different orders and take logarithms by different instructions; settings of
OpenBLAS and numpy choose the kernels of older ones.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NO_SIMD = {"NPY_DISABLE_CPU_FEATURES": "X86_V3,X86_V4"}
KERNELS = [
    {},
    {"OPENBLAS_CORETYPE": "Nehalem"} | NO_SIMD,
    {"OPENBLAS_CORETYPE": "Haswell"},
    {"OPENBLAS_CORETYPE": "SkylakeX"},
    {"OPENBLAS_CORETYPE": "Sandybridge", "OPENBLAS_NUM_THREADS": "1"},
    {"OPENBLAS_CORETYPE": "Nehalem"},
    {"NPY_DISABLE_CPU_FEATURES": "X86_V4"},
    NO_SIMD,
]
# Prints a digest of a model as it was trained, after a number of lessons, one by one, and after
# some of them were forgotten; and what eval and explain have as JSON.
PROGRAM = """
import hashlib, sys
import warnings; warnings.simplefilter("ignore")  # of numpy, of features that it cannot disable
from pathlib import Path
import nbspam
from click.testing import CliRunner
from nbspam.cli.program import nbspam as group
table, lessons, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
lines = Path(table).read_text().splitlines()
rows = [tuple(line.split("\\t", 1)) for line in lines if "\\t" in line]
rows = [row for row in rows if row[0] != "label"][:: int(sys.argv[4])]

def show(name, content):
    print(name, hashlib.sha256(content).hexdigest()[:16])

def saved(spam_filter):
    spam_filter.save(folder / "model.json")
    return (folder / "model.json").read_bytes()

spam_filter = nbspam.train(rows[lessons::3])
show("trained", saved(spam_filter))
for row in rows[:lessons]:
    spam_filter.learn([row])
show("learned", saved(spam_filter))
for label, text in rows[: lessons // 4]:
    spam_filter.forget([text])
show("forgot", saved(spam_filter))
small = folder / "small.tsv"
small.write_text("".join(f"{label}\\t{text}\\n" for label, text in rows[::6]))
for command in (
    ["eval", "--folds", "3", "--format", "json", small],
    ["eval", "--scoring", "sum", "--train-first", "50%", "--format", "json", small],
    ["explain", "-m", folder / "model.json", "--format", "json", "-"],
    ["classify", "-m", folder / "model.json", "--format", "json", small],
):
    done = CliRunner().invoke(group, [*map(str, command)], input=rows[0][1])
    assert done.exit_code == 0, done.output
    show(command[0], done.stdout_bytes.replace(str(folder).encode(), b""))
"""


def digests(kernels, lessons, every, folder):
    folder.mkdir()
    command = [sys.executable, "-c", PROGRAM, ROOT / "sample_data/sms.tsv", lessons, folder, every]
    done = subprocess.run(
        [*map(str, command)], env=os.environ | kernels, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def has_avx512():
    cpuinfo = Path("/proc/cpuinfo")
    return cpuinfo.exists() and "avx512f" in cpuinfo.read_text()


@pytest.mark.long
@pytest.mark.parametrize(
    ("kernels", "lessons", "every"),
    [(KERNELS[:2], 20, 3), (KERNELS, 60, 1)],
    ids=["two", "all"],
)
def test_the_same_bytes_with_any_kernels(kernels, lessons, every, tmp_path):
    usable = [k for k in kernels if has_avx512() or k.get("OPENBLAS_CORETYPE") != "SkylakeX"]
    found = [digests(k, lessons, every, tmp_path / str(i)) for i, k in enumerate(usable)]
    assert found[0].count("\n") == 7
    assert set(found) == {found[0]}, dict(zip(map(str, usable), found, strict=True))
