"""The completion scripts, each run by its shell."""

import os
import pty
import select
import shutil
import subprocess
import time

import click
import pytest
from many_cases import in_turn

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


def bash(scripts, line):
    """Return what bash offers at the end of a line; None where readline completes files."""
    code = """
        . ./nbspam
        compopt() { default=off; }
        read -ra COMP_WORDS <<< "$1"
        [[ $1 == *' ' ]] && COMP_WORDS+=('')
        COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
        _nbspam
        echo "${default-on}" "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", code, "bash", line.replace("=", " = ")],
        cwd=scripts,
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    assert done.stderr == ""
    default, *offered = done.stdout.split()
    return None if default == "on" else offered


def fish(scripts, line):
    done = subprocess.run(
        ["fish", "--no-config", "-c", "source nbspam.fish; complete -C $argv[1]", line],
        cwd=scripts,
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
        env=os.environ | {"HOME": str(scripts)},
    )
    assert done.stderr == ""
    return [each.split("\t")[0] for each in done.stdout.splitlines()]


VALUES = ("bernoulli", "binary-multinomial", "complement", "multinomial", "none")


@needs("bash")
@in_turn(
    "line, offered",
    [
        ("nbspam tr", ["train"]),
        ("nbspam model p", ["prune"]),
        ("nbspam model ", "info check words set merge prune export import".split()),
        ("nbspam train --upd", ["--update"]),
        ("nbspam train --event-model ", VALUES),
        ("nbspam train --event-model=", VALUES),
        ("nbspam train --event-model=bi", ["binary-multinomial"]),
        ("nbspam -V", ["-V"]),
        ("nbspam train model --form", ["--format"]),  # of train: `model` is a source here
        ("nbspam eval --folds ", []),
        ("nbspam serve ", []),
        ("nbspam classify ", None),
        ("nbspam classify inb", None),
        ("nbspam classify -m ", None),
        ("nbspam train --spam=", None),
        ("nbspam model merge a.json -o ", None),
    ],
)
def test_bash(scripts, line, offered):
    found = bash(scripts, line)
    assert (sorted(found) if found else found) == (sorted(offered) if offered else offered)


@needs("bash")
@in_turn("name, command", COMMANDS)
def test_bash_knows_every_option(scripts, name, command):
    assert sorted(bash(scripts, f"{name} -")) == options_of(command)


@needs("fish")
@in_turn(
    "line, offered",
    [
        ("nbspam tr", ["train"]),
        ("nbspam model p", ["prune"]),
        ("nbspam train --upd", ["--update"]),
        ("nbspam train --event-model ", VALUES),
        ("nbspam train --event-model=bi", ["--event-model=binary-multinomial"]),
        ("nbspam train model --form", ["--format"]),
        ("nbspam eval --folds ", []),
        ("nbspam serve inb", []),
        ("nbspam inb", []),
        ("nbspam classify inb", ["inbox.mbox"]),
        ("nbspam classify -m inb", ["inbox.mbox"]),
        ("nbspam model merge a.json -o inb", ["inbox.mbox"]),
    ],
)
def test_fish(scripts, line, offered):
    assert sorted(fish(scripts, line)) == sorted(offered)


@needs("fish")
@pytest.mark.few(1)
@pytest.mark.parametrize("name, command", [COMMANDS[0], COMMANDS[1], COMMANDS[-1]])
def test_fish_knows_every_option(scripts, name, command):
    assert set(options_of(command)) <= {*fish(scripts, f"{name} -"), *fish(scripts, f"{name} --")}


class Terminal:
    """A zsh that completes what is typed."""

    def __init__(self, scripts):
        self._main, other = pty.openpty()
        self._process = subprocess.Popen(
            ["zsh", "-f", "-i"],
            stdin=other,
            stdout=other,
            stderr=other,
            cwd=scripts,
            env={"PATH": os.environ["PATH"], "TERM": "dumb", "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )
        os.close(other)
        setup = (
            f"PS1= fpath=({scripts} $fpath); autoload -U compinit; compinit -D -u; unsetopt beep"
        )
        self.shown(f"{setup}; print -r -- re''ady\n", "ready")

    def shown(self, typed, until, seconds=20):
        """Type and return what is shown, as soon as it has a text."""
        os.write(self._main, typed.encode())
        end, shown = time.monotonic() + seconds, ""
        while until not in shown:
            assert time.monotonic() < end, f"no {until!r} in {shown!r}"
            if select.select([self._main], [], [], 0.1)[0]:
                shown += os.read(self._main, 1 << 16).decode(errors="replace")
        return shown

    def close(self):
        self._process.kill()
        self._process.wait(20)
        os.close(self._main)


@pytest.fixture
def zsh(scripts):
    terminal = Terminal(scripts)
    yield terminal
    terminal.close()


@needs("zsh")
@in_turn(
    "typed, completed",
    [
        ("nbspam tra\t", "nbspam train"),
        ("nbspam model pru\t", "nbspam model prune"),
        ("nbspam train --upd\t", "nbspam train --update"),
        ("nbspam train --event-model=bi\t", "nbspam train --event-model=binary-multinomial"),
        ("nbspam train --event-model bi\t", "nbspam train --event-model binary-multinomial"),
        ("nbspam classify inb\t", "nbspam classify inbox.mbox"),
        ("nbspam train --spam inb\t", "nbspam train --spam inbox.mbox"),
        ("nbspam classify -m inb\t", "nbspam classify -m inbox.mbox"),
        ("nbspam model merge a --out\tinb\t", "nbspam model merge a --output=inbox.mbox"),
    ],
)
def test_zsh(zsh, typed, completed):
    # ^A goes to the line's beginning: it is printed as completed, without the blank at its end.
    zsh.shown(f"{typed}\x01print -r -- '<\x05>'\n", f"\n<{completed}>")


@needs("zsh")
@in_turn(
    "typed, listed",
    [
        ("nbspam \t", "-- Serve SpamAssassin\u2019s spamc and other spamd clients"),
        ("nbspam model \t", "-- Merge models into one"),
        ("nbspam serve --\t", "-- Let clients teach the model (spamc -L)"),
        ("nbspam train --e\t", "-- How tokens are counted: once a message"),
        (
            "nbspam model export --\t",
            "-- Write bogofilter\u2019s word list, as bogoutil -l loads it",
        ),
    ],
)
def test_zsh_says_what_each_does(zsh, typed, listed):
    zsh.shown(f"\x15stty cols 200\n{typed}", listed)  # ^U takes away what stands there


@in_turn("shell", SHELLS)
def test_no_script_starts_the_program(shell):
    script = completion_script(shell, group)
    assert "_NBSPAM_COMPLETE" not in script
    assert "$(nbspam" not in script
    assert "`" not in script


@pytest.mark.few(1)
@pytest.mark.parametrize("shell", SHELLS)
def test_the_program_prints_the_script(program, shell):
    done = program(env={"_NBSPAM_COMPLETE": f"{shell}_source"})
    assert (done.code, done.err) == (0, "")
    assert done.out.rstrip("\n") == completion_script(shell, group).rstrip("\n")
