"""How a command fails: what the command line promises, and the option that fixes an error."""

import ast
import string
from pathlib import Path

import click
from hypothesis import given
from hypothesis import strategies as st
from many_cases import in_turn

import nbspam.cli.classify as classify_module
from nbspam.cli.failure import REMEDIES
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
    try:
        context = classify_module.command.make_context(
            "classify",
            list(arguments),
            help_option_names=["-h", "--help"],  # as in the program
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


@in_turn(
    "arguments, passes",
    [
        (("classify", "-p"), True),
        (("classify", "a", "--passthrough"), True),
        (("classify", "-pm"), True),
        (("classify", "-m", "-p"), False),
        (("classify", "--", "-p"), False),
        (("--bogus", "classify", "-p"), True),
        (("train", "classify", "-p"), False),
        (("-p",), False),
        ((), False),
        (("classify",), False),
    ],
)
def test_who_is_promised_a_passage(arguments, passes):
    assert passes == FailurePolicy(list(arguments)).passthrough


# Remedies


def braces(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_every_remedy_has_a_text_of_the_command_line():
    assert set(REMEDIES) == set(Remedy)


@in_turn("remedy", Remedy)
def test_a_remedy_has_the_same_values_in_both_texts(remedy):
    assert braces(REMEDIES[remedy]) == braces(remedy.value)


def uses_of_remedies() -> list[tuple[str, str, set[str]]]:
    """Return where each remedy is given to an error: the place, its name, the values beside it."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text if "Remedy." in text else "")):
            if not isinstance(node, ast.Call):
                continue
            values = {keyword.arg or "" for keyword in node.keywords}
            found += [
                (f"{path.relative_to(PACKAGE)}:{node.lineno}", argument.attr, values)
                for argument in node.args
                if isinstance(argument, ast.Attribute)
                and isinstance(argument.value, ast.Name)
                and argument.value.id == "Remedy"
            ]
    return found


def test_every_error_gives_the_values_of_its_remedy():
    for place, name, values in uses_of_remedies():
        assert braces(Remedy[name].value) <= values, place


def test_the_command_line_names_the_option(nbspam, model, table, assert_sentence):
    error = ModelError("a: b", Remedy.ANY_ADDRESS)
    assert str(error) == "a: b; use 127.0.0.1, or allow any address"
    assert error.sentence(REMEDIES) == "a: b; use 127.0.0.1, or add --allow-any-address"
    found = nbspam("serve", "-m", model, "--listen", "0.0.0.0:0")
    assert_sentence(found, "0.0.0.0:0", "--allow-any-address", code=2)


def test_ctrl_c_while_the_program_is_loaded_is_no_bug(program, tmp_path):
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    found = program("classify", env={"PYTHONPATH": str(tmp_path)}, input=b"")
    assert found.code == 130
    assert found.err == "nbspam: interrupted; run the command again\n"
    mail = b"Subject: a\n\nb\n"
    passed = program("classify", "-p", env={"PYTHONPATH": str(tmp_path)}, input=mail)
    assert (passed.code, passed.out.encode()) == (75, mail)
