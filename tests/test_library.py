"""The library's names are those that docs/python.md lists, and each has an example that runs."""

import doctest
import inspect
import re
from typing import get_overloads

import pytest
from test_front_door import ROOT

import nbspam
from nbspam.sklearn import NBSpam

METHODS = (
    "classify classify_many probabilities explain words learn forget save reopen close classes"
    " metadata version"
)
PAIRS = [("spam", "win a prize"), ("ham", "lunch at noon")] * 9
NAMES = [getattr(nbspam, name) for name in dir(nbspam) if name != "__version__"]
PUBLIC = [*NAMES, NBSpam]


def test_a_filter_has_the_names_that_the_docs_list_and_no_more():
    assert sorted(METHODS.split()) == [name for name in dir(nbspam.Filter) if name[0] != "_"]
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    *others, names = page.split("## Names")
    for name in METHODS.split():
        assert f"`{name}`" in names
        assert re.search(rf"\b{name}\b", "".join(others))


def test_the_package_has_the_names_that_the_docs_list_and_no_more():
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    names = {*re.findall(r"`(\w+)`", page.split("## Names")[1]), *re.findall(r"`(\w+Error)`", page)}
    assert names - {*METHODS.split(), "nbspam", "help"} | {"classify_many"} == {*dir(nbspam)}
    used = {*re.findall(r"nbspam\.(\w+)", page)}
    assert used <= {*dir(nbspam), "sklearn"}


@pytest.mark.parametrize("public", PUBLIC, ids=lambda public: public.__name__)
def test_each_name_has_an_example_that_runs(tmp_path, monkeypatch, public):
    monkeypatch.chdir(tmp_path)
    spam_filter = nbspam.train(PAIRS)
    spam_filter.save("model.json")
    (tmp_path / "words.csv").write_text("label,text\nham,lunch at noon\nspam,win a prize\n")
    names = {"nbspam": nbspam, "pairs": PAIRS, "spam_filter": spam_filter}
    required = {public.__name__}
    if public in (nbspam.Filter, NBSpam):
        required |= {
            f"{public.__name__}.{name}"
            for name in vars(public)
            if name[:4] != "set_" and name[0] != "_"
        }
    found = doctest.DocTestFinder(recurse=True).find(public, public.__name__, globs=names)
    assert required <= {test.name for test in found if test.examples}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    said = []
    for test in sorted(found, key=lambda test: test.lineno or 0):
        test.globs = names  # later examples use what earlier ones made
        runner.run(test, out=said.append, clear_globs=False)
    assert not said, "".join(said)


@pytest.mark.parametrize(
    "function",
    [f for f in NAMES if inspect.isfunction(f)]
    + [vars(nbspam.Filter)[n] for n in METHODS.split()[:9]],
    ids=lambda f: f.__qualname__,
)
def test_each_function_says_what_it_raises(function):
    assert re.search(r"[Rr]aises|errors are as in", inspect.getdoc(function))


@pytest.mark.parametrize("function", [nbspam.classify_many, nbspam.Filter.classify_many])
def test_a_type_checker_knows_what_many_verdicts_are_of(function):
    """A union would fail in her program as soon as pandas-stubs are installed.

    Without them a DataFrame is of any type, so the first that fits a list must be that of a list.
    """
    returned = [overload.__annotations__["return"] for overload in get_overloads(function)]
    assert list(map(str, returned)) == [str(list[nbspam.Verdict]), "pd.DataFrame"]
