"""Imports go one way; every import statement is looked at, deferred ones too."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "nbspam"

# A room may import itself and those before it; rooms of one rank do not know each other.
RANKS = [
    ["errors", "labels"],
    ["reading"],
    ["tokens"],
    ["bayes"],
    ["store"],
    ["scoring"],
    ["learning"],
    ["workers"],
    ["evaluation", "serving"],
    ["cli"],
]
BEFORE = {
    room: {r for earlier in RANKS[:i] for r in earlier}
    for i, rank in enumerate(RANKS)
    for room in rank
}
# What of mail would it know?
ALLOWED = BEFORE | {"bayes": {"errors"}}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports_of(module: str) -> list[str]:
    """Return the full names of what a module imports, with what is taken from it if that is one."""
    path = MODULES[module]
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module if path.name == "__init__.py" else module.rpartition(".")[0]
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                found.append(whole if whole in MODULES else base)
    return found


def room_of(module: str) -> str:
    """Return which room a module of ours is in; the package itself is none."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def ours(names: list[str]) -> list[str]:
    return [name for name in names if name.split(".")[0] == "nbspam"]


def third_parties(names: list[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def test_there_is_something_to_look_at():
    assert len(MODULES) > 20
    assert "nbspam.store.lookup" in imports_of("nbspam.cli.classify")


def test_every_module_is_in_a_room():
    rooms = {room_of(module) for module in MODULES}
    assert rooms - {"", "__main__"} <= ALLOWED.keys()


@pytest.mark.parametrize("module", [m for m in MODULES if room_of(m) in ALLOWED])
def test_a_room_knows_itself_and_the_rooms_before_it(module):
    room = room_of(module)
    rooms = {room_of(name) for name in ours(imports_of(module))} - {"", room}
    assert rooms - ALLOWED[room] == set()


def test_every_import_of_ours_exists():
    names = {name for module in MODULES for name in ours(imports_of(module))}
    assert names - MODULES.keys() == set()


def test_there_are_no_import_cycles():
    edges = {module: set(ours(imports_of(module))) - {module} for module in MODULES}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " imports ".join([*path[path.index(module) :], module])
        if module not in done:
            for name in sorted(edges.get(module, ())):
                visit(name, (*path, module))
            done.add(module)

    for module in MODULES:
        visit(module, ())


def importers_of(name: str) -> set[str]:
    return {module for module in MODULES if name in third_parties(imports_of(module))}


def test_only_the_command_line_knows_click():
    assert {room_of(module) for module in importers_of("click")} == {"cli"}


def test_only_the_report_and_the_progress_draw_with_rich():
    assert importers_of("rich") == {"nbspam.evaluation.report", "nbspam.cli.progress"}


def test_only_tables_know_pandas():
    assert importers_of("pandas") <= {"nbspam.reading.tables"}


def test_nothing_of_ours_is_pickled():
    assert {m for name in ("pickle", "marshal", "shelve") for m in importers_of(name)} == set()
