"""Imports go one way; every import statement is looked at, deferred ones too.

And what belongs in one place stands there alone: who opens files, who knows options, who draws.
"""

import ast
import functools
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "nbspam"

# A room may import itself and those before it; rooms of one rank do not know each other.
RANKS = [
    ["errors", "names", "patterns"], ["reading"], ["tokens"], ["bayes"],
    ["workers"], ["store"], ["scoring"], ["learning", "display"], ["filter"], ["library"],
    ["asgi", "evaluation", "mailbox", "serving", "sklearn"], ["analysis", "cluster"],
    ["cli"],
]  # fmt: skip
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


@functools.cache
def nodes_of(module: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))))


@functools.cache
def imports_of(module: str) -> list[str]:
    """Return the full names of what a module imports, with what is taken from it if that is one."""
    path = MODULES[module]
    found = []
    for node in nodes_of(module):
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


def test_a_room_knows_itself_and_the_rooms_before_it():
    assert len(MODULES) > 100
    assert "nbspam.store.lookup" in imports_of("nbspam.scoring.version")
    assert {room_of(module) for module in MODULES} - {"", "__main__"} <= ALLOWED.keys()
    wrong = {
        module: rooms
        for module in MODULES
        if (room := room_of(module)) in ALLOWED
        and (
            rooms := {room_of(name) for name in ours(imports_of(module))}
            - ALLOWED[room]
            - {"", room}
        )
    }
    assert wrong == {}


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


def test_the_program_needs_nothing_of_ours_to_be_loaded():
    """Nothing imports it, and it imports of ours what it runs, under its `try`."""
    tree = ast.parse((PACKAGE / "__main__.py").read_text(encoding="utf-8"))
    at_top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in at_top] == [
        "import gc",
        "import os",
        "import sys",
    ]
    deferred = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert [line for line in deferred if "nbspam" in line] == [
        "from nbspam.cli.click_stubs import import_click",
        "from nbspam.cli.program import run_program",
    ]
    assert all("nbspam.__main__" not in imports_of(module) for module in MODULES)


def test_packages_are_known_in_one_place():
    """Click by the command line; pandas by readers of tables (`train` asks for its type alone)."""
    assert {room_of(module) for module in importers_of("click")} == {"cli"}
    assert importers_of("rich") == {
        "nbspam.evaluation.report",
        "nbspam.cli.progress",
    }
    assert importers_of("pandas") <= {
        *("nbspam.analysis", "nbspam.evaluation.results", "nbspam.filter", "nbspam.library"),
        "nbspam.reading.program",
        "nbspam.reading.whole_tables",
    }
    assert importers_of("imapclient") == {"nbspam.mailbox.login"}
    pickling = {m for name in ("pickle", "marshal", "shelve") for m in importers_of(name)}
    # To workers of our own, as all of Dask does.
    assert pickling == {"nbspam.cluster.connection"}


def test_mail_at_a_server_is_loaded_for_nothing_else():
    """Whoever reads files never loads it: these are imported where an account is used."""
    importers = {m for m in MODULES if "mailbox" in {room_of(name) for name in ours(imports_of(m))}}
    others = {m for m in importers if room_of(m) != "mailbox"}
    assert others == {"nbspam.cli.accounts", "nbspam.cli.mail"}


# What stands in one place


def calls_that_open(module: str) -> list[str]:
    """Return the calls in a module that open a file, but for os.devnull; a base the store opens."""
    names = ("open", "fdopen", "read_bytes", "read_text", "write_bytes", "write_text")
    found = [
        call
        for call in nodes_of(module)
        if isinstance(call, ast.Call)
        and (
            (isinstance(call.func, ast.Name) and call.func.id == "open")
            or (isinstance(call.func, ast.Attribute) and call.func.attr in names)
        )
    ]
    texts = map(ast.unparse, found)
    return [
        text for text in texts if "os.devnull" not in text and not text.startswith("Base.open(")
    ]


# What they open is no message: tables to write, the config file,
# what the system says, a password, what is remembered of an account.
MAY_OPEN = {
    "nbspam.asgi": 1,  # its description
    "nbspam.cli.settings": 1,
    "nbspam.display.page": 1,  # its style sheet
    "nbspam.display.tables": 1,
    "nbspam.mailbox.account": 1,
    "nbspam.mailbox.maildir": 3,  # and the keywords of Dovecot
    "nbspam.mailbox.memory": 1,
}


def test_only_reading_opens_messages_and_only_the_store_opens_models():
    opening = {m: len(calls_that_open(m)) for m in MODULES if calls_that_open(m)}
    others = {m: n for m, n in opening.items() if room_of(m) not in ("reading", "store")}
    assert others == MAY_OPEN
    assert {room_of(m) for m in opening} >= {"reading", "store"}


OPTION = re.compile(r"(?<![-\w])--[a-z]")
NO_OPTION = {"nbspam.reading.mime": {"`--boundary`"}}  # what ends a part of a mail


def strings_of(module: str) -> list[tuple[int, str]]:
    """Return the texts in a module, each with its line."""
    constants = (node for node in nodes_of(module) if isinstance(node, ast.Constant))
    return [(node.lineno, node.value) for node in constants if isinstance(node.value, str)]


def test_only_the_command_line_knows_options():
    """Other rooms name a remedy of errors.py, which has the options."""
    found, named = [], set()
    for module in MODULES:
        for line, text in strings_of(module):
            for other in NO_OPTION.get(module, ()):
                text = text.replace(other, "")
            if OPTION.search(text):
                named.add(module)
                found += [f"{MODULES[module]}:{line}"] * (
                    room_of(module) not in ("cli", "__main__", "errors")
                )
    assert found == []
    assert {"nbspam.cli.options", "nbspam.cli.notes", "nbspam.cli.train"} <= named
    for module, others in NO_OPTION.items():
        whole = "".join(text for _, text in strings_of(module))
        assert all(other in whole for other in others)


SCORINGS = {"SUM", "EVIDENCE", "'sum'", "'evidence'"}
EVENTS = {"BERNOULLI", "Bernoulli.name", "'bernoulli'"}


def test_rules_and_event_models_are_looked_up_and_not_compared():
    """Whoever adds one adds an entry, and searches for no branch."""
    found = []
    for module, nodes in zip(MODULES, map(nodes_of, MODULES), strict=True):
        for node in nodes:
            if isinstance(node, ast.Compare):
                sides = {ast.unparse(side) for side in (node.left, *node.comparators)}
            elif isinstance(node, ast.MatchValue):
                sides = {ast.unparse(node.value)}
            else:
                continue
            if {side.removeprefix("metadata.") for side in sides} & (SCORINGS | EVENTS):
                found.append(f"{MODULES[module]}:{node.lineno}")
    assert found == []
