"""A user's home to try a recipe of docs/mail-recipes.md in, and what becomes of a mail there."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import mails
import pytest

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_data" / "mail"
GOLDEN = ROOT / "tests" / "golden" / "recipes"
_DOCS = ROOT / "docs"
_PAGES = "mail-recipes.md", "serve.md", "mail-server.md"
_PYTHON = shlex.quote(sys.executable)
_SWITCHING = (_DOCS / "switching.md").read_text(encoding="utf-8")
_OURS = re.compile(rb"^X-Nbspam: (spam|ham|unsure), .*\n", re.M)


class Ended(NamedTuple):
    code: int
    out: bytes
    err: str


# What may be in the place of the program, of mode 0755 but for one; REAL is the program itself.
FAULTS = {
    "missing, and a folder has its name": None,
    "missing, and a mailbox has its name": None,
    "a folder": None,
    "not executable": "#!/bin/sh\necho spam, probability=1.000000\n",
    "an empty file": "",
    "silent": "#!/bin/sh\ncat > /dev/null\n",
    "silent, and reads nothing": "#!/bin/sh\n",
    "killed": "#!/bin/sh\nhead -c 400\nkill -9 $$\n",
    "killed at once": "#!/bin/sh\nkill -9 $$\n",
    "a copy of the mail": "#!/bin/sh\ncat\n",
    "a copy of the mail, and 75": "#!/bin/sh\ncat\nexit 75\n",
    "75": "#!/bin/sh\nexit 75\n",
    "without its Python": "#!/nowhere/bin/python3\n",
    "that Python cannot load": f"#!/bin/sh\nexec {_PYTHON} -c 'from nowhere import main'\n",
    "without the memory for Python": "#!/bin/sh\nulimit -v 9000\nexec REAL\n",
    "without the memory for itself": '#!/bin/sh\nulimit -v 20000\nexec REAL "$@"\n',
    "on a full disk": '#!/bin/sh\nexec REAL "$@" > /dev/full\n',
    "without a model": '#!/bin/sh\nNBSPAM_MODEL=/nowhere exec REAL "$@" -m /nowhere\n',
}


class Home:
    """A user's home: nbspam in ~/.local/bin, a Maildir, and perhaps a model."""

    def __init__(self, path):
        self.path = path
        self.maildir = path / "Maildir"
        self.model = path / ".local" / "share" / "nbspam" / "model.json"
        # what a mail server or cron gives the programs that it starts, and no more
        self.environment = {
            "HOME": str(path),
            "PATH": "/usr/bin:/bin",
            "SHELL": "/bin/sh",
            "LOGNAME": "hal",
            "USER": "hal",
        }
        # the program of this source tree, where a user would have it installed
        self.program = self.write(
            ".local/bin/nbspam",
            f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} PYTHONWARNINGS=error "
            f'exec {_PYTHON} -m nbspam "$@"\n',
            0o755,
        )
        for folder in (self.maildir, self.maildir / ".Junk"):
            for part in ("cur", "new", "tmp"):
                (folder / part).mkdir(parents=True)

    def run(self, *command, stdin=b""):
        done = subprocess.run(
            [str(part) for part in command],
            input=stdin,
            capture_output=True,
            timeout=60,
            check=False,
            env=self.environment,
            cwd=self.path,
        )
        return Ended(done.returncode, done.stdout, done.stderr.decode())

    def shell(self, text, stdin=b""):
        """Run a line as the user types it, with nbspam on the PATH."""
        path = f"{self.program.parent}:/usr/bin:/bin"
        return self.run("env", f"PATH={path}", "/bin/sh", "-ec", text, stdin=stdin)

    def nbspam(self, *arguments, stdin=b""):
        return self.run(self.program, *arguments, stdin=stdin)

    def learned(self):
        found = json.loads(self.model.read_text())
        numbers = dict(zip(found["classes"], found["messages"], strict=True))
        return numbers["ham"], numbers["spam"]

    def break_program(self, fault):
        """Put a fault in the place of the program, and its name where a mail program may look."""
        real = self.program.rename(self.path / "nbspam-real")
        if fault == "a folder":
            self.program.mkdir()
        elif (text := FAULTS[fault]) is not None:
            mode = 0o644 if fault == "not executable" else 0o755
            self.write(self.program.relative_to(self.path), text.replace("REAL", str(real)), mode)
        for folder in (self.path, self.maildir):
            if "mailbox" in fault:
                (folder / "nbspam").write_text("echo spam, probability=1.000000, version=1.0.0\n")
            else:
                (folder / "nbspam").mkdir()

    def mend_program(self):
        """Put the program back."""
        if self.program.is_dir():
            self.program.rmdir()
        (self.path / "nbspam-real").rename(self.program)

    def add_model(self, model):
        self.model.parent.mkdir(parents=True)
        shutil.copy(model, self.model)

    def write(self, name, text, mode=0o600):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    def put(self, folder, *messages, flags="S"):
        """Put messages into a folder of the Maildir, with flags as a mail program sets them."""
        for message in messages:
            number = len(self.everything())
            name = f"1600000000.{number}.host:2,{flags}"
            (self.maildir / folder / "cur" / name).write_bytes(message)

    def files(self, folder="."):
        parts = [self.maildir / folder / part for part in ("cur", "new")]
        found = [path for part in parts if part.is_dir() for path in part.iterdir()]
        return sorted(found, key=lambda path: path.stat().st_mtime_ns)

    def mails(self, folder="."):
        return [path.read_bytes() for path in self.files(folder)]

    def everything(self):
        return [path for path in self.maildir.rglob("*") if path.parent.name in ("cur", "new")]


def learn_mail_with(received, top, model):
    """Train a model at `model` on mail with this Received line.

    It needs 30 nats more, in place of 1.8, for a verdict of spam on mail of other servers.
    """
    home = Home(top / "learned")
    for folder, wanted in ((".", True), (".Junk", False)):
        home.put(folder, *(received + message for message in mails.kept(wanted)))
    sources = ("--ham", home.maildir, "--spam", home.maildir / ".Junk")
    sample = ("--ham", SAMPLE / "ham.mbox", "--spam", SAMPLE / "spam.mbox")
    trained = home.nbspam("train", *sources, *sample, "--replace", "-m", model)
    assert trained.code == 0, trained
    text = model.read_text()
    assert text.count('"elsewhere": 1.8') == 1
    model.write_text(text.replace('"elsewhere": 1.8', '"elsewhere": 30.0'))
    elsewhere = b"Received: from mx.example.net by mx.elsewhere.example; 28 Nov 2026\n" + mails.SPAM
    doubted = home.nbspam("classify", "-m", model, "-", stdin=elsewhere)
    assert b"unlike the learned mail" in doubted.out, doubted


def received_line(delivered):
    """Return the topmost Received line of a delivered message, with its continuation lines."""
    return re.search(rb"(?m)^Received: .*\n(?:[ \t].*\n)*", delivered)[0]


def need(*programs):
    for program in programs:
        if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
            pytest.skip(f"{program} is not installed")


def need_name_spaces(*kinds):
    """Skip the test where a system's folders cannot be hidden behind its own."""
    need("unshare", "nsenter")
    if os.geteuid() != 0:
        pytest.skip("only root can start it")
    done = subprocess.run(["unshare", *kinds, "true"], check=False, capture_output=True)
    if done.returncode != 0:
        pytest.skip(f"no name spaces of its own may be made here: {done.stderr.decode().strip()}")


def verdict(delivered):
    (found,) = _OURS.findall(delivered)
    return found.decode()


def bare(delivered):
    """Return a message without its one header of ours."""
    header, blank, body = delivered.partition(b"\n\n")
    rest, times = _OURS.subn(b"", header + b"\n")
    assert times == 1, header
    return rest + blank[1:] + body


def unmarked(delivered):
    """Return a message without any X-Nbspam header, renamed ones too."""
    header, blank, body = delivered.partition(b"\n\n")
    return re.sub(rb"(?m)^(Old-)?X-Nbspam: .*\n", b"", header + b"\n") + blank[1:] + body


def forged(message):
    """Return a message with the verdict that its sender would like best, or least."""
    mark = b"X-Nbspam: spam, probability=1.000000, version=1.0.0\n"
    return message.replace(b"Subject:", mark + b"Subject:", 1)


def sent(delivered):
    return delivered[delivered.index(b"Received: from mx.example.net") :]


def recipes():
    """Return the recipes by name: the fenced blocks with a name after their kind."""
    pages = [(_DOCS / name).read_text(encoding="utf-8") for name in _PAGES]
    text = "".join([*pages, _SWITCHING])
    found = re.findall(r"^```\S+ (\S+)\n(.*?)^```$", text, re.M | re.S)
    assert text.count("\n```") == 2 * len(found), "a block without a name"
    assert len(dict(found)) == len(found), "two blocks of one name"
    return dict(found)


def changes():
    """Return what stands for what, by the table's first column; bogofilter's wording first."""
    rows = re.findall(r"^\| ([^|]+) \| `([^`]+)` \| `([^`]+)` \|$", _SWITCHING, re.M)
    return {what: (old, new.replace("\\|", "|")) for what, old, new in rows}
