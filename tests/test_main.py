"""The program: a message passes whatever of nbspam is damaged, and with however little memory."""

import compileall
import importlib.util
import itertools
import marshal
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import nbspam

ROOT = Path(__file__).parents[1]
KINDS = "missing empty half zeros syntax error exit stop bytecode".split()
# Of what a passage loads, files of every room that it goes through.
LOADED = """errors filter workers cli/program cli/command cli/classify serving/passthrough
reading/message reading/charsets reading/marks tokens/tokenized tokens/text store/lookup
store/metadata bayes/evidence bayes/event_model scoring/classifier scoring/verdict""".split()
LIST = """
import os, sys
files = lambda: [str(getattr(module, "__file__", None)) for module in sys.modules.values()]
os._exit = lambda _: print(*files(), sep="\\n", file=sys.stderr)
from nbspam.__main__ import main
main()
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.json"
    nbspam.train(ROOT / "sample_data/fresh.tsv").save(path)
    return path


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return a folder with nbspam and its bytecode, as it is installed."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(ROOT / "nbspam", folder / "nbspam")  # with what bytecode there is
    assert compileall.compile_dir(folder, quiet=1)
    return folder


def run(folder, *arguments, code=None, **options):
    code = code or "from nbspam.__main__ import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        timeout=60,
        check=False,
        cwd=folder,
        **options,
    )


@pytest.fixture(scope="module")
def files(installed, model):
    """Return the files of ours that a passage loads, but for the program itself."""
    mail = ROOT / "sample_data/odd/multipart-nested-6-deep.eml"
    done = run(installed, "classify", "-p", "-m", model, code=LIST, input=mail.read_bytes())
    paths = [Path(line) for line in done.stderr.decode().splitlines() if line != "None"]
    ours = [path.relative_to(installed) for path in paths if path.is_relative_to(installed)]
    names = {str(path) for path in ours} - {"nbspam/__init__.py", "nbspam/__main__.py"}
    assert {f"nbspam/{name}.py" for name in LOADED} <= names
    return sorted(names)


def damage(folder, model, damages):
    command = [sys.executable, Path(__file__).with_name("damage.py"), folder, model]
    lines = "\n".join(map(" ".join, damages)).encode()
    return subprocess.run(command, input=lines, capture_output=True, check=True).stdout.decode()


def test_the_message_passes_whatever_file_is_damaged(installed, model, files):
    """Every third file, in one way or another; each of them in every way if `long` is asked for."""
    damages = list(zip(itertools.cycle(KINDS), files[::3], strict=False))
    assert {kind for kind, _ in damages} == set(KINDS)
    assert damage(installed, model, damages) == ""


@pytest.mark.long
@pytest.mark.parametrize("kind", [*KINDS, "cuts"])  # "cuts" is wherever a statement ends
def test_the_message_passes_whatever_damages_a_file(installed, model, files, kind):
    assert damage(installed, model, itertools.product([kind], files)) == ""


# What is said


MAIL = b"Subject: prize\n\nwin a free prize\n"


def assert_passed_on(done, *parts):
    """Assert that the message passed unchanged, and what was said."""
    assert (done.returncode, done.stdout) == (75, MAIL)
    err = done.stderr.decode()
    assert err.startswith("nbspam: ")
    assert err.count("\n") == 1
    for part in parts:
        assert part in err


@pytest.fixture
def damaged(installed):
    """Return a function that writes something else into a file until the test is over."""
    kept = {}
    assert compileall.compile_dir(installed, quiet=1)  # what was damaged before has other bytecode

    def write(name, content):
        path = installed / name
        kept[path] = path.read_bytes(), path.stat()
        path.write_bytes(content)

    yield write
    for path, (content, was) in kept.items():
        path.write_bytes(content)
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


@pytest.mark.parametrize("name", ["errors", "cli/classify", "serving/passthrough"])
def test_cut_off_bytecode_is_named_with_the_remedy(installed, model, damaged, name):
    """To click the end of a file is an interrupt, which it is not here."""
    path = f"nbspam/{name}.py"
    compileall.compile_file(installed / path, quiet=1)  # it may be of a file damaged before
    path = os.path.relpath(importlib.util.cache_from_source(path))
    damaged(path, (installed / path).read_bytes()[:-9])
    done = run(installed, "classify", "-p", "-m", model, input=MAIL)
    assert_passed_on(done, f"{installed / path}: ", "; delete it\n")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b")(", "nbspam/errors.py: Python cannot load this file"),
        (b"\0" * 99, "damaged (source code string cannot contain null bytes); reinstall nbspam"),
        (b"", "missing or damaged (cannot import name"),
        (b"raise ValueError('a\\nb')", "internal error (ValueError: a b); please report it"),
    ],
)
def test_damaged_source_is_told(installed, damaged, content, said):
    damaged("nbspam/errors.py", content)
    assert_passed_on(run(installed, "classify", "-p", input=MAIL), said)
    done = run(installed, "classify", input=MAIL)
    assert (done.returncode, done.stdout) == (1, b"")
    assert run(installed, "classify", "--exit-code", input=MAIL).returncode == 3


def test_a_command_that_ends_without_a_word_has_failed(installed, damaged):
    damaged("nbspam/cli/program.py", b"def run_program(*_):\n    return 0, None\n")
    assert_passed_on(run(installed, "classify", "-p", input=MAIL), "reinstall nbspam")
    for arguments in (("classify", "--help"), ("classify",), ("train",)):
        done = run(installed, *arguments, input=MAIL)
        assert (done.returncode, done.stdout) == (0, b"")


FAILING = b"""
def run_program(_, pipe, describe):
    pipe._sink, sink = 99, pipe._sink
    try:
        pipe.give(pipe.take(9))
    finally:
        pipe._sink = sink
"""


def test_a_copy_that_was_cut_off_is_not_written_again(installed, damaged):
    """What is out is out, and the rest must not follow another beginning."""
    damaged("nbspam/cli/program.py", FAILING)
    done = run(installed, "classify", "-p", input=MAIL)
    assert (done.returncode, done.stdout) == (75, b"")


# Bytecode that cannot be written whole


def limited(kind, size):
    """Return what limits a process that is started: a kind of `resource`, and its bytes."""
    return lambda: resource.setrlimit(kind, (size, size))


def test_bytecode_is_written_whole_or_not_at_all(installed, tmp_path, model):
    folder = shutil.copytree(installed, tmp_path / "copy")
    for path in folder.rglob("__pycache__"):
        shutil.rmtree(path)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    for limit in (9 << 10, 4 << 10):
        full = limited(resource.RLIMIT_FSIZE, limit)
        done = run(folder, "classify", "-m", model, input=MAIL, env=env, preexec_fn=full)
        assert (done.returncode, done.stderr) == (0, b"")
    written = list(folder.rglob("*.pyc"))
    assert written
    for path in written:
        marshal.loads(path.read_bytes()[16:])


# Little memory


def starts(kib):
    """Return whether Python itself, and pip's script, which imports re, start in so little."""

    def limit():
        limited(resource.RLIMIT_AS, kib << 10)()
        # Python 3.11 may loop for ever where the last bytes are missing.
        resource.setrlimit(resource.RLIMIT_CPU, (3, 3))

    command = [sys.executable, "-c", "import re, sys"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60, preexec_fn=limit)
    return done.returncode == 0


# As pip writes it.
SCRIPT = "import re\nimport sys\nfrom nbspam.__main__ import main\nsys.exit(main())"


@pytest.mark.skipif(sys.platform != "linux", reason="others count an address space otherwise")
@pytest.mark.few(1)
@pytest.mark.parametrize("step", [4096, 512, 64])
def test_the_message_passes_in_any_address_space_that_python_starts_in(installed, model, step):
    (installed / "script").write_text(SCRIPT)
    least = next(kib for kib in range(24 << 10, 0, -step) if not starts(kib)) + step
    codes = set()
    for kib in range(least + 256, least + (16 << 10), step):
        done = subprocess.run(
            [sys.executable, "script", "classify", "-p", "-m", model],
            input=MAIL,
            capture_output=True,
            timeout=60,
            check=False,
            cwd=installed,
            preexec_fn=limited(resource.RLIMIT_AS, kib << 10),
        )
        if done.returncode != 0:
            assert_passed_on(done, "not enough memory")
        codes.add(done.returncode)
    assert codes == {0, 75}


@pytest.mark.parametrize("before, code, out", [("SIG_DFL", -2, b""), ("SIG_IGN", 0, b"goes on\n")])
def test_ctrl_c_before_anything_is_read_ends_in_silence(installed, before, code, out):
    """But not where the shell has it ignored, as after nohup."""
    heed = partial(signal.signal, signal.SIGINT, getattr(signal, before))
    typed = "import nbspam.__main__, os; os.kill(os.getpid(), 2); print('goes on')"
    done = run(installed, code=typed, preexec_fn=heed)
    assert (done.returncode, done.stdout, done.stderr) == (code, out, b"")


SCANT = """
import resource, sys, nbspam.__main__
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (4 << 20), -1))
code = nbspam.__main__.run()
print(code, "nbspam.cli.program" in sys.modules, file=sys.stderr)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="/proc tells the size")
def test_with_too_little_memory_nothing_is_loaded(installed):
    mail = b"Subject: prize\n\nwin\n"
    done = run(installed, "classify", "-p", code=SCANT, input=mail)
    assert done.stdout == mail
    assert re.fullmatch(rb"nbspam: not enough memory; .*\n75 False\n", done.stderr)


# Windows has none of these modules
AS_ON_WINDOWS = "import sys; sys.modules.update(fcntl=None, pwd=None, resource=None)\n"


@pytest.mark.parametrize("command", ["train --update --spam -", "train -m new.json .", "serve -h"])
def test_on_windows_one_sentence_names_wsl(tmp_path, command):
    code = AS_ON_WINDOWS + "from nbspam.__main__ import main; main()"
    done = run(tmp_path, *command.split(), code=code, input=b"a prize")
    said = b"nbspam: nbspam needs Linux, macOS or another Unix; on Windows run it in WSL\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", said)


def test_on_windows_an_import_names_wsl(tmp_path):
    done = run(tmp_path, code="import os, nbspam; os.name = 'nt'; nbspam.train")
    assert done.stderr.decode().splitlines()[-1] == f"ImportError: {nbspam.UNIX_ONLY}"
