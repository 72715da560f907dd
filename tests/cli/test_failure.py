"""How a command fails: what the command line promises, and the option that fixes an error."""

import ast
import re
import string
from pathlib import Path

import click
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

import nbspam.cli.classify as classify_module
from nbspam.cli.notes import REMEDIES
from nbspam.errors import ModelError, Remedy
from nbspam_main import VALUED, FailurePolicy

PACKAGE = Path(__file__).parents[2] / "nbspam"


# What the command line promises, read without click


def test_the_options_with_a_value_are_clicks():
    options = [p for p in classify_module.command.params if isinstance(p, click.Option)]
    valued = [p for p in options if not (p.is_flag or p.count)]
    assert {name for p in valued for name in p.opts} == VALUED
    # What the policy cannot read: `--no-x` of a flag, several values, an optional value.
    assert not [p.name for p in options if p.secondary_opts]
    assert {p.nargs for p in valued} == {1}
    assert not [p.name for p in options if p.is_flag and p.type.name != "boolean"]


WORDS = st.sampled_from(
    "-p --passthrough --exit-code -m --model --header --header=-p --on-error deliver -h --help -ph"
    " tempfail -pm -mp -p-m -- - a.eml --lines --strict --model=-p --on-error=deliver".split()
)


@given(st.lists(WORDS, max_size=6))
def test_the_policy_is_what_click_reads(arguments):
    policy = FailurePolicy(["classify", *arguments])
    as_in_the_program = {"help_option_names": ["-h", "--help"]}
    try:
        context = classify_module.command.make_context(
            "classify", list(arguments), **as_in_the_program
        )
    except click.UsageError:
        return
    except click.exceptions.Exit:  # after the help
        assert policy.help
        return
    assert not policy.help
    assert policy.passthrough == context.params["passthrough"]
    assert policy.exit_code == context.params["exit_code"]
    assert policy.deliver == (context.params["on_error"] == "deliver")


@each(
    "passes, command_lines",
    [
        (True, "classify -p|classify a --passthrough|classify -pm|--bogus classify -p"),
        (False, "classify -m -p|classify -- -p|train classify -p|-p||classify"),
    ],
)
def test_who_is_promised_a_passage(passes, command_lines):
    for line in command_lines.split("|"):
        assert FailurePolicy(line.split()).passthrough == passes, line


# Remedies


def braces(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_every_remedy_has_a_text_of_the_command_line_with_the_same_values():
    assert set(REMEDIES) == set(Remedy)
    for remedy in Remedy:
        assert braces(REMEDIES[remedy]) == braces(remedy.value), remedy


def test_every_error_gives_the_values_of_its_remedy():
    """That is, each call that has a remedy among its arguments has its values by their names."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text if "Remedy." in text else "")):
            for argument in node.args if isinstance(node, ast.Call) else ():
                if remedy := re.fullmatch(r"Remedy\.(\w+)", ast.unparse(argument)):
                    values = {keyword.arg for keyword in node.keywords}
                    assert braces(Remedy[remedy[1]].value) <= values, (path, node.lineno)


def test_the_command_line_names_the_option(nbspam, model, table, assert_sentence):
    error = ModelError("a: b", Remedy.ANY_ADDRESS)
    assert str(error) == "a: b; use 127.0.0.1, or allow any address"
    assert error.sentence(REMEDIES) == "a: b; use 127.0.0.1, or add --allow-any-address"
    found = nbspam("serve", "-m", model, "--listen", "0.0.0.0:0")
    assert_sentence(found, "0.0.0.0:0", "--allow-any-address", code=2)


def test_ctrl_c_while_the_program_is_loaded_is_no_bug(program, tmp_path):
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    env = {"PYTHONPATH": str(tmp_path)}
    found = program("classify", env=env, input=b"")
    assert (found.code, found.err) == (130, "nbspam: interrupted\n")
    mail = b"Subject: a\n\nb\n"
    passed = program("classify", "-p", env=env, input=mail)
    assert (passed.code, passed.out.encode()) == (75, mail)
