"""The completion scripts, each run by its shell."""

import os
import pty
import re
import select
import shutil
import subprocess
import time

import click
import pytest
from golden_rows import golden_rows
from one_case import each

from nbspam.cli.completion import completion_script
from nbspam.cli.groups import each_command
from nbspam.cli.program import nbspam as group

SHELLS = ("bash", "zsh", "fish")
COMMANDS = [(" ".join(path), command) for path, command in each_command(group, ("nbspam",))]


def needs(shell):
    return pytest.mark.skipif(not shutil.which(shell), reason=f"needs {shell}")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """Return a folder with the scripts, each under the name that its shell looks for."""
    folder = tmp_path_factory.mktemp("scripts")
    for shell, name in zip(SHELLS, ("nbspam", "_nbspam", "nbspam.fish"), strict=True):
        (folder / name).write_text(completion_script(shell, group), encoding="utf-8")
    (folder / "inbox.mbox").touch()
    return folder


def options_of(command):
    context = click.Context(command, help_option_names=["-h", "--help"])
    options = [p for p in command.get_params(context) if isinstance(p, click.Option)]
    return sorted(name for option in options for name in (*option.opts, *option.secondary_opts))


def printed(scripts, *command):
    """Return what a shell prints in the folder of the scripts; it must say nothing of errors."""
    options = {"capture_output": True, "text": True, "check": True, "timeout": 60}
    env = os.environ | {"HOME": str(scripts)}
    done = subprocess.run(command, cwd=scripts, env=env, **options)
    assert done.stderr == ""
    return done.stdout


def bash(scripts, *lines):
    """Return what bash offers at the end of each line; None where readline completes files."""
    code = """
        . ./nbspam
        compopt() { default=off; }
        for line; do
            unset default COMPREPLY
            read -ra COMP_WORDS <<< "$line"
            [[ $line == *' ' ]] && COMP_WORDS+=('')
            COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
            _nbspam
            echo "${default-on}" "${COMPREPLY[@]}"
        done
    """
    spaced = [line.replace("=", " = ") for line in lines]
    offered = printed(scripts, "bash", "--norc", "-c", code, "bash", *spaced).splitlines()
    return [None if row.startswith("on") else sorted(row.split()[1:]) for row in offered]


def fish(scripts, line):
    code = "source nbspam.fish; complete -C $argv[1]"
    lines = printed(scripts, "fish", "--no-config", "-c", code, line).splitlines()
    return [each.split("\t")[0] for each in lines]


def typed_in(shell):
    """Return what is typed in a shell, and what is offered then; None for files."""
    rows = [row for name, row in golden_rows("completions.txt") if name == shell]
    return [(re.sub("_$", " ", typed).replace(">", "\t"), offered) for typed, offered in rows]


@needs("bash")
def test_bash(scripts):
    offered = {f"{name} -": options_of(command) for name, command in COMMANDS}
    for typed, words in typed_in("bash"):
        offered[typed] = {"files": None, "nothing": []}.get(words, words.split())
    assert dict(zip(offered, bash(scripts, *offered), strict=True)) == offered


@needs("fish")
@each("typed, offered", typed_in("fish"))
def test_fish(scripts, typed, offered):
    assert sorted(fish(scripts, typed)) == ([] if offered == "nothing" else offered.split())


@needs("fish")
@pytest.mark.few(1)
@pytest.mark.parametrize("name, command", [COMMANDS[0], COMMANDS[1], COMMANDS[-1]])
def test_fish_knows_every_option(scripts, name, command):
    assert set(options_of(command)) <= {*fish(scripts, f"{name} -"), *fish(scripts, f"{name} --")}


@pytest.fixture(scope="module")
def zsh(scripts):
    """Return a function that types into a zsh, and waits until a text is shown."""
    ours, theirs = pty.openpty()
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    env = {"PATH": os.environ["PATH"], "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    command = ["zsh", "-f", "-i"]
    process = subprocess.Popen(command, cwd=scripts, env=env, start_new_session=True, **streams)
    os.close(theirs)

    def types(typed, until):
        os.write(ours, typed.encode())
        end, shown = time.monotonic() + 60, ""
        while until not in shown:
            assert time.monotonic() < end, f"no {until!r} in {shown!r}"
            if select.select([ours], [], [], 0.1)[0]:
                shown += os.read(ours, 1 << 16).decode(errors="replace")

    setup = f"PS1= fpath=({scripts} $fpath); autoload -U compinit; compinit -D -u; unsetopt beep"
    types(f"{setup}; print -r -- re''ady\n", "ready")
    yield types
    process.kill()
    process.wait(20)
    os.close(ours)


@needs("zsh")
@each("typed, completed", typed_in("zsh completes"))
def test_zsh(zsh, typed, completed):
    # ^A goes to the line's beginning: it is printed as completed, without the blank at its end.
    zsh(f"{typed}\x01print -r -- '<\x05>'\n", f"\n<{completed}>")


@needs("zsh")
@each("typed, listed", typed_in("zsh lists"))
def test_zsh_says_what_each_does(zsh, typed, listed):
    zsh(f"\x15stty cols 200\n{typed}", listed)  # ^U takes away what stands there


@each("shell", SHELLS)
@each("part", ["_NBSPAM_COMPLETE", "$(nbspam", "`"])
def test_no_script_starts_the_program(shell, part):
    assert part not in completion_script(shell, group)


@pytest.mark.few(1)
@pytest.mark.parametrize("shell", SHELLS)
def test_the_program_prints_the_script(program, shell):
    done = program(env={"_NBSPAM_COMPLETE": f"{shell}_source"})
    assert (done.code, done.err) == (0, "")
    assert done.out.rstrip("\n") == completion_script(shell, group).rstrip("\n")
