"""The lowest versions that pyproject.toml allows have no hole that is known."""

import re
import tomllib
from pathlib import Path

PYPROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
# The version in which each advisory was fixed.  Kept by hand, last gone through in December 2025:
# go through it again when a bound or a package changes, and before each release.
FIXED = {
    "pyarrow": ("14.0.1", "CVE-2023-47248: a Parquet file runs code"),
    "openpyxl": ("2.4.2", "CVE-2017-5992: a workbook reads files"),
    "scikit-learn": ("1.5.0", "CVE-2024-5206: a vocabulary keeps tokens of the training set"),
    "scipy": ("1.10.0", "CVE-2023-25399: use after free"),
    "numpy": ("1.22.2", "CVE-2021-41495: null pointer"),
    "distributed": ("2021.10.0", "CVE-2021-42343: workers listen on all addresses"),
    "dask": ("2021.10.0", "CVE-2021-42343"),
    "starlette": ("0.49.1", "CVE-2025-62727: ranges of files take quadratic time"),
    "cryptography": ("44.0.1", "CVE-2024-12797: OpenSSL's check of raw public keys"),
}


def version(text):
    return tuple(map(int, text.split(".")))


def test_no_lower_bound_allows_a_version_with_a_known_hole():
    project = PYPROJECT["project"]
    wanted = [*project["dependencies"]]
    for name, extra in project["optional-dependencies"].items():
        wanted += extra if name != "dev" else ()
    bounds = dict(re.match(r"([\w-]+)>=([\d.]+)", requirement).groups() for requirement in wanted)
    assert set(FIXED) <= set(bounds)
    for name, (fixed, advisory) in FIXED.items():
        assert version(bounds[name]) >= version(fixed), (name, advisory)
